/* SPDX-License-Identifier: BSD-2-Clause */
/* held_signals.h - signals that a thread holds back.  For the library and its plugins; not installed. */
#ifndef HELD_SIGNALS_H
#define HELD_SIGNALS_H

#include <signal.h>
#include <stddef.h>

/*
 * All but those that the processor or the kernel raises for what the thread does: if one of these
 * is blocked, the kernel ends the process at once, and neither a handler of the program nor a
 * sanitizer's is called.  SIGABRT may be held: abort() lets it through.  A thread that is created
 * meanwhile holds them for good.
 */
static inline void hold_signals(sigset_t *ret_before)
{
	static const int faults[] = {
		SIGBUS, SIGFPE, SIGILL, SIGSEGV, SIGSYS, SIGTRAP,
	};
	sigset_t held;

	sigfillset(&held);
	for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++)
		sigdelset(&held, faults[i]);
	pthread_sigmask(SIG_BLOCK, &held, ret_before);
}

static inline void release_signals(const sigset_t *before)
{
	pthread_sigmask(SIG_SETMASK, before, NULL);
}

#endif
