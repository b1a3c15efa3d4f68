/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * system_deaths.c - members that have ended: the launcher reaps them, and takes the turn from those
 * that died with it.
 */
#include "config.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "system.h"
#include "turn/numbers.h"
#include "turn/order.h"

#define LOOK_NS 100000		/* of real time, between two looks at what does not tell */
#define PATIENCE_NS (10 * (int64_t)TURN_SECOND)	/* of real time, for a process that should end */
#define EXITS 4u		/* PF_EXITING in its flags (proc(5)) */

struct stat_of {
	char state;
	unsigned int flags;
	long threads;
};

/* False: it is not there any more. */
static bool read_stat(pid_t pid, struct stat_of *ret)
{
	char path[32], line[512] = "", *rest = NULL;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	file = fopen(path, "re");
	if (file && fgets(line, sizeof(line), file))
		rest = strrchr(line, ')');	/* the name may have anything in it */
	if (file)
		fclose(file);
	return rest && sscanf(rest, ") %c %*d %*d %*d %*d %*d %u %*u %*u %*u %*u %*u %*u "
			      "%*d %*d %*d %*d %ld", &ret->state, &ret->flags, &ret->threads) == 3;
}

/* A process whose first thread has ended is a zombie, too, while other threads run. */
static bool is_zombie(pid_t pid)
{
	struct stat_of is;

	return !read_stat(pid, &is) || ((is.state == 'Z' || is.state == 'X') && is.threads <= 1);
}

/* Before Linux 5.3. */
static bool has_ended_unseen(pid_t pid, bool wait)
{
	const struct timespec look = { .tv_nsec = LOOK_NS };
	bool has_ended;

	while (!(has_ended = is_zombie(pid)) && wait && !system_is_stopped())
		nanosleep(&look, NULL);
	return has_ended;
}

/* Another member's child. */
static bool has_ended_elsewhere(pid_t pid, bool wait)
{
	struct pollfd end = { .events = POLLIN };
	int result;

	end.fd = (int)syscall(SYS_pidfd_open, pid, 0);
	if (end.fd < 0)
		return errno == ESRCH || has_ended_unseen(pid, wait);
	do
		result = poll(&end, 1, wait ? -1 : 0);
	while (result < 0 && errno == EINTR && !system_is_stopped());
	close(end.fd);
	return result == 1;
}

/* A process that is traced reports stops, too, whatever was asked. */
static bool is_end(const siginfo_t *info)
{
	return info->si_code == CLD_EXITED || info->si_code == CLD_KILLED ||
	       info->si_code == CLD_DUMPED;
}

bool system_has_ended(pid_t pid, bool wait)
{
	siginfo_t info = { .si_pid = 0 };
	int result;

	/* Ends of others interrupt it. */
	do
		result = waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT | (wait ? 0 : WNOHANG));
	while (result && errno == EINTR && !system_is_stopped());
	return result ? has_ended_elsewhere(pid, wait) : info.si_pid == pid && is_end(&info);
}

static void report_end(struct system *system, uint32_t member, int status)
{
	struct turn_segment *segment = system->segment;

	/* The number of one that has ended may be another's by now. */
	for (size_t i = 0; i < system->num; i++)
		if (system->programs[i].member == member && !system->programs[i].has_ended) {
			system_ended(system, &system->programs[i], status);
			if (segment->records)
				segment->record.statuses[i] = status + 1;
		}
}

/* It has ended; the launcher has the turn. */
static void bury(struct system *system, uint32_t number)
{
	struct turn_segment *segment = system->segment;
	struct turn_member *member = &segment->members[number];
	int status;

	if (member->life == TURN_OUTSIDE)
		system_end_outside(segment);
	turn_order_remove_member(segment, number);
	member->life = TURN_ENDED;
	if (waitpid(member->pid, &status, WNOHANG) == member->pid)
		report_end(system, number, status);
	if (segment->uses_tcp)
		system_tcp_settle();
	turn_order_change(segment);
	/* The kernel continues those whose job nobody looks after any more. */
	system_find_continued(system);
	if (member->parent != TURN_NOBODY)
		turn_order_interrupt(segment, member->parent);
	/* Locks in memory that it shared may have gone with it. */
	turn_order_interrupt_words(segment);
}

/* It is about to end, or writes a core, which may take long. */
static bool is_ending(pid_t pid)
{
	char path[32], line[512];
	unsigned int dumps = 0;
	struct stat_of is;
	FILE *file;

	if (read_stat(pid, &is) && is.flags & EXITS)
		return true;
	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	file = fopen(path, "re");
	while (file && !dumps && fgets(line, sizeof(line), file))
		sscanf(line, "CoreDumping: %u", &dumps);
	if (file)
		fclose(file);
	return dumps;
}

/* False: it lives on, so what members wrote is wrong. */
static bool await_end(pid_t pid)
{
	const struct timespec look = { .tv_nsec = LOOK_NS };
	int64_t waited = 0;

	while (!system_has_ended(pid, false) && !system_is_stopped()) {
		if (waited > PATIENCE_NS && !is_ending(pid))
			return false;
		nanosleep(&look, NULL);
		waited += LOOK_NS;
	}
	return true;
}

bool system_bury_awaited(struct system *system)
{
	struct turn_segment *segment = system->segment;
	uint64_t members = segment->victims;

	if (segment->ended)
		members |= UINT64_C(1) << (segment->ended - 1);
	segment->victims = 0;
	segment->ended = 0;
	for (uint32_t i = 0; i < segment->num_members; i++) {
		if (!(members >> i & 1))
			continue;
		if (!await_end(segment->members[i].pid))
			return false;
		bury(system, i);
	}
	return true;
}

bool system_bury_dead(struct system *system)
{
	bool found = false;

	for (uint32_t i = 0; i < system->segment->num_members; i++) {
		const struct turn_member *member = &system->segment->members[i];

		if (turn_is_alive(member) && member->pid && system_has_ended(member->pid, false)) {
			bury(system, i);
			found = true;
		}
	}
	return found;
}

void system_kill_node(struct system *system)
{
	system->segment->stopped = false;
	for (size_t i = 0; i < system->num; i++) {
		const struct system_program *program = &system->programs[i];

		if (!system->killed || program->has_ended || !system_is_named(program, system->killed))
			continue;
		kill(program->pid, SIGKILL);
		system->has_killed = true;
		system_has_ended(program->pid, true);
		bury(system, program->member);
	}
}
