/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Commands that the kernel refuses: the call returns the kernel's errno, the
 * id is as it was before, and the same call can be made again.
 */
#include "kernel_stand_in_scene.h"

#define CMD(name) RDMA_USER_CM_CMD_##name

/* What a case uses next to its id; ended after it. */
static struct rdma_cm_id *others[2];
static struct rdma_event_channel *second_channel;

/* ------------------------------------------------------------------------
 * Ids on the way.
 */

static struct rdma_cm_id *fresh(void)
{
	return scene_id(RDMA_PS_TCP);
}

static struct rdma_cm_id *bound(void)
{
	struct rdma_cm_id *id = fresh();

	assert_int_equal(rdma_bind_addr(id, addr4("10.0.1.1", PORT)), 0);
	return id;
}

static struct rdma_cm_id *resolved(void)
{
	return scene_resolved(RDMA_PS_TCP, "10.0.1.1");
}

static struct rdma_cm_id *routed(void)
{
	return scene_routed(RDMA_PS_TCP, "10.0.1.1");
}

static struct rdma_cm_id *datagram(void)
{
	struct rdma_cm_id *id = scene_id(RDMA_PS_UDP);

	assert_int_equal(rdma_bind_addr(id, addr4("10.0.1.1", PORT)), 0);
	return id;
}

static struct rdma_cm_id *member(void)
{
	struct rdma_cm_id *id = datagram();

	assert_int_equal(rdma_join_multicast(id, addr4("239.1.2.3", 0), NULL), 0);
	expect_event(channel, RDMA_CM_EVENT_MULTICAST_JOIN, 0);
	return id;
}

static struct rdma_conn_param external = { .qp_num = 7 };

static struct rdma_cm_id *requested(void)
{
	others[0] = scene_listener(RDMA_PS_TCP, "0.0.0.0");
	others[1] = routed();
	assert_int_equal(rdma_connect(others[1], &external), 0);
	return scene_request(others[0]);
}

static struct rdma_cm_id *accepted(void)
{
	struct rdma_cm_id *id = requested();

	assert_int_equal(rdma_accept(id, &external), 0);
	expect_event(channel, RDMA_CM_EVENT_CONNECT_RESPONSE, 0);
	return id;
}

/* The active end, which has the REP. */
static struct rdma_cm_id *responded(void)
{
	struct rdma_cm_id *passive = accepted(), *active = others[1];

	others[1] = passive;
	return active;
}

static struct rdma_cm_id *connected(void)
{
	struct rdma_cm_id *id = responded();

	assert_int_equal(rdma_establish(id), 0);
	expect_event(channel, RDMA_CM_EVENT_ESTABLISHED, 0);
	return id;
}

static struct rdma_cm_id *two_channels(void)
{
	second_channel = rdma_create_event_channel();
	return bound();
}

/* ------------------------------------------------------------------------
 * Calls.
 */

static int do_create(struct rdma_cm_id *id)
{
	struct rdma_cm_id *another = NULL;
	int r = rdma_create_id(channel, &another, NULL, RDMA_PS_TCP);

	(void)id;
	if (!r)
		others[0] = another;
	return r;
}

static int do_bind(struct rdma_cm_id *id)
{
	return rdma_bind_addr(id, addr4("10.0.1.1", PORT));
}

static int do_listen(struct rdma_cm_id *id)
{
	return rdma_listen(id, 1);
}

static int do_resolve_addr(struct rdma_cm_id *id)
{
	return rdma_resolve_addr(id, NULL, addr4("10.0.1.1", PORT), 10);
}

static int do_resolve_route(struct rdma_cm_id *id)
{
	return rdma_resolve_route(id, 10);
}

static int do_connect(struct rdma_cm_id *id)
{
	return rdma_connect(id, &external);
}

static int do_accept(struct rdma_cm_id *id)
{
	return rdma_accept(id, &external);
}

static int do_reject(struct rdma_cm_id *id)
{
	return rdma_reject(id, "no", 3);
}

static int do_notify(struct rdma_cm_id *id)
{
	return rdma_notify(id, IBV_EVENT_COMM_EST);
}

static int do_option(struct rdma_cm_id *id)
{
	uint8_t tos = 4;

	return rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, &tos, 1);
}

static int do_attr(struct rdma_cm_id *id)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT };
	int mask;

	return rdma_init_qp_attr(id, &attr, &mask);
}

static int do_create_qp(struct rdma_cm_id *id)
{
	struct ibv_qp_init_attr attr = { .qp_type = IBV_QPT_RC };

	return rdma_create_qp(id, NULL, &attr);
}

static int do_join(struct rdma_cm_id *id)
{
	return rdma_join_multicast(id, addr4("239.1.2.3", 0), NULL);
}

static int do_leave(struct rdma_cm_id *id)
{
	return rdma_leave_multicast(id, addr4("239.1.2.3", 0));
}

static int do_migrate(struct rdma_cm_id *id)
{
	return rdma_migrate_id(id, second_channel);
}

static const struct error_case {
	const char *name;
	unsigned int command;
	struct rdma_cm_id *(*prepare)(void);
	int (*call)(struct rdma_cm_id *id);
	bool once;		/* does not work when repeated */
} cases[] = {
	{ "create", CMD(CREATE_ID), fresh, do_create, false },
	{ "bind", CMD(BIND_IP), fresh, do_bind, false },
	{ "bind, then asked", CMD(QUERY_ROUTE), fresh, do_bind, false },
	{ "listen", CMD(LISTEN), bound, do_listen, false },
	{ "listen, not bound", CMD(LISTEN), fresh, do_listen, false },
	{ "resolve_addr", CMD(RESOLVE_IP), fresh, do_resolve_addr, false },
	{ "resolve_addr, bound", CMD(RESOLVE_IP), bound, do_resolve_addr, false },
	{ "resolve_route", CMD(RESOLVE_ROUTE), resolved, do_resolve_route, false },
	{ "connect", CMD(CONNECT), routed, do_connect, false },
	{ "accept", CMD(ACCEPT), requested, do_accept, false },
	{ "reject", CMD(REJECT), requested, do_reject, false },
	{ "establish", CMD(ACCEPT), responded, rdma_establish, false },
	{ "notify", CMD(NOTIFY), accepted, do_notify, false },
	{ "disconnect", CMD(DISCONNECT), connected, rdma_disconnect, false },
	{ "set_option", CMD(SET_OPTION), fresh, do_option, false },
	{ "init_qp_attr", CMD(INIT_QP_ATTR), routed, do_attr, false },
	{ "create_qp", CMD(INIT_QP_ATTR), routed, do_create_qp, false },
	{ "join_multicast", CMD(JOIN_IP_MCAST), datagram, do_join, false },
	{ "leave_multicast", CMD(LEAVE_MCAST), member, do_leave, true },
	{ "migrate_id", CMD(MIGRATE_ID), two_channels, do_migrate, false },
};

static void finish(struct rdma_cm_id *id)
{
	if (id->channel == channel || id->channel == second_channel)
		scene_destroy(id);
	for (size_t i = 0; i < ARRAY_SIZE(others); i++) {
		scene_drain();
		if (others[i])
			scene_destroy(others[i]);
		others[i] = NULL;
	}
	scene_drain();
	if (second_channel)
		rdma_destroy_event_channel(second_channel);
	second_channel = NULL;
	assert_int_equal(stand_in.ids, 0);
	assert_int_equal(stand_in.groups, 0);
	assert_int_equal(stand_in.files, 1);
}

static void errors_are_the_calls_errno(void **state)
{
	static const int errors[] = { EINVAL, ENOMEM, EIO, ENXIO, EAGAIN };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases) * ARRAY_SIZE(errors); i++) {
		const struct error_case *c = &cases[i / ARRAY_SIZE(errors)];
		int error = errors[i % ARRAY_SIZE(errors)];
		struct rdma_cm_id *id = c->prepare();
		unsigned int calls = stand_in.calls[c->command];

		print_message("%s: %s\n", c->name, strerror(error));
		stand_in.fault[c->command].error = error;
		assert_errno(c->call(id), error);
		assert_int_equal(stand_in.calls[c->command], calls + 1);
		assert_int_equal(stand_in.fault[c->command].error, 0);
		expect_no_event(channel);
		if (!c->once)
			assert_int_equal(c->call(id), 0);
		finish(id);
	}
}

/* Done, and yet not all of the command was taken. */
static void short_results_are_errors(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct rdma_cm_id *id = cases[i].prepare();

		print_message("%s\n", cases[i].name);
		stand_in.fault[cases[i].command].short_result = true;
		assert_errno(cases[i].call(id), ENODATA);
		finish(id);
	}
}

/* What the program called is done, or is said not to be; never half. */
static void answers_that_do_not_come_do_no_harm(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct rdma_cm_id *id;

		/* Attributes of nothing are no case for a device. */
		if (cases[i].call == do_create_qp || cases[i].command == CMD(CREATE_ID) ||
		    cases[i].command == CMD(JOIN_IP_MCAST))
			continue;
		id = cases[i].prepare();
		print_message("%s\n", cases[i].name);
		stand_in.fault[cases[i].command].mute = true;
		(void)cases[i].call(id);
		finish(id);
	}
}

/* The number of the new id is not known: it ends with the channel, at the latest. */
static void ids_without_a_number_are_not_made(void **state)
{
	struct rdma_cm_id *id;

	(void)state;
	stand_in.fault[CMD(CREATE_ID)].mute = true;
	assert_errno(rdma_create_id(channel, &id, NULL, RDMA_PS_TCP), ENODATA);
	assert_int_equal(stand_in.ids, 1);
	rdma_destroy_event_channel(channel);
	channel = NULL;
	assert_int_equal(stand_in.ids, 0);
}

/* An id that the kernel does not end is ended all the same. */
static void ids_can_always_be_destroyed(void **state)
{
	static const struct stand_in_fault faults[] = {
		{ .error = EINVAL }, { .error = EIO }, { .error = ENXIO }, { .short_result = true },
		{ .mute = true },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(faults); i++) {
		struct rdma_cm_id *id = connected();

		print_message("case %zu\n", i);
		stand_in.fault[CMD(DESTROY_ID)] = faults[i];
		assert_int_equal(rdma_destroy_id(id), 0);
		for (size_t j = 0; j < ARRAY_SIZE(others); j++) {
			scene_drain();
			scene_destroy(others[j]);
			others[j] = NULL;
		}
		rdma_destroy_event_channel(channel);
		assert_int_equal(stand_in.ids, 0);
		channel = rdma_create_event_channel();
	}
}

/* ------------------------------------------------------------------------
 * Queries behind events, and the events themselves.
 */

static void queries_that_fail_make_errors_of_events(void **state)
{
	struct rdma_cm_id *id = fresh(), *child;

	(void)state;
	stand_in.fault[CMD(QUERY_ROUTE)] = (struct stand_in_fault){ .error = EIO, .always = true };
	assert_int_equal(do_resolve_addr(id), 0);
	expect_event(channel, RDMA_CM_EVENT_ADDR_ERROR, -1);
	stand_in.fault[CMD(QUERY_ROUTE)] = (struct stand_in_fault){ 0 };
	scene_destroy(id);

	id = resolved();
	stand_in.fault[CMD(QUERY_ROUTE)] = (struct stand_in_fault){ .error = EIO, .always = true };
	assert_int_equal(do_resolve_route(id), 0);
	expect_event(channel, RDMA_CM_EVENT_ROUTE_ERROR, -1);
	stand_in.fault[CMD(QUERY_ROUTE)] = (struct stand_in_fault){ 0 };
	scene_destroy(id);

	/* A request that nothing is known of is refused, and the next one is not. */
	others[0] = scene_listener(RDMA_PS_TCP, "0.0.0.0");
	others[1] = routed();
	assert_int_equal(do_connect(others[1]), 0);
	stand_in.fault[CMD(QUERY_ROUTE)] = (struct stand_in_fault){ .error = EIO, .always = true };
	expect_event(channel, RDMA_CM_EVENT_REJECTED, 28);
	stand_in.fault[CMD(QUERY_ROUTE)] = (struct stand_in_fault){ 0 };
	id = routed();
	assert_int_equal(do_connect(id), 0);
	child = scene_request(others[0]);
	scene_destroy(child);
	expect_event(channel, RDMA_CM_EVENT_REJECTED, 28);
	finish(id);
}

static void fetching_fails(void **state)
{
	static const int errors[] = { EINTR, ENOMEM, EIO };
	struct rdma_cm_id *id = fresh();
	struct rdma_cm_event *event;

	(void)state;
	assert_int_equal(do_resolve_addr(id), 0);
	for (size_t i = 0; i < ARRAY_SIZE(errors); i++) {
		stand_in.fault[CMD(GET_EVENT)].error = errors[i];
		assert_errno(rdma_get_cm_event(channel, &event), errors[i]);
	}
	expect_event(channel, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
	/* Taken from the kernel and then lost by it: no more than an error. */
	assert_int_equal(do_resolve_route(id), 0);
	stand_in.fault[CMD(GET_EVENT)] =
		(struct stand_in_fault){ .mute = true, .short_result = true };
	assert_errno(rdma_get_cm_event(channel, &event), ENODATA);
	scene_destroy(id);
}

/* The host cannot list its devices for a while: those that were there stay. */
static void listing_devices_fails(void **state)
{
	int num = -1;

	(void)state;
	stand_in.devices_error = -EIO;
	rdma_free_devices(rdma_get_devices(&num));
	assert_int_equal(num, 4);
	scene_destroy(routed());
	stand_in.devices_error = 0;
}

static int start(void **state)
{
	(void)state;
	return scene_start(SCENE_ALL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		KERNEL_TEST(errors_are_the_calls_errno),
		KERNEL_TEST(short_results_are_errors),
		KERNEL_TEST(answers_that_do_not_come_do_no_harm),
		KERNEL_TEST(ids_without_a_number_are_not_made),
		KERNEL_TEST(ids_can_always_be_destroyed),
		KERNEL_TEST(queries_that_fail_make_errors_of_events),
		KERNEL_TEST(fetching_fails),
		KERNEL_TEST(listing_devices_fails),
	};

	return cmocka_run_group_tests(tests, start, NULL);
}
