/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_cm_delay.c - POLYCM_SIM_CM_DELAY: how much later each step of a connection ends.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "steps.h"

enum { ADDRESS, ROUTE, REQUEST, NUM_STEPS_TIMED };

/* When each step of a connection ended, in ns since it began. */
static void time_steps(enum transport transport, uint64_t ret_ns[NUM_STEPS_TIMED])
{
	struct sockaddr_in to = pair_address(SERVER_ADDRESS, SERVER_PORT);
	struct rdma_conn_param param = pair_param(NULL, 0);
	struct pair pair;
	uint64_t since;

	pair_open(&pair, transport, RDMA_PS_TCP);
	since = pair_now();
	assert_int_equal(rdma_resolve_addr(pair.client, NULL, (struct sockaddr *)&to, 2000), 0);
	pair_take(pair.client_channel, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
	ret_ns[ADDRESS] = pair_now() - since;

	since = pair_now();
	assert_int_equal(rdma_resolve_route(pair.client, 2000), 0);
	pair_take(pair.client_channel, RDMA_CM_EVENT_ROUTE_RESOLVED, 0);
	ret_ns[ROUTE] = pair_now() - since;

	pair_client_qp(&pair);
	since = pair_now();
	rdma_ack_cm_event(pair_request(&pair, &param));
	ret_ns[REQUEST] = pair_now() - since;
	pair_close(&pair);
}

#define DELAY_US "500"
#define DELAY	 500000u /* ns */
#define UNANSWERED_NS \
	(16 * UINT64_C(4608000000)) /* 16 times twice the packet lifetime and the peer's time */

static void test_each_step_takes_so_much_longer(void **state)
{
	/* Without the delay: an exchange with the neighbour or the subnet administrator, or a
	 * packet. */
	static const uint64_t plain[NUM_TRANSPORTS][NUM_STEPS_TIMED] = {
		[ROCE] = {20000, 1000, 1000},
		[IB] = {20000, 50000, 1000},
		[IWARP] = {20000, 1000, 3000}, /* SYN, SYN-ACK, MPA request */
	};
	uint64_t delayed[NUM_STEPS_TIMED];

	(void)state;
	for (enum transport transport = 0; transport < NUM_TRANSPORTS; transport++) {
		time_steps(transport, delayed);
		for (size_t step = 0; step < NUM_STEPS_TIMED; step++)
			assert_int_equal(delayed[step], plain[transport][step] + DELAY);
	}
}

/* The delay comes first, then as many waits as without it. */
static void test_unanswered_request(void **state)
{
	struct rdma_conn_param param = pair_param(NULL, 0);
	struct pair pair;
	uint64_t since;

	(void)state;
	pair_open_resolved(&pair, ROCE);
	assert_int_equal(
		polycm_sim_fault_add(POLYCM_SIM_FAULT(.action = POLYCM_SIM_LOSE, .message = "REQ"),
				     NULL),
		0);
	since = pair_now();
	assert_int_equal(rdma_connect(pair.client, &param), 0);
	pair_take(pair.client_channel, RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT);
	assert_elapsed(since, UNANSWERED_NS + DELAY);
	pair_close(&pair);
}

/* An id that is destroyed before its REQ leaves sends none. */
static void test_destroyed_before_the_request(void **state)
{
	struct rdma_conn_param param = pair_param(NULL, 0);
	struct pair pair;

	(void)state;
	pair_open_resolved(&pair, ROCE);
	assert_int_equal(rdma_connect(pair.client, &param), 0);
	rdma_destroy_qp(pair.client);
	assert_int_equal(rdma_destroy_id(pair.client), 0);
	pair.client = NULL;
	assert_int_equal(polycm_sim_advance(SECONDS(1)), 0);
	pair_none(pair.server_channel);
	pair_close(&pair);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_each_step_takes_so_much_longer),
		cmocka_unit_test(test_unanswered_request),
		cmocka_unit_test(test_destroyed_before_the_request),
	};

	setenv("POLYCM_SIM_CM_DELAY", DELAY_US, 1);
	return cmocka_run_group_tests(tests, pair_group_setup, NULL);
}
