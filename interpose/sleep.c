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

static int ask(struct polycm_wait *wait, const struct timespec *limit, const sigset_t *mask)
{
	(void)wait;
	return polycm_libc()->ppoll(NULL, 0, limit, mask) < 0 ? -errno : 0;
}

/* 0 or a negative errno, with the time that was left. */
static int virtual_sleep(const char *call, uint64_t ns, uint64_t *ret_left)
{
	struct polycm_wait wait = { .call = call, .timeout_ns = ns, .ask = ask };
	int r = ns ? polycm_wait(&wait) : polycm_wait_not(&wait);

	*ret_left = wait.left_ns;
	return r;
}

/* The header says that it is never NULL, and the kernel says what it is then. */
static bool valid(const struct timespec *time)
{
	const struct timespec *volatile given = time;

	return given && polycm_wait_valid(given);
}

POLYCM_EXPORT int nanosleep(const struct timespec *time, struct timespec *left)
{
	uint64_t left_ns;
	int r;

	if (time_is_real() || !valid(time))
		return polycm_libc()->nanosleep(time, left);
	r = virtual_sleep("nanosleep", polycm_wait_ns(time), &left_ns);
	if (r == -ENODEV)
		return polycm_libc()->nanosleep(time, left);
	if (r && left)
		*left = polycm_wait_timespec(left_ns);
	return polycm_wait_return(r);
}

/* An operation of a thread that is cancelled must not end half done. */
void polycm_wait_sleep(uint64_t ns)
{
	struct timespec time = polycm_wait_timespec(ns);
	uint64_t left_ns = ns;
	int state, r = -ENODEV;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	if (!time_is_real()) {
		while ((r = virtual_sleep("a delayed call", left_ns, &left_ns)) == -EINTR)
			;
	}
	if (r == -ENODEV)
		while (polycm_libc()->nanosleep(&time, &time) < 0 && errno == EINTR)
			;
	pthread_setcancelstate(state, NULL);
}

POLYCM_EXPORT int usleep(useconds_t us)
{
	uint64_t left_ns;
	int r;

	if (time_is_real())
		return polycm_libc()->usleep(us);
	r = virtual_sleep("usleep", (uint64_t)us * 1000u, &left_ns);
	return r == -ENODEV ? polycm_libc()->usleep(us) : polycm_wait_return(r);
}

POLYCM_EXPORT unsigned int sleep(unsigned int seconds)
{
	uint64_t left_ns;
	int r;

	if (time_is_real())
		return polycm_libc()->sleep(seconds);
	r = virtual_sleep("sleep", seconds * POLYCM_NS_PER_S, &left_ns);
	if (r == -ENODEV)
		return polycm_libc()->sleep(seconds);
	return r ? (unsigned int)((left_ns + POLYCM_NS_PER_S / 2) / POLYCM_NS_PER_S) : 0;
}

/* Returns an errno rather than to set it. */
POLYCM_EXPORT int clock_nanosleep(clockid_t clock, int flags, const struct timespec *time,
				  struct timespec *left)
{
	bool absolute = flags & TIMER_ABSTIME;
	struct timespec real;
	uint64_t left_ns;
	int r;

	/* What else there is counts what the processor does, or cannot be. */
	if (__builtin_expect(!polycm_shown_is(POLYCM_SHOWN_MOVED), 1) && time_is_real())
		return polycm_libc()->clock_nanosleep(clock, flags, time, left);
	if (!polycm_shown_moves(clock) || !valid(time))
		return polycm_libc()->clock_nanosleep(clock, flags, time, left);
	/* Not every clock that can be read can be slept by. */
	r = polycm_libc()->clock_nanosleep(clock, 0, &(struct timespec){ 0 }, NULL);
	if (r)
		return r;
	r = -ENODEV;
	if (!time_is_real())
		r = virtual_sleep("clock_nanosleep", absolute ? polycm_shown_until(clock, time) :
								polycm_wait_ns(time), &left_ns);
	if (r == -ENODEV) {
		real = absolute ? polycm_shown_to_real(clock, time) : *time;
		return polycm_libc()->clock_nanosleep(clock, flags, &real, left);
	}
	if (r && left && !absolute)
		*left = polycm_wait_timespec(left_ns);
	return -r;
}

/* -1: a signal came. */
POLYCM_EXPORT int thrd_sleep(const struct timespec *time, struct timespec *left)
{
	uint64_t left_ns;
	int r;

	if (time_is_real() || !valid(time))
		return polycm_libc()->thrd_sleep(time, left);
	r = virtual_sleep("thrd_sleep", polycm_wait_ns(time), &left_ns);
	if (r == -ENODEV)
		return polycm_libc()->thrd_sleep(time, left);
	if (r && left)
		*left = polycm_wait_timespec(left_ns);
	return r == -EINTR ? -1 : r ? -2 : 0;
}
