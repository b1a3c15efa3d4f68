/* SPDX-License-Identifier: BSD-2-Clause */
/* orders.c - scenarios of calls in unusual orders: both ends at once, ends that have left, ids that
 * share. */

#include "scene_data.h"

/* --- Ends. --- */

static void end_before_answer_taken(void)
{
	open_scene(RDMA_PS_TCP);
	accepted(NULL);
	arrived(client_events);
	TRY(rdma_disconnect(client));
	show_qp(client);
	rest(client_events);
	rest(server_events);
	show_qp(child);
}

/* What a new QP can do on an id that has lost its connection. */
static void end_new_qp(void)
{
	struct ibv_qp_init_attr attr = {
		.cap = {.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1},
		.qp_type = IBV_QPT_RC,
	};
	struct rdma_conn_param with = param();

	open_scene(RDMA_PS_TCP);
	established();
	TRY(rdma_disconnect(client));
	next(server_events);
	TRY(rdma_disconnect(child));
	rest(client_events);
	rdma_destroy_qp(client);
	TRY(rdma_create_qp(client, NULL, &attr));
	TRY(rdma_connect(client, &with));
	TRY(rdma_accept(child, &with));
	TRY(rdma_reject(child, NULL, 0));
	TRY(rdma_resolve_addr(client, NULL, at(SERVER4, 0), 1000));
	TRY(rdma_listen(client, 1));
	TRY(rdma_bind_addr(client, at(CLIENT4, 1)));
	rest(client_events);
}

/* --- Both connect to each other. --- */

static void cross_connect(void)
{
	struct rdma_conn_param with = param();
	struct rdma_cm_id *back, *there_child, *back_child;

	open_scene(RDMA_PS_TCP);
	server_listens(0);
	back = make_id("back", client_events, RDMA_PS_TCP);
	MUST(rdma_bind_addr(back, at(CLIENT4, 1)));
	MUST(rdma_listen(back, 0));
	client_resolves();
	make_qp(client);
	child = make_id("reverse", server_events, RDMA_PS_TCP);
	there_child = child;
	MUST(rdma_resolve_addr(there_child, at(SERVER4, ANY_PORT), at(CLIENT4, 1), 1000));
	next(server_events);
	MUST(rdma_resolve_route(there_child, 1000));
	next(server_events);
	make_qp(there_child);
	TRY(rdma_connect(client, &with));
	TRY(rdma_connect(there_child, &with));
	next(server_events);
	back_child = child;
	next(client_events);
	make_qp(back_child);
	make_qp(child);
	TRY(rdma_accept(back_child, &with));
	TRY(rdma_accept(child, &with));
	arrived(client_events);
	arrived(server_events);
	pass_ms(50);
	quiet();
	rest(client_events);
	rest(server_events);
	rest(client_events);
	loud();
	show_qp(client);
	show_qp(there_child);
	show_qp(back_child);
	TRY(rdma_disconnect(client));
	TRY(rdma_disconnect(there_child));
}

/* --- QPs of the program, not the id's. --- */

static struct ibv_qp *own_qp(struct rdma_cm_id *id, struct ibv_cq **ret_cq)
{
	struct ibv_qp_init_attr attr = {
		.cap = {.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1},
		.qp_type = IBV_QPT_RC,
		.sq_sig_all = 1,
	};

	*ret_cq = ibv_create_cq(id->verbs, 8, NULL, NULL, 0);
	attr.send_cq = attr.recv_cq = *ret_cq;
	return ibv_create_qp(id->pd, &attr);
}

static int move(struct rdma_cm_id *id, struct ibv_qp *qp, enum ibv_qp_state state)
{
	struct ibv_qp_attr attr = {.qp_state = state};
	int mask;

	if (rdma_init_qp_attr(id, &attr, &mask))
		return -1;
	errno = ibv_modify_qp(qp, &attr, mask);
	return errno ? -1 : 0;
}

static void foreign_qps(void)
{
	struct ibv_cq *client_cq, *child_cq;
	struct rdma_conn_param with = param();
	struct ibv_qp *here, *there;

	open_scene(RDMA_PS_TCP);
	server_listens(0);
	client_resolves();
	here = own_qp(client, &client_cq);
	with.qp_num = here->qp_num;
	TRY(move(client, here, IBV_QPS_INIT));
	MUST(rdma_connect(client, &with));
	quiet();
	next(server_events);
	loud();
	there = own_qp(child, &child_cq);
	with.qp_num = there->qp_num;
	TRY(move(child, there, IBV_QPS_INIT));
	TRY(move(child, there, IBV_QPS_RTR));
	TRY(move(child, there, IBV_QPS_RTS));
	TRY(rdma_accept(child, &with));
	quiet();
	expect_type(client_events, client->verbs->device->transport_type == IBV_TRANSPORT_IB
					   ? RDMA_CM_EVENT_CONNECT_RESPONSE
					   : RDMA_CM_EVENT_ESTABLISHED);
	loud();
	TRY(move(client, here, IBV_QPS_RTR));
	TRY(move(client, here, IBV_QPS_RTS));
	TRY(rdma_establish(client));
	next(server_events);
	TRY(rdma_disconnect(client));
	next(server_events);
	TRY(rdma_disconnect(child));
	rest(client_events);
	ibv_destroy_qp(here);
	ibv_destroy_qp(there);
	ibv_destroy_cq(client_cq);
	ibv_destroy_cq(child_cq);
}

/* --- Channels. --- */

static struct rdma_cm_event *taken;

static void wait_there(void)
{
	int result = rdma_get_cm_event(client_events, &taken);

	say("the thread: rdma_get_cm_event = %d %s", result,
	    result ? errno_text(errno) : rdma_event_str(taken->event));
	if (!result)
		rdma_ack_cm_event(taken);
}

static void thread_waits(void)
{
	open_scene(RDMA_PS_TCP);
	beside(wait_there);
	pass_ms(100);
	TRY(rdma_resolve_addr(client, NULL, at(SERVER4, 0), 1000));
	join();
	rest(client_events);
}

/* --- Moved to another channel, in every state. --- */

static struct rdma_event_channel *third;

#define MOVE(id) TRY(rdma_migrate_id((id), (id)->channel == third ? client_events : third))

static void migrate_each_state(void)
{
	struct rdma_conn_param with = param();

	open_scene(RDMA_PS_TCP);
	third = make_channel("third");
	MOVE(client);
	MUST(rdma_resolve_addr(client, at(CLIENT4, ANY_PORT), at(SERVER4, 0), 1000));
	MOVE(client);
	next(client_events);
	MOVE(client);
	MUST(rdma_resolve_route(client, 1000));
	arrived(third);
	MOVE(client);
	rest(third);
	next(client_events);
	MOVE(client);
	make_qp(client);
	server_listens(0);
	MUST(rdma_connect(client, &with));
	MOVE(client);
	next(server_events);
	make_qp(child);
	TRY(rdma_migrate_id(child, third));
	MUST(rdma_accept(child, &with));
	/* Over iWARP the child's event is the first, as it does not wait for the client. */
	if (client->verbs->device->transport_type == IBV_TRANSPORT_IWARP)
		arrived(third);
	arrived(client_events);
	MOVE(client);
	next(third);
	next(third);
	TRY(rdma_disconnect(child));
	arrived(third);
	MOVE(client);
	rest(third);
	next(client_events);
	TRY(rdma_disconnect(client));
	MOVE(client);
	next(third);
}

/* --- Ports of children and listeners. --- */

static void listen_specific_first(void)
{
	struct rdma_conn_param with = param();
	struct rdma_cm_id *any;
	int yes = 1;

	open_scene(RDMA_PS_TCP);
	any = make_id("any", server_events, RDMA_PS_TCP);
	MUST(rdma_set_option(any, RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR, &yes, sizeof(yes)));
	MUST(rdma_set_option(server, RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR, &yes, sizeof(yes)));
	TRY(rdma_bind_addr(any, at(ANY4, 0)));
	TRY(rdma_bind_addr(server, at(SERVER4, 0)));
	TRY(rdma_listen(server, 0));
	TRY(rdma_listen(any, 0));
	client_resolves();
	make_qp(client);
	TRY(rdma_connect(client, &with));
	next(server_events);
}

const struct scenario orders_scenarios[] = {
	{"end-before-answer-taken", end_before_answer_taken,
	 "disconnecting with the answer untaken", 0},
	{"end-new-qp", end_new_qp, "a new QP, and all calls, after the end", 0},
	{"cross-connect", cross_connect, "both connect to each other", 0},
	{"foreign-qps", foreign_qps, "QPs of the program", 0},
	{"thread-waits", thread_waits, "a thread waits for the event", 0},
	{"migrate-each-state", migrate_each_state, "to and fro in each state", 0},
	{"listen-specific-first", listen_specific_first, "a wildcard and an address, both reuse",
	 0},
	{NULL, NULL, NULL, 0},
};
