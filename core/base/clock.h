/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * base/clock.h - time for the core and its providers: CLOCK_MONOTONIC, or the
 * clock that a provider installed.
 */
#ifndef POLYCM_CORE_CLOCK_H
#define POLYCM_CORE_CLOCK_H

#include "polycm/clock.h"

extern bool polycm_clock_installed;	/* atomic; never false again */

uint64_t polycm_now_ns(void);
int polycm_timer_start(uint64_t deadline_ns, void (*fn)(void *arg), void *arg,
		       struct polycm_timer **ret_timer);
/*
 * From inside fn: it fires once more.  -EOPNOTSUPP on an installed clock, whose
 * lock may be held there.
 */
int polycm_timer_again(struct polycm_timer *timer, uint64_t deadline_ns);
/*
 * Not from inside fn: it fires at that time, and at no other; UINT64_MAX: not before
 * the next restart.  Fails only with an installed clock that has no timer_restart():
 * it does not fire then.
 */
int polycm_timer_restart(struct polycm_timer *timer, uint64_t deadline_ns);
/* Once for each timer, fired or not: gives it back.  Waits for fn; not from inside fn. */
void polycm_timer_cancel(struct polycm_timer *timer);
int polycm_clock_install(const struct polycm_clock *clock, void *ctx);
/* The installed clock's idle(), 0 without one. */
int polycm_clock_idle(void);

/* Is time virtual, for waits that are none of polycm's calls?  If so, the clock's other members. */
bool polycm_clock_virtual(void);
int polycm_clock_wait(const struct polycm_clock_wait *wait);
bool polycm_clock_owns_fd(int fd, char *text, size_t size);
/* The program asks, without waiting, for what is not there; it may do so again and again. */
void polycm_clock_spin(void);
/* The installed clock's time; one of the program's reads if its call's frame is given. */
uint64_t polycm_clock_read(const void *frame);

/* What a program's call asks first: costs nothing where no clock was installed. */
static inline bool polycm_time_is_real(void)
{
	return __builtin_expect(!__atomic_load_n(&polycm_clock_installed, __ATOMIC_RELAXED), 1) ||
	       !polycm_clock_virtual();
}

#endif
