/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * turn/spare.h - a socket for a moment, also in a program that has no descriptor left: its limit is
 * raised as far as it may be, and nobody sees that.
 */
#ifndef TURN_SPARE_H
#define TURN_SPARE_H

#include <errno.h>
#include <stddef.h>
#include <sys/resource.h>
#include <sys/syscall.h>

/* A system call: 0 or more, or a negative errno. */
typedef long turn_ask_fn(long number, long a, long b, long c, long d, long e, long f);

static inline long turn_spare_socket(turn_ask_fn *ask, int family, int type)
{
	long fd = ask(SYS_socket, family, type, 0, 0, 0, 0);
	struct rlimit limit, most;

	if (fd != -EMFILE || ask(SYS_prlimit64, 0, RLIMIT_NOFILE, 0, (long)&limit, 0, 0))
		return fd;
	most = (struct rlimit){ .rlim_cur = limit.rlim_max, .rlim_max = limit.rlim_max };
	if (ask(SYS_prlimit64, 0, RLIMIT_NOFILE, (long)&most, 0, 0, 0))
		return fd;
	fd = ask(SYS_socket, family, type, 0, 0, 0, 0);
	ask(SYS_prlimit64, 0, RLIMIT_NOFILE, (long)&limit, 0, 0, 0);
	return fd;
}

#endif
