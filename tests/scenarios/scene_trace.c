/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * scene_trace.c - owns the trace: lines on standard output, calls with their
 * results, calls that may crash.
 */
#include <signal.h>
#include <stdarg.h>
#include <sys/resource.h>
#include <unistd.h>

#include "scene_internal.h"

static _Thread_local FILE *own;
static _Thread_local char *own_text;
static _Thread_local size_t own_size;
static _Thread_local int silence;
static bool crashing;		/* TRY_CRASH has a call under way */
sigjmp_buf crash_point;

void say(const char *format, ...)
{
	FILE *out = own ? own : stdout;
	int error = errno;
	va_list list;

	if (silence)
		return;
	va_start(list, format);
	vfprintf(out, format, list);
	va_end(list);
	fputc('\n', out);
	errno = error;
}

void quiet(void)
{
	silence++;
}

void loud(void)
{
	silence--;
}

void trace_own(void)
{
	own = open_memstream(&own_text, &own_size);
	if (!own)
		abort();
}

char *trace_own_ends(void)
{
	fclose(own);
	own = NULL;
	return own_text;
}

void trace_raw(const char *lines)
{
	fputs(lines, stdout);
}

void end_failed(const char *what)
{
	int error = errno;

	silence = 0;
	say("FAILED: %s: %s", what, errno_text(error));
	fflush(NULL);
	_exit(1);
}

void end_here(void)
{
	scene_end();
	_exit(0);
}

void end_skipped(const char *why)
{
	silence = 0;
	say("skipped: %s", why);
	fflush(NULL);
	_exit(77);
}

/* --- Calls. --- */

int tried(const char *call, int result)
{
	if (result == -1)
		say("%s = -1 %s", call, errno_text(errno));
	else
		say("%s = %d", call, result);
	settle();
	return result;
}

void *tried_ptr(const char *call, void *result)
{
	if (result)
		say("%s = a pointer", call);
	else
		say("%s = NULL %s", call, errno_text(errno));
	return result;
}

void crash_begins(void)
{
	crashing = true;
}

void crash_ends(const char *call, int result)
{
	int error = errno;

	crashing = false;
	errno = error;
	tried(call, result);
}

void crash_happened(const char *call)
{
	crashing = false;
	say("%s = crash", call);
}

static void write_line(const char *text)
{
	if (write(STDOUT_FILENO, text, strlen(text)) < 0)
		_exit(1);
}

static void on_signal(int signal)
{
	if (signal == SIGSEGV && crashing)
		siglongjmp(crash_point, 1);
	write_line(signal == SIGALRM ? "HANGS\n" : "CRASHES\n");
	_exit(1);
}

void watchdog(unsigned int seconds)
{
	alarm(seconds);
}

void trace_begin(void)
{
	static const int signals[] = { SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL, SIGALRM };
	static const struct rlimit no_core;
	size_t i;

	setvbuf(stdout, NULL, _IOLBF, 0);
	setrlimit(RLIMIT_CORE, &no_core);
	signal(SIGPIPE, SIG_IGN);
	for (i = 0; i < ARRAY_LEN(signals); i++)
		signal(signals[i], on_signal);
}
