/* SPDX-License-Identifier: BSD-2-Clause */
/* turn/beside.c - see beside.h. */
#include "config.h"

#include <errno.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "beside.h"
#include "descriptors.h"
#include "futex.h"
#include "hand.h"
#include "include/thread_local.h"
#include "raw.h"

static POLYCM_THREAD_LOCAL long process;	/* 0: none */

void turn_beside_begin(long pid)
{
	process = pid;
}

/* A child that has ended is there until it is waited for. */
static bool has_ended(void)
{
	siginfo_t info = { .si_pid = 0 };

	return TURN_RAW(SYS_waitid, P_PID, process, &info, WEXITED | WNOHANG | WNOWAIT | __WALL,
			NULL) || info.si_pid;
}

static long wake_both(const struct turn_call *call)
{
	const long woken = turn_through(call), others = turn_futex(call);

	return others > 0 && woken > 0 ? others + woken : others > 0 ? others : woken;
}

bool turn_beside_is_there(void)
{
	if (process && has_ended())
		process = 0;
	return process;
}

bool turn_beside_call(const struct turn_call *call, long *ret_result)
{
	if (__builtin_expect(!process, 1))
		return false;
	if (!turn_beside_is_there())
		return false;
	switch (call->number) {
	case SYS_sched_yield:
		*ret_result = turn_through(call);
		return true;
	case SYS_wait4:
		if (call->arguments[0] != process && call->arguments[0] != -1)
			return false;
		*ret_result = turn_through(call);
		return true;
	case SYS_futex:
		if ((call->arguments[1] & FUTEX_CMD_MASK) != FUTEX_WAKE)
			return false;
		*ret_result = wake_both(call);
		return true;
	}
	return false;
}

bool turn_beside_is_caller(void)
{
	return process && TURN_RAW(SYS_gettid) != turn_self()->tid;
}
