/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * turn/hand.h - this process as a member of a system: its segment, its threads' slots, and the
 * turn as it goes from thread to thread.  All but turn_take() are for the thread that has the turn.
 */
#ifndef TURN_HAND_H
#define TURN_HAND_H

#include "order.h"
#include "segment.h"

/* NULL: this process is no member of a system. */
extern struct turn_segment *turn_segment;
extern uint32_t turn_member;	/* this process */

/* This thread's slot; TURN_NOBODY: it is no thread of the system, or no longer. */
uint32_t turn_slot(void);
void turn_set_slot(uint32_t slot);
struct turn_thread *turn_self(void);

/* Wait for the turn. */
void turn_take(void);
/* Let others go on that can, and come back with the turn. */
void turn_pass(void);
/*
 * Wait in that state until it ends or virtual time is at the deadline; true: another thread ended
 * it.  Threads that wait for descriptors ask again themselves.
 */
bool turn_wait(enum turn_state state, uint64_t deadline);
/* The launcher goes on; it gives the turn back. */
void turn_give_to_launcher(void);
/* If it has ended, however that was, so does this process. */
void turn_end_with_launcher(void);
/* Let the launcher do its part first. */
void turn_pass_to_launcher(void);
/* This thread, or the process with all its threads, ends: the turn goes on without it. */
void turn_leave(void);
void turn_end_member(void);

/* Its calls that bring nothing, for which it lets others go on, are counted from 0 again. */
static inline void turn_forget_idle_calls(struct turn_thread *self)
{
	self->idle = self->looks = self->idle_told = self->yields = 0;
}

/* Something happened that may make a descriptor ready. */
static inline void turn_changed(void)
{
	turn_order_change(turn_segment);
}

/* A call brought something: the thread does not only ask whether others did. */
static inline void turn_progress(void)
{
	struct turn_thread *self = turn_self();

	turn_forget_idle_calls(self);
	self->ticks = 0;
	self->polls = false;
}

#endif
