/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * turn/trap.h - the system calls of a member's threads come to turn_call() instead of the kernel
 * (syscall user dispatch: prctl(2), PR_SET_SYSCALL_USER_DISPATCH; Linux 5.11; else by a filter).
 */
#ifndef TURN_TRAP_H
#define TURN_TRAP_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <ucontext.h>

#include "segment.h"

struct turn_call {
	long number;
	long arguments[6];
	ucontext_t *context;	/* of the thread that called; its signal mask counts when it goes on */
};

/* A result: the call is made again when the handlers of signals have run. */
#define TURN_RESTART (-512l)

/* The result for the program: 0 or more, or a negative errno.  In calls.c. */
long turn_call(struct turn_call *call);

/* Once in a process, for its first thread; 0 or a negative errno.  is_filtered: before exec, too. */
int turn_trap_start(bool is_filtered);
/* By a filter, which exec does not take away. */
bool turn_trap_is_filter(void);
/* From now on, or no longer, for this thread: its calls, and its reads of the time stamp counter. */
int turn_trap_begin(void);
void turn_trap_end(void);

/* As the kernel has it, which the C library's is not. */
struct turn_sigaction {
	void (*handler)(int signal, siginfo_t *info, void *context);
	unsigned long flags;
	void (*restorer)(void);
	uint64_t mask;
};
#define TURN_SIGSET_SIZE 8
/* That handler of SIGSYS. */
struct turn_sigaction turn_trap_action(void (*handler)(int signal, siginfo_t *info, void *context));
#define TURN_SA_RESTORER 0x04000000ul

/*
 * A thread has that stack for handlers from now on.  Handlers of ours run there, too, if all such stacks
 * are large: a program may have them because its own stacks are as small as goroutines'.
 */
void turn_trap_note_stack(const stack_t *stack);
/* SA_ONSTACK, or 0. */
unsigned long turn_trap_on_stack(void);

static inline uint64_t turn_signal_bit(int signal)
{
	return UINT64_C(1) << (signal - 1);
}

/* Those of calls and of instructions (faults.h), which no program blocks. */
#define TURN_OWN_SIGNALS                                                                           \
	(turn_signal_bit(SIGSYS) | turn_signal_bit(SIGSEGV) | turn_signal_bit(SIGTRAP) |           \
	 turn_signal_bit(TURN_ASK_SIGNAL))

/* rt_sigprocmask(), for when the handler returns. */
long turn_trap_mask(struct turn_call *call);

#endif
