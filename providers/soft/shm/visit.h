/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * shm/visit.h - one process in the memory of another: who may, who is there, and how the
 * owner of the memory takes the permission back.
 *
 * The owner publishes what may be reached in atomic words of shared memory.  A visitor says
 * that it is inside, and only then reads these words; it leaves when it has done its work.
 * The owner changes the words first, and then waits until nobody is inside who may have read
 * the old ones.  Both sides use sequentially consistent accesses, so one of the two sees the
 * other.  A visitor waits for no lock and no other process while it is inside, so the owner does
 * not wait long, and may hold any lock.  One that was stopped inside is waited for a second.
 *
 * Engine lock held for all calls.  Without a shared fabric they are harmless.
 */
#ifndef SIM_VISIT_H
#define SIM_VISIT_H

#include <stdbool.h>
#include <stdint.h>

struct sim_slot;

/* Why a process takes packets only: somebody looks at them, or something happens to them. */
enum sim_closed {
	SIM_CLOSED_WATCHED = 1 << 0,	/* taps */
	SIM_CLOSED_LINKS = 1 << 1,	/* settings of links */
	SIM_CLOSED_RULES = 1 << 2,	/* fault rules */
	SIM_CLOSED_CHANGED = 1 << 3,	/* a port is down, a node stands still, a device is removed */
	SIM_CLOSED_MOVING = 1 << 4,	/* for a moment: memory is moved (link/shm/pages.h) */
};

/* This process begins or ceases to have that reason, also on fabrics that it joins later. */
void sim_visit_close(enum sim_closed why, bool on);

/* Has it any? */
bool sim_visit_closed(void);

/* Does the process in the slot look at packets? */
bool sim_slot_is_tapped(unsigned int slot);

/* To a live process of that generation, which has no such reason, and neither have we.  Else false. */
bool sim_visit_enter(unsigned int slot, uint32_t generation);
void sim_visit_leave(void);

/* That process may come from now on. */
void sim_visit_expect(unsigned int slot);
/* Until nobody is inside who came before the call.  False: one stays there; logged. */
bool sim_visit_wait(void);

/* For the segment: a slot gets a new process, which is this one. */
void sim_visit_begin(struct sim_slot *slot);

#endif
