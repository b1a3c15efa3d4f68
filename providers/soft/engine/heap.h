/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * engine/heap.h - the engine's queue of timers: a 4-ary heap ordered by (deadline,
 * seq).  Under the engine's lock.
 */
#ifndef SIM_HEAP_H
#define SIM_HEAP_H

#include "engine.h"

int sim_heap_open(void);
void sim_heap_close(void);	/* what is left in it is disarmed */

/* The timer's deadline and seq are set and it is not in the heap. */
void sim_heap_insert(struct sim_timer *timer);
void sim_heap_remove(struct sim_timer *timer);
/* Set new deadlines of all timers; those with SIM_NEVER leave the heap. */
void sim_heap_move(uint64_t (*deadline_of)(const struct sim_timer *timer, void *arg), void *arg);
/* The earliest timer or NULL. */
struct sim_timer *sim_heap_first(void);
uint64_t sim_heap_deadline(void);	/* of the earliest, SIM_NEVER if none */
/* Are all timers such that only look (sim_timer.looks)? */
bool sim_heap_only_looks(void);

#endif
