/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_retries.c - receivers that are not ready and peers that are gone, on
 * InfiniBand and RoCE: how often a request is repeated, how long that takes,
 * and that the connection manager hears nothing of it.
 */
#include <errno.h>
#include <string.h>

#include "transfer.h"

#define RNR_WAIT 655360000u	/* RNR NAK timer code 0 */
#define MESSAGE 100u

/* There and back, for a message of MESSAGE bytes. */
static uint64_t round_trip(enum transport transport)
{
	struct transfer x;
	uint64_t before;

	transfer_open(&x, transport, NULL);
	transfer_recv(&x.server, 1, 0, MESSAGE);
	before = pair_now();
	transfer_send(&x.client, 1, 0, MESSAGE);
	transfer_sent(&x.client, 1, IBV_WC_SUCCESS);
	before = pair_now() - before;
	transfer_close(&x);
	assert_true(before > 0);
	return before;
}

/* The server's rnr_retry_count, given with its accept, is the client's. */
static void open_with_rnr_retry(struct transfer *x, enum transport transport, uint8_t count)
{
	struct rdma_conn_param param = pair_param(NULL, 0);

	param.rnr_retry_count = count;
	transfer_open(x, transport, &param);
}

static void a_receiver_that_is_never_ready(void **state)
{
	(void)state;
	for (enum transport t = ROCE; t <= IB; t++) {
		uint64_t trip = round_trip(t);

		for (uint8_t count = 0; count <= 6; count++) {
			struct transfer x;
			uint64_t before;

			open_with_rnr_retry(&x, t, count);
			before = pair_now();
			transfer_send(&x.client, 1, 0, MESSAGE);
			transfer_send(&x.client, 2, 0, MESSAGE);
			transfer_sent(&x.client, 1, IBV_WC_RNR_RETRY_EXC_ERR);
			assert_elapsed(before, (count + 1) * trip + (uint64_t)count * RNR_WAIT);
			transfer_sent(&x.client, 2, IBV_WC_WR_FLUSH_ERR);
			assert_int_equal(step_qp_state(x.client.id), IBV_QPS_ERR);
			assert_int_equal(step_qp_state(x.server.id), IBV_QPS_RTS);
			transfer_none(&x.server);
			/* No event tells of it. */
			assert_int_equal(polycm_sim_advance(SECONDS(100)), 0);
			pair_none(x.pair.client_channel);
			pair_none(x.pair.server_channel);
			transfer_close(&x);
		}
	}
}

static void a_receiver_that_is_ready_late(void **state)
{
	(void)state;
	for (enum transport t = ROCE; t <= IB; t++) {
		uint64_t trip = round_trip(t);

		/* After so many repetitions, with that many allowed. */
		for (uint8_t count = 1; count <= 6; count++) {
			struct transfer x;
			uint64_t before;

			open_with_rnr_retry(&x, t, count);
			transfer_fill(&x.client, 0, MESSAGE, count);
			before = pair_now();
			transfer_send(&x.client, 1, 0, MESSAGE);
			assert_int_equal(polycm_sim_advance(count * (uint64_t)RNR_WAIT - 1000000), 0);
			transfer_recv(&x.server, 1, 0, MESSAGE);
			transfer_sent(&x.client, 1, IBV_WC_SUCCESS);
			assert_elapsed(before, (count + 1) * trip + (uint64_t)count * RNR_WAIT);
			transfer_received(&x.server, 1, IBV_WC_SUCCESS);
			transfer_check(&x.server, 0, MESSAGE, count);
			transfer_close(&x);
		}
	}
}

/* In units of 10 us, by the code of the timer (IBTA vol. 1, table of RNR NAK timer values). */
static const uint16_t rnr_waits[32] = {
	0, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024, 1536,
	2048, 3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768, 49152,
};

/* The connection manager always sets code 0; a program may set another. */
static void every_rnr_timer(void **state)
{
	struct transfer x;
	uint64_t trip;

	(void)state;
	trip = round_trip(ROCE);
	for (uint8_t code = 0; code < 32; code++) {
		struct ibv_qp_attr attr = { .min_rnr_timer = code };
		uint64_t before, wait = code ? rnr_waits[code] * UINT64_C(10000) : RNR_WAIT;

		open_with_rnr_retry(&x, ROCE, 1);
		assert_int_equal(ibv_modify_qp(x.server.id->qp, &attr, IBV_QP_MIN_RNR_TIMER), 0);
		before = pair_now();
		transfer_send(&x.client, 1, 0, MESSAGE);
		transfer_sent(&x.client, 1, IBV_WC_RNR_RETRY_EXC_ERR);
		assert_elapsed(before, 2 * trip + wait);
		transfer_close(&x);
	}
}

/* 7 is for ever, and what lies above is lowered to it. */
static void seven_is_for_ever(void **state)
{
	static const uint8_t counts[] = { 7, 8, 255 };

	(void)state;
	for (enum transport t = ROCE; t <= IB; t++) {
		for (size_t i = 0; i < ARRAY_LEN(counts); i++) {
			struct transfer x;

			open_with_rnr_retry(&x, t, counts[i]);
			transfer_send(&x.client, 1, 0, MESSAGE);
			assert_int_equal(polycm_sim_advance(SECONDS(3600)), 0);
			transfer_none(&x.client);
			transfer_recv(&x.server, 1, 0, MESSAGE);
			transfer_sent(&x.client, 1, IBV_WC_SUCCESS);
			transfer_received(&x.server, 1, IBV_WC_SUCCESS);
			transfer_close(&x);
		}
	}
}

/* A wait in between does not use up what a later message may need. */
static void success_starts_the_count_afresh(void **state)
{
	(void)state;
	for (enum transport t = ROCE; t <= IB; t++) {
		struct transfer x;

		open_with_rnr_retry(&x, t, 2);
		for (uint64_t i = 0; i < 3; i++) {
			transfer_send(&x.client, i, 0, MESSAGE);
			assert_int_equal(polycm_sim_advance(2 * (uint64_t)RNR_WAIT - 1000000), 0);
			transfer_recv(&x.server, i, 0, MESSAGE);
			transfer_sent(&x.client, i, IBV_WC_SUCCESS);
			transfer_received(&x.server, i, IBV_WC_SUCCESS);
		}
		transfer_close(&x);
	}
}

/* The client's rnr_retry_count programs the server's queue pair. */
static void each_side_sets_the_others_count(void **state)
{
	(void)state;
	for (enum transport t = ROCE; t <= IB; t++) {
		struct rdma_conn_param param = pair_param(NULL, 0);
		struct ibv_qp_init_attr init;
		struct ibv_qp_attr attr;
		struct pair pair;

		pair_open_resolved(&pair, t);
		param.rnr_retry_count = 1;
		rdma_ack_cm_event(pair_request(&pair, &param));
		pair_server_qp(&pair);
		param.rnr_retry_count = 4;
		assert_int_equal(rdma_accept(pair.server, &param), 0);
		pair_take(pair.client_channel, RDMA_CM_EVENT_ESTABLISHED, 0);
		assert_int_equal(ibv_query_qp(pair.client->qp, &attr, IBV_QP_RNR_RETRY, &init), 0);
		assert_int_equal(attr.rnr_retry, 4);
		assert_int_equal(ibv_query_qp(pair.server->qp, &attr, IBV_QP_RNR_RETRY, &init), 0);
		assert_int_equal(attr.rnr_retry, 1);
		pair_close(&pair);
	}
}

/* A write with immediate data needs a receive, too; one without does not. */
static void writes_and_receives(void **state)
{
	(void)state;
	for (enum transport t = ROCE; t <= IB; t++) {
		struct transfer x;

		open_with_rnr_retry(&x, t, 0);
		assert_int_equal(transfer_post(&x.client, 1, IBV_WR_RDMA_WRITE, 0, 8, &x.server, 0), 0);
		transfer_sent(&x.client, 1, IBV_WC_SUCCESS);
		assert_int_equal(transfer_post(&x.client, 2, IBV_WR_RDMA_WRITE_WITH_IMM, 0, 8,
					       &x.server, 0), 0);
		transfer_sent(&x.client, 2, IBV_WC_RNR_RETRY_EXC_ERR);
		transfer_close(&x);
	}
}

/* --- A peer that is gone. --- */

static const struct gone_case {
	enum transport transport;
	uint8_t retry_count;
	uint8_t timeout;	/* exponent of the local ACK time-out */
} gone[] = {
	{ ROCE, 0, 17 },
	{ ROCE, 1, 17 },
	{ ROCE, 5, 17 },
	{ ROCE, 7, 17 },	/* 7 is finite here */
	{ IB, 0, 19 },
	{ IB, 5, 19 },
	{ IB, 7, 19 },
};

static void a_peer_that_does_not_answer(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(gone); i++) {
		struct rdma_conn_param param = pair_param(NULL, 0);
		const struct gone_case *c = &gone[i];
		struct transfer x;
		uint64_t before;

		print_message("%s, retry count %u\n", transport_name[c->transport], c->retry_count);
		param.retry_count = c->retry_count;
		transfer_open(&x, c->transport, &param);
		/* Without a word to the client's side. */
		rdma_destroy_qp(x.server.id);
		before = pair_now();
		transfer_send(&x.client, 1, 0, MESSAGE);
		transfer_send(&x.client, 2, 0, MESSAGE);
		transfer_sent(&x.client, 1, IBV_WC_RETRY_EXC_ERR);
		assert_elapsed(before, (c->retry_count + 1u) * (UINT64_C(4096) << c->timeout));
		transfer_sent(&x.client, 2, IBV_WC_WR_FLUSH_ERR);
		assert_int_equal(step_qp_state(x.client.id), IBV_QPS_ERR);
		assert_int_equal(polycm_sim_advance(SECONDS(100)), 0);
		pair_none(x.pair.client_channel);
		pair_none(x.pair.server_channel);
		transfer_close(&x);
	}
}

/* ACK_TIMEOUT 0: wait for ever. */
static void no_time_out_at_all(void **state)
{
	struct rdma_conn_param param = pair_param(NULL, 0);
	struct ibv_qp_attr attr = { .timeout = 0 };
	struct transfer x;
	struct ibv_wc wc;

	(void)state;
	transfer_open(&x, ROCE, &param);
	assert_int_equal(ibv_modify_qp(x.client.id->qp, &attr, IBV_QP_TIMEOUT), EINVAL);
	attr.qp_state = IBV_QPS_SQD;
	assert_int_equal(ibv_modify_qp(x.client.id->qp, &attr, IBV_QP_STATE), 0);
	assert_int_equal(ibv_modify_qp(x.client.id->qp, &attr, IBV_QP_STATE | IBV_QP_TIMEOUT), 0);
	attr.qp_state = IBV_QPS_RTS;
	assert_int_equal(ibv_modify_qp(x.client.id->qp, &attr, IBV_QP_STATE), 0);
	rdma_destroy_qp(x.server.id);
	transfer_send(&x.client, 1, 0, MESSAGE);
	assert_errno(rdma_get_send_comp(x.client.id, &wc), EDEADLK);
	transfer_close(&x);
}

/* On iWARP the stream ends with the peer's queue pair, and the program is told. */
static void iwarp_notices(void **state)
{
	struct transfer x;

	(void)state;
	transfer_open(&x, IWARP, NULL);
	transfer_recv(&x.client, 1, 0, MESSAGE);
	rdma_destroy_qp(x.server.id);
	pair_take(x.pair.client_channel, RDMA_CM_EVENT_DISCONNECTED, 0);
	transfer_received(&x.client, 1, IBV_WC_WR_FLUSH_ERR);
	transfer_send(&x.client, 1, 0, MESSAGE);
	transfer_sent(&x.client, 1, IBV_WC_WR_FLUSH_ERR);
	pair_take(x.pair.server_channel, RDMA_CM_EVENT_DISCONNECTED, 0);
	transfer_close(&x);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_receiver_that_is_never_ready),
		cmocka_unit_test(a_receiver_that_is_ready_late),
		cmocka_unit_test(every_rnr_timer),
		cmocka_unit_test(seven_is_for_ever),
		cmocka_unit_test(success_starts_the_count_afresh),
		cmocka_unit_test(each_side_sets_the_others_count),
		cmocka_unit_test(writes_and_receives),
		cmocka_unit_test(a_peer_that_does_not_answer),
		cmocka_unit_test(no_time_out_at_all),
		cmocka_unit_test(iwarp_notices),
	};

	return cmocka_run_group_tests(tests, pair_group_setup, NULL);
}
