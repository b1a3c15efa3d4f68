/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * interpose/timers.h - timers of the program that expire in virtual time: what timerfds,
 * alarms and POSIX timers have in common.  As in the kernel, a timer with an interval
 * expires once, and is set again when that was taken: so a timer that nobody looks at
 * does not keep time moving.
 */
#ifndef POLYCM_INTERPOSE_TIMERS_H
#define POLYCM_INTERPOSE_TIMERS_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "wait.h"

struct polycm_timer;

struct polycm_virtual_timer {
	/* Called at its time with the clock's lock held, or before begin() returns. */
	void (*expired)(struct polycm_virtual_timer *timer);
	uint64_t deadline_ns, interval_ns;
	bool due;			/* expired, and not taken; atomic */
	bool dropped;			/* it was set in real time since; atomic */
	uint64_t taken;			/* expirations for which it was not set again; atomic */
	struct polycm_timer *timer;
	bool used;			/* atomic */
	struct polycm_virtual_timer *next;	/* in a list */
};

/*
 * The lock of all of them is taken before the clock's, with polycm_hold().  A child of
 * fork() finds it free, and its timers forgotten.
 */
void polycm_timers_lock(struct polycm_held *held);
void polycm_timers_unlock(const struct polycm_held *held);

/* --- With the lock. --- */

/*
 * An unused timer of the list, or a new one, zeroed and of that size.  NULL: no memory.
 * None is ever freed: signal handlers walk the list without the lock.
 */
void *polycm_virtual_timer_get(struct polycm_virtual_timer **list, size_t size);
int polycm_virtual_timer_begin(struct polycm_virtual_timer *timer, uint64_t deadline_ns,
			       uint64_t interval_ns);
void polycm_virtual_timer_stop(struct polycm_virtual_timer *timer);
/* Returns how often it expired since it was last taken, and calls go_on(). */
uint64_t polycm_virtual_timer_take(struct polycm_virtual_timer *timer);
/* After take_early(): set it to its next interval, or stop it. */
void polycm_virtual_timer_go_on(struct polycm_virtual_timer *timer);
struct itimerspec polycm_virtual_timer_left(const struct polycm_virtual_timer *timer);

/*
 * --- Without the lock: in a signal handler, too, which may have interrupted a thread that
 * holds the clock's lock or allocates memory. ---
 */

/* The first half of take(). */
uint64_t polycm_virtual_timer_take_early(struct polycm_virtual_timer *timer);
void polycm_virtual_timer_drop(struct polycm_virtual_timer *timer);

/* In virtual time; `time' is valid. */
uint64_t polycm_virtual_deadline(clockid_t clock, bool absolute, const struct timespec *time);
bool polycm_itimerspec_valid(const struct itimerspec *time);

/* --- timerfd.c --- */

/* Time becomes virtual, or real again; without the clock's lock. */
void polycm_timerfds_adopt(void);
void polycm_timerfds_release(void);
/* In a child of fork(): they are the parent's. */
void polycm_timerfds_forget(void);
/* Before time moves: set those that were read to their next interval. */
void polycm_timerfds_go_on(void);
/*
 * Is the descriptor for a timer of ours?  If so, how often it expired since the last call.
 * Without the lock: in a signal handler, too.
 */
bool polycm_timerfd_take(int fd, uint64_t *ret_num);
/* Is it a timerfd that is not set and not readable?  If so, its description. */
bool polycm_timerfd_is_off(int fd, char *text, size_t size);

/* --- alarm.c --- */

/* How many timers whose signal comes in virtual time are set; atomic. */
extern unsigned int polycm_alarms_set;

/*
 * polycm_clock_services.time_moved(): send the signals whose time has come.  true: one
 * interrupts the system call of this thread.
 */
bool polycm_alarms_ring(void);
/* Time becomes real again: the rest of each timer's time passes in real time. */
void polycm_alarms_release(void);
/* In a child of fork(), which inherits none. */
void polycm_alarms_forget(void);

#endif
