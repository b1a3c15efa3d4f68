/* SPDX-License-Identifier: BSD-2-Clause */
/* turn/order.c - see order.h. */
#include "config.h"

#include <stddef.h>

#include "order.h"
#include "preempt.h"
#include "record.h"

/* SplitMix64: one word of state, so a decision that is left out changes the others little. */
uint64_t turn_order_draw(uint64_t *state)
{
	uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	return z ^ z >> 31;
}

void turn_order_init(struct turn_segment *segment, uint64_t seed)
{
	segment->now = TURN_BEGIN;
	segment->moved_at = segment->eventful_at = TURN_BEGIN;
	segment->until = TURN_NEVER;
	segment->pace = TURN_NEVER;
	segment->stop_at = TURN_NEVER;
	segment->order = seed;
	segment->changes = segment->moves = 1;
	segment->owner = TURN_NOBODY;
	segment->hash = UINT64_C(0xcbf29ce484222325);
	turn_preempt_init(segment);
}

uint32_t turn_order_add(struct turn_segment *segment, uint32_t member)
{
	uint32_t i = segment->num_threads;

	/* Slots of threads that are gone come last, so that numbers name threads as long as can be. */
	if (i == TURN_MAX_THREADS)
		for (i = 0; i < TURN_MAX_THREADS && segment->threads[i].state != TURN_GONE; i++)
			;
	if (i == TURN_MAX_THREADS)
		return TURN_NOBODY;
	if (i == segment->num_threads)
		segment->num_threads++;
	segment->threads[i] = (struct turn_thread){
		.state = TURN_READY, .member = member, .deadline = TURN_NEVER,
		.number = ++segment->members[member].num_threads,
	};
	turn_preempt_begin(segment, &segment->threads[i]);
	return i;
}

void turn_order_remove(struct turn_segment *segment, uint32_t thread)
{
	segment->threads[thread].state = TURN_GONE;
	turn_order_moved(segment);
}

void turn_order_remove_member(struct turn_segment *segment, uint32_t member)
{
	for (uint32_t i = 0; i < segment->num_threads; i++)
		if (segment->threads[i].member == member)
			turn_order_remove(segment, i);
}

static bool is_stopped(const struct turn_segment *segment, const struct turn_thread *thread)
{
	return segment->members[thread->member].stopped;
}

static bool waits(const struct turn_thread *thread)
{
	return thread->state >= TURN_DESCRIPTORS && thread->state <= TURN_ASLEEP;
}

static uint32_t to_look(const struct turn_segment *segment)
{
	for (uint32_t i = 0; i < segment->num_threads; i++)
		if (segment->threads[i].state == TURN_DESCRIPTORS &&
		    segment->threads[i].looked != segment->changes &&
		    !is_stopped(segment, &segment->threads[i]))
			return i;
	return TURN_NOBODY;
}

/* Who let others go on comes after those that look whether there is something for them. */
static uint32_t ready(struct turn_segment *segment)
{
	uint32_t candidates[TURN_MAX_THREADS], num = 0, look = TURN_NOBODY;
	bool all_passed = true;

	for (uint32_t i = 0; i < segment->num_threads; i++) {
		const struct turn_thread *thread = &segment->threads[i];

		if (!is_stopped(segment, thread) &&
		    (thread->state == TURN_READY ||
		     (waits(thread) && turn_order_passed(segment, thread->deadline)))) {
			candidates[num++] = i;
			all_passed = all_passed && thread->passed;
		}
	}
	if (!num)
		return TURN_NOBODY;
	if (all_passed)
		look = to_look(segment);
	if (look != TURN_NOBODY)
		return look;
	return candidates[num == 1 ? 0 : turn_order_draw(&segment->order) % num];
}

static uint64_t smaller(uint64_t one, uint64_t two)
{
	return one < two ? one : two;
}

/* Has nothing happened for so long that polls can be rarer? */
static bool is_long(const struct turn_segment *segment)
{
	return (segment->now - segment->moved_at) / TURN_POLLS_OF_STILLNESS > TURN_LONGEST_POLL;
}

/*
 * When nothing is left but deadlines of threads that look at what others did (TURN_LOOKS), or that
 * have polled for long and found nothing, a thread looks again only if something happened since its
 * last look.
 */
static uint64_t first_deadline(const struct turn_segment *segment)
{
	uint64_t move = TURN_NEVER, look = TURN_NEVER, new_look = TURN_NEVER, poll = TURN_NEVER;

	for (uint32_t i = 0; i < segment->num_threads; i++) {
		const struct turn_thread *thread = &segment->threads[i];

		if (!waits(thread) || is_stopped(segment, thread))
			continue;
		if (thread->then == TURN_MOVES || thread->then == TURN_TICKS)
			move = smaller(move, thread->deadline);
		else if (thread->then == TURN_POLLS)
			poll = smaller(poll, thread->deadline);
		else
			look = smaller(look, thread->deadline);
		if (thread->then == TURN_LOOKS && thread->looked_after != segment->moves)
			new_look = smaller(new_look, thread->deadline);
	}
	if ((move > segment->until || move == TURN_NEVER) &&
	    (poll == TURN_NEVER || is_long(segment)))
		look = new_look;
	return smaller(smaller(move, poll), look);
}

/* All of the earliest deadline are candidates when time is there. */
static uint32_t later(struct turn_segment *segment)
{
	const uint64_t first = first_deadline(segment);

	if (first == TURN_NEVER || first > segment->until || first > segment->pace)
		return TURN_NOBODY;
	segment->now = first;
	return ready(segment);
}

static void note_tick(struct turn_segment *segment)
{
	const uint64_t latest = segment->now + TURN_LONGEST_POLL;

	segment->moves++;
	segment->moved_at = segment->now;
	if (!segment->polls_rarely)
		return;
	segment->polls_rarely = false;
	for (uint32_t i = 0; i < segment->num_threads; i++)
		if (segment->threads[i].then == TURN_POLLS)
			segment->threads[i].deadline = smaller(segment->threads[i].deadline, latest);
}

void turn_order_moved(struct turn_segment *segment)
{
	note_tick(segment);
	segment->eventful_at = segment->now;
}

bool turn_order_wakes_own(const struct turn_segment *segment, const struct turn_thread *self,
			  struct turn_word word)
{
	if (!is_long(segment))
		return false;
	for (uint32_t i = 0; i < segment->num_threads; i++) {
		const struct turn_thread *thread = &segment->threads[i];

		if (thread->state == TURN_FUTEX && thread->word.space == word.space &&
		    thread->word.at == word.at &&
		    (!thread->serves || thread->member != self->member))
			return false;
	}
	return true;
}

/* Does it go on without waiting, and not to poll? */
static bool goes_on(const struct turn_thread *thread)
{
	return thread->state != TURN_FREE && thread->state != TURN_GONE && !waits(thread) &&
	       !thread->serves && !(thread->passed && thread->polls);
}

static bool waits_until(const struct turn_segment *segment, const struct turn_thread *thread,
			enum turn_then then)
{
	return waits(thread) && thread->then == then && thread->deadline <= segment->until;
}

/* Can others be reached by nothing that is to come but by a thread that polls? */
static bool all_poll(const struct turn_segment *segment, const struct turn_thread *self)
{
	for (uint32_t i = 0; i < segment->num_threads; i++) {
		const struct turn_thread *thread = &segment->threads[i];

		if (thread != self &&
		    (goes_on(thread) || waits_until(segment, thread, TURN_MOVES) ||
		     waits_until(segment, thread, TURN_TICKS)))
			return false;
	}
	return true;
}

/* Or by one that polls or ticks? */
static bool all_poll_or_tick(const struct turn_segment *segment, const struct turn_thread *self)
{
	for (uint32_t i = 0; i < segment->num_threads; i++) {
		const struct turn_thread *thread = &segment->threads[i];

		if (thread != self && (goes_on(thread) || waits_until(segment, thread, TURN_MOVES)))
			return false;
	}
	return true;
}

uint64_t turn_order_poll_length(struct turn_segment *segment, const struct turn_thread *self)
{
	const uint64_t since = segment->now - segment->moved_at;

	if (!is_long(segment) || !all_poll(segment, self))
		return TURN_LONGEST_POLL;
	segment->polls_rarely = true;
	return smaller(since / TURN_POLLS_OF_STILLNESS, TURN_LONGEST_RARE_POLL);
}

uint64_t turn_order_tick_length(const struct turn_segment *segment, const struct turn_thread *self)
{
	const bool long_ago = segment->now - segment->eventful_at > TURN_LONGEST_TICKS;

	return long_ago && all_poll_or_tick(segment, self) ? TURN_LONGEST_RARE_POLL : 0;
}

/* It goes on; for what? */
static void note_move(struct turn_segment *segment, struct turn_thread *thread)
{
	const bool is_timeout = waits(thread) && turn_order_passed(segment, thread->deadline);

	if (is_timeout && thread->then == TURN_LOOKS)
		thread->looked_after = segment->moves;
	else if (is_timeout && thread->then == TURN_TICKS)
		note_tick(segment);
	else if (!thread->serves && !thread->passed && (!is_timeout || thread->then != TURN_POLLS))
		turn_order_moved(segment);
	thread->passed = false;
}

static void note(struct turn_segment *segment, uint64_t value)
{
	segment->hash = (segment->hash ^ value) * UINT64_C(0x100000001b3);
}

uint32_t turn_order_next(struct turn_segment *segment)
{
	uint32_t next;

	if (segment->turns == segment->stop_at) {
		segment->stop_at = TURN_NEVER;
		segment->stopped = true;
		segment->owner = TURN_NOBODY;
		return TURN_NOBODY;
	}
	next = ready(segment);
	if (next == TURN_NOBODY)
		next = to_look(segment);
	if (next == TURN_NOBODY && segment->asks) {
		segment->asked = true;
		segment->owner = TURN_NOBODY;
		return TURN_NOBODY;
	}
	if (next == TURN_NOBODY)
		next = later(segment);
	if (next != TURN_NOBODY)
		note_move(segment, &segment->threads[next]);
	segment->turns++;
	segment->owner = next;
	note(segment, (uint64_t)next + 1);
	note(segment, segment->now);
	if (next != TURN_NOBODY)
		turn_record(segment, TURN_GIVEN, next);
	return next;
}

void turn_order_wait(struct turn_segment *segment, struct turn_thread *thread, enum turn_state state,
		     uint64_t deadline)
{
	thread->state = state;
	thread->deadline = deadline;
	thread->looked = segment->changes;
	thread->woken = thread->interrupted = false;
	thread->then = thread->held ? TURN_MOVES : thread->then_next;
	thread->since = ++segment->waits;
}

static struct turn_thread *oldest(struct turn_segment *segment, struct turn_word word, uint32_t bitset)
{
	struct turn_thread *found = NULL;

	for (uint32_t i = 0; i < segment->num_threads; i++) {
		struct turn_thread *thread = &segment->threads[i];

		if (thread->state == TURN_FUTEX && thread->word.space == word.space &&
		    thread->word.at == word.at && thread->bitset & bitset &&
		    (!found || thread->since < found->since))
			found = thread;
	}
	return found;
}

uint32_t turn_order_wake(struct turn_segment *segment, struct turn_word word, uint32_t num,
			 uint32_t bitset)
{
	struct turn_thread *thread;
	uint32_t woken = 0;

	while (woken < num && (thread = oldest(segment, word, bitset))) {
		thread->woken = true;
		thread->state = TURN_READY;
		woken++;
	}
	return woken;
}

uint32_t turn_order_requeue(struct turn_segment *segment, struct turn_word word, uint32_t num,
			    struct turn_word to)
{
	struct turn_thread *thread;
	uint32_t moved = 0;

	if (word.space == to.space && word.at == to.at)
		return 0;
	while (moved < num && (thread = oldest(segment, word, UINT32_MAX))) {
		thread->word = to;
		thread->since = ++segment->waits;
		moved++;
	}
	return moved;
}

static void interrupt(struct turn_thread *thread)
{
	thread->state = TURN_READY;
	thread->interrupted = true;
}

void turn_order_interrupt(struct turn_segment *segment, uint32_t member)
{
	for (uint32_t i = 0; i < segment->num_threads; i++)
		if (segment->threads[i].member == member && waits(&segment->threads[i]))
			interrupt(&segment->threads[i]);
}

void turn_order_change(struct turn_segment *segment)
{
	segment->changes++;
	if (!segment->sends_signals)
		return;
	for (uint32_t i = 0; i < segment->num_threads; i++) {
		struct turn_thread *thread = &segment->threads[i];

		if ((thread->state == TURN_FUTEX || thread->state == TURN_ASLEEP) &&
		    !thread->held && thread->then != TURN_POLLS)
			interrupt(thread);
	}
}

void turn_order_interrupt_words(struct turn_segment *segment)
{
	for (uint32_t i = 0; i < segment->num_threads; i++)
		if (segment->threads[i].state == TURN_FUTEX &&
		    segment->threads[i].word.space > TURN_MAX_MEMBERS)
			interrupt(&segment->threads[i]);
}

void turn_order_note_call(struct turn_segment *segment, uint32_t thread)
{
	segment->calls++;
	segment->threads[thread].since_ns = segment->now;
	note(segment, (uint64_t)thread << 32 | segment->threads[thread].call);
	turn_record(segment, TURN_CALL, thread);
}
