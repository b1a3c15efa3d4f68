/* SPDX-License-Identifier: BSD-2-Clause */
/* turn/traced.c - see traced.h. */
#include "config.h"

#include <errno.h>
#include <linux/futex.h>
#include <stddef.h>

#include "descriptors.h"
#include "hand.h"
#include "raw.h"
#include "tell.h"
#include "threads.h"
#include "traced.h"

static void set(enum turn_traced is)
{
	atomic_store(&turn_segment->traced, is);
	TURN_RAW(SYS_futex, &turn_segment->traced, FUTEX_WAKE, 1);
}

static enum turn_traced await_tracer(void)
{
	uint32_t is;

	while ((is = atomic_load(&turn_segment->traced)) == TURN_ASKS) {
		TURN_RAW(SYS_futex, &turn_segment->traced, FUTEX_WAIT, TURN_ASKS, NULL);
		turn_end_with_launcher();
	}
	return is;
}

long turn_traced_exec(const struct turn_call *call)
{
	const char *path = (const char *)call->arguments[call->number == SYS_execve ? 0 : 1];
	const uint64_t all = ~(UINT64_C(1) << (SIGSYS - 1));
	struct turn_segment *segment = turn_segment;
	enum turn_traced is;
	long result = -ENOSYS;
	uint64_t mask;

	/* No handler of the program may run without the turn. */
	TURN_RAW(SYS_rt_sigprocmask, SIG_SETMASK, &all, &mask, TURN_SIGSET_SIZE);

	segment->traced_pid = (int32_t)TURN_RAW(SYS_getpid);
	segment->traced_tid = (int32_t)TURN_RAW(SYS_gettid);
	segment->traced_thread = turn_slot();
	segment->traced_is_spawn = turn_spawned() != TURN_NOBODY;
	turn_spawned_traced(segment->traced_is_spawn);
	atomic_store(&segment->traced, TURN_ASKS);
	turn_give_to_launcher();
	is = await_tracer();
	if (is == TURN_TRACED) {
		TURN_RAW(SYS_rt_sigprocmask, SIG_SETMASK, &mask, NULL, TURN_SIGSET_SIZE);
		result = turn_through(call);
		TURN_RAW(SYS_rt_sigprocmask, SIG_SETMASK, &all, NULL, TURN_SIGSET_SIZE);
		set(TURN_FAILED);
	}
	turn_take();
	turn_spawned_traced(false);
	TURN_RAW(SYS_rt_sigprocmask, SIG_SETMASK, &mask, NULL, TURN_SIGSET_SIZE);
	if (is == TURN_REFUSED)
		turn_tell(TURN_CANNOT_BE_TRACED, *path ? path : "a program");
	return result;
}
