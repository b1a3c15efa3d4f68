/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * turn/symbols.c - functions of the C library that programs call often, such as clocks: without a trap,
 * unless the thread is to let others go on.  What is not done here is done by a system call, which is
 * trapped.
 */
#include "config.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "calls.h"
#include "clock.h"
#include "raw.h"

#define EXPORT __attribute__((visibility("default")))

EXPORT int clock_gettime(clockid_t clock, struct timespec *ret)
{
	if (turn_clock_is_listed(clock) && turn_calls_quickly(SYS_clock_gettime, clock))
		return (int)turn_clock_look(clock, ret);
	return (int)syscall(SYS_clock_gettime, clock, ret);
}

EXPORT int gettimeofday(struct timeval *ret, void *zone)
{
	struct timeval *volatile to = ret;	/* the kernel lets it be NULL, the header does not */
	struct timespec now;

	if (!turn_calls_quickly(SYS_gettimeofday, (long)to))
		return (int)syscall(SYS_gettimeofday, to, zone);
	turn_clock_look(CLOCK_REALTIME, &now);
	if (to)
		*to = (struct timeval){ now.tv_sec, now.tv_nsec / 1000 };
	return 0;
}

EXPORT time_t time(time_t *ret)
{
	struct timespec now;

	if (!turn_calls_quickly(SYS_time, (long)ret))
		return (time_t)syscall(SYS_time, ret);
	turn_clock_look(CLOCK_REALTIME, &now);
	if (ret)
		*ret = now.tv_sec;
	return now.tv_sec;
}

/*
 * Who polls a channel that does not block has its flags looked at each time.  The names are given to
 * the linker only: headers may define fcntl() as fcntl64().
 */

typedef int fcntl_fn(int fd, int command, ...);

EXPORT int own_fcntl(int fd, int command, ...) __asm__("fcntl");
/* The same where files are as long as a long says. */
EXPORT int own_fcntl64(int fd, int command, ...) __asm__("fcntl64") __attribute__((alias("fcntl")));

static int get_flags(int fd)
{
	long flags = TURN_RAW(SYS_fcntl, fd, F_GETFL);

	if (flags >= 0)
		return (int)flags;
	errno = (int)-flags;
	return -1;
}

/* The third argument is whatever the command takes, or missing, as in the C library. */
int own_fcntl(int fd, int command, ...)
{
	static fcntl_fn *next;
	va_list arguments;
	int result;

	if (command == F_GETFL && turn_calls_quietly(SYS_fcntl))
		return get_flags(fd);
	if (!next)
		next = (fcntl_fn *)dlsym(RTLD_NEXT, "fcntl");
	va_start(arguments, command);
	result = next(fd, command, va_arg(arguments, void *));
	va_end(arguments);
	return result;
}
