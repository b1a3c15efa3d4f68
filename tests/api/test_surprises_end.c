/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_surprises_end.c - what surprises about the end of connections, about
 * queue pairs and about acknowledging: one test each, numbered as in
 * docs/surprises.md.
 */
#include <errno.h>
#include <pthread.h>
#include <string.h>

#include "transfer.h"

#define MOMENT 1000000u		/* 1 ms: any message has arrived */
#define LONG SECONDS(2000)

static const double client_wait[] = { [ROCE] = 4.608, [IB] = 6.144 };

static void established(struct pair *pair, enum transport transport)
{
	pair_open(pair, transport, RDMA_PS_TCP);
	pair_connect(pair);
}

/* DISCONNECTED comes with the answer of the peer's program, or after 16 waits for it. */
static void surprise_02_the_program_sends_the_drep(void **state)
{
	(void)state;
	for (enum transport t = ROCE; t <= IB; t++) {
		uint64_t before;
		struct pair pair;

		established(&pair, t);
		assert_int_equal(rdma_disconnect(pair.client), 0);
		pair_take(pair.server_channel, RDMA_CM_EVENT_DISCONNECTED, 0);
		assert_int_equal(polycm_sim_advance(SECONDS(60)), 0);
		pair_none(pair.client_channel);
		assert_int_equal(rdma_disconnect(pair.server), 0);
		pair_take(pair.client_channel, RDMA_CM_EVENT_DISCONNECTED, 0);
		pair_close(&pair);

		established(&pair, t);
		before = pair_now();
		assert_int_equal(rdma_disconnect(pair.client), 0);
		pair_take(pair.client_channel, RDMA_CM_EVENT_DISCONNECTED, -ETIMEDOUT);
		assert_elapsed(before, 16 * SECONDS(client_wait[t]));
		pair_close(&pair);

		established(&pair, t);
		before = pair_now();
		assert_int_equal(rdma_disconnect(pair.server), 0);
		pair_take(pair.server_channel, RDMA_CM_EVENT_DISCONNECTED, -ETIMEDOUT);
		assert_elapsed(before, 16 * SECONDS(4.096));
		pair_close(&pair);
	}
}

/* Each sees the other's DREQ, nobody answers it, and a second call does. */
static void surprise_03_simultaneous_disconnects_answer_nobody(void **state)
{
	(void)state;
	for (enum transport t = ROCE; t <= IB; t++) {
		struct polycm_sim_fault *dreps;
		unsigned int hits;
		struct pair pair;

		established(&pair, t);
		assert_int_equal(polycm_sim_fault_add(POLYCM_SIM_FAULT(
			.action = POLYCM_SIM_LOSE, .message = "DREP"), &dreps), 0);
		assert_int_equal(rdma_disconnect(pair.client), 0);
		assert_int_equal(rdma_disconnect(pair.server), 0);
		pair_take(pair.client_channel, RDMA_CM_EVENT_DISCONNECTED, 0);
		pair_take(pair.server_channel, RDMA_CM_EVENT_DISCONNECTED, 0);
		assert_int_equal(polycm_sim_advance(LONG), 0);
		pair_none(pair.client_channel);
		pair_none(pair.server_channel);
		assert_int_equal(polycm_sim_fault_hits(dreps, &hits), 0);
		assert_int_equal(hits, 0);
		assert_int_equal(polycm_sim_fault_remove(dreps), 0);

		assert_int_equal(rdma_disconnect(pair.client), 0);
		pair_take(pair.client_channel, RDMA_CM_EVENT_TIMEWAIT_EXIT, 0);
		pair_none(pair.server_channel);
		pair_close(&pair);
	}
}

/* After DISCONNECTED, and of the passive side after its own answer; never after a failed attempt. */
static void surprise_04_where_timewait_exit_comes(void **state)
{
	(void)state;
	for (enum transport t = ROCE; t < NUM_TRANSPORTS; t++) {
		int rejected = t == IWARP ? -ECONNRESET : 28;
		struct pair pair;

		established(&pair, t);
		assert_int_equal(rdma_disconnect(pair.client), 0);
		pair_take(pair.server_channel, RDMA_CM_EVENT_DISCONNECTED, 0);
		if (t != IWARP) {
			assert_int_equal(polycm_sim_advance(SECONDS(30)), 0);
			pair_none(pair.server_channel);
			assert_int_equal(rdma_disconnect(pair.server), 0);
			pair_take(pair.server_channel, RDMA_CM_EVENT_TIMEWAIT_EXIT, 0);
		}
		pair_take(pair.client_channel, RDMA_CM_EVENT_DISCONNECTED, 0);
		if (t != IWARP)
			pair_take(pair.client_channel, RDMA_CM_EVENT_TIMEWAIT_EXIT, 0);
		assert_int_equal(polycm_sim_advance(LONG), 0);
		pair_none(pair.client_channel);
		pair_none(pair.server_channel);
		pair_close(&pair);

		step_request(&pair, t, RDMA_PS_TCP, true);
		assert_int_equal(rdma_reject(pair.server, NULL, 0), 0);
		pair_take(pair.client_channel, RDMA_CM_EVENT_REJECTED, rejected);
		assert_int_equal(polycm_sim_advance(LONG), 0);
		pair_none(pair.client_channel);
		pair_close(&pair);

		step_request(&pair, t, RDMA_PS_TCP, true);
		pair_take(pair.client_channel, RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT);
		assert_int_equal(polycm_sim_advance(LONG), 0);
		pair_none(pair.client_channel);
		pair_close(&pair);
	}
}

/* rdma_disconnect() and a REJECTED move the queue pair to ERR; the other two events do not. */
static void surprise_05_disconnected_leaves_the_qp_alone(void **state)
{
	(void)state;
	for (enum transport t = ROCE; t <= IB; t++) {
		struct pair pair;

		established(&pair, t);
		assert_int_equal(rdma_disconnect(pair.client), 0);
		assert_int_equal(step_qp_state(pair.client), IBV_QPS_ERR);
		pair_take(pair.server_channel, RDMA_CM_EVENT_DISCONNECTED, 0);
		assert_int_equal(step_qp_state(pair.server), IBV_QPS_RTS);
		assert_int_equal(rdma_disconnect(pair.server), 0);
		assert_int_equal(step_qp_state(pair.server), IBV_QPS_ERR);
		pair_close(&pair);

		step_request(&pair, t, RDMA_PS_TCP, true);
		assert_int_equal(rdma_reject(pair.server, NULL, 0), 0);
		pair_take(pair.client_channel, RDMA_CM_EVENT_REJECTED, 28);
		assert_int_equal(step_qp_state(pair.client), IBV_QPS_ERR);
		pair_close(&pair);

		step_request(&pair, t, RDMA_PS_TCP, true);
		pair_take(pair.client_channel, RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT);
		assert_int_equal(step_qp_state(pair.client), IBV_QPS_INIT);
		pair_close(&pair);
	}
}

static void surprise_06_the_cm_does_not_see_a_broken_qp(void **state)
{
	struct rdma_conn_param param = pair_param(NULL, 0);
	struct transfer x;

	(void)state;
	param.rnr_retry_count = 0;
	for (enum transport t = ROCE; t < NUM_TRANSPORTS; t++) {
		transfer_open(&x, t, &param);
		/* Nobody has posted a receive for it. */
		transfer_send(&x.client, 1, 0, 10);
		transfer_sent(&x.client, 1, t == IWARP ? IBV_WC_SUCCESS : IBV_WC_RNR_RETRY_EXC_ERR);
		assert_int_equal(step_qp_state(x.client.id), IBV_QPS_ERR);
		if (t == IWARP) {
			pair_take(x.pair.client_channel, RDMA_CM_EVENT_DISCONNECTED, 0);
			pair_take(x.pair.server_channel, RDMA_CM_EVENT_DISCONNECTED, 0);
		}
		assert_int_equal(polycm_sim_advance(LONG), 0);
		pair_none(x.pair.client_channel);
		pair_none(x.pair.server_channel);
		transfer_close(&x);
	}
}

struct destroyer {
	struct rdma_cm_id *id;
	bool done;
};

static void *destroy(void *arg)
{
	struct destroyer *destroyer = arg;

	assert_int_equal(rdma_destroy_id(destroyer->id), 0);
	__atomic_store_n(&destroyer->done, true, __ATOMIC_RELEASE);
	return NULL;
}

/* The request that is not acked: its own id goes, its listener's end has to wait. */
static void surprise_15_requests_are_charged_to_the_listener(void **state)
{
	struct rdma_conn_param param = pair_param(NULL, 0);
	struct destroyer destroyer = { 0 };
	struct rdma_cm_event *request;
	struct pair pair;
	pthread_t thread;

	(void)state;
	pair_open(&pair, ROCE, RDMA_PS_TCP);
	pair_resolve(&pair);
	request = pair_request(&pair, &param);
	assert_int_equal(rdma_destroy_id(pair.server), 0);
	pair.server = NULL;
	destroyer.id = pair.listener;
	pair.listener = NULL;
	assert_int_equal(pthread_create(&thread, NULL, destroy, &destroyer), 0);
	assert_false(__atomic_load_n(&destroyer.done, __ATOMIC_ACQUIRE));
	rdma_ack_cm_event(request);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_true(destroyer.done);
	pair_close(&pair);
}

/* The RTU is lost, and the server never hears of a connection but that it has ended. */
static void surprise_19_established_first_last_or_never(void **state)
{
	struct rdma_conn_param param = pair_param(NULL, 0);
	struct pair pair;

	(void)state;
	for (enum transport t = ROCE; t <= IB; t++) {
		step_request(&pair, t, RDMA_PS_TCP, true);
		assert_int_equal(polycm_sim_fault_add(POLYCM_SIM_FAULT(
			.action = POLYCM_SIM_LOSE, .message = "RTU"), NULL), 0);
		assert_int_equal(rdma_accept(pair.server, &param), 0);
		pair_take(pair.client_channel, RDMA_CM_EVENT_ESTABLISHED, 0);
		assert_int_equal(rdma_disconnect(pair.client), 0);
		pair_take(pair.server_channel, RDMA_CM_EVENT_DISCONNECTED, 0);
		pair_none(pair.server_channel);
		pair_close(&pair);
	}

	/* On iWARP it is there as soon as rdma_accept() returns. */
	step_request(&pair, IWARP, RDMA_PS_TCP, true);
	assert_int_equal(rdma_accept(pair.server, &param), 0);
	pair_take(pair.server_channel, RDMA_CM_EVENT_ESTABLISHED, 0);
	pair_none(pair.client_channel);
	pair_close(&pair);
}

/* The neighbour's MAC changes: the client is told that it cannot reach whom it can. */
static void surprise_20_unreachable_hits_the_established(void **state)
{
	struct rdma_conn_param param = pair_param(NULL, 0);
	struct transfer x;
	struct pair pair;

	(void)state;
	transfer_open(&x, ROCE, NULL);
	assert_int_equal(polycm_sim_fault_add(POLYCM_SIM_FAULT(
		.action = POLYCM_SIM_CHANGE_MAC, .on = x.pair.server_node,
		.address = SERVER_ADDRESS), NULL), 0);
	pair_take(x.pair.client_channel, RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT);
	/* The side whose MAC it is. */
	pair_take(x.pair.server_channel, RDMA_CM_EVENT_ADDR_CHANGE, 0);	/* the listener, ... */
	pair_take(x.pair.server_channel, RDMA_CM_EVENT_ADDR_CHANGE, 0);	/* ... the connection */
	assert_int_equal(step_qp_state(x.client.id), IBV_QPS_RTS);
	/* Nothing is torn down, though what is sent there is lost. */
	transfer_send(&x.client, 1, 0, 16);
	(void)transfer_sent(&x.client, 1, IBV_WC_RETRY_EXC_ERR);
	pair_none(x.pair.client_channel);
	assert_int_equal(rdma_disconnect(x.server.id), 0);
	pair_take(x.pair.client_channel, RDMA_CM_EVENT_DISCONNECTED, 0);
	transfer_close(&x);

	/* And the passive side meets it where its reply goes unanswered. */
	step_request(&pair, ROCE, RDMA_PS_TCP, true);
	assert_int_equal(polycm_sim_fault_add(POLYCM_SIM_FAULT(
		.action = POLYCM_SIM_LOSE, .message = "REP"), NULL), 0);
	assert_int_equal(rdma_accept(pair.server, &param), 0);
	pair_take(pair.server_channel, RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT);
	pair_close(&pair);
}

/* One DREQ and no other: lose it, and the peer is connected for ever. */
static void surprise_24_destroy_sends_a_single_dreq(void **state)
{
	(void)state;
	for (enum transport t = ROCE; t <= IB; t++) {
		struct polycm_sim_fault *dreq;
		unsigned int hits;
		uint64_t before;
		struct pair pair;

		established(&pair, t);
		assert_int_equal(polycm_sim_fault_add(POLYCM_SIM_FAULT(
			.action = POLYCM_SIM_LOSE, .message = "DREQ"), &dreq), 0);
		before = pair_now();
		rdma_destroy_qp(pair.client);
		assert_int_equal(rdma_destroy_id(pair.client), 0);
		pair.client = NULL;
		assert_elapsed(before, 0);
		assert_int_equal(polycm_sim_advance(LONG), 0);
		pair_none(pair.server_channel);
		assert_int_equal(polycm_sim_fault_hits(dreq, &hits), 0);
		assert_int_equal(hits, 1);
		assert_int_equal(step_qp_state(pair.server), IBV_QPS_RTS);
		pair_close(&pair);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(surprise_02_the_program_sends_the_drep),
		cmocka_unit_test(surprise_03_simultaneous_disconnects_answer_nobody),
		cmocka_unit_test(surprise_04_where_timewait_exit_comes),
		cmocka_unit_test(surprise_05_disconnected_leaves_the_qp_alone),
		cmocka_unit_test(surprise_06_the_cm_does_not_see_a_broken_qp),
		cmocka_unit_test(surprise_15_requests_are_charged_to_the_listener),
		cmocka_unit_test(surprise_19_established_first_last_or_never),
		cmocka_unit_test(surprise_20_unreachable_hits_the_established),
		cmocka_unit_test(surprise_24_destroy_sends_a_single_dreq),
	};

	return cmocka_run_group_tests(tests, pair_group_setup, NULL);
}
