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
#include <unistd.h>

#include "system.h"

#define MOST_SHOWN 200u		/* of a line */

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

void system_report_unserved(const struct system *system)
{
	for (size_t i = 0; i < system->num; i++) {
		const struct system_program *program = &system->programs[i];

		if (program->is_pending)
			tool_error("run: %s has not begun: it begins after \"%s\"",
				   system_name(program), program->after);
		else if (program->begin.when == PROGRAMS_LAST && !program->has_ended)
			tool_error("%s, the last program, did not end", system_name(program));
	}
}

/* ------------------------------------------------------------------------
 * Programs that must agree.
 */

/* What it printed, from its beginning; NULL: it cannot be read. */
static FILE *open_output(const struct system *system, const struct system_program *program)
{
	int fd = dup(system_output_file((size_t)(program - system->programs)));
	FILE *file = fd < 0 ? NULL : fdopen(fd, "r");

	if (file)
		rewind(file);
	else if (fd >= 0)
		close(fd);
	return file;
}

/* The next line without its end; "(nothing)" and false behind the last one. */
static bool next_line(FILE *file, char **line, size_t *size, size_t *ret_len)
{
	ssize_t len = getline(line, size, file);

	if (len > 0) {
		*ret_len = (size_t)len - ((*line)[len - 1] == '\n');
		return true;
	}
	free(*line);
	*line = tool_strdup("(nothing)");
	*size = strlen(*line) + 1;
	*ret_len = 0;
	return false;
}

/* The line in which they differ; 0: none.  It does not matter whether the last one has its end. */
static unsigned int differ(FILE *a, FILE *b, char *lines[2])
{
	size_t sizes[2] = { 0, 0 }, lens[2];
	bool more[2];

	for (unsigned int number = 1; ; number++) {
		more[0] = next_line(a, &lines[0], &sizes[0], &lens[0]);
		more[1] = next_line(b, &lines[1], &sizes[1], &lens[1]);
		if (more[0] != more[1] || lens[0] != lens[1] ||
		    memcmp(lines[0], lines[1], lens[0]) != 0)
			return number;
		if (!more[0])
			return 0;
	}
}

/* For people: how it begins. */
static int shown_len(const char *line)
{
	const size_t len = strcspn(line, "\n");

	return (int)(len < MOST_SHOWN ? len : MOST_SHOWN);
}

static bool agree(const struct system *system, const struct system_program *first,
		  const struct system_program *other)
{
	FILE *a = open_output(system, first), *b = open_output(system, other);
	char *lines[2] = { NULL, NULL };
	unsigned int number = a && b ? differ(a, b, lines) : 0;

	if (number)
		tool_error("%s and %s disagree: line %u of what they printed: %.*s | %.*s",
			   system_name(first), system_name(other), number, shown_len(lines[0]),
			   lines[0], shown_len(lines[1]), lines[1]);
	free(lines[0]);
	free(lines[1]);
	if (a)
		fclose(a);
	if (b)
		fclose(b);
	return !number;
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
