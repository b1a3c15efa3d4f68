/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * system_counter.c - does the processor's time stamp counter fault where the kernel is asked for it?
 * Members' does (turn/tsc.h).  On some virtual machines it is read all the same.  And how fast it
 * counts, as programs find it in /proc/cpuinfo.
 */
#include "config.h"

#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
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
	sigset_t set;

	/* A fault while it is blocked ends the process. */
	sigemptyset(&set);
	sigaddset(&set, SIGSEGV);
	sigprocmask(SIG_UNBLOCK, &set, NULL);
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

/* A tick is a nanosecond.  What is shown otherwise is another number each time, on many machines. */
static void write_line(FILE *to, const char *line)
{
	const char *rate = strstr(line, " @ ");

	if (!strncmp(line, "cpu MHz", 7))
		fputs("cpu MHz\t\t: 1000.000\n", to);
	else if (rate && !strncmp(line, "model name", 10))
		fprintf(to, "%.*s @ 1.00GHz\n", (int)(rate - line), line);
	else
		fputs(line, to);
}

static bool write_rates(const char *path)
{
	FILE *from = fopen("/proc/cpuinfo", "re"), *to = fopen(path, "we");
	bool written = from && to;
	char *line = NULL;
	size_t size = 0;

	while (written && getline(&line, &size, from) > 0)
		write_line(to, line);
	free(line);
	if (from)
		fclose(from);
	if (to && fclose(to))
		written = false;
	return written;
}

void system_show_counter(const struct system *system)
{
	char *path;

	if (!faults())
		return;
	path = tool_printf("%s/shm/cpuinfo", system->folder);
	if (!write_rates(path) || mount(path, "/proc/cpuinfo", NULL, MS_BIND, NULL))
		tool_error("run: the time stamp counter counts at another rate than /proc/cpuinfo "
			   "says: %m");
	free(path);
}

void system_tell_counter(void)
{
	if (!faults())
		tool_error("run: the processor's time stamp counter cannot be caught here: what reads "
			   "it is not the same in each run");
}
