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

/* "/proc/1/task/2/stat": the letter behind the name, which may have any character. */
static char read_state(int32_t pid, int32_t tid)
{
	char *path = tool_printf("/proc/%d/task/%d/stat", pid, tid), *line = NULL, *end;
	FILE *file = fopen(path, "re");
	char state = '?';
	size_t size = 0;

	if (file && getdelim(&line, &size, '\0', file) > 0) {
		end = strrchr(line, ')');
		if (end && end[1] == ' ')
			state = end[2];
	}
	if (file)
		fclose(file);
	free(line);
	free(path);
	return state;
}

void system_look_at_busy(const struct system *system, uint32_t number, uint64_t now,
			 struct system_busy *ret)
{
	const struct turn_thread *thread = &system->segment->threads[number];
	const int32_t pid = system->segment->members[thread->member].pid;
	char *path = tool_printf("/proc/%d/task/%d/schedstat", pid, thread->tid);
	FILE *file = fopen(path, "re");
	unsigned long long used, waited;

	*ret = (struct system_busy){ .at = now };
	if (file && fscanf(file, "%llu %llu", &used, &waited) == 2) {
		ret->is_known = true;
		ret->used = used;
		ret->waited = waited;
		ret->state = read_state(pid, thread->tid);
	}
	if (file)
		fclose(file);
	free(path);
}

static const char *state_in_words(char state)
{
	switch (state) {
	case 'D':
		return "it waits in the kernel, as for a disk or for memory";
	case 'S':
		return "it sleeps in the kernel";
	case 'T':
	case 't':
		return "it is stopped, as by a debugger";
	}
	return "the machine did not let it run";
}

#define COMPUTES "it computes, or looks at memory until another thread changes it, which needs a call "	\
		 "by which others go on, such as sched_yield()"

char *system_busy_words(const struct system_busy *before, const struct system_busy *after,
			uint64_t pause)
{
	const double used = (double)(after->used - before->used) / 1e9;
	const double waited = (double)(after->waited - before->waited) / 1e9;
	const double meanwhile = (double)(after->at - before->at) / 1e9, stood = (double)pause / 1e9;

	if (!before->is_known)
		return tool_strdup(": " COMPUTES);
	/* It has just ended. */
	if (!after->is_known)
		return tool_strdup("");
	if (used >= meanwhile / 2)
		return tool_printf(", of which it used %.1f s of processor time: " COMPUTES, used);
	/* On a busy machine, too, one that waits uses next to nothing. */
	if (used >= meanwhile / 10)
		return tool_printf(", of which it used %.1f s of processor time, and waited %.1f s for "
				   "it: " COMPUTES, used, waited);
	if (stood >= meanwhile / 2)
		return tool_printf(", of which it got only %.1f s of processor time: the machine stood "
				   "still, or was so busy that polycm itself did not run for %.1f s",
				   used, stood);
	if (waited >= meanwhile / 2)
		return tool_printf(", of which it got only %.1f s of processor time, and waited %.1f s "
				   "for it: the machine is busy", used, waited);
	return tool_printf(", of which it got only %.1f s of processor time, and waited %.1f s for it: "
			   "%s (state %c)", used, waited, state_in_words(after->state), after->state);
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

void system_tell_busy(const struct system *system, uint32_t number, int seconds,
		      const struct system_busy *before, uint64_t now, uint64_t pause)
{
	const struct turn_thread *thread = &system->segment->threads[number];
	const struct system_program *program = system_program_of(system, thread->member);
	const char *node = program ? system_name(program) : "a member";
	const struct turn_member *member = &system->segment->members[thread->member];
	const long call = call_of(system, thread);
	const char *call_name = call < 0 ? NULL : system_call_name((uint64_t)call);
	struct system_busy after;
	char name[16], *words;

	/* The program's that the process is by now. */
	if (!system_read_name(member->pid, member->pid, name))
		strcpy(name, "a program");
	if (call >= 0) {
		tool_error("%s: %s, process %u, thread %u, is in system call %ld (%s) for %d s of real "
			   "time, which waits for what is outside of the run; Ctrl-C ends the run", node,
			   name, member->number, thread->number, call,
			   call_name ? call_name : "not known", seconds);
		return;
	}
	system_look_at_busy(system, number, now, &after);
	words = system_busy_words(before, &after, pause);
	tool_error("%s: %s, process %u, thread %u, has made no system call for %d s of real time%s; "
		   "Ctrl-C ends the run", node, name, member->number, thread->number, seconds, words);
	free(words);
}
