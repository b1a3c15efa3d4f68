/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * turn/signals.h - signals between members.  Handlers run when the receiver has its turn: the
 * kernel keeps a signal until the call that its thread is in returns to the program.
 */
#ifndef TURN_SIGNALS_H
#define TURN_SIGNALS_H

#include <stdbool.h>
#include <stdint.h>

#include "trap.h"

/*
 * Is a signal there that ends this call?  0: none; else the call's result: -EINTR, or TURN_RESTART
 * if it can be restarted and the handlers want that.
 */
long turn_signal_result(const struct turn_call *call, bool can_restart);
/*
 * The same of a call with a signal mask of its own, at that address; NULL: the thread's.  Handlers
 * run at once where the mask is the call's.
 */
long turn_signal_result_with(const struct turn_call *call, const void *mask);
/* Behind a call that found nothing to do for signals: does one stop the process? */
void turn_signal_look(const struct turn_call *call);
/*
 * A read of that terminal failed with EIO.  If the process is in its background the kernel would have
 * sent SIGTTIN, had it not been blocked; it is sent then.  The result.
 */
long turn_signal_read_behind(const struct turn_call *call, int fd);
/* The mask of a call, which does not block signals of ours. */
uint64_t turn_signal_mask(const void *mask);

/* kill(), tkill(), tgkill() and those that queue. */
long turn_kill(const struct turn_call *call);
/* rt_sigaction(): SIGSYS is not the program's, and two others not alone (faults.h). */
long turn_signal_action(const struct turn_call *call);
/* In a child that asked for it: what has a handler has none. */
void turn_signal_clear(void);
/* sigaltstack(). */
long turn_signal_stack(const struct turn_call *call);
/* pause(), rt_sigsuspend(). */
long turn_signal_wait(const struct turn_call *call);
/* rt_sigtimedwait(). */
long turn_signal_take(const struct turn_call *call);

#endif
