/* SPDX-License-Identifier: BSD-2-Clause */
/* system_busy.c - who has the turn and does not give it on, and where it is: in words. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "system.h"

/* The number of the system call that it is in; -1: none, or it is not known. */
static long call_of(const struct system *system, const struct turn_thread *thread)
{
	char *path = tool_printf("/proc/%d/task/%d/syscall",
				 system->segment->members[thread->member].pid, thread->tid);
	FILE *file = fopen(path, "re");
	long number = -1;

	/* "running" is none. */
	if (file && fscanf(file, "%ld", &number) != 1)
		number = -1;
	if (file)
		fclose(file);
	free(path);
	return number;
}

bool system_read_name(int32_t pid, int32_t tid, char name[16])
{
	char *path = tool_printf("/proc/%d/task/%d/comm", pid, tid);
	FILE *file = fopen(path, "re");
	bool is_read = file && fscanf(file, "%15[^\n]", name) == 1;

	if (file)
		fclose(file);
	free(path);
	return is_read;
}

void system_tell_busy(const struct system *system, uint32_t number, int seconds)
{
	const struct turn_thread *thread = &system->segment->threads[number];
	const struct system_program *program = system_program_of(system, thread->member);
	const char *node = program ? system_name(program) : "a member";
	const struct turn_member *member = &system->segment->members[thread->member];
	const long call = call_of(system, thread);
	const char *call_name = call < 0 ? NULL : system_call_name((uint64_t)call);
	char name[16];

	/* The program's that the process is by now. */
	if (!system_read_name(member->pid, member->pid, name))
		strcpy(name, "a program");
	if (call >= 0)
		tool_error("%s: %s, process %u, thread %u, is in system call %ld (%s) for %d s of real "
			   "time, which waits for what is outside of the run; Ctrl-C ends the run", node,
			   name, member->number, thread->number, call,
			   call_name ? call_name : "not known", seconds);
	else
		tool_error("%s: %s, process %u, thread %u, has made no system call for %d s of real "
			   "time: it computes, or looks at memory until another thread changes it, "
			   "which needs a call by which others go on, such as sched_yield(); Ctrl-C "
			   "ends the run", node, name, member->number, thread->number, seconds);
}
