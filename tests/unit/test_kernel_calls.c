/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Calls over the kernel client next to those of test_kernel_connect.c:
 * connections that the program completes itself, options, addresses that fail,
 * synchronous ids, descriptors to poll.
 */
#include "kernel_stand_in_scene.h"
#include "core/base/log.h"

#include <fcntl.h>
#include <poll.h>

static void programs_complete_connections_themselves(void **state)
{
	struct rdma_cm_id *listener = scene_listener(RDMA_PS_TCP, "0.0.0.0");
	struct rdma_cm_id *id = scene_routed(RDMA_PS_TCP, "10.0.1.1"), *child;
	struct rdma_conn_param param = { .qp_num = 0x42, .responder_resources = 1, .srq = 1 };
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RTR };
	struct rdma_cm_event *event;
	int mask;

	(void)state;
	assert_int_equal(rdma_connect(id, &param), 0);
	event = next_event(channel, RDMA_CM_EVENT_CONNECT_REQUEST, 0);
	child = event->id;
	assert_int_equal(event->param.conn.srq, 1);
	assert_int_equal(event->param.conn.qp_num, 0x42);
	assert_int_equal(rdma_ack_cm_event(event), 0);
	param.qp_num = 0x43;
	assert_int_equal(rdma_accept(child, &param), 0);
	expect_event(channel, RDMA_CM_EVENT_CONNECT_RESPONSE, 0);
	assert_int_equal(rdma_init_qp_attr(id, &attr, &mask), 0);
	assert_int_equal(attr.dest_qp_num, 0x43);
	assert_int_equal(attr.ah_attr.dlid, 0x11);
	assert_true(mask & IBV_QP_DEST_QPN);
	expect_no_event(channel);
	assert_int_equal(rdma_establish(id), 0);
	expect_event(channel, RDMA_CM_EVENT_ESTABLISHED, 0);
	assert_errno(rdma_notify(child, IBV_EVENT_COMM_EST), EISCONN);
	scene_destroy(id);
	expect_event(channel, RDMA_CM_EVENT_DISCONNECTED, 0);
	scene_destroy(child);
	scene_destroy(listener);
}

static void data_may_come_before_the_rtu(void **state)
{
	struct rdma_cm_id *listener = scene_listener(RDMA_PS_TCP, "0.0.0.0");
	struct rdma_cm_id *id = scene_routed(RDMA_PS_TCP, "10.0.1.1"), *child;
	struct rdma_conn_param param = { .qp_num = 0x42 };

	(void)state;
	assert_int_equal(rdma_connect(id, &param), 0);
	child = scene_request(listener);
	assert_errno(rdma_notify(child, IBV_EVENT_COMM_EST), EINVAL);
	assert_int_equal(rdma_accept(child, &param), 0);
	assert_int_equal(rdma_notify(child, IBV_EVENT_COMM_EST), 0);
	expect_event(channel, RDMA_CM_EVENT_CONNECT_RESPONSE, 0);
	expect_event(channel, RDMA_CM_EVENT_ESTABLISHED, 0);
	/* Rejected in the middle: REJ after the REP. */
	assert_int_equal(rdma_reject(id, "x", 1), 0);
	expect_event(channel, RDMA_CM_EVENT_REJECTED, 28);
	scene_destroy(id);
	scene_destroy(child);
	scene_destroy(listener);
}

static void options_reach_the_kernel(void **state)
{
	struct rdma_cm_id *first = scene_id(RDMA_PS_TCP), *second = scene_id(RDMA_PS_TCP);
	uint8_t timeout = 9, tos = 4;
	int one = 1;

	(void)state;
	assert_errno(rdma_set_option(first, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, &tos, 4), EINVAL);
	assert_errno(rdma_set_option(first, 7, 0, &tos, 1), ENOSYS);
	assert_int_equal(rdma_set_option(first, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, &tos, 1), 0);
	assert_int_equal(rdma_set_option(first, RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT,
					 &timeout, 1), 0);
	for (int i = 0; i < 2; i++)
		assert_int_equal(rdma_set_option(i ? second : first, RDMA_OPTION_ID,
						 RDMA_OPTION_ID_REUSEADDR, &one, sizeof(one)), 0);
	assert_int_equal(rdma_bind_addr(first, addr4("10.0.1.1", PORT)), 0);
	assert_int_equal(rdma_bind_addr(second, addr4("10.0.1.1", PORT)), 0);
	scene_destroy(second);
	scene_destroy(first);
}

static void ack_timeouts_of_the_program_count(void **state)
{
	struct rdma_cm_id *listener = scene_listener(RDMA_PS_TCP, "0.0.0.0"), *id, *child;
	uint8_t timeout = 9;

	(void)state;
	id = scene_routed(RDMA_PS_TCP, "10.0.1.1");
	assert_int_equal(rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, &timeout,
					 1), 0);
	create_qp(id);
	assert_int_equal(rdma_connect(id, NULL), 0);
	child = scene_request(listener);
	create_qp(child);
	assert_int_equal(rdma_accept(child, NULL), 0);
	assert_int_equal(stand_in_rts.timeout, 19);
	expect_event(channel, RDMA_CM_EVENT_ESTABLISHED, 0);
	assert_int_equal(stand_in_rts.timeout, 9);
	expect_event(channel, RDMA_CM_EVENT_ESTABLISHED, 0);
	scene_destroy(id);
	expect_event(channel, RDMA_CM_EVENT_DISCONNECTED, 0);
	scene_destroy(child);
	scene_destroy(listener);
}

static void failed_addresses_can_be_tried_again(void **state)
{
	struct rdma_cm_id *id = scene_id(RDMA_PS_TCP);

	(void)state;
	assert_errno(rdma_resolve_addr(id, NULL, addr4("50.0.0.1", PORT), 10), ENETUNREACH);
	assert_int_equal(rdma_resolve_addr(id, NULL, addr4("10.0.1.99", PORT), 10), 0);
	expect_event(channel, RDMA_CM_EVENT_ADDR_ERROR, -ETIMEDOUT);
	assert_int_equal(rdma_resolve_addr(id, NULL, addr4("40.0.0.7", PORT), 10), 0);
	expect_event(channel, RDMA_CM_EVENT_ADDR_ERROR, -ENODEV);
	assert_int_equal(rdma_resolve_addr(id, NULL, addr4("10.0.1.7", PORT), 10), 0);
	expect_event(channel, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
	assert_errno(rdma_resolve_addr(id, NULL, addr4("10.0.1.7", PORT), 10), EINVAL);

	stand_in.sa_silent = true;
	assert_errno(rdma_resolve_route(id, 0), EINVAL);
	assert_int_equal(rdma_resolve_route(id, 10), 0);
	expect_event(channel, RDMA_CM_EVENT_ROUTE_ERROR, -ETIMEDOUT);
	stand_in.sa_silent = false;
	assert_int_equal(rdma_resolve_route(id, 10), 0);
	expect_event(channel, RDMA_CM_EVENT_ROUTE_RESOLVED, 0);
	assert_int_equal(ntohs(id->route.path_rec->dlid), 0x107);
	scene_destroy(id);
}

static void synchronous_ids_wait_for_their_events(void **state)
{
	struct rdma_cm_id *id;

	(void)state;
	assert_int_equal(rdma_create_id(NULL, &id, NULL, RDMA_PS_TCP), 0);
	assert_errno(rdma_resolve_addr(id, NULL, addr4("10.0.1.99", PORT), 10), ETIMEDOUT);
	assert_int_equal(rdma_resolve_addr(id, NULL, addr4("10.0.1.1", PORT), 10), 0);
	assert_int_equal(id->event->event, RDMA_CM_EVENT_ADDR_RESOLVED);
	stand_in.sa_silent = true;
	assert_errno(rdma_resolve_route(id, 10), ETIMEDOUT);
	stand_in.sa_silent = false;
	assert_int_equal(rdma_resolve_route(id, 10), 0);
	create_qp(id);
	assert_errno(rdma_connect(id, NULL), ECONNREFUSED);
	assert_int_equal(id->event->status, 8);
	scene_destroy(id);
}

/* The descriptor is readable while there are events, and no longer. */
static void channels_can_be_polled(void **state)
{
	struct pollfd pfd = { .fd = channel->fd, .events = POLLIN };
	struct rdma_cm_id *id = scene_id(RDMA_PS_TCP);

	(void)state;
	assert_int_equal(poll(&pfd, 1, 0), 0);
	assert_int_equal(rdma_resolve_addr(id, NULL, addr4("10.0.1.1", PORT), 10), 0);
	assert_int_equal(poll(&pfd, 1, 0), 1);
	expect_event(channel, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
	assert_int_equal(poll(&pfd, 1, 0), 0);
	assert_int_equal(rdma_resolve_route(id, 10), 0);
	assert_int_equal(poll(&pfd, 1, 0), 1);
	/* Not retrieved: it goes with the id. */
	scene_destroy(id);
	assert_int_equal(poll(&pfd, 1, 0), 0);
}

/* Commands go to channel->fd, as librdmacm's do; where the program has moved it, there. */
static void channels_can_be_moved(void **state)
{
	struct rdma_event_channel *other = rdma_create_event_channel();
	struct rdma_cm_id *id = scene_id(RDMA_PS_TCP);
	int old = channel->fd, file;

	(void)state;
	assert_non_null(other);
	assert_int_equal(rdma_resolve_addr(id, NULL, addr4("10.0.1.1", PORT), 10), 0);
	channel->fd = stand_in_move(channel->fd);
	assert_int_not_equal(channel->fd, old);
	/* The old number is another file's: nothing reads, asks or closes it. */
	file = open("/dev/null", O_RDONLY | O_CLOEXEC);
	assert_int_equal(file, old);
	expect_event(channel, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
	assert_int_equal(rdma_resolve_route(id, 10), 0);
	expect_event(channel, RDMA_CM_EVENT_ROUTE_RESOLVED, 0);

	other->fd = stand_in_move(other->fd);
	channel->fd = stand_in_move(channel->fd);
	assert_int_equal(rdma_migrate_id(id, other), 0);
	create_qp(id);
	assert_int_equal(rdma_connect(id, NULL), 0);
	expect_event(other, RDMA_CM_EVENT_REJECTED, 8);
	scene_destroy(id);
	rdma_destroy_event_channel(other);
	assert_int_equal(close(file), 0);
}

static void ece_options_travel(void **state)
{
	struct rdma_cm_id *listener = scene_listener(RDMA_PS_TCP, "0.0.0.0");
	struct rdma_cm_id *id = scene_routed(RDMA_PS_TCP, "10.0.1.1"), *child;
	struct rdma_conn_param param = { .qp_num = 5 };
	struct ibv_ece ece = { .vendor_id = 0x15b3, .options = 0x30000002 }, got = { 0 };

	(void)state;
	assert_int_equal(rdma_set_local_ece(id, &ece), 0);
	assert_int_equal(rdma_connect(id, &param), 0);
	child = scene_request(listener);
	assert_int_equal(rdma_get_remote_ece(child, &got), 0);
	assert_int_equal(got.vendor_id, 0x15b3);
	assert_int_equal(got.options, 0x30000002);
	ece.options = 0x11;
	assert_int_equal(rdma_set_local_ece(child, &ece), 0);
	assert_int_equal(rdma_accept(child, &param), 0);
	expect_event(channel, RDMA_CM_EVENT_CONNECT_RESPONSE, 0);
	assert_int_equal(rdma_get_remote_ece(id, &got), 0);
	assert_int_equal(got.options, 0x11);
	scene_destroy(child);
	expect_event(channel, RDMA_CM_EVENT_REJECTED, 28);
	scene_destroy(id);
	scene_destroy(listener);
}

/* A kernel that is asked these stops with a BUG(). */
static void iwarp_answers_only_requests_and_once(void **state)
{
	struct rdma_cm_id *listener = scene_listener(RDMA_PS_TCP, "0.0.0.0");
	struct rdma_cm_id *id = scene_routed(RDMA_PS_TCP, "30.0.0.1"), *child;
	struct rdma_conn_param param = { .qp_num = 5 };
	struct capture capture;
	const char *text;

	(void)state;
	assert_int_equal(rdma_connect(id, &param), 0);
	assert_errno(rdma_reject(id, NULL, 0), EINVAL);
	polycm_log_level = POLYCM_LOG_WARN;
	capture_begin(&capture);
	assert_errno(rdma_establish(id), EINVAL);
	text = capture_end(&capture);
	polycm_log_level = POLYCM_LOG_ERROR;
	print_message("%s", text);
	/* The kernel's answer stays; words come with it where the transport has no such thing. */
	assert_non_null(strstr(text, "iwarp has no RTU: the device ends the handshake by itself"));
	assert_int_equal(stand_in.calls[RDMA_USER_CM_CMD_REJECT], 0);
	assert_int_equal(stand_in.calls[RDMA_USER_CM_CMD_ACCEPT], 0);

	child = scene_request(listener);
	assert_int_equal(rdma_accept(child, &param), 0);
	assert_errno(rdma_accept(child, &param), EINVAL);
	assert_int_equal(stand_in.calls[RDMA_USER_CM_CMD_ACCEPT], 1);
	(void)scene_drain();
	scene_destroy(child);
	(void)scene_drain();
	scene_destroy(id);
	scene_destroy(listener);
}

/* The QP goes the way that it goes with librdmacm, and the kernel rejects the peer. */
static void data_too_long_to_accept_rejects_the_peer(void **state)
{
	static const uint8_t data[255];
	struct rdma_cm_id *listener = scene_listener(RDMA_PS_TCP, "0.0.0.0");
	struct rdma_cm_id *id = scene_routed(RDMA_PS_TCP, "10.0.1.1"), *child;
	struct rdma_conn_param param = { .private_data = data, .private_data_len = 197 };
	struct capture capture;
	const char *text;

	(void)state;
	create_qp(id);
	assert_int_equal(rdma_connect(id, NULL), 0);
	child = scene_request(listener);
	create_qp(child);
	fake_verbs.moves[0] = '\0';
	polycm_log_level = POLYCM_LOG_WARN;
	capture_begin(&capture);
	assert_errno(rdma_accept(child, &param), EINVAL);
	text = capture_end(&capture);
	polycm_log_level = POLYCM_LOG_ERROR;
	print_message("%s", text);
	assert_non_null(strstr(text, "197 bytes of private data, ib has room for 196; "
				     "the kernel has rejected the peer for it"));
	assert_string_equal(fake_verbs.moves, "RTR(0) RTS(0) ERR");
	assert_int_equal(stand_in.calls[RDMA_USER_CM_CMD_ACCEPT], 1);
	expect_event(channel, RDMA_CM_EVENT_REJECTED, 28);
	param.private_data_len = 196;
	assert_errno(rdma_accept(child, &param), EINVAL);
	scene_destroy(child);
	scene_destroy(id);
	scene_destroy(listener);
}

/* librdmacm learns the source's GID on iWARP when it binds to a device's address, not later. */
static void gids_on_iwarp_are_those_of_the_bind(void **state)
{
	static const struct {
		const char *bound;
		bool known;
	} cases[] = { { NULL, false }, { "0.0.0.0", false }, { "30.0.0.1", true } };
	static const union ibv_gid none;
	struct rdma_cm_id *id;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		print_message("bound to %s\n", cases[i].bound ? cases[i].bound : "nothing");
		id = scene_id(RDMA_PS_TCP);
		if (cases[i].bound)
			assert_int_equal(rdma_bind_addr(id, addr4(cases[i].bound, 0)), 0);
		assert_int_equal(rdma_resolve_addr(id, NULL, addr4("30.0.0.1", PORT), 10), 0);
		expect_event(channel, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
		assert_int_equal(memcmp(&id->route.addr.addr.ibaddr.sgid, &none, 16) != 0,
				 cases[i].known);
		scene_destroy(id);
	}
}

int rdma_write_cm_event(struct rdma_cm_id *id, enum rdma_cm_event_type event, int status,
			uint64_t arg);
int rdma_resolve_addrinfo(struct rdma_cm_id *id, const char *node, const char *service,
			  const struct rdma_addrinfo *hints);

/* Linux 6.12 has no commands for them. */
static void calls_of_librdmacm_60_are_refused(void **state)
{
	struct rdma_cm_id *id = scene_routed(RDMA_PS_TCP, "10.0.1.1");

	(void)state;
	assert_errno(rdma_write_cm_event(id, (enum rdma_cm_event_type)18, 0, 1), EINVAL);
	assert_errno(rdma_resolve_addrinfo(id, "10.0.1.1", NULL, NULL), EINVAL);
	expect_no_event(channel);
	scene_destroy(id);
}

static int start(void **state)
{
	(void)state;
	return scene_start(SCENE_ALL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		KERNEL_TEST(programs_complete_connections_themselves),
		KERNEL_TEST(data_may_come_before_the_rtu),
		KERNEL_TEST(options_reach_the_kernel),
		KERNEL_TEST(ack_timeouts_of_the_program_count),
		KERNEL_TEST(failed_addresses_can_be_tried_again),
		KERNEL_TEST(synchronous_ids_wait_for_their_events),
		KERNEL_TEST(channels_can_be_polled),
		KERNEL_TEST(channels_can_be_moved),
		KERNEL_TEST(ece_options_travel),
		KERNEL_TEST(iwarp_answers_only_requests_and_once),
		KERNEL_TEST(data_too_long_to_accept_rejects_the_peer),
		KERNEL_TEST(gids_on_iwarp_are_those_of_the_bind),
		KERNEL_TEST(calls_of_librdmacm_60_are_refused),
	};

	return cmocka_run_group_tests(tests, start, NULL);
}
