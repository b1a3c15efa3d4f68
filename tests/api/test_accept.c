/* SPDX-License-Identifier: BSD-2-Clause */
/* test_accept.c - what rdma_accept(3) promises, on each transport. */
#include <errno.h>
#include <string.h>

#include "pair.h"

/* The pair up to an acked CONNECT_REQUEST, with QPs at both ends or at none. */
static void request(struct pair *pair, enum transport transport, enum rdma_port_space ps, bool qps)
{
	struct rdma_conn_param param = pair_param(NULL, 0);

	pair_open(pair, transport, ps);
	pair_resolve(pair);
	if (qps)
		pair_client_qp(pair);
	rdma_ack_cm_event(pair_request(pair, &param));
	if (qps)
		pair_server_qp(pair);
}

static void is_not_for_listening_ids(void **state)
{
	(void)state;
	for (enum transport t = 0; t < NUM_TRANSPORTS; t++) {
		struct rdma_conn_param param = pair_param(NULL, 0);
		struct pair pair;

		pair_open(&pair, t, RDMA_PS_TCP);
		assert_errno(rdma_accept(pair.listener, &param), EINVAL);
		assert_errno(rdma_accept(pair.listener, NULL), EINVAL);
		assert_errno(rdma_accept(pair.client, &param), EINVAL);
		assert_errno(rdma_accept(NULL, &param), EINVAL);
		pair_close(&pair);
	}
}

/* --- Private data. --- */

static const struct length_case {
	enum transport transport;
	enum rdma_port_space ps;
	size_t len;
	int error;
	size_t reported;	/* at the client */
} lengths[] = {
	{ ROCE, RDMA_PS_TCP, 0, 0, 196 },
	{ ROCE, RDMA_PS_TCP, 196, 0, 196 },
	{ ROCE, RDMA_PS_TCP, 197, EINVAL, 0 },
	{ ROCE, RDMA_PS_TCP, 255, EINVAL, 0 },
	{ ROCE, RDMA_PS_UDP, 0, 0, 136 },
	{ ROCE, RDMA_PS_UDP, 136, 0, 136 },
	{ ROCE, RDMA_PS_UDP, 137, EINVAL, 0 },
	{ IB, RDMA_PS_TCP, 196, 0, 196 },
	{ IB, RDMA_PS_TCP, 197, EINVAL, 0 },
	{ IB, RDMA_PS_UDP, 136, 0, 136 },
	{ IB, RDMA_PS_UDP, 137, EINVAL, 0 },
	{ IWARP, RDMA_PS_TCP, 0, 0, 0 },
	{ IWARP, RDMA_PS_TCP, 3, 0, 3 },
	{ IWARP, RDMA_PS_TCP, 251, 0, 251 },
};

static void refused(struct pair *pair)
{
	/* The attempt is dead: the peer is told, the id is good for nothing more. */
	if (pair->ps == RDMA_PS_UDP)
		pair_take(pair->client_channel, RDMA_CM_EVENT_UNREACHABLE, 2);
	else
		pair_take(pair->client_channel, RDMA_CM_EVENT_REJECTED, 28);
}

static void carries_private_data_up_to_the_limit(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(lengths); i++) {
		const struct length_case *c = &lengths[i];
		struct rdma_conn_param param = pair_param(pair_data, c->len);
		struct rdma_cm_event *event;
		const uint8_t *data;
		struct pair pair;

		print_message("%s, port space %#x, %zu bytes\n", transport_name[c->transport],
			      c->ps, c->len);
		request(&pair, c->transport, c->ps, true);
		if (c->error) {
			assert_errno(rdma_accept(pair.server, &param), c->error);
			refused(&pair);
			pair_close(&pair);
			continue;
		}
		assert_int_equal(rdma_accept(pair.server, &param), 0);
		event = pair_expect(pair.client_channel, RDMA_CM_EVENT_ESTABLISHED, 0);
		data = event->param.conn.private_data;
		assert_int_equal(event->param.conn.private_data_len, c->reported);
		if (c->reported)
			assert_memory_equal(data, pair_data, c->len);
		else
			assert_null(data);
		for (size_t b = c->len; b < c->reported; b++)
			assert_int_equal(data[b], 0);
		rdma_ack_cm_event(event);
		pair_close(&pair);
	}
}

static void takes_the_events_own_parameters(void **state)
{
	(void)state;
	for (enum transport t = 0; t < NUM_TRANSPORTS; t++) {
		struct rdma_conn_param param = pair_param("abc", 3);
		struct rdma_cm_event *event;
		struct pair pair;

		pair_open_resolved(&pair, t);
		event = pair_request(&pair, &param);
		pair_server_qp(&pair);
		assert_int_equal(rdma_accept(pair.server, &event->param.conn), 0);
		rdma_ack_cm_event(event);
		event = pair_expect(pair.client_channel, RDMA_CM_EVENT_ESTABLISHED, 0);
		assert_memory_equal(event->param.conn.private_data, "abc", 3);
		rdma_ack_cm_event(event);
		pair_close(&pair);
	}
}

/* --- Depths. --- */

static void takes_null_for_the_requests_values(void **state)
{
	(void)state;
	for (enum transport t = 0; t < NUM_TRANSPORTS; t++) {
		struct ibv_qp_init_attr init;
		struct ibv_qp_attr attr;
		struct pair pair;

		print_message("%s\n", transport_name[t]);
		request(&pair, t, RDMA_PS_TCP, true);
		assert_int_equal(rdma_accept(pair.server, NULL), 0);
		pair_take(pair.client_channel, RDMA_CM_EVENT_ESTABLISHED, 0);
		pair_take(pair.server_channel, RDMA_CM_EVENT_ESTABLISHED, 0);
		if (t != IWARP) {
			/* The client asked for 4 and 3; the server reads them swapped. */
			assert_int_equal(ibv_query_qp(pair.server->qp, &attr,
						      IBV_QP_MAX_DEST_RD_ATOMIC |
						      IBV_QP_MAX_QP_RD_ATOMIC, &init), 0);
			assert_int_equal(attr.max_dest_rd_atomic, 3);
			assert_int_equal(attr.max_rd_atomic, 4);
		}
		pair_close(&pair);
	}
}

static void null_without_a_qp_is_refused(void **state)
{
	(void)state;
	for (enum transport t = ROCE; t <= IB; t++) {
		struct pair pair;

		request(&pair, t, RDMA_PS_TCP, false);
		assert_errno(rdma_accept(pair.server, NULL), EINVAL);
		pair_close(&pair);
	}
}

static void checks_depths_against_the_device(void **state)
{
	(void)state;
	for (enum transport t = 0; t < NUM_TRANSPORTS; t++) {
		struct rdma_conn_param param = pair_param(NULL, 0);
		struct ibv_device_attr device;
		struct pair pair;

		request(&pair, t, RDMA_PS_TCP, true);
		assert_int_equal(ibv_query_device(pair.server->verbs, &device), 0);
		param.responder_resources = (uint8_t)(device.max_qp_rd_atom + 1);
		assert_errno(rdma_accept(pair.server, &param), EINVAL);
		param.responder_resources = 1;
		param.initiator_depth = (uint8_t)(device.max_qp_init_rd_atom + 1);
		assert_errno(rdma_accept(pair.server, &param), EINVAL);

		/* Neither harmed the request. */
		param.initiator_depth = 1;
		assert_int_equal(rdma_accept(pair.server, &param), 0);
		pair_take(pair.client_channel, RDMA_CM_EVENT_ESTABLISHED, 0);
		pair_close(&pair);
	}
}

static void the_active_side_uses_what_the_reply_says(void **state)
{
	(void)state;
	for (enum transport t = ROCE; t <= IB; t++) {
		struct rdma_conn_param param = pair_param(NULL, 0);
		struct ibv_qp_init_attr init;
		struct rdma_cm_event *event;
		struct ibv_qp_attr attr;
		struct pair pair;

		request(&pair, t, RDMA_PS_TCP, true);
		param.responder_resources = 2;
		param.initiator_depth = 1;
		assert_int_equal(rdma_accept(pair.server, &param), 0);
		event = pair_expect(pair.client_channel, RDMA_CM_EVENT_ESTABLISHED, 0);
		assert_int_equal(event->param.conn.responder_resources, 1);
		assert_int_equal(event->param.conn.initiator_depth, 2);
		rdma_ack_cm_event(event);
		assert_int_equal(ibv_query_qp(pair.client->qp, &attr, IBV_QP_MAX_DEST_RD_ATOMIC |
					      IBV_QP_MAX_QP_RD_ATOMIC, &init), 0);
		assert_int_equal(attr.max_dest_rd_atomic, 1);
		assert_int_equal(attr.max_rd_atomic, 2);
		pair_close(&pair);
	}
}

static void iwarp_settles_depths_between_the_peers(void **state)
{
	struct rdma_conn_param param = pair_param(NULL, 0);
	struct rdma_cm_event *event;
	struct pair pair;

	(void)state;
	/* The client offers IRD 4 and ORD 3. */
	request(&pair, IWARP, RDMA_PS_TCP, true);
	param.responder_resources = 1;	/* raised to the peer's ORD, 3 */
	param.initiator_depth = 9;	/* lowered to the peer's IRD, 4 */
	assert_int_equal(rdma_accept(pair.server, &param), 0);
	pair_take(pair.server_channel, RDMA_CM_EVENT_ESTABLISHED, 0);
	event = pair_expect(pair.client_channel, RDMA_CM_EVENT_ESTABLISHED, 0);
	/* ESTABLISHED has them the other way round than InfiniBand: IRD, ORD. */
	assert_int_equal(event->param.conn.initiator_depth, 4);
	assert_int_equal(event->param.conn.responder_resources, 3);
	rdma_ack_cm_event(event);
	pair_close(&pair);
}

/* --- Timers and retries. --- */

static void programs_the_queue_pairs(void **state)
{
	(void)state;
	for (enum transport t = ROCE; t <= IB; t++) {
		/* Packet lifetime 16 (RoCE) or 18 (IB) and the peer's ACK delay. */
		uint8_t life = t == ROCE ? 16 : 18, want;
		struct rdma_conn_param param = pair_param(NULL, 0);
		struct ibv_device_attr device;
		struct ibv_qp_init_attr init;
		struct ibv_qp_attr attr;
		struct pair pair;

		print_message("%s\n", transport_name[t]);
		request(&pair, t, RDMA_PS_TCP, true);
		param.retry_count = 1;		/* ignored when accepting */
		param.rnr_retry_count = 2;	/* programs the client's QP */
		assert_int_equal(rdma_accept(pair.server, &param), 0);
		pair_take(pair.client_channel, RDMA_CM_EVENT_ESTABLISHED, 0);
		pair_take(pair.server_channel, RDMA_CM_EVENT_ESTABLISHED, 0);

		assert_int_equal(ibv_query_device(pair.client->verbs, &device), 0);
		assert_true(device.local_ca_ack_delay > 0 && device.local_ca_ack_delay < life);
		want = (uint8_t)(life + 1);
		if (want >= device.local_ca_ack_delay)
			want = (uint8_t)(want + (device.local_ca_ack_delay >= want - 1));

		assert_int_equal(ibv_query_qp(pair.client->qp, &attr, IBV_QP_TIMEOUT, &init), 0);
		assert_int_equal(attr.qp_state, IBV_QPS_RTS);
		assert_int_equal(attr.timeout, want);
		assert_int_equal(attr.retry_cnt, 5);
		assert_int_equal(attr.rnr_retry, 2);
		assert_int_equal(attr.min_rnr_timer, 0);
		assert_int_equal(attr.dest_qp_num, pair.server->qp->qp_num);

		assert_int_equal(ibv_query_qp(pair.server->qp, &attr, IBV_QP_TIMEOUT, &init), 0);
		assert_int_equal(attr.qp_state, IBV_QPS_RTS);
		assert_int_equal(attr.timeout, want);
		assert_int_equal(attr.retry_cnt, 5);	/* the client's retry_count */
		assert_int_equal(attr.rnr_retry, 6);	/* the client's rnr_retry_count */
		assert_int_equal(attr.min_rnr_timer, 0);
		assert_int_equal(attr.dest_qp_num, pair.client->qp->qp_num);
		pair_close(&pair);
	}
}

/* --- When. --- */

static void accepts_once(void **state)
{
	(void)state;
	for (enum transport t = 0; t < NUM_TRANSPORTS; t++) {
		struct rdma_conn_param param = pair_param(NULL, 0);
		struct pair pair;

		request(&pair, t, RDMA_PS_TCP, true);
		assert_int_equal(rdma_accept(pair.server, &param), 0);
		assert_errno(rdma_accept(pair.server, &param), EINVAL);
		/* The connection itself is none the worse. */
		pair_take(pair.client_channel, RDMA_CM_EVENT_ESTABLISHED, 0);
		pair_close(&pair);
	}
}

static void fails_when_the_client_has_gone(void **state)
{
	(void)state;
	for (enum transport t = 0; t < NUM_TRANSPORTS; t++) {
		struct rdma_conn_param param = pair_param(NULL, 0);
		struct pair pair;

		print_message("%s\n", transport_name[t]);
		request(&pair, t, RDMA_PS_TCP, true);
		rdma_destroy_qp(pair.client);
		assert_int_equal(rdma_destroy_id(pair.client), 0);
		pair.client = NULL;
		assert_int_equal(polycm_sim_advance(1000000), 0);
		/* Nothing tells the program before it accepts. */
		pair_none(pair.server_channel);
		assert_errno(rdma_accept(pair.server, &param), t == IWARP ? ECONNRESET : EINVAL);
		pair_close(&pair);
	}
}

static void the_order_of_established(void **state)
{
	(void)state;
	for (enum transport t = 0; t < NUM_TRANSPORTS; t++) {
		struct rdma_conn_param param = pair_param(NULL, 0);
		struct pair pair;

		request(&pair, t, RDMA_PS_TCP, true);
		assert_int_equal(rdma_accept(pair.server, &param), 0);
		if (t == IWARP) {
			/* Queued before rdma_accept() returns. */
			pair_take(pair.server_channel, RDMA_CM_EVENT_ESTABLISHED, 0);
		} else {
			/* The RTU goes out when the client's program takes its event. */
			assert_int_equal(polycm_sim_advance(1000000), 0);
			pair_none(pair.server_channel);
		}
		pair_take(pair.client_channel, RDMA_CM_EVENT_ESTABLISHED, 0);
		if (t != IWARP)
			pair_take(pair.server_channel, RDMA_CM_EVENT_ESTABLISHED, 0);
		pair_close(&pair);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(is_not_for_listening_ids),
		cmocka_unit_test(carries_private_data_up_to_the_limit),
		cmocka_unit_test(takes_the_events_own_parameters),
		cmocka_unit_test(takes_null_for_the_requests_values),
		cmocka_unit_test(null_without_a_qp_is_refused),
		cmocka_unit_test(checks_depths_against_the_device),
		cmocka_unit_test(the_active_side_uses_what_the_reply_says),
		cmocka_unit_test(iwarp_settles_depths_between_the_peers),
		cmocka_unit_test(programs_the_queue_pairs),
		cmocka_unit_test(accepts_once),
		cmocka_unit_test(fails_when_the_client_has_gone),
		cmocka_unit_test(the_order_of_established),
	};

	return cmocka_run_group_tests(tests, pair_group_setup, NULL);
}
