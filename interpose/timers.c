/* SPDX-License-Identifier: BSD-2-Clause */
/* interpose/timers.c - timers of the program that expire in virtual time. */
#include "config.h"

#include "host.h"
#include "timers.h"

#include <pthread.h>
#include <stdlib.h>

#include "thread_local.h"
#include "shown.h"
#include "wait.h"

static pthread_mutex_t timers_lock = PTHREAD_MUTEX_INITIALIZER;

/*
 * fork() has to take this lock before the clock's, and calls first what was registered
 * last.  So these functions are registered once more when there is a clock, which has
 * registered its own.  No signal handler, which may set a timer, runs before the clock's
 * lock is released, too.
 */
static POLYCM_THREAD_LOCAL unsigned int forking;	/* calls of before_fork() */
static struct polycm_held held_by_fork;

static void before_fork(void)
{
	struct polycm_held held;

	if (forking++)
		return;
	polycm_hold(&held);
	pthread_mutex_lock(&timers_lock);
	held_by_fork = held;
}

static void after_fork_parent(void)
{
	struct polycm_held held = held_by_fork;

	if (!--forking)
		polycm_timers_unlock(&held);
}

/* Timerfds are its parent's as well, and other timers are not inherited. */
static void after_fork_child(void)
{
	if (forking == 1) {
		polycm_timerfds_forget();
		polycm_alarms_forget();
	}
	after_fork_parent();
}

static void watch_forks(void)
{
	(void)pthread_atfork(before_fork, after_fork_parent, after_fork_child);
}

void polycm_timers_lock(struct polycm_held *held)
{
	static pthread_once_t once[2] = { PTHREAD_ONCE_INIT, PTHREAD_ONCE_INIT };
	bool has_clock = polycm_has_clock();

	polycm_hold(held);
	pthread_once(&once[has_clock], watch_forks);
	pthread_mutex_lock(&timers_lock);
}

void polycm_timers_unlock(const struct polycm_held *held)
{
	pthread_mutex_unlock(&timers_lock);
	polycm_release(held);
}

void *polycm_virtual_timer_get(struct polycm_virtual_timer **list, size_t size)
{
	struct polycm_virtual_timer *timer = *list;

	while (timer && timer->used)
		timer = timer->next;
	if (timer)
		return timer;
	timer = calloc(1, size);
	if (!timer)
		return NULL;
	timer->next = *list;
	__atomic_store_n(list, timer, __ATOMIC_RELEASE);
	return timer;
}

static void expire(struct polycm_virtual_timer *timer)
{
	__atomic_store_n(&timer->due, true, __ATOMIC_RELEASE);
	timer->expired(timer);
}

/* In a child of fork() the clock may still have timers of its parent. */
static void fire(void *arg)
{
	struct polycm_virtual_timer *timer = arg;

	if (!__atomic_load_n(&timer->dropped, __ATOMIC_ACQUIRE) &&
	    timer->deadline_ns <= polycm_host()->now_ns())
		expire(timer);
}

/* A signal handler may read them. */
static void set_times(struct polycm_virtual_timer *timer, uint64_t deadline_ns, uint64_t interval_ns)
{
	__atomic_store_n(&timer->deadline_ns, deadline_ns, __ATOMIC_RELAXED);
	__atomic_store_n(&timer->interval_ns, interval_ns, __ATOMIC_RELAXED);
}

void polycm_virtual_timer_stop(struct polycm_virtual_timer *timer)
{
	polycm_host()->timer_cancel(timer->timer);
	timer->timer = NULL;
	set_times(timer, 0, 0);
	__atomic_store_n(&timer->due, false, __ATOMIC_RELAXED);
	__atomic_store_n(&timer->taken, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&timer->dropped, false, __ATOMIC_RELAXED);
}

void polycm_virtual_timer_drop(struct polycm_virtual_timer *timer)
{
	__atomic_store_n(&timer->dropped, true, __ATOMIC_RELEASE);
}

/* A timer that is due and has an interval is set again later, and that must not fail. */
static int reserve(struct polycm_virtual_timer *timer)
{
	int err = polycm_host()->timer_start(POLYCM_FOREVER - 1, fire, timer, &timer->timer);

	return err ? err : polycm_host()->timer_restart(timer->timer, POLYCM_FOREVER);
}

int polycm_virtual_timer_begin(struct polycm_virtual_timer *timer, uint64_t deadline_ns,
			       uint64_t interval_ns)
{
	bool due = deadline_ns <= polycm_host()->now_ns();
	int err = 0;

	polycm_virtual_timer_stop(timer);
	set_times(timer, deadline_ns, interval_ns);
	if (!due)
		err = polycm_host()->timer_start(deadline_ns, fire, timer, &timer->timer);
	else if (interval_ns)
		err = reserve(timer);
	if (err)
		polycm_virtual_timer_stop(timer);
	else if (due)
		expire(timer);
	return err;
}

/* It has an interval: set it to its next expiration. */
static void go_on(struct polycm_virtual_timer *timer, uint64_t deadline_ns)
{
	set_times(timer, deadline_ns, timer->interval_ns);
	if (deadline_ns <= polycm_host()->now_ns())
		expire(timer);
	else if (polycm_host()->timer_restart(timer->timer, deadline_ns))
		polycm_virtual_timer_stop(timer);
}

static bool is_due(const struct polycm_virtual_timer *timer)
{
	return __atomic_load_n(&timer->due, __ATOMIC_ACQUIRE) &&
	       !__atomic_load_n(&timer->dropped, __ATOMIC_RELAXED);
}

/* It is due: how often did it expire? */
static uint64_t expirations(const struct polycm_virtual_timer *timer)
{
	uint64_t deadline = __atomic_load_n(&timer->deadline_ns, __ATOMIC_RELAXED);
	uint64_t interval = __atomic_load_n(&timer->interval_ns, __ATOMIC_RELAXED);

	return interval ? (polycm_host()->now_ns() - deadline) / interval + 1 : 1;
}

/* The time after so many more intervals; POLYCM_FOREVER - 1 if that is too far. */
static uint64_t time_after(const struct polycm_virtual_timer *timer, uint64_t num)
{
	uint64_t next;

	if (__builtin_mul_overflow(num, timer->interval_ns, &next) ||
	    __builtin_add_overflow(next, timer->deadline_ns, &next) || next == POLYCM_FOREVER)
		return POLYCM_FOREVER - 1;
	return next;
}

uint64_t polycm_virtual_timer_take_early(struct polycm_virtual_timer *timer)
{
	uint64_t num;

	if (!is_due(timer))
		return 0;
	num = expirations(timer);
	if (!__atomic_exchange_n(&timer->due, false, __ATOMIC_ACQ_REL))
		return 0;
	__atomic_store_n(&timer->taken, num, __ATOMIC_RELEASE);
	return num;
}

void polycm_virtual_timer_go_on(struct polycm_virtual_timer *timer)
{
	uint64_t num = __atomic_exchange_n(&timer->taken, 0, __ATOMIC_ACQUIRE);

	if (!num)
		return;
	if (!timer->interval_ns)
		polycm_virtual_timer_stop(timer);
	else
		go_on(timer, time_after(timer, num));
}

uint64_t polycm_virtual_timer_take(struct polycm_virtual_timer *timer)
{
	uint64_t num = polycm_virtual_timer_take_early(timer);

	polycm_virtual_timer_go_on(timer);
	return num;
}

struct itimerspec polycm_virtual_timer_left(const struct polycm_virtual_timer *timer)
{
	uint64_t next = timer->deadline_ns, now = polycm_host()->now_ns();
	struct itimerspec left = { .it_interval = polycm_wait_timespec(timer->interval_ns) };

	if (__atomic_load_n(&timer->dropped, __ATOMIC_RELAXED))
		return (struct itimerspec){ .it_value = { .tv_sec = 0 } };
	if (is_due(timer)) {
		if (!timer->interval_ns)
			return left;
		next = time_after(timer, expirations(timer));
	}
	/* Never 0 for a timer that has not expired yet. */
	if (timer->timer || next > now)
		left.it_value = polycm_wait_timespec(next > now ? next - now : 1);
	return left;
}

uint64_t polycm_virtual_deadline(clockid_t clock, bool absolute, const struct timespec *time)
{
	uint64_t now = polycm_host()->now_ns();
	uint64_t ns = absolute ? polycm_shown_until(clock, time) : polycm_wait_ns(time);

	return ns < POLYCM_FOREVER - 1 - now ? now + ns : POLYCM_FOREVER - 1;
}

bool polycm_itimerspec_valid(const struct itimerspec *time)
{
	return polycm_wait_valid(&time->it_value) && polycm_wait_valid(&time->it_interval);
}
