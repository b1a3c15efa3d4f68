/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * system_signals.c - a member of a system, for system_rare.sh: one case of signals.  All goes as on
 * Linux.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#include "member.h"

static void handle(int signal, void (*handler)(int signal), int flags)
{
	const struct sigaction action = { .sa_handler = handler, .sa_flags = flags };

	CHECK(!sigaction(signal, &action, NULL));
}

/* ------------------------------------------------------------------------
 * Stacks of handlers.
 */

static char *stack_of_handlers;
static volatile bool was_there;

static void look_where(int signal)
{
	const uintptr_t here = (uintptr_t)__builtin_frame_address(0);

	(void)signal;
	was_there = here - (uintptr_t)stack_of_handlers < (uintptr_t)SIGSTKSZ;
}

static void *set_stacks(void *arg)
{
	stack_t stack = { .ss_size = SIGSTKSZ }, is;

	handle(SIGUSR1, look_where, SA_ONSTACK);
	for (int i = 0; i < 3; i++) {
		stack.ss_sp = stack_of_handlers = malloc(stack.ss_size);
		CHECK(stack_of_handlers && !sigaltstack(&stack, NULL));
		getppid();
		CHECK(!sigaltstack(NULL, &is) && is.ss_sp == stack.ss_sp && !is.ss_flags);
		was_there = false;
		CHECK(!raise(SIGUSR1) && was_there);
	}
	stack.ss_flags = SS_DISABLE;
	CHECK(!sigaltstack(&stack, &is) && is.ss_sp == stack_of_handlers);
	CHECK(!raise(SIGUSR1) && !was_there);
	return arg;
}

static void stacks(void)
{
	pthread_t thread;

	set_stacks(NULL);
	CHECK(!pthread_create(&thread, NULL, set_stacks, NULL) && !pthread_join(thread, NULL));
}

static const struct member_case cases[] = {
	{ "stacks", stacks },
};

int main(int argc, char **argv)
{
	return member_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
