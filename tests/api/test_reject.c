/* SPDX-License-Identifier: BSD-2-Clause */
/* test_reject.c - what rdma_reject(3) promises, on each transport. */
#include <errno.h>
#include <string.h>

#include "pair.h"

static void request(struct pair *pair, enum transport transport, enum rdma_port_space ps)
{
	struct rdma_conn_param param = pair_param(NULL, 0);

	pair_open(pair, transport, ps);
	pair_resolve(pair);
	if (transport == IWARP)
		pair_client_qp(pair);
	rdma_ack_cm_event(pair_request(pair, &param));
}

static const struct length_case {
	enum transport transport;
	enum rdma_port_space ps;
	size_t len;
	int error;
	enum rdma_cm_event_type event;	/* at the client */
	int status;
	size_t reported;
} lengths[] = {
	{ ROCE, RDMA_PS_TCP, 0, 0, RDMA_CM_EVENT_REJECTED, 28, 148 },
	{ ROCE, RDMA_PS_TCP, 5, 0, RDMA_CM_EVENT_REJECTED, 28, 148 },
	{ ROCE, RDMA_PS_TCP, 148, 0, RDMA_CM_EVENT_REJECTED, 28, 148 },
	{ ROCE, RDMA_PS_TCP, 149, EINVAL, RDMA_CM_EVENT_REJECTED, 28, 148 },
	{ ROCE, RDMA_PS_TCP, 255, EINVAL, RDMA_CM_EVENT_REJECTED, 28, 148 },
	{ ROCE, RDMA_PS_UDP, 0, 0, RDMA_CM_EVENT_UNREACHABLE, 2, 136 },
	{ ROCE, RDMA_PS_UDP, 136, 0, RDMA_CM_EVENT_UNREACHABLE, 2, 136 },
	{ ROCE, RDMA_PS_UDP, 137, EINVAL, RDMA_CM_EVENT_UNREACHABLE, 2, 136 },
	{ IB, RDMA_PS_TCP, 148, 0, RDMA_CM_EVENT_REJECTED, 28, 148 },
	{ IB, RDMA_PS_TCP, 149, EINVAL, RDMA_CM_EVENT_REJECTED, 28, 148 },
	{ IB, RDMA_PS_UDP, 136, 0, RDMA_CM_EVENT_UNREACHABLE, 2, 136 },
	{ IB, RDMA_PS_UDP, 137, EINVAL, RDMA_CM_EVENT_UNREACHABLE, 2, 136 },
	{ IWARP, RDMA_PS_TCP, 0, 0, RDMA_CM_EVENT_REJECTED, -ECONNRESET, 0 },
	{ IWARP, RDMA_PS_TCP, 5, 0, RDMA_CM_EVENT_REJECTED, -ECONNRESET, 5 },
	{ IWARP, RDMA_PS_TCP, 251, 0, RDMA_CM_EVENT_REJECTED, -ECONNRESET, 251 },
};

static void passes_private_data_on(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(lengths); i++) {
		const struct length_case *c = &lengths[i];
		size_t len = c->len;
		struct rdma_cm_event *event;
		const uint8_t *data;
		struct pair pair;

		print_message("%s, port space %#x, %zu bytes\n", transport_name[c->transport],
			      c->ps, c->len);
		request(&pair, c->transport, c->ps);
		if (c->error) {
			/* Nothing is sent; a shorter one may follow. */
			assert_errno(rdma_reject(pair.server, pair_data, (uint8_t)len), c->error);
			len = 1;
		}
		assert_int_equal(rdma_reject(pair.server, pair_data, (uint8_t)len), 0);
		event = pair_expect(pair.client_channel, c->event, c->status);
		/* conn and ud begin alike. */
		data = event->param.conn.private_data;
		assert_int_equal(event->param.conn.private_data_len, c->reported);
		if (c->reported)
			assert_memory_equal(data, pair_data, len);
		else
			assert_null(data);
		for (size_t b = len; b < c->reported; b++)
			assert_int_equal(data[b], 0);
		rdma_ack_cm_event(event);
		pair_none(pair.server_channel);
		pair_close(&pair);
	}
}

static void the_rejected_id_is_finished(void **state)
{
	(void)state;
	for (enum transport t = 0; t < NUM_TRANSPORTS; t++) {
		struct rdma_conn_param param = pair_param(NULL, 0);
		struct pair pair;

		request(&pair, t, RDMA_PS_TCP);
		assert_int_equal(rdma_reject(pair.server, NULL, 0), 0);
		pair_take(pair.client_channel, RDMA_CM_EVENT_REJECTED, t == IWARP ? -ECONNRESET : 28);
		assert_errno(rdma_connect(pair.client, &param), EINVAL);
		pair_close(&pair);
	}
}

static void moves_the_clients_qp_to_error(void **state)
{
	(void)state;
	for (enum transport t = 0; t < NUM_TRANSPORTS; t++) {
		struct rdma_conn_param param = pair_param(NULL, 0);
		struct ibv_qp_init_attr init;
		struct ibv_qp_attr attr;
		struct pair pair;

		pair_open_resolved(&pair, t);
		rdma_ack_cm_event(pair_request(&pair, &param));
		assert_int_equal(rdma_reject(pair.server, NULL, 0), 0);
		pair_take(pair.client_channel, RDMA_CM_EVENT_REJECTED, t == IWARP ? -ECONNRESET : 28);
		assert_int_equal(ibv_query_qp(pair.client->qp, &attr, IBV_QP_STATE, &init), 0);
		assert_int_equal(attr.qp_state, IBV_QPS_ERR);
		pair_close(&pair);
	}
}

static void destroying_the_request_rejects_it(void **state)
{
	(void)state;
	for (enum transport t = 0; t < NUM_TRANSPORTS; t++) {
		struct pair pair;

		request(&pair, t, RDMA_PS_TCP);
		assert_int_equal(rdma_destroy_id(pair.server), 0);
		pair.server = NULL;
		pair_take(pair.client_channel, RDMA_CM_EVENT_REJECTED, t == IWARP ? -ECONNRESET : 28);
		pair_close(&pair);
	}
}

static void destroying_the_listener_rejects_what_nobody_took(void **state)
{
	(void)state;
	for (enum transport t = 0; t < NUM_TRANSPORTS; t++) {
		struct rdma_conn_param param = pair_param(NULL, 0);
		struct pair pair;

		pair_open_resolved(&pair, t);
		assert_int_equal(rdma_connect(pair.client, &param), 0);
		assert_int_equal(polycm_sim_advance(1000000), 0);
		assert_int_equal(rdma_destroy_id(pair.listener), 0);
		pair.listener = NULL;
		pair_take(pair.client_channel, RDMA_CM_EVENT_REJECTED, t == IWARP ? -ECONNRESET : 28);
		pair_close(&pair);
	}
}

static void rejects_for_ece(void **state)
{
	(void)state;
	for (enum transport t = ROCE; t <= IB; t++) {
		struct rdma_cm_event *event;
		struct pair pair;

		request(&pair, t, RDMA_PS_TCP);
		assert_int_equal(rdma_reject_ece(pair.server, "no", 2), 0);
		event = pair_expect(pair.client_channel, RDMA_CM_EVENT_REJECTED, 35);
		assert_memory_equal(event->param.conn.private_data, "no", 2);
		rdma_ack_cm_event(event);
		pair_close(&pair);
	}
}

static void is_only_for_requests(void **state)
{
	(void)state;
	for (enum transport t = 0; t < NUM_TRANSPORTS; t++) {
		struct pair pair;

		pair_open(&pair, t, RDMA_PS_TCP);
		assert_errno(rdma_reject(pair.client, NULL, 0), EINVAL);
		assert_errno(rdma_reject(pair.listener, NULL, 0), EINVAL);
		assert_errno(rdma_reject(NULL, NULL, 0), EINVAL);
		pair_close(&pair);
	}
}

/* The active side may turn down the response it got, as long as it has not established. */
static void the_active_side_rejects_a_response(void **state)
{
	(void)state;
	for (enum transport t = ROCE; t <= IB; t++) {
		struct rdma_conn_param param = pair_param(NULL, 0);
		struct pair pair;

		request(&pair, t, RDMA_PS_TCP);
		assert_int_equal(rdma_accept(pair.server, &param), 0);
		pair_take(pair.client_channel, RDMA_CM_EVENT_CONNECT_RESPONSE, 0);
		assert_int_equal(rdma_reject(pair.client, NULL, 0), 0);
		pair_take(pair.server_channel, RDMA_CM_EVENT_REJECTED, 28);
		pair_close(&pair);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(passes_private_data_on),
		cmocka_unit_test(the_rejected_id_is_finished),
		cmocka_unit_test(moves_the_clients_qp_to_error),
		cmocka_unit_test(destroying_the_request_rejects_it),
		cmocka_unit_test(destroying_the_listener_rejects_what_nobody_took),
		cmocka_unit_test(rejects_for_ece),
		cmocka_unit_test(is_only_for_requests),
		cmocka_unit_test(the_active_side_rejects_a_response),
	};

	return cmocka_run_group_tests(tests, pair_group_setup, NULL);
}
