/* SPDX-License-Identifier: BSD-2-Clause */
/* turn/tell.c - see tell.h. */
#include "config.h"

#include <errno.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stddef.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>

#include "descriptors.h"
#include "hand.h"
#include "pointers.h"
#include "raw.h"
#include "shown.h"
#include "stops.h"
#include "tell.h"
#include "tsc.h"

/* Linux 5.11. */
#ifndef PR_SET_SYSCALL_USER_DISPATCH
#define PR_SET_SYSCALL_USER_DISPATCH 59
#endif

uint32_t turn_note(enum turn_notice what, const char *name)
{
	const uint32_t program = turn_segment->members[turn_member].files.program;
	char own[16] = "";
	struct turn_told *told;
	size_t len;

	if (!name) {
		TURN_RAW(SYS_prctl, PR_GET_NAME, own);
		name = own;
	}
	/* Paths have what tells them apart at their end. */
	len = strlen(name);
	if (len > sizeof(told->name) - 1) {
		name += len - (sizeof(told->name) - 1);
		len = sizeof(told->name) - 1;
	}
	for (uint32_t i = 0; i < turn_segment->num_told; i++) {
		told = &turn_segment->told[i];
		if (told->what == what && told->program == program &&
		    !strcmp(told->name, name))
			return TURN_NOBODY;
	}
	if (turn_segment->num_told == TURN_MAX_TOLD)
		return TURN_NOBODY;
	told = &turn_segment->told[turn_segment->num_told];
	told->what = what;
	told->program = program;
	memset(told->name, 0, sizeof(told->name));
	memcpy(told->name, name, len);
	return turn_segment->num_told++;
}

void turn_tell(enum turn_notice what, const char *name)
{
	uint32_t number = turn_note(what, name);

	if (number != TURN_NOBODY)
		turn_shown_told(number);
}

long turn_tell_refused(enum turn_notice what, long result)
{
	turn_tell(what, NULL);
	return result;
}

/* The kernel would stop a process that has the turn. */
long turn_tell_trace(const struct turn_call *call)
{
	switch (call->arguments[0]) {
	case PTRACE_TRACEME:
	case PTRACE_ATTACH:
	case PTRACE_SEIZE:
		return turn_tell_refused(TURN_TRACES, -EPERM);
	}
	return turn_through(call);
}

/* Its processes would have other numbers than the launcher knows. */
long turn_tell_unshare(const struct turn_call *call)
{
	if (call->arguments[0] & CLONE_NEWPID)
		return turn_tell_refused(TURN_WANTS_PIDS, -EPERM);
	turn_changed();
	return turn_through(call);
}

long turn_tell_uring(const struct turn_call *call)
{
	(void)call;
	return turn_tell_refused(TURN_ASKS_URING, -ENOSYS);
}

/* That is the machine's.  A read of the parameters (adjtimex()) changes none. */
long turn_tell_clock(const struct turn_call *call)
{
	const unsigned int at = call->number == SYS_clock_adjtime ? 1 : 0;
	const unsigned int *modes = (const unsigned int *)call->arguments[at];

	if ((call->number == SYS_adjtimex || call->number == SYS_clock_adjtime) &&
	    (!turn_can_read(modes, sizeof(*modes)) || !*modes))
		return turn_through(call);
	return turn_tell_refused(TURN_SETS_CLOCK, -EPERM);
}

static bool has_filter, has_handler;

/* Of those that have one for all signals nobody would want to know. */
static void tell_handler(void)
{
	if (has_filter && has_handler)
		turn_tell(TURN_HANDLES_SIGSYS, NULL);
}

void turn_tell_handler(bool is_set)
{
	has_handler = is_set;
	tell_handler();
}

/* As if it were there: programs that insist on one go on, and call what they would call. */
static long filter(bool wants_descriptor)
{
	has_filter = true;
	turn_tell(TURN_FILTERS_CALLS, NULL);
	tell_handler();
	return wants_descriptor ? -EINVAL : 0;
}

long turn_prctl(const struct turn_call *call)
{
	switch (call->arguments[0]) {
	case PR_SET_SECCOMP:
		return filter(false);
	case PR_SET_TSC:
	case PR_GET_TSC:
		return turn_tsc_control(call);
	case PR_SET_SYSCALL_USER_DISPATCH:
		return -EINVAL;	/* as before Linux 5.11 */
	}
	turn_stops_note(call);
	return turn_through(call);
}

long turn_seccomp(const struct turn_call *call)
{
	if (call->arguments[0] != SECCOMP_SET_MODE_STRICT &&
	    call->arguments[0] != SECCOMP_SET_MODE_FILTER)
		return turn_through(call);
	return filter((unsigned long)call->arguments[1] & SECCOMP_FILTER_FLAG_NEW_LISTENER);
}
