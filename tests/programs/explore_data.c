/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * explore_data.c - a server and a client in one program, for explore.sh: each
 * of some clients connects, sends a line, and goes.  What is wrong, if
 * anything, is the argument: "good" (it does well whatever happens), "status"
 * (its exit status is that of a completion that fails), "bytes" (5: the server
 * got other bytes), "last" (6: a client that comes after 100 s is not served),
 * "wait" and "abort" (it waits without a time-out for what may not come, and
 * ends with 42 or aborts if it is told so).
 */
#include <rdma/rdma_verbs.h>
#include <string.h>
#include <unistd.h>

#include "explore_two.h"

#define CLIENTS 3
#define PATIENCE 20000	/* ms */
#define QUIET 100	/* s */

static const char *wrong = "good";
static struct ibv_mr *sent_mr, *got_mr;
static char sent[64] = "hello, server", got[64];

static int is(const char *what)
{
	return !strcmp(wrong, what);
}

static int make_qp(struct rdma_cm_id *id)
{
	struct ibv_qp_init_attr attr = { .cap = { 4, 4, 1, 1, 0 }, .qp_type = IBV_QPT_RC,
					 .sq_sig_all = 1 };

	return rdma_create_qp(id, NULL, &attr);
}

static void drop(struct rdma_cm_id **id, struct ibv_mr **mr)
{
	if (!*id)
		return;
	if ((*id)->qp)
		rdma_destroy_qp(*id);
	if (*mr)
		ibv_dereg_mr(*mr);
	rdma_destroy_id(*id);
	*id = NULL;
	*mr = NULL;
}

static void take(struct rdma_cm_id *id)
{
	struct rdma_conn_param param = { .retry_count = 7, .rnr_retry_count = 7 };

	drop(&accepted, &got_mr);
	accepted = id;
	memset(got, 0, sizeof(got));
	if (make_qp(id))
		return;
	got_mr = rdma_reg_msgs(id, got, sizeof(got));
	if (!got_mr || rdma_post_recv(id, NULL, got, sizeof(got), got_mr) || rdma_accept(id, &param))
		drop(&accepted, &got_mr);
}

/* The client's next event, or -1. */
static int next(void)
{
	struct rdma_cm_event *event = next_event(is("wait") || is("abort") ? -1 : PATIENCE);
	int type;

	if (!event && errno && is("wait"))
		exit(42);
	if (!event && errno && is("abort"))
		abort();
	if (!event)
		return -1;
	type = event->event;
	rdma_ack_cm_event(event);
	return type;
}

static int connects(struct rdma_cm_id *id)
{
	struct sockaddr_in from = address("10.0.0.2", 0), to = address("10.0.0.1", 7471);
	struct rdma_conn_param param = { .retry_count = 3, .rnr_retry_count = 7 };

	return !rdma_resolve_addr(id, (struct sockaddr *)&from, (struct sockaddr *)&to, 2000) &&
	       next() == RDMA_CM_EVENT_ADDR_RESOLVED && !rdma_resolve_route(id, 2000) &&
	       next() == RDMA_CM_EVENT_ROUTE_RESOLVED && !make_qp(id) &&
	       (sent_mr = rdma_reg_msgs(id, sent, sizeof(sent))) && !rdma_connect(id, &param) &&
	       next() == RDMA_CM_EVENT_ESTABLISHED;
}

/* Both are here: within 20 s the line is there, or its completion has failed. */
static int sends(struct rdma_cm_id *id)
{
	struct ibv_wc wc = { 0 }, received = { 0 };

	if (rdma_post_send(id, NULL, sent, sizeof(sent), sent_mr, 0))
		return 0;
	for (int i = 0; i < 2000 && !ibv_poll_cq(id->send_cq, 1, &wc); i++)
		usleep(10000);
	if (wc.status && is("status"))
		exit(20 + (int)wc.status);
	if (wc.status || !accepted || !accepted->recv_cq)
		return 0;
	for (int i = 0; i < 100 && !ibv_poll_cq(accepted->recv_cq, 1, &received); i++)
		usleep(10000);
	if (is("bytes") && strcmp(got, sent))
		exit(5);
	return !strcmp(got, sent);
}

static int try(void)
{
	struct rdma_cm_id *id;
	int served;

	if (rdma_create_id(client, &id, NULL, RDMA_PS_TCP))
		return 0;
	served = connects(id) && sends(id);
	rdma_disconnect(id);
	drop(&id, &sent_mr);
	return served;
}

int main(int argc, char **argv)
{
	if (argc > 1)
		wrong = argv[1];
	two_begin();
	for (int i = 0; i < CLIENTS; i++)
		try();
	if (is("last")) {
		sleep(QUIET);
		if (!try())
			return 6;
	}
	drop(&accepted, &got_mr);
	two_end();
	return 0;
}
