/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * explore_page.c - polycm explore: a page about one way of failing, in Markdown, with all that a
 * maintainer of the program needs: what failed, the faults, how to repeat it, what was on the network
 * before, who waits for what, and the last lines of each program.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "explore.h"
#include "system.h"

#define MAX_LINES 12u		/* of a program */
#define MAX_LENGTH 300		/* of a line */
#define MAX_LABELS 64u
#define DETAIL "polycm: " SYSTEM_INDENT
#define SYSTEM_BEGIN (UINT64_C(1000) * EXPLORE_SECOND)	/* in its traces: TURN_BEGIN */

struct tail {
	char *label;
	char *lines[MAX_LINES];
	size_t num;
};

/* "[server] text" is the server's; all of a single program is its own. */
static const char *split(char *line, bool is_system, const char **ret_text)
{
	char *end = is_system && *line == '[' ? strstr(line, "] ") : NULL;

	*ret_text = end ? end + 2 : line;
	if (!end)
		return is_system ? "polycm run" : "The program";
	*end = '\0';
	return line + 1;
}

static struct tail *tail_of(struct tail *tails, size_t *num, const char *label)
{
	for (size_t i = 0; i < *num; i++)
		if (!strcmp(tails[i].label, label))
			return &tails[i];
	if (*num == MAX_LABELS)
		return NULL;
	tails[*num].label = tool_strdup(label);
	return &tails[(*num)++];
}

/* About a wait, and shown with it: since when, and the stack. */
static bool is_detail(const char *line)
{
	return !strncmp(line, DETAIL, strlen(DETAIL));
}

static void add_line(struct tail *tail, const char *text)
{
	char **line = &tail->lines[tail->num++ % MAX_LINES];

	free(*line);
	*line = tool_printf("%.*s", (int)(strlen(text) < MAX_LENGTH ? strlen(text) : MAX_LENGTH), text);
}

static size_t read_tails(const char *output, bool is_system, struct tail *tails)
{
	FILE *file = fopen(output, "re");
	char *line = NULL;
	const char *label, *text;
	size_t size = 0, num = 0;
	struct tail *tail;

	while (file && getline(&line, &size, file) > 0) {
		line[strcspn(line, "\n")] = '\0';
		if (is_system && is_detail(line))
			continue;
		label = split(line, is_system, &text);
		tail = tail_of(tails, &num, label);
		if (tail)
			add_line(tail, text);
	}
	free(line);
	if (file)
		fclose(file);
	return num;
}

static void write_tail(FILE *page, const struct tail *tail)
{
	fprintf(page, "\n%s:\n\n", tail->label);
	for (size_t i = tail->num > MAX_LINES ? tail->num - MAX_LINES : 0; i < tail->num; i++)
		fprintf(page, "    %s\n", tail->lines[i % MAX_LINES]);
}

static void write_tails(FILE *page, const struct explore *explore, const struct explore_run *run)
{
	struct tail tails[MAX_LABELS] = { { .label = NULL } };
	size_t num = read_tails(run->output, explore->is_system, tails);

	fputs("\n## Last lines of what was printed\n", page);
	if (!num)
		fputs("\nNothing was printed.\n", page);
	for (size_t i = 0; i < num; i++) {
		write_tail(page, &tails[i]);
		for (size_t j = 0; j < MAX_LINES; j++)
			free(tails[i].lines[j]);
		free(tails[i].label);
	}
}

/* "polycm: error: WHO, waits for what can never happen: WHAT", or alike; false: it is another line. */
static bool write_wait(FILE *page, const char *line, const char *before)
{
	static const char begin[] = "polycm: error: ";
	const char *what, *waits;
	size_t len;

	waits = strncmp(line, begin, strlen(begin)) ? NULL : explore_find_wait(line, &what);
	if (!waits)
		return false;
	len = (size_t)(waits - line) - strlen(begin);
	len -= len && waits[-1] == ',';
	fprintf(page, "%s- %.*s: %s", before, (int)len, line + strlen(begin), what);
	return true;
}

/* With the stack of each thread, as a block in the list. */
static void write_waits(FILE *page, const char *output)
{
	FILE *file = fopen(output, "re");
	const char *title = "\n## Who waits for what\n\n";
	bool is_wait = false, is_stack = false;
	char *line = NULL;
	size_t size = 0;

	while (file && getline(&line, &size, file) > 0) {
		if ((is_wait || is_stack) && is_detail(line)) {
			fprintf(page, "%s      %s", is_wait ? "\n" : "", line + strlen(DETAIL));
			is_wait = false;
			is_stack = true;
			continue;
		}
		is_wait = write_wait(page, line, is_stack ? "\n" : title);
		if (is_wait)
			title = "";
		is_stack = false;
	}
	free(line);
	if (file)
		fclose(file);
}

static void write_file(FILE *page, const char *path)
{
	FILE *file = fopen(path, "re");
	char *line = NULL;
	size_t size = 0;

	while (file && getline(&line, &size, file) > 0)
		fprintf(page, "    %s", line);
	free(line);
	if (file)
		fclose(file);
}

static void write_faults(FILE *page, const struct explore_family *family)
{
	const struct explore_faults *faults = &family->run->faults;

	if (family->repeats && !family->needed)
		fprintf(page, "None of %zu %s is needed: " EXPLORE_REST_SUFFICES ".\n", faults->num,
			explore_faults_name(faults));
	else if (family->is_half)
		fprintf(page, "%zu of %zu %s are left, perhaps more than are needed:\n\n",
			family->needed, faults->num, explore_faults_name(faults));
	else if (family->repeats)
		fprintf(page, "%zu of %zu %s are needed:\n\n", family->needed, faults->num,
			explore_faults_name(faults));
	else
		fprintf(page, "It does not fail like that again with the same %zu %s: what it does "
			"depends on more than the seed.\n\n", faults->num,
			explore_faults_name(faults));
	for (size_t i = 0; i < faults->num; i++)
		if (!family->repeats || family->keep[i])
			fprintf(page, "    %s\n", faults->lines[i]);
}

static void write_ladder(FILE *page, const struct explore_family *family)
{
	const uint64_t at = family->run->result.at;

	if (!family->trace)
		return;
	fputs("\n## The network before the failure\n\n```\n", page);
	(void)timeline_print_last(page, family->trace, at ? SYSTEM_BEGIN : 0,
				  at ? SYSTEM_BEGIN + at : UINT64_MAX);
	fputs("```\n", page);
}

int explore_write_page(const struct explore *explore, const struct explore_family *family,
		       const char *path, const char *scenario)
{
	const struct explore_run *run = family->run;
	FILE *page = fopen(path, "we");
	bool failed;

	if (!page)
		return -1;
	fprintf(page, "# %s\n\n`polycm explore` found this with seed %llu.", explore_words(&run->result),
		(unsigned long long)run->seed);
	if (family->num_others)
		fprintf(page, " %zu other seed%s fail%s like it.", family->num_others,
			family->num_others > 1 ? "s" : "", family->num_others > 1 ? "" : "s");
	if (run->result.at)
		fprintf(page, " It happens at %.6f s of virtual time.",
			(double)run->result.at / (double)EXPLORE_SECOND);
	fputs("\n\n## Faults\n\n", page);
	write_faults(page, family);
	fputs("\n## How to repeat it\n\n", page);
	explore_print_replay(page, explore, "    ", scenario);
	fputs("\nThe scenario file:\n\n", page);
	write_file(page, scenario);
	write_ladder(page, family);
	write_waits(page, run->output);
	write_tails(page, explore, run);
	failed = ferror(page);
	failed |= fclose(page);
	return failed ? -1 : 0;
}
