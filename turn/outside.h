/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * turn/outside.h - programs into which nothing can be preloaded.  A member that becomes one runs
 * outside the order of turns, in real time; so does what it starts.
 */
#ifndef TURN_OUTSIDE_H
#define TURN_OUTSIDE_H

#include <stdbool.h>

#include "segment.h"
#include "trap.h"

/*
 * Does execve() or execveat() start such a program?  Then ret_told is the number of the message
 * about it.
 */
bool turn_outside_is(const struct turn_call *call, uint32_t *ret_told);
/*
 * That call, of the only thread of its process that is left: the launcher gets the turn, and gives it
 * back if the program cannot be started.
 */
long turn_outside_exec(const struct turn_call *call, uint32_t told);
/* A member became one that was not in the order yet. */
void turn_outside_begin(uint32_t member, uint32_t told);

#endif
