/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * turn/threads.h - threads and processes that a member makes: each has a slot, given by the thread
 * that makes it, so that numbers do not depend on who starts first.
 */
#ifndef TURN_THREADS_H
#define TURN_THREADS_H

#include <stdbool.h>
#include <stdint.h>

#include "trap.h"

/* clone(), clone3(), fork(), vfork(). */
long turn_clone(const struct turn_call *call);
/* exit(), exit_group(); do not return. */
long turn_exit(const struct turn_call *call);

/*
 * The slot of the program that this process becomes, while it is a child that shares its parent's
 * memory, and acts as its parent's thread: what is kept there is the parent's.  Else TURN_NOBODY.
 */
uint32_t turn_spawned(void);
/* It becomes a program that runs outside, of which that is told; or it does not. */
void turn_spawned_outside(bool is_outside, uint32_t told);
/* It gave the turn to the launcher, which gives it to the parent; or it has it again. */
void turn_spawned_traced(bool is_traced);

/* This thread, which has that slot, is one of the system; it waits for its turn. */
void turn_thread_begin(uint32_t slot);

#endif
