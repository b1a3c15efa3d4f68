/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * turn/timer_fds.h - timerfds: each is an eventfd that gets the number of expirations.  The timer
 * belongs to the file, so it is in the segment: whichever process has a descriptor of it lets it expire.
 */
#ifndef TURN_TIMER_FDS_H
#define TURN_TIMER_FDS_H

#include "trap.h"

/* Of those that this process has: when the next one expires; those expire whose time is there. */
uint64_t turn_timer_fds_next(void);
void turn_timer_fds_expire(void);

/* A descriptor is closed; is another one's copy; the process is a child that has its parent's. */
void turn_timer_fds_close(int fd);
void turn_timer_fds_copied(int from, int fd);
void turn_timer_fds_inherited(void);
/* Descriptors have come, by exec or over a socket: those are found that are timers. */
void turn_timer_fds_find(void);

/* timerfd_create(), timerfd_settime(), timerfd_gettime(). */
long turn_timer_fds_call(const struct turn_call *call);

#endif
