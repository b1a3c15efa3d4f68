/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * turn/timers.h - timers of this process in the system's time: alarm(), setitimer(), timer_create();
 * for timerfds, see timer_fds.h.  Those of processor time expire when the process does something behind
 * their deadline.
 */
#ifndef TURN_TIMERS_H
#define TURN_TIMERS_H

#include <stdbool.h>
#include <time.h>

#include "trap.h"

/* When the next of them expires; TURN_NEVER: none is set. */
uint64_t turn_timers_next(void);
/* Those whose time is there expire: signals are sent to this process, timerfds are readable. */
void turn_timers_expire(void);
/* In a child of fork(): its parent's timers expire in the parent. */
void turn_timers_forget(void);
/* alarm() and setitimer() go on over exec: before it, and in the new program. */
void turn_timers_keep(void);
void turn_timers_resume(void);
/* A thread took that signal: how often its timer has expired since. */
void turn_timers_taken(siginfo_t *info);

/* It is set; how much is left; its time is there: how often that is. */
long turn_timers_set(struct turn_timing *timing, const struct itimerspec *to, bool is_absolute);
struct itimerspec turn_timers_left(const struct turn_timing *timing);
uint64_t turn_timers_passed(struct turn_timing *timing);

/* alarm(), setitimer(), getitimer(). */
long turn_timers_interval(const struct turn_call *call);
/* timer_create(), timer_settime(), timer_gettime(), timer_getoverrun(), timer_delete(). */
long turn_timers_posix(const struct turn_call *call);

#endif
