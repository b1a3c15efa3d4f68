/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The InfiniBand CM engine without memory: calls fail and leave nothing
 * behind, what comes in is dropped as if the wire had lost it, and all works
 * again afterwards.
 */
#include "config.h"

#include <errno.h>

#include "ibcm_world.h"

/* Nothing is spare, so that each message needs memory. */
static void fail_nth(unsigned int nth)
{
	ibcm_send_free();
	world.fail_allocation = nth;
}

/* Did the failure come, or were fewer allocations made? */
static bool failed(void)
{
	bool did = !world.fail_allocation;

	world.fail_allocation = 0;
	return did;
}

/* Fails each allocation in turn until there are no more. */
static void check_connect(enum rdma_port_space ps)
{
	struct polycm_id *client;
	unsigned int nth = 1;
	int ret;

	do {
		client = world_route(ps, PORT);
		fail_nth(nth++);
		ret = world_connect(client, nth);
		if (failed()) {
			assert_int_equal(ret, -ENOMEM);
			assert_int_equal(world_sim(client)->state, CMA_ROUTE_RESOLVED);
			assert_null(world_sim(client)->ib);
			/* Once more, with memory. */
			assert_int_equal(world_connect(client, nth), 0);
			ret = -ENOMEM;
		}
		world_destroy(client);
		world_run_ms(1);
	} while (ret);
	assert_in_range(nth, 3, 10);	/* the memory of its message, at least */
}

static void test_connect(void **state)
{
	(void)state;
	check_connect(RDMA_PS_TCP);
}

static void test_connect_ud(void **state)
{
	(void)state;
	check_connect(RDMA_PS_UDP);
}

static void test_qkey(void **state)
{
	struct polycm_id *client = world_route(RDMA_PS_UDP, PORT);
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT };
	int mask;

	(void)state;
	assert_int_equal(world_call(client, init_qp_attr, &attr, &mask), 0);
	/* Its id then serves the connect, which fails without losing it. */
	fail_nth(1);
	assert_int_equal(world_connect(client, 1), -ENOMEM);
	assert_true(failed());
	assert_uint_equal(world_sim(client)->ib->qkey, RDMA_UDP_QKEY);
	assert_int_equal(world_connect(client, 1), 0);
	world_destroy(client);
	world_run_ms(1);
}

/* A REQ that nothing can be kept of goes unanswered; the next one is served. */
static void test_request(void **state)
{
	struct polycm_id *listener = world_listen(RDMA_PS_TCP), *client, *server;

	(void)state;
	client = world_route(RDMA_PS_TCP, PORT);
	assert_int_equal(world_connect(client, 1), 0);
	fail_nth(1);
	world_run_ms(1);
	assert_true(failed());
	world_expect_none(listener);
	world_expect_none(client);
	assert_uint_equal(world.num_mads, 1);
	world_run_ms(4609);
	server = world_child(listener);
	world_destroy(server);
	world_destroy(client);
	world_destroy(listener);
	world_run_ms(1);
}

static void test_request_ud(void **state)
{
	struct polycm_id *listener = world_listen(RDMA_PS_UDP), *client;

	(void)state;
	client = world_route(RDMA_PS_UDP, PORT);
	assert_int_equal(world_connect(client, 1), 0);
	fail_nth(1);
	world_run_ms(1);
	assert_true(failed());
	world_expect_none(listener);
	world_expect(client, RDMA_CM_EVENT_UNREACHABLE, 2);
	world_destroy(client);
	world_destroy(listener);
}

/* As for any other reason, an accept that fails refuses the connection. */
static void test_accept(void **state)
{
	struct pair pair = world_requested();

	(void)state;
	fail_nth(1);
	assert_int_equal(world_accept(pair.server, 2), -ENOMEM);
	assert_true(failed());
	world_run_ms(1);
	world_expect(pair.client, RDMA_CM_EVENT_REJECTED, 28);
	world_end(&pair);
}

/* There is no memory for a copy of the DREQ: it goes out all the same, and is repeated. */
static void test_disconnect(void **state)
{
	struct pair pair = world_established();
	struct cm_dreq first;

	(void)state;
	world_forget();
	world_lose(CM_DREQ, 1);
	fail_nth(1);
	assert_int_equal(world_call(pair.client, disconnect), 0);
	assert_true(failed());
	world_run_ms(1);
	assert_uint_equal(world_count(CM_DREQ), 1);
	first = world_mad(CM_DREQ, 0)->msg.dreq;
	world_expect_none(pair.server);
	world_run_ms(5000);
	assert_uint_equal(world_count(CM_DREQ), 2);
	assert_memory_equal(&world_mad(CM_DREQ, 1)->msg.dreq, &first, sizeof(first));
	world_expect(pair.server, RDMA_CM_EVENT_DISCONNECTED, 0);
	assert_int_equal(world_call(pair.server, disconnect), 0);
	world_run_ms(1);
	world_expect(pair.client, RDMA_CM_EVENT_DISCONNECTED, 0);
	world_end(&pair);
	world_run_ms(1000);
}

/* ... to the last time, when the peer is gone. */
static void test_disconnect_in_vain(void **state)
{
	struct pair pair = world_established();

	(void)state;
	world_lose(CM_DREQ, WORLD_ALL);
	fail_nth(1);
	assert_int_equal(world_call(pair.client, disconnect), 0);
	assert_true(failed());
	world_run_ms(100000);
	world_expect(pair.client, RDMA_CM_EVENT_DISCONNECTED, -ETIMEDOUT);
	world_expect(pair.client, RDMA_CM_EVENT_TIMEWAIT_EXIT, 0);
	world_end(&pair);
	world_run_ms(1000);
}

/* Buffers go back; an unusual number of them to the system. */
static void test_buffers(void **state)
{
	enum { MANY = 300 };
	struct polycm_id *clients[MANY];

	(void)state;
	world.keep_mads = false;
	world_lose(CM_REQ, WORLD_ALL);
	for (unsigned int i = 0; i < MANY; i++) {
		clients[i] = world_route(RDMA_PS_TCP, PORT);
		assert_int_equal(world_connect(clients[i], i + 1), 0);
	}
	world_run_ms(80000);
	for (unsigned int i = 0; i < MANY; i++) {
		world_expect(clients[i], RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT);
		assert_null(world_sim(clients[i])->ib->repeating);
		world_destroy(clients[i]);
	}
}

#define ROCE(test) cmocka_unit_test_setup_teardown(test, world_open_roce, world_close)

int main(void)
{
	const struct CMUnitTest tests[] = {
		ROCE(test_connect),
		ROCE(test_connect_ud),
		ROCE(test_qkey),
		ROCE(test_request),
		ROCE(test_request_ud),
		ROCE(test_accept),
		ROCE(test_disconnect),
		ROCE(test_disconnect_in_vain),
		ROCE(test_buffers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
