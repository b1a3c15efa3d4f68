/* SPDX-License-Identifier: BSD-2-Clause */
/* caller.c - see polycm.h. */
#include "config.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "polycm.h"

#define SIZE_OF_SIGNALS ((NSIG - 1) / 8)	/* the system's sigset_t */

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

/*
 * The system is asked: the C library does not let go of the two signals that it has for itself, which
 * its posix_spawn() ignores in a child.
 */
void tool_signals_as_usual(void)
{
	static const unsigned long usual[8];	/* the system's struct sigaction: all is 0 */
	sigset_t none;

	for (int i = 1; i <= SIGRTMAX; i++)
		syscall(SYS_rt_sigaction, i, usual, NULL, SIZE_OF_SIGNALS);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
}
