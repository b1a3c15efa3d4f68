/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * interpose/wait.h - a wait of the program in virtual time: what poll(), select(),
 * epoll_wait(), nanosleep() and similar calls have in common.
 */
#ifndef POLYCM_INTERPOSE_H
#define POLYCM_INTERPOSE_H

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include "host.h"

#define POLYCM_FOREVER UINT64_MAX

struct polycm_waited;

struct polycm_wait {
	const char *call;		/* its name, for the log */
	uint64_t timeout_ns;		/* POLYCM_FOREVER: none */
	const sigset_t *mask;		/* of the thread while it waits; NULL: as it is */
	/*
	 * Ask the kernel, for at most `limit' of real time; NULL: for as long as it takes.
	 * Returns how many descriptors are ready, or a negative errno.  ask NULL: only a
	 * signal ends the wait.
	 */
	int (*ask)(struct polycm_wait *wait, const struct timespec *limit, const sigset_t *mask);
	/* polycm_waited_add() each descriptor.  NULL: there are none. */
	void (*waited)(struct polycm_wait *wait, struct polycm_waited *waited);

	int result;			/* of the last ask() */
	uint64_t left_ns;		/* of the time-out, when the wait ended */
	sigset_t while_waiting, before;
};

/*
 * Returns the result of ask(); 0 after the time-out; -EDEADLK, logged, if nothing can ever
 * end the wait; -ENODEV if time is not virtual, so that the C library has to wait.
 * A time-out of 0 asks once.
 */
int polycm_wait(struct polycm_wait *wait);

/* A call that does not wait found nothing.  May be called in a signal handler. */
void polycm_wait_spin(void);

/* 0 or more as it is; else -1 with errno. */
int polycm_wait_return(int result);

/* sleep.c: polycm_core.sleep(). */
void polycm_wait_sleep(uint64_t ns);

#define POLYCM_NS_PER_S UINT64_C(1000000000)

/* The time is valid; more than 584 years are for ever. */
uint64_t polycm_wait_ns(const struct timespec *time);
struct timespec polycm_wait_timespec(uint64_t ns);
bool polycm_wait_valid(const struct timespec *time);

/* Time-outs of poll() and of ppoll(), as struct polycm_wait has them. */
static inline uint64_t polycm_wait_milliseconds(int timeout)
{
	return timeout < 0 ? POLYCM_FOREVER : (uint64_t)timeout * 1000000u;
}

static inline uint64_t polycm_wait_timeout(const struct timespec *timeout)
{
	return timeout ? polycm_wait_ns(timeout) : POLYCM_FOREVER;
}

/* Does the C library wait?  It also refuses time-outs that are invalid. */
static inline bool polycm_wait_is_real(const struct timespec *timeout)
{
	return time_is_real() || (timeout && !polycm_wait_valid(timeout));
}

/*
 * Between the two calls the thread runs no signal handler and cannot be cancelled: it may
 * take a lock that a handler takes, too.
 */
struct polycm_held {
	sigset_t signals;
	int cancel_state;
};

void polycm_hold(struct polycm_held *ret_held);
void polycm_release(const struct polycm_held *held);

/* --- cond.c: the calls on conditions that versions.c exports. --- */

int polycm_cond_signal(pthread_cond_t *cond);
int polycm_cond_broadcast(pthread_cond_t *cond);
int polycm_cond_timedwait(pthread_cond_t *cond, pthread_mutex_t *mutex,
			  const struct timespec *until);

/* --- flags.c --- */

/* struct polycm_interposer.flags_changed() */
unsigned int polycm_flags_changed(void);

/* --- waited.c: what could make a set of descriptors ready. --- */

struct polycm_waited {
	unsigned int ours;		/* descriptors that only virtual time makes ready */
	unsigned int others;		/* descriptors that may become ready at any real time */
	size_t len;
	char text[1024];		/* describes ours */
};

/* For an epoll set, its members are added. */
void polycm_waited_add(struct polycm_waited *waited, int fd);

#endif
