/* SPDX-License-Identifier: BSD-2-Clause */
/* test_timeouts.c - attempts that are not answered: how long they last, and what each side sees. */
#include <errno.h>
#include <string.h>

#include "steps.h"

#define LONG SECONDS(2000)

/*
 * A server whose program never answers.  Its connection manager answers the
 * first repetition with an MRA, which makes each later wait of the client's as
 * long as the MRA says, counted from its arrival: T_req + 15 * T_mra and the
 * way there and back.
 */
static const struct stuck_case {
	enum transport transport;
	double request;		/* T_req */
	double mra;		/* T_mra: 65.536 s and the local ACK time-out */
	double reply;		/* T_rep */
} stuck[] = {
	{ ROCE, 4.608, 66.048, 4.096 },
	{ IB, 6.144, 67.584, 4.096 },
};

static void a_server_that_never_answers(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(stuck); i++) {
		struct rdma_conn_param param = pair_param(NULL, 0);
		uint64_t before, one_way, whole;
		struct pair pair;

		print_message("%s\n", transport_name[stuck[i].transport]);
		pair_open_resolved(&pair, stuck[i].transport);
		before = pair_now();
		rdma_ack_cm_event(pair_request(&pair, &param));
		one_way = pair_now() - before;
		pair_take(pair.client_channel, RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT);
		whole = SECONDS(stuck[i].request) + 15 * SECONDS(stuck[i].mra);
		assert_elapsed(before, whole + 2 * one_way);
		/* That moves no queue pair, and the id is good for nothing more. */
		assert_int_equal(step_qp_state(pair.client), IBV_QPS_INIT);
		assert_errno(rdma_connect(pair.client, &param), EINVAL);

		/* The request was one, however often it came.  Nobody withdraws it. */
		pair_none(pair.server_channel);
		assert_int_equal(polycm_sim_advance(LONG), 0);
		pair_none(pair.client_channel);
		pair_none(pair.server_channel);
		pair_close(&pair);
	}
}

/* The same the other way round: the client's program never fetches its event. */
static void a_client_that_never_looks(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(stuck); i++) {
		struct rdma_conn_param param = pair_param(NULL, 0);
		uint64_t before, one_way, whole;
		struct pair pair;

		print_message("%s\n", transport_name[stuck[i].transport]);
		pair_open_resolved(&pair, stuck[i].transport);
		before = pair_now();
		rdma_ack_cm_event(pair_request(&pair, &param));
		one_way = pair_now() - before;
		pair_server_qp(&pair);
		before = pair_now();
		assert_int_equal(rdma_accept(pair.server, &param), 0);
		pair_take(pair.server_channel, RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT);
		whole = SECONDS(stuck[i].reply) + 15 * SECONDS(stuck[i].mra);
		assert_elapsed(before, whole + 2 * one_way);
		pair_none(pair.server_channel);
		pair_close(&pair);
	}
}

/* A client that looks late but not too late connects. */
static void a_client_that_looks_late(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(stuck); i++) {
		struct rdma_conn_param param = pair_param(NULL, 0);
		struct pair pair;

		step_request(&pair, stuck[i].transport, RDMA_PS_TCP, true);
		assert_int_equal(rdma_accept(pair.server, &param), 0);
		assert_int_equal(polycm_sim_advance(SECONDS(600)), 0);
		pair_none(pair.server_channel);
		pair_take(pair.client_channel, RDMA_CM_EVENT_ESTABLISHED, 0);
		pair_take(pair.server_channel, RDMA_CM_EVENT_ESTABLISHED, 0);
		pair_none(pair.client_channel);
		pair_close(&pair);
	}
}

static void a_server_that_answers_late(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(stuck); i++) {
		struct rdma_conn_param param = pair_param(NULL, 0);
		struct pair pair;

		step_request(&pair, stuck[i].transport, RDMA_PS_TCP, true);
		assert_int_equal(polycm_sim_advance(SECONDS(600)), 0);
		pair_none(pair.client_channel);
		assert_int_equal(rdma_accept(pair.server, &param), 0);
		pair_take(pair.client_channel, RDMA_CM_EVENT_ESTABLISHED, 0);
		pair_take(pair.server_channel, RDMA_CM_EVENT_ESTABLISHED, 0);
		pair_close(&pair);
	}
}

/* Too late: the client's connection manager does not know the reply and drops it. */
static void a_server_that_answers_too_late(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(stuck); i++) {
		struct rdma_conn_param param = pair_param(NULL, 0);
		uint64_t before;
		struct pair pair;

		step_request(&pair, stuck[i].transport, RDMA_PS_TCP, true);
		pair_take(pair.client_channel, RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT);
		before = pair_now();
		assert_int_equal(rdma_accept(pair.server, &param), 0);
		pair_take(pair.server_channel, RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT);
		assert_elapsed(before, 16 * SECONDS(stuck[i].reply));
		pair_none(pair.client_channel);
		pair_none(pair.server_channel);
		pair_close(&pair);
	}
}

/* Datagrams: 16 waits of 4.096 s, no MRA, and one request at the server. */
static void datagrams_that_nobody_answers(void **state)
{
	(void)state;
	for (enum transport t = ROCE; t <= IB; t++) {
		struct rdma_conn_param param = pair_param(NULL, 0);
		uint64_t before;
		struct pair pair;

		pair_open(&pair, t, RDMA_PS_UDP);
		pair_resolve(&pair);
		pair_client_qp(&pair);
		before = pair_now();
		rdma_ack_cm_event(pair_request(&pair, &param));
		pair_take(pair.client_channel, RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT);
		assert_elapsed(before, SECONDS(65.536));
		pair_none(pair.server_channel);
		pair_close(&pair);
	}
}

/* --- iWARP: the initiator waits 10 s for the MPA reply. --- */

static void iwarp_waits_ten_seconds(void **state)
{
	struct rdma_conn_param param = pair_param(NULL, 0);
	struct rdma_cm_event *event;
	uint64_t sent, before;
	struct pair pair;

	(void)state;
	pair_open_resolved(&pair, IWARP);
	before = pair_now();
	assert_int_equal(rdma_connect(pair.client, &param), 0);
	/* TCP is connected when the call returns; then the request went out. */
	sent = pair_now();
	assert_true(sent > before);
	event = pair_expect(pair.server_channel, RDMA_CM_EVENT_CONNECT_REQUEST, 0);
	pair.server = event->id;
	rdma_ack_cm_event(event);
	pair_take(pair.client_channel, RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT);
	assert_elapsed(sent, SECONDS(10));
	pair_close(&pair);
}

static void iwarp_answers_too_late(void **state)
{
	(void)state;
	for (int accept = 0; accept < 2; accept++) {
		struct rdma_conn_param param = pair_param(NULL, 0);
		struct pair pair;

		step_request(&pair, IWARP, RDMA_PS_TCP, true);
		pair_take(pair.client_channel, RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT);
		assert_int_equal(polycm_sim_advance(1000000), 0);
		pair_none(pair.server_channel);
		if (accept)
			assert_errno(rdma_accept(pair.server, &param), ECONNRESET);
		else
			assert_errno(rdma_reject(pair.server, NULL, 0), ECONNRESET);
		pair_none(pair.server_channel);
		pair_close(&pair);
	}
}

static void iwarp_just_in_time(void **state)
{
	struct rdma_conn_param param = pair_param(NULL, 0);
	struct pair pair;

	(void)state;
	step_request(&pair, IWARP, RDMA_PS_TCP, true);
	assert_int_equal(polycm_sim_advance(SECONDS(9.99)), 0);
	assert_int_equal(rdma_accept(pair.server, &param), 0);
	pair_take(pair.server_channel, RDMA_CM_EVENT_ESTABLISHED, 0);
	pair_take(pair.client_channel, RDMA_CM_EVENT_ESTABLISHED, 0);
	assert_int_equal(polycm_sim_advance(LONG), 0);
	pair_none(pair.client_channel);
	pair_none(pair.server_channel);
	pair_close(&pair);
}

/* Who disconnects or destroys during an attempt waits for its end (kernel iwcm). */
static void iwarp_waits_for_an_attempt_to_end(void **state)
{
	(void)state;
	for (int destroy = 0; destroy < 2; destroy++) {
		struct rdma_conn_param param = pair_param(NULL, 0);
		uint64_t sent;
		struct pair pair;

		print_message("%s\n", destroy ? "destroy" : "disconnect");
		pair_open_resolved(&pair, IWARP);
		assert_int_equal(rdma_connect(pair.client, &param), 0);
		sent = pair_now();
		if (destroy) {
			struct ibv_qp *qp = pair.client->qp;

			assert_int_equal(rdma_destroy_id(pair.client), 0);
			pair.client = NULL;
			assert_elapsed(sent, SECONDS(10));
			pair_none(pair.client_channel);
			assert_int_equal(ibv_destroy_qp(qp), 0);
		} else {
			assert_int_equal(rdma_disconnect(pair.client), 0);
			assert_elapsed(sent, SECONDS(10));
			pair_take(pair.client_channel, RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT);
		}
		pair_none(pair.client_channel);
		pair_close(&pair);
	}
}

/* --- Giving up. --- */

/* The client's program ends the attempt; the server's learns it when it answers. */
static void a_client_that_gives_up(void **state)
{
	(void)state;
	for (enum transport t = 0; t < NUM_TRANSPORTS; t++) {
		struct rdma_conn_param param = pair_param(NULL, 0);
		struct pair pair;

		step_request(&pair, t, RDMA_PS_TCP, false);
		if (pair.client->qp)
			rdma_destroy_qp(pair.client);
		assert_int_equal(rdma_destroy_id(pair.client), 0);
		pair.client = NULL;
		assert_int_equal(polycm_sim_advance(1000000), 0);
		pair_none(pair.server_channel);
		assert_errno(rdma_accept(pair.server, &param), t == IWARP ? ECONNRESET : EINVAL);
		assert_int_equal(polycm_sim_advance(LONG), 0);
		pair_none(pair.server_channel);
		pair_close(&pair);
	}
}

/* A connection that nobody uses stays. */
static void idle_connections_last(void **state)
{
	(void)state;
	for (enum transport t = 0; t < NUM_TRANSPORTS; t++) {
		struct rdma_cm_event *event;
		struct pair pair;

		pair_open(&pair, t, RDMA_PS_TCP);
		pair_connect(&pair);
		assert_int_equal(polycm_sim_advance(SECONDS(1000000)), 0);
		pair_none(pair.client_channel);
		pair_none(pair.server_channel);
		assert_errno(rdma_get_cm_event(pair.client_channel, &event), EDEADLK);
		assert_int_equal(step_qp_state(pair.client), IBV_QPS_RTS);
		assert_int_equal(step_qp_state(pair.server), IBV_QPS_RTS);
		pair_close(&pair);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_server_that_never_answers),
		cmocka_unit_test(a_client_that_never_looks),
		cmocka_unit_test(a_client_that_looks_late),
		cmocka_unit_test(a_server_that_answers_late),
		cmocka_unit_test(a_server_that_answers_too_late),
		cmocka_unit_test(datagrams_that_nobody_answers),
		cmocka_unit_test(iwarp_waits_ten_seconds),
		cmocka_unit_test(iwarp_answers_too_late),
		cmocka_unit_test(iwarp_just_in_time),
		cmocka_unit_test(iwarp_waits_for_an_attempt_to_end),
		cmocka_unit_test(a_client_that_gives_up),
		cmocka_unit_test(idle_connections_last),
	};

	return cmocka_run_group_tests(tests, pair_group_setup, NULL);
}
