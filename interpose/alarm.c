/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * interpose/alarm.c - timers that send a signal: alarm(), ualarm(), setitimer() and
 * POSIX timers, in virtual time.
 *
 * The kernel has each timer as well, and sends its signal: when virtual time
 * says so it is set to now.  Until then it is set to as much real time, so that
 * a program that waits where we do not see it, or computes until the signal
 * comes, gets it then.
 *
 * A signal is not sent in the middle of moving time, but when the clock says
 * that time has moved and no lock is held.
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

#define REAL_MIN POLYCM_NS_PER_S	/* sooner no signal comes in real time */
#define SPIN_NS 10000000		/* for a timer that was set to now to expire */

struct alarm {
	struct polycm_virtual_timer timer;	/* first */
	bool is_posix, unused;		/* atomic */
	timer_t id;
	clockid_t clock;
	int signal;			/* 0: none that could interrupt a wait */
	uint64_t real_ns;		/* the kernel sends the signal by itself then */
	struct alarm *next;
};

static void note_expired(struct polycm_virtual_timer *timer);

static struct alarm itimer = { .timer.expired = note_expired, .signal = SIGALRM };
/* It is the last.  None is ever freed: signal handlers look through them without a lock. */
static struct alarm *alarms = &itimer;
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

static int kernel_set(const struct alarm *self, const struct itimerspec *time)
{
	const struct itimerval tv = { .it_value = timeval_of(&time->it_value),
				      .it_interval = timeval_of(&time->it_interval) };

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
	*ret_time = (struct itimerspec){ .it_value = timespec_of(&tv.it_value),
					 .it_interval = timespec_of(&tv.it_interval) };
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

/* It expires now, and is seen to have done so. */
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

/* It has expired really, for this time. */
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

	for (const struct alarm *self = alarms; self; self = self->next)
		num += is_set(self);
	__atomic_store_n(&polycm_alarms_set, num, __ATOMIC_RELAXED);
}

static struct itimerspec left_of(const struct alarm *self)
{
	/* What came in real time does not come again. */
	if (!self->timer.interval_ns && has_expired_really(self))
		return (struct itimerspec){ .it_value = { .tv_sec = 0 } };
	return polycm_virtual_timer_left(&self->timer);
}

/* With the lock, in virtual time. */
static int set(struct alarm *self, bool absolute, const struct itimerspec *time)
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

/* ------------------------------------------------------------------------
 * The signal.
 */

/* A handler that restarts no system call, or so it is asked for. */
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
	struct polycm_timers_held held;
	bool interrupted = false;
	int saved_errno = errno;

	polycm_timerfds_go_on();
	if (!__atomic_load_n(&expired, __ATOMIC_ACQUIRE))
		return false;
	polycm_timers_lock(&held);
	__atomic_store_n(&expired, false, __ATOMIC_RELAXED);
	for (struct alarm *self = alarms; self; self = self->next) {
		if (!polycm_virtual_timer_take(&self->timer))
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
	return polycm_libc()->setitimer(which, time, old);
}

static int set_itimer(const struct itimerval *time, struct itimerval *ret_old)
{
	const struct itimerspec spec = { .it_value = timespec_of(&time->it_value),
					 .it_interval = timespec_of(&time->it_interval) };
	struct polycm_timers_held held;
	struct itimerspec old;
	int err = 0, saved_errno = errno;	/* a handler's alarm() leaves it alone */

	polycm_timers_lock(&held);
	if (is_set(&itimer))
		old = left_of(&itimer);
	else
		err = kernel_get(&itimer, &old);
	if (!err)
		err = set(&itimer, false, &spec);
	polycm_timers_unlock(&held);
	errno = saved_errno;
	ret_old->it_value = timeval_of(&old.it_value);
	ret_old->it_interval = timeval_of(&old.it_interval);
	return err;
}

POLYCM_EXPORT int own_setitimer(int which, const struct itimerval *time, struct itimerval *old)
	__asm__("setitimer");
POLYCM_EXPORT int own_getitimer(int which, struct itimerval *time) __asm__("getitimer");

int own_setitimer(int which, const struct itimerval *time, struct itimerval *old)
{
	struct itimerval before;
	int err;

	if (which != ITIMER_REAL || time_is_real() || !time ||
	    !valid_timeval(&time->it_value) || !valid_timeval(&time->it_interval))
		return really_set(which, time, old);
	err = set_itimer(time, &before);
	if (!err && old)
		*old = before;
	return polycm_wait_return(err);
}

int own_getitimer(int which, struct itimerval *time)
{
	struct polycm_timers_held held;
	struct itimerspec left;
	bool ours;

	if (which != ITIMER_REAL || !time || time_is_real())
		return polycm_libc()->getitimer(which, time);
	polycm_timers_lock(&held);
	ours = is_set(&itimer);
	if (ours)
		left = left_of(&itimer);
	polycm_timers_unlock(&held);
	if (!ours)
		return polycm_libc()->getitimer(ITIMER_REAL, time);
	time->it_value = timeval_of(&left.it_value);
	time->it_interval = timeval_of(&left.it_interval);
	return 0;
}

/* What is left of a second counts as one where it is half of it, or all there is. */
POLYCM_EXPORT unsigned int alarm(unsigned int seconds)
{
	struct itimerval time = { .it_value.tv_sec = seconds }, old = { .it_value.tv_sec = 0 };

	if (time_is_real()) {
		polycm_virtual_timer_drop(&itimer.timer);
		return polycm_libc()->alarm(seconds);
	}
	(void)set_itimer(&time, &old);
	if (old.it_value.tv_usec >= 500000 || (old.it_value.tv_usec && !old.it_value.tv_sec))
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
 * POSIX timers.  Those by a clock that counts the processor's work are the
 * C library's alone.
 */

static bool is_in_use(const struct alarm *self)
{
	return self->is_posix && !__atomic_load_n(&self->unused, __ATOMIC_ACQUIRE);
}

static struct alarm *find(timer_t id)
{
	struct alarm *self = __atomic_load_n(&alarms, __ATOMIC_ACQUIRE);

	while (self && !(is_in_use(self) && self->id == id))
		self = self->next;
	return self;
}

static struct alarm *unused_alarm(void)
{
	struct alarm *self = alarms;

	while (self && !(self->is_posix && self->unused))
		self = self->next;
	if (self)
		return self;
	self = calloc(1, sizeof(*self));
	if (!self)
		return NULL;
	self->timer.expired = note_expired;
	self->is_posix = self->unused = true;
	self->next = alarms;
	__atomic_store_n(&alarms, self, __ATOMIC_RELEASE);
	return self;
}

/* Where there is no memory it goes by real time. */
static void add_posix(timer_t id, clockid_t clock, const struct sigevent *event)
{
	struct polycm_timers_held held;
	struct alarm *self;

	polycm_timers_lock(&held);
	self = unused_alarm();
	if (self) {
		self->id = id;
		self->clock = clock;
		self->signal = event ? event->sigev_signo : SIGALRM;
		if (event && event->sigev_notify != SIGEV_SIGNAL &&
		    event->sigev_notify != SIGEV_THREAD_ID)
			self->signal = 0;
		__atomic_store_n(&self->unused, false, __ATOMIC_RELEASE);
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
	struct polycm_timers_held held;
	struct alarm *self;

	polycm_timers_lock(&held);
	self = find(id);
	if (self) {
		polycm_virtual_timer_stop(&self->timer);
		count_set();
		__atomic_store_n(&self->unused, true, __ATOMIC_RELEASE);
	}
	polycm_timers_unlock(&held);
	return polycm_libc()->timer_delete(id);
}

static int set_posix(timer_t id, bool absolute, const struct itimerspec *time,
		     struct itimerspec *ret_old)
{
	struct polycm_timers_held held;
	struct alarm *self;
	int err = -ENODEV;

	polycm_timers_lock(&held);
	self = find(id);
	if (self) {
		*ret_old = left_of(self);
		err = is_set(self) ? 0 : kernel_get(self, ret_old);
		if (!err)
			err = set(self, absolute, time);
	}
	polycm_timers_unlock(&held);
	return err;
}

/* As really_set(); whom the handler interrupted may have the lock's holder waiting. */
static int really_set_posix(timer_t id, int flags, const struct itimerspec *time,
			    struct itimerspec *old)
{
	struct alarm *self = polycm_shown_is(POLYCM_SHOWN_MOVED) ? find(id) : NULL;
	struct itimerspec real;

	if (!self || !time || !polycm_itimerspec_valid(time))
		return polycm_libc()->timer_settime(id, flags, time, old);
	polycm_virtual_timer_drop(&self->timer);
	real = *time;
	if (flags & TIMER_ABSTIME && (time->it_value.tv_sec || time->it_value.tv_nsec))
		real.it_value = polycm_shown_to_real(self->clock, &time->it_value);
	return polycm_libc()->timer_settime(id, flags, &real, old);
}

POLYCM_EXPORT int timer_settime(timer_t id, int flags, const struct itimerspec *time,
				struct itimerspec *old)
{
	const struct itimerspec *volatile new = time;	/* whatever the header says of NULL */
	struct itimerspec before;
	int err = -ENODEV;

	if (!time_is_real() && new && polycm_itimerspec_valid(new))
		err = set_posix(id, flags & TIMER_ABSTIME, new, &before);
	if (err == -ENODEV)
		return really_set_posix(id, flags, new, old);
	if (!err && old)
		*old = before;
	return polycm_wait_return(err);
}

POLYCM_EXPORT int timer_gettime(timer_t id, struct itimerspec *time)
{
	struct polycm_timers_held held;
	struct itimerspec left;
	struct alarm *self;
	bool ours;

	if (time_is_real())
		return polycm_libc()->timer_gettime(id, time);
	polycm_timers_lock(&held);
	self = find(id);
	ours = self && is_set(self);
	if (ours)
		left = left_of(self);
	polycm_timers_unlock(&held);
	if (!ours)
		return polycm_libc()->timer_gettime(id, time);
	*time = left;
	return 0;
}

/* ------------------------------------------------------------------------ */

/* What is left of each passes in real time. */
void polycm_alarms_release(void)
{
	struct polycm_timers_held held;

	if (!__atomic_load_n(&polycm_alarms_set, __ATOMIC_RELAXED) || owner != getpid())
		return;
	polycm_alarms_ring();
	polycm_timers_lock(&held);
	for (struct alarm *self = alarms; self; self = self->next) {
		struct itimerspec left = left_of(self);

		if (is_set(self) && (left.it_value.tv_sec || left.it_value.tv_nsec))
			(void)kernel_set(self, &left);
		polycm_virtual_timer_stop(&self->timer);
	}
	count_set();
	polycm_timers_unlock(&held);
}

void polycm_alarms_forget(void)
{
	for (struct alarm *self = alarms; self; self = self->next) {
		polycm_virtual_timer_drop(&self->timer);
		self->timer.timer = NULL;
		self->timer.due = false;
		self->unused = true;
	}
	polycm_alarms_set = 0;
	expired = false;
}
