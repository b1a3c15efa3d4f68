/* SPDX-License-Identifier: BSD-2-Clause */
/* turn/timer_fds.c - see timer_fds.h. */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>

#include "clock.h"
#include "descriptors.h"
#include "hand.h"
#include "order.h"
#include "pointers.h"
#include "raw.h"
#include "threads.h"
#include "timer_fds.h"
#include "timers.h"

#define MOST_HELD 512

/* Descriptors of this process, and their timers in the segment. */
static struct held { int fd; uint32_t timer; } held[MOST_HELD];
static uint32_t num_held;

static struct turn_timer_fd *timer_of(const struct held *one)
{
	return &turn_segment->timer_fds[one->timer];
}

static struct held *find(int fd)
{
	for (uint32_t i = 0; i < num_held; i++)
		if (held[i].fd == fd)
			return &held[i];
	return NULL;
}

static bool hold(int fd, uint32_t timer)
{
	turn_timer_fds_close(fd);
	if (num_held == MOST_HELD || turn_spawned() != TURN_NOBODY)
		return false;
	held[num_held++] = (struct held){ fd, timer };
	return true;
}

/* ------------------------------------------------------------------------
 * Expiring.
 */

uint64_t turn_timer_fds_next(void)
{
	uint64_t next = TURN_NEVER;

	for (uint32_t i = 0; i < num_held; i++)
		if (timer_of(&held[i])->timing.deadline < next)
			next = timer_of(&held[i])->timing.deadline;
	return next;
}

void turn_timer_fds_expire(void)
{
	for (uint32_t i = 0; i < num_held; i++) {
		struct turn_timing *timing = &timer_of(&held[i])->timing;
		uint64_t times;

		if (!turn_order_passed(turn_segment, timing->deadline))
			continue;
		times = turn_timers_passed(timing);
		TURN_RAW(SYS_write, held[i].fd, &times, sizeof(times));
		turn_changed();
	}
}

/* ------------------------------------------------------------------------
 * Who has them.
 */

void turn_timer_fds_close(int fd)
{
	struct held *one = find(fd);

	if (one && turn_spawned() == TURN_NOBODY)
		*one = held[--num_held];
}

void turn_timer_fds_copied(int from, int fd)
{
	const struct held *one = find(from);

	if (fd < 0 || from == fd)
		return;
	if (one)
		hold(fd, one->timer);
	else
		turn_timer_fds_close(fd);
}

void turn_timer_fds_inherited(void)
{
	for (uint32_t i = 0; i < num_held; i++)
		timer_of(&held[i])->is_shared = true;
}

/* The kernel's number of an eventfd; 0: it is none, or the kernel tells none (before Linux 5.2). */
static uint64_t number_of(int fd)
{
	uint64_t number;
	char lines[512];

	if (!turn_descriptor_info(fd, lines, sizeof(lines)) ||
	    !turn_descriptor_number(lines, "eventfd-id", &number))
		return 0;
	return number + 1;
}

static void look_at(int fd)
{
	const uint64_t number = find(fd) ? 0 : number_of(fd);

	for (uint32_t i = 0; number && i < turn_segment->num_timer_fds; i++) {
		if (turn_segment->timer_fds[i].number != number)
			continue;
		turn_segment->timer_fds[i].is_shared = true;
		hold(fd, i);
		return;
	}
}

struct entry {
	uint64_t inode;
	int64_t next;
	unsigned short len;
	unsigned char type;
	char name[];
};

void turn_timer_fds_find(void)
{
	_Alignas(8) char entries[2048];
	long folder, len;

	if (!turn_segment->num_timer_fds)
		return;
	folder = TURN_RAW(SYS_openat, AT_FDCWD, "/proc/self/fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (folder < 0)
		return;
	while ((len = TURN_RAW(SYS_getdents64, folder, entries, sizeof(entries))) > 0) {
		for (long at = 0; at < len;) {
			const struct entry *entry = (const struct entry *)&entries[at];
			int fd = 0;

			for (const char *c = entry->name; *c >= '0' && *c <= '9'; c++)
				fd = fd * 10 + (*c - '0');
			if (*entry->name != '.' && fd != folder)
				look_at(fd);
			at += entry->len;
		}
	}
	TURN_RAW(SYS_close, folder);
}

/* ------------------------------------------------------------------------
 * The calls.
 */

/* A place in the segment: a new one, or one that is not set.  That is found again by its number. */
static uint32_t new_timer(void)
{
	if (turn_segment->num_timer_fds < TURN_MAX_TIMER_FDS)
		return turn_segment->num_timer_fds++;
	for (uint32_t i = 0; i < TURN_MAX_TIMER_FDS; i++) {
		bool is_held = false;

		for (uint32_t j = 0; j < num_held; j++)
			is_held = is_held || held[j].timer == i;
		if (turn_segment->timer_fds[i].timing.deadline == TURN_NEVER && !is_held &&
		    !turn_segment->timer_fds[i].is_shared)
			return i;
	}
	return TURN_NOBODY;
}

static bool can_be_timer_fd(clockid_t clock)
{
	return clock == CLOCK_REALTIME || clock == CLOCK_MONOTONIC || clock == CLOCK_BOOTTIME ||
	       clock == CLOCK_REALTIME_ALARM || clock == CLOCK_BOOTTIME_ALARM;
}

static long create(const struct turn_call *call)
{
	const clockid_t clock = (clockid_t)call->arguments[0];
	uint64_t number;
	uint32_t timer;
	long fd;

	if (!can_be_timer_fd(clock) || call->arguments[1] & ~(TFD_NONBLOCK | TFD_CLOEXEC))
		return -EINVAL;
	/* An eventfd has the same flags, and another one. */
	fd = TURN_RAW(SYS_eventfd2, 0, call->arguments[1]);
	if (fd < 0)
		return fd;
	timer = new_timer();
	if (timer == TURN_NOBODY || !hold((int)fd, timer)) {
		TURN_RAW(SYS_close, fd);
		return -EMFILE;
	}
	number = number_of((int)fd);
	/* It may have been that of one that is no more. */
	for (uint32_t i = 0; i < turn_segment->num_timer_fds; i++)
		if (turn_segment->timer_fds[i].number == number)
			turn_segment->timer_fds[i].number = 0;
	turn_segment->timer_fds[timer] = (struct turn_timer_fd){
		.timing = { .deadline = TURN_NEVER, .clock = clock }, .number = number,
	};
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

static void tell_others(void)
{
	for (uint32_t i = 0; i < turn_segment->num_members; i++)
		if (i != turn_member)
			turn_order_interrupt(turn_segment, i);
}

long turn_timer_fds_call(const struct turn_call *call)
{
	struct turn_timer_fd *timer;
	const struct held *one;
	struct itimerspec left;
	long err;

	if (call->number == SYS_timerfd_create)
		return create(call);
	one = find((int)call->arguments[0]);
	if (!one)
		return turn_through(call);
	timer = timer_of(one);
	left = turn_timers_left(&timer->timing);
	if (call->number == SYS_timerfd_gettime)
		return turn_give((void *)call->arguments[1], &left, sizeof(left));
	err = turn_timers_set(&timer->timing, (const struct itimerspec *)call->arguments[2],
			      call->arguments[1] & TFD_TIMER_ABSTIME);
	if (err)
		return err;
	drain(one->fd);
	turn_timers_expire();
	turn_changed();
	if (timer->is_shared)
		tell_others();
	return turn_give((void *)call->arguments[3], &left, sizeof(left));
}
