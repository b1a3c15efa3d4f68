/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * turn/trap.c - see trap.h.
 *
 * The handler runs with all signals blocked: those of the program come when it returns, so at
 * places that the order of turns decides.  SIGSYS itself is never blocked, in no thread: a call
 * that is trapped then would end the process.
 */
#include "config.h"

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/prctl.h>

#include "beside.h"
#include "descriptors.h"
#include "faults.h"
#include "filter.h"
#include "include/thread_local.h"
#include "pointers.h"
#include "raw.h"
#include "spin.h"
#include "threads.h"
#include "trap.h"
#include "tsc.h"

#define CALL_LENGTH 2		/* of the instruction */
#define LEAST_STACK 16384u	/* on which a handler of ours, and one of the program, have room */

/* Linux 5.11. */
#ifndef PR_SET_SYSCALL_USER_DISPATCH
#define PR_SET_SYSCALL_USER_DISPATCH 59
#define PR_SYS_DISPATCH_ON 1
#define SYSCALL_DISPATCH_FILTER_ALLOW 0
#define SYSCALL_DISPATCH_FILTER_BLOCK 1
#endif
/* si_code; not in the C library's headers yet. */
#ifndef SYS_USER_DISPATCH
#define SYS_USER_DISPATCH 2
#endif
#ifndef SYS_SECCOMP
#define SYS_SECCOMP 1
#endif

static bool is_filter;
static POLYCM_THREAD_LOCAL volatile unsigned char selector;

static void on_call(int signal, siginfo_t *info, void *context)
{
	ucontext_t *uc = context;
	greg_t *registers = uc->uc_mcontext.gregs;
	struct turn_call call = {
		.number = info->si_syscall,
		.arguments = { registers[REG_RDI], registers[REG_RSI], registers[REG_RDX],
			       registers[REG_R10], registers[REG_R8], registers[REG_R9] },
		.context = uc,
	};

	long result;

	(void)signal;
	/* Somebody sent it. */
	if (info->si_code != (is_filter ? SYS_SECCOMP : SYS_USER_DISPATCH))
		return;
	/* The end of a handler of the program: its frame is where the stack pointer is. */
	if (call.number == SYS_rt_sigreturn) {
		registers[REG_RIP] = (greg_t)turn_raw_at.restorer;
		return;
	}
	if (is_filter && turn_beside_is_caller()) {
		registers[REG_RAX] = turn_through(&call);
		return;
	}
	result = turn_call(&call);
	if (result == TURN_RESTART) {
		/* After the handler of the signal that interrupted it. */
		registers[REG_RIP] -= CALL_LENGTH;
		result = call.number;
	}
	registers[REG_RAX] = result;
	turn_spin_arm();
}

static unsigned long on_stack;
static bool has_small_stack;

unsigned long turn_trap_on_stack(void)
{
	return on_stack;
}

struct turn_sigaction turn_trap_action(void (*handler)(int signal, siginfo_t *info, void *context))
{
	return (struct turn_sigaction){
		.handler = handler,
		.flags = SA_SIGINFO | SA_NODEFER | SA_RESTART | TURN_SA_RESTORER | on_stack,
		.restorer = turn_raw_at.restorer,
		.mask = ~turn_signal_bit(SIGSYS),
	};
}

static int install(void)
{
	const struct turn_sigaction action = turn_trap_action(on_call);
	int err = turn_faults_install();

	if (err)
		return err;
	return (int)TURN_RAW(SYS_rt_sigaction, SIGSYS, &action, NULL, TURN_SIGSET_SIZE);
}

void turn_trap_note_stack(const stack_t *stack)
{
	const unsigned long was = on_stack;

	if (turn_spawned() != TURN_NOBODY || stack->ss_flags & SS_DISABLE)
		return;
	has_small_stack = has_small_stack || stack->ss_size < LEAST_STACK;
	on_stack = has_small_stack ? 0 : SA_ONSTACK;
	if (on_stack != was)
		install();
}

static int begin_filter(bool is_inherited)
{
	int err;

	is_filter = true;
	err = turn_filter_prepare(is_inherited);
	if (!err)
		err = install();
	if (!err)
		err = turn_trap_begin();
	if (!err && !is_inherited)
		err = turn_filter_install();
	return err;
}

int turn_trap_start(bool is_filtered)
{
	int err;

	if (is_filtered)
		return begin_filter(true);
	err = install();
	if (!err)
		err = turn_trap_begin();
	return err ? begin_filter(false) : 0;
}

bool turn_trap_is_filter(void)
{
	return is_filter;
}

int turn_trap_begin(void)
{
	uint64_t mask = TURN_OWN_SIGNALS;
	long err;

	TURN_RAW(SYS_rt_sigprocmask, SIG_UNBLOCK, &mask, NULL, TURN_SIGSET_SIZE);
	turn_tsc_begin();
	turn_spin_allow();
	if (is_filter)
		return 0;
	selector = SYSCALL_DISPATCH_FILTER_BLOCK;
	err = TURN_RAW(SYS_prctl, PR_SET_SYSCALL_USER_DISPATCH, PR_SYS_DISPATCH_ON, turn_raw_begin,
		       turn_raw_end - turn_raw_begin, &selector);
	if (err) {
		selector = SYSCALL_DISPATCH_FILTER_ALLOW;
		return (int)err;
	}
	return 0;
}

void turn_trap_end(void)
{
	selector = SYSCALL_DISPATCH_FILTER_ALLOW;
}

long turn_trap_mask(struct turn_call *call)
{
	const uint64_t *set = (const uint64_t *)call->arguments[1];
	uint64_t *old = (uint64_t *)call->arguments[2], mask, is;

	if (call->arguments[3] != TURN_SIGSET_SIZE)
		return -EINVAL;
	memcpy(&is, &call->context->uc_sigmask, sizeof(is));
	mask = is;
	if (set) {
		switch (call->arguments[0]) {
		case SIG_BLOCK:
			mask |= *set;
			break;
		case SIG_UNBLOCK:
			mask &= ~*set;
			break;
		case SIG_SETMASK:
			mask = *set;
			break;
		default:
			return -EINVAL;
		}
		turn_faults_note_mask(mask);
		/* Where one is blocked, it is by its own handler. */
		mask &= ~((TURN_OWN_SIGNALS & ~is) | turn_signal_bit(SIGKILL) |
			  turn_signal_bit(SIGSTOP));
		memcpy(&call->context->uc_sigmask, &mask, sizeof(mask));
	}
	return turn_give(old, &is, sizeof(is));
}
