/* SPDX-License-Identifier: BSD-2-Clause */
/* turn/hand.c - see hand.h. */
#include "config.h"

#include <errno.h>
#include <linux/futex.h>
#include <signal.h>
#include <stddef.h>
#include <sys/uio.h>
#include <time.h>

#include "hand.h"
#include "include/thread_local.h"
#include "order.h"
#include "raw.h"
#include "timers.h"

#define LONG_WAIT_NS 1000000u
#define MANY_TICKS 64u
#define LOOK_S 1	/* of real time, between two looks whether the launcher lives */

struct turn_segment *turn_segment;
uint32_t turn_member;

static POLYCM_THREAD_LOCAL uint32_t slot = TURN_NOBODY;

uint32_t turn_slot(void)
{
	return slot;
}

void turn_set_slot(uint32_t is)
{
	slot = is;
}

struct turn_thread *turn_self(void)
{
	return &turn_segment->threads[slot];
}

/*
 * A process's first thread remains as a zombie while others run; but it has no memory any more.  Where
 * one process may not ask about another it counts as gone; who joins it looks at its word besides.
 */
static bool has_left(int32_t pid, int32_t tid)
{
	char byte;
	const struct iovec iov = { &byte, sizeof(byte) };
	long result;

	if (TURN_RAW(SYS_tgkill, pid, tid, 0))
		return true;
	if (pid != tid)
		return false;
	result = TURN_RAW(SYS_process_vm_readv, tid, &iov, 1, &iov, 1, 0);
	return result < 0 && result != -EFAULT;
}

/*
 * With its last instruction a thread clears the word that others join it by, and lets robust locks
 * go.  That is real time: what comes after it in the order waits for it.
 */
static void await_leaving(void)
{
	while (turn_segment->leaving &&
	       !has_left(turn_segment->leaving_pid, turn_segment->leaving))
		TURN_RAW(SYS_sched_yield);
	turn_segment->leaving = 0;
}

/*
 * Without the launcher nobody gives a turn.  Its own children end with it, as do all in a namespace;
 * this is for the children of members where there is none.
 */
void turn_end_with_launcher(void)
{
	if (atomic_load(&turn_segment->launcher) & FUTEX_OWNER_DIED)
		TURN_RAW(SYS_exit_group, 128 + SIGKILL);
}

void turn_take(void)
{
	const struct timespec look = { .tv_sec = LOOK_S };
	struct turn_thread *self = turn_self();

	while (!atomic_exchange(&self->go, 0)) {
		TURN_RAW(SYS_futex, &self->go, FUTEX_WAIT, 0, &look);
		turn_end_with_launcher();
	}
	await_leaving();
	self->state = TURN_RUNS;
}

static void give(uint32_t next)
{
	_Atomic uint32_t *go = next == TURN_NOBODY ? &turn_segment->launcher_go :
						     &turn_segment->threads[next].go;

	atomic_store(go, 1);
	TURN_RAW(SYS_futex, go, FUTEX_WAKE, 1);
}

/* Who is next; the launcher, if it asked: it chooses when it has done its part. */
static uint32_t next_one(void)
{
	if (!atomic_exchange(&turn_segment->wanted, 0))
		return turn_order_next(turn_segment);
	turn_segment->owner = TURN_NOBODY;
	return TURN_NOBODY;
}

static void go_on(void)
{
	uint32_t next = next_one();

	if (next == slot) {
		turn_end_with_launcher();
		turn_self()->state = TURN_RUNS;
		return;
	}
	give(next);
	turn_take();
}

void turn_pass(void)
{
	if (turn_self()->keeps)
		return;
	turn_self()->state = TURN_READY;
	turn_self()->passed = true;
	go_on();
}

/* Was it only for a timer of the process, which was none of this thread's business? */
static bool goes_on_waiting(enum turn_state state, uint64_t deadline, bool is_poll)
{
	const struct turn_thread *self = turn_self();

	if (self->woken || self->interrupted || turn_order_passed(turn_segment, deadline) || is_poll)
		return false;
	return state != TURN_DESCRIPTORS || self->looked == turn_segment->changes;
}

/* It has waited again and again until its time was over, and in between nothing came of what it did. */
static bool ticks(const struct turn_thread *self)
{
	return self->ticks >= MANY_TICKS && self->then_next == TURN_MOVES && !self->held;
}

static uint64_t stretch(const struct turn_thread *self, uint64_t deadline)
{
	uint64_t rare;

	if (deadline == TURN_NEVER || !ticks(self))
		return deadline;
	rare = turn_segment->now + turn_order_tick_length(turn_segment, self);
	return rare > deadline ? rare : deadline;
}

static void end_wait(struct turn_thread *self, uint64_t begin)
{
	if (self->woken || self->held)
		return;
	self->ticks++;
	/* Who waits for so long lets time go on, and need not wait longer each time. */
	if (turn_segment->now - begin >= LONG_WAIT_NS)
		turn_forget_idle_calls(self);
}

bool turn_wait(enum turn_state state, uint64_t deadline)
{
	struct turn_thread *self = turn_self();
	const bool is_poll = self->then_next == TURN_POLLS && !self->held;
	const uint64_t begin = turn_segment->now, until = stretch(self, deadline);
	uint64_t timer;

	do {
		timer = turn_timers_next();
		turn_order_wait(turn_segment, self, state, until < timer ? until : timer);
		if (ticks(self))
			self->then = TURN_TICKS;
		/* A look may be left out, and the timer with it. */
		if (timer != TURN_NEVER && (timer <= until || self->then == TURN_LOOKS))
			self->then = TURN_MOVES;
		go_on();
		turn_timers_expire();
	} while (goes_on_waiting(state, until, is_poll));
	if (!is_poll)
		end_wait(self, begin);
	return self->woken;
}

void turn_leave(void)
{
	uint32_t left = slot;

	turn_segment->leaving = turn_self()->tid;
	turn_segment->leaving_pid = turn_segment->members[turn_member].pid;
	slot = TURN_NOBODY;
	turn_order_remove(turn_segment, left);
	give(next_one());
}

void turn_give_to_launcher(void)
{
	turn_self()->state = TURN_READY;
	turn_segment->owner = TURN_NOBODY;
	give(TURN_NOBODY);
}

void turn_pass_to_launcher(void)
{
	turn_give_to_launcher();
	turn_take();
}

/* The launcher reaps the process first: so its descriptors are closed at one place of the order. */
void turn_end_member(void)
{
	slot = TURN_NOBODY;
	turn_order_remove_member(turn_segment, turn_member);
	turn_segment->ended = turn_member + 1;
	turn_segment->owner = TURN_NOBODY;
	give(TURN_NOBODY);
}
