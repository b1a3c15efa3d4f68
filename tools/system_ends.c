/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * system_ends.c - what the end of each program says of a system: is it well, did a daemon die, do
 * programs that must agree have the same result?  polycm explore knows these lines
 * (explore_system.c).
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "system.h"

const char *system_name(const struct system_program *program)
{
	return program->name ? program->name : program->node;
}

bool system_is_named(const struct system_program *program, const char *name)
{
	return !strcmp(program->node, name) || (program->name && !strcmp(program->name, name));
}

bool system_is_over(const struct system *system)
{
	for (size_t i = 0; i < system->num; i++)
		if (!system->programs[i].is_daemon && !system->programs[i].has_ended)
			return false;
	return true;
}

/* ------------------------------------------------------------------------
 * One program.
 */

static int status_of(int status)
{
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static bool is_well(const struct system_program *program, int status)
{
	if (program->is_daemon)
		return false;
	for (size_t i = 0; i < program->num_expect; i++)
		if (program->expect[i] == status)
			return true;
	return !program->expect && !status;
}

static const char *role_of(const struct system_program *program)
{
	return program->is_daemon ? ", a daemon," :
	       program->begin.when == PROGRAMS_LAST ? ", the last program," : "";
}

static void report(const struct system *system, const struct system_program *program, int status)
{
	const double at = (double)(system->segment->now - TURN_BEGIN) / 1e9;
	const char *name = system_name(program), *role = role_of(program);

	if (WIFSIGNALED(status))
		tool_error("%s%s is killed by signal %d (%s) at %.6f s", name, role, WTERMSIG(status),
			   strsignal(WTERMSIG(status)), at);
	else if (program->is_daemon && !WEXITSTATUS(status))
		tool_error("%s%s ended before the others, at %.6f s", name, role, at);
	else
		tool_error("%s%s ended with exit status %d%s, at %.6f s", name, role,
			   WEXITSTATUS(status), program->is_daemon ? " before the others" : "", at);
}

void system_ended(struct system *system, struct system_program *program, int status)
{
	program->has_ended = true;
	if (program->is_daemon && system_is_over(system))
		return;
	if (is_well(program, status_of(status)))
		return;
	program->status = status_of(status);
	if (!program->status)
		program->status = EXIT_FAILURE;
	report(system, program, status);
}

bool system_begins_too_late(const struct system *system, const struct system_program *program)
{
	const struct turn_thread *first = &system->segment->threads[program->thread];

	return !program->is_pending && !program->has_ended && !first->since_ns &&
	       first->deadline != TURN_NEVER && first->deadline > system->segment->until;
}

void system_report_unserved(const struct system *system)
{
	for (size_t i = 0; i < system->num; i++) {
		const struct system_program *program = &system->programs[i];

		if (program->is_pending)
			tool_error("run: %s has not begun: it begins after \"%s\"",
				   system_name(program), program->after);
		else if (system_begins_too_late(system, program))
			tool_error("run: %s has not begun: it begins at %.9g s, after the limit of "
				   "virtual time (--until)", system_name(program),
				   (double)(system->segment->threads[program->thread].deadline -
					    TURN_BEGIN) / 1e9);
		else if (program->begin.when == PROGRAMS_LAST && !program->has_ended)
			tool_error("%s, the last program, did not end", system_name(program));
	}
}

/* ------------------------------------------------------------------------
 * Programs that must agree.
 */

static bool agree(const struct system *system, const struct system_program *first,
		  const struct system_program *other)
{
	const size_t places[] = {
		(size_t)(first - system->programs), (size_t)(other - system->programs),
	};
	unsigned int number;
	char *lines;
	int err = system_differ(system_output_file(places[0], 0), system_output_file(places[1], 0),
				&number, &lines);

	if (err)
		tool_error("run: what %s and %s printed cannot be compared: %s", system_name(first),
			   system_name(other), strerror(-err));
	else if (number)
		tool_error("%s and %s disagree: line %u of what they printed: %s", system_name(first),
			   system_name(other), number, lines);
	free(lines);
	return !err && !number;
}

int system_status(const struct system *system)
{
	const struct system_program *first = NULL;
	bool all_agree = true;

	for (size_t i = 0; i < system->num; i++)
		if (system->programs[i].status)
			return system->programs[i].status;
	for (size_t i = 0; i < system->num; i++) {
		if (!system->programs[i].agree)
			continue;
		if (!first)
			first = &system->programs[i];
		else
			all_agree &= agree(system, first, &system->programs[i]);
	}
	return all_agree ? 0 : EXIT_FAILURE;
}
