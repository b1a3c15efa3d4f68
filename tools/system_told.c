/* SPDX-License-Identifier: BSD-2-Clause */
/* system_told.c - what members of a system cannot do, in words. */
#include "config.h"

#include "system.h"


/* Behind the name of who did it. */
static const char *const words[] = {
	[TURN_TOO_MANY_MEMBERS] =
		"cannot start a process: all programs together may have 64 at a time",
	[TURN_TOO_MANY_THREADS] =
		"cannot start a thread: all programs together may have 256 at a time",
	[TURN_HANDLES_SIGSYS] =
		"sets a handler for SIGSYS, which is never called: that signal catches system calls",
	[TURN_FILTERS_CALLS] =
		"asks for a seccomp filter, which is not installed: its system calls are caught already",
	[TURN_IS_STATIC] = "is linked statically: it runs in real time, and so does what it starts",
	[TURN_IS_FOREIGN] =
		"is for another processor: it runs in real time, and so does what it starts",
	[TURN_GAINS_RIGHTS] = "is setuid or setgid, or has capabilities: it runs in real time, and so "
			      "does what it starts",
	[TURN_IS_UNREADABLE] = "cannot be read, and may be linked statically: it runs in real time, and "
			       "so does what it starts",
	[TURN_CANNOT_BE_OUTSIDE] = "is not started: it would run in real time, which is possible "
				   "from Linux 5.11 (syscall user dispatch)",
	[TURN_CANNOT_BE_TRACED] =
		"is not started: before Linux 5.11 (syscall user dispatch) polycm must trace it "
		"meanwhile (ptrace), which the system does not allow",
	[TURN_CANNOT_SEE] = "cannot see polycm's files where it begins, or may not read them: it runs "
			    "in real time, and so does what it starts",
	[TURN_WANTS_PIDS] = "asks for a namespace of process ids, which is refused (EPERM)",
	[TURN_TRACES] = "wants to trace a process (ptrace), which is refused (EPERM): attach to it from "
			"outside of the run",
	[TURN_ASKS_URING] = "asks for io_uring, which is refused (ENOSYS), as on kernels without it",
	[TURN_SETS_CLOCK] = "wants to set the machine's clock, which is refused (EPERM)",
};

_Static_assert(TURN_MAX_MEMBERS == 64 && TURN_MAX_THREADS == 256, "the messages above name both limits");

void system_tell(const struct system *system, uint64_t number)
{
	const struct turn_told *told = &system->segment->told[number % TURN_MAX_TOLD];

	if (told->program >= system->num || told->what >= sizeof(words) / sizeof(words[0]))
		return;
	/* Both may be one file. */
	fflush(stdout);
	tool_error("%s: %.*s %s", system_name(&system->programs[told->program]),
		   (int)sizeof(told->name), told->name, words[told->what]);
}
