/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * system_counter.c - does the processor's time stamp counter fault where the kernel is asked for it?
 * Members' does (turn/tsc.h).  On some virtual machines it is read all the same.
 */
#include "config.h"

#include <signal.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <ucontext.h>

#include "system.h"

#ifdef __x86_64__
#define LENGTH 2	/* of the instruction */

static volatile sig_atomic_t has_faulted;

static void on_fault(int signal, siginfo_t *info, void *context)
{
	ucontext_t *at = context;

	(void)signal;
	(void)info;
	has_faulted = 1;
	at->uc_mcontext.gregs[REG_RIP] += LENGTH;
}

static bool faults(void)
{
	struct sigaction action = { .sa_sigaction = on_fault, .sa_flags = SA_SIGINFO }, was;

	has_faulted = 0;
	if (sigaction(SIGSEGV, &action, &was))
		return false;
	if (!prctl(PR_SET_TSC, PR_TSC_SIGSEGV))
		__asm__ volatile("rdtsc" : : : "rax", "rdx");
	prctl(PR_SET_TSC, PR_TSC_ENABLE);
	sigaction(SIGSEGV, &was, NULL);
	return has_faulted;
}
#else
static bool faults(void)
{
	return false;
}
#endif

void system_tell_counter(void)
{
	if (!faults())
		tool_error("run: the processor's time stamp counter cannot be caught here: what reads "
			   "it is not the same in each run");
}
