/* SPDX-License-Identifier: BSD-2-Clause */
/* turn/signals.c - see signals.h. */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <sys/ioctl.h>

#include "clock.h"
#include "descriptors.h"
#include "faults.h"
#include "hand.h"
#include "order.h"
#include "pointers.h"
#include "raw.h"
#include "signals.h"
#include "stops.h"
#include "tell.h"
#include "threads.h"
#include "timers.h"

#define SMALLEST_STACK 2048u	/* MINSIGSTKSZ, as the kernel has it */
#define TURN_SS_AUTODISARM (1 << 31)	/* not in the C library's headers */

static uint64_t pending(void)
{
	uint64_t set = 0;

	TURN_RAW(SYS_rt_sigpending, &set, TURN_SIGSET_SIZE);
	return set & ~turn_signal_bit(TURN_ASK_SIGNAL);
}

/* What a signal does. */
enum effect { NOTHING, ENDS, STOPS, RUNS_HANDLER, RUNS_HANDLER_AND_RESTARTS };

static enum effect effect_of(int signal)
{
	struct turn_sigaction action = { .flags = 0 };
	uintptr_t handler;

	if (turn_faults_action_of(signal))
		action = *turn_faults_action_of(signal);
	else
		TURN_RAW(SYS_rt_sigaction, signal, NULL, &action, TURN_SIGSET_SIZE);
	handler = (uintptr_t)action.handler;
	if (handler == (uintptr_t)SIG_IGN)
		return NOTHING;
	/* The kernel keeps what is blocked, though it will throw it away. */
	if (handler == (uintptr_t)SIG_DFL && turn_stops_by(signal))
		return STOPS;
	if (handler == (uintptr_t)SIG_DFL)
		return signal == SIGCHLD || signal == SIGURG || signal == SIGWINCH ||
		       signal == SIGCONT ? NOTHING : ENDS;
	return action.flags & SA_RESTART ? RUNS_HANDLER_AND_RESTARTS : RUNS_HANDLER;
}

/* The first one that is pending, and let through, with that effect; 0: none. */
static int first_of(uint64_t mask, enum effect effect)
{
	const uint64_t there = pending() & ~mask;

	for (int signal = 1; there && signal <= 64; signal++)
		if (there & turn_signal_bit(signal) && effect_of(signal) == effect)
			return signal;
	return 0;
}

/* What stops the process does so here, and not where it has the turn. */
static void stop(uint64_t mask)
{
	int signal;

	while ((signal = first_of(mask, STOPS)))
		turn_stops_now(signal);
}

/* 0, -EINTR or TURN_RESTART, for the pending signals that the mask lets through. */
static long result_of(uint64_t mask)
{
	long result = 0;
	uint64_t there;

	stop(mask);
	there = pending() & ~mask;
	for (int signal = 1; there && signal <= 64; signal++) {
		enum effect effect = there & turn_signal_bit(signal) ? effect_of(signal) : NOTHING;

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

void turn_signal_look(const struct turn_call *call)
{
	stop(mask_of(call));
}

long turn_signal_read_behind(const struct turn_call *call, int fd)
{
	const struct turn_call all = {
		.number = SYS_kill, .arguments = { 0, SIGTTIN }, .context = call->context,
	};
	const uint64_t mask = mask_of(call);
	int32_t group = 0;

	/* The other end of a terminal says so that nobody has that open. */
	if (!TURN_RAW(SYS_ioctl, fd, TIOCGPTN, &group))
		return -EIO;
	if (TURN_RAW(SYS_ioctl, fd, TIOCGPGRP, &group) || group == TURN_RAW(SYS_getpgrp) ||
	    mask & turn_signal_bit(SIGTTIN) || effect_of(SIGTTIN) == NOTHING)
		return -EIO;
	turn_kill(&all);
	if (first_of(mask, STOPS) == SIGTTIN && !turn_stops_now(SIGTTIN))
		return -EIO;
	return result_of(mask) == -EINTR ? -EINTR : TURN_RESTART;
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
	return copy & ~TURN_OWN_SIGNALS;
}

/* Handlers of the program run meanwhile.  TURN_ASK_SIGNAL is blocked: it would end the wait. */
static long suspend(uint64_t mask)
{
	mask |= turn_signal_bit(TURN_ASK_SIGNAL);
	return TURN_RAW(SYS_rt_sigsuspend, &mask, TURN_SIGSET_SIZE);
}

long turn_signal_result_with(const struct turn_call *call, const void *mask)
{
	uint64_t own;

	if (!mask)
		return turn_signal_result(call, false);
	own = turn_signal_mask(mask);
	if (!result_of(own))
		return 0;
	return suspend(own);
}

/* ------------------------------------------------------------------------
 * Sent signals.
 */

#define OF_GROUP 4u	/* of pidfd_send_signal(): PIDFD_SIGNAL_PROCESS_GROUP */

static long signal_of(const struct turn_call *call)
{
	switch (call->number) {
	case SYS_tgkill:
	case SYS_rt_tgsigqueueinfo:
		return call->arguments[2];
	}
	return call->arguments[1];
}

static uint32_t member_of_thread(long tid)
{
	for (uint32_t i = 0; i < turn_segment->num_threads; i++)
		if (turn_segment->threads[i].tid == tid && turn_segment->threads[i].state != TURN_GONE)
			return turn_segment->threads[i].member;
	return TURN_NOBODY;
}

/* -1: it has ended, or is no descriptor of a process, or nobody knows. */
static long pid_of_descriptor(int fd)
{
	char lines[512];
	uint64_t pid;

	if (!turn_descriptor_info(fd, lines, sizeof(lines)) ||
	    !turn_descriptor_number(lines, "Pid", &pid))
		return -1;
	return (long)pid;
}

/* As kill() has it: of a process, of a group (0: the own one, or negative), or -1: all others. */
static bool is_meant(uint32_t member, long pid)
{
	const long own = turn_segment->members[member].pid;

	if (pid > 0)
		return own == pid;
	if (pid == -1)
		return member != turn_member;
	return TURN_RAW(SYS_getpgid, own) == (pid ? -pid : TURN_RAW(SYS_getpgid, 0));
}

static long whom(const struct turn_call *call)
{
	uint32_t member;
	long pid;

	switch (call->number) {
	case SYS_tkill:
		member = member_of_thread(call->arguments[0]);
		return member == TURN_NOBODY ? 0 : turn_segment->members[member].pid;
	case SYS_pidfd_send_signal:
		pid = pid_of_descriptor((int)call->arguments[0]);
		return pid > 0 && call->arguments[3] & OF_GROUP ? -pid : pid > 0 ? pid : 0;
	}
	return call->arguments[0];
}

/* The members that a signal comes to, one bit each. */
static uint64_t targets_of(const struct turn_call *call)
{
	const bool can_be_group = call->number == SYS_kill || call->number == SYS_pidfd_send_signal;
	const long pid = (int)whom(call);
	uint64_t targets = 0;

	if (pid <= 0 && (!can_be_group || (!pid && call->number != SYS_kill)))
		return 0;
	for (uint32_t i = 0; i < turn_segment->num_members; i++) {
		const struct turn_member *member = &turn_segment->members[i];

		if (turn_is_alive(member) && member->pid > 0 && is_meant(i, pid) &&
		    !TURN_RAW(SYS_kill, member->pid, 0))
			targets |= UINT64_C(1) << i;
	}
	return targets;
}

/*
 * Their ends come at this place of the order: the launcher waits for them.  It is told first, since
 * this process may be one of them.
 */
static long kill_all(const struct turn_call *call, uint64_t targets)
{
	long result;

	turn_segment->victims = targets;
	result = turn_through(call);
	if (result)
		turn_segment->victims = 0;
	else
		turn_pass_to_launcher();
	turn_changed();
	return result;
}

/* Whoever waits looks whether a signal is for it: which thread gets it, the kernel decides. */
long turn_kill(const struct turn_call *call)
{
	const uint64_t targets = targets_of(call);
	const long signal = signal_of(call);
	long result;

	if (targets && signal == SIGKILL)
		return kill_all(call, targets);
	if (targets && turn_stops_by((int)signal))
		turn_segment->sends_signals = true;
	if (targets && signal == SIGSTOP)
		result = turn_stops_send(call, targets);
	else if (targets && signal == SIGCONT)
		result = turn_stops_continue(call, targets);
	else
		result = turn_through(call);
	for (uint32_t i = 0; i < turn_segment->num_members; i++)
		if (targets >> i & 1)
			turn_order_interrupt(turn_segment, i);
	turn_changed();
	return result;
}

/* ------------------------------------------------------------------------
 * Handlers, and waiting.
 */

/* What the program thinks that SIGSYS does. */
static struct turn_sigaction of_sigsys;

static long set_sigsys(const struct turn_sigaction *given, void *ret)
{
	const struct turn_sigaction was = of_sigsys;

	if (given && turn_spawned() == TURN_NOBODY)
		of_sigsys = *given;
	turn_tell_handler((uintptr_t)of_sigsys.handler > (uintptr_t)SIG_IGN);
	return turn_give(ret, &was, sizeof(was));
}

/* No handler of the program may block signals of ours while it runs. */
long turn_signal_action(const struct turn_call *call)
{
	const struct turn_sigaction *given = (const struct turn_sigaction *)call->arguments[1];
	struct turn_sigaction action;

	if (call->arguments[0] == SIGSYS)
		return set_sigsys(given, (void *)call->arguments[2]);
	if (turn_faults_action_of((int)call->arguments[0]))
		return turn_faults_action(call);
	if (!given)
		return turn_through(call);
	action = *given;
	action.mask &= ~TURN_OWN_SIGNALS;
	return TURN_RAW(SYS_rt_sigaction, call->arguments[0], &action, call->arguments[2],
			call->arguments[3]);
}

void turn_signal_clear(void)
{
	const struct turn_sigaction none = { .flags = 0 };
	struct turn_sigaction action;

	turn_faults_clear();
	of_sigsys = none;
	for (int signal = 1; signal <= 64; signal++)
		if (signal != SIGSYS && !turn_faults_action_of(signal) &&
		    !TURN_RAW(SYS_rt_sigaction, signal, NULL, &action, TURN_SIGSET_SIZE) &&
		    (uintptr_t)action.handler > (uintptr_t)SIG_IGN)
			TURN_RAW(SYS_rt_sigaction, signal, &none, NULL, TURN_SIGSET_SIZE);
}

static bool is_on(const stack_t *stack, const struct turn_call *call)
{
	const uint64_t at = (uint64_t)call->context->uc_mcontext.gregs[REG_RSP];

	return !(stack->ss_flags & TURN_SS_AUTODISARM) && at > (uint64_t)stack->ss_sp &&
	       at - (uint64_t)stack->ss_sp <= stack->ss_size;
}

/*
 * The kernel takes the stack back to what it was when the call was caught: so what it was, and what
 * it is to be, is there.
 */
long turn_signal_stack(const struct turn_call *call)
{
	const stack_t *given = (const stack_t *)call->arguments[0];
	stack_t *now = &call->context->uc_stack, was = *now, next = { .ss_flags = SS_DISABLE };
	const bool is_used = is_on(&was, call);
	int mode;

	was.ss_flags = (was.ss_flags & TURN_SS_AUTODISARM) |
		       (!was.ss_size ? SS_DISABLE : is_used ? SS_ONSTACK : 0);
	if (given) {
		mode = given->ss_flags & ~TURN_SS_AUTODISARM;
		if (is_used)
			return -EPERM;
		if (mode != SS_DISABLE && mode != SS_ONSTACK && mode)
			return -EINVAL;
		if (mode != SS_DISABLE && given->ss_size < SMALLEST_STACK)
			return -ENOMEM;
		if (mode != SS_DISABLE)
			next = *given;
		*now = next;
		turn_trap_note_stack(&next);
	}
	return turn_give((void *)call->arguments[1], &was, sizeof(was));
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
	return suspend(mask);
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
		if (result > 0 && now.arguments[1])
			turn_timers_taken((siginfo_t *)now.arguments[1]);
		if (result != -EAGAIN || turn_order_passed(turn_segment, deadline))
			return result;
		if (turn_signal_result(call, false))
			return -EINTR;
		turn_wait(TURN_DESCRIPTORS, deadline);
	}
}
