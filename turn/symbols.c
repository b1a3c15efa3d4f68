/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * turn/symbols.c - clocks as functions of the C library, which programs read often: without a trap,
 * unless the thread is to let others go on.  What is not read here is read by a system call, which
 * is trapped.
 */
#include "config.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "calls.h"
#include "clock.h"

#define EXPORT __attribute__((visibility("default")))

EXPORT int clock_gettime(clockid_t clock, struct timespec *ret)
{
	if (turn_calls_quickly(SYS_clock_gettime, clock))
		return (int)turn_clock_look(clock, ret);
	return (int)syscall(SYS_clock_gettime, clock, ret);
}

EXPORT int gettimeofday(struct timeval *ret, void *zone)
{
	struct timeval *volatile to = ret;	/* the kernel lets it be NULL, the header does not */
	struct timespec now;

	if (!turn_calls_quickly(SYS_gettimeofday, (long)to))
		return (int)syscall(SYS_gettimeofday, to, zone);
	turn_clock_look(CLOCK_REALTIME, &now);
	if (to)
		*to = (struct timeval){ now.tv_sec, now.tv_nsec / 1000 };
	return 0;
}

EXPORT time_t time(time_t *ret)
{
	struct timespec now;

	if (!turn_calls_quickly(SYS_time, (long)ret))
		return (time_t)syscall(SYS_time, ret);
	turn_clock_look(CLOCK_REALTIME, &now);
	if (ret)
		*ret = now.tv_sec;
	return now.tv_sec;
}
