/* SPDX-License-Identifier: BSD-2-Clause */
/* Which threads do the same for ever, and where they are found. */
#include "config.h"

#include <string.h>

#include "tests/cmocka_all.h"
#include "turn/recur.h"

static uint64_t memory[TURN_RECUR_WORDS + 8];

/* A made-up thread: its step is called in each of its states, and changes it. */
struct thread {
	struct turn_recur_state state;
	void (*step)(struct thread *thread, struct turn_recur *recur);
	unsigned int num;	/* what the step needs */
};

static uint64_t *ip(struct thread *thread)
{
	return &thread->state.registers[TURN_RIP];
}

/* In this many steps, from a state; PERHAPS: no answer. */
static enum turn_recur_answer ask(struct thread *thread, struct turn_recur *recur, unsigned int steps)
{
	enum turn_recur_answer answer = TURN_RECUR_PERHAPS;

	while (steps-- && answer == TURN_RECUR_PERHAPS) {
		thread->step(thread, recur);
		answer = turn_recur_step(recur, &thread->state);
	}
	return answer;
}

static void step_circle(struct thread *thread, struct turn_recur *recur)
{
	(void)recur;
	*ip(thread) = 100 + (*ip(thread) - 100 + 1) % thread->num;
}

/* Whatever it is asked from, it is found at the same place. */
static void test_circle(void **state)
{
	struct turn_recur recur;

	(void)state;
	for (unsigned int length = 1; length < 40; length++)
		for (unsigned int from = 0; from < length; from++) {
			struct thread thread = { .step = step_circle, .num = length };

			*ip(&thread) = 100 + from;
			turn_recur_begin(&recur, &thread.state);
			assert_int_equal(ask(&thread, &recur, 6 * length + 4), TURN_RECUR_WAITS);
			assert_uint_equal(*ip(&thread), 100);
			assert_uint_equal(recur.length, length);
			assert_int_equal(ask(&thread, &recur, length - 1), TURN_RECUR_PERHAPS);
			assert_int_equal(ask(&thread, &recur, 1), TURN_RECUR_WAITS);
			/* It leaves the circle. */
			thread.state.registers[3] = 1;
			assert_int_equal(ask(&thread, &recur, length), TURN_RECUR_CHANGED);
		}
}

static void step_before(struct thread *thread, struct turn_recur *recur)
{
	if (*ip(thread) < 100)
		*ip(thread) += 1;
	else
		step_circle(thread, recur);
}

static void test_before_circle(void **state)
{
	struct thread thread = { .step = step_before, .num = 7 };
	struct turn_recur recur;

	(void)state;
	*ip(&thread) = 23;
	turn_recur_begin(&recur, &thread.state);
	assert_int_equal(ask(&thread, &recur, 400), TURN_RECUR_WAITS);
	assert_uint_equal(*ip(&thread), 100);
	assert_uint_equal(recur.length, 7);
}

static void step_count(struct thread *thread, struct turn_recur *recur)
{
	step_circle(thread, recur);
	thread->state.registers[5]++;
}

static void test_counter(void **state)
{
	struct thread thread = { .step = step_count, .num = 3 };
	struct turn_recur recur;

	(void)state;
	*ip(&thread) = 100;
	turn_recur_begin(&recur, &thread.state);
	assert_int_equal(ask(&thread, &recur, 10000), TURN_RECUR_PERHAPS);
}

static void step_digest(struct thread *thread, struct turn_recur *recur)
{
	step_circle(thread, recur);
	thread->state.others++;
}

static void test_digest(void **state)
{
	struct thread thread = { .step = step_digest, .num = 3 };
	struct turn_recur recur;

	(void)state;
	*ip(&thread) = 100;
	turn_recur_begin(&recur, &thread.state);
	assert_int_equal(ask(&thread, &recur, 1000), TURN_RECUR_PERHAPS);
}

/* It writes two words in each round, with one value and another: as calls of two functions do. */
static void step_write(struct thread *thread, struct turn_recur *recur)
{
	turn_recur_writes(recur, (uint64_t)memory + 6, 4);
	memory[0] = memory[1] = *ip(thread);
	step_circle(thread, recur);
}

static void test_same_writes(void **state)
{
	struct thread thread = { .step = step_write, .num = 5 };
	struct turn_recur recur;

	(void)state;
	*ip(&thread) = 102;
	turn_recur_begin(&recur, &thread.state);
	assert_int_equal(ask(&thread, &recur, 60), TURN_RECUR_WAITS);
	assert_uint_equal(*ip(&thread), 100);
	assert_int_equal(ask(&thread, &recur, 5), TURN_RECUR_WAITS);
}

static void step_count_memory(struct thread *thread, struct turn_recur *recur)
{
	step_circle(thread, recur);
	if (*ip(thread) != 100)
		return;
	turn_recur_writes(recur, (uint64_t)memory, 8);
	memory[0]++;
}

static void test_counter_in_memory(void **state)
{
	struct thread thread = { .step = step_count_memory, .num = 3 };
	struct turn_recur recur;

	(void)state;
	*ip(&thread) = 100;
	turn_recur_begin(&recur, &thread.state);
	assert_int_equal(ask(&thread, &recur, 1000), TURN_RECUR_PERHAPS);
}

/* Registers recur in each round, memory in every fourth: no place is one alone. */
static void step_turn_memory(struct thread *thread, struct turn_recur *recur)
{
	step_count_memory(thread, recur);
	memory[0] %= 4;
}

static void test_double_place(void **state)
{
	struct thread thread = { .step = step_turn_memory, .num = 3 };
	struct turn_recur recur;

	(void)state;
	memory[0] = 0;
	*ip(&thread) = 100;
	turn_recur_begin(&recur, &thread.state);
	assert_int_equal(ask(&thread, &recur, 1000), TURN_RECUR_UNKNOWN);
}

/* More than can be noted, in a round. */
static void step_fill(struct thread *thread, struct turn_recur *recur)
{
	const uint64_t i = *ip(thread) - 100;

	turn_recur_writes(recur, (uint64_t)(memory + i), 8);
	memory[i] = i;
	step_circle(thread, recur);
}

static void test_too_much(void **state)
{
	struct thread thread = { .step = step_fill, .num = TURN_RECUR_WORDS + 1 };
	struct turn_recur recur;

	(void)state;
	*ip(&thread) = 100;
	turn_recur_begin(&recur, &thread.state);
	assert_int_not_equal(ask(&thread, &recur, 2000), TURN_RECUR_WAITS);
	thread.num--;
	*ip(&thread) = 100;
	turn_recur_begin(&recur, &thread.state);
	assert_int_equal(ask(&thread, &recur, 2000), TURN_RECUR_WAITS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_circle),
		cmocka_unit_test(test_before_circle),
		cmocka_unit_test(test_counter),
		cmocka_unit_test(test_digest),
		cmocka_unit_test(test_same_writes),
		cmocka_unit_test(test_counter_in_memory),
		cmocka_unit_test(test_double_place),
		cmocka_unit_test(test_too_much),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
