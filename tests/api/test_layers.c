/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The layer "fault" around the simulator in virtual time: what is late is so
 * to the nanosecond, and comes in order.  Rules count on from test to test.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "pair.h"

#define MS UINT64_C(1000000)

static const char rules[] =
	"{ action = \"delay\"; message = \"ROUTE_RESOLVED\"; delay = \"3 s\"; nth = 1; },"
	"{ action = \"delay\"; message = \"connect\"; delay = \"7 ms\"; nth = 1; },"
	"{ action = \"delay\"; message = \"CONNECT_REQUEST\"; delay = \"20 ms\"; nth = 1; },"
	"{ action = \"lose\"; message = \"CONNECT_REQUEST\"; nth = 2; },"
	"{ action = \"change\"; message = \"REJECTED\"; reason = \"stale_conn\"; data = \"no\"; },"
	"{ action = \"delay\"; message = \"CONNECT_REQUEST\"; delay = \"1 min\"; nth = 4; }";

static void what_is_late_comes_then(void **state)
{
	struct rdma_conn_param param = pair_param(NULL, 0);
	struct rdma_cm_event *event;
	struct pair pair;
	uint64_t start;

	(void)state;
	pair_open(&pair, ROCE, RDMA_PS_TCP);
	start = pair_now();
	pair_resolve(&pair);
	assert_true(pair_now() - start >= 3000 * MS && pair_now() - start < 3001 * MS);
	pair_client_qp(&pair);

	start = pair_now();
	event = pair_request(&pair, &param);
	assert_true(pair_now() - start >= 27 * MS && pair_now() - start < 28 * MS);
	assert_int_equal(rdma_ack_cm_event(event), 0);
	pair_close(&pair);
}

/* As one that a full backlog has no room for: the peer asks once more. */
static void a_lost_request_is_repeated(void **state)
{
	struct rdma_conn_param param = pair_param(NULL, 0);
	struct rdma_cm_event *event;
	struct pair pair;
	uint64_t start;

	(void)state;
	pair_open_resolved(&pair, ROCE);
	start = pair_now();
	event = pair_request(&pair, &param);
	assert_true(pair_now() - start > 4000 * MS);
	assert_int_equal(rdma_ack_cm_event(event), 0);
	assert_int_equal(rdma_reject(pair.server, "yes", 3), 0);
	event = pair_expect(pair.client_channel, RDMA_CM_EVENT_REJECTED, 10);
	assert_int_equal(event->param.conn.private_data_len, 2);
	assert_memory_equal(event->param.conn.private_data, "no", 2);
	assert_int_equal(rdma_ack_cm_event(event), 0);
	pair_none(pair.server_channel);
	pair_close(&pair);
}

/* The request is late, and its listener goes: the peer hears that it is refused, at once. */
static void a_listener_ends_before_its_late_request(void **state)
{
	struct rdma_conn_param param = pair_param(NULL, 0);
	struct pair pair;
	uint64_t start;

	(void)state;
	pair_open_resolved(&pair, ROCE);
	assert_int_equal(rdma_connect(pair.client, &param), 0);
	assert_int_equal(polycm_sim_advance(MS), 0);
	pair_none(pair.server_channel);
	start = pair_now();
	assert_int_equal(rdma_destroy_id(pair.listener), 0);
	pair.listener = NULL;
	pair_take(pair.client_channel, RDMA_CM_EVENT_REJECTED, 10);
	assert_true(pair_now() - start < 1000 * MS);
	pair_close(&pair);
}

static int setup(void **state)
{
	return pair_group_setup(state) || setenv("POLYCM_PROVIDER", "fault;sim", 1) ||
	       setenv("POLYCM_FAULT_RULES", rules, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_late_comes_then),
		cmocka_unit_test(a_lost_request_is_repeated),
		cmocka_unit_test(a_listener_ends_before_its_late_request),
	};

	return cmocka_run_group_tests(tests, setup, NULL);
}
