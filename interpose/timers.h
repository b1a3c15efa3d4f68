/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * interpose/timers.h - timers of the program's that expire in virtual time: what
 * timerfds, alarms and POSIX timers have in common.  As in the kernel a timer
 * with an interval expires once, and goes on when that was taken: so one that
 * nobody looks at does not keep time moving.
 */
#ifndef POLYCM_INTERPOSE_TIMERS_H
#define POLYCM_INTERPOSE_TIMERS_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

struct polycm_timer;

struct polycm_virtual_timer {
	/* At its time, with the clock's lock held, or before begin() returns. */
	void (*expired)(struct polycm_virtual_timer *timer);
	uint64_t deadline_ns, interval_ns;
	bool due;			/* expired, and not taken; atomic */
	bool dropped;			/* it does not count any more; atomic */
	uint64_t taken;			/* so often it had expired, and it has not gone on; atomic */
	struct polycm_timer *timer;
};

/*
 * One lock for them all, taken before the clock's, with signals and cancelling
 * held back.  A child of fork() finds it free; `forget' is called there.
 */
struct polycm_timers_held {
	sigset_t signals;
	int cancel_state;
};

void polycm_timers_lock(struct polycm_timers_held *held);
void polycm_timers_unlock(const struct polycm_timers_held *held);

/* With the lock. */
int polycm_virtual_timer_begin(struct polycm_virtual_timer *timer, uint64_t deadline_ns,
			       uint64_t interval_ns);
void polycm_virtual_timer_stop(struct polycm_virtual_timer *timer);
/* How often it expired since it was taken; then it goes on, or is off. */
uint64_t polycm_virtual_timer_take(struct polycm_virtual_timer *timer);
struct itimerspec polycm_virtual_timer_left(const struct polycm_virtual_timer *timer);
/* The second half of the one below. */
void polycm_virtual_timer_go_on(struct polycm_virtual_timer *timer);
/*
 * Without it: in a signal handler, which may have interrupted who holds the
 * clock's lock, or who allocates memory.
 */
uint64_t polycm_virtual_timer_take_early(struct polycm_virtual_timer *timer);
void polycm_virtual_timer_drop(struct polycm_virtual_timer *timer);

/* When a timer that is set so goes off; the times are valid. */
uint64_t polycm_virtual_deadline(clockid_t clock, bool absolute, const struct timespec *time);
bool polycm_itimerspec_valid(const struct itimerspec *time);

/* --- timerfd.c --- */

/* Time becomes virtual, or real again; without the clock's lock. */
void polycm_timerfds_adopt(void);
void polycm_timerfds_release(void);
void polycm_timerfds_forget(void);
/* Before time moves: those that were read go on. */
void polycm_timerfds_go_on(void);
/* A timerfd that nothing makes readable until the program sets it: what to say of it. */
bool polycm_timerfd_is_off(int fd, char *text, size_t size);

/* --- alarm.c --- */

/* Timers whose signal comes in virtual time are set; atomic. */
extern unsigned int polycm_alarms_set;

/*
 * polycm_clock_services.time_moved(): signals whose time has come are sent.  true: one
 * interrupted this thread, as it interrupts a system call.
 */
bool polycm_alarms_ring(void);
void polycm_alarms_release(void);
void polycm_alarms_forget(void);

#endif
