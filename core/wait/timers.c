/* SPDX-License-Identifier: BSD-2-Clause */
/* wait/timers.c - timers of the program's that expire in virtual time. */
#include "config.h"

#include "wait/timers.h"

#include <pthread.h>

#include "clock.h"
#include "wait/shown.h"
#include "wait/wait.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void before_fork(void)
{
	pthread_mutex_lock(&lock);
}

static void after_fork_parent(void)
{
	pthread_mutex_unlock(&lock);
}

/* The descriptors are its parent's as well, and other timers are not inherited. */
static void after_fork_child(void)
{
	polycm_timerfds_forget();
	polycm_alarms_forget();
	pthread_mutex_unlock(&lock);
}

static void watch_forks(void)
{
	(void)pthread_atfork(before_fork, after_fork_parent, after_fork_child);
}

void polycm_timers_lock(struct polycm_timers_held *held)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	sigset_t all;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &held->signals);
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &held->cancel_state);
	pthread_once(&once, watch_forks);
	pthread_mutex_lock(&lock);
}

void polycm_timers_unlock(const struct polycm_timers_held *held)
{
	pthread_mutex_unlock(&lock);
	pthread_setcancelstate(held->cancel_state, NULL);
	pthread_sigmask(SIG_SETMASK, &held->signals, NULL);
}

static void expire(struct polycm_virtual_timer *timer)
{
	__atomic_store_n(&timer->due, true, __ATOMIC_RELEASE);
	timer->expired(timer);
}

/* In a child of fork() there may be those of its parent. */
static void fire(void *arg)
{
	struct polycm_virtual_timer *timer = arg;

	if (!__atomic_load_n(&timer->dropped, __ATOMIC_ACQUIRE) &&
	    timer->deadline_ns <= polycm_now_ns())
		expire(timer);
}

void polycm_virtual_timer_stop(struct polycm_virtual_timer *timer)
{
	polycm_timer_cancel(timer->timer);
	timer->timer = NULL;
	timer->deadline_ns = timer->interval_ns = 0;
	__atomic_store_n(&timer->due, false, __ATOMIC_RELAXED);
	__atomic_store_n(&timer->dropped, false, __ATOMIC_RELAXED);
}

void polycm_virtual_timer_drop(struct polycm_virtual_timer *timer)
{
	__atomic_store_n(&timer->dropped, true, __ATOMIC_RELEASE);
}

int polycm_virtual_timer_begin(struct polycm_virtual_timer *timer, uint64_t deadline_ns,
			       uint64_t interval_ns)
{
	int err;

	polycm_virtual_timer_stop(timer);
	timer->deadline_ns = deadline_ns;
	timer->interval_ns = interval_ns;
	if (deadline_ns <= polycm_now_ns()) {
		expire(timer);
		return 0;
	}
	err = polycm_timer_start(deadline_ns, fire, timer, &timer->timer);
	if (err)
		polycm_virtual_timer_stop(timer);
	return err;
}

static bool is_due(const struct polycm_virtual_timer *timer)
{
	return __atomic_load_n(&timer->due, __ATOMIC_ACQUIRE) &&
	       !__atomic_load_n(&timer->dropped, __ATOMIC_RELAXED);
}

/* Of one that is due: how often it expired. */
static uint64_t expirations(const struct polycm_virtual_timer *timer)
{
	if (!timer->interval_ns)
		return 1;
	return (polycm_now_ns() - timer->deadline_ns) / timer->interval_ns + 1;
}

uint64_t polycm_virtual_timer_take(struct polycm_virtual_timer *timer)
{
	uint64_t num, interval = timer->interval_ns;

	if (!is_due(timer))
		return 0;
	num = expirations(timer);
	if (!interval)
		polycm_virtual_timer_stop(timer);
	else
		(void)polycm_virtual_timer_begin(timer, timer->deadline_ns + num * interval,
						 interval);
	return num;
}

struct itimerspec polycm_virtual_timer_left(const struct polycm_virtual_timer *timer)
{
	uint64_t next = timer->deadline_ns, now = polycm_now_ns();
	struct itimerspec left = { .it_interval = polycm_wait_timespec(timer->interval_ns) };

	if (__atomic_load_n(&timer->dropped, __ATOMIC_RELAXED))
		return (struct itimerspec){ .it_value = { .tv_sec = 0 } };
	if (is_due(timer)) {
		if (!timer->interval_ns)
			return left;
		next += expirations(timer) * timer->interval_ns;
	}
	/* It has not gone off yet, so something is left. */
	if (timer->timer || next > now)
		left.it_value = polycm_wait_timespec(next > now ? next - now : 1);
	return left;
}

uint64_t polycm_virtual_deadline(clockid_t clock, bool absolute, const struct timespec *time)
{
	uint64_t now = polycm_now_ns();
	uint64_t ns = absolute ? polycm_shown_until(clock, time) : polycm_wait_ns(time);

	return ns < POLYCM_FOREVER - 1 - now ? now + ns : POLYCM_FOREVER - 1;
}

bool polycm_itimerspec_valid(const struct itimerspec *time)
{
	return polycm_wait_valid(&time->it_value) && polycm_wait_valid(&time->it_interval);
}
