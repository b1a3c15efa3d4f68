/* SPDX-License-Identifier: BSD-2-Clause */
/* turn/timers.c - see timers.h. */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <time.h>

#include "clock.h"
#include "descriptors.h"
#include "hand.h"
#include "order.h"
#include "pointers.h"
#include "raw.h"
#include "threads.h"
#include "timers.h"

enum kind { UNUSED, ALARM, POSIX, DESCRIPTOR };

struct timer {
	enum kind kind;
	uint64_t deadline, interval;	/* TURN_NEVER: not set; 0: once */
	clockid_t clock;
	int fd;				/* of a timerfd */
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
	uint64_t next = TURN_NEVER;

	for (int i = 0; i < num_timers; i++)
		if (timers[i].kind != UNUSED && timers[i].deadline < next)
			next = timers[i].deadline;
	return next;
}

static void send(const struct timer *timer, int id)
{
	const int32_t pid = turn_segment->members[turn_member].pid;
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

static void expire(struct timer *timer, int id)
{
	uint64_t times = 1;

	if (timer->interval) {
		times += (turn_segment->now - timer->deadline) / timer->interval;
		timer->deadline += times * timer->interval;
	} else {
		timer->deadline = TURN_NEVER;
	}
	if (timer->kind == DESCRIPTOR) {
		TURN_RAW(SYS_write, timer->fd, &times, sizeof(times));
		turn_changed();
	} else if (timer->signal) {
		timer->overrun = times > INT32_MAX ? INT32_MAX : (int)times - 1;
		send(timer, id);
	}
}

void turn_timers_expire(void)
{
	for (int i = 0; i < num_timers; i++)
		if (timers[i].kind != UNUSED && turn_order_passed(turn_segment, timers[i].deadline))
			expire(&timers[i], i);
}

void turn_timers_forget(void)
{
	for (int i = 0; i < num_timers; i++)
		timers[i].kind = UNUSED;
}

/* ------------------------------------------------------------------------
 * Setting.
 */

static struct timer *add(enum kind kind)
{
	for (int i = 0; i < MOST_TIMERS; i++) {
		if (timers[i].kind != UNUSED)
			continue;
		timers[i] = (struct timer){ .kind = kind, .deadline = TURN_NEVER, .fd = -1 };
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

static struct itimerspec left_of(const struct timer *timer)
{
	struct itimerspec left = { .it_interval = time_of(timer->interval) };

	/* One that has expired but was not looked at has a moment left. */
	if (timer->deadline != TURN_NEVER)
		left.it_value = time_of(timer->deadline > turn_segment->now ?
					timer->deadline - turn_segment->now : 1);
	return left;
}

static long set(struct timer *timer, const struct itimerspec *to, bool is_absolute)
{
	const struct timespec *value = &to->it_value, *interval = &to->it_interval;

	if (value->tv_sec < 0 || interval->tv_sec < 0 || value->tv_nsec < 0 ||
	    interval->tv_nsec < 0 || value->tv_nsec >= (long)TURN_SECOND ||
	    interval->tv_nsec >= (long)TURN_SECOND)
		return -EINVAL;
	timer->interval = turn_clock_after(interval) - turn_segment->now;
	timer->overrun = 0;
	timer->deadline = TURN_NEVER;
	if (value->tv_sec || value->tv_nsec)
		timer->deadline = is_absolute ? turn_clock_at(timer->clock, value) :
						turn_clock_after(value);
	return 0;
}

/* ------------------------------------------------------------------------
 * alarm(), setitimer().
 */

static struct timer *the_alarm(void)
{
	struct timer *timer;

	for (int i = 0; i < num_timers; i++)
		if (timers[i].kind == ALARM)
			return &timers[i];
	timer = add(ALARM);
	if (timer) {
		timer->clock = CLOCK_MONOTONIC;
		timer->signal = SIGALRM;
	}
	return timer;
}

void turn_timers_keep(void)
{
	struct turn_member *member = &turn_segment->members[turn_member];

	member->alarm = 0;
	for (int i = 0; i < num_timers; i++) {
		if (timers[i].kind != ALARM || timers[i].deadline == TURN_NEVER)
			continue;
		member->alarm = timers[i].deadline;
		member->alarm_interval = timers[i].interval;
	}
}

void turn_timers_resume(void)
{
	const struct turn_member *member = &turn_segment->members[turn_member];
	struct timer *timer = member->alarm ? the_alarm() : NULL;

	if (!timer)
		return;
	timer->deadline = member->alarm;
	timer->interval = member->alarm_interval;
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
	const struct itimerspec left = left_of(timer), to = { .it_value = { seconds, 0 } };

	set(timer, &to, false);
	/* Rounded as the kernel does it: never to 0. */
	return left.it_value.tv_sec + (left.it_value.tv_nsec >= (long)TURN_SECOND / 2 ||
				       (!left.it_value.tv_sec && left.it_value.tv_nsec));
}

long turn_timers_interval(const struct turn_call *call)
{
	struct timer *timer;
	const struct itimerval *given;
	struct itimerval *ret, was;
	struct itimerspec left;

	if (call->number != SYS_alarm && call->arguments[0] != ITIMER_REAL)
		return turn_through(call);
	timer = the_alarm();
	if (!timer)
		return -ENOMEM;
	if (call->number == SYS_alarm)
		return set_alarm(timer, (unsigned int)call->arguments[0]);
	left = left_of(timer);
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

static bool is_of_processor(clockid_t clock)
{
	return clock < 0 || clock == CLOCK_PROCESS_CPUTIME_ID || clock == CLOCK_THREAD_CPUTIME_ID;
}

static long create(const struct turn_call *call)
{
	const struct sigevent *event = (const struct sigevent *)call->arguments[1];
	int *ret_id = (int *)call->arguments[2];
	struct timer *timer = turn_can_write(ret_id, sizeof(*ret_id)) ? add(POSIX) : NULL;

	if (!timer)
		return turn_can_write(ret_id, sizeof(*ret_id)) ? -EAGAIN : -EFAULT;
	timer->clock = (clockid_t)call->arguments[0];
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
		return is_of_processor((clockid_t)id) ? -ENOTSUP : create(call);
	if (id < 0 || id >= num_timers || timers[id].kind != POSIX)
		return -EINVAL;
	timer = &timers[id];
	left = left_of(timer);
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

/* ------------------------------------------------------------------------
 * Timerfds.
 */

static struct timer *of_fd(int fd)
{
	for (int i = 0; i < num_timers; i++)
		if (timers[i].kind == DESCRIPTOR && timers[i].fd == fd)
			return &timers[i];
	return NULL;
}

void turn_timers_close(int fd)
{
	struct timer *timer = of_fd(fd);

	if (timer && turn_spawned() == TURN_NOBODY)
		timer->kind = UNUSED;
}

static long create_fd(const struct turn_call *call)
{
	struct timer *timer;
	/* The flags of both are O_NONBLOCK and O_CLOEXEC. */
	long fd = TURN_RAW(SYS_eventfd2, 0, call->arguments[1]);

	if (fd < 0)
		return fd;
	turn_timers_close((int)fd);
	timer = add(DESCRIPTOR);
	if (!timer) {
		TURN_RAW(SYS_close, fd);
		return -EMFILE;
	}
	timer->clock = (clockid_t)call->arguments[0];
	timer->fd = (int)fd;
	return fd;
}

/* Expirations that nobody read are gone when it is set. */
static void drain(int fd)
{
	const long flags = TURN_RAW(SYS_fcntl, fd, F_GETFL);
	uint64_t number;

	TURN_RAW(SYS_fcntl, fd, F_SETFL, flags | O_NONBLOCK);
	TURN_RAW(SYS_read, fd, &number, sizeof(number));
	TURN_RAW(SYS_fcntl, fd, F_SETFL, flags);
}

long turn_timers_fd(const struct turn_call *call)
{
	struct timer *timer;
	struct itimerspec left;
	long err;

	if (call->number == SYS_timerfd_create)
		return create_fd(call);
	timer = of_fd((int)call->arguments[0]);
	/* Inherited, or duplicated: not known here. */
	if (!timer)
		return turn_through(call);
	left = left_of(timer);
	if (call->number == SYS_timerfd_gettime) {
		return turn_give((void *)call->arguments[1], &left, sizeof(left));
	}
	err = set(timer, (const struct itimerspec *)call->arguments[2],
		  call->arguments[1] & TFD_TIMER_ABSTIME);
	if (err)
		return err;
	drain(timer->fd);
	turn_timers_expire();
	turn_changed();
	return turn_give((void *)call->arguments[3], &left, sizeof(left));
}
