/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A provider over the kernel next to one that is not: the kernel's descriptor
 * is one of several on a channel, and an id meets its provider with its first
 * address.  127.0.0.1 leads to the kernel's first device, 10.0.0.0/8 to "acme".
 */
#include "kernel_stand_in_scene.h"

#include <poll.h>
#include <pthread.h>

#define CMD(name) RDMA_USER_CM_CMD_##name

static bool readable(const struct rdma_event_channel *chan)
{
	struct pollfd pfd = { .fd = chan->fd, .events = POLLIN };

	return poll(&pfd, 1, 0) == 1;
}

static const char *provider_of(const struct rdma_cm_id *id)
{
	return ((const struct polycm_id *)(const void *)id)->module->name;
}

static void the_kernel_is_opened_when_it_is_needed(void **state)
{
	struct rdma_cm_id *id = scene_id(RDMA_PS_TCP);

	(void)state;
	assert_int_equal(stand_in.files, 0);
	assert_int_equal(rdma_resolve_addr(id, NULL, addr4("10.0.0.2", PORT), 10), 0);
	expect_event(channel, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
	assert_string_equal(provider_of(id), "acme");
	assert_int_equal(stand_in.files, 0);
	scene_destroy(id);

	stand_in.open_error = -EACCES;
	id = scene_id(RDMA_PS_TCP);
	assert_errno(rdma_resolve_addr(id, NULL, addr4("127.0.0.1", PORT), 10), EACCES);
	stand_in.open_error = 0;
	assert_int_equal(rdma_resolve_addr(id, NULL, addr4("127.0.0.1", PORT), 10), 0);
	assert_int_equal(stand_in.files, 1);
	assert_true(readable(channel));
	expect_event(channel, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
	assert_false(readable(channel));
	assert_string_equal(provider_of(id), "ib");
	scene_destroy(id);
}

static void connections_live(void **state)
{
	struct scene_pair pair;

	(void)state;
	scene_connect(&pair, "127.0.0.1");
	assert_string_equal(provider_of(pair.active), "ib");
	assert_string_equal(provider_of(pair.passive), "ib");
	assert_int_equal(stand_in.calls[CMD(LISTEN)], 1);
	assert_int_equal(fakes[0].calls[OP_LISTEN], 1);
	expect_no_event(channel);
	scene_disconnect(&pair);
	expect_no_event(channel);
	scene_end(&pair);
	assert_int_equal(stand_in.ids, 0);
}

/* One listener hears from both. */
static void requests_come_from_both(void **state)
{
	struct rdma_cm_id *listener = scene_listener(RDMA_PS_TCP, "0.0.0.0"), *child;
	struct polycm_id *self = (struct polycm_id *)(void *)listener, *acmes;
	struct stranger stranger;

	(void)state;
	acmes = strcmp(provider_of(listener), "acme") ? self->shadows : self;
	assert_int_equal(post_request(fakes, acmes, NULL, NULL), 0);
	stranger_connect(&stranger, "127.0.0.1");
	for (int i = 0; i < 2; i++) {
		child = scene_request(listener);
		assert_string_equal(provider_of(child), i ? "ib" : "acme");
		scene_destroy(child);
	}
	stranger_hears(&stranger, RDMA_CM_EVENT_REJECTED, 28);
	stranger_end(&stranger);
	scene_destroy(listener);
}

static void events_go_with_their_id(void **state)
{
	struct rdma_event_channel *other = rdma_create_event_channel();
	struct rdma_cm_id *id = scene_id(RDMA_PS_TCP);

	(void)state;
	assert_int_equal(rdma_resolve_addr(id, NULL, addr4("127.0.0.1", PORT), 10), 0);
	assert_int_equal(rdma_migrate_id(id, other), 0);
	assert_false(readable(channel));
	assert_true(readable(other));
	expect_event(other, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
	scene_destroy(id);
	rdma_destroy_event_channel(other);
}

/* As in a forked child, which may not use its parent's descriptor. */
static void what_cannot_be_fetched_is_told(void **state)
{
	struct rdma_cm_id *id = scene_id(RDMA_PS_TCP);
	struct rdma_cm_event *event;

	(void)state;
	assert_int_equal(rdma_resolve_addr(id, NULL, addr4("127.0.0.1", PORT), 10), 0);
	stand_in.fault[CMD(GET_EVENT)] = (struct stand_in_fault){ .error = EACCES, .always = true };
	assert_errno(rdma_get_cm_event(channel, &event), EACCES);
	stand_in.fault[CMD(GET_EVENT)].always = false;
	assert_errno(rdma_get_cm_event(channel, &event), EACCES);
	expect_event(channel, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
	scene_destroy(id);
}

static struct rdma_cm_id *last;

static void *reader(void *arg)
{
	struct rdma_cm_event *event;
	bool over = false;

	(void)arg;
	while (!over) {
		if (rdma_get_cm_event(channel, &event))
			abort();
		over = event->id == last;
		rdma_ack_cm_event(event);
	}
	return NULL;
}

static void ids_end_under_their_events(void **state)
{
	struct sockaddr *dst = addr4("127.0.0.1", PORT);
	pthread_t threads[2];

	(void)state;
	last = scene_id(RDMA_PS_TCP);
	assert_int_equal(rdma_bind_addr(last, addr4("127.0.0.1", 7000)), 0);
	for (size_t i = 0; i < ARRAY_SIZE(threads); i++)
		assert_int_equal(pthread_create(&threads[i], NULL, reader, NULL), 0);
	for (int round = 0; round < 300; round++) {
		struct rdma_cm_id *id = scene_id(RDMA_PS_TCP);

		assert_int_equal(rdma_resolve_addr(id, NULL, dst, 10), 0);
		assert_int_equal(rdma_destroy_id(id), 0);
	}
	for (size_t i = 0; i < ARRAY_SIZE(threads); i++)
		stand_in_post(stand_in_find(last), RDMA_CM_EVENT_ADDR_CHANGE, 0);
	for (size_t i = 0; i < ARRAY_SIZE(threads); i++)
		assert_int_equal(pthread_join(threads[i], NULL), 0);
	scene_destroy(last);
}

static int start(void **state)
{
	(void)state;
	return scene_start(SCENE_IB) || fakes_start(1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		KERNEL_TEST(the_kernel_is_opened_when_it_is_needed),
		KERNEL_TEST(connections_live),
		KERNEL_TEST(requests_come_from_both),
		KERNEL_TEST(events_go_with_their_id),
		KERNEL_TEST(what_cannot_be_fetched_is_told),
		KERNEL_TEST(ids_end_under_their_events),
	};

	return cmocka_run_group_tests(tests, start, NULL);
}
