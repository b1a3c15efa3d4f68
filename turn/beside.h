/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * turn/beside.h - a process that shares the memory of the thread that made it and runs beside it
 * (CLONE_VM without CLONE_THREAD and CLONE_VFORK), as the one by which AddressSanitizer stops all
 * threads to look for leaks.  It is no member and has no turns: its maker keeps the turn until it has
 * ended, and what the two wait for in each other is real.
 */
#ifndef TURN_BESIDE_H
#define TURN_BESIDE_H

#include <stdbool.h>

#include "trap.h"

/* This thread has one. */
bool turn_beside_is_there(void);
/* This thread has made such a process. */
void turn_beside_begin(long pid);
/* A call that concerns it: its result is the kernel's.  False: it is like any other. */
bool turn_beside_call(const struct turn_call *call, long *ret_result);
/* With a filter, which such a process inherits: is it the caller? */
bool turn_beside_is_caller(void);

#endif
