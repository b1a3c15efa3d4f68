/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The InfiniBand CM engine without memory: calls fail and leave nothing
 * behind, what comes in is dropped as if the wire had lost it, and all works
 * again afterwards.
 */
#include "config.h"

#include <arpa/inet.h>
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

/* ------------------------------------------------------------------------
 * Events that the core has no memory for come later: each of the ends and
 * beginnings of a connection, several in a row.
 */

static void accept_it(struct pair *pair)
{
	assert_int_equal(world_accept(pair->server, 2), 0);
}

static void reject_it(struct pair *pair)
{
	assert_int_equal(world_call(pair->server, reject, "no", 2, 0), 0);
}

static void answer_is_lost(struct pair *pair)
{
	world_lose(CM_REQ, WORLD_ALL);
	world_lose(CM_REJ, WORLD_ALL);
	reject_it(pair);
}

static void establish_it(struct pair *pair)
{
	assert_int_equal(world_call(pair->client, establish), 0);
}

static void disconnect_it(struct pair *pair)
{
	assert_int_equal(world_call(pair->client, disconnect), 0);
}

static void disconnect_both(struct pair *pair)
{
	disconnect_it(pair);
	assert_int_equal(world_call(pair->server, disconnect), 0);
}

static void disconnect_in_vain(struct pair *pair)
{
	world_lose(CM_DREQ, WORLD_ALL);
	disconnect_it(pair);
}

static void test_late_events(void **state)
{
	static const struct {
		struct pair (*open)(void);
		void (*act)(struct pair *pair);
		bool at_server;
		enum rdma_cm_event_type type;
		int status;
	} cases[] = {
		{ world_requested, accept_it, false, RDMA_CM_EVENT_CONNECT_RESPONSE, 0 },
		{ world_requested, answer_is_lost, false, RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT },
		{ world_accepted, establish_it, true, RDMA_CM_EVENT_ESTABLISHED, 0 },
		{ world_established, disconnect_it, true, RDMA_CM_EVENT_DISCONNECTED, 0 },
		{ world_established, disconnect_both, false, RDMA_CM_EVENT_DISCONNECTED, 0 },
		{ world_established, disconnect_in_vain, false, RDMA_CM_EVENT_DISCONNECTED,
		  -ETIMEDOUT },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		for (unsigned int posts = 1; posts <= 3; posts++) {
			struct pair pair = cases[i].open();
			const struct world_event *event;

			print_message("case %zu, %u posts\n", i, posts);
			world.fail_posts = posts;
			cases[i].act(&pair);
			world_run_ms(90000);
			assert_uint_equal(world.fail_posts, 0);
			event = world_expect(cases[i].at_server ? pair.server : pair.client,
					     cases[i].type, cases[i].status);
			/* The words come with it. */
			if (cases[i].type == RDMA_CM_EVENT_UNREACHABLE)
				assert_non_null(event->event.why);
			else
				assert_null(event->event.why);
			world_lose(CM_REQ, 0);
			world_lose(CM_REJ, 0);
			world_lose(CM_DREQ, 0);
			world_end(&pair);
			world_run_ms(100000);
		}
	}
}

/* A REJ that nothing can be told of is as good as lost: the REQ is repeated, and answered anew. */
static void test_late_reject(void **state)
{
	struct pair pair = world_requested();
	struct polycm_id *again;

	(void)state;
	world.fail_posts = 1;
	reject_it(&pair);
	world_run_ms(1);
	assert_uint_equal(world.fail_posts, 0);
	world_expect_none(pair.client);
	world_run_ms(90000);
	again = world_child(pair.listener);
	assert_int_equal(world_call(again, reject, "no", 2, 0), 0);
	world_run_ms(1);
	world_expect(pair.client, RDMA_CM_EVENT_REJECTED, 28);
	world_destroy(again);
	world_end(&pair);
	world_run_ms(1);
}

/* DISCONNECTED finds no memory for so long that TIMEWAIT_EXIT waits behind it. */
static void test_late_in_order(void **state)
{
	struct pair pair = world_established();

	(void)state;
	world.fail_posts = 200;
	disconnect_it(&pair);
	world_run_ms(1);
	assert_int_equal(world_call(pair.server, disconnect), 0);
	world_run_ms(10000);
	assert_uint_equal(world.fail_posts, 0);
	world_expect(pair.client, RDMA_CM_EVENT_DISCONNECTED, 0);
	world_expect(pair.client, RDMA_CM_EVENT_TIMEWAIT_EXIT, 0);
	world_expect_none(pair.client);
	world_expect(pair.server, RDMA_CM_EVENT_DISCONNECTED, 0);
	world_end(&pair);
	world_run_ms(1000);
}

/* An event is late while the id resolves: the end of that comes after it, and both come. */
static void test_late_while_resolving(void **state)
{
	struct polycm_id *client = world_id(RDMA_PS_TCP);
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(PORT) };
	struct sim_port *port;

	(void)state;
	assert_int_equal(inet_pton(AF_INET, "10.0.0.2", &to.sin_addr), 1);
	assert_int_equal(world_call(client, resolve_addr, NULL, (struct sockaddr *)&to, 2000), 0);
	world_run_ms(1);
	world_expect(client, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
	port = world_sim(client)->port;
	for (unsigned int posts = 1; posts <= 3; posts++) {
		assert_int_equal(world_call(client, resolve_route, 2000), 0);
		world.fail_posts = posts;
		sim_lock();
		sim_cma_mac_changed(port);
		sim_unlock();
		world_run_ms(100);
		assert_uint_equal(world.fail_posts, 0);
		world_expect(client, RDMA_CM_EVENT_ADDR_CHANGE, 0);
		world_expect(client, RDMA_CM_EVENT_ROUTE_RESOLVED, 0);
		world_expect_none(client);
		cma_set_state(world_sim(client), CMA_ADDR_RESOLVED);	/* once more */
	}
	world_destroy(client);
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
		ROCE(test_late_events),
		ROCE(test_late_reject),
		ROCE(test_late_in_order),
		ROCE(test_late_while_resolving),
		ROCE(test_buffers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
