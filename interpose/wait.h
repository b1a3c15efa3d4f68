/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * interpose/wait.h - a wait of the program's in virtual time: what poll(), select(),
 * epoll_wait(), nanosleep() and their like have in common.
 */
#ifndef POLYCM_INTERPOSE_H
#define POLYCM_INTERPOSE_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#define POLYCM_FOREVER UINT64_MAX

struct polycm_waited;

struct polycm_wait {
	const char *call;		/* its name, for people */
	uint64_t timeout_ns;		/* POLYCM_FOREVER: none */
	const sigset_t *mask;		/* of the thread while it waits; NULL: as it is */
	/*
	 * Ask the kernel, for at most so long of real time; NULL: as long as
	 * it takes.  How many descriptors are ready, or a negative errno.
	 */
	int (*ask)(struct polycm_wait *wait, const struct timespec *limit, const sigset_t *mask);
	/* polycm_waited_add() each descriptor.  NULL: there are none. */
	void (*waited)(struct polycm_wait *wait, struct polycm_waited *waited);

	int result;			/* what ask() said at last */
	uint64_t left_ns;		/* of the time-out, when the wait ended */
	sigset_t while_waiting, before;
};

/*
 * What ask() said; 0 after the time-out; -EDEADLK, after a line of log, where
 * nothing could ever end the wait; -ENODEV: time is not virtual, so the call
 * is the C library's.
 */
int polycm_wait(struct polycm_wait *wait);
/* The call does not wait: ask once. */
int polycm_wait_not(struct polycm_wait *wait);

/* A call that does not wait found nothing.  In a signal handler, too. */
void polycm_wait_spin(void);

/* 0 or more as it is; else -1 with errno. */
int polycm_wait_return(int result);

/* sleep.c: polycm_core.sleep(). */
void polycm_wait_sleep(uint64_t ns);

#define POLYCM_NS_PER_S UINT64_C(1000000000)

/* Of a valid time; what is longer than 584 years is for ever. */
uint64_t polycm_wait_ns(const struct timespec *time);
struct timespec polycm_wait_timespec(uint64_t ns);
bool polycm_wait_valid(const struct timespec *time);

/* --- waited.c: who could make a set of descriptors ready. --- */

struct polycm_waited {
	unsigned int ours;		/* only what happens in virtual time */
	unsigned int others;		/* anything else, so they may become ready at any real time */
	size_t len;
	char text[1024];		/* what waits on ours */
};

/* An epoll set stands for what is in it. */
void polycm_waited_add(struct polycm_waited *waited, int fd);

#endif
