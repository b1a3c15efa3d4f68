/* SPDX-License-Identifier: BSD-2-Clause */
/* test_establish.c - what rdma_establish(3) promises. */
#include <errno.h>
#include <string.h>

#include "pair.h"

/* A client without a QP up to CONNECT_RESPONSE. */
static void respond(struct pair *pair, enum transport transport)
{
	struct rdma_conn_param param = pair_param(NULL, 0);

	pair_open(pair, transport, RDMA_PS_TCP);
	pair_resolve(pair);
	rdma_ack_cm_event(pair_request(pair, &param));
	param = pair_param("hello", 5);
	param.qp_num = 0x4321;
	assert_int_equal(rdma_accept(pair->server, &param), 0);
}

static void completes_a_connection_without_a_qp(void **state)
{
	(void)state;
	for (enum transport t = ROCE; t <= IB; t++) {
		struct rdma_cm_event *event;
		struct pair pair;

		respond(&pair, t);
		event = pair_expect(pair.client_channel, RDMA_CM_EVENT_CONNECT_RESPONSE, 0);
		assert_int_equal(event->param.conn.qp_num, 0x4321);
		assert_int_equal(event->param.conn.private_data_len, 196);
		assert_memory_equal(event->param.conn.private_data, "hello", 5);
		rdma_ack_cm_event(event);
		assert_int_equal(polycm_sim_advance(1000000), 0);
		pair_none(pair.server_channel);

		assert_int_equal(rdma_establish(pair.client), 0);
		event = pair_expect(pair.server_channel, RDMA_CM_EVENT_ESTABLISHED, 0);
		assert_int_equal(event->param.conn.private_data_len, 0);
		assert_null(event->param.conn.private_data);
		rdma_ack_cm_event(event);
		pair_none(pair.client_channel);
		pair_close(&pair);
	}
}

static void is_an_error_with_a_qp(void **state)
{
	(void)state;
	for (enum transport t = 0; t < NUM_TRANSPORTS; t++) {
		struct pair pair;

		pair_open(&pair, t, RDMA_PS_TCP);
		pair_connect(&pair);
		assert_errno(rdma_establish(pair.client), EINVAL);
		assert_errno(rdma_establish(pair.server), EINVAL);
		assert_errno(rdma_establish(NULL), EINVAL);
		pair_none(pair.client_channel);
		pair_none(pair.server_channel);
		pair_close(&pair);
	}
}

static void is_an_error_before_there_is_a_connection(void **state)
{
	(void)state;
	for (enum transport t = 0; t < NUM_TRANSPORTS; t++) {
		struct pair pair;

		pair_open(&pair, t, RDMA_PS_TCP);
		assert_errno(rdma_establish(pair.client), EINVAL);
		assert_errno(rdma_establish(pair.listener), EINVAL);
		pair_resolve(&pair);
		assert_errno(rdma_establish(pair.client), EINVAL);
		pair_close(&pair);
	}
}

/* On an id that waits to be accepted it is not only refused: the request is rejected. */
static void rejects_a_request_it_is_called_on(void **state)
{
	(void)state;
	for (enum transport t = 0; t < NUM_TRANSPORTS; t++) {
		struct rdma_conn_param param = pair_param(NULL, 0);
		struct pair pair;

		pair_open(&pair, t, RDMA_PS_TCP);
		pair_resolve(&pair);
		if (t == IWARP)
			pair_client_qp(&pair);
		rdma_ack_cm_event(pair_request(&pair, &param));
		assert_errno(rdma_establish(pair.server), EINVAL);
		pair_take(pair.client_channel, RDMA_CM_EVENT_REJECTED, t == IWARP ? -ECONNRESET : 28);
		pair_close(&pair);
	}
}

static void works_once(void **state)
{
	(void)state;
	for (enum transport t = ROCE; t <= IB; t++) {
		struct pair pair;

		respond(&pair, t);
		pair_take(pair.client_channel, RDMA_CM_EVENT_CONNECT_RESPONSE, 0);
		assert_int_equal(rdma_establish(pair.client), 0);
		pair_take(pair.server_channel, RDMA_CM_EVENT_ESTABLISHED, 0);
		assert_errno(rdma_establish(pair.client), EINVAL);
		pair_close(&pair);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(completes_a_connection_without_a_qp),
		cmocka_unit_test(is_an_error_with_a_qp),
		cmocka_unit_test(is_an_error_before_there_is_a_connection),
		cmocka_unit_test(rejects_a_request_it_is_called_on),
		cmocka_unit_test(works_once),
	};

	return cmocka_run_group_tests(tests, pair_group_setup, NULL);
}
