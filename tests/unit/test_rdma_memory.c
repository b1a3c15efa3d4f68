/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * No memory: what has happened is told all the same, and what cannot be told
 * is not begun.
 */
#include "cm_fake.h"

#include <pthread.h>
#include <semaphore.h>

#include "core/base/live.h"
#include "tests/nth/nth.h"

#define NUM_IDS 100u

static struct polycm_id *internal(struct rdma_cm_id *id)
{
	return (struct polycm_id *)(void *)id;
}

/* From here on, and until nth_disarm(), there is none. */
static void no_memory(void)
{
	nth_in("");
	nth_arm(NTH_ALLOC, 1, 0);
}

/* As many as the program may hold of an id at once, with all the data that an event may have. */
static const enum rdma_cm_event_type id_events[] = {
	RDMA_CM_EVENT_ADDR_ERROR, RDMA_CM_EVENT_ROUTE_ERROR, RDMA_CM_EVENT_REJECTED,
	RDMA_CM_EVENT_ESTABLISHED, RDMA_CM_EVENT_DISCONNECTED, RDMA_CM_EVENT_TIMEWAIT_EXIT,
	RDMA_CM_EVENT_ADDR_CHANGE, RDMA_CM_EVENT_DEVICE_REMOVAL,
};

static_assert(ARRAY_SIZE(id_events) == POLYCM_ID_EVENTS, "all of the reserve is tested");

static void post_and_take(struct rdma_event_channel *channel, struct rdma_cm_id **ids)
{
	uint8_t data[255] = { 7, [254] = 9 };
	const struct rdma_conn_param conn = { .private_data = data, .private_data_len = 255 };
	int failed = 0, wrong = 0;

	no_memory();
	for (unsigned int i = 0; i < NUM_IDS; i++)
		for (unsigned int k = 0; k < ARRAY_SIZE(id_events); k++)
			failed += post_conn(ids[i], id_events[k], 0, &conn, NULL) != 0;
	for (unsigned int i = 0; i < NUM_IDS * ARRAY_SIZE(id_events) && !failed; i++) {
		struct rdma_cm_event *event;

		if (rdma_get_cm_event(channel, &event)) {
			failed++;
			break;
		}
		wrong += event->id != ids[i / ARRAY_SIZE(id_events)] ||
			 event->event != id_events[i % ARRAY_SIZE(id_events)] ||
			 event->param.conn.private_data_len != 255 ||
			 memcmp(event->param.conn.private_data, data, sizeof(data)) != 0;
		failed += rdma_ack_cm_event(event) != 0;
		/* It is the program's no more. */
		wrong += rdma_ack_cm_event(event) != -1;
	}
	(void)nth_disarm(NULL);
	assert_int_equal(failed, 0);
	assert_int_equal(wrong, 0);
}

static void post_twice(void)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct rdma_cm_id *ids[NUM_IDS];

	for (unsigned int i = 0; i < NUM_IDS; i++)
		ids[i] = resolved_id(channel);
	/* What was given back serves again. */
	post_and_take(channel, ids);
	post_and_take(channel, ids);
	expect_no_event(channel);
	for (unsigned int i = 0; i < NUM_IDS; i++)
		assert_int_equal(rdma_destroy_id(ids[i]), 0);
	rdma_destroy_event_channel(channel);
}

static void the_events_of_an_id_have_memory(void **state)
{
	(void)state;
	post_twice();
}

static void *sleep_until(void *arg)
{
	(void)sem_wait(arg);
	return NULL;
}

/* Without the blocks that one thread keeps. */
static void also_with_several_threads(void **state)
{
	pthread_t thread;
	sem_t end;

	(void)state;
	assert_int_equal(sem_init(&end, 0, 0), 0);
	assert_int_equal(pthread_create(&thread, NULL, sleep_until, &end), 0);
	post_twice();
	assert_int_equal(sem_post(&end), 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
}

/* The id of a request is either refused to the provider or reaches the program. */
static void a_request_is_refused_or_comes(void **state)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct rdma_cm_id *listener = listening_id(channel);
	bool failed = true;
	unsigned long n;

	(void)state;
	for (n = 1; failed; n++) {
		struct rdma_cm_event *event;
		struct rdma_cm_id *id;
		int err;

		nth_in("");
		nth_arm(NTH_ALLOC, n, 0);
		err = post_request(fakes, internal(listener), NULL, NULL);
		failed = nth_disarm(NULL);
		if (err) {
			assert_int_equal(err, -ENOMEM);
			expect_no_event(channel);
			continue;
		}
		no_memory();
		err = rdma_get_cm_event(channel, &event);
		(void)nth_disarm(NULL);
		assert_int_equal(err, 0);
		assert_int_equal(event->event, RDMA_CM_EVENT_CONNECT_REQUEST);
		id = event->id;
		assert_int_equal(rdma_ack_cm_event(event), 0);
		assert_int_equal(rdma_destroy_id(id), 0);
	}
	print_message("%lu allocations\n", n - 1);
	assert_int_equal(rdma_destroy_id(listener), 0);
	rdma_destroy_event_channel(channel);
}

static void a_group_has_memory_for_its_end(void **state)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct rdma_cm_id *id = resolved_id(channel);
	struct polycm_event event = { .size = sizeof(event), .is_ud = true };
	struct rdma_cm_event *got;
	int err[2];

	(void)state;
	assert_int_equal(rdma_join_multicast(id, addr4("224.0.0.9", 0), NULL), 0);
	event.group = fake_id_of(id)->group;
	no_memory();
	event.type = RDMA_CM_EVENT_MULTICAST_JOIN;
	err[0] = polycm_post_event(internal(id), &event);
	event.type = RDMA_CM_EVENT_MULTICAST_ERROR;
	err[1] = polycm_post_event(internal(id), &event);
	(void)nth_disarm(NULL);
	assert_int_equal(err[0], 0);
	assert_int_equal(err[1], 0);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(rdma_get_cm_event(channel, &got), 0);
		assert_int_equal(rdma_ack_cm_event(got), 0);
	}
	assert_int_equal(rdma_destroy_id(id), 0);
	rdma_destroy_event_channel(channel);
}

/* Thousands of ids are cheap to make: few allocations for what is hardly ever used. */
static void a_reserve_is_made_wholesale(void **state)
{
	enum { TIMES = 1000 };
	struct nth_counts counts;
	int err = 0;

	(void)state;
	nth_in("");
	nth_arm(NTH_ALLOC, 0, 0);
	for (unsigned int i = 0; i < TIMES; i++)
		err |= polycm_ev_reserve(POLYCM_ID_EVENTS);
	(void)nth_disarm(&counts);
	assert_int_equal(err, 0);
	print_message("%lu allocations\n", counts.of[NTH_ALLOC]);
	assert_true(counts.of[NTH_ALLOC] <= TIMES / 4);	/* none are seen under valgrind */
	for (unsigned int i = 0; i < TIMES; i++)
		polycm_ev_unreserve(POLYCM_ID_EVENTS);
}

/* A table that cannot grow is filled; what has a place reserved comes in after that. */
static void the_live_set_fills_up(void **state)
{
	static char objects[8192][16], last;
	unsigned int num;

	(void)state;
	assert_int_equal(polycm_live_add(&polycm_live_timers, objects), 0);
	assert_int_equal(polycm_live_reserve(&polycm_live_timers, &last), 0);
	no_memory();
	for (num = 1; num < ARRAY_SIZE(objects); num++)
		(void)polycm_live_add(&polycm_live_timers, objects[num]);
	polycm_live_add_reserved(&polycm_live_timers, &last);
	(void)nth_disarm(NULL);
	assert_true(polycm_live_remove(&polycm_live_timers, &last));
	assert_true(polycm_live_remove(&polycm_live_timers, objects));
	for (num = 1; num < ARRAY_SIZE(objects); num++) {
		(void)polycm_live_remove(&polycm_live_timers, objects[num]);
		assert_false(polycm_live(&polycm_live_timers, objects[num]));
	}
}

static int start(void **state)
{
	(void)state;
	return fakes_start(1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		RDMA_TEST(the_events_of_an_id_have_memory),
		RDMA_TEST(also_with_several_threads),
		RDMA_TEST(a_request_is_refused_or_comes),
		RDMA_TEST(a_group_has_memory_for_its_end),
		cmocka_unit_test(a_reserve_is_made_wholesale),
		cmocka_unit_test(the_live_set_fills_up),
	};

	return cmocka_run_group_tests(tests, start, NULL);
}
