/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_surprises_connect.c - what surprises about connecting, on InfiniBand
 * and RoCE: one test each, numbered as in docs/surprises.md.  The rest is in
 * test_surprises_end.c and test_surprises_elsewhere.c.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "steps.h"

#define MOMENT 1000000u		/* 1 ms: any message has arrived */
#define LONG SECONDS(2000)

static const struct {
	double request, reply, mra;	/* T_req, T_rep, T_mra in s */
} waits[] = {
	[ROCE] = { 4.608, 4.096, 66.048 },
	[IB] = { 6.144, 4.096, 67.584 },
};

static void lose_all(const char *message, struct polycm_sim_fault **ret_fault)
{
	assert_int_equal(polycm_sim_fault_add(POLYCM_SIM_FAULT(.action = POLYCM_SIM_LOSE,
							       .message = message), ret_fault), 0);
}

static unsigned int hits_of(struct polycm_sim_fault *fault)
{
	unsigned int hits;

	assert_int_equal(polycm_sim_fault_hits(fault, &hits), 0);
	return hits;
}

/* The client's rdma_get_cm_event() sends the RTU, not the reply's arrival. */
static void surprise_01_the_program_sends_the_rtu(void **state)
{
	(void)state;
	for (enum transport t = ROCE; t <= IB; t++) {
		struct rdma_conn_param param = pair_param(NULL, 0);
		uint64_t before, one_way;
		struct pair pair;

		step_request(&pair, t, RDMA_PS_TCP, true);
		assert_int_equal(rdma_accept(pair.server, &param), 0);
		assert_int_equal(polycm_sim_advance(SECONDS(900)), 0);
		pair_none(pair.server_channel);
		pair_take(pair.client_channel, RDMA_CM_EVENT_ESTABLISHED, 0);
		pair_take(pair.server_channel, RDMA_CM_EVENT_ESTABLISHED, 0);
		pair_close(&pair);

		/* Never fetched: the server's reply times out, stretched by the client's MRA. */
		pair_open_resolved(&pair, t);
		before = pair_now();
		rdma_ack_cm_event(pair_request(&pair, &param));
		one_way = pair_now() - before;
		pair_server_qp(&pair);
		before = pair_now();
		assert_int_equal(rdma_accept(pair.server, &param), 0);
		pair_take(pair.server_channel, RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT);
		assert_elapsed(before, SECONDS(waits[t].reply) + 15 * SECONDS(waits[t].mra) +
			       2 * one_way);
		pair_close(&pair);
	}
}

/* The accept that is refused has rejected the client; the other two have done nothing. */
static void surprise_07_overlong_accept_rejects_the_peer(void **state)
{
	(void)state;
	for (enum transport t = ROCE; t <= IB; t++) {
		struct rdma_conn_param fits = pair_param(NULL, 0), overlong;
		struct pair pair;

		pair_open(&pair, t, RDMA_PS_TCP);
		pair_resolve(&pair);
		overlong = pair_param(pair_data, 57);
		assert_errno(rdma_connect(pair.client, &overlong), EINVAL);
		rdma_ack_cm_event(pair_request(&pair, &fits));
		assert_errno(rdma_reject(pair.server, pair_data, 149), EINVAL);
		assert_int_equal(polycm_sim_advance(MOMENT), 0);
		pair_none(pair.client_channel);

		overlong = pair_param(pair_data, 197);
		assert_errno(rdma_accept(pair.server, &overlong), EINVAL);
		pair_take(pair.client_channel, RDMA_CM_EVENT_REJECTED, 28);
		assert_errno(rdma_accept(pair.server, &fits), EINVAL);
		pair_close(&pair);
	}
}

static uint8_t next_length(struct rdma_event_channel *channel, enum rdma_cm_event_type type,
			   int status, bool ud)
{
	struct rdma_cm_event *event = pair_expect(channel, type, status);
	uint8_t len = ud ? event->param.ud.private_data_len : event->param.conn.private_data_len;

	rdma_ack_cm_event(event);
	return len;
}

/* Nobody sends any data, and the events tell of so many bytes of it. */
static void surprise_08_lengths_are_constants(void **state)
{
	struct rdma_conn_param param = pair_param(NULL, 0);
	struct rdma_cm_event *event;
	struct pair pair;

	(void)state;
	for (enum transport t = ROCE; t < NUM_TRANSPORTS; t++) {
		bool exact = t == IWARP;

		pair_open_resolved(&pair, t);
		event = pair_request(&pair, &param);
		assert_int_equal(event->param.conn.private_data_len, exact ? 0 : 56);
		rdma_ack_cm_event(event);
		pair_server_qp(&pair);
		assert_int_equal(rdma_accept(pair.server, &param), 0);
		assert_int_equal(next_length(pair.client_channel, RDMA_CM_EVENT_ESTABLISHED, 0,
					     false), exact ? 0 : 196);
		assert_int_equal(next_length(pair.server_channel, RDMA_CM_EVENT_ESTABLISHED, 0,
					     false), 0);
		assert_int_equal(rdma_disconnect(pair.client), 0);
		assert_int_equal(next_length(pair.server_channel, RDMA_CM_EVENT_DISCONNECTED, 0,
					     false), 0);
		pair_close(&pair);

		step_request(&pair, t, RDMA_PS_TCP, false);
		assert_int_equal(rdma_reject(pair.server, NULL, 0), 0);
		assert_int_equal(next_length(pair.client_channel, RDMA_CM_EVENT_REJECTED,
					     exact ? -ECONNRESET : 28, false), exact ? 0 : 148);
		pair_close(&pair);
		if (exact)
			continue;

		pair_open(&pair, t, RDMA_PS_UDP);
		pair_resolve(&pair);
		event = pair_request(&pair, &param);
		assert_int_equal(event->param.ud.private_data_len, 180);
		rdma_ack_cm_event(event);
		assert_int_equal(rdma_accept(pair.server, &param), 0);
		assert_int_equal(next_length(pair.client_channel, RDMA_CM_EVENT_ESTABLISHED, 0,
					     true), 136);
		pair_close(&pair);
	}
}

/* Depths are told from the reader's side, and the answer's count, not the question's. */
static void surprise_09_depths_swap_and_the_reply_counts(void **state)
{
	(void)state;
	for (enum transport t = ROCE; t < NUM_TRANSPORTS; t++) {
		struct rdma_conn_param param = pair_param(NULL, 0);
		struct rdma_cm_event *event;
		struct ibv_qp_init_attr init;
		struct ibv_qp_attr attr;
		struct pair pair;

		pair_open_resolved(&pair, t);
		param.responder_resources = 7;
		param.initiator_depth = 5;
		event = pair_request(&pair, &param);
		assert_int_equal(event->param.conn.initiator_depth, 7);
		assert_int_equal(event->param.conn.responder_resources, 5);
		rdma_ack_cm_event(event);
		pair_server_qp(&pair);
		param.responder_resources = t == IWARP ? 6 : 2;
		param.initiator_depth = 1;
		assert_int_equal(rdma_accept(pair.server, &param), 0);
		event = pair_expect(pair.client_channel, RDMA_CM_EVENT_ESTABLISHED, 0);
		if (t == IWARP) {	/* and siw shows its own in the opposite members */
			assert_int_equal(event->param.conn.initiator_depth, 1);
			assert_int_equal(event->param.conn.responder_resources, 6);
		} else {
			assert_int_equal(event->param.conn.initiator_depth, 2);
			assert_int_equal(event->param.conn.responder_resources, 1);
			assert_int_equal(ibv_query_qp(pair.client->qp, &attr,
						      IBV_QP_MAX_QP_RD_ATOMIC |
						      IBV_QP_MAX_DEST_RD_ATOMIC, &init), 0);
			assert_int_equal(attr.max_rd_atomic, 2);
			assert_int_equal(attr.max_dest_rd_atomic, 1);
		}
		rdma_ack_cm_event(event);
		pair_close(&pair);
	}
}

static void check_counts(struct rdma_cm_id *id, uint8_t retry, uint8_t rnr)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	assert_int_equal(ibv_query_qp(id->qp, &attr, IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY, &init),
			 0);
	assert_int_equal(attr.retry_cnt, retry);
	assert_int_equal(attr.rnr_retry, rnr);
}

static void surprise_10_whose_retry_counts(void **state)
{
	(void)state;
	for (enum transport t = ROCE; t <= IB; t++) {
		struct rdma_conn_param param = pair_param(NULL, 0);
		struct pair pair;

		pair_open_resolved(&pair, t);
		param.retry_count = 3;
		param.rnr_retry_count = 2;
		rdma_ack_cm_event(pair_request(&pair, &param));
		pair_server_qp(&pair);
		param.retry_count = 6;		/* ignored */
		param.rnr_retry_count = 200;	/* lowered, not cut to three bits */
		assert_int_equal(rdma_accept(pair.server, &param), 0);
		pair_take(pair.client_channel, RDMA_CM_EVENT_ESTABLISHED, 0);
		pair_take(pair.server_channel, RDMA_CM_EVENT_ESTABLISHED, 0);
		check_counts(pair.client, 3, 7);
		check_counts(pair.server, 3, 2);
		pair_close(&pair);
	}
}

/* Nobody for the service at all; somebody, but not for this address; somebody who is busy. */
static void surprise_11_three_shapes_of_refusal(void **state)
{
	(void)state;
	for (enum transport t = ROCE; t <= IB; t++) {
		struct rdma_conn_param param = pair_param(NULL, 0);
		struct polycm_sim_fault *full;
		uint64_t before;
		struct pair pair;

		pair_open(&pair, t, RDMA_PS_TCP);
		pair_resolve(&pair);
		assert_int_equal(rdma_destroy_id(pair.listener), 0);
		pair.listener = NULL;
		assert_int_equal(rdma_connect(pair.client, &param), 0);
		pair_take(pair.client_channel, RDMA_CM_EVENT_REJECTED, 8);
		pair_close(&pair);

		pair_open(&pair, t, RDMA_PS_TCP);
		assert_int_equal(polycm_sim_node_add_address(pair.server_node, "10.0.0.7/24"), 0);
		assert_int_equal(rdma_resolve_addr(pair.client, NULL,
						   step_sa("10.0.0.7", SERVER_PORT), 2000), 0);
		pair_take(pair.client_channel, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
		assert_int_equal(rdma_resolve_route(pair.client, 2000), 0);
		pair_take(pair.client_channel, RDMA_CM_EVENT_ROUTE_RESOLVED, 0);
		assert_int_equal(rdma_connect(pair.client, &param), 0);
		pair_take(pair.client_channel, RDMA_CM_EVENT_REJECTED, 28);
		pair_close(&pair);

		pair_open(&pair, t, RDMA_PS_TCP);
		pair_resolve(&pair);
		assert_int_equal(polycm_sim_fault_add(POLYCM_SIM_FAULT(
			.action = POLYCM_SIM_FULL_BACKLOG, .on = pair.server_node,
			.delay_ns = SECONDS(1)), &full), 0);
		before = pair_now();
		rdma_ack_cm_event(pair_request(&pair, &param));
		/* The first repetition found room. */
		assert_true(pair_now() - before >= SECONDS(waits[t].request));
		pair_none(pair.client_channel);
		pair_close(&pair);
	}
}

static struct rdma_cm_id *one_more_client(struct pair *pair)
{
	struct rdma_conn_param param = pair_param(NULL, 0);
	struct rdma_cm_id *id;

	assert_int_equal(rdma_create_id(pair->client_channel, &id, NULL, RDMA_PS_TCP), 0);
	assert_int_equal(rdma_resolve_addr(id, NULL, step_sa(SERVER_ADDRESS, SERVER_PORT), 2000),
			 0);
	pair_take(pair->client_channel, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
	assert_int_equal(rdma_resolve_route(id, 2000), 0);
	pair_take(pair->client_channel, RDMA_CM_EVENT_ROUTE_RESOLVED, 0);
	param.qp_num = 0x9999;
	assert_int_equal(rdma_connect(id, &param), 0);
	assert_int_equal(polycm_sim_advance(MOMENT), 0);
	return id;
}

static void surprise_12_the_backlog_is_of_unretrieved_requests(void **state)
{
	struct rdma_cm_event *first, *second;
	struct rdma_conn_param param = pair_param(NULL, 0);
	struct rdma_cm_id *other;
	struct pair pair;

	(void)state;
	pair_open(&pair, ROCE, RDMA_PS_TCP);
	assert_int_equal(rdma_destroy_id(pair.listener), 0);
	assert_int_equal(rdma_create_id(pair.server_channel, &pair.listener, NULL, RDMA_PS_TCP), 0);
	assert_int_equal(rdma_bind_addr(pair.listener, step_sa(SERVER_ADDRESS, SERVER_PORT)), 0);
	assert_int_equal(rdma_listen(pair.listener, 1), 0);
	pair_resolve(&pair);
	/* Retrieved, neither accepted nor acked: there is room for another. */
	first = pair_request(&pair, &param);
	other = one_more_client(&pair);
	second = pair_expect(pair.server_channel, RDMA_CM_EVENT_CONNECT_REQUEST, 0);
	assert_int_equal(rdma_destroy_id(second->id), 0);
	rdma_ack_cm_event(first);
	rdma_ack_cm_event(second);
	pair_take(pair.client_channel, RDMA_CM_EVENT_REJECTED, 28);
	assert_int_equal(rdma_destroy_id(other), 0);
	pair_close(&pair);
}

/* Dead: 16 waits.  Alive, but its program does not answer: the first repetition brings an MRA. */
static void surprise_13_a_stuck_server_takes_longer_than_a_dead_one(void **state)
{
	(void)state;
	for (enum transport t = ROCE; t <= IB; t++) {
		struct rdma_conn_param param = pair_param(NULL, 0);
		struct polycm_sim_fault *mra;
		uint64_t before, one_way;
		struct pair pair;

		pair_open(&pair, t, RDMA_PS_TCP);
		pair_resolve(&pair);
		assert_int_equal(polycm_sim_fault_add(POLYCM_SIM_FAULT(
			.action = POLYCM_SIM_CRASH, .on = pair.server_node), NULL), 0);
		assert_int_equal(polycm_sim_advance(MOMENT), 0);
		before = pair_now();
		assert_int_equal(rdma_connect(pair.client, &param), 0);
		pair_take(pair.client_channel, RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT);
		assert_elapsed(before, 16 * SECONDS(waits[t].request));
		pair_close(&pair);

		pair_open(&pair, t, RDMA_PS_TCP);
		pair_resolve(&pair);
		/* Late by a nanosecond: the rule is there to count. */
		assert_int_equal(polycm_sim_fault_add(POLYCM_SIM_FAULT(
			.action = POLYCM_SIM_DELAY, .message = "MRA", .delay_ns = 1), &mra), 0);
		before = pair_now();
		rdma_ack_cm_event(pair_request(&pair, &param));
		one_way = pair_now() - before;
		assert_int_equal(polycm_sim_advance(SECONDS(4)), 0);
		assert_int_equal(hits_of(mra), 0);
		assert_int_equal(polycm_sim_advance(SECONDS(3)), 0);
		assert_int_equal(hits_of(mra), 1);
		pair_take(pair.client_channel, RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT);
		assert_elapsed(before, SECONDS(waits[t].request) + 15 * SECONDS(waits[t].mra) +
			       2 * one_way + 1);
		pair_close(&pair);
	}
}

/* The server hears of the client's end only from its own rdma_accept(). */
static void surprise_14_a_pending_id_gets_no_events(void **state)
{
	(void)state;
	for (enum transport t = ROCE; t <= IB; t++) {
		struct rdma_conn_param param = pair_param(NULL, 0);
		struct pair pair;

		step_request(&pair, t, RDMA_PS_TCP, false);
		assert_int_equal(rdma_destroy_id(pair.client), 0);
		pair.client = NULL;
		assert_int_equal(polycm_sim_advance(LONG), 0);
		pair_none(pair.server_channel);
		assert_errno(rdma_accept(pair.server, &param), EINVAL);
		pair_close(&pair);
	}
}

static void surprise_16_establish_tells_only_the_peer(void **state)
{
	(void)state;
	for (enum transport t = ROCE; t < NUM_TRANSPORTS; t++) {
		struct rdma_conn_param param = pair_param(NULL, 0);
		struct pair pair;

		if (t != IWARP) {
			step_request(&pair, t, RDMA_PS_TCP, false);
			assert_int_equal(rdma_accept(pair.server, &param), 0);
			pair_take(pair.client_channel, RDMA_CM_EVENT_CONNECT_RESPONSE, 0);
			assert_int_equal(rdma_establish(pair.client), 0);
			pair_take(pair.server_channel, RDMA_CM_EVENT_ESTABLISHED, 0);
			assert_int_equal(polycm_sim_advance(LONG), 0);
			pair_none(pair.client_channel);
			pair_close(&pair);
		}
		/* At the wrong time it rejects; on iWARP there is no right one. */
		step_request(&pair, t, RDMA_PS_TCP, false);
		if (t == IWARP)
			rdma_destroy_qp(pair.server);
		assert_errno(rdma_establish(pair.server), EINVAL);
		pair_take(pair.client_channel, RDMA_CM_EVENT_REJECTED,
			  t == IWARP ? -ECONNRESET : 28);
		pair_close(&pair);
	}
}

static void surprise_17_what_may_be_tried_again(void **state)
{
	struct rdma_conn_param param = pair_param(NULL, 0), overlong = pair_param(pair_data, 57);
	struct polycm_sim_fault *fault;
	struct pair pair;

	(void)state;
	/* ADDR_ERROR, ROUTE_ERROR and an errno of rdma_connect(): the same id goes on. */
	pair_open(&pair, IB, RDMA_PS_TCP);
	assert_int_equal(rdma_resolve_addr(pair.client, NULL, step_sa("10.0.0.99", 1), 100), 0);
	pair_take(pair.client_channel, RDMA_CM_EVENT_ADDR_ERROR, -ETIMEDOUT);
	assert_int_equal(rdma_resolve_addr(pair.client, NULL, step_sa(SERVER_ADDRESS, SERVER_PORT),
					   100), 0);
	pair_take(pair.client_channel, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
	assert_int_equal(polycm_sim_fault_add(POLYCM_SIM_FAULT(
		.action = POLYCM_SIM_ANSWER_NEVER, .message = "path"), &fault), 0);
	assert_int_equal(rdma_resolve_route(pair.client, 100), 0);
	pair_take(pair.client_channel, RDMA_CM_EVENT_ROUTE_ERROR, -ETIMEDOUT);
	assert_int_equal(polycm_sim_fault_remove(fault), 0);
	assert_int_equal(rdma_resolve_route(pair.client, 100), 0);
	pair_take(pair.client_channel, RDMA_CM_EVENT_ROUTE_RESOLVED, 0);
	assert_errno(rdma_connect(pair.client, &overlong), EINVAL);

	/* UNREACHABLE and REJECTED: not any more. */
	lose_all("REQ", &fault);
	assert_int_equal(rdma_connect(pair.client, &param), 0);
	pair_take(pair.client_channel, RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT);
	assert_int_equal(polycm_sim_fault_remove(fault), 0);
	assert_errno(rdma_connect(pair.client, &param), EINVAL);
	pair_close(&pair);

	step_request(&pair, ROCE, RDMA_PS_TCP, false);
	assert_int_equal(rdma_reject(pair.server, NULL, 0), 0);
	pair_take(pair.client_channel, RDMA_CM_EVENT_REJECTED, 28);
	assert_errno(rdma_connect(pair.client, &param), EINVAL);
	assert_errno(rdma_resolve_addr(pair.client, NULL, step_sa(SERVER_ADDRESS, SERVER_PORT), 100),
		     EINVAL);
	pair_close(&pair);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(surprise_01_the_program_sends_the_rtu),
		cmocka_unit_test(surprise_07_overlong_accept_rejects_the_peer),
		cmocka_unit_test(surprise_08_lengths_are_constants),
		cmocka_unit_test(surprise_09_depths_swap_and_the_reply_counts),
		cmocka_unit_test(surprise_10_whose_retry_counts),
		cmocka_unit_test(surprise_11_three_shapes_of_refusal),
		cmocka_unit_test(surprise_12_the_backlog_is_of_unretrieved_requests),
		cmocka_unit_test(surprise_13_a_stuck_server_takes_longer_than_a_dead_one),
		cmocka_unit_test(surprise_14_a_pending_id_gets_no_events),
		cmocka_unit_test(surprise_16_establish_tells_only_the_peer),
		cmocka_unit_test(surprise_17_what_may_be_tried_again),
	};

	return cmocka_run_group_tests(tests, pair_group_setup, NULL);
}
