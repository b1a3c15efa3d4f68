/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * polycm/clock.h - for a provider that owns time, such as a simulator.
 *
 * Such a provider installs a clock.  From then on the whole process has its
 * time: the core, all providers and, if the clock is virtual, the program.  The
 * provider gets the services for that in its query or later:
 *
 *	services = core->extension(POLYCM_CLOCK, POLYCM_CLOCK_VERSION);
 *
 * All other providers need only now_ns(), timer_start(), timer_cancel() and
 * sleep() of struct polycm_core, which follow the installed clock.
 */
#ifndef POLYCM_CLOCK_H
#define POLYCM_CLOCK_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#ifdef __cplusplus
extern "C" {
#endif

struct polycm_timer;

/* ------------------------------------------------------------------------
 * The clock, which the provider fills in.
 *
 * Operation      Required  Waits                  Threads          Errors
 * now_ns         yes       no                     any              -
 * read_ns        no        no                     any, handlers    -
 * timer_start    yes       no                     any              ENOMEM
 * timer_restart  no        no                     any              -
 * timer_cancel   yes       until fn is over       any, not in fn   -
 * idle           no        while time moves       program's        EDEADLK, other
 * is_virtual     all four  no                     any              -
 * wait           or none   until what it returns  program's        (see there)
 * spin           "         no                     program's        -
 * owns_fd        "         no                     any              -
 *
 * ctx is what install() was given.  All may be called at the same time.  The
 * core holds no lock in idle, wait and spin; in the timer operations it may hold
 * locks of ids, but none of a channel.  handlers: also in a signal handler.
 * program's: threads of the program, inside a call that waits.  After fork() the
 * clock stays installed in the child.
 */

struct polycm_clock_wait {
	uint32_t size;
	uint64_t deadline_ns;		/* UINT64_MAX: none */
	/* Is it there?  Call it with no lock held; it does not wait.  A cancellation point. */
	bool (*look)(void *arg);
	void *arg;
	bool only_ours;			/* only what happens on this clock can end the wait */
};

struct polycm_clock {
	uint32_t size;
	/* Nanoseconds since an arbitrary start, never going back. */
	uint64_t (*now_ns)(void *ctx);
	/*
	 * As now_ns(), for a program that reads the time again and again.  frame is
	 * the stack frame of the caller: it tells whether the same place of the
	 * program reads the time again.  NULL: as now_ns().
	 */
	uint64_t (*read_ns)(void *ctx, const void *frame);
	/* Also from inside post_event(), when the clock's own provider calls that. */
	int (*timer_start)(void *ctx, uint64_t deadline_ns, void (*fn)(void *arg), void *arg,
			   struct polycm_timer **ret_timer);
	/*
	 * Let the timer fire at another time, whether it has fired or not;
	 * UINT64_MAX: never, unless it is restarted.  It cannot fail, so it needs no
	 * memory.  NULL: the core cancels the timer and starts another.
	 */
	void (*timer_restart)(void *ctx, struct polycm_timer *timer, uint64_t deadline_ns);
	void (*timer_cancel)(void *ctx, struct polycm_timer *timer);
	/*
	 * A thread of the program is about to wait.  1: time moved and something
	 * happened; the thread checks again.  0: time passes by itself; the thread
	 * blocks.  -EDEADLK: nothing that could end the wait can ever happen.
	 * Another errno: a resource is missing, and why() says which.
	 */
	int (*idle)(void *ctx);

	/*
	 * For calls of the C library that wait, such as poll() and nanosleep().  All
	 * four or none.  Without them, and while is_virtual() returns false, the
	 * program's calls are the C library's.
	 */
	bool (*is_virtual)(void *ctx);
	/*
	 * Let time move until look() returns true: 0.  Or:
	 * -ETIMEDOUT  it is the deadline.  What happens at that time has happened.
	 * -EDEADLK    nothing is left that could happen, and no other thread acts
	 * -EAGAIN     nothing is left, but other threads may act; not if only_ours
	 * -ENODEV     time is not virtual any more
	 */
	int (*wait)(void *ctx, const struct polycm_clock_wait *wait);
	/* A thread of the program checked for something that is not there, and does not wait. */
	void (*spin)(void *ctx);
	/*
	 * Can only what happens on this clock make the descriptor readable?  Then
	 * text says what the descriptor is and waits for.
	 */
	bool (*owns_fd)(void *ctx, int fd, char *text, size_t size);
};

/* ------------------------------------------------------------------------
 * The core's services for it: extension(POLYCM_CLOCK, POLYCM_CLOCK_VERSION) of
 * struct polycm_core.
 */

#define POLYCM_CLOCK		"clock"
#define POLYCM_CLOCK_VERSION	1

struct polycm_clock_services {
	uint32_t size;
	/*
	 * The core copies *clock and keeps ctx.  Once for each process; the same
	 * clock again is 0.  -EBUSY: another provider owns time.  -EINVAL: a
	 * required operation is missing.
	 */
	int (*install)(const struct polycm_clock *clock, void *ctx);
	/*
	 * true: clock_gettime() and similar calls of the program follow the
	 * installed clock, beginning with the time that they show now.  false: they
	 * show the system's time again.  Without an installed clock it does
	 * nothing.  One call at a time.  -EOPNOTSUPP, after a line of log:
	 * libpolycm-interpose is not loaded, so the program's clocks stay real.
	 */
	int (*show)(bool is_virtual);
	/* The system's clock in ns, whatever the program's clocks show. */
	uint64_t (*real_ns)(clockid_t clock);
	/* pthread_cond_timedwait() in real time; until_ns is of the condition's clock. */
	int (*cond_wait)(pthread_cond_t *cond, pthread_mutex_t *mutex, uint64_t until_ns);
	/*
	 * The provider calls it after it moved time in a call of the program, with
	 * no lock held.  The core sends the signals of the program's timers.  true:
	 * a signal interrupts the call, if it waits.
	 */
	bool (*time_moved)(void);
};

#ifdef __cplusplus
}
#endif

#endif /* POLYCM_CLOCK_H */
