/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ends.c - ends (serve | ask) [ADDRESS [N]]: N connections (1) one after the
 * other with a message each, made so that nothing but a lost event could keep
 * it waiting: whatever fails and whatever ends, it goes.  serve serves N
 * clients, one at a time; others are rejected meanwhile.  Exit status 1:
 * something failed, and the last line on standard error says what.
 */
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>

#define PORT "7471"
#define TIMEOUT_MS 2000

static struct rdma_event_channel *events;
static char message[64];
static bool serves;

struct end {
	struct rdma_cm_id *id;
	struct ibv_mr *mr;
	bool over, failed;
};

static int fail(struct end *end, const char *what)
{
	perror(what);
	end->over = end->failed = true;
	return -1;
}

/* Its QP, and the receive that has to be there before the peer sends. */
static int prepare(struct end *end)
{
	struct ibv_qp_init_attr attr = { .cap = { 1, 1, 1, 1, 0 }, .qp_type = IBV_QPT_RC,
					 .sq_sig_all = 1 };

	if (rdma_create_qp(end->id, NULL, &attr))
		return fail(end, "rdma_create_qp");
	end->mr = rdma_reg_msgs(end->id, message, sizeof(message));
	if (!end->mr)
		return fail(end, "rdma_reg_msgs");
	if (rdma_post_recv(end->id, NULL, message, sizeof(message), end->mr))
		return fail(end, "rdma_post_recv");
	if (ibv_req_notify_cq(end->id->recv_cq, 0))
		return fail(end, "ibv_req_notify_cq");
	return 0;
}

static void finish(struct end *end)
{
	if (!end->id)
		return;
	if (end->mr)
		rdma_dereg_mr(end->mr);
	if (end->id->qp)
		rdma_destroy_qp(end->id);
	rdma_destroy_id(end->id);
	end->id = NULL;
}

/* What a completion of any kind means: the one that asks disconnects. */
static void take_completions(struct end *end)
{
	struct ibv_cq *cq = end->id->recv_cq;
	struct ibv_wc wc;
	void *context;

	if (!end->id->recv_cq_channel || ibv_get_cq_event(end->id->recv_cq_channel, &cq, &context))
		return;
	ibv_ack_cq_events(cq, 1);
	while (ibv_poll_cq(cq, 1, &wc) > 0)
		if (wc.status != IBV_WC_SUCCESS)
			fprintf(stderr, "%s\n", ibv_wc_status_str(wc.status));
	if (rdma_disconnect(end->id))
		fail(end, "rdma_disconnect");
}

/* The server's answer, or a hang-up where it cannot answer. */
static void established(struct end *end)
{
	if (!serves)
		return;
	if (rdma_post_send(end->id, NULL, message, sizeof(message), end->mr, 0) &&
	    rdma_disconnect(end->id))
		fail(end, "rdma_disconnect");
}

static void connect_to(struct end *end)
{
	struct rdma_conn_param param = { .retry_count = 7, .rnr_retry_count = 7 };

	if (!prepare(end) && rdma_connect(end->id, &param))
		fail(end, "rdma_connect");
}

static void accept_from(struct end *end, struct rdma_cm_id *id)
{
	struct rdma_conn_param param = { .rnr_retry_count = 7 };

	end->id = id;
	if (!prepare(end) && !rdma_accept(id, &param))
		return;
	if (!end->over)
		fail(end, "rdma_accept");
	(void)rdma_reject(id, NULL, 0);
}

static void take_event(struct end *end)
{
	struct rdma_cm_event *event;
	enum rdma_cm_event_type type;
	struct rdma_cm_id *id;
	int status;

	if (rdma_get_cm_event(events, &event)) {
		fail(end, "rdma_get_cm_event");
		return;
	}
	type = event->event;
	id = event->id;
	status = event->status;
	rdma_ack_cm_event(event);
	switch (type) {
	case RDMA_CM_EVENT_ADDR_RESOLVED:
		if (rdma_resolve_route(id, TIMEOUT_MS))
			fail(end, "rdma_resolve_route");
		break;
	case RDMA_CM_EVENT_ROUTE_RESOLVED:
		connect_to(end);
		break;
	case RDMA_CM_EVENT_CONNECT_REQUEST:
		if (end->id)
			rdma_destroy_id(id);
		else
			accept_from(end, id);
		break;
	case RDMA_CM_EVENT_ESTABLISHED:
		established(end);
		break;
	case RDMA_CM_EVENT_TIMEWAIT_EXIT:
		break;
	case RDMA_CM_EVENT_DISCONNECTED:
		end->over = true;
		break;
	default:
		fprintf(stderr, "%s (%d)\n", rdma_event_str(type), status);
		end->over = end->failed = true;
	}
}

static void run(struct end *end)
{
	while (!end->over) {
		bool completes = end->id && end->id->recv_cq_channel;
		struct pollfd fds[] = {
			{ .fd = events->fd, .events = POLLIN },
			{ .fd = completes ? end->id->recv_cq_channel->fd : -1, .events = POLLIN },
		};

		if (poll(fds, 2, -1) < 0)
			fail(end, "poll");
		else if (fds[0].revents)
			take_event(end);
		else if (fds[1].revents)
			take_completions(end);
	}
	finish(end);
}

static int begin(struct rdma_cm_id *id, const char *address)
{
	struct rdma_addrinfo hints = { .ai_flags = serves ? RAI_PASSIVE : 0,
				       .ai_port_space = RDMA_PS_TCP }, *found;
	int ret;

	if (rdma_getaddrinfo((char *)(uintptr_t)address, PORT, &hints, &found))
		return -1;
	if (serves)
		ret = rdma_bind_addr(id, found->ai_src_addr) || rdma_listen(id, 1);
	else
		ret = rdma_resolve_addr(id, NULL, found->ai_dst_addr, TIMEOUT_MS);
	rdma_freeaddrinfo(found);
	return ret;
}

static bool ask(const char *address)
{
	struct end end = { NULL, NULL, false, false };

	if (rdma_create_id(events, &end.id, NULL, RDMA_PS_TCP))
		return perror("rdma_create_id"), false;
	if (begin(end.id, address))
		(void)fail(&end, "rdma_resolve_addr");
	run(&end);
	return !end.failed;
}

/* A client that failed is one that was served. */
static bool serve(const char *address, long num)
{
	struct rdma_cm_id *listener;
	bool well = true;

	if (rdma_create_id(events, &listener, NULL, RDMA_PS_TCP))
		return perror("rdma_create_id"), false;
	if (begin(listener, address)) {
		perror("rdma_listen");
		rdma_destroy_id(listener);
		return false;
	}
	while (num--) {
		struct end end = { NULL, NULL, false, false };

		run(&end);
		well = well && !end.failed;
	}
	rdma_destroy_id(listener);
	return well;
}

int main(int argc, char **argv)
{
	const char *address = argc > 2 ? argv[2] : "127.0.0.1";
	long num = argc > 3 ? atol(argv[3]) : 1;
	bool well = true;

	if (argc < 2)
		return 2;
	serves = !strcmp(argv[1], "serve");
	events = rdma_create_event_channel();
	if (!events)
		return perror("rdma_create_event_channel"), 1;
	if (serves)
		well = serve(address, num);
	while (!serves && well && num--)
		well = ask(address);
	rdma_destroy_event_channel(events);
	return !well;
}
