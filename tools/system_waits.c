/* SPDX-License-Identifier: BSD-2-Clause */
/* system_waits.c - who waits for what when nobody can go on, in words. */
#include "config.h"

#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>

#include "include/turn_tells.h"
#include "run.h"
#include "system.h"

char *system_who(const struct system *system, uint32_t member, uint32_t thread)
{
	const struct system_program *program = system_program_of(system, member);

	return tool_printf("%s: %s, process %u, thread %u", program ? system_name(program) : "?",
			   program ? program->command[0] : "?",
			   system->segment->members[member].number, thread);
}

/* NULL: libpolycm did not say. */
static const char *purpose_of(const struct turn_thread *thread)
{
	static const char *const words[] = {
		[TURN_FOR_CM_EVENT] = "an event of connection management, as by rdma_get_cm_event",
		[TURN_FOR_CQ_EVENT] = "an event of a completion channel, by ibv_get_cq_event",
		[TURN_FOR_ASYNC_EVENT] = "an event of a device, by ibv_get_async_event",
		[TURN_FOR_ACK] = "that another thread acknowledges events",
	};

	return thread->purpose < sizeof(words) / sizeof(words[0]) ? words[thread->purpose] : NULL;
}

/* To be freed. */
static char *wait_of(const struct system *system, const struct turn_thread *thread)
{
	const unsigned long long first = thread->arguments[0];
	const char *purpose = purpose_of(thread);

	/* Whatever it did, it cannot go on. */
	if (system->segment->members[thread->member].stopped)
		return tool_strdup("to be continued (SIGCONT), since its process is stopped (SIGSTOP)");
	if (purpose)
		return tool_strdup(purpose);

	switch (thread->call) {
	case SYS_futex:
		return tool_printf("a lock, a condition or a thread, at 0x%llx", first);
	case SYS_poll:
	case SYS_ppoll:
	case SYS_select:
	case SYS_pselect6:
	case SYS_epoll_wait:
	case SYS_epoll_pwait:
		return tool_strdup("one of several descriptors");
	case SYS_read:
	case SYS_readv:
	case SYS_recvfrom:
	case SYS_recvmsg:
		return tool_printf("data on descriptor %llu", first);
	case SYS_accept:
	case SYS_accept4:
		return tool_printf("a connection on descriptor %llu", first);
	case SYS_wait4:
	case SYS_waitid:
		return tool_strdup("a child");
	case SYS_nanosleep:
	case SYS_clock_nanosleep:
		return tool_strdup("the end of a sleep");
	case SYS_rt_sigsuspend:
	case SYS_rt_sigtimedwait:
	case SYS_pause:
		return tool_strdup("a signal");
	case TURN_CALL_SPIN:
		return tool_printf("memory that another thread is to write, in a loop at 0x%llx", first);
	case SYS_sched_yield:
	case SYS_clock_gettime:
	case TURN_CALL_COUNTER:
		return tool_strdup("what it polls for");
	}
	return system_call_name(thread->call) ?
		tool_printf("the system call %s", system_call_name(thread->call)) :
		tool_printf("the system call %u", thread->call);
}

/*
 * Of polycm itself: they wait for what the others cause.  A program's threads have the name of its
 * first one, which may begin so, too.
 */
static bool is_own(const struct system *system, const struct turn_thread *thread)
{
	const int32_t pid = system->segment->members[thread->member].pid;
	char name[16], first[16];

	return system_read_name(pid, thread->tid, name) && !strncmp(name, "polycm-", 7) &&
	       system_read_name(pid, pid, first) && strcmp(name, first) != 0;
}

/* Somebody would go on, but later than anybody may. */
static bool reached_limit(const struct turn_segment *segment)
{
	for (uint32_t i = 0; i < segment->num_threads; i++) {
		const struct turn_thread *thread = &segment->threads[i];

		if (thread->state != TURN_GONE && thread->state != TURN_FREE &&
		    !segment->members[thread->member].stopped && thread->deadline != TURN_NEVER &&
		    thread->then != TURN_LOOKS)
			return true;
	}
	return false;
}

/* One that has not begun waits for none of its own doing. */
static bool is_shown(const struct system *system, const struct turn_thread *thread)
{
	const struct system_program *program = system_program_of(system, thread->member);

	return thread->state != TURN_GONE && thread->state != TURN_FREE && program &&
	       !program->is_pending && !system_begins_too_late(system, program) &&
	       !program->is_carrier && !is_own(system, thread);
}

/*
 * polycm explore knows these words.  Beyond the limit one could go on and help the others; the words
 * for waits without end are those of one process.
 */
static void report_wait(const struct system *system, const struct turn_thread *thread, char *stack)
{
	char *who = system_who(system, thread->member, thread->number), *what = wait_of(system, thread);

	tool_error("error: %s, waits %s: %s", who, reached_limit(system->segment) ?
		   "longer than the limit of virtual time" : "for what can never happen", what);
	free(what);
	free(who);
	/* One that was stopped before its first call. */
	if (thread->since_ns)
		tool_error(SYSTEM_INDENT "since %.6f s", (double)(thread->since_ns - TURN_BEGIN) / 1e9);
	else
		tool_error(SYSTEM_INDENT "since it was started");
	for (char *frame = stack ? strtok(stack, "\n") : NULL; frame; frame = strtok(NULL, "\n"))
		tool_error(SYSTEM_INDENT "at %s", frame);
}

/* Names take longer than most runs.  polycm explore shows those of a run that it traces. */
static bool wants_stacks(const struct system *system)
{
	return !getenv(SYSTEM_RECORD_VARIABLE) || system_value(system, RUN_TRACE);
}

static void report_stop(const struct turn_segment *segment)
{
	const double at = (double)(segment->now - TURN_BEGIN) / 1e9;

	if (reached_limit(segment))
		tool_error("run: the limit of %.9g s of virtual time (--until) is reached; the last "
			   "thing happened at %.6f s", (double)(segment->until - TURN_BEGIN) / 1e9, at);
	else
		tool_error("run: nobody can go on, at %.6f s", at);
}

void system_report_waits(const struct system *system)
{
	const struct turn_segment *segment = system->segment;
	uint32_t slots[TURN_MAX_THREADS];
	size_t num = 0;
	char **stacks;

	report_stop(segment);
	/* A name that is misspelt is a node, too, and what is to be there is elsewhere. */
	if (!getenv(SYSTEM_RECORD_VARIABLE))
		system_tell_own_nodes(system);
	system_report_unserved(system);
	for (uint32_t i = 0; i < segment->num_threads; i++)
		if (is_shown(system, &segment->threads[i]))
			slots[num++] = i;
	stacks = wants_stacks(system) ? system_stacks(system, slots, num) : NULL;
	for (size_t i = 0; i < num; i++) {
		report_wait(system, &segment->threads[slots[i]], stacks ? stacks[i] : NULL);
		free(stacks ? stacks[i] : NULL);
	}
	free(stacks);
}
