/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Private data over the InfiniBand CM: at each limit, one above it and far
 * above it, with what the call answers and what is left of the attempt.
 */
#include "config.h"

#include <errno.h>
#include <string.h>

#include "ibcm_world.h"

static uint8_t pattern[255];

static int fill_pattern(void **state)
{
	(void)state;
	for (unsigned int i = 0; i < sizeof(pattern); i++)
		pattern[i] = (uint8_t)(i + 1);
	return 0;
}

static struct polycm_conn_param data_param(unsigned int len)
{
	struct polycm_conn_param param = world_param(0x11);

	param.private_data = pattern;
	param.private_data_len = (uint8_t)len;
	return param;
}

static void check_data(const struct world_event *seen, unsigned int sent, unsigned int reported)
{
	unsigned int len = seen->event.is_ud ? seen->event.param.ud.private_data_len
					     : seen->event.param.conn.private_data_len;

	assert_uint_equal(len, reported);
	assert_memory_equal(seen->private_data, pattern, sent);
	for (unsigned int i = sent; i < reported; i++)
		assert_int_equal(seen->private_data[i], 0);
}

/* The limit and what the receiver's event shows, for a kind of id. */
struct limits {
	enum rdma_port_space ps;
	unsigned int connect, accept, reject;
};

static const struct limits limits[] = {
	{ RDMA_PS_TCP, 56, 196, 148 },
	{ RDMA_PS_UDP, 180, 136, 136 },
};

static const unsigned int too_long[] = { 1, 2, 17 };	/* by so much, and 255 at last */

static unsigned int over(unsigned int limit, unsigned int i)
{
	return i < ARRAY_SIZE(too_long) ? limit + too_long[i] : 255;
}

#define OVERS (ARRAY_SIZE(too_long) + 1)

static struct pair request_pair(const struct limits *limit)
{
	struct pair pair = { .listener = world_listen(limit->ps) };

	pair.client = world_route(limit->ps, PORT);
	assert_int_equal(world_connect(pair.client, 0x11), 0);
	world_run(LATENCY);
	pair.server = world_child(pair.listener);
	return pair;
}

/* --- connect: too much is harmless, the call may be repeated. --- */

static void check_connect(const struct limits *limit, unsigned int len)
{
	struct polycm_id *listener = world_listen(limit->ps), *client;
	struct polycm_conn_param param;
	const struct world_event *seen;

	client = world_route(limit->ps, PORT);
	for (unsigned int i = 0; i < OVERS; i++) {
		param = data_param(over(limit->connect, i));
		assert_int_equal(world_call(client, connect, &param), -EINVAL);
		assert_int_equal(world_sim(client)->state, CMA_ROUTE_RESOLVED);
		assert_null(world_sim(client)->ib);
	}
	world_run_ms(1);
	assert_uint_equal(world.num_mads, 0);
	world_expect_none(client);

	param = data_param(len);
	assert_int_equal(world_call(client, connect, &param), 0);
	world_run(LATENCY);
	seen = world_expect(listener, RDMA_CM_EVENT_CONNECT_REQUEST, 0);
	check_data(seen, len, limit->connect);
	world_destroy(seen->event.child);
	world_destroy(client);
	world_destroy(listener);
	world_run_ms(1);
	world_forget();
}

static void test_connect(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(limits); i++) {
		check_connect(&limits[i], 0);
		check_connect(&limits[i], 1);
		check_connect(&limits[i], limits[i].connect - 1);
		check_connect(&limits[i], limits[i].connect);
	}
}

/* --- accept: too much refuses the connection. --- */

static void check_accept(const struct limits *limit, unsigned int len)
{
	struct pair pair = request_pair(limit);
	struct polycm_conn_param param = data_param(len);
	bool ud = limit->ps == RDMA_PS_UDP;

	assert_int_equal(world_call(pair.server, accept, &param), 0);
	world_run(LATENCY);
	check_data(world_expect(pair.client, ud ? RDMA_CM_EVENT_ESTABLISHED
						: RDMA_CM_EVENT_CONNECT_RESPONSE, 0),
		   len, limit->accept);
	world_end(&pair);
	world_run_ms(1);
}

static void check_accept_over(const struct limits *limit, unsigned int len)
{
	struct pair pair = request_pair(limit);
	struct polycm_conn_param param = data_param(len);
	uint8_t none[148] = { 0 };
	const struct world_event *seen;
	bool ud = limit->ps == RDMA_PS_UDP;

	assert_int_equal(world_call(pair.server, accept, &param), -EINVAL);
	world_run(LATENCY);
	seen = ud ? world_expect(pair.client, RDMA_CM_EVENT_UNREACHABLE, 2)
		  : world_expect(pair.client, RDMA_CM_EVENT_REJECTED, 28);
	assert_memory_equal(seen->private_data, none, sizeof(none));
	assert_int_equal(world_state(pair.server), IBCM_IDLE);
	/* There is nothing left to accept. */
	param = data_param(1);
	assert_int_equal(world_call(pair.server, accept, &param), -EINVAL);
	world_run_ms(1);
	world_expect_none(pair.client);
	world_expect_none(pair.server);
	world_end(&pair);
	world_run_ms(1);
}

static void test_accept(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(limits); i++) {
		check_accept(&limits[i], 0);
		check_accept(&limits[i], 1);
		check_accept(&limits[i], limits[i].accept - 1);
		check_accept(&limits[i], limits[i].accept);
		for (unsigned int j = 0; j < OVERS; j++)
			check_accept_over(&limits[i], over(limits[i].accept, j));
	}
}

/* --- reject: too much is harmless, the call may be repeated. --- */

static void check_reject(const struct limits *limit, unsigned int len)
{
	struct pair pair = request_pair(limit);
	bool ud = limit->ps == RDMA_PS_UDP;

	world_forget();
	for (unsigned int i = 0; i < OVERS; i++)
		assert_int_equal(world_call(pair.server, reject, pattern,
					    (uint8_t)over(limit->reject, i), 0), -EINVAL);
	world_run_ms(1);
	assert_uint_equal(world.num_mads, 0);
	assert_int_equal(world_state(pair.server), ud ? IBCM_SIDR_REQ_RCVD : IBCM_MRA_REQ_SENT);

	assert_int_equal(world_call(pair.server, reject, len ? pattern : NULL, (uint8_t)len, 0), 0);
	world_run(LATENCY);
	check_data(ud ? world_expect(pair.client, RDMA_CM_EVENT_UNREACHABLE, 2)
		      : world_expect(pair.client, RDMA_CM_EVENT_REJECTED, 28),
		   len, limit->reject);
	world_end(&pair);
	world_run_ms(1);
}

static void test_reject(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(limits); i++) {
		check_reject(&limits[i], 0);
		check_reject(&limits[i], 1);
		check_reject(&limits[i], limits[i].reject - 1);
		check_reject(&limits[i], limits[i].reject);
	}
}

/* A length without data sends nothing. */
static void test_reject_no_data(void **state)
{
	struct pair pair = request_pair(&limits[0]);

	(void)state;
	assert_int_equal(world_call(pair.server, reject, NULL, 200, 0), 0);
	world_run(LATENCY);
	check_data(world_expect(pair.client, RDMA_CM_EVENT_REJECTED, 28), 0, 148);
	world_end(&pair);
	world_run_ms(1);
}

/* --- The rules decide, but a vendor's cannot make a message longer than it is. --- */

static void with_rules(struct polycm_transport *rules)
{
	world.client_device->rules = rules;
	world.server_device->rules = rules;
}

static void test_rules_decide(void **state)
{
	static struct polycm_transport rules;
	struct polycm_id *listener = world_listen(RDMA_PS_TCP), *client;
	struct polycm_conn_param param;
	const struct world_event *seen;

	(void)state;
	rules = *world.client_device->rules;
	rules.limit[POLYCM_KIND_RC][POLYCM_MSG_CONNECT] = 20;
	rules.reported[POLYCM_KIND_RC][POLYCM_MSG_CONNECT] = 30;
	rules.max_retry_count = 5;
	rules.max_rnr_retry_count = 2;
	rules.cm_response_timeout = 12;
	rules.max_cm_retries = 3;
	with_rules(&rules);
	client = world_route(RDMA_PS_TCP, PORT);
	param = data_param(21);
	assert_int_equal(world_call(client, connect, &param), -EINVAL);
	param = data_param(20);
	assert_int_equal(world_call(client, connect, &param), 0);
	world_run(LATENCY);
	seen = world_expect(listener, RDMA_CM_EVENT_CONNECT_REQUEST, 0);
	check_data(seen, 20, 30);
	assert_uint_equal(seen->event.param.conn.retry_count, 5);
	assert_uint_equal(seen->event.param.conn.rnr_retry_count, 2);
	/* 2^(12-8) ms for the answer, 2 * 256 ms for the way, three repetitions. */
	world_lose(CM_MRA, WORLD_ALL);
	world_run_ms(4 * (16 + 512) - 1);
	world_expect_none(client);
	assert_uint_equal(world_count(CM_REQ), 4);
	world_destroy(seen->event.child);
	world_run_ms(1);
	world_expect(client, RDMA_CM_EVENT_REJECTED, 28);
	world_destroy(client);
	world_destroy(listener);
	world_run_ms(1);
}

static void test_excessive_rules(void **state)
{
	static struct polycm_transport rules;
	struct pair pair;
	struct polycm_conn_param param;

	(void)state;
	rules = *world.client_device->rules;
	for (int kind = 0; kind < POLYCM_KINDS; kind++)
		for (int msg = 0; msg < POLYCM_MSGS; msg++)
			rules.limit[kind][msg] = rules.reported[kind][msg] = UINT16_MAX;
	with_rules(&rules);
	pair.listener = world_listen(RDMA_PS_TCP);
	pair.client = world_route(RDMA_PS_TCP, PORT);
	param = data_param(57);
	assert_int_equal(world_call(pair.client, connect, &param), -EINVAL);
	param = data_param(56);
	assert_int_equal(world_call(pair.client, connect, &param), 0);
	world_run(LATENCY);
	pair.server = world_child(pair.listener);
	assert_int_equal(world_call(pair.server, reject, pattern, 149, 0), -EINVAL);
	param = data_param(197);
	assert_int_equal(world_call(pair.server, accept, &param), -EINVAL);
	world_run(LATENCY);
	check_data(world_expect(pair.client, RDMA_CM_EVENT_REJECTED, 28), 0, 148);
	world_end(&pair);
	world_run_ms(1);
}

#define ROCE(test) cmocka_unit_test_setup_teardown(test, world_open_roce, world_close)
#define IB(test) { #test " ib", test, world_open_ib, world_close, NULL }

int main(void)
{
	const struct CMUnitTest tests[] = {
		ROCE(test_connect),
		IB(test_connect),
		ROCE(test_accept),
		IB(test_accept),
		ROCE(test_reject),
		IB(test_reject),
		ROCE(test_reject_no_data),
		ROCE(test_rules_decide),
		ROCE(test_excessive_rules),
	};

	return cmocka_run_group_tests(tests, fill_pattern, NULL);
}
