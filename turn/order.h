/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * turn/order.h - who has the next turn, and when that is.  Pure: no system calls, no state but the
 * segment's, so that the same seed gives the same order.
 */
#ifndef TURN_ORDER_H
#define TURN_ORDER_H

#include "segment.h"

void turn_order_init(struct turn_segment *segment, uint64_t seed);

/* A slot for a thread of that member that is ready; TURN_NOBODY: there is none left. */
uint32_t turn_order_add(struct turn_segment *segment, uint32_t member);
/* A thread, or all threads of a member, are no more. */
void turn_order_remove(struct turn_segment *segment, uint32_t thread);
void turn_order_remove_member(struct turn_segment *segment, uint32_t member);

/*
 * Choose the thread that runs next, and move time to when it can: first among those that are ready or
 * whose deadline has passed (the seed decides), then of those that wait for descriptors one that has
 * not asked since the last change, then the earliest deadline; but looks (TURN_LOOKS) alone are done
 * once after other turns, and then no more.  TURN_NOBODY: nobody can ever go on,
 * or not before `until', or not at this pace, or the launcher asked for the turn (segment->stopped,
 * segment->asked).  Counts the turn.
 */
uint32_t turn_order_next(struct turn_segment *segment);

/* Something happened that is no look and no poll: who polls rarely does so soon. */
void turn_order_moved(struct turn_segment *segment);

/*
 * A thread has polled in vain many times: how long it sleeps before the next poll.  While all others
 * poll, too, that grows with the time since something happened.  There is a limit, because one of
 * them may write to memory that another one reads, which is not seen here.
 */
#define TURN_LONGEST_POLL UINT64_C(16384000)	/* ns */
#define TURN_LONGEST_RARE_POLL (8 * TURN_LONGEST_POLL)
#define TURN_POLLS_OF_STILLNESS 640u	/* so it begins after ten seconds */
uint64_t turn_order_poll_length(struct turn_segment *segment, const struct turn_thread *self);
/*
 * A thread waits with a time-out, again and again (TURN_TICKS): how long it sleeps at least.  Where
 * nothing but that happens for long, it would take long to find out that others wait for ever.
 */
#define TURN_LONGEST_TICKS (60 * TURN_SECOND)
uint64_t turn_order_tick_length(const struct turn_segment *segment, const struct turn_thread *self);
/* So long: are all that wait on the word threads of the simulator in the caller's process? */
bool turn_order_wakes_own(const struct turn_segment *segment, const struct turn_thread *self,
			  struct turn_word word);

/* The next number of a state that is a segment's or a member's. */
uint64_t turn_order_draw(uint64_t *state);

/* A thread begins to wait; the caller has set what for, if it is a word. */
void turn_order_wait(struct turn_segment *segment, struct turn_thread *thread, enum turn_state state,
		     uint64_t deadline);
/* Wake up to num threads that wait on the word, the oldest first, of those with a common bit. */
uint32_t turn_order_wake(struct turn_segment *segment, struct turn_word word, uint32_t num,
			 uint32_t bitset);
/* Let up to num of them wait on another word instead. */
uint32_t turn_order_requeue(struct turn_segment *segment, struct turn_word word, uint32_t num,
			    struct turn_word to);

/* Who waits, of that member, goes on, and looks whether a signal is there. */
void turn_order_interrupt(struct turn_segment *segment, uint32_t member);

/*
 * Something happened that may make a descriptor ready.  Where the kernel may send a signal with that,
 * who waits for none looks for it, too.
 */
void turn_order_change(struct turn_segment *segment);

/* Who waits on memory that several members share goes on, and looks at it again. */
void turn_order_interrupt_words(struct turn_segment *segment);

/* Counts the thread's call, which is in its slot. */
void turn_order_note_call(struct turn_segment *segment, uint32_t thread);

static inline bool turn_order_passed(const struct turn_segment *segment, uint64_t deadline)
{
	return deadline != TURN_NEVER && segment->now >= deadline;
}

#endif
