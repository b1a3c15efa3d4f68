/* SPDX-License-Identifier: BSD-2-Clause */
/* The record of a run: what is kept, from where on, and marks of the rest. */
#include "config.h"

#include <stddef.h>
#include <string.h>

#include "tests/cmocka_all.h"
#include "turn/order.h"
#include "turn/record.h"

static struct turn_segment segment;
static const struct turn_record *record = &segment.record;
static uint32_t thread;

static int setup(void **state)
{
	(void)state;
	memset(&segment, 0, sizeof(segment));
	turn_order_init(&segment, 7);
	segment.num_members = 1;
	segment.members[0].number = 3;
	segment.members[0].files.program = 2;
	thread = turn_order_add(&segment, 0);
	segment.records = true;
	return 0;
}

static void call(uint32_t number)
{
	segment.threads[thread].call = number;
	segment.threads[thread].arguments[0] = number + 100;
	turn_order_note_call(&segment, thread);
}

static void test_turns_and_calls_are_kept(void **state)
{
	(void)state;
	assert_int_equal(turn_order_next(&segment), thread);
	call(5);
	assert_int_equal(record->num_events, 2);
	assert_int_equal(record->num_counted, 2);
	assert_int_equal(record->events[0].kind, TURN_GIVEN);
	assert_int_equal(record->events[1].kind, TURN_CALL);
	assert_int_equal(record->events[1].call, 5);
	assert_int_equal(record->events[1].arguments[0], 105);
	assert_int_equal(record->events[1].turn, 1);
	assert_int_equal(record->events[1].now, TURN_BEGIN);
	assert_int_equal(record->events[1].program, 2);
	assert_int_equal(record->events[1].process, 3);
	assert_int_equal(record->events[1].thread, 1);
}

static void test_nothing_is_kept_unasked(void **state)
{
	(void)state;
	segment.records = false;
	turn_order_next(&segment);
	call(5);
	turn_record_result(&segment, &segment.threads[thread], 1);
	assert_int_equal(record->num_events, 0);
}

static void test_a_result_is_its_calls(void **state)
{
	(void)state;
	call(5);
	turn_order_next(&segment);
	turn_record_result(&segment, &segment.threads[thread], -4);
	turn_record_result(&segment, &segment.threads[thread], -5);
	assert_int_equal(record->events[0].result, -4);
	assert_int_equal(record->events[0].returned, 2);
}

static void test_quiet_calls_are_not_counted(void **state)
{
	(void)state;
	turn_record(&segment, TURN_QUIET_CALL, thread);
	assert_int_equal(record->num_events, 0);	/* before the first turn */
	call(5);
	turn_record(&segment, TURN_QUIET_CALL, thread);
	assert_int_equal(record->num_events, 2);
	assert_int_equal(record->num_counted, 1);
}

static void test_events_are_kept_from_a_place_on(void **state)
{
	(void)state;
	segment.record.from = 3;
	for (uint32_t i = 1; i <= 5; i++)
		call(i);
	assert_int_equal(record->num_events, 2);
	assert_int_equal(record->events[0].call, 4);
}

static void test_marks_are_of_all(void **state)
{
	uint64_t hash = 0;

	(void)state;
	for (uint32_t i = 1; i <= 5 * TURN_MARK_EVERY; i++) {
		call(i % 300);
		if (i == 2 * TURN_MARK_EVERY)
			hash = segment.hash;
	}
	assert_int_equal(record->num_events, TURN_MAX_EVENTS);
	assert_int_equal(record->marks[1].hash, hash);
	assert_int_equal(record->marks[4].hash, segment.hash);
	assert_int_equal(record->marks[5].hash, 0);
	/* Results of what is not kept are nobody's. */
	turn_record_result(&segment, &segment.threads[thread], 1);
	assert_int_equal(record->events[TURN_MAX_EVENTS - 1].returned, 0);
}

static void test_no_mark_before_the_first(void **state)
{
	static const struct turn_record empty;

	(void)state;
	segment.hash = segment.now = UINT64_MAX;
	turn_record(&segment, TURN_CALL, thread);
	assert_memory_equal(record, &empty, offsetof(struct turn_record, events));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_turns_and_calls_are_kept, setup),
		cmocka_unit_test_setup(test_nothing_is_kept_unasked, setup),
		cmocka_unit_test_setup(test_a_result_is_its_calls, setup),
		cmocka_unit_test_setup(test_quiet_calls_are_not_counted, setup),
		cmocka_unit_test_setup(test_events_are_kept_from_a_place_on, setup),
		cmocka_unit_test_setup(test_marks_are_of_all, setup),
		cmocka_unit_test_setup(test_no_mark_before_the_first, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
