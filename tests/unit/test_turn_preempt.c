/* SPDX-License-Identifier: BSD-2-Clause */
/* Preemptions: what a seed chooses, and that what was noted of it repeats it. */
#include "config.h"

#include <string.h>

#include "tests/cmocka_all.h"
#include "turn/order.h"
#include "turn/preempt.h"

static struct turn_segment segment;

static int setup(void **state)
{
	(void)state;
	memset(&segment, 0, sizeof(segment));
	turn_order_init(&segment, 7);
	segment.num_members = 2;
	for (uint32_t i = 0; i < 2; i++)
		segment.members[i] = (struct turn_member){ .number = i + 1, .files.program = i };
	return 0;
}

/* Threads pass points in turn, as the list says; how long all of them are held up. */
static uint64_t pass_points(const uint32_t *threads, size_t num)
{
	uint64_t ns = 0;

	for (size_t i = 0; i < num; i++) {
		struct turn_thread *thread = &segment.threads[threads[i]];

		if (turn_preempt_call(&segment, thread, (uint32_t)i + 1))
			ns += turn_preempt_take(&segment, thread);
	}
	return ns;
}

static void add_threads(void)
{
	turn_order_add(&segment, 0);
	turn_order_add(&segment, 1);
	turn_order_add(&segment, 0);
}

#define POINTS 300

static void choose(uint64_t seed, uint64_t points, uint32_t num)
{
	turn_preempt_choose(&segment, &(struct turn_choice){
		.seed = seed, .points = points, .num = num, .program = TURN_NOBODY,
	});
}

static void fill(uint32_t *threads)
{
	for (uint32_t i = 0; i < POINTS; i++)
		threads[i] = i * i % 3;
}

static void test_nobody_is_held_up_unasked(void **state)
{
	uint32_t threads[POINTS];

	(void)state;
	add_threads();
	fill(threads);
	assert_int_equal(pass_points(threads, POINTS), 0);
	assert_int_equal(segment.points, POINTS);
	assert_int_equal(segment.num_preempted, 0);
}

static void test_threads_have_numbers_in_their_member(void **state)
{
	(void)state;
	add_threads();
	assert_int_equal(segment.threads[0].number, 1);
	assert_int_equal(segment.threads[1].number, 1);
	assert_int_equal(segment.threads[2].number, 2);
}

static void test_a_given_place_is_met_once(void **state)
{
	const struct turn_preemption given = { .process = 1, .thread = 2, .point.call = 3, .ns = 500 };
	const uint32_t threads[] = { 0, 0, 0, 1, 1, 1, 2, 2, 2, 2 };

	(void)state;
	assert_true(turn_preempt_give(&segment, &given));
	add_threads();
	assert_int_equal(pass_points(threads, 8), 0);
	assert_int_equal(pass_points(threads + 8, 1), 500);
	assert_int_equal(pass_points(threads + 9, 1), 0);
	assert_int_equal(segment.num_preempted, 1);
	assert_int_equal(segment.preempted[0].process, 1);
	assert_int_equal(segment.preempted[0].thread, 2);
	assert_int_equal(segment.preempted[0].point.call, 3);
	assert_int_equal(segment.preempted[0].ns, 500);
}

/* Locks are counted from the last call on, so that more or fewer of them change nothing later. */
static void test_a_place_between_locks(void **state)
{
	const struct turn_preemption given = {
		.process = 1, .thread = 1, .point = { .call = 1, .lock = 2 }, .ns = 500,
	};
	struct turn_thread *thread = &segment.threads[0];

	(void)state;
	assert_true(turn_preempt_give(&segment, &given));
	add_threads();
	for (size_t i = 0; i < 5; i++)
		assert_false(turn_preempt_lock(&segment, thread, 9));
	assert_false(turn_preempt_call(&segment, thread, 1));
	assert_false(turn_preempt_lock(&segment, thread, 9));
	assert_true(turn_preempt_lock(&segment, thread, 9));
	assert_int_equal(turn_preempt_take(&segment, thread), 500);
	assert_int_equal(segment.preempted[0].point.lock, 2);
	assert_false(turn_preempt_lock(&segment, thread, 9));
}

static void test_a_place_that_does_not_come_is_the_next_one(void **state)
{
	const struct turn_preemption given = {
		.process = 1, .thread = 1, .point = { .call = 1, .lock = 2 }, .ns = 500,
	};
	struct turn_thread *thread = &segment.threads[0];

	(void)state;
	assert_true(turn_preempt_give(&segment, &given));
	add_threads();
	assert_false(turn_preempt_call(&segment, thread, 1));
	assert_false(turn_preempt_lock(&segment, thread, 9));
	assert_true(turn_preempt_call(&segment, thread, 1));
	assert_int_equal(turn_preempt_take(&segment, thread), 500);
	assert_false(turn_preempt_call(&segment, thread, 1));
}

/* Of several that do not come none is lost. */
static void test_places_that_do_not_come_add_up(void **state)
{
	struct turn_thread *thread = &segment.threads[0];

	(void)state;
	for (uint64_t lock = 2; lock <= 4; lock++)
		assert_true(turn_preempt_give(&segment, &(struct turn_preemption){
			.process = 1, .thread = 1, .point = { .call = 1, .lock = lock }, .ns = 10 * lock,
		}));
	add_threads();
	assert_false(turn_preempt_call(&segment, thread, 1));
	assert_false(turn_preempt_lock(&segment, thread, 9));
	assert_true(turn_preempt_call(&segment, thread, 1));
	assert_int_equal(turn_preempt_take(&segment, thread), 90);
	assert_false(turn_preempt_call(&segment, thread, 1));
}

static void test_what_cannot_be_noted_does_not_happen(void **state)
{
	(void)state;
	add_threads();
	segment.num_preempted = TURN_MAX_PREEMPTIONS;
	choose(1, 1, 1);
	assert_true(turn_preempt_call(&segment, &segment.threads[0], 1));
	assert_int_equal(turn_preempt_take(&segment, &segment.threads[0]), 0);
}

static void test_several_given_of_one_thread_in_any_order(void **state)
{
	static const uint64_t points[] = { 9, 2, 5 };
	const uint32_t threads[] = { 1, 1, 1, 1, 1, 1, 1, 1, 1, 1 };

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		struct turn_preemption given = {
			.process = 2, .thread = 1, .point.call = points[i], .ns = 10,
		};

		assert_true(turn_preempt_give(&segment, &given));
	}
	add_threads();
	assert_int_equal(pass_points(threads, 10), 30);
	assert_int_equal(segment.preempted[0].point.call, 2);
	assert_int_equal(segment.preempted[2].point.call, 9);
}

static void test_there_are_only_so_many(void **state)
{
	const struct turn_preemption given = { .process = 1, .thread = 1, .point.call = 1, .ns = 1 };

	(void)state;
	for (size_t i = 0; i < TURN_MAX_PREEMPTIONS; i++)
		assert_true(turn_preempt_give(&segment, &given));
	assert_false(turn_preempt_give(&segment, &given));
	choose(1, 10, TURN_MAX_CHOSEN + 5);
	assert_int_equal(segment.num_chosen, TURN_MAX_CHOSEN);
}

static void test_no_points_to_choose_from(void **state)
{
	(void)state;
	choose(1, 0, 3);
	assert_int_equal(segment.num_chosen, 0);
}

/* What one run chose by its seed is given to the next: both are held up at the same places. */
static void test_what_was_noted_repeats_it(void **state)
{
	struct turn_preemption noted[TURN_MAX_PREEMPTIONS];
	uint32_t threads[POINTS], num;
	uint64_t ns;

	(void)state;
	fill(threads);
	for (uint64_t seed = 1; seed < 50; seed++) {
		setup(NULL);
		choose(seed, POINTS, 4);
		add_threads();
		ns = pass_points(threads, POINTS);
		num = segment.num_preempted;
		assert_in_range(num, 1, 4);
		memcpy(noted, segment.preempted, sizeof(noted));
		setup(NULL);
		for (uint32_t i = 0; i < num; i++)
			assert_true(turn_preempt_give(&segment, &noted[i]));
		add_threads();
		assert_int_equal(pass_points(threads, POINTS), ns);
		assert_int_equal(segment.num_preempted, num);
		assert_memory_equal(segment.preempted, noted, num * sizeof(*noted));
	}
}

static void test_seeds_choose_different_places(void **state)
{
	uint64_t first;

	(void)state;
	choose(1, 1000000, 1);
	first = segment.chosen[0];
	setup(NULL);
	choose(2, 1000000, 1);
	assert_int_not_equal(segment.chosen[0], first);
}

static void test_only_one_member_is_held_up(void **state)
{
	uint32_t threads[POINTS];

	(void)state;
	fill(threads);
	turn_preempt_choose(&segment, &(struct turn_choice){
		.seed = 3, .points = POINTS, .num = 100, .program = 1,
	});
	add_threads();
	assert_int_not_equal(pass_points(threads, POINTS), 0);
	assert_in_range(segment.num_preempted, 10, 60);
	for (uint32_t i = 0; i < segment.num_preempted; i++)
		assert_int_equal(segment.preempted[i].process, 2);
}

static void test_a_choice_ends_and_what_is_given_does_not(void **state)
{
	const struct turn_preemption given = {
		.process = 1, .thread = 1, .point = { .call = POINTS / 3 }, .ns = 1000,
	};
	uint32_t threads[POINTS] = { 0 };
	uint32_t num;

	(void)state;
	assert_true(turn_preempt_give(&segment, &given));
	choose(3, POINTS, 100);
	add_threads();
	assert_int_not_equal(pass_points(threads, POINTS / 6), 0);
	num = segment.num_preempted;
	turn_preempt_end_choice(&segment);
	assert_int_equal(pass_points(threads, POINTS - POINTS / 6), given.ns);
	assert_int_equal(segment.num_preempted, num + 1);
	assert_int_equal(segment.preempted[num].ns, given.ns);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_nobody_is_held_up_unasked, setup),
		cmocka_unit_test_setup(test_threads_have_numbers_in_their_member, setup),
		cmocka_unit_test_setup(test_a_given_place_is_met_once, setup),
		cmocka_unit_test_setup(test_a_place_between_locks, setup),
		cmocka_unit_test_setup(test_a_place_that_does_not_come_is_the_next_one, setup),
		cmocka_unit_test_setup(test_places_that_do_not_come_add_up, setup),
		cmocka_unit_test_setup(test_what_cannot_be_noted_does_not_happen, setup),
		cmocka_unit_test_setup(test_several_given_of_one_thread_in_any_order, setup),
		cmocka_unit_test_setup(test_there_are_only_so_many, setup),
		cmocka_unit_test_setup(test_no_points_to_choose_from, setup),
		cmocka_unit_test_setup(test_what_was_noted_repeats_it, setup),
		cmocka_unit_test_setup(test_seeds_choose_different_places, setup),
		cmocka_unit_test_setup(test_only_one_member_is_held_up, setup),
		cmocka_unit_test_setup(test_a_choice_ends_and_what_is_given_does_not, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
