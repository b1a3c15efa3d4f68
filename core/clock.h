/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * clock.h - time for the core and its providers: CLOCK_MONOTONIC, or the
 * clock that a provider installed.
 */
#ifndef POLYCM_CORE_CLOCK_H
#define POLYCM_CORE_CLOCK_H

#include "polycm/provider.h"

uint64_t polycm_now_ns(void);
int polycm_timer_start(uint64_t deadline_ns, void (*fn)(void *arg), void *arg,
		       struct polycm_timer **ret_timer);
/* Once for each timer, fired or not: gives it back.  Waits for fn; not from inside fn. */
void polycm_timer_cancel(struct polycm_timer *timer);
int polycm_clock_install(const struct polycm_clock *clock, void *ctx);
/* The installed clock's idle(), 0 without one. */
int polycm_clock_idle(void);

#endif
