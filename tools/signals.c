/* SPDX-License-Identifier: BSD-2-Clause */
/* signals.c - see polycm.h. */
#include "config.h"

#include <signal.h>

#include "polycm.h"

/* Where SIGCHLD is ignored, the kernel buries children, and their statuses are lost. */
void tool_signals_of_children(void)
{
	sigset_t set;

	signal(SIGCHLD, SIG_DFL);
	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	sigprocmask(SIG_UNBLOCK, &set, NULL);
}

bool tool_outlives_terminal(void)
{
	struct sigaction action;

	return !sigaction(SIGHUP, NULL, &action) && action.sa_handler == SIG_IGN;
}

/* The C library keeps some signals for itself, and says so. */
void tool_signals_as_usual(void)
{
	sigset_t none;

	for (int i = 1; i <= SIGRTMAX; i++)
		signal(i, SIG_DFL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
}
