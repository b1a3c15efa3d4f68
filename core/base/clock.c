/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * base/clock.c - CLOCK_MONOTONIC with timers on a thread of our own, and the switch
 * to a clock that a provider installs.
 *
 * The thread starts with the first timer, blocks all signals and lives as long
 * as the process; a child of fork() has one of its own, and no timers yet.
 * `clock_lock' guards the queue and which timer's function runs; it is not held while
 * that function runs.  A timer belongs to who started it until
 * polycm_timer_cancel(), also after it fired, and remembers the clock it was
 * started on, since a clock may be installed meanwhile.
 */
#include "config.h"

#include "clock.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <utlist.h>

#include "abi.h"
#include "held_signals.h"
#include "include/thread_local.h"
#include "interposer.h"
#include "live.h"
#include "misuse.h"
#include "why.h"

struct installed {
	struct polycm_clock clock;
	void *ctx;
};

struct polycm_timer {
	const struct installed *on;	/* NULL: ours, as below */
	struct polycm_timer *theirs;	/* the installed clock's handle */
	struct polycm_timer *prev, *next;
	bool queued;
	uint64_t deadline;
	void (*fn)(void *arg);
	void *arg;
};

static pthread_mutex_t clock_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t work;		/* on CLOCK_MONOTONIC: the first deadline changed */
static pthread_cond_t idle = PTHREAD_COND_INITIALIZER;	/* a timer's function returned */
static bool thread_started;
static struct polycm_timer *queue;	/* the earliest first */
static const struct polycm_timer *running;

/* Written once. */
static struct installed installed_memory;
static const struct installed *installed;
bool polycm_clock_installed;

__attribute__((no_sanitize("thread"))) static const struct installed *current(void)
{
	return __atomic_load_n(&installed, __ATOMIC_ACQUIRE);
}

static uint64_t monotonic_ns(void)
{
	return polycm_real_ns(CLOCK_MONOTONIC);
}

uint64_t polycm_now_ns(void)
{
	const struct installed *in = current();

	return in ? in->clock.now_ns(in->ctx) : monotonic_ns();
}

/* ------------------------------------------------------------------------
 * The queue, with the lock held.
 */

/* Behind those with the same deadline.  Most deadlines are later than those before them. */
static void push(struct polycm_timer *timer)
{
	struct polycm_timer *before = queue ? queue->prev : NULL;

	/* What time_t holds; nobody waits longer. */
	if (timer->deadline > INT64_MAX)
		timer->deadline = INT64_MAX;
	while (before && before->deadline > timer->deadline)
		before = before == queue ? NULL : before->prev;
	DL_APPEND_ELEM(queue, before, timer);
	timer->queued = true;
	if (queue == timer)
		pthread_cond_signal(&work);
}

static void remove_queued(struct polycm_timer *timer)
{
	DL_DELETE(queue, timer);
	timer->queued = false;
}

/* ------------------------------------------------------------------------
 * The thread.
 */

static void *run_timers(void *unused)
{
	(void)unused;
	pthread_setname_np(pthread_self(), "polycm-timers");
	pthread_mutex_lock(&clock_lock);
	for (;;) {
		struct polycm_timer *timer = queue;

		if (!timer) {
			pthread_cond_wait(&work, &clock_lock);
			continue;
		}
		if (timer->deadline > monotonic_ns()) {
			polycm_cond_wait(&work, &clock_lock, timer->deadline);
			continue;
		}

		remove_queued(timer);
		running = timer;
		pthread_mutex_unlock(&clock_lock);
		timer->fn(timer->arg);
		pthread_mutex_lock(&clock_lock);
		running = NULL;
		pthread_cond_broadcast(&idle);
	}
	return NULL;
}

static void before_fork(void)
{
	pthread_mutex_lock(&clock_lock);
}

static void after_fork_parent(void)
{
	pthread_mutex_unlock(&clock_lock);
}

/* The thread is the parent's, and so are those for whom timers would fire. */
static void after_fork_child(void)
{
	while (queue)
		remove_queued(queue);
	running = NULL;
	thread_started = false;
	pthread_cond_init(&idle, NULL);
	pthread_mutex_unlock(&clock_lock);
}

static void watch_forks(void)
{
	(void)pthread_atfork(before_fork, after_fork_parent, after_fork_child);
}

static int start_thread(void)
{
	sigset_t before;
	pthread_condattr_t condattr;
	pthread_attr_t attr;
	pthread_t thread;
	int r;

	if (thread_started)
		return 0;
	pthread_condattr_init(&condattr);
	pthread_condattr_setclock(&condattr, CLOCK_MONOTONIC);
	pthread_cond_init(&work, &condattr);
	pthread_condattr_destroy(&condattr);

	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	hold_signals(&before);
	r = pthread_create(&thread, &attr, run_timers, NULL);
	release_signals(&before);
	pthread_attr_destroy(&attr);
	if (r)
		return polycm_fail(-r, "no thread for timers");
	thread_started = true;
	return 0;
}

static int start_ours(struct polycm_timer *timer)
{
	static pthread_once_t forks_once = PTHREAD_ONCE_INIT;
	int r;

	pthread_once(&forks_once, watch_forks);
	pthread_mutex_lock(&clock_lock);
	r = start_thread();
	if (!r)
		push(timer);
	pthread_mutex_unlock(&clock_lock);
	return r;
}

int polycm_timer_start(uint64_t deadline_ns, void (*fn)(void *arg), void *arg,
		       struct polycm_timer **ret_timer)
{
	const struct installed *in = current();
	struct polycm_timer *timer;
	int r;

	timer = calloc(1, sizeof(*timer));
	if (!timer)
		return -ENOMEM;
	timer->deadline = deadline_ns;
	timer->fn = fn;
	timer->arg = arg;
	timer->on = in;

	r = polycm_live_add(&polycm_live_timers, timer);
	if (r) {
		free(timer);
		return r;
	}
	/* fn may run at once and look for its timer. */
	*ret_timer = timer;
	if (in)
		r = in->clock.timer_start(in->ctx, deadline_ns, fn, arg, &timer->theirs);
	else
		r = start_ours(timer);
	if (r) {
		*ret_timer = NULL;
		(void)polycm_live_remove(&polycm_live_timers, timer);
		free(timer);
	}
	return r;
}

int polycm_timer_again(struct polycm_timer *timer, uint64_t deadline_ns)
{
	if (timer->on)
		return -EOPNOTSUPP;
	pthread_mutex_lock(&clock_lock);
	timer->deadline = deadline_ns;
	push(timer);
	pthread_mutex_unlock(&clock_lock);
	return 0;
}

/* UINT64_MAX: it does not fire.  No place to be cancelled in: the lock would stay. */
static void restart_ours(struct polycm_timer *timer, uint64_t deadline_ns)
{
	int old;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &old);
	pthread_mutex_lock(&clock_lock);
	/* Its function may be setting it again. */
	for (;;) {
		if (timer->queued)
			remove_queued(timer);
		if (running != timer)
			break;
		pthread_cond_wait(&idle, &clock_lock);
	}
	timer->deadline = deadline_ns;
	if (deadline_ns != UINT64_MAX)
		push(timer);
	pthread_mutex_unlock(&clock_lock);
	pthread_setcancelstate(old, NULL);
}

/* A clock of an earlier plugin: another timer. */
static int replace_theirs(struct polycm_timer *timer, uint64_t deadline_ns)
{
	const struct installed *in = timer->on;

	if (timer->theirs)
		in->clock.timer_cancel(in->ctx, timer->theirs);
	timer->theirs = NULL;
	if (deadline_ns == UINT64_MAX)
		return 0;
	return in->clock.timer_start(in->ctx, deadline_ns, timer->fn, timer->arg, &timer->theirs);
}

int polycm_timer_restart(struct polycm_timer *timer, uint64_t deadline_ns)
{
	const struct installed *in = timer->on;

	if (!in)
		restart_ours(timer, deadline_ns);
	else if (in->clock.timer_restart && timer->theirs)
		in->clock.timer_restart(in->ctx, timer->theirs, deadline_ns);
	else
		return replace_theirs(timer, deadline_ns);
	return 0;
}

void polycm_timer_cancel(struct polycm_timer *timer)
{
	if (!timer)
		return;
	if (!polycm_live_remove(&polycm_live_timers, timer)) {
		polycm_misuse_at(__builtin_return_address(0), "timer_cancel",
				 "no timer that is still to be cancelled: once for each");
		return;
	}
	if (!timer->on)
		restart_ours(timer, UINT64_MAX);
	else if (timer->theirs)
		timer->on->clock.timer_cancel(timer->on->ctx, timer->theirs);
	free(timer);
}

/* ------------------------------------------------------------------------
 * Installed clocks.
 */

static int no_idle(void *ctx)
{
	(void)ctx;
	return 0;
}

static uint64_t read_now(void *ctx, const void *frame)
{
	(void)frame;
	return installed_memory.clock.now_ns(ctx);
}

static bool never_virtual(void *ctx)
{
	(void)ctx;
	return false;
}

/* The end of version 1.0's; never change it.  A longer one is of a newer version. */
#define SPINS_PER_YIELD 64u	/* where time is real */
#define MIN_CLOCK (offsetof(struct polycm_clock, owns_fd) + sizeof(void *))

int polycm_clock_install(const struct polycm_clock *clock, void *ctx)
{
	struct polycm_clock copy;
	int r = 0;

	if (!clock || clock->size < MIN_CLOCK)
		return -EINVAL;
	polycm_abi_copy(&copy, sizeof(copy), clock);
	if (!copy.now_ns || !copy.timer_start || !copy.timer_cancel)
		return -EINVAL;
	if (!copy.idle)
		copy.idle = no_idle;
	if (!copy.wait || !copy.spin || !copy.owns_fd)
		copy.is_virtual = NULL;
	if (!copy.is_virtual)
		copy.is_virtual = never_virtual;
	if (!copy.read_ns)
		copy.read_ns = read_now;

	pthread_mutex_lock(&clock_lock);
	if (!installed) {
		installed_memory.clock = copy;
		installed_memory.ctx = ctx;
		__atomic_store_n(&installed, &installed_memory, __ATOMIC_RELEASE);
		__atomic_store_n(&polycm_clock_installed, true, __ATOMIC_RELAXED);
	} else if (installed->ctx != ctx || installed->clock.now_ns != copy.now_ns) {
		r = -EBUSY;
	}
	pthread_mutex_unlock(&clock_lock);
	return r;
}

int polycm_clock_idle(void)
{
	const struct installed *in = current();

	if (!in)
		return 0;
	polycm_time_moves();
	return in->clock.idle(in->ctx);
}

bool polycm_clock_virtual(void)
{
	const struct installed *in = current();

	return in && in->clock.is_virtual(in->ctx);
}

int polycm_clock_wait(const struct polycm_clock_wait *wait)
{
	const struct installed *in = current();

	polycm_time_moves();
	return in->clock.wait(in->ctx, wait);
}

bool polycm_clock_owns_fd(int fd, char *text, size_t size)
{
	const struct installed *in = current();

	return in->clock.owns_fd(in->ctx, fd, text, size);
}

void polycm_clock_spin(void)
{
	static POLYCM_THREAD_LOCAL unsigned int spins;
	const struct installed *in = current();

	if (!in || !in->clock.is_virtual(in->ctx)) {
		/* Whoever is to bring what the program asks for may need the processor. */
		if (++spins % SPINS_PER_YIELD == 0)
			sched_yield();
		return;
	}
	polycm_time_moves();
	in->clock.spin(in->ctx);
}

__attribute__((no_sanitize("thread"))) uint64_t polycm_clock_read(const void *frame)
{
	const struct installed *in = current();

	return frame ? in->clock.read_ns(in->ctx, frame) : in->clock.now_ns(in->ctx);
}
