/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * turn/tsc.h - the processor's time stamp counter.  The kernel lets its instructions fault in a
 * member's threads (PR_SET_TSC), and they get virtual time in nanoseconds.
 */
#ifndef TURN_TSC_H
#define TURN_TSC_H

#include <stdbool.h>
#include <ucontext.h>

#include "trap.h"

/* From now on, or no longer, for this thread.  Programs that exec starts inherit it. */
void turn_tsc_begin(void);
void turn_tsc_end(void);
/* The thread has faulted: at such an instruction?  Then it goes on behind it. */
bool turn_tsc_read(ucontext_t *context);
/* PR_SET_TSC, PR_GET_TSC of the program. */
long turn_tsc_control(const struct turn_call *call);

#endif
