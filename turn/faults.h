/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * turn/faults.h - SIGSEGV and SIGTRAP, which are ours where they come from the time stamp counter
 * (tsc.h) or from single steps (spin.h), and TURN_ASK_SIGNAL.  All others go to the program: its
 * handler is called as the kernel would, or it ends.
 *
 * They are never blocked, as SIGSYS is not: a fault would end the process then.  Only a handler of
 * the program for one of them has it blocked while it runs.
 */
#ifndef TURN_FAULTS_H
#define TURN_FAULTS_H

#include <stdbool.h>
#include <stdint.h>

#include "trap.h"

/* At the beginning, and again when the code to return to is elsewhere (raw.h); 0 or a negative errno. */
int turn_faults_install(void);
/* Is that signal one of them?  Then this is what the program has set for it. */
const struct turn_sigaction *turn_faults_action_of(int signal);
/* rt_sigaction() of one of them. */
long turn_faults_action(const struct turn_call *call);
/* The program wants to block these signals from now on. */
void turn_faults_note_mask(uint64_t mask);

/* The program has no handlers any more. */
void turn_faults_clear(void);

#endif
