/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * turn/traced.h - exec with a filter, which stays: the launcher traces the process meanwhile
 * (page.h).
 */
#ifndef TURN_TRACED_H
#define TURN_TRACED_H

#include "trap.h"

/*
 * execve() or execveat().  It comes back only if it failed; in the child of posix_spawn(), too, whose
 * parent gets the turn when the program has begun.
 */
long turn_traced_exec(const struct turn_call *call);

#endif
