/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Threads over the kernel client: events are fetched in one while ids end, move
 * and appear in others.  Nothing hangs, and every event that comes is of an id
 * that is there.
 */
#include "kernel_stand_in_scene.h"

#include <pthread.h>

#include "core/base/log.h"

#define ROUNDS	300
#define BATCH	8

/* The event of this id ends the readers. */
static struct rdma_cm_id *last;
static unsigned int fetched;

/* Addresses for the threads: those of addr4() are in memory that all share. */
static struct sockaddr_in on_hca0, on_hca1, group_addr;

#define ADDR(in) ((struct sockaddr *)&(in))

/* Acks what comes, until one event of the last id: there is one for each reader. */
static void *reader(void *arg)
{
	struct rdma_event_channel *from = arg;
	struct rdma_cm_event *event;
	bool over = false;

	while (!over) {
		if (rdma_get_cm_event(from, &event))
			abort();
		over = event->id == last && event->event == RDMA_CM_EVENT_ADDR_CHANGE;
		if (event->event == RDMA_CM_EVENT_CONNECT_REQUEST) {
			struct rdma_cm_id *child = event->id;

			rdma_ack_cm_event(event);
			if (rdma_destroy_id(child))
				abort();
		} else {
			rdma_ack_cm_event(event);
		}
		__atomic_add_fetch(&fetched, 1, __ATOMIC_RELAXED);
	}
	return NULL;
}

/* An id whose events come only when told. */
static struct rdma_cm_id *make_last(void)
{
	struct rdma_cm_id *id = scene_id(RDMA_PS_TCP);

	assert_int_equal(rdma_bind_addr(id, addr4("10.0.1.1", 7000)), 0);
	last = id;
	fetched = 0;
	return id;
}

static void end_readers(pthread_t *threads, size_t num)
{
	uint32_t number = stand_in_find(last);

	for (size_t i = 0; i < num; i++)
		stand_in_post(number, RDMA_CM_EVENT_ADDR_CHANGE, 0);
	for (size_t i = 0; i < num; i++)
		assert_int_equal(pthread_join(threads[i], NULL), 0);
	scene_destroy(last);
}

static void ids_end_under_their_events(void **state)
{
	pthread_t threads[2];

	(void)state;
	make_last();
	for (size_t i = 0; i < ARRAY_SIZE(threads); i++)
		assert_int_equal(pthread_create(&threads[i], NULL, reader, channel), 0);
	for (int round = 0; round < ROUNDS; round++) {
		struct rdma_cm_id *ids[BATCH];

		for (size_t i = 0; i < BATCH; i++) {
			ids[i] = scene_id(RDMA_PS_TCP);
			assert_int_equal(rdma_resolve_addr(ids[i], NULL, ADDR(on_hca0), 10), 0);
		}
		for (size_t i = 0; i < BATCH; i++)
			assert_int_equal(rdma_destroy_id(ids[i]), 0);
	}
	end_readers(threads, ARRAY_SIZE(threads));
	assert_int_equal(stand_in.ids, 0);
}

static void *connecter(void *arg)
{
	struct rdma_event_channel *own = rdma_create_event_channel();
	struct rdma_conn_param param = { .qp_num = 1 };

	(void)arg;
	for (int round = 0; round < ROUNDS; round++) {
		struct rdma_cm_event *event;
		struct rdma_cm_id *id;

		if (rdma_create_id(own, &id, NULL, RDMA_PS_TCP) ||
		    rdma_resolve_addr(id, NULL, ADDR(on_hca0), 10) ||
		    rdma_get_cm_event(own, &event) || rdma_ack_cm_event(event) ||
		    rdma_resolve_route(id, 10) || rdma_get_cm_event(own, &event) ||
		    rdma_ack_cm_event(event) || rdma_connect(id, &param))
			abort();
		/* REJECTED, in whatever way. */
		if (rdma_get_cm_event(own, &event) ||
		    event->event != RDMA_CM_EVENT_REJECTED || rdma_ack_cm_event(event) ||
		    rdma_destroy_id(id))
			abort();
	}
	rdma_destroy_event_channel(own);
	return NULL;
}

/* Listeners come and go while requests are on their way to them. */
static void listeners_end_under_their_requests(void **state)
{
	pthread_t threads[2], connecting;
	unsigned int rounds = 0;

	(void)state;
	make_last();
	for (size_t i = 0; i < ARRAY_SIZE(threads); i++)
		assert_int_equal(pthread_create(&threads[i], NULL, reader, channel), 0);
	assert_int_equal(pthread_create(&connecting, NULL, connecter, NULL), 0);
	while (rounds++ < ROUNDS)
		assert_int_equal(rdma_destroy_id(scene_listener(RDMA_PS_TCP, "0.0.0.0")), 0);
	assert_int_equal(pthread_join(connecting, NULL), 0);
	end_readers(threads, ARRAY_SIZE(threads));
}

/* Back and forth between two channels that are both read. */
static void ids_move_under_their_events(void **state)
{
	struct rdma_event_channel *other = rdma_create_event_channel();
	pthread_t threads[2];
	uint32_t number;
	struct rdma_cm_id *id;

	(void)state;
	make_last();
	assert_int_equal(pthread_create(&threads[0], NULL, reader, channel), 0);
	id = scene_id(RDMA_PS_TCP);
	assert_int_equal(rdma_bind_addr(id, addr4("10.0.1.1", PORT)), 0);
	number = stand_in_find(id);
	for (int round = 0; round < ROUNDS; round++) {
		for (int i = 0; i < BATCH; i++)
			stand_in_post(number, RDMA_CM_EVENT_DISCONNECTED, 0);
		assert_int_equal(rdma_migrate_id(id, round % 2 ? channel : other), 0);
		if (round % 2)
			continue;
		/* On the channel that nobody else reads: none is lost between the two. */
		for (int i = 0; i < BATCH; i++)
			stand_in_post(number, RDMA_CM_EVENT_TIMEWAIT_EXIT, 0);
		for (int i = 0; i < BATCH;) {
			struct rdma_cm_event *event;

			assert_int_equal(rdma_get_cm_event(other, &event), 0);
			assert_ptr_equal(event->id, id);
			i += event->event == RDMA_CM_EVENT_TIMEWAIT_EXIT;
			assert_int_equal(rdma_ack_cm_event(event), 0);
		}
	}
	end_readers(threads, 1);
	scene_destroy(id);
	rdma_destroy_event_channel(other);
}

static void *joiner(void *arg)
{
	struct rdma_cm_id *id = arg;

	for (int round = 0; round < ROUNDS; round++)
		if (rdma_join_multicast(id, ADDR(group_addr), NULL) ||
		    rdma_leave_multicast(id, ADDR(group_addr)))
			abort();
	return NULL;
}

static void groups_end_under_their_events(void **state)
{
	struct rdma_cm_id *id = scene_id(RDMA_PS_UDP);
	pthread_t threads[2], joining;

	(void)state;
	assert_int_equal(rdma_bind_addr(id, addr4("10.0.1.1", PORT)), 0);
	make_last();
	for (size_t i = 0; i < ARRAY_SIZE(threads); i++)
		assert_int_equal(pthread_create(&threads[i], NULL, reader, channel), 0);
	assert_int_equal(pthread_create(&joining, NULL, joiner, id), 0);
	assert_int_equal(pthread_join(joining, NULL), 0);
	scene_destroy(id);
	end_readers(threads, ARRAY_SIZE(threads));
}

/* Devices come and go while others resolve addresses on them. */
static void *plugger(void *arg)
{
	(void)arg;
	for (int round = 0; round < ROUNDS; round++) {
		stand_in_plug("hca1", false);
		rdma_free_devices(rdma_get_devices(NULL));
		stand_in_plug("hca1", true);
		rdma_free_devices(rdma_get_devices(NULL));
	}
	return NULL;
}

/* What two threads see of the host must not cross: one looks, and is done with it, at a time. */
static const struct kernel_host *host;
static unsigned int lookers;
static bool crossed;

static int slow_devices(struct kernel_host_device **ret_devices, size_t *ret_num)
{
	int r;

	if (__atomic_add_fetch(&lookers, 1, __ATOMIC_RELAXED) > 1)
		__atomic_store_n(&crossed, true, __ATOMIC_RELAXED);
	r = host->devices(ret_devices, ret_num);
	for (int i = 0; i < 10; i++)
		sched_yield();
	__atomic_sub_fetch(&lookers, 1, __ATOMIC_RELAXED);
	return r;
}

static void *looker(void *arg)
{
	(void)arg;
	for (int round = 0; round < 2 * ROUNDS; round++)
		rdma_free_devices(rdma_get_devices(NULL));
	return NULL;
}

static void devices_go_under_their_ids(void **state)
{
	static struct kernel_host slow;
	struct rdma_event_channel *own = rdma_create_event_channel();
	struct rdma_cm_event *event;
	pthread_t plugging, looking;
	int num;

	(void)state;
	host = polycm_kernel_host;
	slow = *host;
	slow.devices = slow_devices;
	polycm_kernel_host = &slow;
	assert_int_equal(pthread_create(&plugging, NULL, plugger, NULL), 0);
	assert_int_equal(pthread_create(&looking, NULL, looker, NULL), 0);
	for (int round = 0; round < ROUNDS; round++) {
		struct rdma_cm_id *id;

		assert_int_equal(rdma_create_id(own, &id, NULL, RDMA_PS_TCP), 0);
		/* It succeeds or it does not; there is an event if it does. */
		if (!rdma_resolve_addr(id, NULL, ADDR(on_hca1), 10)) {
			assert_int_equal(rdma_get_cm_event(own, &event), 0);
			assert_int_equal(rdma_ack_cm_event(event), 0);
		}
		assert_int_equal(rdma_destroy_id(id), 0);
	}
	assert_int_equal(pthread_join(plugging, NULL), 0);
	assert_int_equal(pthread_join(looking, NULL), 0);
	/* None was given up, or refused, for good. */
	rdma_free_devices(rdma_get_devices(&num));
	assert_int_equal(num, 4);
	assert_false(crossed);
	polycm_kernel_host = host;
	rdma_destroy_event_channel(own);
}

/* A reader that is cancelled while it waits takes nothing with it. */
static void *waiter(void *arg)
{
	struct rdma_cm_event *event;

	__atomic_store_n((bool *)arg, true, __ATOMIC_RELEASE);
	rdma_get_cm_event(channel, &event);
	return NULL;
}

static void waiting_readers_can_be_cancelled(void **state)
{
	struct rdma_cm_id *id = scene_id(RDMA_PS_TCP);

	(void)state;
	for (int round = 0; round < 20; round++) {
		bool waits = false;
		pthread_t thread;
		void *result;

		assert_int_equal(pthread_create(&thread, NULL, waiter, &waits), 0);
		while (!__atomic_load_n(&waits, __ATOMIC_ACQUIRE))
			sched_yield();
		assert_int_equal(pthread_cancel(thread), 0);
		assert_int_equal(pthread_join(thread, &result), 0);
		assert_ptr_equal(result, PTHREAD_CANCELED);
	}
	assert_int_equal(rdma_resolve_addr(id, NULL, addr4("10.0.1.1", PORT), 10), 0);
	expect_event(channel, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
	scene_destroy(id);
}

/* When the event has been fetched, and where it leads to is asked. */
static void cancel_asker(unsigned int command, void *response, size_t len)
{
	(void)response;
	(void)len;
	if (command == RDMA_USER_CM_CMD_QUERY_ROUTE)
		pthread_cancel(pthread_self());
}

static void *retriever(void *event)
{
	if (rdma_get_cm_event(channel, event))
		abort();
	return NULL;
}

/* With the event it takes the id's lock, and opens the device. */
static void readers_with_an_event_are_not_cancelled(void **state)
{
	struct rdma_cm_id *id = scene_id(RDMA_PS_TCP);
	struct rdma_cm_event *event = NULL;
	pthread_t thread;
	void *result;

	(void)state;
	stand_in_plug("hca1", false);
	rdma_free_devices(rdma_get_devices(NULL));
	stand_in_plug("hca1", true);
	assert_int_equal(rdma_resolve_addr(id, NULL, ADDR(on_hca1), 10), 0);
	stand_in.edit = cancel_asker;
	assert_int_equal(pthread_create(&thread, NULL, retriever, &event), 0);
	assert_int_equal(pthread_join(thread, &result), 0);
	stand_in.edit = NULL;
	assert_null(result);
	assert_int_equal(event->event, RDMA_CM_EVENT_ADDR_RESOLVED);
	assert_int_equal(rdma_ack_cm_event(event), 0);
	scene_destroy(id);
}

/* The wait for events on their way ended because they came, not because it took too long. */
static unsigned int errors;

static int begin(void **state)
{
	errors = polycm_log_errors();
	return scene_reset(state);
}

static int end(void **state)
{
	assert_int_equal(polycm_log_errors(), errors);
	return scene_check(state);
}

#define THREADS_TEST(function) cmocka_unit_test_setup_teardown(function, begin, end)

static int start(void **state)
{
	(void)state;
	memcpy(&on_hca0, addr4("10.0.1.1", PORT), sizeof(on_hca0));
	memcpy(&on_hca1, addr4("10.1.1.1", PORT), sizeof(on_hca1));
	memcpy(&group_addr, addr4("239.1.2.3", 0), sizeof(group_addr));
	return scene_start(SCENE_ALL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		THREADS_TEST(ids_end_under_their_events),
		THREADS_TEST(listeners_end_under_their_requests),
		THREADS_TEST(ids_move_under_their_events),
		THREADS_TEST(groups_end_under_their_events),
		THREADS_TEST(devices_go_under_their_ids),
		THREADS_TEST(waiting_readers_can_be_cancelled),
		THREADS_TEST(readers_with_an_event_are_not_cancelled),
	};

	return cmocka_run_group_tests(tests, start, NULL);
}
