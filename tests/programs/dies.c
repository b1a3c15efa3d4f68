/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * dies.c - serve FILE | ask HOW: two ends of a connection without queue pairs,
 * of which the client is killed.  Before, it does what HOW has letters for: d
 * disconnects, x destroys the id.  Then the server opens FILE (a FIFO, which
 * opens when somebody writes to it), disconnects.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <arpa/inet.h>
#include <rdma/rdma_cma.h>

#define TIMEOUT_MS 2000

static struct rdma_event_channel *events;
static struct rdma_conn_param param = { .qp_num = 0x11, .retry_count = 7, .rnr_retry_count = 7 };

/* The next event, which must be this; its id. */
static struct rdma_cm_id *expect(enum rdma_cm_event_type type)
{
	struct rdma_cm_event *event;
	enum rdma_cm_event_type found;
	struct rdma_cm_id *id;

	if (rdma_get_cm_event(events, &event))
		return perror("rdma_get_cm_event"), NULL;
	found = event->event;
	id = event->id;
	fprintf(stderr, "%s (%d)\n", rdma_event_str(found), event->status);
	rdma_ack_cm_event(event);
	return found == type ? id : NULL;
}

static int ask(struct rdma_cm_id *id, struct sockaddr *address, const char *how)
{
	if (rdma_resolve_addr(id, NULL, address, TIMEOUT_MS) ||
	    !expect(RDMA_CM_EVENT_ADDR_RESOLVED) || rdma_resolve_route(id, TIMEOUT_MS) ||
	    !expect(RDMA_CM_EVENT_ROUTE_RESOLVED) || rdma_connect(id, &param) ||
	    !expect(RDMA_CM_EVENT_CONNECT_RESPONSE) || rdma_establish(id))
		return 1;
	for (; *how; how++)
		if (*how == 'd' ? rdma_disconnect(id) : rdma_destroy_id(id))
			return 1;
	return raise(SIGKILL);
}

static int serve(struct rdma_cm_id *listener, struct sockaddr *address, const char *file)
{
	struct rdma_cm_id *id;
	int fd;

	if (rdma_bind_addr(listener, address) || rdma_listen(listener, 1))
		return 1;
	id = expect(RDMA_CM_EVENT_CONNECT_REQUEST);
	if (!id || rdma_accept(id, &param) || !expect(RDMA_CM_EVENT_ESTABLISHED))
		return 1;
	fd = open(file, O_RDONLY);
	if (fd < 0)
		return 1;
	close(fd);
	if (rdma_disconnect(id) || !expect(RDMA_CM_EVENT_DISCONNECTED))
		return 1;
	return rdma_destroy_id(id) || rdma_destroy_id(listener);
}

int main(int argc, char **argv)
{
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = htons(7471) };
	struct rdma_cm_id *id;
	int status;

	if (argc != 3)
		return 2;
	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	events = rdma_create_event_channel();
	if (!events || rdma_create_id(events, &id, NULL, RDMA_PS_TCP))
		return perror("rdma_create_id"), 1;
	if (!strcmp(argv[1], "ask"))
		return ask(id, (struct sockaddr *)&address, argv[2]);
	status = serve(id, (struct sockaddr *)&address, argv[2]);
	if (!status)
		rdma_destroy_event_channel(events);
	return status;
}
