/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Ids while several providers have devices: the first address decides, options
 * follow, a wildcard listener listens everywhere.
 */
#include "cm_fake.h"

static struct rdma_event_channel *channel;

static int open_channel(void **state)
{
	fakes_reset(state);
	channel = rdma_create_event_channel();
	return channel ? 0 : -1;
}

static int close_channel(void **state)
{
	rdma_destroy_event_channel(channel);
	return fakes_check(state);
}

#define SEVERAL_TEST(function) \
	cmocka_unit_test_setup_teardown(function, open_channel, close_channel)

static struct fake *const acme = &fakes[0], *const beta = &fakes[1];

static struct polycm_id *internal(struct rdma_cm_id *id)
{
	return (struct polycm_id *)(void *)id;
}

/* What the last bind() asked for. */
static uint16_t bound_port(const struct fake *fake)
{
	return polycm_addr_port((const struct sockaddr *)&fake->last_bind);
}

static void ids_begin_without_a_provider(void **state)
{
	struct rdma_cm_id *id = new_id(channel);

	(void)state;
	assert_null(internal(id)->module);
	assert_errno(rdma_resolve_route(id, 1), EINVAL);
	assert_errno(rdma_connect(id, NULL), EINVAL);
	assert_errno(rdma_accept(id, NULL), EINVAL);
	assert_errno(rdma_reject(id, NULL, 0), EINVAL);
	assert_errno(rdma_establish(id), EINVAL);
	assert_errno(rdma_disconnect(id), EINVAL);
	assert_errno(rdma_notify(id, IBV_EVENT_COMM_EST), EINVAL);
	assert_errno(rdma_join_multicast(id, addr4("224.0.0.1", 0), NULL), EINVAL);
	assert_int_equal(rdma_destroy_id(id), 0);
	assert_string_equal(acme->trace, "");
	assert_string_equal(beta->trace, "");
}

static void the_only_one_with_a_device_is_taken_at_once(void **state)
{
	struct rdma_cm_id *id;

	(void)state;
	acme->absent = true;
	id = new_id(channel);
	assert_ptr_equal(internal(id)->module, beta->module);
	assert_string_equal(beta->trace, "channel_open open");
	/* Errors are the provider's then, not those of a choice. */
	beta->fail[OP_BIND] = -EADDRNOTAVAIL;
	assert_errno(rdma_bind_addr(id, addr4("10.0.0.1", 1)), EADDRNOTAVAIL);
	beta->fail[OP_RESOLVE_ADDR] = -ENETUNREACH;
	assert_errno(rdma_resolve_addr(id, NULL, addr4("10.0.0.1", 1), 1), ENETUNREACH);
	assert_int_equal(rdma_destroy_id(id), 0);
}

static void addresses_choose(void **state)
{
	static const struct { const char *src, *dst; int provider, error; } cases[] = {
		{ NULL, "10.0.0.9", 0, 0 },
		{ NULL, "20.0.0.9", 1, 0 },
		{ "10.0.0.1", "10.0.0.9", 0, 0 },
		{ "20.0.0.1", "20.0.0.9", 1, 0 },
		{ NULL, "127.0.0.1", 0, 0 },
		{ NULL, "30.0.0.9", -1, ENODEV },
		{ "10.0.0.1", "20.0.0.9", -1, ENODEV },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct sockaddr *src = cases[i].src ? addr4(cases[i].src, 0) : NULL;
		struct rdma_cm_id *id = new_id(channel);

		print_message("case %zu\n", i);
		if (cases[i].error) {
			assert_errno(rdma_resolve_addr(id, src, addr4(cases[i].dst, 1), 1),
				     cases[i].error);
			assert_null(internal(id)->module);
		} else {
			struct fake *fake = &fakes[cases[i].provider];

			assert_int_equal(rdma_resolve_addr(id, src, addr4(cases[i].dst, 1), 1), 0);
			assert_ptr_equal(internal(id)->module, fake->module);
			expect_event(channel, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
			assert_ptr_equal(id->verbs, fake->device->verbs);
		}
		assert_int_equal(rdma_destroy_id(id), 0);
	}
}

static void bound_addresses_choose(void **state)
{
	struct rdma_cm_id *id = new_id(channel);

	(void)state;
	assert_errno(rdma_bind_addr(id, addr4("30.0.0.1", 7)), ENODEV);
	assert_null(internal(id)->module);

	/* Refused there: it may be tried again, elsewhere. */
	acme->fail[OP_BIND] = -EADDRINUSE;
	assert_errno(rdma_bind_addr(id, addr4("10.0.0.1", 7)), EADDRINUSE);
	assert_string_equal(acme->trace, "channel_open open bind close stop free");
	assert_null(internal(id)->module);

	assert_int_equal(rdma_bind_addr(id, addr4("20.0.0.1", 7)), 0);
	assert_string_equal(beta->trace, "channel_open open bind");
	assert_ptr_equal(id->verbs, beta->device->verbs);
	assert_int_equal(ntohs(rdma_get_src_port(id)), 7);

	/* On a device it stays there. */
	beta->fail[OP_RESOLVE_ADDR] = -EINVAL;
	assert_errno(rdma_resolve_addr(id, NULL, addr4("10.0.0.9", 1), 1), EINVAL);
	assert_string_equal(beta->trace, "channel_open open bind resolve_addr");
	assert_int_equal(rdma_destroy_id(id), 0);
}

static void wildcard_binds_move_with_their_port(void **state)
{
	static const struct {
		uint16_t port;
		const char *dst;
		int provider;
		uint16_t want;
	} cases[] = {
		{ 7000, "10.0.0.9", 0, 7000 },
		{ 7000, "20.0.0.9", 1, 7000 },
		/* A port that nobody asked for need not be the same one. */
		{ 0, "20.0.0.9", 1, 0 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct fake *fake = &fakes[cases[i].provider];
		struct rdma_cm_id *id = new_id(channel);

		print_message("case %zu\n", i);
		acme->trace[0] = '\0';
		beta->trace[0] = '\0';
		assert_int_equal(rdma_bind_addr(id, addr4("0.0.0.0", cases[i].port)), 0);
		assert_ptr_equal(internal(id)->module, acme->module);
		assert_true(rdma_get_src_port(id) != 0);
		assert_null(id->verbs);
		assert_int_equal(rdma_resolve_addr(id, NULL, addr4(cases[i].dst, 1), 1), 0);
		assert_ptr_equal(internal(id)->module, fake->module);
		if (fake == beta) {
			assert_non_null(strstr(acme->trace, "open bind close stop free"));
			assert_non_null(strstr(beta->trace, "open bind resolve_addr"));
			assert_int_equal(ntohs(bound_port(beta)), cases[i].want);
		}
		expect_event(channel, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
		if (cases[i].port)
			assert_int_equal(ntohs(rdma_get_src_port(id)), cases[i].want);
		assert_int_equal(rdma_destroy_id(id), 0);
	}
}

static void moving_fails_where_the_port_is_taken(void **state)
{
	struct rdma_cm_id *id = new_id(channel);

	(void)state;
	assert_int_equal(rdma_bind_addr(id, addr4("0.0.0.0", 7000)), 0);
	beta->fail[OP_BIND] = -EADDRINUSE;
	assert_errno(rdma_resolve_addr(id, NULL, addr4("20.0.0.9", 1), 1), EADDRINUSE);
	assert_int_equal(beta->calls[OP_RESOLVE_ADDR], 0);
	/* Back. */
	assert_int_equal(rdma_resolve_addr(id, NULL, addr4("10.0.0.9", 1), 1), 0);
	expect_event(channel, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
	assert_int_equal(rdma_destroy_id(id), 0);
}

static void failed_resolutions_may_go_elsewhere(void **state)
{
	struct rdma_cm_id *id = new_id(channel);

	(void)state;
	acme->quiet = true;
	assert_int_equal(rdma_resolve_addr(id, NULL, addr4("10.0.0.9", 1), 1), 0);
	/* Under way: the provider answers, nothing moves. */
	acme->fail[OP_RESOLVE_ADDR] = -EINVAL;
	assert_errno(rdma_resolve_addr(id, NULL, addr4("20.0.0.9", 1), 1), EINVAL);
	assert_ptr_equal(internal(id)->module, acme->module);

	assert_int_equal(post(id, RDMA_CM_EVENT_ADDR_ERROR, -ETIMEDOUT), 0);
	assert_int_equal(rdma_resolve_addr(id, NULL, addr4("20.0.0.9", 1), 1), 0);
	assert_ptr_equal(internal(id)->module, beta->module);
	/* What was posted before is still told. */
	expect_event(channel, RDMA_CM_EVENT_ADDR_ERROR, -ETIMEDOUT);
	expect_event(channel, RDMA_CM_EVENT_ADDR_RESOLVED, 0);

	/* Resolved is final, retrieved or not. */
	beta->fail[OP_RESOLVE_ADDR] = -EINVAL;
	assert_errno(rdma_resolve_addr(id, NULL, addr4("10.0.0.9", 1), 1), EINVAL);
	assert_ptr_equal(internal(id)->module, beta->module);
	assert_int_equal(rdma_destroy_id(id), 0);
}

static void options_follow(void **state)
{
	uint8_t tos = 5, timeout = 9;
	int reuse = 1;
	struct rdma_cm_id *id = new_id(channel);

	(void)state;
	assert_int_equal(rdma_set_option(id, 0, RDMA_OPTION_ID_TOS, &tos, 1), 0);
	assert_int_equal(rdma_set_option(id, 0, RDMA_OPTION_ID_REUSEADDR, &reuse, 4), 0);
	assert_int_equal(acme->calls[OP_SET_OPTION] + beta->calls[OP_SET_OPTION], 0);
	assert_int_equal(rdma_bind_addr(id, addr4("0.0.0.0", 0)), 0);
	assert_string_equal(acme->trace, "channel_open open set_option set_option bind");
	assert_int_equal(rdma_set_option(id, 0, RDMA_OPTION_ID_ACK_TIMEOUT, &timeout, 1), 0);
	assert_int_equal(acme->option_value, 9);
	assert_int_equal(rdma_resolve_addr(id, NULL, addr4("20.0.0.9", 1), 1), 0);
	assert_string_equal(beta->trace, "channel_open open set_option set_option set_option bind "
					 "resolve_addr");
	assert_int_equal(beta->option_value, 9);

	/* From now on they are its device's alone. */
	assert_int_equal(rdma_set_option(id, 0, RDMA_OPTION_ID_TOS, &tos, 1), 0);
	assert_int_equal(beta->calls[OP_SET_OPTION], 4);
	assert_int_equal(rdma_destroy_id(id), 0);
}

static void an_option_that_is_refused_is_told_when_it_is(void **state)
{
	uint8_t tos = 5;
	struct rdma_cm_id *id = new_id(channel);

	(void)state;
	assert_int_equal(rdma_set_option(id, 0, RDMA_OPTION_ID_TOS, &tos, 1), 0);
	beta->fail[OP_SET_OPTION] = -EINVAL;
	assert_errno(rdma_resolve_addr(id, NULL, addr4("20.0.0.9", 1), 1), EINVAL);
	assert_string_equal(beta->trace, "channel_open open set_option close stop free");
	assert_int_equal(rdma_resolve_addr(id, NULL, addr4("10.0.0.9", 1), 1), 0);
	assert_int_equal(rdma_destroy_id(id), 0);
}

static void options_are_checked_before_there_is_a_provider(void **state)
{
	static const struct {
		int level, name;
		size_t len;
		enum rdma_port_space ps;
		int error;
	} cases[] = {
		{ RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, 1, RDMA_PS_TCP, 0 },
		{ RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, 4, RDMA_PS_TCP, EINVAL },
		{ RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR, 4, RDMA_PS_TCP, 0 },
		{ RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR, 1, RDMA_PS_TCP, EINVAL },
		{ RDMA_OPTION_ID, RDMA_OPTION_ID_AFONLY, 4, RDMA_PS_TCP, 0 },
		{ RDMA_OPTION_ID, RDMA_OPTION_ID_AFONLY, 0, RDMA_PS_TCP, EINVAL },
		{ RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, 1, RDMA_PS_TCP, 0 },
		{ RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, 1, RDMA_PS_UDP, EINVAL },
		{ RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, 2, RDMA_PS_TCP, EINVAL },
		{ RDMA_OPTION_ID, 4, 4, RDMA_PS_TCP, ENOSYS },
		{ RDMA_OPTION_IB, RDMA_OPTION_IB_PATH, 72, RDMA_PS_TCP, EINVAL },
		{ RDMA_OPTION_IB, 2, 4, RDMA_PS_TCP, ENOSYS },
		{ 2, 0, 1, RDMA_PS_TCP, ENOSYS },
	};
	uint8_t value[72] = { 0 };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct rdma_cm_id *id;
		int ret;

		print_message("case %zu\n", i);
		assert_int_equal(rdma_create_id(channel, &id, NULL, cases[i].ps), 0);
		errno = 0;
		ret = rdma_set_option(id, cases[i].level, cases[i].name, value, cases[i].len);
		assert_int_equal(ret, cases[i].error ? -1 : 0);
		assert_int_equal(errno, cases[i].error);
		assert_int_equal(rdma_destroy_id(id), 0);
	}
}

static void wildcard_listeners_listen_everywhere(void **state)
{
	struct rdma_cm_id *listener = new_id(channel);
	struct polycm_id *shadow;
	struct rdma_cm_event *event;

	(void)state;
	assert_int_equal(rdma_bind_addr(listener, addr4("0.0.0.0", 0)), 0);
	assert_int_equal(rdma_listen(listener, 3), 0);
	assert_string_equal(acme->trace, "channel_open open bind listen");
	assert_string_equal(beta->trace, "channel_open open bind listen");
	assert_int_equal(acme->backlog, 3);
	assert_int_equal(beta->backlog, 3);
	/* On the same port, whoever chose it. */
	assert_int_equal(bound_port(beta), rdma_get_src_port(listener));
	assert_int_equal(ntohs(rdma_get_src_port(listener)), 40000);

	shadow = beta->last->id;
	assert_ptr_not_equal(shadow, internal(listener));
	assert_int_equal(post_request(beta, shadow, NULL, NULL), 0);
	event = next_event(channel, RDMA_CM_EVENT_CONNECT_REQUEST, 0);
	assert_ptr_equal(event->listen_id, listener);
	assert_ptr_equal(event->id->context, listener->context);
	assert_ptr_equal(event->id->verbs, beta->device->verbs);
	assert_ptr_equal(internal(event->id)->module, beta->module);
	assert_int_equal(rdma_destroy_id(event->id), 0);
	assert_int_equal(rdma_ack_cm_event(event), 0);

	/* The backlog is one for all. */
	assert_int_equal(post_request(beta, shadow, NULL, NULL), 0);
	assert_int_equal(post_request(acme, internal(listener), NULL, NULL), 0);
	assert_int_equal(post_request(beta, shadow, NULL, NULL), 0);
	assert_int_equal(post_request(beta, shadow, NULL, NULL), -ENOMEM);
	assert_int_equal(post_request(acme, internal(listener), NULL, NULL), -ENOMEM);
	assert_int_equal(rdma_destroy_id(listener), 0);
	assert_int_equal(beta->calls[OP_FREE], 4);
}

static void listening_again_changes_nothing(void **state)
{
	struct rdma_cm_id *listener = listening_id(channel);
	struct polycm_id *shadow = beta->last->id;

	(void)state;
	acme->fail[OP_LISTEN] = -EINVAL;
	assert_errno(rdma_listen(listener, 1), EINVAL);
	assert_int_equal(beta->calls[OP_CLOSE], 0);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(post_request(beta, shadow, NULL, NULL), 0);
		assert_int_equal(post_request(acme, internal(listener), NULL, NULL), 0);
	}
	assert_int_equal(rdma_destroy_id(listener), 0);
}

static void unbound_listeners_listen_everywhere(void **state)
{
	struct rdma_cm_id *listener = new_id(channel);

	(void)state;
	assert_int_equal(rdma_listen(listener, 1), 0);
	assert_string_equal(acme->trace, "channel_open open bind listen");
	assert_string_equal(beta->trace, "channel_open open bind listen");
	assert_int_equal(ntohs(rdma_get_src_port(listener)), 40000);
	assert_int_equal(rdma_destroy_id(listener), 0);
}

static void other_listeners_stay_in_one_place(void **state)
{
	struct rdma_cm_id *listener = new_id(channel);

	(void)state;
	assert_int_equal(rdma_bind_addr(listener, addr4("20.0.0.1", 7)), 0);
	assert_int_equal(rdma_listen(listener, 1), 0);
	assert_string_equal(acme->trace, "");
	assert_string_equal(beta->trace, "channel_open open bind listen");
	assert_int_equal(rdma_destroy_id(listener), 0);

	beta->absent = true;
	beta->trace[0] = '\0';
	listener = new_id(channel);
	assert_int_equal(rdma_listen(listener, 1), 0);
	assert_string_equal(beta->trace, "");
	assert_int_equal(rdma_destroy_id(listener), 0);
}

static void one_that_cannot_listen_is_enough_to_fail(void **state)
{
	static const struct { int provider; enum fake_op op; } cases[] = {
		{ 1, OP_OPEN }, { 1, OP_BIND }, { 1, OP_LISTEN }, { 0, OP_LISTEN },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct rdma_cm_id *listener = new_id(channel);

		print_message("case %zu\n", i);
		assert_int_equal(rdma_bind_addr(listener, addr4("0.0.0.0", 7471)), 0);
		fakes[cases[i].provider].fail[cases[i].op] = -EADDRINUSE;
		assert_errno(rdma_listen(listener, 1), EADDRINUSE);
		fakes[cases[i].provider].fail[cases[i].op] = 0;
		assert_int_equal(beta->ids, 0);
		assert_int_equal(acme->ids, 1);
		assert_int_equal(rdma_listen(listener, 1), 0);
		assert_int_equal(beta->ids, 1);
		assert_int_equal(rdma_destroy_id(listener), 0);
	}
}

static void listeners_move_with_all_their_parts(void **state)
{
	struct rdma_event_channel *other = rdma_create_event_channel();
	struct rdma_cm_id *listener = listening_id(channel);
	struct rdma_cm_event *event;
	struct polycm_id *shadow = beta->last->id;

	(void)state;
	assert_int_equal(post_request(beta, shadow, NULL, NULL), 0);
	assert_int_equal(rdma_migrate_id(listener, other), 0);
	assert_int_equal(acme->calls[OP_MIGRATE], 1);
	assert_int_equal(beta->calls[OP_MIGRATE], 2);
	expect_no_event(channel);
	assert_int_equal(post_request(beta, shadow, NULL, NULL), 0);
	for (int i = 0; i < 2; i++) {
		event = next_event(other, RDMA_CM_EVENT_CONNECT_REQUEST, 0);
		assert_int_equal(rdma_destroy_id(event->id), 0);
		assert_int_equal(rdma_ack_cm_event(event), 0);
	}
	assert_int_equal(rdma_destroy_id(listener), 0);
	rdma_destroy_event_channel(other);
}

/* One part of a listener cannot move: none has, and it works on where it is. */
static void listeners_stay_with_all_their_parts(void **state)
{
	struct rdma_event_channel *other = rdma_create_event_channel();

	(void)state;
	for (int i = 0; i < 2; i++) {
		struct rdma_cm_id *listener = listening_id(channel);
		struct polycm_id *shadow = beta->last->id;
		struct fake_id *part = fake_id_of(listener);
		struct rdma_cm_event *event;
		void *before = part->chan;

		beta->fail[OP_MIGRATE] = -ENOMEM;
		acme->calls[OP_MIGRATE] = 0;
		assert_errno(rdma_migrate_id(listener, i ? NULL : other), ENOMEM);
		beta->fail[OP_MIGRATE] = 0;
		assert_int_equal(acme->calls[OP_MIGRATE], 2);
		assert_ptr_equal(part->chan, before);
		assert_ptr_equal(listener->channel, channel);
		assert_int_equal(post_request(beta, shadow, NULL, NULL), 0);
		event = next_event(channel, RDMA_CM_EVENT_CONNECT_REQUEST, 0);
		assert_int_equal(rdma_destroy_id(event->id), 0);
		assert_int_equal(rdma_ack_cm_event(event), 0);
		assert_int_equal(rdma_destroy_id(listener), 0);
	}
	rdma_destroy_event_channel(other);
}

/* Where the device moves the QP, the calls do not. */
static void devices_that_move_qps_are_left_to_it(void **state)
{
	struct rdma_conn_param param = { .responder_resources = 4, .retry_count = 7 };
	struct rdma_cm_id *id = new_id(channel), *child, *listener = listening_id(channel);
	struct polycm_id *shadow = beta->last->id;
	struct rdma_cm_event *event;

	(void)state;
	assert_int_equal(rdma_resolve_addr(id, NULL, addr4("20.0.0.9", 1), 1), 0);
	expect_event(channel, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
	create_qp(id);
	assert_string_equal(fake_verbs.moves, "INIT");
	assert_int_equal(rdma_connect(id, &param), 0);
	assert_int_equal(beta->param.retry_count, 3);
	assert_int_equal(post(id, RDMA_CM_EVENT_ESTABLISHED, 0), 0);
	expect_event(channel, RDMA_CM_EVENT_ESTABLISHED, 0);
	assert_string_equal(fake_verbs.moves, "INIT");
	assert_int_equal(rdma_disconnect(id), 0);
	assert_string_equal(fake_verbs.moves, "INIT SQD");
	/* It may have left RTS on its own. */
	fake_verbs.refuse = IBV_QPS_SQD;
	fake_verbs.refuse_errno = EINVAL;
	assert_int_equal(rdma_disconnect(id), 0);
	assert_int_equal(beta->calls[OP_DISCONNECT], 2);
	assert_int_equal(post(id, RDMA_CM_EVENT_REJECTED, -ECONNRESET), 0);
	expect_event(channel, RDMA_CM_EVENT_REJECTED, -ECONNRESET);
	assert_string_equal(fake_verbs.moves, "INIT SQD ERR");
	rdma_destroy_ep(id);

	assert_int_equal(post_request(beta, shadow, NULL, NULL), 0);
	event = next_event(channel, RDMA_CM_EVENT_CONNECT_REQUEST, 0);
	child = event->id;
	assert_int_equal(rdma_ack_cm_event(event), 0);
	create_qp(child);
	fake_verbs.moves[0] = '\0';
	assert_int_equal(rdma_accept(child, &param), 0);
	assert_string_equal(fake_verbs.moves, "");
	rdma_destroy_ep(child);
	assert_int_equal(rdma_destroy_id(listener), 0);
}

static int start(void **state)
{
	(void)state;
	return fakes_start(2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		SEVERAL_TEST(ids_begin_without_a_provider),
		SEVERAL_TEST(the_only_one_with_a_device_is_taken_at_once),
		SEVERAL_TEST(addresses_choose),
		SEVERAL_TEST(bound_addresses_choose),
		SEVERAL_TEST(wildcard_binds_move_with_their_port),
		SEVERAL_TEST(moving_fails_where_the_port_is_taken),
		SEVERAL_TEST(failed_resolutions_may_go_elsewhere),
		SEVERAL_TEST(options_follow),
		SEVERAL_TEST(an_option_that_is_refused_is_told_when_it_is),
		SEVERAL_TEST(options_are_checked_before_there_is_a_provider),
		SEVERAL_TEST(wildcard_listeners_listen_everywhere),
		SEVERAL_TEST(listening_again_changes_nothing),
		SEVERAL_TEST(unbound_listeners_listen_everywhere),
		SEVERAL_TEST(other_listeners_stay_in_one_place),
		SEVERAL_TEST(one_that_cannot_listen_is_enough_to_fail),
		SEVERAL_TEST(listeners_move_with_all_their_parts),
		SEVERAL_TEST(listeners_stay_with_all_their_parts),
		SEVERAL_TEST(devices_that_move_qps_are_left_to_it),
	};

	return cmocka_run_group_tests(tests, start, NULL);
}
