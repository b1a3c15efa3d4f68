/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How many commands a connection costs: of each kind no more than librdmacm
 * gives, which has one for each call, two queries for an address, one for a
 * route, three for a request, and four times INIT_QP_ATTR for a QP.
 */
#include "kernel_stand_in_scene.h"

#define CMD(name) RDMA_USER_CM_CMD_##name

/* What librdmacm needs, QUERY_ROUTE and QUERY taken together as queries. */
struct budget {
	unsigned int calls[STAND_IN_COMMANDS];
	unsigned int queries;
};

static void begin(void)
{
	memset(stand_in.calls, 0, sizeof(stand_in.calls));
}

static void check(const struct budget *budget, const char *what)
{
	unsigned int queries = 0, bad = 0;

	for (unsigned int i = 0; i < STAND_IN_COMMANDS; i++) {
		if (i == CMD(QUERY_ROUTE) || i == CMD(QUERY)) {
			queries += stand_in.calls[i];
			continue;
		}
		if (stand_in.calls[i] <= budget->calls[i])
			continue;
		print_message("%s: %u %s, librdmacm has %u\n", what, stand_in.calls[i],
			      stand_in_command_name(i), budget->calls[i]);
		bad++;
	}
	print_message("%s: %u queries of %u\n", what, queries, budget->queries);
	assert_true(queries <= budget->queries);
	assert_int_equal(bad, 0);
	begin();
}

static const struct { const char *dst; bool iwarp; } ends[] = {
	{ "10.0.1.1", false }, { "20.0.0.1", false }, { "30.0.0.1", true },
};

static void listeners_cost_no_more(void **state)
{
	static const struct budget budget = {
		.calls = {
			[CMD(CREATE_ID)] = 1, [CMD(BIND_IP)] = 1, [CMD(LISTEN)] = 1,
			[CMD(DESTROY_ID)] = 1,
		},
		.queries = 2,
	};
	static const char *const addrs[] = { "0.0.0.0", "10.0.1.1", "30.0.0.1" };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(addrs); i++) {
		begin();
		scene_destroy(scene_listener(RDMA_PS_TCP, addrs[i]));
		check(&budget, addrs[i]);
	}
}

static void active_ends_cost_no_more(void **state)
{
	static const struct budget budgets[] = {
		{ .calls = {
			[CMD(CREATE_ID)] = 1, [CMD(RESOLVE_IP)] = 1, [CMD(RESOLVE_ROUTE)] = 1,
			[CMD(INIT_QP_ATTR)] = 4, [CMD(CONNECT)] = 1, [CMD(ACCEPT)] = 1,
			[CMD(DISCONNECT)] = 1, [CMD(DESTROY_ID)] = 1,
			/* The two of resolving, ESTABLISHED, DISCONNECTED, TIMEWAIT_EXIT. */
			[CMD(GET_EVENT)] = 5 },
		  .queries = 3 },
		{ .calls = {
			[CMD(CREATE_ID)] = 1, [CMD(RESOLVE_IP)] = 1, [CMD(RESOLVE_ROUTE)] = 1,
			[CMD(INIT_QP_ATTR)] = 1, [CMD(CONNECT)] = 1, [CMD(DISCONNECT)] = 1,
			[CMD(DESTROY_ID)] = 1, [CMD(GET_EVENT)] = 4 },
		  .queries = 3 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(ends); i++) {
		struct rdma_event_channel *other = rdma_create_event_channel(), *mine = channel;
		struct rdma_cm_id *listener = scene_listener(RDMA_PS_TCP, "0.0.0.0"), *child, *id;
		unsigned int before[STAND_IN_COMMANDS];

		/* The passive end is on a channel of its own, and is not counted. */
		channel = other;
		begin();
		id = scene_routed(RDMA_PS_TCP, ends[i].dst);
		create_qp(id);
		assert_int_equal(rdma_connect(id, NULL), 0);
		channel = mine;
		memcpy(before, stand_in.calls, sizeof(before));
		child = scene_request(listener);
		create_qp(child);
		assert_int_equal(rdma_accept(child, NULL), 0);
		memcpy(stand_in.calls, before, sizeof(before));
		channel = other;
		expect_event(channel, RDMA_CM_EVENT_ESTABLISHED, 0);
		assert_int_equal(rdma_disconnect(id), 0);
		memcpy(before, stand_in.calls, sizeof(before));
		assert_int_equal(rdma_disconnect(child), 0);
		memcpy(stand_in.calls, before, sizeof(before));
		expect_event(channel, RDMA_CM_EVENT_DISCONNECTED, 0);
		stand_in_time_passes();
		if (!ends[i].iwarp)
			expect_event(channel, RDMA_CM_EVENT_TIMEWAIT_EXIT, 0);
		scene_destroy(id);
		check(&budgets[ends[i].iwarp], ends[i].dst);

		channel = mine;
		assert_int_equal(scene_drain(), ends[i].iwarp ? 2 : 3);
		scene_destroy(child);
		scene_destroy(listener);
		rdma_destroy_event_channel(other);
	}
}

static void passive_ends_cost_no_more(void **state)
{
	static const struct budget budgets[] = {
		{ .calls = {
			[CMD(INIT_QP_ATTR)] = 4, [CMD(ACCEPT)] = 1, [CMD(DISCONNECT)] = 1,
			[CMD(DESTROY_ID)] = 1,
			/* CONNECT_REQUEST, ESTABLISHED, DISCONNECTED, TIMEWAIT_EXIT. */
			[CMD(GET_EVENT)] = 4 },
		  .queries = 3 },
		{ .calls = {
			[CMD(INIT_QP_ATTR)] = 4, [CMD(ACCEPT)] = 1, [CMD(DISCONNECT)] = 1,
			[CMD(DESTROY_ID)] = 1, [CMD(GET_EVENT)] = 3 },
		  .queries = 3 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(ends); i++) {
		struct rdma_event_channel *other = rdma_create_event_channel(), *mine = channel;
		struct rdma_cm_id *listener = scene_listener(RDMA_PS_TCP, "0.0.0.0"), *child, *id;
		unsigned int before[STAND_IN_COMMANDS];

		channel = other;
		id = scene_routed(RDMA_PS_TCP, ends[i].dst);
		create_qp(id);
		assert_int_equal(rdma_connect(id, NULL), 0);
		channel = mine;
		begin();
		child = scene_request(listener);
		create_qp(child);
		assert_int_equal(rdma_accept(child, NULL), 0);
		memcpy(before, stand_in.calls, sizeof(before));
		channel = other;
		expect_event(channel, RDMA_CM_EVENT_ESTABLISHED, 0);
		assert_int_equal(rdma_disconnect(id), 0);
		memcpy(stand_in.calls, before, sizeof(before));
		channel = mine;
		expect_event(channel, RDMA_CM_EVENT_ESTABLISHED, 0);
		expect_event(channel, RDMA_CM_EVENT_DISCONNECTED, 0);
		assert_int_equal(rdma_disconnect(child), 0);
		stand_in_time_passes();
		if (!ends[i].iwarp)
			expect_event(channel, RDMA_CM_EVENT_TIMEWAIT_EXIT, 0);
		scene_destroy(child);
		check(&budgets[ends[i].iwarp], ends[i].dst);

		channel = other;
		assert_int_equal(scene_drain(), ends[i].iwarp ? 1 : 2);
		scene_destroy(id);
		channel = mine;
		scene_destroy(listener);
		rdma_destroy_event_channel(other);
	}
}

/* The number of devices asked for has no part in it. */
static void nothing_is_asked_twice(void **state)
{
	struct rdma_cm_id *id = scene_id(RDMA_PS_TCP);

	(void)state;
	begin();
	assert_int_equal(rdma_bind_addr(id, addr4("10.0.1.1", PORT)), 0);
	assert_int_equal(stand_in.calls[CMD(QUERY_ROUTE)], 1);
	assert_int_equal(rdma_resolve_addr(id, NULL, addr4("10.0.1.1", PORT), 10), 0);
	expect_event(channel, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
	assert_int_equal(stand_in.calls[CMD(QUERY_ROUTE)], 2);
	assert_int_equal(rdma_resolve_route(id, 10), 0);
	expect_event(channel, RDMA_CM_EVENT_ROUTE_RESOLVED, 0);
	assert_int_equal(stand_in.calls[CMD(QUERY_ROUTE)], 3);
	assert_int_equal(stand_in.calls[CMD(QUERY)], 0);
	assert_int_equal(stand_in.calls[CMD(GET_EVENT)], 2);
	scene_destroy(id);
	assert_int_equal(stand_in.calls[CMD(DESTROY_ID)], 1);
}

/* What a REP says of reads decides what INIT is then; Ethernet is asked for each once. */
static void init_after_a_reply_is_asked_for_once(void **state)
{
	static const unsigned int write = IBV_ACCESS_REMOTE_WRITE,
		all = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
	static const struct { const char *dst; uint8_t depth; unsigned int asked, flags; } cases[] = {
		{ "20.0.0.1", 1, 3, all }, { "20.0.0.1", 2, 2, all }, { "20.0.0.1", 0, 3, write },
		{ "20.0.0.1", 0, 2, write }, { "20.0.0.1", 1, 2, all },
		{ "10.0.1.1", 1, 3, all }, { "10.0.1.1", 1, 3, all },
	};
	struct rdma_conn_param param = { .responder_resources = 1 };
	struct rdma_event_channel *other = rdma_create_event_channel(), *mine = channel;
	struct rdma_cm_id *listener = scene_listener(RDMA_PS_TCP, "0.0.0.0"), *child, *id;
	struct polycm_device *device;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		print_message("case %zu\n", i);
		channel = other;
		id = scene_routed(RDMA_PS_TCP, cases[i].dst);
		device = ((struct polycm_id *)(void *)id)->device;
		if (!i)
			memset(device->qp_init, 0, sizeof(device->qp_init));
		create_qp(id);
		assert_int_equal(rdma_connect(id, NULL), 0);
		channel = mine;
		child = scene_request(listener);
		create_qp(child);
		param.initiator_depth = cases[i].depth;
		assert_int_equal(rdma_accept(child, &param), 0);

		begin();
		expect_event(other, RDMA_CM_EVENT_ESTABLISHED, 0);
		assert_int_equal(stand_in.calls[CMD(INIT_QP_ATTR)], cases[i].asked);
		assert_int_equal(stand_in_rtr.qp_access_flags, cases[i].flags);
		expect_event(mine, RDMA_CM_EVENT_ESTABLISHED, 0);
		scene_destroy(id);
		scene_destroy(child);
	}
	scene_destroy(listener);
	rdma_destroy_event_channel(other);
}

/* A channel is one open file, whatever providers there are. */
static void channels_are_one_file(void **state)
{
	struct rdma_event_channel *another;
	unsigned int opens = stand_in.opens;

	(void)state;
	assert_int_equal(stand_in.files, 1);
	another = rdma_create_event_channel();
	assert_int_equal(stand_in.files, 2);
	scene_destroy(scene_id(RDMA_PS_TCP));
	scene_destroy(scene_routed(RDMA_PS_TCP, "20.0.0.1"));
	scene_destroy(scene_routed(RDMA_PS_TCP, "30.0.0.1"));
	assert_int_equal(stand_in.files, 2);
	assert_int_equal(stand_in.opens, opens + 1);
	rdma_destroy_event_channel(another);
}

static int start(void **state)
{
	(void)state;
	return scene_start(SCENE_ALL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		KERNEL_TEST(listeners_cost_no_more),
		KERNEL_TEST(active_ends_cost_no_more),
		KERNEL_TEST(passive_ends_cost_no_more),
		KERNEL_TEST(nothing_is_asked_twice),
		KERNEL_TEST(init_after_a_reply_is_asked_for_once),
		KERNEL_TEST(channels_are_one_file),
	};

	return cmocka_run_group_tests(tests, start, NULL);
}
