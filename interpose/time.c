/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * interpose/time.c - clock_gettime(), gettimeofday(), time() and timespec_get(), and real time
 * for ourselves.
 *
 * Clocks are read in signal handlers, by allocators, and before this library is ready.  If time
 * was never virtual, there is one check before the C library is called.
 */
#include "config.h"

#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "core/base/export.h"
#include "libc.h"
#include "shown.h"
#include "wait.h"

int polycm_libc_gettime(clockid_t clock, struct timespec *time)
{
	if (polycm_libc_is_found())
		return polycm_libc_found.clock_gettime(clock, time);
	return (int)syscall(SYS_clock_gettime, clock, time);
}

uint64_t polycm_libc_ns(clockid_t clock)
{
	struct timespec time = { .tv_sec = 0 };

	polycm_libc_gettime(clock, &time);
	return polycm_wait_ns(&time);
}

/* Not inlined: its frame is always as far from the program's, and identifies the place that reads. */
POLYCM_READS_CLOCK __attribute__((noinline))
static int read_clock(clockid_t clock, struct timespec *time)
{
	uint64_t ns;

	if (!polycm_shown_read(clock, __builtin_frame_address(0), &ns))
		return polycm_libc_gettime(clock, time);
	*time = polycm_wait_timespec(ns);
	return 0;
}

POLYCM_READS_CLOCK POLYCM_EXPORT int clock_gettime(clockid_t clock, struct timespec *time)
{
	if (__builtin_expect(polycm_shown_is(POLYCM_SHOWN_REAL), 1))
		return polycm_libc_found.clock_gettime(clock, time);
	return read_clock(clock, time);
}

static int show_time_of_day(struct timeval *time, void *zone)
{
	/* The header says that it is never NULL, and Linux takes that. */
	struct timeval *volatile ret_time = time;
	struct timespec now;

	read_clock(CLOCK_REALTIME, &now);
	if (zone)
		*(struct timezone *)zone = (struct timezone){ 0 };
	if (ret_time)
		*ret_time = (struct timeval){ now.tv_sec, now.tv_nsec / 1000 };
	return 0;
}

POLYCM_EXPORT int gettimeofday(struct timeval *restrict time, void *restrict zone)
{
	if (__builtin_expect(polycm_shown_is(POLYCM_SHOWN_REAL), 1) || polycm_shown_passes())
		return polycm_libc_found.gettimeofday(time, zone);
	return show_time_of_day(time, zone);
}

POLYCM_EXPORT time_t time(time_t *ret_time)
{
	struct timespec now;

	if (__builtin_expect(polycm_shown_is(POLYCM_SHOWN_REAL), 1) || polycm_shown_passes())
		return polycm_libc_found.time(ret_time);
	read_clock(CLOCK_REALTIME, &now);
	if (ret_time)
		*ret_time = now.tv_sec;
	return now.tv_sec;
}

POLYCM_EXPORT int timespec_get(struct timespec *time, int base)
{
	if (__builtin_expect(polycm_shown_is(POLYCM_SHOWN_REAL), 1) || base != TIME_UTC)
		return polycm_libc()->timespec_get(time, base);
	read_clock(CLOCK_REALTIME, time);
	return base;
}
