/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * system_begin.c - when each program of a system has its first turn: at a time, or after what
 * others do.  All processes are there from the beginning, so that their numbers are the same
 * whatever happens.
 */
#include "config.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "system.h"
#include "turn/order.h"

/* Who comes later begins later, when those before have had time to wait. */
#define START_GAP TURN_SECOND
/* A shorter wait is a pause between two looks. */
#define SHORTEST_WAIT (TURN_SECOND / 1000)

static struct turn_thread *first_thread(const struct system *system,
					const struct system_program *program)
{
	return &system->segment->threads[program->thread];
}

static void begin_at(const struct system *system, struct system_program *program, uint64_t at)
{
	first_thread(system, program)->deadline = at;
	program->is_pending = false;
}

/* Faults that last end before the last programs begin; no other begins (polycm-scenario(5)). */
static void let_faults_begin(bool may)
{
	const char *record = getenv("POLYCM_SIM_EXPLORE");
	int fd;

	if (!record || !*record)
		return;
	/* Perhaps nobody has opened a fabric yet, which makes it. */
	fd = open(record, O_RDONLY | O_CREAT | O_CLOEXEC, 0644);
	if (fd < 0 || fchmod(fd, may ? 0644 : 0444))
		tool_error("run: %s: %m", record);
	if (fd >= 0)
		close(fd);
}

static bool all_ended(const struct system *system, uint64_t those)
{
	for (size_t i = 0; i < system->num; i++)
		if (those >> i & 1 && !system->programs[i].has_ended)
			return false;
	return true;
}

static bool waits(const struct system *system, size_t at)
{
	const struct turn_segment *segment = system->segment;
	bool any = false;

	for (uint32_t i = 0; i < segment->num_threads; i++) {
		const struct turn_thread *thread = &segment->threads[i];
		const struct turn_member *member = &segment->members[thread->member];

		if (thread->state == TURN_GONE || member->files.program != at)
			continue;
		if (member->life != TURN_LIVES || thread->state < TURN_DESCRIPTORS || thread->held ||
		    thread->deadline < segment->now + SHORTEST_WAIT)
			return false;
		any = true;
	}
	return any;
}

static bool all_wait(const struct system *system, uint64_t those)
{
	for (size_t i = 0; i < system->num; i++)
		if (those >> i & 1 && !system->programs[i].has_waited &&
		    !system->programs[i].has_ended)
			return false;
	return true;
}

static void note_waits(struct system *system)
{
	for (size_t i = 0; i < system->num; i++)
		if (!system->programs[i].is_pending && !system->programs[i].has_waited)
			system->programs[i].has_waited = waits(system, i);
}

/* Those that can begin now; true: somebody waits for another's first wait. */
static bool begin_those(struct system *system)
{
	const uint64_t now = system->segment->now;
	bool more = false;

	for (size_t i = 0; i < system->num; i++) {
		struct system_program *program = &system->programs[i];

		if (!program->is_pending)
			continue;
		if (program->begin.when == PROGRAMS_WAITS) {
			if (all_wait(system, program->begin.those))
				begin_at(system, program, now);
			else
				more = true;
		} else if (all_ended(system, program->begin.those)) {
			const bool is_last = program->begin.when == PROGRAMS_LAST;

			if (is_last) {
				let_faults_begin(false);
				system_preempt_end_choice(system);
			}
			begin_at(system, program,
				 now + (is_last ? PROGRAMS_PAUSE_S * TURN_SECOND : 0));
		}
	}
	return more;
}

void system_set_begin(struct system *system)
{
	uint64_t next = system->segment->now;

	for (size_t i = 0; i < system->num; i++) {
		struct system_program *program = &system->programs[i];

		turn_order_wait(system->segment, first_thread(system, program), TURN_ASLEEP,
				TURN_NEVER);
		switch (program->begin.when) {
		case PROGRAMS_IN_ORDER:
			begin_at(system, program, next);
			next += START_GAP;
			break;
		case PROGRAMS_AT:
			begin_at(system, program, system->segment->now + program->begin.at);
			break;
		case PROGRAMS_LAST:
			let_faults_begin(true);	/* in spite of an earlier run with that file */
			/* fall through */
		default:
			program->is_pending = true;
		}
	}
}

uint32_t system_next(struct system *system)
{
	struct turn_segment *segment = system->segment;
	uint32_t next;
	bool more;

	segment->asked = false;
	segment->asks = begin_those(system);
	next = turn_order_next(segment);
	if (!segment->asked)
		return next;
	/* Only time could go on. */
	note_waits(system);
	more = begin_those(system);
	segment->asks = segment->asked = false;
	next = turn_order_next(segment);
	segment->asks = more;
	return next;
}
