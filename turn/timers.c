/* SPDX-License-Identifier: BSD-2-Clause */
/* turn/timers.c - see timers.h. */
#include "config.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>

#include "clock.h"
#include "descriptors.h"
#include "hand.h"
#include "order.h"
#include "pointers.h"
#include "raw.h"
#include "timer_fds.h"
#include "timers.h"

enum kind { UNUSED, ALARM, POSIX };

struct timer {
	enum kind kind;
	struct turn_timing timing;
	int signal;			/* 0: none */
	int32_t tid;			/* the thread that gets it; 0: the process */
	union sigval value;
	int overrun;			/* of the signal that was sent last */
};

#define MOST_TIMERS 128

static struct timer timers[MOST_TIMERS];
static int num_timers;			/* up to the last that is used */

/* ------------------------------------------------------------------------
 * Expiring.
 */

uint64_t turn_timers_next(void)
{
	uint64_t next = turn_timer_fds_next();

	/* One of processor time expires when the process does something: time does not move for it. */
	for (int i = 0; i < num_timers; i++)
		if (timers[i].kind != UNUSED && timers[i].timing.deadline < next &&
		    !turn_clock_is_of_processor(timers[i].timing.clock))
			next = timers[i].timing.deadline;
	return next;
}

static void send(const struct timer *timer, int id)
{
	const long pid = TURN_RAW(SYS_getpid);
	siginfo_t info;

	memset(&info, 0, sizeof(info));
	info.si_signo = timer->signal;
	info.si_code = SI_TIMER;
	info.si_timerid = id;
	info.si_overrun = timer->overrun;
	info.si_value = timer->value;
	if (timer->kind == ALARM)
		TURN_RAW(SYS_kill, pid, timer->signal);
	else if (timer->tid)
		TURN_RAW(SYS_rt_tgsigqueueinfo, pid, timer->tid, timer->signal, &info);
	else
		TURN_RAW(SYS_rt_sigqueueinfo, pid, timer->signal, &info);
	turn_order_interrupt(turn_segment, turn_member);
	turn_self()->interrupted = true;
}

uint64_t turn_timers_passed(struct turn_timing *timing)
{
	uint64_t times = 1;

	if (timing->interval) {
		times += (turn_segment->now - timing->deadline) / timing->interval;
		timing->deadline += times * timing->interval;
	} else {
		timing->deadline = TURN_NEVER;
	}
	return times;
}

/* Its last signal is still to come: for this thread, or the process. */
static bool is_pending(const struct timer *timer)
{
	uint64_t set = 0;

	if (timer->tid && timer->tid != turn_self()->tid)
		return false;
	TURN_RAW(SYS_rt_sigpending, &set, TURN_SIGSET_SIZE);
	return set & turn_signal_bit(timer->signal);
}

static void expire(struct timer *timer, int id)
{
	const uint64_t times = turn_timers_passed(&timer->timing);

	if (!timer->signal)
		return;
	if (timer->kind == POSIX && is_pending(timer)) {
		timer->overrun += times > INT32_MAX / 2 ? INT32_MAX / 2 : (int)times;
		if (timer->overrun < 0)
			timer->overrun = INT32_MAX;
		return;
	}
	timer->overrun = times > INT32_MAX ? INT32_MAX : (int)times - 1;
	send(timer, id);
}

void turn_timers_expire(void)
{
	turn_timer_fds_expire();
	for (int i = 0; i < num_timers; i++)
		if (timers[i].kind != UNUSED &&
		    turn_order_passed(turn_segment, timers[i].timing.deadline))
			expire(&timers[i], i);
}

void turn_timers_forget(void)
{
	for (int i = 0; i < num_timers; i++)
		timers[i].kind = UNUSED;
}

void turn_timers_taken(siginfo_t *info)
{
	const int id = info->si_timerid;

	if (info->si_code == SI_TIMER && id >= 0 && id < num_timers && timers[id].kind == POSIX &&
	    timers[id].signal == info->si_signo)
		info->si_overrun = timers[id].overrun;
}

/* ------------------------------------------------------------------------
 * Setting.
 */

static struct timer *add(enum kind kind)
{
	for (int i = 0; i < MOST_TIMERS; i++) {
		if (timers[i].kind != UNUSED)
			continue;
		timers[i] = (struct timer){ .kind = kind, .timing.deadline = TURN_NEVER };
		if (i >= num_timers)
			num_timers = i + 1;
		return &timers[i];
	}
	return NULL;
}

static struct timespec time_of(uint64_t ns)
{
	return (struct timespec){ (time_t)(ns / TURN_SECOND), (long)(ns % TURN_SECOND) };
}

struct itimerspec turn_timers_left(const struct turn_timing *timing)
{
	struct itimerspec left = { .it_interval = time_of(timing->interval) };

	/* One that has expired but was not looked at has a moment left. */
	if (timing->deadline != TURN_NEVER)
		left.it_value = time_of(timing->deadline > turn_segment->now ?
					timing->deadline - turn_segment->now : 1);
	return left;
}

long turn_timers_set(struct turn_timing *timing, const struct itimerspec *to, bool is_absolute)
{
	const struct timespec *value = &to->it_value, *interval = &to->it_interval;

	if (value->tv_sec < 0 || interval->tv_sec < 0 || value->tv_nsec < 0 ||
	    interval->tv_nsec < 0 || value->tv_nsec >= (long)TURN_SECOND ||
	    interval->tv_nsec >= (long)TURN_SECOND)
		return -EINVAL;
	timing->interval = turn_clock_after(interval) - turn_segment->now;
	timing->deadline = TURN_NEVER;
	if (value->tv_sec || value->tv_nsec)
		timing->deadline = is_absolute ? turn_clock_at(timing->clock, value) :
						 turn_clock_after(value);
	return 0;
}

static long set(struct timer *timer, const struct itimerspec *to, bool is_absolute)
{
	const long err = turn_timers_set(&timer->timing, to, is_absolute);

	if (!err)
		timer->overrun = 0;
	return err;
}

/* ------------------------------------------------------------------------
 * alarm(), setitimer().
 */

/* By the signal: that of real time, of the process's, or of what it computes. */
static struct timer *the_alarm(int signal)
{
	struct timer *timer;

	for (int i = 0; i < num_timers; i++)
		if (timers[i].kind == ALARM && timers[i].signal == signal)
			return &timers[i];
	timer = add(ALARM);
	if (timer) {
		timer->timing.clock = signal == SIGALRM ? CLOCK_MONOTONIC : CLOCK_PROCESS_CPUTIME_ID;
		timer->signal = signal;
	}
	return timer;
}

void turn_timers_keep(void)
{
	struct turn_member *member = &turn_segment->members[turn_member];

	member->alarm = 0;
	for (int i = 0; i < num_timers; i++) {
		if (timers[i].kind != ALARM || timers[i].signal != SIGALRM ||
		    timers[i].timing.deadline == TURN_NEVER)
			continue;
		member->alarm = timers[i].timing.deadline;
		member->alarm_interval = timers[i].timing.interval;
	}
}

void turn_timers_resume(void)
{
	const struct turn_member *member = &turn_segment->members[turn_member];
	struct timer *timer = member->alarm ? the_alarm(SIGALRM) : NULL;

	turn_timer_fds_find();
	if (!timer)
		return;
	timer->timing.deadline = member->alarm;
	timer->timing.interval = member->alarm_interval;
}

static struct itimerval as_values(const struct itimerspec *from)
{
	return (struct itimerval){
		.it_interval = { from->it_interval.tv_sec, from->it_interval.tv_nsec / 1000 },
		.it_value = { from->it_value.tv_sec, from->it_value.tv_nsec / 1000 },
	};
}

static long set_alarm(struct timer *timer, unsigned int seconds)
{
	const struct itimerspec left = turn_timers_left(&timer->timing);
	const struct itimerspec to = { .it_value = { seconds, 0 } };

	set(timer, &to, false);
	/* Rounded as the kernel does it: never to 0. */
	return left.it_value.tv_sec + (left.it_value.tv_nsec >= (long)TURN_SECOND / 2 ||
				       (!left.it_value.tv_sec && left.it_value.tv_nsec));
}

long turn_timers_interval(const struct turn_call *call)
{
	static const int signals[] = {
		[ITIMER_REAL] = SIGALRM, [ITIMER_VIRTUAL] = SIGVTALRM, [ITIMER_PROF] = SIGPROF,
	};
	struct timer *timer;
	const struct itimerval *given;
	struct itimerval *ret, was;
	struct itimerspec left;

	if (call->number != SYS_alarm && (unsigned long)call->arguments[0] > ITIMER_PROF)
		return -EINVAL;
	timer = the_alarm(call->number == SYS_alarm ? SIGALRM : signals[call->arguments[0]]);
	if (!timer)
		return -ENOMEM;
	if (call->number == SYS_alarm)
		return set_alarm(timer, (unsigned int)call->arguments[0]);
	left = turn_timers_left(&timer->timing);
	given = call->number == SYS_setitimer ? (const struct itimerval *)call->arguments[1] : NULL;
	ret = (struct itimerval *)call->arguments[call->number == SYS_setitimer ? 2 : 1];
	if (given) {
		const struct itimerspec to = {
			.it_interval = { given->it_interval.tv_sec, given->it_interval.tv_usec * 1000 },
			.it_value = { given->it_value.tv_sec, given->it_value.tv_usec * 1000 },
		};
		long err = set(timer, &to, false);

		if (err)
			return err;
	}
	was = as_values(&left);
	return turn_give(ret, &was, sizeof(was));
}

/* ------------------------------------------------------------------------
 * timer_create().  Its number is its place.
 */

static bool is_known(const struct sigevent *event)
{
	if (event->sigev_notify == SIGEV_NONE)
		return true;
	return (event->sigev_notify == SIGEV_SIGNAL || event->sigev_notify == SIGEV_THREAD_ID) &&
	       event->sigev_signo > 0 && event->sigev_signo <= 64;
}

static long create(const struct turn_call *call)
{
	const struct sigevent *event = (const struct sigevent *)call->arguments[1];
	int *ret_id = (int *)call->arguments[2];
	const long err = turn_clock_check_timer((clockid_t)call->arguments[0]);
	struct timer *timer;

	if (err)
		return err;
	if (event && !is_known(event))
		return -EINVAL;
	if (!turn_can_write(ret_id, sizeof(*ret_id)))
		return -EFAULT;
	timer = add(POSIX);
	if (!timer)
		return -EAGAIN;
	timer->timing.clock = (clockid_t)call->arguments[0];
	timer->signal = SIGALRM;
	timer->value.sival_int = (int)(timer - timers);
	if (event) {
		timer->signal = event->sigev_notify == SIGEV_NONE ? 0 : event->sigev_signo;
		timer->value = event->sigev_value;
		if (event->sigev_notify == SIGEV_THREAD_ID)
			timer->tid = event->_sigev_un._tid;
	}
	*ret_id = (int)(timer - timers);
	return 0;
}

long turn_timers_posix(const struct turn_call *call)
{
	const long id = call->arguments[0];
	struct timer *timer;
	struct itimerspec left;
	long err;

	if (call->number == SYS_timer_create)
		return create(call);
	if (id < 0 || id >= num_timers || timers[id].kind != POSIX)
		return -EINVAL;
	timer = &timers[id];
	left = turn_timers_left(&timer->timing);
	switch (call->number) {
	case SYS_timer_settime:
		err = set(timer, (const struct itimerspec *)call->arguments[2],
			  call->arguments[1] & TIMER_ABSTIME);
		return err ? err : turn_give((void *)call->arguments[3], &left, sizeof(left));
	case SYS_timer_gettime:
		return turn_give((void *)call->arguments[1], &left, sizeof(left));
	case SYS_timer_getoverrun:
		return timer->overrun;
	}
	timer->kind = UNUSED;
	return 0;
}
