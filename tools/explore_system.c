/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * explore_system.c - polycm explore: how a system of programs failed, by what polycm run said of it
 * (system_ends.c): a daemon died, the last program is not served, a program ended with a status that
 * is not expected, programs disagree.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "explore.h"

#define SAYS "polycm: "
#define LAST ", the last program, "

/* The most severe comes first.  Waits without end are between those of the last program and others. */
static const struct {
	enum explore_end end;
	const char *words[3];
} kinds[] = {
	{ ENDED_DAEMON, { ", a daemon, ended ", ", a daemon, is killed by " } },
	{ ENDED_UNSERVED, { LAST "ended ", LAST "is killed by ", LAST "did not end" } },
	{ ENDED_PROGRAM, { " ended with exit status ", " is killed by signal " } },
	{ ENDED_APART, { " disagree: " } },
};
#define NUM_KINDS (sizeof(kinds) / sizeof(kinds[0]))

/* Where a word ends that is a program's name: names have no blank and no comma. */
static const char *behind_name(const char *text)
{
	return text + strcspn(text, " ,");
}

/* What is said of a program is behind its name, so that nothing that it printed is taken for it. */
static size_t kind_of(const char *line)
{
	const char *said = behind_name(line);

	if (!strncmp(said, " and ", 5))
		said = behind_name(said + 5);
	for (size_t kind = 0; kind < NUM_KINDS; kind++)
		for (size_t i = 0; i < sizeof(kinds[0].words) / sizeof(kinds[0].words[0]); i++)
			if (kinds[kind].words[i] &&
			    !strncmp(said, kinds[kind].words[i], strlen(kinds[kind].words[i])))
				return kind;
	return NUM_KINDS;
}

/* When it was is another time with other faults.  Returns it; 0: none. */
static uint64_t cut_time(char *line)
{
	size_t len = strlen(line), number;
	uint64_t time;

	if (len < 2 || strcmp(line + len - 2, " s") != 0)
		return 0;
	for (number = len - 2; number && strchr("0123456789.", line[number - 1]); number--)
		;
	time = (uint64_t)(strtod(line + number, NULL) * (double)EXPLORE_SECOND + 0.5);
	for (size_t i = 0; i < 2; i++) {
		const char *at = i ? " at " : ", at ";

		len = strlen(at);
		if (number >= len && !strncmp(line + number - len, at, len)) {
			line[number - len] = '\0';
			return time;
		}
	}
	return 0;
}

/* "last, the last program, ended ...": it is said already. */
static void cut_role(char *words)
{
	char *role = strstr(words, LAST);

	if (role)
		memmove(role + 1, role + strlen(LAST), strlen(role + strlen(LAST)) + 1);
	if (role)
		*role = ' ';
}

/* The first line of the most severe kind; to be freed.  NULL: none. */
static char *find_end(const char *output, size_t *ret_kind, uint64_t *ret_at)
{
	FILE *file = fopen(output, "re");
	char *line = NULL, *found = NULL;
	size_t size = 0, kind;

	*ret_kind = NUM_KINDS;
	while (file && getline(&line, &size, file) > 0) {
		line[strcspn(line, "\n")] = '\0';
		if (strncmp(line, SAYS, strlen(SAYS)) != 0)
			continue;
		kind = kind_of(line + strlen(SAYS));
		if (kind >= *ret_kind)
			continue;
		*ret_kind = kind;
		free(found);
		found = tool_strdup(line + strlen(SAYS));
	}
	free(line);
	if (file)
		fclose(file);
	*ret_at = found ? cut_time(found) : 0;
	return found;
}

/* When nobody could go on. */
static uint64_t find_stop(const char *output)
{
	static const char *const begins[] = {
		SAYS "run: nobody can go on, ", SAYS "run: the limit of ",
	};
	FILE *file = fopen(output, "re");
	uint64_t at = 0;
	char *line = NULL;
	size_t size = 0;

	while (!at && file && getline(&line, &size, file) > 0) {
		line[strcspn(line, "\n")] = '\0';
		for (size_t i = 0; i < sizeof(begins) / sizeof(begins[0]); i++)
			if (!strncmp(line, begins[i], strlen(begins[i])))
				at = cut_time(line);
	}
	free(line);
	if (file)
		fclose(file);
	return at;
}

/* The first wait without end of that program; to be freed. */
static char *find_wait_of(const char *output, const char *name, size_t len)
{
	static const char begin[] = SAYS "error: ";
	FILE *file = fopen(output, "re");
	char *line = NULL, *found = NULL;
	size_t size = 0;

	while (!found && file && getline(&line, &size, file) > 0) {
		const char *words = line + strlen(begin);

		if (strncmp(line, begin, strlen(begin)) != 0 || strncmp(words, name, len) != 0 ||
		    words[len] != ':')
			continue;
		line[strcspn(line, "\n")] = '\0';
		found = tool_strdup(words);
		explore_blur(found);
	}
	free(line);
	if (file)
		fclose(file);
	return found;
}

void explore_classify_system(struct explore_run *run)
{
	struct explore_result *result = &run->result;
	const bool waits = result->end == ENDED_WAITING;
	size_t kind;
	char *words = find_end(run->output, &kind, &result->at), *wait = NULL;

	if (waits || !result->at)
		result->at = find_stop(run->output);
	if (!words || (waits && kinds[kind].end > ENDED_UNSERVED)) {
		if (words && kinds[kind].end == ENDED_PROGRAM)
			snprintf(result->before, sizeof(result->before), "%s", words);
		free(words);
		return;
	}
	result->end = kinds[kind].end;
	/* What it waits for says more. */
	if (strstr(words, LAST "did not end"))
		wait = find_wait_of(run->output, words, strcspn(words, ","));
	if (!wait && result->end == ENDED_UNSERVED)
		cut_role(words);
	snprintf(result->wait, sizeof(result->wait), "%s", wait ? wait : words);
	free(wait);
	free(words);
}

/* Up to what differs from run to run. */
static size_t compared(enum explore_end end, const char *words)
{
	const char *rest = end == ENDED_APART ? strstr(words, ": ") :
			   end == ENDED_UNSERVED ? strstr(words, " waits ") : NULL;

	return rest ? (size_t)(rest - words) : strlen(words);
}

bool explore_same_system(const struct explore_result *a, const struct explore_result *b)
{
	const size_t len = compared(a->end, a->wait);

	return len == compared(b->end, b->wait) && !strncmp(a->wait, b->wait, len);
}
