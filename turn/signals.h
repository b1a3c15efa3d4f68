/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * turn/signals.h - signals between members.  Handlers run when the receiver has its turn: the
 * kernel keeps a signal until the call that its thread is in returns to the program.
 */
#ifndef TURN_SIGNALS_H
#define TURN_SIGNALS_H

#include <stdbool.h>

#include "trap.h"

/* A signal is there that will interrupt this call: a handler waits for it, or it ends the process. */
bool turn_signal_interrupts(const struct turn_call *call);

/* kill(), tkill(), tgkill() and those that queue. */
long turn_kill(const struct turn_call *call);
/* rt_sigaction(): SIGSYS is not the program's. */
long turn_signal_action(const struct turn_call *call);
/* pause(), rt_sigsuspend(). */
long turn_signal_wait(const struct turn_call *call);
/* rt_sigtimedwait(). */
long turn_signal_take(const struct turn_call *call);

#endif
