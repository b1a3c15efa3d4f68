/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * turn/spin.h - a thread that looks at memory, and makes no call, until another one writes there.
 *
 * The launcher sees that the owner of the turn makes no call, and asks it with a signal.  Then it
 * executes one instruction at a time.  If it does the same again and again (recur.h), it lets others
 * go on, as after a call in vain, and looks again.  It does so at a place of its loop that does not
 * depend on when it was asked, and it could go on for ever, so nobody sees that it was asked.
 */
#ifndef TURN_SPIN_H
#define TURN_SPIN_H

#include <signal.h>
#include <stdbool.h>
#include <ucontext.h>

/* The thread can be asked from now on; no longer, when the function returns. */
void turn_spin_allow(void);
void turn_spin_forbid(void);
/* It ends. */
void turn_spin_end(void);

/* TURN_ASK_SIGNAL; false: it is the program's, as below. */
bool turn_spin_ask(const siginfo_t *info, ucontext_t *context);
/* SIGTRAP. */
bool turn_spin_step(const siginfo_t *info, ucontext_t *context);
/* It is not executed one instruction at a time any more. */
void turn_spin_stop(ucontext_t *context);
/* A call returns to the program: if it is one that spins, it asks itself soon. */
void turn_spin_arm(void);

#endif
