/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * stuck.c - a server's thread that only listens and a client, for explore.sh.
 * The client's bug is that it waits on after UNREACHABLE.  Whoever learns first
 * that it waits for ever ends the program.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <pthread.h>
#include <rdma/rdma_cma.h>
#include <stdlib.h>
#include <unistd.h>

static int next(struct rdma_event_channel *channel, struct rdma_cm_id **ret_id)
{
	struct rdma_cm_event *event;
	int type;

	if (rdma_get_cm_event(channel, &event))
		_exit(errno == EDEADLK ? 4 : 3);
	type = event->event;
	*ret_id = event->id;
	rdma_ack_cm_event(event);
	return type;
}

static void *serve(void *channel)
{
	struct rdma_conn_param param = { .rnr_retry_count = 7 };
	struct rdma_cm_id *id;

	for (;;)
		if (next(channel, &id) == RDMA_CM_EVENT_CONNECT_REQUEST && rdma_accept(id, &param))
			_exit(3);
}

int main(void)
{
	struct rdma_event_channel *server = rdma_create_event_channel();
	struct rdma_event_channel *client = rdma_create_event_channel();
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(7471) };
	struct sockaddr_in from = { .sin_family = AF_INET };
	struct rdma_conn_param param = { .rnr_retry_count = 7 };
	struct rdma_cm_id *listener, *id;
	pthread_t thread;

	inet_pton(AF_INET, "10.0.0.1", &to.sin_addr);
	inet_pton(AF_INET, "10.0.0.2", &from.sin_addr);
	if (!server || !client || rdma_create_id(server, &listener, NULL, RDMA_PS_TCP) ||
	    rdma_bind_addr(listener, (struct sockaddr *)&to) || rdma_listen(listener, 4) ||
	    pthread_create(&thread, NULL, serve, server) ||
	    rdma_create_id(client, &id, NULL, RDMA_PS_TCP) ||
	    rdma_resolve_addr(id, (struct sockaddr *)&from, (struct sockaddr *)&to, 2000) ||
	    next(client, &id) != RDMA_CM_EVENT_ADDR_RESOLVED || rdma_resolve_route(id, 2000) ||
	    next(client, &id) != RDMA_CM_EVENT_ROUTE_RESOLVED || rdma_connect(id, &param))
		return 3;
	while (next(client, &id) != RDMA_CM_EVENT_CONNECT_RESPONSE)
		;
	_exit(0);
}
