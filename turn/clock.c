/* SPDX-License-Identifier: BSD-2-Clause */
/* turn/clock.c - see clock.h. */
#include "config.h"

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/syscall.h>

#include "clock.h"
#include "hand.h"
#include "order.h"
#include "raw.h"

#define UNUSED_CLOCK 10		/* the kernel has none of this number any more */
/* Negative numbers have a kind, and whose they are: a descriptor, a process or a thread, 0: its own. */
#define KIND(clock) ((clock) & 7)
#define OWNER(clock) (~((clock) >> 3))
#define OF_DEVICE 3
#define OF_THREAD 4		/* and not 0: one bit of the kind */
#define LOOK_NS 1000u
#define CALL_NS 1000u
#define YIELD_NS 1000u
#define YIELDS_ALIKE 4u		/* then each sleeps twice as long */
#define LOCKS_ALIKE 64u		/* the same of locks, which who computes takes, too */
#define MOST_DOUBLINGS 14u

static bool is_date(clockid_t clock)
{
	return clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE ||
	       clock == CLOCK_REALTIME_ALARM || clock == CLOCK_TAI;
}

bool turn_clock_is_of_processor(clockid_t clock)
{
	return clock < 0 || clock == CLOCK_PROCESS_CPUTIME_ID || clock == CLOCK_THREAD_CPUTIME_ID;
}

bool turn_clock_is_listed(clockid_t clock)
{
	return clock >= 0 && clock <= CLOCK_TAI && clock != UNUSED_CLOCK;
}

bool turn_clock_is_of_device(clockid_t clock)
{
	return clock < 0 && KIND(clock) == OF_DEVICE;
}

/* The kernel knows who lives, and what a descriptor is. */
long turn_clock_check_look(clockid_t clock)
{
	struct timespec now;

	if (clock < 0)
		return TURN_RAW(SYS_clock_gettime, clock, &now);
	return turn_clock_is_listed(clock) ? 0 : -EINVAL;
}

long turn_clock_check_timer(clockid_t clock)
{
	if (clock == CLOCK_MONOTONIC_RAW || clock == CLOCK_REALTIME_COARSE ||
	    clock == CLOCK_MONOTONIC_COARSE || turn_clock_is_of_device(clock))
		return -EOPNOTSUPP;
	/* Not as a look: of a process by its number, not by that of one of its threads. */
	if (clock < 0)
		return TURN_RAW(SYS_clock_getres, clock, NULL);
	return turn_clock_is_listed(clock) ? 0 : -EINVAL;
}

static bool is_of_own_thread(clockid_t clock)
{
	return clock < 0 && KIND(clock) & OF_THREAD &&
	       (!OWNER(clock) || OWNER(clock) == turn_self()->tid);
}

long turn_clock_check_sleep(clockid_t clock)
{
	if (clock == CLOCK_THREAD_CPUTIME_ID)
		return -EOPNOTSUPP;
	return is_of_own_thread(clock) ? -EINVAL : turn_clock_check_timer(clock);
}

long turn_clock_look(clockid_t clock, struct timespec *ret)
{
	uint64_t time;

	turn_segment->now += LOOK_NS;
	time = turn_segment->now;
	if (is_date(clock))
		time += TURN_DATE - TURN_BEGIN;
	/* Processor time, which would differ from run to run: all that went by. */
	else if (turn_clock_is_of_processor(clock))
		time -= TURN_BEGIN;
	if (ret) {
		ret->tv_sec = (time_t)(time / TURN_SECOND);
		ret->tv_nsec = (long)(time % TURN_SECOND);
	}
	return 0;
}

static uint64_t ns_of(const struct timespec *time)
{
	if (time->tv_sec < 0)
		return 0;
	if ((uint64_t)time->tv_sec >= TURN_NEVER / TURN_SECOND / 2)
		return TURN_NEVER / 2;
	return (uint64_t)time->tv_sec * TURN_SECOND + (uint64_t)time->tv_nsec;
}

uint64_t turn_clock_at(clockid_t clock, const struct timespec *time)
{
	const uint64_t offset = is_date(clock) ? TURN_DATE - TURN_BEGIN : 0;
	uint64_t at;

	if (!time)
		return TURN_NEVER;
	at = ns_of(time);
	if (turn_clock_is_of_processor(clock))
		return at + TURN_BEGIN;
	return at > offset ? at - offset : 0;
}

uint64_t turn_clock_after_ns(uint64_t ns)
{
	return turn_segment->now + ns;
}

uint64_t turn_clock_after(const struct timespec *time)
{
	return time ? turn_clock_after_ns(ns_of(time)) : TURN_NEVER;
}

void turn_clock_sleep_until(uint64_t deadline)
{
	if (deadline > turn_segment->now)
		turn_wait(TURN_ASLEEP, deadline);
}

static void yield(uint32_t doublings)
{
	struct turn_thread *self = turn_self();
	const uint32_t then = self->then_next;
	uint64_t ns = (uint64_t)YIELD_NS << (doublings < MOST_DOUBLINGS ? doublings : MOST_DOUBLINGS);

	if (self->keeps)
		return;
	if (doublings >= MOST_DOUBLINGS)
		ns = turn_order_poll_length(turn_segment, self);
	self->then_next = TURN_POLLS;
	self->polls = true;
	turn_clock_sleep_until(turn_clock_after_ns(ns));
	self->then_next = then;
}

void turn_clock_yield(void)
{
	yield(turn_self()->yields++ / YIELDS_ALIKE);
}

void turn_clock_yield_locks(uint64_t num)
{
	yield((uint32_t)(num / LOCKS_ALIKE));
}

void turn_clock_take(uint32_t num_calls)
{
	turn_segment->now += (uint64_t)num_calls * CALL_NS;
	if (turn_segment->now > turn_segment->until)
		turn_clock_yield();
}
