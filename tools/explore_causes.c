/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * explore_causes.c - polycm explore: failures that end alike are of one family
 * if they have one cause: without faults of the kinds that the first of them
 * needs, the others do not fail like that.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "explore.h"

/* From a word of the line to its semicolon. */
static void copy_member(char *kind, size_t size, const char *line, const char *word)
{
	const char *member = strstr(line, word);
	size_t len = strlen(kind);

	if (member)
		snprintf(kind + len, size - len, "%.*s", (int)strcspn(member, ";"), member);
}

/*
 * Which one it is, how long it takes and the reason of a REJ make no other kind, nor does the place
 * where a thread is held up: a program that comes late loses a race wherever it was late.
 */
static void kind_of(const char *line, char *kind, size_t size)
{
	*kind = '\0';
	copy_member(kind, size, line, " action = ");
	copy_member(kind, size, line, " message = ");
	copy_member(kind, size, line, " from = ");
	copy_member(kind, size, line, " on = ");
	copy_member(kind, size, line, " node = ");
}

static bool is_needed(const char *line, const struct explore_faults *faults, const bool *keep)
{
	char kind[500], needed[500];

	kind_of(line, kind, sizeof(kind));
	for (size_t i = 0; i < faults->num; i++) {
		if (!keep[i])
			continue;
		kind_of(faults->lines[i], needed, sizeof(needed));
		if (!strcmp(kind, needed))
			return true;
	}
	return false;
}

static bool has_kinds_of(const struct explore_faults *a, const bool *keep_a,
			 const struct explore_faults *b, const bool *keep_b)
{
	for (size_t i = 0; i < a->num; i++)
		if (keep_a[i] && !is_needed(a->lines[i], b, keep_b))
			return false;
	return true;
}

bool explore_same_kinds(const struct explore_faults *a, const bool *keep_a,
			const struct explore_faults *b, const bool *keep_b)
{
	return has_kinds_of(a, keep_a, b, keep_b) && has_kinds_of(b, keep_b, a, keep_a);
}

/* What is left of the faults is what it still fails with. */
static void leave_out(struct explore_faults *faults, const bool *rest)
{
	size_t num = 0;

	for (size_t i = 0; i < faults->num; i++) {
		if (rest[i])
			faults->lines[num++] = faults->lines[i];
		else
			free(faults->lines[i]);
	}
	faults->num = num;
}

bool explore_has_cause(const struct explore *explore, struct explore_run *run,
		       const struct explore_faults *faults, const bool *keep)
{
	bool *rest = tool_realloc(NULL, run->faults.num + 1, sizeof(*rest)), has = false;

	for (size_t i = 0; i < run->faults.num; i++) {
		rest[i] = !is_needed(run->faults.lines[i], faults, keep);
		has |= !rest[i];
	}
	if (has && explore_fails_with(explore, run, &run->faults, rest, NULL)) {
		leave_out(&run->faults, rest);
		has = false;
	}
	free(rest);
	return has;
}

char *explore_words_of_kinds(const struct explore *explore, struct explore_run *run,
			     const struct explore_faults *faults, const bool *keep)
{
	bool *only = tool_realloc(NULL, run->faults.num + 1, sizeof(*only));
	char *words = NULL;

	for (size_t i = 0; i < run->faults.num; i++)
		only[i] = is_needed(run->faults.lines[i], faults, keep);
	(void)explore_fails_with(explore, run, &run->faults, only, &words);
	free(only);
	return words;
}
