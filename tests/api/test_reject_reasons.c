/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_reject_reasons.c - every reason that the specification has for a REJ, in
 * the place of an answer to a REQ and to a REP: what either program is told.
 */
#include <errno.h>
#include <string.h>

#include "steps.h"

#define LAST_REASON 35
#define TIMEOUT 4
#define STALE_CONN 10

static void reject(const char *message, uint16_t reason)
{
	assert_int_equal(polycm_sim_fault_add(POLYCM_SIM_FAULT(
		.action = POLYCM_SIM_REJECT, .message = message, .reason = reason, .nth = 1),
					      NULL), 0);
}

static void rejected(struct rdma_event_channel *channel, int reason)
{
	struct rdma_cm_event *event = pair_expect(channel, RDMA_CM_EVENT_REJECTED, reason);

	/* The length is the message's, whoever sent it and whatever is in it. */
	assert_int_equal(event->param.conn.private_data_len, 148);
	rdma_ack_cm_event(event);
}

/*
 * All but 4, "time-out": that comes from a peer that gave up, and names it by
 * its GUID.  It means nothing to who has not heard of it before.
 */
static uint16_t next_reason(uint16_t reason)
{
	return (uint16_t)(reason + 1 == TIMEOUT ? TIMEOUT + 1 : reason + 1);
}

static void a_request_is_rejected(void **state)
{
	(void)state;
	for (enum transport t = ROCE; t <= IB; t++)
		for (uint16_t reason = 1; reason <= LAST_REASON; reason = next_reason(reason)) {
			struct rdma_conn_param param = pair_param(NULL, 0);
			struct pair pair;

			pair_open_resolved(&pair, t);
			reject("REQ", reason);
			assert_int_equal(rdma_connect(pair.client, &param), 0);
			rejected(pair.client_channel, reason);
			assert_int_equal(step_qp_state(pair.client), IBV_QPS_ERR);
			/* That was the end of it, whatever the reason advises. */
			assert_int_equal(polycm_sim_advance(SECONDS(1000)), 0);
			pair_none(pair.client_channel);
			pair_none(pair.server_channel);
			assert_errno(rdma_connect(pair.client, &param), EINVAL);
			pair_close(&pair);
		}
}

/* The server is told; its client hears nothing, repeats its REQ, and is a new client. */
static void a_reply_is_rejected(void **state)
{
	(void)state;
	for (enum transport t = ROCE; t <= IB; t++)
		for (uint16_t reason = 1; reason <= LAST_REASON; reason = next_reason(reason)) {
			struct rdma_conn_param param = pair_param(NULL, 0);
			struct rdma_cm_event *event;
			struct pair pair;

			step_request(&pair, t, RDMA_PS_TCP, false);
			reject("REP", reason);
			assert_int_equal(rdma_accept(pair.server, &param), 0);
			rejected(pair.server_channel, reason);
			event = pair_expect(pair.server_channel, RDMA_CM_EVENT_CONNECT_REQUEST, 0);
			assert_int_equal(rdma_destroy_id(pair.server), 0);
			pair.server = event->id;
			rdma_ack_cm_event(event);
			assert_int_equal(rdma_accept(pair.server, &param), 0);
			pair_take(pair.client_channel, RDMA_CM_EVENT_CONNECT_RESPONSE, 0);
			assert_int_equal(rdma_establish(pair.client), 0);
			pair_take(pair.server_channel, RDMA_CM_EVENT_ESTABLISHED, 0);
			pair_close(&pair);
		}
}

static void a_time_out_that_means_nobody(void **state)
{
	struct rdma_conn_param param = pair_param(NULL, 0);
	struct pair pair;

	(void)state;
	pair_open(&pair, ROCE, RDMA_PS_TCP);
	pair_resolve(&pair);
	reject("REQ", TIMEOUT);
	reject("REP", TIMEOUT);
	/* Both are as good as lost, and what they answered is repeated. */
	rdma_ack_cm_event(pair_request(&pair, &param));
	assert_int_equal(rdma_accept(pair.server, &param), 0);
	pair_take(pair.client_channel, RDMA_CM_EVENT_CONNECT_RESPONSE, 0);
	assert_int_equal(rdma_establish(pair.client), 0);
	pair_take(pair.server_channel, RDMA_CM_EVENT_ESTABLISHED, 0);
	pair_close(&pair);
}

/* Those that Linux sends, brought about without a fault; 35 is rdma_reject_ece()'s, see test_ece. */
static void the_kernels_own(void **state)
{
	struct rdma_conn_param param = pair_param(NULL, 0);
	struct rdma_cm_id *second;
	struct pair pair;

	(void)state;
	for (enum transport t = ROCE; t <= IB; t++) {
		/* 8: no such service. */
		pair_open(&pair, t, RDMA_PS_TCP);
		pair_resolve(&pair);
		assert_int_equal(rdma_destroy_id(pair.listener), 0);
		pair.listener = NULL;
		assert_int_equal(rdma_connect(pair.client, &param), 0);
		rejected(pair.client_channel, 8);
		pair_close(&pair);

		/* 28: the program's. */
		step_request(&pair, t, RDMA_PS_TCP, false);
		assert_int_equal(rdma_reject(pair.server, NULL, 0), 0);
		rejected(pair.client_channel, 28);
		pair_close(&pair);

		/*
		 * 10: the QP number of a connection that the server still has.  The old
		 * connection is asked to end.
		 */
		step_request(&pair, t, RDMA_PS_TCP, false);
		assert_int_equal(rdma_accept(pair.server, &param), 0);
		pair_take(pair.client_channel, RDMA_CM_EVENT_CONNECT_RESPONSE, 0);
		assert_int_equal(rdma_establish(pair.client), 0);
		pair_take(pair.server_channel, RDMA_CM_EVENT_ESTABLISHED, 0);
		assert_int_equal(rdma_create_id(pair.client_channel, &second, NULL, RDMA_PS_TCP), 0);
		assert_int_equal(rdma_resolve_addr(second, NULL, step_sa(SERVER_ADDRESS, SERVER_PORT),
						   2000), 0);
		pair_take(pair.client_channel, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
		assert_int_equal(rdma_resolve_route(second, 2000), 0);
		pair_take(pair.client_channel, RDMA_CM_EVENT_ROUTE_RESOLVED, 0);
		assert_int_equal(rdma_connect(second, &param), 0);
		rejected(pair.client_channel, STALE_CONN);
		pair_take(pair.client_channel, RDMA_CM_EVENT_DISCONNECTED, 0);
		assert_int_equal(rdma_destroy_id(second), 0);
		pair_close(&pair);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_request_is_rejected),
		cmocka_unit_test(a_reply_is_rejected),
		cmocka_unit_test(a_time_out_that_means_nobody),
		cmocka_unit_test(the_kernels_own),
	};

	return cmocka_run_group_tests(tests, pair_group_setup, NULL);
}
