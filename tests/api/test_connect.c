/* SPDX-License-Identifier: BSD-2-Clause */
/* test_connect.c - what rdma_connect(3) promises, on each transport. */
#include <errno.h>
#include <string.h>

#include "pair.h"

static bool has_ud(enum transport transport)
{
	return transport != IWARP;
}

/* Where an id needs a QP to connect at all (iWARP), give it one. */
static void qp_if_needed(struct pair *pair)
{
	if (pair->transport == IWARP)
		pair_client_qp(pair);
}

/* --- Private data: how much, and what the server's event shows. --- */

static const struct length_case {
	enum transport transport;
	enum rdma_port_space ps;
	size_t len;
	int error;		/* of rdma_connect(), 0: it goes through */
	size_t reported;
} lengths[] = {
	{ ROCE, RDMA_PS_TCP, 0, 0, 56 },
	{ ROCE, RDMA_PS_TCP, 1, 0, 56 },
	{ ROCE, RDMA_PS_TCP, 56, 0, 56 },
	{ ROCE, RDMA_PS_TCP, 57, EINVAL, 0 },
	{ ROCE, RDMA_PS_TCP, 219, EINVAL, 0 },
	{ ROCE, RDMA_PS_TCP, 220, EINVAL, 0 },
	{ ROCE, RDMA_PS_TCP, 255, EINVAL, 0 },
	{ ROCE, RDMA_PS_UDP, 0, 0, 180 },
	{ ROCE, RDMA_PS_UDP, 180, 0, 180 },
	{ ROCE, RDMA_PS_UDP, 181, EINVAL, 0 },
	{ ROCE, RDMA_PS_UDP, 255, EINVAL, 0 },
	{ IB, RDMA_PS_TCP, 0, 0, 56 },
	{ IB, RDMA_PS_TCP, 56, 0, 56 },
	{ IB, RDMA_PS_TCP, 57, EINVAL, 0 },
	{ IB, RDMA_PS_TCP, 255, EINVAL, 0 },
	{ IB, RDMA_PS_UDP, 180, 0, 180 },
	{ IB, RDMA_PS_UDP, 181, EINVAL, 0 },
	{ IWARP, RDMA_PS_TCP, 0, 0, 0 },
	{ IWARP, RDMA_PS_TCP, 1, 0, 1 },
	{ IWARP, RDMA_PS_TCP, 57, 0, 57 },
	{ IWARP, RDMA_PS_TCP, 251, 0, 251 },
};

static void check_request_data(const struct rdma_cm_event *event, const struct length_case *c)
{
	/* conn and ud begin alike. */
	const uint8_t *data = event->param.conn.private_data;

	assert_int_equal(event->param.conn.private_data_len, c->reported);
	if (!c->reported) {
		assert_null(data);
		return;
	}
	assert_memory_equal(data, pair_data, c->len);
	for (size_t i = c->len; i < c->reported; i++)
		assert_int_equal(data[i], 0);
}

static void carries_private_data_up_to_the_limit(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(lengths); i++) {
		const struct length_case *c = &lengths[i];
		struct rdma_conn_param param = pair_param(pair_data, c->len);
		struct rdma_cm_event *event;
		struct pair pair;

		print_message("%s, port space %#x, %zu bytes\n", transport_name[c->transport],
			      c->ps, c->len);
		pair_open(&pair, c->transport, c->ps);
		pair_resolve(&pair);
		qp_if_needed(&pair);
		if (c->error) {
			/* Refused without harm: the same id connects with less. */
			assert_errno(rdma_connect(pair.client, &param), c->error);
			pair_none(pair.server_channel);
			pair_none(pair.client_channel);
			param.private_data_len = 0;
			rdma_ack_cm_event(pair_request(&pair, &param));
		} else {
			event = pair_request(&pair, &param);
			check_request_data(event, c);
			rdma_ack_cm_event(event);
		}
		pair_close(&pair);
	}
}

/* As siw: what is too long for iWARP goes out, but as no request. */
static void loses_iwarp_requests_that_are_too_long(void **state)
{
	(void)state;
	for (size_t len = 252; len <= UINT8_MAX; len++) {
		struct rdma_conn_param param = pair_param(pair_data, len);
		struct pair pair;

		pair_open(&pair, IWARP, RDMA_PS_TCP);
		pair_resolve(&pair);
		qp_if_needed(&pair);
		assert_int_equal(rdma_connect(pair.client, &param), 0);
		pair_take(pair.client_channel, RDMA_CM_EVENT_REJECTED, -ECONNRESET);
		pair_none(pair.server_channel);
		pair_none(pair.client_channel);
		pair_close(&pair);
	}
}

static void copies_private_data_when_called(void **state)
{
	(void)state;
	for (enum transport t = 0; t < NUM_TRANSPORTS; t++) {
		uint8_t data[8] = "polycm!";
		struct rdma_conn_param param = pair_param(data, sizeof(data));
		struct rdma_cm_event *event;
		struct pair pair;

		pair_open(&pair, t, RDMA_PS_TCP);
		pair_resolve(&pair);
		qp_if_needed(&pair);
		assert_int_equal(rdma_connect(pair.client, &param), 0);
		memset(data, 0xee, sizeof(data));
		event = pair_expect(pair.server_channel, RDMA_CM_EVENT_CONNECT_REQUEST, 0);
		pair.server = event->id;
		assert_memory_equal(event->param.conn.private_data, "polycm!", 8);
		rdma_ack_cm_event(event);
		pair_close(&pair);
	}
}

/* --- Depths. --- */

static void device_depths(const struct rdma_cm_id *id, uint8_t *ret_res, uint8_t *ret_depth)
{
	struct ibv_device_attr attr;

	assert_int_equal(ibv_query_device(id->verbs, &attr), 0);
	*ret_res = (uint8_t)attr.max_qp_rd_atom;
	*ret_depth = (uint8_t)attr.max_qp_init_rd_atom;
}

static void checks_depths_against_the_device(void **state)
{
	(void)state;
	for (enum transport t = 0; t < NUM_TRANSPORTS; t++) {
		struct rdma_conn_param param = pair_param(NULL, 0);
		struct rdma_cm_event *event;
		uint8_t resources, depth;
		struct pair pair;

		print_message("%s\n", transport_name[t]);
		pair_open(&pair, t, RDMA_PS_TCP);
		pair_resolve(&pair);
		qp_if_needed(&pair);
		device_depths(pair.client, &resources, &depth);

		param.responder_resources = (uint8_t)(resources + 1);
		assert_errno(rdma_connect(pair.client, &param), EINVAL);
		param.responder_resources = resources;
		param.initiator_depth = (uint8_t)(depth + 1);
		assert_errno(rdma_connect(pair.client, &param), EINVAL);

		/* The named maxima stand for the device's; each side reads them as its own. */
		param.responder_resources = RDMA_MAX_RESP_RES;
		param.initiator_depth = RDMA_MAX_INIT_DEPTH;
		event = pair_request(&pair, &param);
		assert_int_equal(event->param.conn.responder_resources, depth);
		assert_int_equal(event->param.conn.initiator_depth, resources);
		rdma_ack_cm_event(event);
		pair_close(&pair);
	}
}

static void shows_depths_from_the_reader_s_side(void **state)
{
	(void)state;
	for (enum transport t = 0; t < NUM_TRANSPORTS; t++) {
		struct rdma_conn_param param = pair_param(NULL, 0);
		struct rdma_cm_event *event;
		struct pair pair;

		pair_open(&pair, t, RDMA_PS_TCP);
		pair_resolve(&pair);
		qp_if_needed(&pair);
		param.responder_resources = 4;
		param.initiator_depth = 2;
		event = pair_request(&pair, &param);
		assert_int_equal(event->param.conn.responder_resources, 2);
		assert_int_equal(event->param.conn.initiator_depth, 4);
		rdma_ack_cm_event(event);
		pair_close(&pair);
	}
}

/* --- Retry counts and flow control. --- */

static const struct count_case {
	uint8_t given, shown;
} counts[] = {
	{ 0, 0 }, { 1, 1 }, { 6, 6 }, { 7, 7 }, { 8, 7 }, { 255, 7 },
};

static void lowers_retry_counts_to_three_bits(void **state)
{
	(void)state;
	for (enum transport t = 0; t < NUM_TRANSPORTS; t++) {
		for (size_t i = 0; i < ARRAY_LEN(counts); i++) {
			struct rdma_conn_param param = pair_param(NULL, 0);
			uint8_t shown = t == IWARP ? 0 : counts[i].shown;
			struct rdma_cm_event *event;
			struct pair pair;

			pair_open(&pair, t, RDMA_PS_TCP);
			pair_resolve(&pair);
			qp_if_needed(&pair);
			param.retry_count = counts[i].given;
			param.rnr_retry_count = counts[i].given;
			event = pair_request(&pair, &param);
			assert_int_equal(event->param.conn.retry_count, shown);
			assert_int_equal(event->param.conn.rnr_retry_count, shown);
			rdma_ack_cm_event(event);
			pair_close(&pair);
		}
	}
}

static void hands_flow_control_to_the_peer(void **state)
{
	static const struct count_case flags[] = { { 0, 0 }, { 1, 1 }, { 2, 0 }, { 3, 1 } };

	(void)state;
	for (enum transport t = 0; t < NUM_TRANSPORTS; t++) {
		for (size_t i = 0; i < ARRAY_LEN(flags); i++) {
			struct rdma_conn_param param = pair_param(NULL, 0);
			struct rdma_cm_event *event;
			struct pair pair;

			pair_open(&pair, t, RDMA_PS_TCP);
			pair_resolve(&pair);
			qp_if_needed(&pair);
			param.flow_control = flags[i].given;
			event = pair_request(&pair, &param);
			assert_int_equal(event->param.conn.flow_control,
					 t == IWARP ? 0 : flags[i].shown);
			rdma_ack_cm_event(event);
			pair_close(&pair);
		}
	}
}

/* --- The queue pair. --- */

static void uses_srq_and_qp_num_without_a_qp(void **state)
{
	(void)state;
	for (enum transport t = ROCE; t <= IB; t++) {
		struct rdma_conn_param param = pair_param(NULL, 0);
		struct rdma_cm_event *event;
		struct pair pair;

		pair_open(&pair, t, RDMA_PS_TCP);
		pair_resolve(&pair);
		param.srq = 1;
		param.qp_num = 0xff00beef;	/* the field has 24 bits */
		event = pair_request(&pair, &param);
		assert_int_equal(event->param.conn.srq, 1);
		assert_int_equal(event->param.conn.qp_num, 0x00beef);
		rdma_ack_cm_event(event);
		pair_close(&pair);
	}
}

static void ignores_srq_and_qp_num_with_a_qp(void **state)
{
	(void)state;
	for (enum transport t = 0; t < NUM_TRANSPORTS; t++) {
		struct rdma_conn_param param = pair_param(NULL, 0);
		struct rdma_cm_event *event;
		struct pair pair;

		pair_open_resolved(&pair, t);
		param.srq = 1;
		param.qp_num = 0xbeef;
		event = pair_request(&pair, &param);
		assert_int_equal(event->param.conn.srq, 0);
		assert_int_equal(event->param.conn.qp_num,
				 t == IWARP ? 0 : pair.client->qp->qp_num);
		rdma_ack_cm_event(event);
		pair_close(&pair);
	}
}

static void iwarp_connects_queue_pairs_only(void **state)
{
	struct rdma_conn_param param = pair_param(NULL, 0);
	struct pair pair;

	(void)state;
	pair_open(&pair, IWARP, RDMA_PS_TCP);
	pair_resolve(&pair);
	assert_errno(rdma_connect(pair.client, &param), EINVAL);
	pair_close(&pair);
}

static void needs_parameters_or_a_qp(void **state)
{
	(void)state;
	for (enum transport t = 0; t < NUM_TRANSPORTS; t++) {
		struct rdma_cm_event *event;
		struct pair pair;

		pair_open(&pair, t, RDMA_PS_TCP);
		pair_resolve(&pair);
		assert_errno(rdma_connect(pair.client, NULL), EINVAL);
		pair_client_qp(&pair);
		event = pair_request(&pair, NULL);
		if (t != IWARP) {
			assert_int_equal(event->param.conn.retry_count, 7);
			assert_int_equal(event->param.conn.rnr_retry_count, 7);
		}
		rdma_ack_cm_event(event);
		pair_close(&pair);
	}
}

/* --- States. --- */

static void needs_a_resolved_route(void **state)
{
	(void)state;
	for (enum transport t = 0; t < NUM_TRANSPORTS; t++) {
		struct rdma_conn_param param = pair_param(NULL, 0);
		struct pair pair;

		pair_open(&pair, t, RDMA_PS_TCP);
		assert_errno(rdma_connect(pair.client, &param), EINVAL);
		assert_errno(rdma_connect(pair.listener, &param), EINVAL);
		assert_errno(rdma_connect(NULL, &param), EINVAL);
		pair_resolve(&pair);
		qp_if_needed(&pair);
		rdma_ack_cm_event(pair_request(&pair, &param));
		assert_errno(rdma_connect(pair.client, &param), EINVAL);
		assert_errno(rdma_connect(pair.server, &param), EINVAL);
		pair_close(&pair);
	}
}

static void iwarp_has_no_datagrams(void **state)
{
	struct rdma_conn_param param = pair_param(NULL, 0);
	struct pair pair;

	(void)state;
	assert_false(has_ud(IWARP));
	pair_open(&pair, IWARP, RDMA_PS_UDP);
	pair_resolve(&pair);
	assert_errno(rdma_connect(pair.client, &param), EINVAL);
	pair_close(&pair);
}

/* --- Nobody there. --- */

static void nobody_listens(void **state)
{
	(void)state;
	for (enum transport t = 0; t < NUM_TRANSPORTS; t++) {
		struct rdma_conn_param param = pair_param(NULL, 0);
		struct pair pair;

		print_message("%s\n", transport_name[t]);
		pair_open(&pair, t, RDMA_PS_TCP);
		pair_resolve(&pair);
		qp_if_needed(&pair);
		assert_int_equal(rdma_destroy_id(pair.listener), 0);
		pair.listener = NULL;
		if (t == IWARP) {
			assert_errno(rdma_connect(pair.client, &param), ECONNREFUSED);
			pair_none(pair.client_channel);
		} else {
			assert_int_equal(rdma_connect(pair.client, &param), 0);
			pair_take(pair.client_channel, RDMA_CM_EVENT_REJECTED, 8);
		}
		pair_close(&pair);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(carries_private_data_up_to_the_limit),
		cmocka_unit_test(loses_iwarp_requests_that_are_too_long),
		cmocka_unit_test(copies_private_data_when_called),
		cmocka_unit_test(checks_depths_against_the_device),
		cmocka_unit_test(shows_depths_from_the_reader_s_side),
		cmocka_unit_test(lowers_retry_counts_to_three_bits),
		cmocka_unit_test(hands_flow_control_to_the_peer),
		cmocka_unit_test(uses_srq_and_qp_num_without_a_qp),
		cmocka_unit_test(ignores_srq_and_qp_num_with_a_qp),
		cmocka_unit_test(iwarp_connects_queue_pairs_only),
		cmocka_unit_test(needs_parameters_or_a_qp),
		cmocka_unit_test(needs_a_resolved_route),
		cmocka_unit_test(iwarp_has_no_datagrams),
		cmocka_unit_test(nobody_listens),
	};

	return cmocka_run_group_tests(tests, pair_group_setup, NULL);
}
