/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * turn/faults.h - SIGSEGV, which is ours where it comes from the time stamp counter (tsc.h).  All
 * others go to the program: its handler is called as the kernel would, or it ends.
 *
 * It is never blocked, as SIGSYS is not: a fault would end the process then.  Only a handler of
 * the program for it has it blocked while it runs.
 */
#ifndef TURN_FAULTS_H
#define TURN_FAULTS_H

#include <stdbool.h>
#include <stdint.h>

#include "trap.h"

/* Once in a process; 0 or a negative errno. */
int turn_faults_install(void);
/* Is it that signal?  Then this is what the program has set for it. */
const struct turn_sigaction *turn_faults_action_of(int signal);
/* rt_sigaction() of it. */
long turn_faults_action(const struct turn_call *call);
/* The program wants to block these signals from now on. */
void turn_faults_note_mask(uint64_t mask);

#endif
