/* SPDX-License-Identifier: BSD-2-Clause */
/* The order of turns: who is next, when that is, and that a seed decides it. */
#include "config.h"

#include <string.h>

#include "tests/cmocka_all.h"
#include "turn/order.h"

static struct turn_segment segment;

static int setup(void **state)
{
	(void)state;
	memset(&segment, 0, sizeof(segment));
	turn_order_init(&segment, 7);
	segment.num_members = 2;
	return 0;
}

/* A thread of that member that waits in that state. */
static uint32_t waiting(uint32_t member, enum turn_state state, uint64_t deadline)
{
	uint32_t i = turn_order_add(&segment, member);

	turn_order_wait(&segment, &segment.threads[i], state, deadline);
	return i;
}

static uint32_t waiting_on(uint64_t at, uint32_t bitset)
{
	uint32_t i = waiting(0, TURN_FUTEX, TURN_NEVER);

	segment.threads[i].word = (struct turn_word){ .space = 1, .at = at };
	segment.threads[i].bitset = bitset;
	return i;
}

static uint32_t wake(uint64_t at, uint32_t num, uint32_t bitset)
{
	return turn_order_wake(&segment, (struct turn_word){ .space = 1, .at = at }, num, bitset);
}

/* What a wait is for is said of a call, in which it may be held up or interrupted first. */
static void test_a_look_that_comes_after_other_waits(void **state)
{
	struct turn_thread *thread = &segment.threads[turn_order_add(&segment, 0)];

	(void)state;
	thread->then_next = TURN_LOOKS;
	thread->held = true;
	turn_order_wait(&segment, thread, TURN_ASLEEP, TURN_BEGIN + 1);
	assert_int_equal(thread->then, TURN_MOVES);
	thread->held = false;
	for (int i = 0; i < 2; i++) {
		turn_order_wait(&segment, thread, TURN_FUTEX, TURN_BEGIN + 2);
		assert_int_equal(thread->then, TURN_LOOKS);
	}
	thread->then_next = TURN_MOVES;
	turn_order_wait(&segment, thread, TURN_FUTEX, TURN_BEGIN + 3);
	assert_int_equal(thread->then, TURN_MOVES);
}

static void test_nobody_is_there(void **state)
{
	(void)state;
	assert_int_equal(turn_order_next(&segment), TURN_NOBODY);
	assert_int_equal(segment.owner, TURN_NOBODY);
	waiting(0, TURN_FUTEX, TURN_NEVER);
	waiting(1, TURN_DESCRIPTORS, TURN_NEVER);
	assert_int_equal(turn_order_next(&segment), TURN_NOBODY);
}

static void test_who_is_ready_comes_before_time_moves(void **state)
{
	uint32_t sleeper = waiting(0, TURN_ASLEEP, TURN_BEGIN + 5), ready = turn_order_add(&segment, 1);

	(void)state;
	assert_int_equal(turn_order_next(&segment), ready);
	assert_int_equal(segment.now, TURN_BEGIN);
	turn_order_remove(&segment, ready);
	assert_int_equal(turn_order_next(&segment), sleeper);
	assert_int_equal(segment.now, TURN_BEGIN + 5);
}

static void test_the_earliest_deadline_is_next(void **state)
{
	static const enum turn_state states[] = { TURN_ASLEEP, TURN_FUTEX, TURN_DESCRIPTORS };

	(void)state;
	for (size_t i = 0; i < sizeof(states) / sizeof(states[0]); i++) {
		uint32_t late, early;

		setup(NULL);
		late = waiting(0, TURN_ASLEEP, TURN_BEGIN + 20);
		early = waiting(0, states[i], TURN_BEGIN + 10);
		assert_int_equal(turn_order_next(&segment), early);
		assert_int_equal(segment.now, TURN_BEGIN + 10);
		turn_order_remove(&segment, early);
		assert_int_equal(turn_order_next(&segment), late);
	}
}

static void test_nobody_runs_after_the_limit(void **state)
{
	(void)state;
	segment.until = TURN_BEGIN + 9;
	waiting(0, TURN_ASLEEP, TURN_BEGIN + 10);
	assert_int_equal(turn_order_next(&segment), TURN_NOBODY);
	assert_int_equal(segment.now, TURN_BEGIN);
}

static void test_nobody_runs_faster_than_the_pace(void **state)
{
	uint32_t sleeper = waiting(0, TURN_ASLEEP, TURN_BEGIN + 10);

	(void)state;
	segment.pace = TURN_BEGIN + 9;
	assert_int_equal(turn_order_next(&segment), TURN_NOBODY);
	segment.pace = TURN_BEGIN + 11;
	assert_int_equal(turn_order_next(&segment), sleeper);
	assert_int_equal(segment.now, TURN_BEGIN + 10);
}

static void test_descriptors_are_asked_after_a_change_only(void **state)
{
	uint32_t first = waiting(0, TURN_DESCRIPTORS, TURN_NEVER);
	uint32_t second = waiting(1, TURN_DESCRIPTORS, TURN_NEVER);

	(void)state;
	segment.changes++;
	assert_int_equal(turn_order_next(&segment), first);
	turn_order_wait(&segment, &segment.threads[first], TURN_DESCRIPTORS, TURN_NEVER);
	assert_int_equal(turn_order_next(&segment), second);
	turn_order_wait(&segment, &segment.threads[second], TURN_DESCRIPTORS, TURN_NEVER);
	assert_int_equal(turn_order_next(&segment), TURN_NOBODY);
}

/* Who never waits lets those look first for which it may have changed something. */
static void test_who_lets_others_go_on_keeps_no_look_from_them(void **state)
{
	uint32_t busy = turn_order_add(&segment, 0), ready = turn_order_add(&segment, 1);
	uint32_t look = waiting(1, TURN_DESCRIPTORS, TURN_NEVER);

	(void)state;
	segment.changes++;
	segment.threads[busy].passed = true;
	assert_int_not_equal(turn_order_next(&segment), look);
	segment.threads[busy].passed = segment.threads[ready].passed = true;
	assert_int_equal(turn_order_next(&segment), look);
	turn_order_wait(&segment, &segment.threads[look], TURN_DESCRIPTORS, TURN_NEVER);
	assert_int_not_equal(turn_order_next(&segment), look);
	segment.changes++;
	segment.threads[busy].passed = segment.threads[ready].passed = true;
	turn_order_remove(&segment, ready);
	assert_int_equal(turn_order_next(&segment), look);
}

static uint32_t looking(uint64_t deadline)
{
	uint32_t i = waiting(0, TURN_FUTEX, deadline);

	segment.threads[i].then = TURN_LOOKS;
	return i;
}

/* Once, and again when something else has happened; but as often as time goes on for others. */
static void test_looks_alone_do_not_go_on(void **state)
{
	uint32_t one = looking(TURN_BEGIN + 10), two = looking(TURN_BEGIN + 20), other;

	(void)state;
	assert_int_equal(turn_order_next(&segment), one);
	turn_order_wait(&segment, &segment.threads[one], TURN_FUTEX, TURN_BEGIN + 30);
	segment.threads[one].then = TURN_LOOKS;
	assert_int_equal(turn_order_next(&segment), two);
	turn_order_wait(&segment, &segment.threads[two], TURN_FUTEX, TURN_BEGIN + 40);
	segment.threads[two].then = TURN_LOOKS;
	assert_int_equal(turn_order_next(&segment), TURN_NOBODY);
	assert_int_equal(segment.now, TURN_BEGIN + 20);
	other = waiting(1, TURN_ASLEEP, TURN_BEGIN + 50);
	assert_int_equal(turn_order_next(&segment), one);
	turn_order_wait(&segment, &segment.threads[one], TURN_FUTEX, TURN_NEVER);
	assert_int_equal(turn_order_next(&segment), two);
	turn_order_wait(&segment, &segment.threads[two], TURN_FUTEX, TURN_BEGIN + 60);
	segment.threads[two].then = TURN_LOOKS;
	assert_int_equal(turn_order_next(&segment), other);
	/* It may have done what there is to see. */
	turn_order_wait(&segment, &segment.threads[other], TURN_ASLEEP, TURN_NEVER);
	assert_int_equal(turn_order_next(&segment), two);
	assert_int_equal(segment.now, TURN_BEGIN + 60);
	turn_order_wait(&segment, &segment.threads[two], TURN_FUTEX, TURN_BEGIN + 70);
	segment.threads[two].then = TURN_LOOKS;
	assert_int_equal(turn_order_next(&segment), TURN_NOBODY);
	/* So may one that ends. */
	turn_order_remove(&segment, other);
	assert_int_equal(turn_order_next(&segment), two);
}

/* The time of one that waits for longer than anybody may is not waited for. */
static void test_looks_do_not_go_on_for_what_is_never(void **state)
{
	uint32_t one = looking(TURN_BEGIN + 10);

	(void)state;
	segment.until = TURN_BEGIN + 100;
	waiting(1, TURN_ASLEEP, TURN_BEGIN + 101);
	assert_int_equal(turn_order_next(&segment), one);
	turn_order_wait(&segment, &segment.threads[one], TURN_FUTEX, TURN_BEGIN + 20);
	segment.threads[one].then = TURN_LOOKS;
	assert_int_equal(turn_order_next(&segment), TURN_NOBODY);
	assert_int_equal(segment.now, TURN_BEGIN + 10);
}

/* Where only polls are to come for long they are rarer, and soon again when something happens. */
static void test_polls_in_vain_are_rarer(void **state)
{
	const uint64_t longest = TURN_LONGEST_POLL, rare = TURN_LONGEST_RARE_POLL;
	uint32_t one = waiting(0, TURN_ASLEEP, TURN_NEVER), two = waiting(1, TURN_ASLEEP, TURN_NEVER);
	struct turn_thread *self = &segment.threads[one], *other = &segment.threads[two];

	(void)state;
	turn_order_moved(&segment);
	segment.until = TURN_BEGIN + 1000 * TURN_SECOND;
	assert_int_equal(turn_order_poll_length(&segment, self), longest);
	segment.now = TURN_BEGIN + 20 * TURN_SECOND;
	assert_true(turn_order_poll_length(&segment, self) > longest);
	segment.now = TURN_BEGIN + 500 * TURN_SECOND;
	assert_int_equal(turn_order_poll_length(&segment, self), rare);
	/* Another one has something to do, and then polls itself. */
	other->deadline = segment.now + TURN_SECOND;
	assert_int_equal(turn_order_poll_length(&segment, self), longest);
	other->then = TURN_POLLS;
	assert_int_equal(turn_order_poll_length(&segment, self), rare);
	turn_order_moved(&segment);
	assert_int_equal(other->deadline, segment.now + longest);
	assert_int_equal(turn_order_poll_length(&segment, self), longest);
}

/* A thread waits with a time-out again and again, and another one does so, too, or waits for ever. */
static void test_ticks_are_rarer_where_nothing_else_happens(void **state)
{
	uint32_t one = waiting(0, TURN_ASLEEP, TURN_BEGIN + 1), two = waiting(1, TURN_FUTEX, TURN_NEVER);
	struct turn_thread *self = &segment.threads[one], *other = &segment.threads[two];

	(void)state;
	segment.until = TURN_BEGIN + 1000 * TURN_SECOND;
	self->then = TURN_TICKS;
	segment.now = TURN_BEGIN + TURN_LONGEST_TICKS;
	assert_int_equal(turn_order_tick_length(&segment, self), 0);
	/* To those that poll it is something that happens. */
	segment.now += TURN_SECOND;
	assert_int_equal(turn_order_next(&segment), one);
	assert_int_equal(segment.moved_at, segment.now);
	assert_int_equal(turn_order_tick_length(&segment, self), TURN_LONGEST_RARE_POLL);
	other->deadline = segment.now + TURN_SECOND;
	other->then = TURN_MOVES;
	assert_int_equal(turn_order_tick_length(&segment, self), 0);
	other->then = TURN_TICKS;
	assert_int_equal(turn_order_tick_length(&segment, self), TURN_LONGEST_RARE_POLL);
	assert_int_equal(turn_order_poll_length(&segment, self), TURN_LONGEST_POLL);
	turn_order_moved(&segment);
	assert_int_equal(turn_order_tick_length(&segment, self), 0);
}

static void test_words_wake_the_oldest(void **state)
{
	uint32_t a = waiting_on(100, 1), b = waiting_on(100, 2), c = waiting_on(200, 1);

	(void)state;
	assert_int_equal(wake(100, 1, 2), 1);
	assert_int_equal(segment.threads[b].state, TURN_READY);
	assert_true(segment.threads[b].woken);
	assert_int_equal(segment.threads[a].state, TURN_FUTEX);
	assert_int_equal(wake(300, 9, UINT32_MAX), 0);
	assert_int_equal(wake(200, 9, UINT32_MAX), 1);
	assert_int_equal(segment.threads[c].state, TURN_READY);
	assert_int_equal(wake(100, 0, UINT32_MAX), 0);
}

static void test_words_are_of_one_process_or_shared(void **state)
{
	uint32_t mine = waiting_on(100, 1);
	const struct turn_word other = { .space = 2, .at = 100 };

	(void)state;
	assert_int_equal(turn_order_wake(&segment, other, 1, 1), 0);
	segment.threads[mine].word.space = UINT64_C(1) << 63;
	turn_order_interrupt_words(&segment);
	assert_int_equal(segment.threads[mine].state, TURN_READY);
	assert_false(segment.threads[mine].woken);
}

static void test_requeued_threads_wait_behind(void **state)
{
	uint32_t moved = waiting_on(100, 1), there = waiting_on(200, 1);
	const struct turn_word from = { .space = 1, .at = 100 }, to = { .space = 1, .at = 200 };

	(void)state;
	assert_int_equal(turn_order_requeue(&segment, from, 5, to), 1);
	assert_int_equal(turn_order_requeue(&segment, from, 5, to), 0);
	assert_int_equal(turn_order_requeue(&segment, to, 5, to), 0);
	assert_int_equal(wake(200, 1, UINT32_MAX), 1);
	assert_int_equal(segment.threads[there].state, TURN_READY);
	assert_int_equal(segment.threads[moved].state, TURN_FUTEX);
}

static void test_a_member_that_ends_has_no_turn(void **state)
{
	uint32_t gone = turn_order_add(&segment, 0), left = turn_order_add(&segment, 1);

	(void)state;
	turn_order_remove_member(&segment, 0);
	assert_int_equal(segment.threads[gone].state, TURN_GONE);
	for (int i = 0; i < 20; i++)
		assert_int_equal(turn_order_next(&segment), left);
}

static void test_a_stopped_member_has_no_turn(void **state)
{
	uint32_t stopped = turn_order_add(&segment, 0);
	uint32_t sleeper = waiting(1, TURN_ASLEEP, TURN_BEGIN + 9);

	(void)state;
	waiting(0, TURN_ASLEEP, TURN_BEGIN + 5);
	segment.members[0].stopped = true;
	assert_int_equal(turn_order_next(&segment), sleeper);
	assert_int_equal(segment.now, TURN_BEGIN + 9);
	turn_order_remove(&segment, sleeper);
	assert_int_equal(turn_order_next(&segment), TURN_NOBODY);
	segment.members[0].stopped = false;
	turn_order_remove(&segment, stopped);
	assert_int_not_equal(turn_order_next(&segment), TURN_NOBODY);
}

static void test_slots_are_used_again_when_all_are(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < TURN_MAX_THREADS; i++)
		assert_int_equal(turn_order_add(&segment, 0), i);
	assert_int_equal(turn_order_add(&segment, 0), TURN_NOBODY);
	turn_order_remove(&segment, 3);
	assert_int_equal(turn_order_add(&segment, 1), 3);
	assert_int_equal(segment.threads[3].member, 1);
}

/* Who of five that are ready has the turn, 64 times; and what is left of it in the hash. */
static uint64_t order_of(uint64_t seed, char order[65])
{
	setup(NULL);
	turn_order_init(&segment, seed);
	for (int i = 0; i < 5; i++)
		turn_order_add(&segment, 0);
	for (int i = 0; i < 64; i++)
		order[i] = (char)('0' + turn_order_next(&segment));
	order[64] = '\0';
	return segment.hash;
}

static void test_a_seed_decides(void **state)
{
	char first[65], second[65], other[65];
	uint64_t hash = order_of(1, first);

	(void)state;
	assert_int_equal(order_of(1, second), hash);
	assert_string_equal(first, second);
	assert_int_not_equal(order_of(2, other), hash);
	assert_string_not_equal(first, other);
	for (char i = '0'; i < '5'; i++)
		assert_non_null(strchr(first, i));
}

static void test_the_launcher_stops_it_once(void **state)
{
	uint32_t thread = turn_order_add(&segment, 0);

	(void)state;
	segment.stop_at = 1;
	assert_int_equal(turn_order_next(&segment), thread);
	assert_false(segment.stopped);
	assert_int_equal(turn_order_next(&segment), TURN_NOBODY);
	assert_true(segment.stopped);
	assert_int_equal(segment.turns, 1);
	assert_int_equal(turn_order_next(&segment), thread);
}

static void test_calls_are_part_of_the_hash(void **state)
{
	uint32_t thread = turn_order_add(&segment, 0);
	uint64_t hash = segment.hash;

	(void)state;
	segment.threads[thread].call = 1;
	turn_order_note_call(&segment, thread);
	assert_int_not_equal(segment.hash, hash);
	assert_int_equal(segment.calls, 1);
}

/* It asks to have the turn before time moves, and then moves it itself. */
static void test_the_launcher_asks(void **state)
{
	uint32_t ready = turn_order_add(&segment, 0), later = waiting(1, TURN_ASLEEP, TURN_BEGIN + 5);
	uint64_t turns;

	(void)state;
	segment.asks = true;
	assert_int_equal(turn_order_next(&segment), ready);
	assert_false(segment.asked);
	turns = segment.turns;
	turn_order_wait(&segment, &segment.threads[ready], TURN_FUTEX, TURN_NEVER);
	assert_int_equal(turn_order_next(&segment), TURN_NOBODY);
	assert_true(segment.asked);
	assert_int_equal(segment.owner, TURN_NOBODY);
	assert_int_equal(segment.now, TURN_BEGIN);
	assert_int_equal(segment.turns, turns);
	segment.asks = false;
	assert_int_equal(turn_order_next(&segment), later);
	assert_int_equal(segment.now, TURN_BEGIN + 5);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_nobody_is_there, setup),
		cmocka_unit_test_setup(test_a_look_that_comes_after_other_waits, setup),
		cmocka_unit_test_setup(test_who_is_ready_comes_before_time_moves, setup),
		cmocka_unit_test_setup(test_the_earliest_deadline_is_next, setup),
		cmocka_unit_test_setup(test_nobody_runs_after_the_limit, setup),
		cmocka_unit_test_setup(test_nobody_runs_faster_than_the_pace, setup),
		cmocka_unit_test_setup(test_descriptors_are_asked_after_a_change_only, setup),
		cmocka_unit_test_setup(test_who_lets_others_go_on_keeps_no_look_from_them, setup),
		cmocka_unit_test_setup(test_looks_alone_do_not_go_on, setup),
		cmocka_unit_test_setup(test_looks_do_not_go_on_for_what_is_never, setup),
		cmocka_unit_test_setup(test_polls_in_vain_are_rarer, setup),
		cmocka_unit_test_setup(test_ticks_are_rarer_where_nothing_else_happens, setup),
		cmocka_unit_test_setup(test_words_wake_the_oldest, setup),
		cmocka_unit_test_setup(test_words_are_of_one_process_or_shared, setup),
		cmocka_unit_test_setup(test_requeued_threads_wait_behind, setup),
		cmocka_unit_test_setup(test_a_member_that_ends_has_no_turn, setup),
		cmocka_unit_test_setup(test_a_stopped_member_has_no_turn, setup),
		cmocka_unit_test_setup(test_slots_are_used_again_when_all_are, setup),
		cmocka_unit_test_setup(test_a_seed_decides, setup),
		cmocka_unit_test_setup(test_the_launcher_stops_it_once, setup),
		cmocka_unit_test_setup(test_the_launcher_asks, setup),
		cmocka_unit_test_setup(test_calls_are_part_of_the_hash, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
