/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_surprises_elsewhere.c - what surprises about iWARP, datagrams, ports
 * and resolving: one test each, numbered as in docs/surprises.md.
 */
#include <errno.h>
#include <string.h>

#include "steps.h"

#define MOMENT 1000000u		/* 1 ms: any message has arrived */

/* The software device connects inside rdma_connect(), which fails at once and with no event. */
static void surprise_18_iwarp_connects_inside_rdma_connect(void **state)
{
	struct rdma_conn_param param = pair_param(NULL, 0);
	struct pair pair;
	uint64_t before;

	(void)state;
	pair_open_resolved(&pair, IWARP);
	assert_int_equal(rdma_destroy_id(pair.listener), 0);
	pair.listener = NULL;
	assert_errno(rdma_connect(pair.client, &param), ECONNREFUSED);
	pair_none(pair.client_channel);

	/* A host that does not answer: for as long as TCP tries. */
	assert_int_equal(polycm_sim_fault_add(POLYCM_SIM_FAULT(
		.action = POLYCM_SIM_CRASH, .on = pair.server_node), NULL), 0);
	assert_int_equal(polycm_sim_advance(MOMENT), 0);
	before = pair_now();
	assert_errno(rdma_connect(pair.client, &param), ETIMEDOUT);
	assert_true(pair_now() - before > SECONDS(100));
	pair_none(pair.client_channel);
	pair_close(&pair);

	/* A program's reject is a connection that was reset. */
	step_request(&pair, IWARP, RDMA_PS_TCP, true);
	assert_int_equal(rdma_reject(pair.server, NULL, 0), 0);
	pair_take(pair.client_channel, RDMA_CM_EVENT_REJECTED, -ECONNRESET);
	pair_close(&pair);
}

/*
 * The library's own failures have status -1, whatever the errno was: here of
 * a queue pair that cannot follow a reply, since the program has broken it.
 */
static void surprise_21_the_librarys_errors_are_minus_one(void **state)
{
	(void)state;
	for (enum transport t = ROCE; t <= IB; t++) {
		struct rdma_conn_param param = pair_param(NULL, 0);
		struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };
		struct rdma_cm_event *event;
		struct pair pair;

		step_request(&pair, t, RDMA_PS_TCP, true);
		assert_int_equal(rdma_accept(pair.server, &param), 0);
		/* INIT to RTR is what the reply asks for, and ERR is where it is. */
		assert_int_equal(ibv_modify_qp(pair.client->qp, &attr, IBV_QP_STATE), 0);
		event = pair_expect(pair.client_channel, RDMA_CM_EVENT_CONNECT_ERROR, -1);
		rdma_ack_cm_event(event);
		pair_close(&pair);
	}
}

static int bind_errno(const char *address, const char *taken)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct rdma_cm_id *first, *second;
	int r;

	assert_non_null(channel);
	assert_int_equal(rdma_create_id(channel, &first, NULL, RDMA_PS_TCP), 0);
	assert_int_equal(rdma_create_id(channel, &second, NULL, RDMA_PS_TCP), 0);
	assert_int_equal(rdma_bind_addr(first, step_sa(taken, 2000)), 0);
	r = rdma_bind_addr(second, step_sa(address, 2000)) ? errno : 0;
	assert_int_equal(rdma_destroy_id(first), 0);
	assert_int_equal(rdma_destroy_id(second), 0);
	rdma_destroy_event_channel(channel);
	return r;
}

static void surprise_22_wildcards_are_not_available(void **state)
{
	struct pair pair;

	(void)state;
	for (enum transport t = ROCE; t < NUM_TRANSPORTS; t++) {
		pair_open(&pair, t, RDMA_PS_TCP);
		assert_int_equal(bind_errno(CLIENT_ADDRESS, CLIENT_ADDRESS), EADDRINUSE);
		assert_int_equal(bind_errno("0.0.0.0", CLIENT_ADDRESS), EADDRNOTAVAIL);
		assert_int_equal(bind_errno(CLIENT_ADDRESS, "0.0.0.0"), EADDRNOTAVAIL);
		assert_int_equal(bind_errno(CLIENT_ADDRESS, "127.0.0.1"), EADDRNOTAVAIL);
		assert_int_equal(bind_errno("0.0.0.0", "0.0.0.0"), EADDRNOTAVAIL);
		assert_int_equal(polycm_sim_node_add_address(pair.client_node, "10.0.0.8/24"), 0);
		assert_int_equal(bind_errno("10.0.0.8", CLIENT_ADDRESS), 0);
		pair_close(&pair);
	}
}

/* No neighbour: an event when the time is over.  No route: an errno.  No device: an event. */
static void surprise_23_three_ways_not_to_resolve(void **state)
{
	(void)state;
	for (enum transport t = ROCE; t < NUM_TRANSPORTS; t++) {
		struct rdma_cm_id *id;
		uint64_t before;
		struct pair pair;

		pair_open(&pair, t, RDMA_PS_TCP);
		before = pair_now();
		assert_int_equal(rdma_resolve_addr(pair.client, NULL, step_sa("10.0.0.99", 1), 700),
				 0);
		pair_take(pair.client_channel, RDMA_CM_EVENT_ADDR_ERROR, -ETIMEDOUT);
		assert_elapsed(before, SECONDS(0.7));

		assert_int_equal(rdma_create_id(pair.client_channel, &id, NULL, RDMA_PS_TCP), 0);
		assert_errno(rdma_resolve_addr(id, NULL, step_sa("fd99::1", 1), 700), ENETUNREACH);
		pair_none(pair.client_channel);
		assert_int_equal(rdma_destroy_id(id), 0);

		assert_int_equal(rdma_create_id(pair.client_channel, &id, NULL, RDMA_PS_TCP), 0);
		assert_int_equal(polycm_sim_fault_add(POLYCM_SIM_FAULT(
			.action = POLYCM_SIM_REMOVE_DEVICE, .on = pair.client_node), NULL), 0);
		assert_int_equal(polycm_sim_advance(MOMENT), 0);
		assert_int_equal(rdma_resolve_addr(id, NULL, step_sa(SERVER_ADDRESS, 1), 700), 0);
		pair_take(pair.client_channel, RDMA_CM_EVENT_ADDR_ERROR, -ENODEV);
		assert_int_equal(rdma_destroy_id(id), 0);
		pair_close(&pair);
	}
}

static void surprise_25_datagrams_have_rules_of_their_own(void **state)
{
	(void)state;
	for (enum transport t = ROCE; t <= IB; t++) {
		struct rdma_conn_param param = pair_param(NULL, 0);
		struct rdma_cm_event *event;
		struct rdma_cm_id *second;
		struct pair pair;

		/* A reply that is lost: the server's program sees the request twice ... */
		step_request(&pair, t, RDMA_PS_UDP, false);
		assert_int_equal(polycm_sim_fault_add(POLYCM_SIM_FAULT(
			.action = POLYCM_SIM_LOSE, .message = "SIDR_REP", .nth = 1), NULL), 0);
		assert_int_equal(rdma_accept(pair.server, &param), 0);
		event = pair_expect(pair.server_channel, RDMA_CM_EVENT_CONNECT_REQUEST, 0);
		second = event->id;
		rdma_ack_cm_event(event);
		assert_int_equal(rdma_accept(second, &param), 0);
		pair_take(pair.client_channel, RDMA_CM_EVENT_ESTABLISHED, 0);
		/* ... and never an ESTABLISHED. */
		assert_int_equal(polycm_sim_advance(SECONDS(100)), 0);
		pair_none(pair.server_channel);
		assert_int_equal(rdma_destroy_id(second), 0);
		pair_close(&pair);

		/* A reject is UNREACHABLE with the positive status of SIDR. */
		step_request(&pair, t, RDMA_PS_UDP, false);
		assert_int_equal(rdma_reject(pair.server, NULL, 0), 0);
		pair_take(pair.client_channel, RDMA_CM_EVENT_UNREACHABLE, 2);
		pair_close(&pair);

		/* Another Q_Key than the id has: an address that could not be resolved. */
		step_request(&pair, t, RDMA_PS_UDP, false);
		assert_int_equal(polycm_sim_fault_add(POLYCM_SIM_FAULT(
			.action = POLYCM_SIM_CORRUPT, .message = "SIDR_REP",
			.offset = 24 + 20, .value = 0xff), NULL), 0);
		pair_client_qp(&pair);
		assert_int_equal(rdma_accept(pair.server, &param), 0);
		pair_take(pair.client_channel, RDMA_CM_EVENT_ADDR_ERROR, -EINVAL);
		pair_close(&pair);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(surprise_18_iwarp_connects_inside_rdma_connect),
		cmocka_unit_test(surprise_21_the_librarys_errors_are_minus_one),
		cmocka_unit_test(surprise_22_wildcards_are_not_available),
		cmocka_unit_test(surprise_23_three_ways_not_to_resolve),
		cmocka_unit_test(surprise_25_datagrams_have_rules_of_their_own),
	};

	return cmocka_run_group_tests(tests, pair_group_setup, NULL);
}
