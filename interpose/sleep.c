/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * interpose/sleep.c - sleep(), usleep(), nanosleep(), clock_nanosleep() and
 * thrd_sleep().
 */
#include "config.h"

#include "host.h"
#include "libc.h"
#include "shown.h"
#include "wait.h"

#include <errno.h>
#include <pthread.h>
#include <unistd.h>

#include "core/base/export.h"

/* 0 or a negative errno; -ENODEV: the C library sleeps. */
static int virtual_sleep(const char *call, uint64_t ns, uint64_t *ret_left_ns)
{
	struct polycm_wait wait = { .call = call, .timeout_ns = ns };
	int r = time_is_real() ? -ENODEV : polycm_wait(&wait);

	*ret_left_ns = wait.left_ns;
	return r;
}

/* The header says that it is never NULL; the kernel refuses that. */
static bool valid(const struct timespec *time)
{
	const struct timespec *volatile given = time;

	return given && polycm_wait_valid(given);
}

/* As virtual_sleep(), with what was left when a signal came; `left' may be NULL. */
static int sleep_for(const char *call, const struct timespec *time, struct timespec *left)
{
	uint64_t left_ns;
	int r;

	if (!valid(time))
		return -ENODEV;
	r = virtual_sleep(call, polycm_wait_ns(time), &left_ns);
	if (r && r != -ENODEV && left)
		*left = polycm_wait_timespec(left_ns);
	return r;
}

POLYCM_EXPORT int nanosleep(const struct timespec *time, struct timespec *left)
{
	int r = sleep_for("nanosleep", time, left);

	return r == -ENODEV ? polycm_libc()->nanosleep(time, left) : polycm_wait_return(r);
}

/* -1: a signal came; -2: any other error. */
POLYCM_EXPORT int thrd_sleep(const struct timespec *time, struct timespec *left)
{
	int r = sleep_for("thrd_sleep", time, left);

	if (r == -ENODEV)
		return polycm_libc()->thrd_sleep(time, left);
	return r == -EINTR ? -1 : r ? -2 : 0;
}

POLYCM_EXPORT int usleep(useconds_t us)
{
	uint64_t left_ns;
	int r = virtual_sleep("usleep", (uint64_t)us * 1000u, &left_ns);

	return r == -ENODEV ? polycm_libc()->usleep(us) : polycm_wait_return(r);
}

POLYCM_EXPORT unsigned int sleep(unsigned int seconds)
{
	uint64_t left_ns;
	int r = virtual_sleep("sleep", seconds * POLYCM_NS_PER_S, &left_ns);

	if (r == -ENODEV)
		return polycm_libc()->sleep(seconds);
	return r ? (unsigned int)((left_ns + POLYCM_NS_PER_S / 2) / POLYCM_NS_PER_S) : 0;
}

/* Returns the errno, and does not set it. */
POLYCM_EXPORT int clock_nanosleep(clockid_t clock, int flags, const struct timespec *time,
				  struct timespec *left)
{
	bool absolute = flags & TIMER_ABSTIME;
	struct timespec real;
	uint64_t left_ns;
	int r;

	if (__builtin_expect(!polycm_shown_is(POLYCM_SHOWN_MOVED), 1) && time_is_real())
		return polycm_libc()->clock_nanosleep(clock, flags, time, left);
	/* Other clocks count processor time, or do not exist. */
	if (!polycm_shown_moves(clock) || !valid(time))
		return polycm_libc()->clock_nanosleep(clock, flags, time, left);
	/* Not every clock that can be read can be slept by. */
	r = polycm_libc()->clock_nanosleep(clock, 0, &(struct timespec){ 0 }, NULL);
	if (r)
		return r;
	if (!absolute)
		r = sleep_for("clock_nanosleep", time, left);
	else
		r = virtual_sleep("clock_nanosleep", polycm_shown_until(clock, time), &left_ns);
	if (r == -ENODEV) {
		real = absolute ? polycm_shown_to_real(clock, time) : *time;
		return polycm_libc()->clock_nanosleep(clock, flags, &real, left);
	}
	return -r;
}

/* It cannot be cancelled: an operation of polycm must not end half done. */
void polycm_wait_sleep(uint64_t ns)
{
	struct timespec time = polycm_wait_timespec(ns);
	uint64_t left_ns = ns;
	int state, r;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	do
		r = virtual_sleep("a delayed call", left_ns, &left_ns);
	while (r == -EINTR);
	if (r == -ENODEV)
		while (polycm_libc()->nanosleep(&time, &time) < 0 && errno == EINTR)
			;
	pthread_setcancelstate(state, NULL);
}
