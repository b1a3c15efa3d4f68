/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * interpose/timerfd.c - timerfds in virtual time: timerfd_settime(),
 * timerfd_gettime(), and read() of one.
 *
 * The descriptor stays the kernel's.  Its timer is set to a time that never
 * comes, and expires when virtual time says so; so the kernel itself makes it
 * readable, for poll(), epoll sets, edges and duplicates alike.  Which of our
 * timers a descriptor is for stands in the interval that the kernel keeps for
 * it, so closed and duplicated descriptors need not be followed.
 */
#undef _FORTIFY_SOURCE	/* its inline functions have the names of ours */
#include "config.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/timerfd.h>
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

/* The kernel's interval: this and the process in seconds, the number of our timer and 1 in ns. */
#define MARK INT64_C(1000000000)
#define NEVER INT64_C(4000000000)	/* seconds; the kernel's times end with 292 years */
#define READY_MS 100			/* for a timer that was set to now to expire */

struct fd_timer {
	struct polycm_virtual_timer timer;
	unsigned int slot;
	int fd;				/* where it was seen last; atomic */
	bool used;			/* atomic */
	bool seen;
};

/*
 * Blocks of slots, each twice as long as the one before.  None is ever moved or
 * freed: a signal handler that reads a timerfd looks at them without the lock.
 */
#define FIRST_BLOCK 8u
#define NUM_BLOCKS 24u
static struct fd_timer *blocks[NUM_BLOCKS];	/* atomic */
static unsigned int num_slots;			/* atomic */
static bool to_go_on;		/* one was read, and has not gone on; atomic */
static unsigned int num_timers;		/* atomic */
static pid_t owner;			/* the process, where it is known */

static struct itimerspec mark_of(unsigned int slot)
{
	return (struct itimerspec){
		.it_value.tv_sec = NEVER,
		.it_interval = { .tv_sec = MARK + owner, .tv_nsec = (long)slot + 1 },
	};
}

/* Which timer of ours the kernel keeps for it; without a lock, and UINT_MAX for none. */
static unsigned int slot_of(int fd)
{
	struct itimerspec time;

	if (polycm_libc()->timerfd_gettime(fd, &time) || !time.it_interval.tv_nsec ||
	    time.it_interval.tv_sec != MARK + __atomic_load_n(&owner, __ATOMIC_RELAXED))
		return UINT_MAX;
	return (unsigned int)time.it_interval.tv_nsec - 1;
}

static unsigned int block_of(unsigned int slot)
{
	return 31 - (unsigned int)__builtin_clz(slot / FIRST_BLOCK + 1);
}

static unsigned int block_start(unsigned int block)
{
	return FIRST_BLOCK * ((1u << block) - 1);
}

/* The timer of the slot, or NULL if it is free.  Without the lock, too. */
static struct fd_timer *timer_in(unsigned int slot)
{
	unsigned int block = block_of(slot);
	struct fd_timer *self;

	if (slot >= __atomic_load_n(&num_slots, __ATOMIC_ACQUIRE))
		return NULL;
	self = __atomic_load_n(&blocks[block], __ATOMIC_ACQUIRE) + (slot - block_start(block));
	return __atomic_load_n(&self->used, __ATOMIC_ACQUIRE) ? self : NULL;
}

static struct fd_timer *find(int fd)
{
	struct fd_timer *self = timer_in(slot_of(fd));

	if (self)
		__atomic_store_n(&self->fd, fd, __ATOMIC_RELAXED);
	return self;
}

/* Each descriptor of the process. */
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

/* The kernel's timer expires now. */
static void make_readable(int fd, struct itimerspec time)
{
	uint64_t ticks = 1;

	if (!polycm_libc()->ioctl(fd, TFD_IOC_SET_TICKS, &ticks))
		return;
	/* Not every kernel has that. */
	time.it_value = (struct timespec){ .tv_nsec = 1 };
	if (!polycm_libc()->timerfd_settime(fd, 0, &time, NULL))
		(void)is_readable(fd, READY_MS);
}

static void look_for(int fd, void *arg)
{
	struct fd_timer *self = arg;

	if (slot_of(fd) == self->slot)
		__atomic_store_n(&self->fd, fd, __ATOMIC_RELAXED);
}

/* Its descriptor may have been closed, and another be one for the same timer. */
static void expired(struct polycm_virtual_timer *timer)
{
	struct fd_timer *self = (struct fd_timer *)timer;
	int fd = __atomic_load_n(&self->fd, __ATOMIC_RELAXED), saved_errno = errno;

	if (slot_of(fd) != self->slot) {
		for_each_fd(look_for, self);
		fd = __atomic_load_n(&self->fd, __ATOMIC_RELAXED);
	}
	if (slot_of(fd) == self->slot)
		make_readable(fd, mark_of(self->slot));
	errno = saved_errno;
}

static void end(struct fd_timer *self)
{
	__atomic_store_n(&self->used, false, __ATOMIC_RELEASE);
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

/* End those that no descriptor is for any more. */
static void sweep(void)
{
	struct fd_timer *self;

	for (unsigned int slot = 0; slot < num_slots; slot++)
		if ((self = timer_in(slot)))
			self->seen = false;
	for_each_fd(see, NULL);
	for (unsigned int slot = 0; slot < num_slots; slot++)
		if ((self = timer_in(slot)) && !self->seen)
			end(self);
}

static int free_slot(struct fd_timer **ret_timer)
{
	unsigned int slot = 0, block;
	struct fd_timer *longer;

	while (slot < num_slots && timer_in(slot))
		slot++;
	block = block_of(slot);
	if (slot == num_slots) {
		if (block == NUM_BLOCKS)
			return -ENOMEM;
		longer = calloc(FIRST_BLOCK << block, sizeof(*longer));
		if (!longer)
			return -ENOMEM;
		__atomic_store_n(&blocks[block], longer, __ATOMIC_RELEASE);
		__atomic_store_n(&num_slots, slot + (FIRST_BLOCK << block), __ATOMIC_RELEASE);
	}
	*ret_timer = &blocks[block][slot - block_start(block)];
	(*ret_timer)->slot = slot;
	return 0;
}

static int begin(int fd, struct fd_timer **ret_timer)
{
	struct fd_timer *self;
	int err;

	if (!owner)
		__atomic_store_n(&owner, getpid(), __ATOMIC_RELAXED);
	if (num_timers && num_timers == num_slots)
		sweep();
	err = free_slot(&self);
	if (err)
		return err;
	self->timer.expired = expired;
	__atomic_store_n(&self->fd, fd, __ATOMIC_RELAXED);
	__atomic_store_n(&self->used, true, __ATOMIC_RELEASE);
	__atomic_add_fetch(&num_timers, 1, __ATOMIC_RELAXED);
	*ret_timer = self;
	return 0;
}

/*
 * What was read goes on here and not in read(): that would take memory and
 * locks, and a signal handler may have interrupted who has them.
 */
static void go_on_locked(void)
{
	struct fd_timer *self;

	if (!__atomic_exchange_n(&to_go_on, false, __ATOMIC_ACQUIRE))
		return;
	for (unsigned int slot = 0; slot < num_slots; slot++)
		if ((self = timer_in(slot)))
			polycm_virtual_timer_go_on(&self->timer);
}

static void lock_timers(struct polycm_timers_held *held)
{
	polycm_timers_lock(held);
	go_on_locked();
}

void polycm_timerfds_go_on(void)
{
	struct polycm_timers_held held;

	if (__builtin_expect(!__atomic_load_n(&to_go_on, __ATOMIC_RELAXED), 1))
		return;
	lock_timers(&held);
	polycm_timers_unlock(&held);
}

/* ------------------------------------------------------------------------
 * Setting and asking.
 */

/*
 * The kernel tells it in a line "clockid: 1".  A negative errno where that cannot be
 * read for want of memory or descriptors: by another clock the timer would expire at
 * another time, or never.
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
	const struct itimerspec mark = mark_of(self->slot);
	int err;

	if (polycm_libc()->timerfd_settime(fd, 0, &mark, NULL))
		return -errno;
	err = polycm_virtual_timer_begin(&self->timer, deadline, interval);
	/* Another timer may get the number. */
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
	int err = 0;

	if (self)
		*ret_old = polycm_virtual_timer_left(&self->timer);
	else if (polycm_libc()->timerfd_gettime(fd, ret_old))
		return -errno;
	if (is_off(&time->it_value)) {
		if (self)
			end(self);
		return polycm_libc()->timerfd_settime(fd, 0, &off, NULL) ? -errno : 0;
	}
	if (absolute)
		err = clock_of(fd, &clock);
	if (err)
		return err;
	deadline = polycm_virtual_deadline(clock, absolute, &time->it_value);
	if (!self)
		err = begin(fd, &self);
	if (!err)
		err = set_on(fd, self, deadline, polycm_wait_ns(&time->it_interval));
	if (err && self)
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
	struct polycm_timers_held held;
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
	struct polycm_timers_held held;
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
	struct polycm_timers_held held;
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

/* ------------------------------------------------------------------------
 * Reading.
 */

struct timer_wait {
	struct polycm_wait wait;
	int fd;
};

static int ask(struct polycm_wait *wait, const struct timespec *limit, const sigset_t *mask)
{
	struct pollfd pfd = { .fd = ((struct timer_wait *)wait)->fd, .events = POLLIN };
	int n = polycm_libc()->ppoll(&pfd, 1, limit, mask);

	return n < 0 ? -errno : n;
}

/* How often it expired, if it is one of ours.  In a signal handler, too: without any lock. */
static bool take(int fd, uint64_t *ret_num)
{
	struct fd_timer *self = find(fd);
	struct itimerspec mark;

	if (!self)
		return false;
	mark = mark_of(self->slot);
	/* First: a timer that goes on may be due again at once. */
	if (__atomic_load_n(&self->timer.due, __ATOMIC_ACQUIRE))
		(void)polycm_libc()->timerfd_settime(fd, 0, &mark, NULL);
	*ret_num = polycm_virtual_timer_take_early(&self->timer);
	if (*ret_num)
		__atomic_store_n(&to_go_on, true, __ATOMIC_RELEASE);
	return true;
}

/* 8, or a negative errno; -ENODEV: the C library reads it. */
static ssize_t read_timer(int fd, void *buf)
{
	struct timer_wait self = {
		.wait = { .call = "read", .timeout_ns = POLYCM_FOREVER, .ask = ask },
		.fd = fd,
	};
	uint64_t num;
	int r;

	for (;;) {
		if (!take(fd, &num))
			return -ENODEV;
		if (num) {
			memcpy(buf, &num, sizeof(num));
			return sizeof(num);
		}
		if (polycm_libc()->fcntl(fd, F_GETFL) & O_NONBLOCK) {
			polycm_wait_spin();
			return -EAGAIN;
		}
		r = time_is_real() ? -ENODEV : polycm_wait(&self.wait);
		if (r < 0)
			return r;
	}
}

/* Not to a signal handler that interrupted the clock at work: it must not call it. */
static bool is_virtual(void)
{
	return any() && !time_is_real();
}

static ssize_t read_any(int fd, void *buf, size_t size)
{
	uint64_t num;
	ssize_t r = -ENODEV;

	if (is_virtual() && buf && size >= sizeof(num))
		r = read_timer(fd, buf);
	if (r != -ENODEV) {
		if (r >= 0)
			return r;
		errno = (int)-r;
		return -1;
	}
	r = polycm_libc()->read(fd, buf, size);
	/* One that was set while this waited for it. */
	if (r == (ssize_t)sizeof(num) && is_virtual() && take(fd, &num) && num)
		memcpy(buf, &num, sizeof(num));
	return r;
}

static bool may_be_timer(size_t size)
{
	return size >= sizeof(uint64_t) && __builtin_expect(polycm_shown_is(POLYCM_SHOWN_MOVED), 0);
}

POLYCM_EXPORT ssize_t read(int fd, void *buf, size_t size)
{
	return may_be_timer(size) ? read_any(fd, buf, size) : polycm_libc()->read(fd, buf, size);
}

ssize_t __read_chk(int fd, void *buf, size_t size, size_t room);

/* The C library's ends the program where there is not so much room. */
POLYCM_EXPORT ssize_t __read_chk(int fd, void *buf, size_t size, size_t room)
{
	if (size > room)
		return polycm_libc()->read_chk(fd, buf, size, room);
	return read(fd, buf, size);
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
	if (begin(fd, &self))
		return;
	/* One that has expired, and was not read, has done so now. */
	if (set_on(fd, self, polycm_virtual_deadline(CLOCK_MONOTONIC, false,
						     readable ? &(struct timespec){ 0 } :
								&time.it_value),
		   polycm_wait_ns(&time.it_interval))) {
		end(self);
		(void)polycm_libc()->timerfd_settime(fd, 0, &time, NULL);
	}
}

/* A child of fork() shares its parent's. */
static bool is_child;

void polycm_timerfds_adopt(void)
{
	struct polycm_timers_held held;

	if (is_child)
		return;
	lock_timers(&held);
	for_each_fd(adopt, NULL);
	polycm_timers_unlock(&held);
}

/* What is left of it passes in real time. */
static void release(struct fd_timer *self)
{
	struct itimerspec time = polycm_virtual_timer_left(&self->timer);
	bool due = __atomic_load_n(&self->timer.due, __ATOMIC_RELAXED);

	if (slot_of(self->fd) == self->slot && (!due || !is_off(&time.it_value))) {
		(void)polycm_libc()->timerfd_settime(self->fd, 0, &time, NULL);
		if (due)
			(void)polycm_libc()->ioctl(self->fd, TFD_IOC_SET_TICKS, &(uint64_t){ 1 });
	}
	end(self);
}

void polycm_timerfds_release(void)
{
	struct polycm_timers_held held;
	struct fd_timer *self;

	if (!any() || owner != getpid())
		return;
	lock_timers(&held);
	sweep();
	for (unsigned int slot = 0; slot < num_slots; slot++)
		if ((self = timer_in(slot)))
			release(self);
	polycm_timers_unlock(&held);
}

/* The engine's timers for them may still be there. */
void polycm_timerfds_forget(void)
{
	struct fd_timer *self;

	for (unsigned int slot = 0; slot < num_slots; slot++)
		if ((self = timer_in(slot)))
			polycm_virtual_timer_drop(&self->timer);
	memset(blocks, 0, sizeof(blocks));
	num_slots = num_timers = 0;
	to_go_on = false;
	owner = 0;
	is_child = true;
}
