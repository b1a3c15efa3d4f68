/* SPDX-License-Identifier: BSD-2-Clause */
/* turn/faults.c - see faults.h. */
#include "config.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "faults.h"
#include "hand.h"
#include "include/thread_local.h"
#include "pointers.h"
#include "raw.h"
#include "threads.h"
#include "tsc.h"

/* What the program has set. */
static struct turn_sigaction of_segv;

/* In a handler of its own for SIGSEGV, which is blocked: the counter would end it. */
static POLYCM_THREAD_LOCAL bool reads_counter;

static struct turn_sigaction *action_of(int signal)
{
	return signal == SIGSEGV ? &of_segv : NULL;
}

const struct turn_sigaction *turn_faults_action_of(int signal)
{
	return action_of(signal);
}

static bool has_handler(const struct turn_sigaction *action)
{
	return (uintptr_t)action->handler > (uintptr_t)SIG_IGN;
}

/* ------------------------------------------------------------------------
 * What is the program's.
 */

static bool is_sent(const siginfo_t *info)
{
	return info->si_code <= 0;
}

/* By the signal, with a core as ever.  Nobody else of the process runs meanwhile. */
static void die(int signal, siginfo_t *info)
{
	const struct turn_sigaction action = { .flags = 0 };
	long process, thread;

	TURN_RAW(SYS_rt_sigaction, signal, &action, NULL, TURN_SIGSET_SIZE);
	/* The instruction faults again. */
	if (signal == SIGSEGV && !is_sent(info))
		return;
	process = TURN_RAW(SYS_getpid);
	thread = TURN_RAW(SYS_gettid);
	TURN_RAW(SYS_rt_tgsigqueueinfo, process, thread, signal, info);
}

static void call_handler(int signal, siginfo_t *info, ucontext_t *context)
{
	struct turn_sigaction *set = action_of(signal);
	const struct turn_sigaction action = *set;
	uint64_t mask, now;

	memcpy(&mask, &context->uc_sigmask, sizeof(mask));
	mask |= action.mask & ~TURN_OWN_SIGNALS;
	if (!(action.flags & SA_NODEFER))
		mask |= turn_signal_bit(signal);
	if (action.flags & SA_RESETHAND)
		*set = (struct turn_sigaction){ .flags = action.flags };
	if (mask & turn_signal_bit(SIGSEGV)) {
		reads_counter = true;
		turn_tsc_end();
	}
	TURN_RAW(SYS_rt_sigprocmask, SIG_SETMASK, &mask, &now, TURN_SIGSET_SIZE);
	action.handler(signal, info, context);
	TURN_RAW(SYS_rt_sigprocmask, SIG_SETMASK, &now, NULL, TURN_SIGSET_SIZE);
	turn_faults_note_mask(0);
}

void turn_faults_note_mask(uint64_t mask)
{
	if (!reads_counter || mask & turn_signal_bit(SIGSEGV))
		return;
	reads_counter = false;
	turn_tsc_begin();
}

static void deliver(int signal, siginfo_t *info, ucontext_t *context)
{
	const struct turn_sigaction *action = action_of(signal);

	if (has_handler(action))
		call_handler(signal, info, context);
	else if ((uintptr_t)action->handler == (uintptr_t)SIG_DFL || !is_sent(info))
		die(signal, info);
}

static void on_fault(int signal, siginfo_t *info, void *context)
{
	if (info->si_code != SI_KERNEL || !turn_tsc_read(context))
		deliver(signal, info, context);
}

/* ------------------------------------------------------------------------
 * Setting.
 */

/* On the stack, and with calls restarted, as the program has it. */
static long install(int signal, unsigned long flags)
{
	const struct turn_sigaction action = {
		.handler = on_fault,
		.flags = SA_SIGINFO | SA_NODEFER | TURN_SA_RESTORER |
			 (flags & (SA_ONSTACK | SA_RESTART)),
		.restorer = turn_raw_at.restorer,
		.mask = ~turn_signal_bit(SIGSYS),
	};

	return TURN_RAW(SYS_rt_sigaction, signal, &action, NULL, TURN_SIGSET_SIZE);
}

int turn_faults_install(void)
{
	long err = TURN_RAW(SYS_rt_sigaction, SIGSEGV, NULL, &of_segv, TURN_SIGSET_SIZE);

	return (int)(err ? err : install(SIGSEGV, 0));
}

long turn_faults_action(const struct turn_call *call)
{
	const struct turn_sigaction *given = (const struct turn_sigaction *)call->arguments[1];
	struct turn_sigaction *action = action_of((int)call->arguments[0]);
	const struct turn_sigaction was = *action;
	long err;

	if (call->arguments[3] != TURN_SIGSET_SIZE)
		return -EINVAL;
	/* A child that shares its parent's memory has signals of its own, until it calls exec. */
	if (given && turn_spawned() == TURN_NOBODY) {
		err = install((int)call->arguments[0], has_handler(given) ? given->flags : 0);
		if (err)
			return err;
		*action = *given;
	}
	return turn_give((void *)call->arguments[2], &was, sizeof(was));
}
