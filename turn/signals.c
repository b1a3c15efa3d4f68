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
#include "raw.h"
#include "signals.h"

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

/* The kernel keeps what is blocked, though it will throw it away. */
static bool is_ignored(int signal)
{
	struct turn_sigaction action = { .flags = 0 };

	uintptr_t handler;

	TURN_RAW(SYS_rt_sigaction, signal, NULL, &action, TURN_SIGSET_SIZE);
	handler = (uintptr_t)action.handler;
	if (handler == (uintptr_t)SIG_IGN)
		return true;
	return handler == (uintptr_t)SIG_DFL && (signal == SIGCHLD || signal == SIGURG ||
						       signal == SIGWINCH || signal == SIGCONT);
}

/* Those of the pending ones that the mask lets through. */
static bool interrupts(uint64_t mask)
{
	uint64_t there = pending() & ~mask;

	for (int signal = 1; there && signal <= 64; signal++)
		if (there & bit(signal) && !is_ignored(signal))
			return true;
	return false;
}

bool turn_signal_interrupts(const struct turn_call *call)
{
	uint64_t mask;

	memcpy(&mask, &call->context->uc_sigmask, sizeof(mask));
	return interrupts(mask);
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

long turn_kill(const struct turn_call *call)
{
	long result = turn_through(call);
	uint32_t member;

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

/* No handler of the program may block SIGSYS while it runs. */
long turn_signal_action(const struct turn_call *call)
{
	const struct turn_sigaction *given = (const struct turn_sigaction *)call->arguments[1];
	struct turn_sigaction action;

	if (call->arguments[0] == SIGSYS)
		return 0;
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
		memcpy(&mask, &call->context->uc_sigmask, sizeof(mask));
	else
		memcpy(&mask, (const void *)call->arguments[0], sizeof(mask));
	while (!interrupts(mask))
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
		turn_wait(TURN_DESCRIPTORS, deadline);
	}
}
