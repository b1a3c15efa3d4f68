/* SPDX-License-Identifier: BSD-2-Clause */
/* turn/tell.h - what a member cannot do here: the launcher tells people of it. */
#ifndef TURN_TELL_H
#define TURN_TELL_H

#include <stdbool.h>

#include "segment.h"
#include "trap.h"

/* Once for each of that name; NULL: the name of this thread. */
void turn_tell(enum turn_notice what, const char *name);
/* Its number in turn_segment.told, for who tells it later; TURN_NOBODY: it is told already. */
uint32_t turn_note(enum turn_notice what, const char *name);

/* The same, of what is refused; the call's result. */
long turn_tell_refused(enum turn_notice what, long result);

/* ptrace(), unshare(), io_uring_setup(), and calls that set clocks. */
long turn_tell_trace(const struct turn_call *call);
long turn_tell_unshare(const struct turn_call *call);
long turn_tell_uring(const struct turn_call *call);
long turn_tell_clock(const struct turn_call *call);
/* The program has a handler for SIGSYS, or no more: told if it wants a filter, which may send that. */
void turn_tell_handler(bool is_set);
/* prctl(), seccomp(): filters of calls are told and not installed. */
long turn_prctl(const struct turn_call *call);
long turn_seccomp(const struct turn_call *call);

#endif
