/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * sanitized.c - a program for sanitizers: a server in a thread and a client
 * that share memory which only connections and completions hand over, so that
 * there is no race.  With the argument "overflow" or "race" it has that bug;
 * with "show" it shows what is preloaded, and ends.
 */
#include <arpa/inet.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>

#define ROUNDS 20

struct shared {
	unsigned int by_client, by_server;	/* written before, read after what the peer gets */
	unsigned int raced;
};

static struct shared *shared;
static struct rdma_event_channel *server_channel;
static int race;

static void must(int ok, const char *what)
{
	if (ok)
		return;
	perror(what);
	exit(1);
}

static struct rdma_cm_id *wait_for(struct rdma_event_channel *channel, enum rdma_cm_event_type type)
{
	struct pollfd pfd = { .fd = channel->fd, .events = POLLIN };
	struct rdma_cm_event *event;
	struct rdma_cm_id *id;

	must(poll(&pfd, 1, -1) == 1, "poll");
	must(!rdma_get_cm_event(channel, &event), "rdma_get_cm_event");
	must(event->event == type, rdma_event_str(event->event));
	id = event->id;
	must(!rdma_ack_cm_event(event), "rdma_ack_cm_event");
	return id;
}

static void make_qp(struct rdma_cm_id *id)
{
	struct ibv_qp_init_attr attr = {
		.qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = 2, .max_recv_wr = 2, .max_send_sge = 1, .max_recv_sge = 1 },
		.sq_sig_all = 1,
	};

	must(!rdma_create_qp(id, NULL, &attr), "rdma_create_qp");
}

static void *serve(void *arg)
{
	struct rdma_conn_param param = { .responder_resources = 1 };
	struct ibv_mr *mr;
	struct ibv_wc wc;
	char buffer[16];

	(void)arg;
	for (unsigned int i = 1; i <= ROUNDS; i++) {
		struct rdma_cm_id *id = wait_for(server_channel, RDMA_CM_EVENT_CONNECT_REQUEST);

		must(shared->by_client == i, "what the client wrote");
		if (race)
			shared->raced++;
		make_qp(id);
		mr = rdma_reg_msgs(id, buffer, sizeof(buffer));
		must(mr && !rdma_post_recv(id, NULL, buffer, sizeof(buffer), mr), "rdma_post_recv");
		must(!rdma_accept(id, &param), "rdma_accept");
		(void)wait_for(server_channel, RDMA_CM_EVENT_ESTABLISHED);
		must(rdma_get_recv_comp(id, &wc) == 1 && !wc.status, "rdma_get_recv_comp");
		must(shared->by_client == i + 1000, "what the client wrote last");
		shared->by_server = i;
		must(!rdma_disconnect(id), "rdma_disconnect");
		(void)wait_for(server_channel, RDMA_CM_EVENT_DISCONNECTED);
		must(!rdma_dereg_mr(mr), "rdma_dereg_mr");
		rdma_destroy_qp(id);
		must(!rdma_destroy_id(id), "rdma_destroy_id");
	}
	return NULL;
}

static void connect_once(const struct sockaddr_in *to, unsigned int round)
{
	struct rdma_conn_param param = { .responder_resources = 1, .retry_count = 7 };
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct rdma_cm_id *id;
	struct ibv_mr *mr;
	struct ibv_wc wc;
	char buffer[16] = "hello";

	must(channel && !rdma_create_id(channel, &id, NULL, RDMA_PS_TCP), "rdma_create_id");
	must(!rdma_resolve_addr(id, NULL, (struct sockaddr *)to, 2000), "rdma_resolve_addr");
	(void)wait_for(channel, RDMA_CM_EVENT_ADDR_RESOLVED);
	must(!rdma_resolve_route(id, 2000), "rdma_resolve_route");
	(void)wait_for(channel, RDMA_CM_EVENT_ROUTE_RESOLVED);
	make_qp(id);
	mr = rdma_reg_msgs(id, buffer, sizeof(buffer));
	must(mr != NULL, "rdma_reg_msgs");
	shared->by_client = round;
	must(!rdma_connect(id, &param), "rdma_connect");
	if (race)
		shared->raced++;
	(void)wait_for(channel, RDMA_CM_EVENT_ESTABLISHED);
	shared->by_client = round + 1000;
	must(!rdma_post_send(id, NULL, buffer, sizeof(buffer), mr, 0), "rdma_post_send");
	must(rdma_get_send_comp(id, &wc) == 1 && !wc.status, "rdma_get_send_comp");
	(void)wait_for(channel, RDMA_CM_EVENT_DISCONNECTED);
	must(shared->by_server == round, "what the server wrote");
	must(!rdma_dereg_mr(mr), "rdma_dereg_mr");
	rdma_destroy_qp(id);
	must(!rdma_destroy_id(id), "rdma_destroy_id");
	rdma_destroy_event_channel(channel);
}

int main(int argc, char **argv)
{
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_port = htons(7471) };
	struct rdma_cm_id *listener;
	pthread_t server;
	volatile int end = sizeof(*shared);

	if (argc > 1 && !strcmp(argv[1], "show"))
		return puts(getenv("LD_PRELOAD")) < 0;
	at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	race = argc > 1 && !strcmp(argv[1], "race");
	shared = calloc(1, sizeof(*shared));
	must(shared != NULL, "calloc");
	if (argc > 1 && !strcmp(argv[1], "overflow"))
		((char *)shared)[end] = 1;
	server_channel = rdma_create_event_channel();
	must(server_channel && !rdma_create_id(server_channel, &listener, NULL, RDMA_PS_TCP) &&
	     !rdma_bind_addr(listener, (struct sockaddr *)&at) && !rdma_listen(listener, 4), "listen");
	must(!pthread_create(&server, NULL, serve, NULL), "pthread_create");
	for (unsigned int i = 1; i <= ROUNDS; i++)
		connect_once(&at, i);
	must(!pthread_join(server, NULL), "pthread_join");
	must(!rdma_destroy_id(listener), "rdma_destroy_id");
	rdma_destroy_event_channel(server_channel);
	free(shared);
	puts("done");
	return 0;
}
