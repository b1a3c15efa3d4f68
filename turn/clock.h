/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * turn/clock.h - the clocks of a system: its time, and the date, which begins at TURN_DATE.  For
 * the thread that has the turn.
 */
#ifndef TURN_CLOCK_H
#define TURN_CLOCK_H

#include <stdint.h>
#include <stdbool.h>
#include <time.h>

/* A look takes a microsecond, so that a loop that waits for a time ends. */
long turn_clock_look(clockid_t clock, struct timespec *ret);
/* It has a number of its own, and is there; a negative one is of a process, a thread or a device. */
bool turn_clock_is_listed(clockid_t clock);
bool turn_clock_is_of_device(clockid_t clock);
bool turn_clock_is_of_processor(clockid_t clock);
/*
 * Can it be looked at, slept by, or have timers?  0; -EINVAL: there is no such clock; -EOPNOTSUPP: it
 * cannot.  As Linux has it, but that those of alarms are there on each machine, for everybody.
 */
long turn_clock_check_look(clockid_t clock);
long turn_clock_check_sleep(clockid_t clock);
long turn_clock_check_timer(clockid_t clock);
/* When it is so late on that clock, or after so long; NULL: TURN_NEVER. */
uint64_t turn_clock_at(clockid_t clock, const struct timespec *time);
uint64_t turn_clock_after(const struct timespec *time);
uint64_t turn_clock_after_ns(uint64_t ns);
/* Sleep.  turn_clock_yield() sleeps longer the more often it is called in a row. */
void turn_clock_sleep_until(uint64_t deadline);
void turn_clock_yield(void);
/* The same when so many batches of locks were taken in a row. */
void turn_clock_yield_locks(uint64_t num);
/* So many calls were made, each of a microsecond: the limit of time ends who never waits, too. */
void turn_clock_take(uint32_t num_calls);

#endif
