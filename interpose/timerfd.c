/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * interpose/timerfd.c - timerfds in virtual time: timerfd_settime() and timerfd_gettime();
 * read() is in read.c.
 *
 * The descriptor stays the kernel's.  Its timer is set to a time that never comes, and is
 * made to expire at its virtual time: so the kernel itself makes the descriptor readable,
 * for poll(), epoll sets, edges and duplicates alike.  The interval that the kernel stores
 * for the timer holds the number of our timer, so closed and duplicated descriptors need
 * not be tracked.
 */
#include "config.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "core/base/export.h"
#include "host.h"
#include "libc.h"
#include "shown.h"
#include "timers.h"
#include "wait.h"

#ifndef TFD_IOC_SET_TICKS
#define TFD_IOC_SET_TICKS _IOW('T', 0, uint64_t)
#endif

/* The kernel's interval: in seconds, this and the process; in ns, the number of our timer and 1. */
#define MARK INT64_C(1000000000)
#define NEVER INT64_C(4000000000)	/* seconds; the kernel's times end with 292 years */
#define SWEEP_MIN 8u			/* timers before the first sweep */
#define READY_MS 100			/* longest wait for the kernel's timer to expire */

struct fd_timer {
	struct polycm_virtual_timer timer;	/* first */
	unsigned int number;
	int fd;				/* where it was seen last; atomic */
	bool seen;
};

static struct polycm_virtual_timer *timers;
static unsigned int num_timers;		/* used ones; atomic */
static unsigned int sweep_at = SWEEP_MIN;	/* so many timers, some of closed descriptors */
static bool to_go_on;			/* some were read, and wait for their next interval; atomic */
static pid_t owner;			/* the process; 0: not known yet */

/* This one, or the next that is used. */
static struct fd_timer *used_from(struct polycm_virtual_timer *timer)
{
	while (timer && !__atomic_load_n(&timer->used, __ATOMIC_ACQUIRE))
		timer = timer->next;
	return (struct fd_timer *)timer;
}

#define FOR_EACH_TIMER(self)                                                   \
	for ((self) = used_from(__atomic_load_n(&timers, __ATOMIC_ACQUIRE)); (self); \
	     (self) = used_from((self)->timer.next))

static struct itimerspec mark_of(const struct fd_timer *self)
{
	return (struct itimerspec){
		.it_value.tv_sec = NEVER,
		.it_interval = { .tv_sec = MARK + owner, .tv_nsec = (long)self->number + 1 },
	};
}

/* The number of our timer that the descriptor is for, or UINT_MAX.  Without the lock, too. */
static unsigned int number_of(int fd)
{
	struct itimerspec time;

	if (polycm_libc()->timerfd_gettime(fd, &time) || !time.it_interval.tv_nsec ||
	    time.it_interval.tv_sec != MARK + __atomic_load_n(&owner, __ATOMIC_RELAXED))
		return UINT_MAX;
	return (unsigned int)time.it_interval.tv_nsec - 1;
}

/* Without the lock, too. */
static struct fd_timer *find(int fd)
{
	unsigned int number = number_of(fd);
	struct fd_timer *self;

	FOR_EACH_TIMER(self)
		if (self->number == number) {
			__atomic_store_n(&self->fd, fd, __ATOMIC_RELAXED);
			return self;
		}
	return NULL;
}

static void for_each_fd(void (*fn)(int fd, void *arg), void *arg)
{
	DIR *dir = opendir("/proc/self/fd");
	const struct dirent *entry;

	if (!dir)
		return;
	while ((entry = readdir(dir)))
		if (entry->d_name[0] != '.')
			fn((int)strtol(entry->d_name, NULL, 10), arg);
	closedir(dir);
}

static bool is_readable(int fd, int ms)
{
	struct pollfd pfd = { .fd = fd, .events = POLLIN };

	return polycm_libc()->poll(&pfd, 1, ms) == 1 && pfd.revents & POLLIN;
}

/* Make the kernel's timer expire now. */
static void make_readable(int fd, struct itimerspec time)
{
	uint64_t ticks = 1;

	if (!polycm_libc()->ioctl(fd, TFD_IOC_SET_TICKS, &ticks))
		return;
	/* Not every kernel has that call. */
	time.it_value = (struct timespec){ .tv_nsec = 1 };
	if (!polycm_libc()->timerfd_settime(fd, 0, &time, NULL))
		(void)is_readable(fd, READY_MS);
}

static void look_for(int fd, void *arg)
{
	struct fd_timer *self = arg;

	if (number_of(fd) == self->number)
		__atomic_store_n(&self->fd, fd, __ATOMIC_RELAXED);
}

/* The descriptor that was seen last may be closed, while another is for the same timer. */
static void expired(struct polycm_virtual_timer *timer)
{
	struct fd_timer *self = (struct fd_timer *)timer;
	int fd = __atomic_load_n(&self->fd, __ATOMIC_RELAXED), saved_errno = errno;

	if (number_of(fd) != self->number) {
		for_each_fd(look_for, self);
		fd = __atomic_load_n(&self->fd, __ATOMIC_RELAXED);
	}
	if (number_of(fd) == self->number)
		make_readable(fd, mark_of(self));
	errno = saved_errno;
}

static void end(struct fd_timer *self)
{
	__atomic_store_n(&self->timer.used, false, __ATOMIC_RELEASE);
	__atomic_sub_fetch(&num_timers, 1, __ATOMIC_RELAXED);
	polycm_virtual_timer_stop(&self->timer);
}

static void see(int fd, void *unused)
{
	struct fd_timer *self = find(fd);

	(void)unused;
	if (self)
		self->seen = true;
}

/* End the timers whose descriptors are all closed. */
static void sweep(void)
{
	struct fd_timer *self;

	FOR_EACH_TIMER(self)
		self->seen = false;
	for_each_fd(see, NULL);
	FOR_EACH_TIMER(self)
		if (!self->seen)
			end(self);
	sweep_at = 2 * num_timers + SWEEP_MIN;
}

static struct fd_timer *begin(int fd)
{
	static unsigned int num_numbers;
	struct fd_timer *self;

	if (!owner)
		__atomic_store_n(&owner, getpid(), __ATOMIC_RELAXED);
	if (num_timers >= sweep_at)
		sweep();
	self = polycm_virtual_timer_get(&timers, sizeof(*self));
	if (!self)
		return NULL;
	/* A new one gets a number for good. */
	if (!self->timer.expired)
		self->number = num_numbers++;
	self->timer.expired = expired;
	__atomic_store_n(&self->fd, fd, __ATOMIC_RELAXED);
	__atomic_store_n(&self->timer.used, true, __ATOMIC_RELEASE);
	__atomic_add_fetch(&num_timers, 1, __ATOMIC_RELAXED);
	return self;
}

/*
 * Timers that were read are set to their next interval here and not in read(), which a
 * signal handler may call: this takes memory and locks.
 */
static void lock_timers(struct polycm_held *held)
{
	struct fd_timer *self;

	polycm_timers_lock(held);
	if (__atomic_exchange_n(&to_go_on, false, __ATOMIC_ACQUIRE))
		FOR_EACH_TIMER(self)
			polycm_virtual_timer_go_on(&self->timer);
}

void polycm_timerfds_go_on(void)
{
	struct polycm_held held;

	if (__builtin_expect(!__atomic_load_n(&to_go_on, __ATOMIC_RELAXED), 1))
		return;
	lock_timers(&held);
	polycm_timers_unlock(&held);
}

/* ------------------------------------------------------------------------
 * Setting and asking.
 */

/*
 * From the kernel's line "clockid: 1".  A negative errno if that cannot be read for lack of
 * memory or descriptors: by another clock the timer would expire at a wrong time, or never.
 */
static int clock_of(int fd, clockid_t *ret_clock)
{
	char path[40], line[64];
	FILE *file;

	*ret_clock = CLOCK_MONOTONIC;
	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
	file = fopen(path, "re");
	if (!file)
		return errno == ENOENT ? 0 : -errno;
	while (fgets(line, sizeof(line), file) && sscanf(line, "clockid: %d", ret_clock) != 1)
		;
	fclose(file);
	return 0;
}

static bool is_off(const struct timespec *value)
{
	return !value->tv_sec && !value->tv_nsec;
}

static int set_on(int fd, struct fd_timer *self, uint64_t deadline, uint64_t interval)
{
	static const struct itimerspec off;
	const struct itimerspec mark = mark_of(self);
	int err;

	if (polycm_libc()->timerfd_settime(fd, 0, &mark, NULL))
		return -errno;
	err = polycm_virtual_timer_begin(&self->timer, deadline, interval);
	/* Another descriptor may get this timer. */
	if (err)
		(void)polycm_libc()->timerfd_settime(fd, 0, &off, NULL);
	return err;
}

static int set_locked(int fd, bool absolute, const struct itimerspec *time,
		      struct itimerspec *ret_old)
{
	static const struct itimerspec off;
	struct fd_timer *self = find(fd);
	clockid_t clock = CLOCK_MONOTONIC;
	uint64_t deadline;
	int err;

	if (self)
		*ret_old = polycm_virtual_timer_left(&self->timer);
	else if (polycm_libc()->timerfd_gettime(fd, ret_old))
		return -errno;
	if (is_off(&time->it_value)) {
		if (self)
			end(self);
		return polycm_libc()->timerfd_settime(fd, 0, &off, NULL) ? -errno : 0;
	}
	err = absolute ? clock_of(fd, &clock) : 0;
	if (err)
		return err;
	deadline = polycm_virtual_deadline(clock, absolute, &time->it_value);
	if (!self)
		self = begin(fd);
	if (!self)
		return -ENOMEM;
	err = set_on(fd, self, deadline, polycm_wait_ns(&time->it_interval));
	if (err)
		end(self);
	return err;
}

/* Time is real, or looks so to a signal handler that interrupted us. */
static int really_set(int fd, int flags, const struct itimerspec *time, struct itimerspec *old)
{
	struct itimerspec real;
	clockid_t clock;
	int err;

	if (!polycm_shown_is(POLYCM_SHOWN_MOVED) || !(flags & TFD_TIMER_ABSTIME) || !time ||
	    !polycm_wait_valid(&time->it_value) || is_off(&time->it_value))
		return polycm_libc()->timerfd_settime(fd, flags, time, old);
	err = clock_of(fd, &clock);
	if (err)
		return polycm_wait_return(err);
	real = *time;
	real.it_value = polycm_shown_to_real(clock, &time->it_value);
	return polycm_libc()->timerfd_settime(fd, flags, &real, old);
}

POLYCM_EXPORT int timerfd_settime(int fd, int flags, const struct itimerspec *time,
				  struct itimerspec *old)
{
	const struct itimerspec *volatile new = time;	/* whatever the header says of NULL */
	struct polycm_held held;
	struct itimerspec before;
	int err;

	if (time_is_real() || !new || !polycm_itimerspec_valid(new) ||
	    flags & ~(TFD_TIMER_ABSTIME | TFD_TIMER_CANCEL_ON_SET))
		return really_set(fd, flags, new, old);
	lock_timers(&held);
	err = set_locked(fd, flags & TFD_TIMER_ABSTIME, new, &before);
	polycm_timers_unlock(&held);
	if (!err && old)
		*old = before;
	return polycm_wait_return(err);
}

static bool any(void)
{
	return __builtin_expect(__atomic_load_n(&num_timers, __ATOMIC_RELAXED) != 0, 0);
}

POLYCM_EXPORT int timerfd_gettime(int fd, struct itimerspec *time)
{
	struct polycm_held held;
	const struct fd_timer *self;
	struct itimerspec left;

	if (!any())
		return polycm_libc()->timerfd_gettime(fd, time);
	lock_timers(&held);
	self = find(fd);
	if (self)
		left = polycm_virtual_timer_left(&self->timer);
	polycm_timers_unlock(&held);
	if (!self)
		return polycm_libc()->timerfd_gettime(fd, time);
	*time = left;
	return 0;
}

bool polycm_timerfd_is_off(int fd, char *text, size_t size)
{
	struct polycm_held held;
	const struct fd_timer *self;
	struct itimerspec time;
	bool off;

	if (polycm_libc()->timerfd_gettime(fd, &time))
		return false;
	off = is_off(&time.it_value);
	lock_timers(&held);
	self = find(fd);
	if (self)
		off = !self->timer.timer;
	polycm_timers_unlock(&held);
	if (!off || is_readable(fd, 0))
		return false;
	snprintf(text, size, "timer on descriptor %d, which is not set", fd);
	return true;
}

bool polycm_timerfd_take(int fd, uint64_t *ret_num)
{
	struct fd_timer *self = any() ? find(fd) : NULL;
	struct itimerspec mark;

	if (!self)
		return false;
	mark = mark_of(self);
	/* First, since after it has been set again it may be due again. */
	if (__atomic_load_n(&self->timer.due, __ATOMIC_ACQUIRE))
		(void)polycm_libc()->timerfd_settime(fd, 0, &mark, NULL);
	*ret_num = polycm_virtual_timer_take_early(&self->timer);
	if (*ret_num)
		__atomic_store_n(&to_go_on, true, __ATOMIC_RELEASE);
	return true;
}

/* ------------------------------------------------------------------------
 * Where virtual time begins and ends.
 */

static void adopt(int fd, void *unused)
{
	struct itimerspec time;
	struct fd_timer *self;
	bool readable;

	(void)unused;
	if (find(fd) || polycm_libc()->timerfd_gettime(fd, &time) || is_off(&time.it_value))
		return;
	readable = is_readable(fd, 0);
	self = begin(fd);
	if (!self)
		return;
	/* An expiration that was not read yet counts as one of now. */
	if (set_on(fd, self, polycm_virtual_deadline(CLOCK_MONOTONIC, false,
						     readable ? &(struct timespec){ 0 } :
								&time.it_value),
		   polycm_wait_ns(&time.it_interval))) {
		end(self);
		(void)polycm_libc()->timerfd_settime(fd, 0, &time, NULL);
	}
}

/* A child of fork() shares its parent's timerfds. */
static bool is_child;

void polycm_timerfds_adopt(void)
{
	struct polycm_held held;

	if (is_child)
		return;
	lock_timers(&held);
	for_each_fd(adopt, NULL);
	polycm_timers_unlock(&held);
}

/* The rest of its time passes in real time. */
static void release(struct fd_timer *self)
{
	struct itimerspec time = polycm_virtual_timer_left(&self->timer);
	bool due = __atomic_load_n(&self->timer.due, __ATOMIC_RELAXED);

	if (number_of(self->fd) == self->number && (!due || !is_off(&time.it_value))) {
		(void)polycm_libc()->timerfd_settime(self->fd, 0, &time, NULL);
		if (due)
			(void)polycm_libc()->ioctl(self->fd, TFD_IOC_SET_TICKS, &(uint64_t){ 1 });
	}
	end(self);
}

void polycm_timerfds_release(void)
{
	struct polycm_held held;
	struct fd_timer *self;

	if (!any() || owner != getpid())
		return;
	lock_timers(&held);
	sweep();
	FOR_EACH_TIMER(self)
		release(self);
	polycm_timers_unlock(&held);
}

/* The clock may still have timers for them, so they are not used again. */
void polycm_timerfds_forget(void)
{
	struct fd_timer *self;

	FOR_EACH_TIMER(self)
		polycm_virtual_timer_drop(&self->timer);
	timers = NULL;
	num_timers = 0;
	to_go_on = false;
	owner = 0;
	is_child = true;
}
