/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * polycm/clock.h - for a provider that owns time, such as a simulator.
 *
 * It installs a clock; then everything in the process that asks polycm for the
 * time lives in it.  The services for that are a table of the core's, which
 * the provider asks for in its query or later:
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
 */

struct polycm_clock_wait {
	uint32_t size;
	uint64_t deadline_ns;		/* UINT64_MAX: none */
	/* Holding nothing; does not wait.  May be where the thread is cancelled. */
	bool (*look)(void *arg);
	void *arg;
	bool only_ours;			/* nothing outside of this clock's world ends the wait */
};

/* Called from any thread.  now_ns, timer_start and timer_cancel are required. */
struct polycm_clock {
	uint32_t size;
	/* Nanoseconds since an arbitrary start, never going back. */
	uint64_t (*now_ns)(void *ctx);
	/*
	 * now_ns(), for a program that reads a clock of its own, once more in a
	 * row; in a signal handler, too.  The call's stack frame says whether
	 * the same place does so again.  NULL: as now_ns().
	 */
	uint64_t (*read_ns)(void *ctx, const void *frame);
	/* Also from inside post_event(), when the clock's own provider calls that. */
	int (*timer_start)(void *ctx, uint64_t deadline_ns, void (*fn)(void *arg), void *arg,
			   struct polycm_timer **ret_timer);
	/*
	 * The timer, whether it has fired or not, fires at that time and at no
	 * other; UINT64_MAX: not before it is restarted.  Cannot fail, so needs
	 * no memory.  NULL: the core cancels it and starts another, which can.
	 */
	void (*timer_restart)(void *ctx, struct polycm_timer *timer, uint64_t deadline_ns);
	void (*timer_cancel)(void *ctx, struct polycm_timer *timer);
	/*
	 * A thread of the program is about to wait.  1: time moved and something
	 * happened, look again.  0: time passes by itself, block.  -EDEADLK:
	 * nothing that could end the wait can ever happen.  Another errno:
	 * nothing happens for want of a resource (why() says of which).
	 */
	int (*idle)(void *ctx);

	/*
	 * For the waits of a program that are none of polycm's calls: poll(),
	 * nanosleep() and their like.  All four or none; without them, and
	 * while is_virtual() returns false, these calls are the C library's.
	 */
	bool (*is_virtual)(void *ctx);
	/*
	 * Let time move until look() sees what the thread waits for: 0.  Or:
	 * -ETIMEDOUT  it is the deadline.  What happens at that time has happened.
	 * -EDEADLK    nothing is left that could happen, and no other thread acts
	 * -EAGAIN     nothing is left, but other threads may act; not if only_ours
	 * -ENODEV     time is not virtual any more
	 */
	int (*wait)(void *ctx, const struct polycm_clock_wait *wait);
	/* A thread looked for something, did not find it and did not wait. */
	void (*spin)(void *ctx);
	/*
	 * Does only what lives on this clock make the descriptor ready?  Then
	 * also what it stands for and waits for, in words.
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
	 * The clocks that the program reads with clock_gettime() and its like
	 * follow the installed clock, from what they show now, or again the
	 * system's.  While they follow it now_ns() does not go back.  Without an
	 * installed clock it does nothing.  One call at a time.  -EOPNOTSUPP,
	 * after a line of log: the program's clocks cannot be virtual, since
	 * libpolycm-interpose is not loaded.
	 */
	int (*show)(bool is_virtual);
	/* The system's clock in ns, whatever the program's clocks show. */
	uint64_t (*real_ns)(clockid_t clock);
	/*
	 * pthread_cond_timedwait() until such a time, of the clock that the
	 * condition was made with.  Returns what that does.
	 */
	int (*cond_wait)(pthread_cond_t *cond, pthread_mutex_t *mutex, uint64_t until_ns);
	/*
	 * The installed clock moved time in a call of the program's, and holds no
	 * lock any more: signals of the program's timers are sent.  true: one
	 * interrupts the call, if it is one that waits.
	 */
	bool (*time_moved)(void);
};

#ifdef __cplusplus
}
#endif

#endif /* POLYCM_CLOCK_H */
