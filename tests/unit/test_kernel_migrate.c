/* SPDX-License-Identifier: BSD-2-Clause */
/* Ids that move to another channel over the kernel client: no event is lost or goes astray. */
#include "kernel_stand_in_scene.h"

#include <poll.h>
#include <pthread.h>

#define CMD(name) RDMA_USER_CM_CMD_##name

static struct rdma_event_channel *other;

static int open_other(void **state)
{
	if (scene_reset(state))
		return -1;
	other = rdma_create_event_channel();
	return other ? 0 : -1;
}

static int close_other(void **state)
{
	if (other)
		rdma_destroy_event_channel(other);
	return scene_check(state);
}

#define MIGRATE_TEST(function) cmocka_unit_test_setup_teardown(function, open_other, close_other)

static bool readable(const struct rdma_event_channel *chan)
{
	struct pollfd pfd = { .fd = chan->fd, .events = POLLIN };

	return poll(&pfd, 1, 0) == 1;
}

static void events_go_with_their_id(void **state)
{
	struct rdma_cm_id *moved = scene_id(RDMA_PS_TCP), *stays = scene_id(RDMA_PS_TCP);
	struct rdma_cm_event *event;

	(void)state;
	assert_int_equal(rdma_resolve_addr(moved, NULL, addr4("10.0.1.1", PORT), 10), 0);
	assert_int_equal(rdma_resolve_addr(stays, NULL, addr4("10.0.1.1", PORT), 10), 0);
	assert_int_equal(rdma_migrate_id(moved, other), 0);
	assert_ptr_equal(moved->channel, other);
	assert_int_equal(stand_in.calls[CMD(MIGRATE_ID)], 1);
	assert_true(readable(other));
	event = next_event(channel, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
	assert_ptr_equal(event->id, stays);
	assert_int_equal(rdma_ack_cm_event(event), 0);
	assert_false(readable(channel));
	event = next_event(other, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
	assert_ptr_equal(event->id, moved);
	assert_int_equal(rdma_ack_cm_event(event), 0);
	assert_false(readable(other));

	/* What comes later, too; and back again. */
	assert_int_equal(rdma_resolve_route(moved, 10), 0);
	assert_false(readable(channel));
	assert_int_equal(rdma_migrate_id(moved, channel), 0);
	assert_false(readable(other));
	expect_event(channel, RDMA_CM_EVENT_ROUTE_RESOLVED, 0);
	scene_destroy(stays);
	scene_destroy(moved);
}

static void the_old_channel_may_go(void **state)
{
	struct rdma_cm_id *id = scene_resolved(RDMA_PS_TCP, "10.0.1.1");

	(void)state;
	assert_int_equal(rdma_migrate_id(id, other), 0);
	rdma_destroy_event_channel(channel);
	channel = NULL;
	assert_int_equal(stand_in.files, 1);
	assert_int_equal(stand_in.ids, 1);
	assert_int_equal(rdma_resolve_route(id, 10), 0);
	expect_event(other, RDMA_CM_EVENT_ROUTE_RESOLVED, 0);
	scene_destroy(id);
}

static void the_same_channel_is_no_move(void **state)
{
	struct rdma_cm_id *id = scene_resolved(RDMA_PS_TCP, "10.0.1.1");

	(void)state;
	assert_int_equal(rdma_migrate_id(id, channel), 0);
	assert_int_equal(rdma_resolve_route(id, 10), 0);
	expect_event(channel, RDMA_CM_EVENT_ROUTE_RESOLVED, 0);
	scene_destroy(id);
}

static void ids_become_synchronous_and_back(void **state)
{
	struct rdma_cm_id *id = scene_resolved(RDMA_PS_TCP, "10.0.1.1");

	(void)state;
	assert_int_equal(rdma_migrate_id(id, NULL), 0);
	assert_int_equal(stand_in.files, 3);
	assert_int_equal(rdma_resolve_route(id, 10), 0);
	assert_int_equal(id->event->event, RDMA_CM_EVENT_ROUTE_RESOLVED);
	assert_int_equal(rdma_migrate_id(id, other), 0);
	assert_null(id->event);
	assert_int_equal(stand_in.files, 2);
	assert_int_equal(rdma_connect(id, &(struct rdma_conn_param){ .qp_num = 1 }), 0);
	expect_event(other, RDMA_CM_EVENT_REJECTED, 8);
	scene_destroy(id);
}

/* The kernel's part of a move, as if another thread were in the middle of one. */
static void move_in_the_kernel(uint32_t number, int from, int to)
{
	struct rdma_ucm_migrate_resp resp;
	struct {
		struct rdma_ucm_cmd_hdr hdr;
		struct rdma_ucm_migrate_id body;
	} message = {
		.hdr = { RDMA_USER_CM_CMD_MIGRATE_ID, sizeof(message.body), sizeof(resp) },
		.body = { .response = (uintptr_t)&resp, .id = number, .fd = (uint32_t)from },
	};

	assert_int_equal(stand_in_host.command(to, &message, sizeof(message)), sizeof(message));
}

static void events_come_out_where_the_kernel_has_them(void **state)
{
	struct rdma_cm_id *id = scene_resolved(RDMA_PS_TCP, "10.0.1.1");
	uint32_t number = stand_in_find(id);

	(void)state;
	assert_int_equal(fcntl(other->fd, F_SETFL, O_NONBLOCK), 0);
	move_in_the_kernel(number, channel->fd, other->fd);
	stand_in_post(number, RDMA_CM_EVENT_ADDR_CHANGE, 0);
	expect_event(other, RDMA_CM_EVENT_ADDR_CHANGE, 0);
	move_in_the_kernel(number, other->fd, channel->fd);
	scene_destroy(id);
}

static struct rdma_cm_id *next_request(struct rdma_cm_id *listener)
{
	struct rdma_cm_event *event = next_event(other, RDMA_CM_EVENT_CONNECT_REQUEST, 0);
	struct rdma_cm_id *child = event->id;

	assert_ptr_equal(event->listen_id, listener);
	assert_ptr_equal(child->channel, other);
	assert_int_equal(rdma_ack_cm_event(event), 0);
	return child;
}

/* And so do requests: their ids are on the channel that they came out of. */
static void requests_are_where_the_kernel_has_them(void **state)
{
	struct rdma_cm_id *listener = scene_listener(RDMA_PS_TCP, "0.0.0.0"), *child;
	uint32_t number = stand_in_find(listener);
	struct stranger stranger;

	(void)state;
	assert_int_equal(fcntl(other->fd, F_SETFL, O_NONBLOCK), 0);
	move_in_the_kernel(number, channel->fd, other->fd);
	stranger_connect(&stranger, "10.0.1.1");
	child = next_request(listener);
	move_in_the_kernel(number, other->fd, channel->fd);
	assert_int_equal(rdma_accept(child, &(struct rdma_conn_param){ .qp_num = 1 }), 0);
	stranger_hears(&stranger, RDMA_CM_EVENT_CONNECT_RESPONSE, 0);
	stranger_end(&stranger);
	expect_event(other, RDMA_CM_EVENT_REJECTED, 28);
	scene_destroy(child);
	scene_destroy(listener);
}

/* Where the kernel moves them, requests that nobody has seen come out of the new channel. */
static void requests_go_with_their_listener(void **state)
{
	struct rdma_cm_id *listener = scene_listener(RDMA_PS_TCP, "0.0.0.0"), *children[3];
	struct stranger strangers[3];

	(void)state;
	stand_in.requests_follow = true;
	for (size_t i = 0; i < ARRAY_SIZE(strangers); i++)
		stranger_connect(&strangers[i], "10.0.1.1");
	children[0] = scene_request(listener);
	assert_int_equal(rdma_migrate_id(listener, other), 0);
	assert_false(readable(channel));
	for (size_t i = 1; i < ARRAY_SIZE(children); i++)
		children[i] = next_request(listener);
	assert_ptr_equal(children[0]->channel, channel);
	for (size_t i = 0; i < ARRAY_SIZE(children); i++) {
		assert_int_equal(rdma_accept(children[i],
					     &(struct rdma_conn_param){ .qp_num = 1 }), 0);
		stranger_hears(&strangers[i], RDMA_CM_EVENT_CONNECT_RESPONSE, 0);
		/* The peer goes: each hears of it on its own channel. */
		stranger_end(&strangers[i]);
		expect_event(i ? other : channel, RDMA_CM_EVENT_REJECTED, 28);
		scene_destroy(children[i]);
	}
	scene_destroy(listener);
	assert_int_equal(stand_in.ids, 0);
}

/* Their ids were on the channel that went: the listener goes on with those to come. */
static void requests_go_with_the_old_channel(void **state)
{
	struct rdma_cm_id *listener = scene_listener(RDMA_PS_TCP, "0.0.0.0");
	struct rdma_event_channel *old = channel;
	struct stranger early, late;

	(void)state;
	stranger_connect(&early, "10.0.1.1");
	assert_int_equal(rdma_migrate_id(listener, other), 0);
	channel = NULL;
	rdma_destroy_event_channel(old);
	stranger_hears(&early, RDMA_CM_EVENT_REJECTED, 28);
	expect_no_event(other);
	stranger_connect(&late, "10.0.1.1");
	channel = other;
	scene_destroy(scene_request(listener));
	channel = NULL;
	stranger_hears(&late, RDMA_CM_EVENT_REJECTED, 28);
	scene_destroy(listener);
	stranger_end(&early);
	stranger_end(&late);
}

static void *ack(void *event)
{
	assert_int_equal(rdma_ack_cm_event(event), 0);
	return NULL;
}

/* What the program holds must be acked first. */
static void moves_wait_for_acks(void **state)
{
	struct rdma_cm_id *id = scene_id(RDMA_PS_TCP);
	struct rdma_cm_event *event;
	pthread_t thread;

	(void)state;
	assert_int_equal(rdma_resolve_addr(id, NULL, addr4("10.0.1.1", PORT), 10), 0);
	event = next_event(channel, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
	assert_int_equal(pthread_create(&thread, NULL, ack, event), 0);
	assert_int_equal(rdma_migrate_id(id, other), 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_equal(rdma_resolve_route(id, 10), 0);
	expect_event(other, RDMA_CM_EVENT_ROUTE_RESOLVED, 0);
	scene_destroy(id);
}

static void groups_go_with_their_id(void **state)
{
	struct rdma_cm_id *id = scene_id(RDMA_PS_UDP);
	struct sockaddr *first = addr4("239.1.2.3", 0), *second = addr4("239.1.2.4", 0);

	(void)state;
	assert_int_equal(rdma_bind_addr(id, addr4("10.0.1.1", PORT)), 0);
	assert_int_equal(rdma_join_multicast(id, first, NULL), 0);
	assert_int_equal(rdma_migrate_id(id, other), 0);
	assert_false(readable(channel));
	expect_event(other, RDMA_CM_EVENT_MULTICAST_JOIN, 0);
	assert_int_equal(rdma_join_multicast(id, second, NULL), 0);
	expect_event(other, RDMA_CM_EVENT_MULTICAST_JOIN, 0);
	assert_int_equal(rdma_leave_multicast(id, first), 0);
	assert_int_equal(rdma_leave_multicast(id, second), 0);
	scene_destroy(id);
}

static void moves_that_fail_leave_the_id_where_it_was(void **state)
{
	struct rdma_cm_id *id = scene_resolved(RDMA_PS_TCP, "10.0.1.1");

	(void)state;
	stand_in.fault[CMD(MIGRATE_ID)].error = ENOMEM;
	assert_errno(rdma_migrate_id(id, other), ENOMEM);
	assert_ptr_equal(id->channel, channel);
	stand_in.fault[CMD(MIGRATE_ID)].error = ENOMEM;
	assert_errno(rdma_migrate_id(id, NULL), ENOMEM);
	assert_int_equal(stand_in.files, 2);
	assert_int_equal(rdma_resolve_route(id, 10), 0);
	expect_event(channel, RDMA_CM_EVENT_ROUTE_RESOLVED, 0);
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
		MIGRATE_TEST(events_go_with_their_id),
		MIGRATE_TEST(the_old_channel_may_go),
		MIGRATE_TEST(the_same_channel_is_no_move),
		MIGRATE_TEST(ids_become_synchronous_and_back),
		MIGRATE_TEST(events_come_out_where_the_kernel_has_them),
		MIGRATE_TEST(requests_are_where_the_kernel_has_them),
		MIGRATE_TEST(requests_go_with_their_listener),
		MIGRATE_TEST(requests_go_with_the_old_channel),
		MIGRATE_TEST(moves_wait_for_acks),
		MIGRATE_TEST(groups_go_with_their_id),
		MIGRATE_TEST(moves_that_fail_leave_the_id_where_it_was),
	};

	return cmocka_run_group_tests(tests, start, NULL);
}
