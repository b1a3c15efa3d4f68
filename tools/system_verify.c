/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * system_verify.c - polycm run --verify: the system is run twice with the same seed, and what differs
 * is told: the first turn or call, what programs printed, their exit statuses, the trace.  Where more
 * happens than a record keeps, two more runs keep the part that differs.
 */
#include "config.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "run.h"
#include "system.h"

#define MOST_PAIRS 8u

/* A run that has ended. */
struct made {
	int status;
	bool is_whole;			/* one that was stopped says nothing of another */
	struct turn_segment *segment;	/* NULL: it could not be prepared */
	int (*outputs)[2];		/* of programs, from their beginning */
	FILE *said;			/* by the launcher, if it was hidden */
	FILE *files[SYSTEM_NUM_FILES];
	int errors[SYSTEM_NUM_FILES];	/* negative errno: it could not be copied */
};

/* ------------------------------------------------------------------------
 * Runs.
 */

/* What the launcher says, which it has said once.  *ret_said: NULL: nothing is hidden. */
static int hide(FILE **ret_said)
{
	int shown = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);

	*ret_said = shown < 0 ? NULL : system_files_new();
	if (*ret_said && dup2(fileno(*ret_said), STDERR_FILENO) < 0) {
		fclose(*ret_said);
		*ret_said = NULL;
	}
	return shown;
}

static void show(int shown, const FILE *said)
{
	if (said)
		dup2(shown, STDERR_FILENO);
	if (shown >= 0)
		close(shown);
}

/* There is a reason for it. */
static void tell_said(const struct made *made)
{
	char *line = NULL;
	size_t size = 0;

	if (!made->said)
		return;
	rewind(made->said);
	while (getline(&line, &size, made->said) > 0)
		fputs(line, stderr);
	free(line);
}

static void keep_files(const struct system *system, struct made *made)
{
	if (!system->segment)
		return;
	made->segment = system->segment;
	made->outputs = tool_realloc(NULL, system->num, sizeof(*made->outputs));
	for (size_t i = 0; i < system->num; i++)
		for (int stream = 0; stream < 2; stream++)
			made->outputs[i][stream] = system_output_file(i, stream);
	/* Others are made for their records. */
	for (size_t i = 0; !system->record_from && i < SYSTEM_NUM_FILES; i++)
		made->errors[i] = system_files_copy(system, i, &made->files[i]);
}

static struct made make(struct system *system, uint64_t from, bool is_shown)
{
	struct made made = { .status = 0 };
	int shown = -1;

	system->records = true;
	system->record_from = from;
	system->segment = NULL;
	system->addresses = NULL;
	system->num_addresses = 0;
	system->hides = !is_shown;
	*system->course = (struct system_course){ .is_whole = false };
	if (!is_shown)
		shown = hide(&made.said);
	made.status = system_run_once(system);
	show(shown, made.said);
	made.is_whole = system->course->is_whole && !system_is_interrupted();
	free(system->folder);
	system->folder = NULL;
	keep_files(system, &made);
	return made;
}

static void end(const struct system *system, struct made *made)
{
	if (made->said)
		fclose(made->said);
	if (!made->segment)
		return;
	munmap(made->segment, sizeof(*made->segment));
	for (size_t i = 0; i < system->num * 2; i++)
		close(made->outputs[i / 2][i % 2]);
	free(made->outputs);
	for (size_t i = 0; i < SYSTEM_NUM_FILES; i++)
		if (made->files[i])
			fclose(made->files[i]);
}

/* ------------------------------------------------------------------------
 * Programs and files.
 */

static bool compare_output(const struct system *system, const struct made made[2], size_t i, int stream)
{
	static const char *const streams[] = { "output", "error" };
	const char *name = system_name(&system->programs[i]);
	unsigned int number;
	char *lines;
	int err = system_differ(made[0].outputs[i][stream], made[1].outputs[i][stream], &number, &lines);

	if (err)
		tool_error("run: what %s prints on standard %s cannot be compared: %s", name,
			   streams[stream], strerror(-err));
	else if (number)
		tool_error("run: %s does not print the same, line %u on standard %s: %s", name, number,
			   streams[stream], lines);
	free(lines);
	return !err && !number;
}

static bool compare_outputs(const struct system *system, const struct made made[2])
{
	bool are_same = true;

	for (size_t i = 0; i < system->num * 2; i++)
		are_same = compare_output(system, made, i / 2, i % 2) && are_same;
	return are_same;
}

/* To be freed. */
static char *end_of(int32_t status)
{
	status--;
	if (status < 0)
		return tool_strdup("does not end");
	return WIFEXITED(status) ? tool_printf("ends with exit status %d", WEXITSTATUS(status)) :
				   tool_printf("is killed by signal %d", WTERMSIG(status));
}

static bool compare_ends(const struct system *system, const struct made made[2])
{
	bool are_same = made[0].status == made[1].status;

	for (size_t i = 0; i < system->num; i++) {
		const int32_t statuses[] = { made[0].segment->record.statuses[i],
					     made[1].segment->record.statuses[i] };
		char *ends[] = { end_of(statuses[0]), end_of(statuses[1]) };

		if (statuses[0] != statuses[1])
			tool_error("run: %s %s in the first run, and %s in the second",
				   system_name(&system->programs[i]), ends[0], ends[1]);
		are_same = are_same && statuses[0] == statuses[1];
		free(ends[0]);
		free(ends[1]);
	}
	if (made[0].status != made[1].status)
		tool_error("run: the exit status is %d in the first run, and %d in the second",
			   made[0].status, made[1].status);
	return are_same;
}

/* Of one that both have. */
static bool compare_contents(FILE *const files[2], size_t i)
{
	const int a = fileno(files[0]), b = fileno(files[1]);
	const char *name = system_files_name(i);
	unsigned int number = 0;
	uint64_t at = 0;
	char *lines = NULL;
	int err = system_files_has_lines(i) ? system_differ(a, b, &number, &lines) :
					      system_differ_bytes(a, b, &at);

	if (err)
		tool_error("run: --%s cannot be compared: %s", name, strerror(-err));
	else if (number)
		tool_error("run: --%s differs, in line %u: %s", name, number, lines);
	else if (at)
		tool_error("run: --%s differs, in byte %llu", name, (unsigned long long)at);
	free(lines);
	return !err && !number && !at;
}

static bool compare_file(const struct made made[2], size_t i)
{
	const int err = made[0].errors[i] ? made[0].errors[i] : made[1].errors[i];
	FILE *const files[] = { made[0].files[i], made[1].files[i] };
	const char *name = system_files_name(i);

	if (err) {
		tool_error("run: --%s is not compared%s: it cannot be copied: %s", name,
			   made[0].errors[i] ? ", and is that of the last run" : "", strerror(-err));
		return true;
	}
	if (files[0] && files[1])
		return compare_contents(files, i);
	if (files[0] || files[1])
		tool_error("run: --%s is left by the %s run only", name,
			   files[0] ? "first" : "second");
	return !files[0] && !files[1];
}

/* What is left is that of the run whose output was shown. */
static bool compare_files(const struct made made[2])
{
	bool are_same = true;

	for (size_t i = 0; i < SYSTEM_NUM_FILES; i++)
		are_same = compare_file(made, i) && are_same;
	return are_same;
}

/* ------------------------------------------------------------------------
 * The whole.
 */

static bool differ(const struct made made[2], struct system_difference *ret)
{
	const struct turn_segment *const segments[] = { made[0].segment, made[1].segment };

	return system_compare(segments, ret);
}

/* Two more runs, and more, until they keep what differs; NULL, or why they do not. */
static const char *look_closer(struct system *system, struct made made[2],
			       struct system_difference *ret)
{
	struct system_difference next = *ret;
	bool differs = true;

	for (unsigned int i = 0; differs && !next.is_known && i < MOST_PAIRS; i++) {
		for (int run = 0; run < 2; run++) {
			end(system, &made[run]);
			made[run] = make(system, next.begin, false);
			if (system_is_interrupted())
				return "the search was interrupted";
			if (made[run].is_whole)
				continue;
			tell_said(&made[run]);
			return "another run did not end as a run";
		}
		differs = differ(made, &next);
	}
	if (!next.is_known)
		return "not each time";
	*ret = next;
	return NULL;
}

static void tell_difference(struct system *system, const struct made made[2],
			    struct system_difference *difference)
{
	struct made more[2] = { { .status = 0 }, { .status = 0 } };
	const char *why = difference->is_known ? NULL : look_closer(system, more, difference);

	system_tell_difference(system, difference, made[0].segment, why);
	system_tell_hint(system, difference);
	end(system, &more[0]);
	end(system, &more[1]);
}

static bool is_repeated(struct system *system, const struct made made[2])
{
	struct system_difference difference;
	const bool has_order = !differ(made, &difference);
	bool is_same = has_order;

	if (!has_order)
		tell_difference(system, made, &difference);
	is_same = compare_ends(system, made) && is_same;
	is_same = compare_outputs(system, made) && is_same;
	is_same = compare_files(made) && is_same;
	if (!is_same && has_order)
		system_tell_hint(system, &difference);
	return is_same;
}

static void restore_files(const struct system *system, const struct made *first)
{
	for (size_t i = 0; i < SYSTEM_NUM_FILES; i++)
		if (first->files[i])
			system_files_restore(system, i, first->files[i]);
}

static int verify(struct system *system, const struct made made[2])
{
	const struct turn_segment *segment = made[0].segment;

	if (!is_repeated(system, made)) {
		restore_files(system, &made[0]);
		return STATUS_DIFFERS;
	}
	tool_error("run: the second run is the same: %llu turns, %llu calls, order %016llx",
		   (unsigned long long)segment->turns, (unsigned long long)segment->calls,
		   (unsigned long long)segment->hash);
	return made[0].status;
}

static int refuse(const struct system *system, const struct made made[2])
{
	restore_files(system, &made[0]);
	if (system_is_interrupted()) {
		tool_error("run: interrupted: the two runs are not compared");
		return made[1].status ? made[1].status : EXIT_FAILURE;
	}
	tell_said(&made[1]);
	tool_error("run: the second run did not end as a run: the two are not compared");
	return EXIT_FAILURE;
}

int system_verify(struct system *system)
{
	struct made made[2] = { { .status = 0 }, { .status = 0 } };
	void *course = mmap(NULL, sizeof(*system->course), PROT_READ | PROT_WRITE,
			    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int status;

	if (course == MAP_FAILED) {
		tool_error("run: %m");
		return EXIT_FAILURE;
	}
	system->course = course;
	made[0] = make(system, 0, true);
	if (made[0].is_whole) {
		made[1] = make(system, 0, false);
		status = made[1].is_whole ? verify(system, made) : refuse(system, made);
		end(system, &made[1]);
	} else {
		tool_error("run: the first run did not end as a run: nothing is compared");
		status = made[0].status ? made[0].status : EXIT_FAILURE;
	}
	end(system, &made[0]);
	return status;
}
