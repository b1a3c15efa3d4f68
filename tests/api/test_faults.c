/* SPDX-License-Identifier: BSD-2-Clause */
/* test_faults.c - each kind of fault on a connection between two programs, and what both see of it. */
#include <errno.h>
#include <string.h>

#include "steps.h"

#define ONE_WAY 1000u		/* ns, where nothing is said about a link */

/* T_req and T_rep, the reference's section on time-outs. */
static const uint64_t request_wait[] = { [ROCE] = 4608000000, [IB] = 6144000000 };
static const uint64_t reply_wait[] = { [ROCE] = 4096000000, [IB] = 4096000000 };
static const enum transport madders[] = { ROCE, IB };

static struct polycm_sim_fault *add(const struct polycm_sim_fault_rule *rule)
{
	struct polycm_sim_fault *fault = NULL;

	assert_int_equal(polycm_sim_fault_add(rule, &fault), 0);
	assert_non_null(fault);
	return fault;
}

static void assert_hits(struct polycm_sim_fault *fault, unsigned int expected)
{
	unsigned int hits;

	assert_int_equal(polycm_sim_fault_hits(fault, &hits), 0);
	assert_int_equal(hits, expected);
}

/* Accepted by the server, with a queue pair; both see it. */
static void finish_connecting(struct pair *pair)
{
	struct rdma_conn_param param = pair_param(NULL, 0);

	pair_server_qp(pair);
	assert_int_equal(rdma_accept(pair->server, &param), 0);
	pair_take(pair->client_channel, RDMA_CM_EVENT_ESTABLISHED, 0);
	pair_take(pair->server_channel, RDMA_CM_EVENT_ESTABLISHED, 0);
}

/* So many messages of four bytes, one at a time, from the client to the server. */
static void exchange(struct pair *pair, uint32_t count)
{
	uint32_t out, in;
	struct ibv_mr *out_mr = ibv_reg_mr(pair->client->pd, &out, sizeof(out), 0);
	struct ibv_mr *in_mr = ibv_reg_mr(pair->server->pd, &in, sizeof(in),
					  IBV_ACCESS_LOCAL_WRITE);
	struct ibv_sge from, to;
	struct ibv_send_wr send = { .sg_list = &from, .num_sge = 1, .opcode = IBV_WR_SEND,
				    .send_flags = IBV_SEND_SIGNALED }, *bad_send;
	struct ibv_recv_wr recv = { .sg_list = &to, .num_sge = 1 }, *bad_recv;
	struct ibv_wc wc;

	assert_non_null(out_mr);
	assert_non_null(in_mr);
	from = (struct ibv_sge){ (uintptr_t)&out, sizeof(out), out_mr->lkey };
	to = (struct ibv_sge){ (uintptr_t)&in, sizeof(in), in_mr->lkey };
	for (out = 1; out <= count; out++) {
		in = 0;
		assert_int_equal(ibv_post_recv(pair->server->qp, &recv, &bad_recv), 0);
		assert_int_equal(ibv_post_send(pair->client->qp, &send, &bad_send), 0);
		while (!ibv_poll_cq(pair->server_cq, 1, &wc))
			;
		assert_int_equal(wc.status, IBV_WC_SUCCESS);
		assert_int_equal(in, out);
		while (!ibv_poll_cq(pair->client_cq, 1, &wc))
			;
		assert_int_equal(wc.status, IBV_WC_SUCCESS);
	}
	assert_int_equal(ibv_dereg_mr(out_mr), 0);
	assert_int_equal(ibv_dereg_mr(in_mr), 0);
}

/* ------------------------------------------------------------------------
 * Messages that are lost, late, doubled, broken.
 */

static void a_request_lost_once(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(madders); i++) {
		struct rdma_conn_param param = pair_param(NULL, 0);
		struct polycm_sim_fault *fault;
		struct pair pair;
		uint64_t before;

		pair_open_resolved(&pair, madders[i]);
		fault = add(POLYCM_SIM_FAULT(.action = POLYCM_SIM_LOSE, .message = "REQ", .nth = 1));
		before = pair_now();
		rdma_ack_cm_event(pair_request(&pair, &param));
		assert_elapsed(before, request_wait[madders[i]] + ONE_WAY);
		finish_connecting(&pair);
		assert_hits(fault, 1);
		pair_close(&pair);
	}
}

static void all_requests_lost(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(madders); i++) {
		struct rdma_conn_param param = pair_param(NULL, 0);
		struct polycm_sim_fault *fault;
		struct pair pair;
		uint64_t before;

		pair_open_resolved(&pair, madders[i]);
		fault = add(POLYCM_SIM_FAULT(.action = POLYCM_SIM_LOSE, .message = "REQ",
					     .from = pair.client_node, .to = pair.server_node));
		before = pair_now();
		assert_int_equal(rdma_connect(pair.client, &param), 0);
		pair_take(pair.client_channel, RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT);
		assert_elapsed(before, 16 * request_wait[madders[i]]);
		pair_none(pair.server_channel);
		assert_hits(fault, 16);
		pair_close(&pair);
	}
}

static void a_reply_lost_once(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(madders); i++) {
		struct rdma_conn_param param = pair_param(NULL, 0);
		struct polycm_sim_fault *fault;
		struct pair pair;
		uint64_t before;

		pair_open_resolved(&pair, madders[i]);
		rdma_ack_cm_event(pair_request(&pair, &param));
		pair_server_qp(&pair);
		fault = add(POLYCM_SIM_FAULT(.action = POLYCM_SIM_LOSE, .message = "REP", .nth = 1));
		before = pair_now();
		assert_int_equal(rdma_accept(pair.server, &param), 0);
		pair_take(pair.client_channel, RDMA_CM_EVENT_ESTABLISHED, 0);
		assert_elapsed(before, reply_wait[madders[i]] + ONE_WAY);
		pair_take(pair.server_channel, RDMA_CM_EVENT_ESTABLISHED, 0);
		assert_hits(fault, 1);
		pair_close(&pair);
	}
}

/* The server's reply comes again, and is answered by another RTU. */
static void an_rtu_lost_once(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(madders); i++) {
		struct polycm_sim_fault *fault;
		struct pair pair;
		uint64_t before;

		pair_open(&pair, madders[i], RDMA_PS_TCP);
		fault = add(POLYCM_SIM_FAULT(.action = POLYCM_SIM_LOSE, .message = "RTU", .nth = 1));
		before = pair_now();
		pair_connect(&pair);
		assert_in_range(pair_now() - before, reply_wait[madders[i]],
				reply_wait[madders[i]] + SECONDS(0.001));
		assert_hits(fault, 1);
		pair_close(&pair);
	}
}

/* One request, however many copies of it come, and whatever their order. */
static void doubled_and_late(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(madders); i++) {
		struct polycm_sim_fault *copies, *late;
		struct pair pair;
		unsigned int hits;

		pair_open(&pair, madders[i], RDMA_PS_TCP);
		copies = add(POLYCM_SIM_FAULT(.action = POLYCM_SIM_DUPLICATE, .count = 3,
					      .delay_ns = 700));
		late = add(POLYCM_SIM_FAULT(.action = POLYCM_SIM_DELAY, .message = "REP", .nth = 1,
					    .delay_ns = 1000000));
		pair_connect(&pair);
		assert_int_equal(polycm_sim_advance(SECONDS(200)), 0);
		pair_none(pair.client_channel);
		pair_none(pair.server_channel);
		/* REQ, REP, RTU, and what answers their copies. */
		assert_int_equal(polycm_sim_fault_hits(copies, &hits), 0);
		assert_in_range(hits, 4, 10);
		assert_hits(late, 1);
		pair_close(&pair);
	}
}

/* A version that nobody knows: such a message is no message. */
static void a_broken_request(void **state)
{
	struct rdma_conn_param param = pair_param(NULL, 0);
	struct polycm_sim_fault *fault;
	struct pair pair;
	uint64_t before;

	(void)state;
	pair_open_resolved(&pair, ROCE);
	fault = add(POLYCM_SIM_FAULT(.action = POLYCM_SIM_CORRUPT, .message = "REQ", .nth = 1,
				     .offset = 0, .value = 0x80));
	before = pair_now();
	rdma_ack_cm_event(pair_request(&pair, &param));
	assert_elapsed(before, request_wait[ROCE] + ONE_WAY);
	assert_hits(fault, 1);
	finish_connecting(&pair);
	pair_close(&pair);
}

/*
 * On iWARP TCP sees to it: the request comes 200 ms later, or 600 ms later if it
 * is lost a second time, and nothing is doubled.
 */
static void a_request_lost_on_iwarp(void **state)
{
	static const uint64_t late[] = { 0, 200000000, 600000000, 1400000000 };

	(void)state;
	for (unsigned int times = 1; times < ARRAY_LEN(late); times++) {
		struct rdma_conn_param param = pair_param(NULL, 0);
		struct polycm_sim_fault *fault;
		struct pair pair;
		uint64_t before;

		pair_open_resolved(&pair, IWARP);
		fault = add(POLYCM_SIM_FAULT(.action = POLYCM_SIM_LOSE, .message = "MPA_REQ",
					     .times = times));
		add(POLYCM_SIM_FAULT(.action = POLYCM_SIM_DUPLICATE, .message = "any"));
		before = pair_now();
		rdma_ack_cm_event(pair_request(&pair, &param));
		assert_in_range(pair_now() - before, late[times], late[times] + 10 * ONE_WAY);
		finish_connecting(&pair);
		assert_hits(fault, times);
		pair_close(&pair);
	}
}

/*
 * What is on its way to a node of iWARP when that falls silent for a while comes
 * again as well: 200, 600 and 1400 ms later, a SYN or the answer to it after a second.
 */
static void silence_on_iwarp(void **state)
{
	static const struct {
		const char *message;
		bool to_server;
		uint64_t silent, late;
	} rows[] = {
		{ "MPA_REQ", true, 1000000000, 1400000000 },
		{ "MPA_REP", false, 1000000000, 1400000000 },
		{ "any", true, 900000000, 1000000000 },	/* SYN */
		{ "any", false, 900000000, 1000000000 },	/* SYN-ACK */
		{ "SEND", true, 1000000000, 1400000000 },
	};
	static const enum polycm_sim_action actions[] = { POLYCM_SIM_PORT_DOWN, POLYCM_SIM_FREEZE };

	(void)state;
	for (size_t i = 0; i < 2 * ARRAY_LEN(rows); i++) {
		bool to_server = rows[i / 2].to_server;
		struct rdma_conn_param param = pair_param(NULL, 0);
		struct polycm_sim_fault *fault;
		struct pair pair;
		uint64_t before;

		pair_open_resolved(&pair, IWARP);
		fault = add(POLYCM_SIM_FAULT(.action = actions[i % 2], .nth = 1,
					     .message = rows[i / 2].message,
					     .to = to_server ? pair.server_node : pair.client_node,
					     .on = to_server ? pair.server_node : pair.client_node,
					     .delay_ns = rows[i / 2].silent));
		before = pair_now();
		rdma_ack_cm_event(pair_request(&pair, &param));
		finish_connecting(&pair);
		exchange(&pair, 3);
		assert_in_range(pair_now() - before, rows[i / 2].late,
				rows[i / 2].late + SECONDS(0.001));
		assert_hits(fault, 1);
		pair_close(&pair);
	}
}

/* One of ten packets is lost, on each transport, and everything arrives once and in order. */
static void data_on_a_bad_link(void **state)
{
	(void)state;
	for (enum transport transport = ROCE; transport < NUM_TRANSPORTS; transport++) {
		struct polycm_sim_link link = {
			.size = sizeof(link), .latency_ns = 5000, .jitter_ns = 1000, .loss = 0.1,
			.duplication = 0.05, .reordering = 0.05,
		};
		struct pair pair;

		pair_open(&pair, transport, RDMA_PS_TCP);
		assert_int_equal(polycm_sim_link_set(NULL, NULL, &link), 0);
		pair_connect(&pair);
		exchange(&pair, 300);
		pair_close(&pair);
	}
}

/* ------------------------------------------------------------------------
 * Rejected on the way.
 */

static void rejected_by_rule(void **state)
{
	static const uint16_t reasons[] = { 1, 3, 4, 5, 6, 8, 10, 12, 26, 27, 28, 29, 33, 35 };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(madders); i++) {
		for (size_t r = 0; r < ARRAY_LEN(reasons); r++) {
			struct rdma_conn_param param = pair_param(NULL, 0);
			struct polycm_sim_fault *fault;
			struct pair pair;
			uint64_t before;

			pair_open_resolved(&pair, madders[i]);
			fault = add(POLYCM_SIM_FAULT(.action = POLYCM_SIM_REJECT, .message = "REQ",
						     .reason = reasons[r]));
			before = pair_now();
			assert_int_equal(rdma_connect(pair.client, &param), 0);
			/* A REJ for a time-out names its sender otherwise: nobody knows this one. */
			if (reasons[r] == 4) {
				pair_take(pair.client_channel, RDMA_CM_EVENT_UNREACHABLE,
					  -ETIMEDOUT);
				assert_hits(fault, 16);
			} else {
				pair_take(pair.client_channel, RDMA_CM_EVENT_REJECTED, reasons[r]);
				assert_elapsed(before, 2 * ONE_WAY);
				assert_hits(fault, 1);
			}
			pair_none(pair.server_channel);
			pair_close(&pair);
		}
	}
}

/* The server is told; the client, which sent nothing, is not. */
static void a_reply_rejected_by_rule(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(madders); i++) {
		struct rdma_conn_param param = pair_param(NULL, 0);
		struct pair pair;

		step_request(&pair, madders[i], RDMA_PS_TCP, true);
		add(POLYCM_SIM_FAULT(.action = POLYCM_SIM_REJECT, .message = "REP", .nth = 1,
				     .reason = 29));
		assert_int_equal(rdma_accept(pair.server, &param), 0);
		pair_take(pair.server_channel, RDMA_CM_EVENT_REJECTED, 29);
		pair_none(pair.client_channel);
		pair_close(&pair);
	}
}

static void rejected_by_rule_on_iwarp(void **state)
{
	struct rdma_conn_param param = pair_param(NULL, 0);
	struct polycm_sim_fault *fault;
	struct pair pair;

	(void)state;
	pair_open_resolved(&pair, IWARP);
	fault = add(POLYCM_SIM_FAULT(.action = POLYCM_SIM_REJECT, .message = "MPA_REQ"));
	assert_int_equal(rdma_connect(pair.client, &param), 0);
	pair_take(pair.client_channel, RDMA_CM_EVENT_REJECTED, -ECONNRESET);
	pair_none(pair.server_channel);
	assert_hits(fault, 1);
	pair_close(&pair);
}

/* ------------------------------------------------------------------------
 * Calls and lookups.
 */

static void calls_fail(void **state)
{
	struct ibv_qp_init_attr attr = {
		.qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1 },
	};
	struct rdma_conn_param param = pair_param(NULL, 0);
	struct polycm_sim_fault *fault;
	struct rdma_cm_id *id;
	struct pair pair;
	uint8_t memory[8];

	(void)state;
	pair_open(&pair, ROCE, RDMA_PS_TCP);
#define FAILS_ONCE(call, name, number)                                                             \
	do {                                                                                       \
		fault = add(POLYCM_SIM_FAULT(.action = POLYCM_SIM_FAIL, .message = (name),         \
					     .nth = 1, .error = (number)));                        \
		assert_errno(call, (number) ? (number) : ENOMEM);                                  \
		assert_hits(fault, 1);                                                             \
	} while (0)
	FAILS_ONCE(rdma_create_id(pair.client_channel, &id, NULL, RDMA_PS_TCP), "create_id", 0);
	assert_int_equal(rdma_create_id(pair.client_channel, &id, NULL, RDMA_PS_TCP), 0);
	FAILS_ONCE(rdma_bind_addr(id, step_sa(CLIENT_ADDRESS, 0)), "bind", EADDRINUSE);
	assert_int_equal(rdma_bind_addr(id, step_sa(CLIENT_ADDRESS, 0)), 0);
	FAILS_ONCE(rdma_listen(id, 1), "listen", 0);
	assert_int_equal(rdma_listen(id, 1), 0);
	assert_int_equal(rdma_destroy_id(id), 0);
	FAILS_ONCE(rdma_resolve_addr(pair.client, NULL, step_sa(SERVER_ADDRESS, SERVER_PORT), 10),
		   "resolve_addr", ENETUNREACH);
	assert_int_equal(rdma_resolve_addr(pair.client, NULL, step_sa(SERVER_ADDRESS, SERVER_PORT),
					   2000), 0);
	pair_take(pair.client_channel, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
	FAILS_ONCE(rdma_resolve_route(pair.client, 10), "resolve_route", 0);
	assert_int_equal(rdma_resolve_route(pair.client, 2000), 0);
	pair_take(pair.client_channel, RDMA_CM_EVENT_ROUTE_RESOLVED, 0);
	fault = add(POLYCM_SIM_FAULT(.action = POLYCM_SIM_FAIL, .message = "create_cq", .nth = 1));
	assert_null(ibv_create_cq(pair.client->verbs, 4, NULL, NULL, 0));
	assert_int_equal(errno, ENOMEM);
	assert_hits(fault, 1);
	fault = add(POLYCM_SIM_FAULT(.action = POLYCM_SIM_FAIL, .message = "reg_mr", .nth = 1));
	assert_null(ibv_reg_mr(pair.client->pd, memory, sizeof(memory), 0));
	assert_int_equal(errno, ENOMEM);
	assert_hits(fault, 1);
	pair.client_cq = ibv_create_cq(pair.client->verbs, 16, NULL, NULL, 0);
	assert_non_null(pair.client_cq);
	attr.send_cq = attr.recv_cq = pair.client_cq;
	FAILS_ONCE(rdma_create_qp(pair.client, NULL, &attr), "create_qp", 0);
	assert_int_equal(rdma_create_qp(pair.client, NULL, &attr), 0);
	FAILS_ONCE(rdma_connect(pair.client, &param), "connect", EINVAL);
	rdma_ack_cm_event(pair_request(&pair, &param));
	finish_connecting(&pair);
	FAILS_ONCE(rdma_disconnect(pair.client), "disconnect", EIO);
	pair_close(&pair);
}

/* As in the kernel, an accept that fails rejects the peer. */
static void an_accept_fails(void **state)
{
	struct rdma_conn_param param = pair_param(NULL, 0);
	struct pair pair;

	(void)state;
	step_request(&pair, ROCE, RDMA_PS_TCP, true);
	add(POLYCM_SIM_FAULT(.action = POLYCM_SIM_FAIL, .message = "accept"));
	assert_errno(rdma_accept(pair.server, &param), ENOMEM);
	pair_take(pair.client_channel, RDMA_CM_EVENT_REJECTED, 28);
	pair_close(&pair);
}

static void a_neighbour_answers_late_or_never(void **state)
{
	struct sockaddr *to = step_sa(SERVER_ADDRESS, SERVER_PORT);
	struct polycm_sim_fault *late;
	struct pair pair;
	uint64_t before;

	(void)state;
	for (enum transport transport = ROCE; transport < NUM_TRANSPORTS; transport++) {
		pair_open(&pair, transport, RDMA_PS_TCP);
		late = add(POLYCM_SIM_FAULT(.action = POLYCM_SIM_ANSWER_LATE,
					    .message = "neighbour", .delay_ns = SECONDS(1)));
		before = pair_now();
		assert_int_equal(rdma_resolve_addr(pair.client, NULL, to, 2000), 0);
		pair_take(pair.client_channel, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
		assert_in_range(pair_now() - before, SECONDS(1), SECONDS(1.001));
		assert_hits(late, 1);
		pair_close(&pair);

		pair_open(&pair, transport, RDMA_PS_TCP);
		add(POLYCM_SIM_FAULT(.action = POLYCM_SIM_ANSWER_NEVER, .from = pair.client_node));
		before = pair_now();
		assert_int_equal(rdma_resolve_addr(pair.client, NULL, to, 2000), 0);
		pair_take(pair.client_channel, RDMA_CM_EVENT_ADDR_ERROR, -ETIMEDOUT);
		assert_elapsed(before, SECONDS(2));
		pair_close(&pair);
	}
}

static void the_sa_answers_late_or_never(void **state)
{
	struct pair pair;
	uint64_t before;

	(void)state;
	pair_open(&pair, IB, RDMA_PS_TCP);
	assert_int_equal(rdma_resolve_addr(pair.client, NULL,
					   step_sa(SERVER_ADDRESS, SERVER_PORT), 2000), 0);
	pair_take(pair.client_channel, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
	add(POLYCM_SIM_FAULT(.action = POLYCM_SIM_ANSWER_NEVER, .message = "path", .times = 1));
	before = pair_now();
	assert_int_equal(rdma_resolve_route(pair.client, 2000), 0);
	pair_take(pair.client_channel, RDMA_CM_EVENT_ROUTE_ERROR, -ETIMEDOUT);
	assert_elapsed(before, SECONDS(2.2));	/* eleven waits of a tenth */

	add(POLYCM_SIM_FAULT(.action = POLYCM_SIM_ANSWER_LATE, .message = "path",
			     .delay_ns = SECONDS(2)));
	before = pair_now();
	assert_int_equal(rdma_resolve_route(pair.client, 2000), 0);
	pair_take(pair.client_channel, RDMA_CM_EVENT_ROUTE_RESOLVED, 0);
	assert_in_range(pair_now() - before, SECONDS(2), SECONDS(2.001));
	pair_close(&pair);
}

/* ------------------------------------------------------------------------
 * Nodes, ports, devices.
 */

/* The server's device goes when the request arrives; its ids are told, the client waits. */
static void a_device_removed_while_connecting(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(madders); i++) {
		struct rdma_conn_param param = pair_param(NULL, 0);
		struct polycm_sim_fault *fault;
		struct pair pair;
		uint64_t before;

		pair_open_resolved(&pair, madders[i]);
		fault = add(POLYCM_SIM_FAULT(.action = POLYCM_SIM_REMOVE_DEVICE, .message = "REQ",
					     .nth = 1, .on = pair.server_node));
		before = pair_now();
		assert_int_equal(rdma_connect(pair.client, &param), 0);
		pair_take(pair.server_channel, RDMA_CM_EVENT_DEVICE_REMOVAL, 0);
		pair_take(pair.client_channel, RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT);
		assert_elapsed(before, 16 * request_wait[madders[i]]);
		assert_hits(fault, 1);
		pair_close(&pair);
	}
}

static void a_crashed_server(void **state)
{
	struct rdma_conn_param param = pair_param(NULL, 0);
	struct pair pair;
	uint64_t before;

	(void)state;
	pair_open_resolved(&pair, ROCE);
	add(POLYCM_SIM_FAULT(.action = POLYCM_SIM_CRASH, .on = pair.server_node));
	before = pair_now();
	assert_int_equal(rdma_connect(pair.client, &param), 0);
	pair_take(pair.client_channel, RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT);
	assert_elapsed(before, 16 * request_wait[ROCE]);
	pair_close(&pair);
}

/* Down when the first request comes, up before the second. */
static void a_port_down_for_a_while(void **state)
{
	struct rdma_conn_param param = pair_param(NULL, 0);
	struct polycm_sim_fault *fault;
	struct pair pair;
	uint64_t before;

	(void)state;
	pair_open_resolved(&pair, ROCE);
	fault = add(POLYCM_SIM_FAULT(.action = POLYCM_SIM_PORT_DOWN, .on = pair.server_node,
				     .from_ns = pair_now(), .delay_ns = SECONDS(3)));
	before = pair_now();
	rdma_ack_cm_event(pair_request(&pair, &param));
	assert_elapsed(before, request_wait[ROCE] + ONE_WAY);
	finish_connecting(&pair);
	assert_hits(fault, 1);
	pair_close(&pair);
}

/* What comes meanwhile is dropped without a word; the third request finds room. */
static void a_full_backlog(void **state)
{
	struct rdma_conn_param param = pair_param(NULL, 0);
	struct polycm_sim_fault *fault;
	struct pair pair;
	uint64_t before;

	(void)state;
	pair_open_resolved(&pair, ROCE);
	fault = add(POLYCM_SIM_FAULT(.action = POLYCM_SIM_FULL_BACKLOG, .on = pair.server_node,
				     .from_ns = pair_now(), .delay_ns = SECONDS(5)));
	before = pair_now();
	rdma_ack_cm_event(pair_request(&pair, &param));
	assert_elapsed(before, 2 * request_wait[ROCE] + ONE_WAY);
	finish_connecting(&pair);
	assert_hits(fault, 1);
	pair_close(&pair);
}

/* ------------------------------------------------------------------------
 * Bad input.
 */

static void handles_of_what_is_gone(void **state)
{
	struct polycm_sim_fault *fault, *old;
	unsigned int hits;
	struct pair pair;

	(void)state;
	pair_open(&pair, ROCE, RDMA_PS_TCP);
	fault = add(POLYCM_SIM_FAULT(.action = POLYCM_SIM_LOSE, .message = "any"));
	assert_int_equal(polycm_sim_fault_remove(fault), 0);
	assert_errno(polycm_sim_fault_remove(fault), ENOENT);
	assert_errno(polycm_sim_fault_hits(fault, &hits), ENOENT);
	old = add(POLYCM_SIM_FAULT(.action = POLYCM_SIM_LOSE, .message = "any"));
	pair_close(&pair);

	pair_open(&pair, ROCE, RDMA_PS_TCP);
	assert_errno(polycm_sim_fault_hits(old, &hits), ENOENT);
	assert_errno(polycm_sim_fault_remove(old), ENOENT);
	/* Its rule is gone with it. */
	pair_connect(&pair);
	assert_errno(polycm_sim_fault_remove(NULL), EINVAL);
	assert_errno(polycm_sim_fault_add(NULL, &fault), EINVAL);
	assert_errno(polycm_sim_fault_add(POLYCM_SIM_FAULT(.action = POLYCM_SIM_REJECT,
							   .message = "RTU", .reason = 8), NULL),
		     EINVAL);
	pair_close(&pair);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_request_lost_once),
		cmocka_unit_test(all_requests_lost),
		cmocka_unit_test(a_reply_lost_once),
		cmocka_unit_test(an_rtu_lost_once),
		cmocka_unit_test(doubled_and_late),
		cmocka_unit_test(a_broken_request),
		cmocka_unit_test(a_request_lost_on_iwarp),
		cmocka_unit_test(silence_on_iwarp),
		cmocka_unit_test(data_on_a_bad_link),
		cmocka_unit_test(rejected_by_rule),
		cmocka_unit_test(a_reply_rejected_by_rule),
		cmocka_unit_test(rejected_by_rule_on_iwarp),
		cmocka_unit_test(calls_fail),
		cmocka_unit_test(an_accept_fails),
		cmocka_unit_test(a_neighbour_answers_late_or_never),
		cmocka_unit_test(the_sa_answers_late_or_never),
		cmocka_unit_test(a_device_removed_while_connecting),
		cmocka_unit_test(a_crashed_server),
		cmocka_unit_test(a_port_down_for_a_while),
		cmocka_unit_test(a_full_backlog),
		cmocka_unit_test(handles_of_what_is_gone),
	};

	return cmocka_run_group_tests(tests, pair_group_setup, NULL);
}
