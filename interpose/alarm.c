/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * interpose/alarm.c - timers that send a signal: alarm(), ualarm(), setitimer() and
 * POSIX timers, in virtual time.
 *
 * The kernel sends the signals.  Its timer is set to the same duration of real time, for
 * programs that compute, or that wait in a call that we do not replace.  When the timer
 * expires in virtual time, the kernel's is set to expire at once.
 *
 * No signal is sent while time moves, but afterwards, when no lock is held.
 */
#include "config.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "core/base/export.h"
#include "host.h"
#include "libc.h"
#include "shown.h"
#include "timers.h"
#include "wait.h"

#define REAL_MIN POLYCM_NS_PER_S	/* no signal comes sooner in real time */
#define SPIN_NS 10000000		/* longest wait for the kernel's timer to expire */

struct alarm {
	struct polycm_virtual_timer timer;	/* first */
	bool is_posix;
	timer_t id;
	clockid_t clock;
	int signal;			/* 0: none that could interrupt a wait */
	uint64_t real_ns;		/* when the kernel sends the signal by itself */
};

static void note_expired(struct polycm_virtual_timer *timer);

static struct alarm itimer = {
	.timer = { .expired = note_expired, .used = true }, .signal = SIGALRM,
};
static struct polycm_virtual_timer *alarms = &itimer.timer;	/* the last one */
static bool expired;			/* atomic */
static pid_t owner;
unsigned int polycm_alarms_set;

static void note_expired(struct polycm_virtual_timer *timer)
{
	(void)timer;
	__atomic_store_n(&expired, true, __ATOMIC_RELEASE);
}

/* ------------------------------------------------------------------------
 * The kernel's timers.
 */

static struct timeval timeval_of(const struct timespec *time)
{
	return (struct timeval){ time->tv_sec, (time->tv_nsec + 999) / 1000 };
}

static struct timespec timespec_of(const struct timeval *time)
{
	return (struct timespec){ time->tv_sec, time->tv_usec * 1000 };
}

static struct itimerval itimerval_of(const struct itimerspec *time)
{
	return (struct itimerval){ .it_value = timeval_of(&time->it_value),
				   .it_interval = timeval_of(&time->it_interval) };
}

static struct itimerspec itimerspec_of(const struct itimerval *time)
{
	return (struct itimerspec){ .it_value = timespec_of(&time->it_value),
				    .it_interval = timespec_of(&time->it_interval) };
}

static int kernel_set(const struct alarm *self, const struct itimerspec *time)
{
	const struct itimerval tv = itimerval_of(time);

	if (self->is_posix)
		return polycm_libc()->timer_settime(self->id, 0, time, NULL) ? -errno : 0;
	return polycm_libc()->setitimer(ITIMER_REAL, &tv, NULL) ? -errno : 0;
}

static int kernel_get(const struct alarm *self, struct itimerspec *ret_time)
{
	struct itimerval tv;

	if (self->is_posix)
		return polycm_libc()->timer_gettime(self->id, ret_time) ? -errno : 0;
	if (polycm_libc()->getitimer(ITIMER_REAL, &tv))
		return -errno;
	*ret_time = itimerspec_of(&tv);
	return 0;
}

static uint64_t real_time_for(uint64_t ns)
{
	return ns && ns < REAL_MIN ? REAL_MIN : ns;
}

static int kernel_set_ns(struct alarm *self, uint64_t ns, uint64_t interval)
{
	const struct itimerspec time = { .it_value = polycm_wait_timespec(ns),
					 .it_interval = polycm_wait_timespec(interval) };

	if (__builtin_add_overflow(polycm_libc_ns(CLOCK_MONOTONIC), ns, &self->real_ns))
		self->real_ns = POLYCM_FOREVER;
	return kernel_set(self, &time);
}

/* Make the kernel's timer expire now, and wait until it has. */
static void kernel_expire(struct alarm *self)
{
	const uint64_t soon = self->is_posix ? 1 : 1000;
	uint64_t interval = real_time_for(self->timer.interval_ns);
	uint64_t until = polycm_libc_ns(CLOCK_MONOTONIC) + SPIN_NS;
	struct itimerspec left;

	if (kernel_set_ns(self, soon, interval))
		return;
	if (__builtin_add_overflow(self->real_ns, interval, &self->real_ns))
		self->real_ns = POLYCM_FOREVER;
	do {
		if (kernel_get(self, &left))
			return;
	} while (!left.it_value.tv_sec && left.it_value.tv_nsec &&
		 left.it_value.tv_nsec <= 1000 && polycm_libc_ns(CLOCK_MONOTONIC) < until);
}

/* The kernel's timer has expired: set it to the next interval. */
static void kernel_go_on(struct alarm *self)
{
	uint64_t interval = real_time_for(self->timer.interval_ns);

	if (interval)
		(void)kernel_set_ns(self, interval, interval);
}

static bool has_expired_really(const struct alarm *self)
{
	return polycm_libc_ns(CLOCK_MONOTONIC) >= self->real_ns;
}

/* ------------------------------------------------------------------------
 * Setting.
 */

static bool is_set(const struct alarm *self)
{
	return (self->timer.timer || self->timer.due) &&
	       !__atomic_load_n(&self->timer.dropped, __ATOMIC_RELAXED);
}

static void count_set(void)
{
	unsigned int num = 0;

	for (const struct polycm_virtual_timer *timer = alarms; timer; timer = timer->next)
		num += is_set((const struct alarm *)timer);
	__atomic_store_n(&polycm_alarms_set, num, __ATOMIC_RELAXED);
}

static struct itimerspec left_of(const struct alarm *self)
{
	/* A signal that came in real time does not come again. */
	if (!self->timer.interval_ns && has_expired_really(self))
		return (struct itimerspec){ .it_value = { .tv_sec = 0 } };
	return polycm_virtual_timer_left(&self->timer);
}

/* With the lock, in virtual time. */
static int set_locked(struct alarm *self, bool absolute, const struct itimerspec *time)
{
	uint64_t interval = polycm_wait_ns(&time->it_interval), deadline, now = polycm_host()->now_ns();
	int err;

	owner = getpid();
	polycm_virtual_timer_stop(&self->timer);
	if (!time->it_value.tv_sec && !time->it_value.tv_nsec) {
		count_set();
		return kernel_set(self, time);
	}
	deadline = polycm_virtual_deadline(self->clock, absolute, &time->it_value);
	err = kernel_set_ns(self, real_time_for(deadline > now ? deadline - now : 1),
			    real_time_for(interval));
	if (!err)
		err = polycm_virtual_timer_begin(&self->timer, deadline, interval);
	count_set();
	return err;
}

/* Set it in virtual time, and return how it was set before. */
static int set(struct alarm *self, bool absolute, const struct itimerspec *time,
	       struct itimerspec *ret_old)
{
	struct polycm_held held;
	int err, saved_errno = errno;	/* alarm() does not change it */

	polycm_timers_lock(&held);
	*ret_old = left_of(self);
	err = is_set(self) ? 0 : kernel_get(self, ret_old);
	if (!err)
		err = set_locked(self, absolute, time);
	polycm_timers_unlock(&held);
	errno = saved_errno;
	return err;
}

/* false: the kernel knows, since it is not set in virtual time. */
static bool get(struct alarm *self, struct itimerspec *ret_left)
{
	struct polycm_held held;
	bool ours;

	polycm_timers_lock(&held);
	ours = is_set(self);
	*ret_left = left_of(self);
	polycm_timers_unlock(&held);
	return ours;
}

/* ------------------------------------------------------------------------
 * The signal.
 */

/* Is the signal pending, with a handler that does not restart system calls? */
static bool interrupts(int signal, const sigset_t *blocked)
{
	struct sigaction action;
	sigset_t pending;

	if (!signal || sigismember(blocked, signal) || sigpending(&pending) ||
	    !sigismember(&pending, signal) || sigaction(signal, NULL, &action))
		return false;
	if (action.sa_flags & SA_RESTART)
		return false;
	return action.sa_flags & SA_SIGINFO ||
	       (action.sa_handler != SIG_IGN && action.sa_handler != SIG_DFL);
}

bool polycm_alarms_ring(void)
{
	struct polycm_held held;
	bool interrupted = false;
	int saved_errno = errno;

	polycm_timerfds_go_on();
	if (!__atomic_load_n(&expired, __ATOMIC_ACQUIRE))
		return false;
	polycm_timers_lock(&held);
	__atomic_store_n(&expired, false, __ATOMIC_RELAXED);
	for (struct polycm_virtual_timer *timer = alarms; timer; timer = timer->next) {
		struct alarm *self = (struct alarm *)timer;

		if (!polycm_virtual_timer_take(timer))
			continue;
		if (has_expired_really(self)) {
			kernel_go_on(self);
			continue;
		}
		kernel_expire(self);
		interrupted |= interrupts(self->signal, &held.signals);
	}
	count_set();
	polycm_timers_unlock(&held);
	errno = saved_errno;
	return interrupted;
}

/* ------------------------------------------------------------------------
 * alarm(), setitimer() and their like: one timer of the process.
 */

static bool valid_timeval(const struct timeval *time)
{
	return time->tv_sec >= 0 && time->tv_usec >= 0 && time->tv_usec < 1000000;
}

/* Time is real, or looks so to a signal handler that interrupted us. */
static int really_set(int which, const struct itimerval *time, struct itimerval *old)
{
	if (which == ITIMER_REAL)
		polycm_virtual_timer_drop(&itimer.timer);
	return polycm_libc()->setitimer((__itimer_which_t)which, time, old);
}

POLYCM_EXPORT int own_setitimer(int which, const struct itimerval *time, struct itimerval *old)
	__asm__("setitimer");
POLYCM_EXPORT int own_getitimer(int which, struct itimerval *time) __asm__("getitimer");

int own_setitimer(int which, const struct itimerval *time, struct itimerval *old)
{
	struct itimerspec spec, before;
	int err;

	if (which != ITIMER_REAL || time_is_real() || !time ||
	    !valid_timeval(&time->it_value) || !valid_timeval(&time->it_interval))
		return really_set(which, time, old);
	spec = itimerspec_of(time);
	err = set(&itimer, false, &spec, &before);
	if (!err && old)
		*old = itimerval_of(&before);
	return polycm_wait_return(err);
}

int own_getitimer(int which, struct itimerval *time)
{
	struct itimerspec left;

	if (which != ITIMER_REAL || !time || time_is_real() || !get(&itimer, &left))
		return polycm_libc()->getitimer((__itimer_which_t)which, time);
	*time = itimerval_of(&left);
	return 0;
}

/* As in the kernel: half a second or more counts as one, and so does any time below a second. */
POLYCM_EXPORT unsigned int alarm(unsigned int seconds)
{
	const struct itimerspec time = { .it_value.tv_sec = seconds };
	struct itimerspec old;

	if (time_is_real()) {
		polycm_virtual_timer_drop(&itimer.timer);
		return polycm_libc()->alarm(seconds);
	}
	(void)set(&itimer, false, &time, &old);
	if (old.it_value.tv_nsec >= 500000000 || (old.it_value.tv_nsec && !old.it_value.tv_sec))
		old.it_value.tv_sec++;
	return (unsigned int)old.it_value.tv_sec;
}

POLYCM_EXPORT useconds_t ualarm(useconds_t us, useconds_t interval)
{
	struct itimerval old, time = {
		.it_value = { us / 1000000, us % 1000000 },
		.it_interval = { interval / 1000000, interval % 1000000 },
	};

	if (own_setitimer(ITIMER_REAL, &time, &old))
		return (useconds_t)-1;
	return (useconds_t)(old.it_value.tv_sec * 1000000 + old.it_value.tv_usec);
}

/* ------------------------------------------------------------------------
 * POSIX timers.  Those on clocks of processor time are only the C library's.
 */

/* Without the lock: no alarm is ever freed. */
static struct alarm *find(timer_t id)
{
	struct polycm_virtual_timer *timer = __atomic_load_n(&alarms, __ATOMIC_ACQUIRE);

	for (; timer; timer = timer->next) {
		struct alarm *self = (struct alarm *)timer;

		if (__atomic_load_n(&timer->used, __ATOMIC_ACQUIRE) && self->is_posix &&
		    self->id == id)
			return self;
	}
	return NULL;
}

/* Without memory the timer runs in real time. */
static void add_posix(timer_t id, clockid_t clock, const struct sigevent *event)
{
	struct polycm_held held;
	struct alarm *self;

	polycm_timers_lock(&held);
	self = polycm_virtual_timer_get(&alarms, sizeof(*self));
	if (self) {
		self->timer.expired = note_expired;
		self->is_posix = true;
		self->id = id;
		self->clock = clock;
		self->signal = event ? event->sigev_signo : SIGALRM;
		if (event && event->sigev_notify != SIGEV_SIGNAL &&
		    event->sigev_notify != SIGEV_THREAD_ID)
			self->signal = 0;
		__atomic_store_n(&self->timer.used, true, __ATOMIC_RELEASE);
	}
	polycm_timers_unlock(&held);
}

POLYCM_EXPORT int timer_create(clockid_t clock, struct sigevent *event, timer_t *id)
{
	int r = polycm_libc()->timer_create(clock, event, id);

	if (!r && polycm_shown_moves(clock))
		add_posix(*id, clock, event);
	return r;
}

POLYCM_EXPORT int timer_delete(timer_t id)
{
	struct polycm_held held;
	struct alarm *self;

	polycm_timers_lock(&held);
	self = find(id);
	if (self) {
		polycm_virtual_timer_stop(&self->timer);
		count_set();
		__atomic_store_n(&self->timer.used, false, __ATOMIC_RELEASE);
	}
	polycm_timers_unlock(&held);
	return polycm_libc()->timer_delete(id);
}

/* As really_set(), and without the lock, whose holder the handler may have interrupted. */
static int really_set_posix(struct alarm *self, int flags, const struct itimerspec *time,
			    struct itimerspec *old)
{
	struct itimerspec real = *time;

	polycm_virtual_timer_drop(&self->timer);
	if (flags & TIMER_ABSTIME && (time->it_value.tv_sec || time->it_value.tv_nsec))
		real.it_value = polycm_shown_to_real(self->clock, &time->it_value);
	return polycm_libc()->timer_settime(self->id, flags, &real, old);
}

POLYCM_EXPORT int timer_settime(timer_t id, int flags, const struct itimerspec *time,
				struct itimerspec *old)
{
	const struct itimerspec *volatile new = time;	/* the header says that it is never NULL */
	struct alarm *self = polycm_shown_is(POLYCM_SHOWN_MOVED) ? find(id) : NULL;
	struct itimerspec before;
	int err;

	if (!self || !new || !polycm_itimerspec_valid(new))
		return polycm_libc()->timer_settime(id, flags, new, old);
	err = time_is_real() ? -ENODEV : set(self, flags & TIMER_ABSTIME, new, &before);
	if (err == -ENODEV)
		return really_set_posix(self, flags, new, old);
	if (!err && old)
		*old = before;
	return polycm_wait_return(err);
}

POLYCM_EXPORT int timer_gettime(timer_t id, struct itimerspec *time)
{
	struct alarm *self = time_is_real() ? NULL : find(id);
	struct itimerspec left;

	if (!self || !get(self, &left))
		return polycm_libc()->timer_gettime(id, time);
	*time = left;
	return 0;
}

/* ------------------------------------------------------------------------ */

void polycm_alarms_release(void)
{
	struct polycm_held held;

	if (!__atomic_load_n(&polycm_alarms_set, __ATOMIC_RELAXED) || owner != getpid())
		return;
	polycm_alarms_ring();
	polycm_timers_lock(&held);
	for (struct polycm_virtual_timer *timer = alarms; timer; timer = timer->next) {
		struct alarm *self = (struct alarm *)timer;
		struct itimerspec left = left_of(self);

		if (is_set(self) && (left.it_value.tv_sec || left.it_value.tv_nsec))
			(void)kernel_set(self, &left);
		polycm_virtual_timer_stop(timer);
	}
	count_set();
	polycm_timers_unlock(&held);
}

void polycm_alarms_forget(void)
{
	for (struct polycm_virtual_timer *timer = alarms; timer; timer = timer->next) {
		polycm_virtual_timer_drop(timer);
		timer->timer = NULL;
		timer->due = false;
		timer->used = timer == &itimer.timer;
	}
	polycm_alarms_set = 0;
	expired = false;
}
