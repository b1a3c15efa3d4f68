/* SPDX-License-Identifier: BSD-2-Clause */
/* caller.c - see polycm.h. */
#include "config.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include "polycm.h"

/* What is closed would be a file of ours.  It reads as empty, and nothing can be written to it. */
void tool_open_standard_files(void)
{
	int fd;

	do
		fd = open("/dev/null", O_RDONLY);
	while (fd >= 0 && fd <= STDERR_FILENO);
	if (fd >= 0)
		close(fd);
}

/* Where SIGCHLD is ignored, the kernel buries children, and their statuses are lost. */
void tool_prepare_children(void)
{
	sigset_t set;

	tool_open_standard_files();
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
