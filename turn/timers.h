/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * turn/timers.h - timers of this process in the system's time: alarm(), setitimer(ITIMER_REAL),
 * timer_create(), and timerfds, of which each is an eventfd that gets the number of expirations.
 * Those of processor time are the kernel's.
 */
#ifndef TURN_TIMERS_H
#define TURN_TIMERS_H

#include <stdbool.h>

#include "trap.h"

/* When the next of them expires; TURN_NEVER: none is set. */
uint64_t turn_timers_next(void);
/* Those whose time is there expire: signals are sent to this process, timerfds are readable. */
void turn_timers_expire(void);
/* In a child of fork(): its parent's timers, and timerfds, expire in the parent. */
void turn_timers_forget(void);
/* alarm() and setitimer() go on over exec: before it, and in the new program. */
void turn_timers_keep(void);
void turn_timers_resume(void);
/* A descriptor is closed, or another file now. */
void turn_timers_close(int fd);

/* alarm(), setitimer(), getitimer(). */
long turn_timers_interval(const struct turn_call *call);
/* timer_create(), timer_settime(), timer_gettime(), timer_getoverrun(), timer_delete(). */
long turn_timers_posix(const struct turn_call *call);
/* timerfd_create(), timerfd_settime(), timerfd_gettime(). */
long turn_timers_fd(const struct turn_call *call);

#endif
