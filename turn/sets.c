/* SPDX-License-Identifier: BSD-2-Clause */
/* turn/sets.c - waits for one of many descriptors: poll(), select(), epoll_wait() and their kin. */
#include "config.h"

#include <errno.h>
#include <poll.h>
#include <stddef.h>
#include <string.h>
#include <sys/select.h>
#include <sys/syscall.h>
#include <sys/time.h>

#include "clock.h"
#include "descriptors.h"
#include "hand.h"
#include "order.h"
#include "pointers.h"
#include "raw.h"
#include "signals.h"
#include "terminals.h"

#define MILLISECOND UINT64_C(1000000)

/* Nothing was ready: true: ask again; false: the time is over. */
static bool wait_on(uint64_t deadline)
{
	if (turn_order_passed(turn_segment, deadline))
		return false;
	turn_wait(TURN_DESCRIPTORS, deadline);
	return true;
}

/*
 * num: descriptors that are ready.  True: ask the kernel again.  A time-out of 0 that finds none
 * counts as a yield, since its program will ask again.
 */
static bool wait_or_yield(long num, uint64_t begin, uint64_t deadline)
{
	if (num > 0)
		turn_progress();
	if (num)
		return false;
	if (wait_on(deadline))
		return true;
	if (deadline <= begin)
		turn_clock_yield();
	return false;
}

static uint64_t after_ms(int ms)
{
	return ms < 0 ? TURN_NEVER : turn_clock_after_ns((uint64_t)ms * MILLISECOND);
}

static struct timespec time_until(uint64_t deadline)
{
	const uint64_t ns = deadline > turn_segment->now ? deadline - turn_segment->now : 0;

	return (struct timespec){ (time_t)(ns / TURN_SECOND), (long)(ns % TURN_SECOND) };
}

/* The kernel writes back how much of the time is left, unless it was none from the start. */
static void write_left(struct timespec *time, uint64_t deadline)
{
	const struct timespec left = time_until(deadline);

	/* What cannot be written does not matter. */
	if (time && (time->tv_sec || time->tv_nsec))
		turn_give(time, &left, sizeof(left));
}

static void write_left_of_select(struct timeval *time, uint64_t deadline)
{
	const struct timespec exact = time_until(deadline);
	const struct timeval left = { exact.tv_sec, exact.tv_nsec / 1000 };

	if (time && (time->tv_sec || time->tv_usec))
		turn_give(time, &left, sizeof(left));
}

long turn_poll(const struct turn_call *call)
{
	const long *arguments = call->arguments;
	const bool is_poll = call->number == SYS_poll;
	const uint64_t begin = turn_segment->now;
	const uint64_t deadline = is_poll ? after_ms((int)arguments[2]) :
					    turn_clock_after((const struct timespec *)arguments[2]);
	struct timespec now;
	long num;

	do {
		now = (struct timespec){ 0 };
		num = TURN_RAW(SYS_ppoll, arguments[0], arguments[1], &now, NULL, 0);
		if (!num)
			num = turn_signal_result_with(call, is_poll ? NULL :
						      (const void *)arguments[3]);
	} while (wait_or_yield(num, begin, deadline));
	if (!is_poll)
		write_left((struct timespec *)arguments[2], deadline);
	return num;
}

struct sets {
	fd_set *given[3];
	fd_set asked[3];
	size_t size;
};

long turn_select(const struct turn_call *call)
{
	const long *arguments = call->arguments;
	const struct timeval *given = (const struct timeval *)arguments[4];
	const struct { const void *mask; size_t size; } *with_mask =
		call->number == SYS_select ? NULL : (const void *)arguments[5];
	const uint64_t begin = turn_segment->now;
	struct sets sets = { .size = 0 };
	uint64_t deadline = TURN_NEVER;
	struct timespec now;
	long num;

	if (arguments[0] < 0 || arguments[0] > FD_SETSIZE)
		return -EINVAL;
	if (with_mask && with_mask->mask && !turn_can_read(with_mask->mask, TURN_SIGSET_SIZE))
		return -EFAULT;
	if (call->number == SYS_select && given && (given->tv_sec < 0 || given->tv_usec < 0))
		return -EINVAL;
	if (call->number != SYS_select)
		deadline = turn_clock_after((const struct timespec *)arguments[4]);
	else if (given)
		deadline = turn_clock_after_ns((uint64_t)given->tv_sec * TURN_SECOND +
					       (uint64_t)given->tv_usec * 1000);
	sets.size = ((size_t)arguments[0] + 63) / 64 * 8;
	do {
		for (unsigned int i = 0; i < 3; i++) {
			sets.given[i] = (fd_set *)arguments[i + 1];
			if (!turn_can_read(sets.given[i], sets.given[i] ? sets.size : 0))
				return -EFAULT;
			if (sets.given[i])
				memcpy(&sets.asked[i], sets.given[i], sets.size);
		}
		now = (struct timespec){ 0 };
		num = TURN_RAW(SYS_pselect6, arguments[0], sets.given[0] ? &sets.asked[0] : NULL,
			       sets.given[1] ? &sets.asked[1] : NULL,
			       sets.given[2] ? &sets.asked[2] : NULL, &now, NULL);
		if (!num)
			num = turn_signal_result_with(call, with_mask ? with_mask->mask : NULL);
	} while (wait_or_yield(num, begin, deadline));
	for (unsigned int i = 0; i < 3; i++)
		if (num >= 0 && turn_give(sets.given[i], &sets.asked[i], sets.size))
			num = -EFAULT;
	if (call->number == SYS_select)
		write_left_of_select((struct timeval *)arguments[4], deadline);
	else
		write_left((struct timespec *)arguments[4], deadline);
	return num;
}

long turn_epoll(const struct turn_call *call)
{
	const long *arguments = call->arguments;
	const bool has_mask = call->number != SYS_epoll_wait;
	const uint64_t begin = turn_segment->now;
	const uint64_t deadline = call->number == SYS_epoll_pwait2 ?
		turn_clock_after((const struct timespec *)arguments[3]) : after_ms((int)arguments[3]);
	long num;

	do {
		turn_terminals_settle_set((int)arguments[0]);
		num = TURN_RAW(SYS_epoll_pwait, arguments[0], arguments[1], arguments[2], 0, NULL, 0);
		if (!num)
			num = turn_signal_result_with(call, has_mask ? (const void *)arguments[4] :
						      NULL);
	} while (wait_or_yield(num, begin, deadline));
	return num;
}
