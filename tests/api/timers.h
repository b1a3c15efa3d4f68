/* SPDX-License-Identifier: BSD-2-Clause */
/* timers.h - what tests of a program's own timers set and look at. */
#ifndef TESTS_API_TIMERS_H
#define TESTS_API_TIMERS_H

#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "pair.h"

#define MS UINT64_C(1000000)
#define S (1000 * MS)
#define DAY (86400 * S)

static inline struct timespec timespec_of(uint64_t ns)
{
	return (struct timespec){ (time_t)(ns / S), (long)(ns % S) };
}

static inline uint64_t ns_of(struct timespec time)
{
	return (uint64_t)time.tv_sec * S + (uint64_t)time.tv_nsec;
}

static inline struct itimerspec every(uint64_t value, uint64_t interval)
{
	return (struct itimerspec){ .it_value = timespec_of(value),
				    .it_interval = timespec_of(interval) };
}

static inline void virtual_sleep(uint64_t ns)
{
	struct timespec time = timespec_of(ns);

	assert_int_equal(nanosleep(&time, NULL), 0);
}

static inline int by_poll(int fd, int ms)
{
	struct pollfd pfd = { .fd = fd, .events = POLLIN };

	return poll(&pfd, 1, ms);
}

static inline int timer_fd(int flags, uint64_t value, uint64_t interval)
{
	struct itimerspec time = every(value, interval);
	int fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | flags);

	assert_in_range(fd, 0, 1000);
	assert_int_equal(timerfd_settime(fd, 0, &time, NULL), 0);
	return fd;
}

static inline uint64_t take(int fd)
{
	uint64_t num;

	assert_int_equal(read(fd, &num, sizeof(num)), sizeof(num));
	return num;
}

/* Signals that came to handler(), and when the last did. */
static volatile sig_atomic_t signals;
static uint64_t signalled_at;

static inline void handler(int number)
{
	(void)number;
	signals++;
	signalled_at = pair_now();
}

static inline void handle(int number, int flags)
{
	struct sigaction action = { .sa_handler = handler, .sa_flags = flags };

	assert_int_equal(sigaction(number, &action, NULL), 0);
	signals = 0;
}

#endif
