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
#include "spin.h"
#include "threads.h"
#include "tsc.h"

/* What the program has set. */
static struct turn_sigaction of_segv, of_trap, of_asking;

/* In a handler of its own for SIGSEGV, which is blocked: the counter would end it. */
static POLYCM_THREAD_LOCAL bool reads_counter;

static struct turn_sigaction *action_of(int signal)
{
	switch (signal) {
	case SIGSEGV:
		return &of_segv;
	case SIGTRAP:
		return &of_trap;
	case TURN_ASK_SIGNAL:
		return &of_asking;
	}
	return NULL;
}

const struct turn_sigaction *turn_faults_action_of(int signal)
{
	return action_of(signal);
}

static bool has_handler(const struct turn_sigaction *action)
{
	return (uintptr_t)action->handler > (uintptr_t)SIG_IGN;
}

void turn_faults_clear(void)
{
	struct turn_sigaction *all[] = { &of_segv, &of_trap, &of_asking };

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		if (has_handler(all[i]))
			*all[i] = (struct turn_sigaction){ .flags = 0 };
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

static bool is_own(int signal, const siginfo_t *info, ucontext_t *context)
{
	switch (signal) {
	case SIGSEGV:
		return info->si_code == SI_KERNEL && turn_tsc_read(context);
	case TURN_ASK_SIGNAL:
		return turn_spin_ask(info, context);
	}
	if (turn_spin_step(info, context))
		return true;
	/* A step is left over where a handler of the program was in between. */
	turn_spin_stop(context);
	return info->si_code == TRAP_TRACE && !has_handler(&of_trap);
}

static void on_fault(int signal, siginfo_t *info, void *context)
{
	if (!is_own(signal, info, context)) {
		turn_spin_stop(context);
		deliver(signal, info, context);
	} else if (signal == SIGSEGV) {
		turn_spin_arm();
	}
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
			 (flags & (SA_ONSTACK | SA_RESTART)) | turn_trap_on_stack(),
		.restorer = turn_raw_at.restorer,
		.mask = ~turn_signal_bit(SIGSYS),
	};

	return TURN_RAW(SYS_rt_sigaction, signal, &action, NULL, TURN_SIGSET_SIZE);
}

int turn_faults_install(void)
{
	static const int signals[] = { SIGSEGV, SIGTRAP, TURN_ASK_SIGNAL };
	static bool is_installed;
	long err = 0;

	for (size_t i = 0; !err && i < sizeof(signals) / sizeof(signals[0]); i++) {
		if (!is_installed)
			err = TURN_RAW(SYS_rt_sigaction, signals[i], NULL, action_of(signals[i]),
				       TURN_SIGSET_SIZE);
		if (!err)
			err = install(signals[i], has_handler(action_of(signals[i])) ?
				      action_of(signals[i])->flags : 0);
	}
	is_installed = true;
	return (int)err;
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
