/* SPDX-License-Identifier: BSD-2-Clause */
/* turn/tells.c - what the simulator asks about the threads of this process (turn_tells.h). */
#include "config.h"

#include <errno.h>
#include <stdbool.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "connects.h"
#include "hand.h"
#include "include/turn_tells.h"
#include "order.h"
#include "raw.h"

static uint64_t now(void)
{
	return turn_slot() == TURN_NOBODY ? 0 : turn_segment->now;
}

static unsigned int count(bool (*is_meant)(const struct turn_thread *thread, const void *lock,
					   size_t size), const void *lock, size_t size)
{
	unsigned int num = 0;

	for (uint32_t i = 0; i < turn_segment->num_threads; i++)
		num += turn_segment->threads[i].member == turn_member &&
		       is_meant(&turn_segment->threads[i], lock, size);
	return num;
}

static bool is_there(const struct turn_thread *thread, const void *lock, size_t size)
{
	(void)lock;
	(void)size;
	return thread->state != TURN_FREE && thread->state != TURN_GONE;
}

/* Words of memory that several processes map are theirs, too. */
static bool is_parked(const struct turn_thread *thread, const void *lock, size_t size)
{
	return thread->state == TURN_FUTEX && thread->deadline == TURN_NEVER &&
	       thread->word.space == turn_member + 1 &&
	       thread->address - (uint64_t)(uintptr_t)lock >= size;
}

static unsigned int num_threads(void)
{
	return count(is_there, NULL, 0);
}

static unsigned int num_parked(const void *lock, size_t size)
{
	return count(is_parked, lock, size);
}

static bool has_others(void)
{
	for (uint32_t i = 0; i < turn_segment->num_members; i++)
		if (i != turn_member && turn_segment->members[i].life != TURN_UNUSED &&
		    turn_segment->members[i].life != TURN_ENDED)
			return true;
	return false;
}

/* Time moves only when nobody else can go on. */
static void let_others(void)
{
	static const struct timespec least = { .tv_nsec = 1 };

	syscall(SYS_nanosleep, &least, NULL);
}

static void next_wait_looks(void)
{
	turn_self()->then_next = TURN_LOOKS;
}

static void waits_for(enum turn_purpose purpose)
{
	turn_self()->purpose = purpose;
}

static void serves(void)
{
	turn_self()->serves = true;
}

static void writes_own(bool is_own)
{
	if (turn_slot() != TURN_NOBODY)
		turn_self()->writes_own = is_own;
}

static void keep_turn(bool keeps)
{
	turn_self()->keeps = keeps;
}

static ssize_t write_unseen(int fd, const void *bytes, size_t len)
{
	const long num = TURN_RAW(SYS_write, fd, bytes, len);

	if (num >= 0)
		return num;
	errno = (int)-num;
	return -1;
}

static void sent(void)
{
	if (turn_slot() != TURN_NOBODY)
		turn_order_moved(turn_segment);
}

extern const struct turn_tells polycm_turn_tells __attribute__((visibility("default")));

const struct turn_tells polycm_turn_tells = {
	.size = sizeof(polycm_turn_tells),
	.now = now,
	.has_others = has_others,
	.num_threads = num_threads,
	.let_others = let_others,
	.num_parked = num_parked,
	.next_wait_looks = next_wait_looks,
	.waits_for = waits_for,
	.serves = serves,
	.writes_own = writes_own,
	.sent = sent,
	.write_unseen = write_unseen,
	.keep_turn = keep_turn,
	.connect_now = turn_connects_now,
	.connect_fails = turn_connects_fails,
	.reset_means = turn_connects_reset_means,
	.port_is_for = turn_connects_port_is_for,
};
