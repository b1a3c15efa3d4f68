/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The stand-in for the kernel by itself, with commands written by hand: it
 * must be as strict as the kernel, or the tests over it say nothing.
 */
#include "kernel_stand_in_scene.h"

#include <fcntl.h>
#include <poll.h>

static int fd = -1;

static int open_one(void **state)
{
	(void)state;
	stand_in_reset();
	fd = stand_in_host.open();
	return fd < 0 ? -1 : 0;
}

static int close_one(void **state)
{
	(void)state;
	stand_in_host.close(fd);
	assert_int_equal(stand_in.files, 0);
	assert_int_equal(stand_in.ids, 0);
	assert_string_equal(stand_in.violation, "");
	return 0;
}

#define STAND_IN_TEST(function) cmocka_unit_test_setup_teardown(function, open_one, close_one)

/* 0 or -errno; the whole of it is taken. */
static int give(uint32_t number, const void *cmd, size_t len, size_t out)
{
	unsigned char buf[1024];
	const struct rdma_ucm_cmd_hdr hdr = {
		.cmd = number, .in = (uint16_t)len, .out = (uint16_t)out,
	};
	ssize_t r;

	memcpy(buf, &hdr, sizeof(hdr));
	memcpy(buf + sizeof(hdr), cmd, len);
	r = (number == RDMA_USER_CM_CMD_GET_EVENT ? stand_in_host.wait : stand_in_host.command)(
		fd, buf, sizeof(hdr) + len);
	if (r < 0)
		return (int)r;
	assert_int_equal(r, sizeof(hdr) + len);
	return 0;
}

#define GIVE(number, cmd, out) give(RDMA_USER_CM_CMD_##number, &(cmd), sizeof(cmd), (out))

static uint32_t make(uint64_t uid, uint16_t ps)
{
	struct rdma_ucm_create_id_resp resp = { 0 };
	const struct rdma_ucm_create_id cmd = {
		.uid = uid, .response = (uintptr_t)&resp, .ps = ps,
	};

	assert_int_equal(GIVE(CREATE_ID, cmd, sizeof(resp)), 0);
	return resp.id;
}

static unsigned int end(uint32_t id)
{
	struct rdma_ucm_destroy_id_resp resp = { 0 };
	const struct rdma_ucm_destroy_id cmd = { .response = (uintptr_t)&resp, .id = id };

	assert_int_equal(GIVE(DESTROY_ID, cmd, sizeof(resp)), 0);
	return resp.events_reported;
}

static bool readable(void)
{
	struct pollfd pfd = { .fd = fd, .events = POLLIN };

	return poll(&pfd, 1, 0) == 1;
}

static void fetch(uint32_t type, uint64_t uid, struct rdma_ucm_event_resp *resp)
{
	const struct rdma_ucm_get_event cmd = { .response = (uintptr_t)resp };

	assert_true(readable());
	assert_int_equal(GIVE(GET_EVENT, cmd, sizeof(*resp)), 0);
	assert_int_equal(resp->event, type);
	assert_int_equal(resp->uid, uid);
}

static int resolve(uint32_t id, const char *dst)
{
	struct rdma_ucm_resolve_ip cmd = { .id = id, .timeout_ms = 1000 };

	memcpy(&cmd.dst_addr, addr4(dst, PORT), sizeof(struct sockaddr_in));
	return GIVE(RESOLVE_IP, cmd, 0);
}

static int route(uint32_t id)
{
	const struct rdma_ucm_resolve_route cmd = { .id = id, .timeout_ms = 1000 };

	return GIVE(RESOLVE_ROUTE, cmd, 0);
}

static int bind_to(uint32_t id, const char *src)
{
	struct rdma_ucm_bind_ip cmd = { .id = id };

	memcpy(&cmd.addr, addr4(src, PORT), sizeof(struct sockaddr_in));
	return GIVE(BIND_IP, cmd, 0);
}

static int listen_on(uint32_t id)
{
	const struct rdma_ucm_listen cmd = { .id = id, .backlog = 1 };

	return GIVE(LISTEN, cmd, 0);
}

static int connect_with(uint32_t id, uint8_t len)
{
	struct rdma_ucm_connect cmd = { .id = id };

	cmd.conn_param.valid = 1;
	cmd.conn_param.qp_num = 0x42;
	cmd.conn_param.responder_resources = 3;
	cmd.conn_param.initiator_depth = 5;
	cmd.conn_param.private_data_len = len;
	cmd.conn_param.private_data[0] = 0x77;
	return GIVE(CONNECT, cmd, 0);
}

static int accept_with(uint32_t id, uint64_t uid, uint8_t len)
{
	struct rdma_ucm_accept cmd = { .id = id, .uid = uid };

	cmd.conn_param.valid = uid != 0;
	cmd.conn_param.private_data_len = len;
	return GIVE(ACCEPT, cmd, 0);
}

static int disconnect(uint32_t id)
{
	const struct rdma_ucm_disconnect cmd = { .id = id };

	return GIVE(DISCONNECT, cmd, 0);
}

static void a_connection_lives_and_ends(void **state)
{
	uint32_t listener = make(1, RDMA_PS_TCP), active = make(2, RDMA_PS_TCP), passive;
	struct rdma_ucm_event_resp event;

	(void)state;
	assert_int_equal(bind_to(listener, "0.0.0.0"), 0);
	assert_int_equal(listen_on(listener), 0);
	assert_int_equal(listen_on(listener), -EINVAL);
	assert_int_equal(route(active), -EINVAL);
	assert_int_equal(resolve(active, "10.0.1.1"), 0);
	assert_int_equal(connect_with(active, 0), -EINVAL);
	fetch(RDMA_CM_EVENT_ADDR_RESOLVED, 2, &event);
	assert_int_equal(route(active), 0);
	fetch(RDMA_CM_EVENT_ROUTE_RESOLVED, 2, &event);
	assert_int_equal(connect_with(active, 57), -EINVAL);
	assert_int_equal(connect_with(active, 10), 0);

	fetch(RDMA_CM_EVENT_CONNECT_REQUEST, 1, &event);
	passive = event.id;
	assert_int_not_equal(passive, listener);
	assert_int_equal(event.param.conn.private_data_len, 56);
	assert_int_equal(event.param.conn.private_data[0], 0x77);
	assert_int_equal(event.param.conn.responder_resources, 5);
	assert_int_equal(event.param.conn.initiator_depth, 3);
	assert_int_equal(event.param.conn.qp_num, 0x42);
	assert_int_equal(accept_with(passive, 3, 0), 0);
	fetch(RDMA_CM_EVENT_CONNECT_RESPONSE, 2, &event);
	assert_int_equal(event.param.conn.private_data_len, 196);
	assert_int_equal(accept_with(active, 0, 0), 0);
	fetch(RDMA_CM_EVENT_ESTABLISHED, 3, &event);

	assert_int_equal(disconnect(active), 0);
	fetch(RDMA_CM_EVENT_DISCONNECTED, 3, &event);
	assert_false(readable());
	assert_int_equal(disconnect(passive), 0);
	fetch(RDMA_CM_EVENT_DISCONNECTED, 2, &event);
	stand_in_time_passes();
	fetch(RDMA_CM_EVENT_TIMEWAIT_EXIT, 2, &event);
	fetch(RDMA_CM_EVENT_TIMEWAIT_EXIT, 3, &event);

	assert_int_equal(end(active), 5);
	assert_int_equal(end(passive), 3);
	assert_int_equal(end(listener), 1);
}

/* Too much data with an accept ends the attempt. */
static void failed_accepts_reject(void **state)
{
	uint32_t listener = make(1, RDMA_PS_TCP), active = make(2, RDMA_PS_TCP);
	struct rdma_ucm_event_resp event;
	uint32_t passive;

	(void)state;
	assert_int_equal(bind_to(listener, "10.0.1.1"), 0);
	assert_int_equal(listen_on(listener), 0);
	assert_int_equal(resolve(active, "10.0.1.1"), 0);
	fetch(RDMA_CM_EVENT_ADDR_RESOLVED, 2, &event);
	assert_int_equal(route(active), 0);
	fetch(RDMA_CM_EVENT_ROUTE_RESOLVED, 2, &event);
	assert_int_equal(connect_with(active, 0), 0);
	fetch(RDMA_CM_EVENT_CONNECT_REQUEST, 1, &event);
	passive = event.id;
	assert_int_equal(accept_with(passive, 3, 197), -EINVAL);
	fetch(RDMA_CM_EVENT_REJECTED, 2, &event);
	assert_int_equal(event.status, 28);
	assert_int_equal(event.param.conn.private_data_len, 148);
	assert_int_equal(accept_with(passive, 3, 0), -EINVAL);
	assert_int_equal(connect_with(active, 0), -EINVAL);
	/* Nobody there: the reason of a service that is unknown. */
	end(passive);
	end(active);
	end(listener);
	active = make(2, RDMA_PS_TCP);
	assert_int_equal(resolve(active, "10.0.1.1"), 0);
	fetch(RDMA_CM_EVENT_ADDR_RESOLVED, 2, &event);
	assert_int_equal(route(active), 0);
	fetch(RDMA_CM_EVENT_ROUTE_RESOLVED, 2, &event);
	assert_int_equal(connect_with(active, 0), 0);
	fetch(RDMA_CM_EVENT_REJECTED, 2, &event);
	assert_int_equal(event.status, 8);
}

static void addresses_resolve_as_the_host_has_them(void **state)
{
	static const struct {
		const char *dst;
		int error, event, status;
		enum stand_in_state state;
	} cases[] = {
		{ "10.0.2.7", 0, RDMA_CM_EVENT_ADDR_RESOLVED, 0, STAND_IN_ADDR_RESOLVED },
		{ "10.0.1.99", 0, RDMA_CM_EVENT_ADDR_ERROR, -ETIMEDOUT, STAND_IN_ADDR_BOUND },
		{ "40.0.0.2", 0, RDMA_CM_EVENT_ADDR_ERROR, -ENODEV, STAND_IN_ADDR_BOUND },
		{ "50.0.0.2", -ENETUNREACH, 0, 0, STAND_IN_ADDR_BOUND },
		{ "127.0.0.1", 0, RDMA_CM_EVENT_ADDR_RESOLVED, 0, STAND_IN_ADDR_RESOLVED },
	};
	struct rdma_ucm_event_resp event;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		uint32_t id = make(9, RDMA_PS_TCP);

		print_message("%s\n", cases[i].dst);
		assert_int_equal(resolve(id, cases[i].dst), cases[i].error);
		if (!cases[i].error) {
			fetch((uint32_t)cases[i].event, 9, &event);
			assert_int_equal((int)event.status, cases[i].status);
		}
		assert_false(readable());
		assert_int_equal(stand_in_state(id), cases[i].state);
		end(id);
	}
	assert_int_equal(stand_in.ids, 0);
}

static void ports_conflict(void **state)
{
	static const struct { const char *first, *second; int error; } cases[] = {
		{ "10.0.1.1", "10.0.1.1", -EADDRINUSE },
		{ "10.0.1.1", "10.0.2.1", 0 },
		{ "0.0.0.0", "10.0.1.1", -EADDRNOTAVAIL },
		{ "10.0.1.1", "10.9.9.9", -EADDRNOTAVAIL },
		{ "10.0.1.1", "40.0.0.1", -ENODEV },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		uint32_t first = make(1, RDMA_PS_TCP), second = make(2, RDMA_PS_TCP);

		print_message("case %zu\n", i);
		assert_int_equal(bind_to(first, cases[i].first), 0);
		assert_int_equal(bind_to(second, cases[i].second), cases[i].error);
		assert_int_equal(bind_to(first, cases[i].first), -EINVAL);
		end(first);
		end(second);
	}
}

static void orders_are_carried_out(void **state)
{
	struct rdma_ucm_destroy_id_resp resp = { .events_reported = 77 };
	uint32_t id = make(1, RDMA_PS_TCP);
	const struct rdma_ucm_destroy_id cmd = { .response = (uintptr_t)&resp, .id = id };
	const struct { struct rdma_ucm_cmd_hdr hdr; struct rdma_ucm_destroy_id cmd; } whole = {
		{ RDMA_USER_CM_CMD_DESTROY_ID, sizeof(cmd), sizeof(resp) }, cmd,
	};

	(void)state;
	stand_in.fault[RDMA_USER_CM_CMD_DESTROY_ID] =
		(struct stand_in_fault){ .error = EIO, .after = 1 };
	assert_int_equal(GIVE(DESTROY_ID, cmd, 0), -ENOSPC);
	assert_int_equal(GIVE(DESTROY_ID, cmd, sizeof(resp)), -EIO);
	stand_in.fault[RDMA_USER_CM_CMD_DESTROY_ID] =
		(struct stand_in_fault){ .mute = true, .short_result = true };
	assert_int_equal(stand_in_host.command(fd, &whole, sizeof(whole)), sizeof(whole) - 1);
	assert_int_equal(resp.events_reported, 77);
	assert_int_equal(stand_in.ids, 0);
	assert_int_equal(GIVE(DESTROY_ID, cmd, sizeof(resp)), -ENOENT);
	assert_int_equal(stand_in.calls[RDMA_USER_CM_CMD_DESTROY_ID], 4);
	stand_in.known_commands = RDMA_USER_CM_CMD_QUERY;
	assert_int_equal(give(RDMA_USER_CM_CMD_QUERY, &cmd, sizeof(cmd), 8), -EINVAL);
	assert_int_equal(give(RDMA_USER_CM_CMD_GET_OPTION, &cmd, 0, 8), -ENOSYS);
}

static void commands_that_are_too_short_are_noted(void **state)
{
	const struct rdma_ucm_listen cmd = { .id = 1 };

	(void)state;
	assert_int_equal(give(RDMA_USER_CM_CMD_LISTEN, &cmd, 4, 0), -EINVAL);
	assert_string_equal(stand_in.violation, "LISTEN with 4 bytes only");
	stand_in.violation[0] = '\0';
}

/* Only what waits is a place to be cancelled in. */
static void commands_given_the_wrong_way_are_noted(void **state)
{
	struct rdma_ucm_event_resp resp;
	const struct {
		struct rdma_ucm_cmd_hdr hdr;
		struct rdma_ucm_get_event body;
	} get = {
		{ RDMA_USER_CM_CMD_GET_EVENT, sizeof(get.body), sizeof(resp) },
		{ .response = (uintptr_t)&resp },
	};
	const struct {
		struct rdma_ucm_cmd_hdr hdr;
		struct rdma_ucm_listen body;
	} listen = { { RDMA_USER_CM_CMD_LISTEN, sizeof(listen.body), 0 }, { .id = 1 } };

	(void)state;
	assert_int_equal(fcntl(fd, F_SETFL, O_NONBLOCK), 0);
	assert_int_equal(stand_in_host.wait(fd, &get, sizeof(get)), -EAGAIN);
	assert_int_equal(stand_in_host.command(fd, &listen, sizeof(listen)), -ENOENT);
	assert_string_equal(stand_in.violation, "");
	assert_int_equal(stand_in_host.command(fd, &get, sizeof(get)), -EAGAIN);
	assert_string_equal(stand_in.violation, "GET_EVENT given as a command that does not wait");
	stand_in.violation[0] = '\0';
	assert_int_equal(stand_in_host.wait(fd, &listen, sizeof(listen)), -ENOENT);
	assert_string_equal(stand_in.violation, "LISTEN given as a command that waits");
	stand_in.violation[0] = '\0';
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		STAND_IN_TEST(a_connection_lives_and_ends),
		STAND_IN_TEST(failed_accepts_reject),
		STAND_IN_TEST(addresses_resolve_as_the_host_has_them),
		STAND_IN_TEST(ports_conflict),
		STAND_IN_TEST(orders_are_carried_out),
		STAND_IN_TEST(commands_that_are_too_short_are_noted),
		STAND_IN_TEST(commands_given_the_wrong_way_are_noted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
