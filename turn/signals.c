/* SPDX-License-Identifier: BSD-2-Clause */
/* turn/signals.c - see signals.h. */
#include "config.h"

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "clock.h"
#include "descriptors.h"
#include "hand.h"
#include "order.h"
#include "pointers.h"
#include "raw.h"
#include "signals.h"
#include "tell.h"
#include "threads.h"

static uint64_t bit(int signal)
{
	return UINT64_C(1) << (signal - 1);
}

static uint64_t pending(void)
{
	uint64_t set = 0;

	TURN_RAW(SYS_rt_sigpending, &set, TURN_SIGSET_SIZE);
	return set;
}

/* What a signal does. */
enum effect { NOTHING, ENDS, RUNS_HANDLER, RUNS_HANDLER_AND_RESTARTS };

static enum effect effect_of(int signal)
{
	struct turn_sigaction action = { .flags = 0 };
	uintptr_t handler;

	TURN_RAW(SYS_rt_sigaction, signal, NULL, &action, TURN_SIGSET_SIZE);
	handler = (uintptr_t)action.handler;
	if (handler == (uintptr_t)SIG_IGN)
		return NOTHING;
	/* The kernel keeps what is blocked, though it will throw it away. */
	if (handler == (uintptr_t)SIG_DFL)
		return signal == SIGCHLD || signal == SIGURG || signal == SIGWINCH ||
		       signal == SIGCONT ? NOTHING : ENDS;
	return action.flags & SA_RESTART ? RUNS_HANDLER_AND_RESTARTS : RUNS_HANDLER;
}

/* 0, -EINTR or TURN_RESTART, for the pending signals that the mask lets through. */
static long result_of(uint64_t mask)
{
	uint64_t there = pending() & ~mask;
	long result = 0;

	for (int signal = 1; there && signal <= 64; signal++) {
		enum effect effect = there & bit(signal) ? effect_of(signal) : NOTHING;

		if (effect == RUNS_HANDLER)
			return -EINTR;
		if (effect != NOTHING)
			result = TURN_RESTART;
	}
	return result;
}

static uint64_t mask_of(const struct turn_call *call)
{
	uint64_t mask;

	memcpy(&mask, &call->context->uc_sigmask, sizeof(mask));
	return mask;
}

long turn_signal_result(const struct turn_call *call, bool can_restart)
{
	long result = result_of(mask_of(call));

	return result && !can_restart ? -EINTR : result;
}

uint64_t turn_signal_mask(const void *mask)
{
	uint64_t copy;

	memcpy(&copy, mask, sizeof(copy));
	return copy & ~bit(SIGSYS);
}

long turn_signal_result_with(const struct turn_call *call, const void *mask)
{
	uint64_t own;

	if (!mask)
		return turn_signal_result(call, false);
	own = turn_signal_mask(mask);
	if (!result_of(own))
		return 0;
	return TURN_RAW(SYS_rt_sigsuspend, &own, TURN_SIGSET_SIZE);
}

/* Whoever waits looks whether a signal is for it: which thread gets it, the kernel decides. */
static void interrupt(long pid)
{
	for (uint32_t i = 0; i < turn_segment->num_members; i++)
		if (pid <= 0 || turn_segment->members[i].pid == pid)
			turn_order_interrupt(turn_segment, i);
}

static uint32_t member_of_thread(long tid)
{
	for (uint32_t i = 0; i < turn_segment->num_threads; i++)
		if (turn_segment->threads[i].tid == tid && turn_segment->threads[i].state != TURN_GONE)
			return turn_segment->threads[i].member;
	return TURN_NOBODY;
}

/* Its end comes at this place of the order: the launcher waits for it. */
static void await_death(long pid)
{
	for (uint32_t i = 0; i < turn_segment->num_members; i++) {
		const struct turn_member *member = &turn_segment->members[i];

		if (member->pid != pid || i == turn_member || !turn_is_alive(member))
			continue;
		turn_segment->victim = i + 1;
		turn_pass_to_launcher();
		return;
	}
}

/*
 * SIGSTOP and SIGCONT to a process.  The kernel would stop it though it had the turn, so it is not
 * asked: the process has no turn until it is to continue.  False: it is no member.
 */
static bool stop_or_continue(long pid, bool stop)
{
	for (uint32_t i = 0; i < turn_segment->num_members; i++) {
		struct turn_member *member = &turn_segment->members[i];

		if (member->pid != pid || (member->life != TURN_STARTS && member->life != TURN_LIVES))
			continue;
		member->stopped = stop;
		if (i == turn_member && stop)
			turn_pass();
		return true;
	}
	return false;
}

long turn_kill(const struct turn_call *call)
{
	uint32_t member;
	long result;

	if (call->number == SYS_kill && call->arguments[1] == SIGSTOP &&
	    stop_or_continue(call->arguments[0], true))
		return 0;
	if (call->number == SYS_kill && call->arguments[1] == SIGCONT)
		stop_or_continue(call->arguments[0], false);
	result = turn_through(call);

	if (call->number == SYS_kill && call->arguments[1] == SIGKILL && !result)
		await_death(call->arguments[0]);
	if (call->number == SYS_tkill) {
		member = member_of_thread(call->arguments[0]);
		if (member != TURN_NOBODY)
			turn_order_interrupt(turn_segment, member);
	} else {
		interrupt(call->arguments[0]);
	}
	turn_changed();
	return result;
}

/* What the program thinks that SIGSYS does. */
static struct turn_sigaction of_sigsys;

static long set_sigsys(const struct turn_sigaction *given, void *ret)
{
	const struct turn_sigaction was = of_sigsys;

	if (given && turn_spawned() == TURN_NOBODY)
		of_sigsys = *given;
	if ((uintptr_t)of_sigsys.handler > (uintptr_t)SIG_IGN)
		turn_tell(TURN_HANDLES_SIGSYS, NULL);
	return turn_give(ret, &was, sizeof(was));
}

/* No handler of the program may block SIGSYS while it runs. */
long turn_signal_action(const struct turn_call *call)
{
	const struct turn_sigaction *given = (const struct turn_sigaction *)call->arguments[1];
	struct turn_sigaction action;

	if (call->arguments[0] == SIGSYS)
		return set_sigsys(given, (void *)call->arguments[2]);
	if (!given)
		return turn_through(call);
	action = *given;
	action.mask &= ~bit(SIGSYS);
	return TURN_RAW(SYS_rt_sigaction, call->arguments[0], &action, call->arguments[2],
			call->arguments[3]);
}

long turn_signal_wait(const struct turn_call *call)
{
	uint64_t mask;

	if (call->number == SYS_pause)
		mask = mask_of(call);
	else
		mask = turn_signal_mask((const void *)call->arguments[0]);
	while (!result_of(mask))
		turn_wait(TURN_DESCRIPTORS, TURN_NEVER);
	/* Its handler runs in this call. */
	return TURN_RAW(SYS_rt_sigsuspend, &mask, TURN_SIGSET_SIZE);
}

long turn_signal_take(const struct turn_call *call)
{
	const uint64_t deadline = turn_clock_after((const struct timespec *)call->arguments[2]);
	struct turn_call now = *call;
	struct timespec none = { 0 };
	long result;

	now.arguments[2] = (long)&none;
	for (;;) {
		result = turn_through(&now);
		if (result != -EAGAIN || turn_order_passed(turn_segment, deadline))
			return result;
		if (turn_signal_result(call, false))
			return -EINTR;
		turn_wait(TURN_DESCRIPTORS, deadline);
	}
}
