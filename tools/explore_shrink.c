/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * explore_shrink.c - the shortest list of faults that still ends a program in
 * the same way: delta debugging, which takes away halves, then quarters and so
 * on, until each fault that is left is needed.  Then one preemption in place of
 * several, if it fails so, too.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "explore.h"
#include "include/programs.h"

struct shrinking {
	const struct explore *explore;
	const struct explore_run *failed;
	struct explore_faults *faults;
	struct explore_run run;
	unsigned int runs, limit;
	bool cannot_write;
};

/* Of its runs, for the last step, which can say most. */
#define KEPT_FOR_MERGE(runs) ((runs) / 10)

static bool is_cut(const struct shrinking *shrinking)
{
	return shrinking->cannot_write || explore_interrupted();
}

static bool is_over(const struct shrinking *shrinking)
{
	return shrinking->runs >= shrinking->limit || is_cut(shrinking);
}

/* Does it still fail the same way with these? */
static bool fails_with(struct shrinking *shrinking, const bool *keep)
{
	struct explore_run *run = &shrinking->run;

	if (is_cut(shrinking))
		return false;
	if (explore_write_scenario(shrinking->explore, run->scenario, run->seed, shrinking->faults,
				   keep) < 0) {
		shrinking->cannot_write = true;	/* it would fail again */
		return false;
	}
	shrinking->runs++;
	return explore_run(shrinking->explore, run) &&
	       explore_same(&run->result, &shrinking->failed->result);
}

/* keep without the part'th of so many parts of those that are in it. */
static void without(bool *ret, const bool *keep, size_t num, size_t part, size_t parts, size_t in)
{
	size_t from = in * part / parts, to = in * (part + 1) / parts, place = 0;

	for (size_t i = 0; i < num; i++) {
		ret[i] = keep[i] && (place < from || place >= to);
		place += keep[i];
	}
}

size_t explore_count(const bool *keep, size_t num)
{
	size_t in = 0;

	for (size_t i = 0; i < num; i++)
		in += keep[i];
	return in;
}

/* One part less, if any can be missed. */
static bool take_away(struct shrinking *shrinking, bool *keep, bool *fewer, size_t parts)
{
	size_t num = shrinking->faults->num, in = explore_count(keep, num);

	for (size_t part = 0; part < parts; part++) {
		if (is_over(shrinking))
			return false;
		without(fewer, keep, num, part, parts, in);
		if (fails_with(shrinking, fewer)) {
			memcpy(keep, fewer, num * sizeof(*keep));
			return true;
		}
	}
	return false;
}

static void shrink(struct shrinking *shrinking, bool *keep)
{
	size_t num = shrinking->faults->num, parts = 1, in = num;
	bool *fewer = tool_realloc(NULL, num + 1, sizeof(*fewer));

	/* In one part first: perhaps it was none of them. */
	while (in && !is_over(shrinking)) {
		if (take_away(shrinking, keep, fewer, parts)) {
			parts = parts > 2 ? parts - 1 : parts;
		} else {
			if (parts >= in)
				break;
			parts = parts * 2 < in ? parts * 2 : in;
		}
		in = explore_count(keep, num);
		parts = parts < in ? parts : in;
	}
	free(fewer);
}

/* ------------------------------------------------------------------------
 * A process that several preemptions hold up often fails just because it is late: then one of them
 * is enough, for as long as all together, or somewhat longer.
 */

#define DELAY "delay = \""
#define PROCESS "process = "

static const double longer[] = { 1, 1.5, 2, 4, 10 };

static uint64_t delay_of(const char *line)
{
	const char *at = strstr(line, DELAY);
	char text[32] = "";
	uint64_t ns = 0;

	if (at)
		sscanf(at + strlen(DELAY), "%31[^\"]", text);
	return programs_time(text, &ns) ? ns : 0;
}

/* To be freed. */
static char *with_delay(const char *line, uint64_t ns)
{
	const char *at = strstr(line, DELAY), *rest = at ? strchr(at + strlen(DELAY), '"') : NULL;
	char delay[PROGRAMS_TIME_LEN];

	if (!rest)
		return tool_strdup(line);
	programs_write_time(ns, delay, sizeof(delay));
	return tool_printf("%.*s%s%s", (int)(at + strlen(DELAY) - line), line, delay, rest);
}

static bool are_of_one_process(const char *a, const char *b)
{
	const char *process_a = strstr(a, PROCESS), *process_b = strstr(b, PROCESS);

	return explore_is_preemption(a) && explore_is_preemption(b) && process_a && process_b &&
	       strtoul(process_a + strlen(PROCESS), NULL, 10) ==
		       strtoul(process_b + strlen(PROCESS), NULL, 10);
}

/* fewer: the i-th alone of its process, for so long. */
static bool fails_longer(struct shrinking *shrinking, const bool *fewer, size_t i, uint64_t delay)
{
	char **line = &shrinking->faults->lines[i], *before = *line;

	if (is_over(shrinking))
		return false;
	*line = with_delay(before, delay);
	if (fails_with(shrinking, fewer)) {
		free(before);
		return true;
	}
	free(*line);
	*line = before;
	return false;
}

static void merge_into(struct shrinking *shrinking, bool *keep, bool *fewer, size_t i)
{
	char *const *lines = shrinking->faults->lines;
	bool merged = false;
	uint64_t delay = 0;

	for (size_t j = 0; j < shrinking->faults->num; j++) {
		const bool goes = keep[j] && are_of_one_process(lines[j], lines[i]);

		fewer[j] = keep[j] && (!goes || i == j);
		delay += goes ? delay_of(lines[j]) : 0;
	}
	for (size_t j = 0; !merged && j < sizeof(longer) / sizeof(longer[0]); j++)
		merged = fails_longer(shrinking, fewer, i, (uint64_t)((double)delay * longer[j]));
	if (merged)
		memcpy(keep, fewer, shrinking->faults->num * sizeof(*keep));
}

static bool has_others(const struct shrinking *shrinking, const bool *keep, size_t i)
{
	char *const *lines = shrinking->faults->lines;

	for (size_t j = 0; j < shrinking->faults->num; j++)
		if (j != i && keep[j] && are_of_one_process(lines[i], lines[j]))
			return true;
	return false;
}

static void merge(struct shrinking *shrinking, bool *keep)
{
	bool *fewer = tool_realloc(NULL, shrinking->faults->num + 1, sizeof(*fewer));

	for (size_t i = 0; i < shrinking->faults->num; i++)
		if (keep[i] && has_others(shrinking, keep, i))
			merge_into(shrinking, keep, fewer, i);
	free(fewer);
}

static struct shrinking begin(const struct explore *explore, const struct explore_run *failed,
			      struct explore_faults *faults)
{
	return (struct shrinking){
		.explore = explore,
		.failed = failed,
		.faults = faults,
		.limit = explore->shrink_runs,
		.run = {
			.seed = failed->seed,
			.scenario = tool_printf("%s/shrink.cfg", explore->work),
			.record = tool_printf("%s/shrink.faults", explore->work),
			.output = tool_printf("%s/shrink.out", explore->work),
		},
	};
}

static void end(struct shrinking *shrinking)
{
	char *const names[] = {
		(char *)(uintptr_t)shrinking->run.scenario, shrinking->run.record,
		shrinking->run.output,
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		unlink(names[i]);
		free(names[i]);
	}
}

bool explore_fails_with(const struct explore *explore, const struct explore_run *failed,
			struct explore_faults *faults, const bool *keep, char **ret_last_words)
{
	struct shrinking shrinking = begin(explore, failed, faults);
	bool fails = fails_with(&shrinking, keep);

	if (fails && ret_last_words)
		*ret_last_words = explore_last_words(explore, shrinking.run.output);
	end(&shrinking);
	return fails;
}

/* What the simulator said of the trace; a program that fails has no status for that. */
static char *why_cut(const char *output)
{
	static const char *const told[] = {
		"polycm: error: the trace ", "polycm: error: POLYCM_SIM_TRACE=",
	};
	FILE *file = fopen(output, "re");
	char *line = NULL, *why = NULL;
	size_t size = 0;

	while (!why && file && getline(&line, &size, file) > 0) {
		line[strcspn(line, "\n")] = '\0';
		for (unsigned int i = 0; i < sizeof(told) / sizeof(told[0]); i++)
			if (!strncmp(line, told[i], strlen(told[i])))
				why = tool_strdup(line + strlen("polycm: error: "));
	}
	free(line);
	if (file)
		fclose(file);
	return why;
}

/* What it does with the fewest faults says more than what it did with all of them. */
static void take_over(const struct explore *explore, struct explore_run *failed,
		      const struct explore_run *shorter)
{
	if (!explore_same(&failed->result, &shorter->result) ||
	    rename(shorter->output, failed->output))
		return;
	failed->result = shorter->result;
	free(failed->last_words);
	failed->last_words = explore_last_words(explore, failed->output);
}

char *explore_trace(const struct explore *explore, struct explore_run *failed, const char *scenario,
		    const char *trace)
{
	struct shrinking shrinking = begin(explore, failed, &failed->faults);
	struct explore_run run = shrinking.run;
	char *why = NULL;

	run.scenario = scenario;
	run.trace = trace;
	if (!explore_interrupted() && explore_run(explore, &run)) {
		why = why_cut(run.output);
		take_over(explore, failed, &run);
	}
	end(&shrinking);
	return why;
}

bool explore_shrink(const struct explore *explore, const struct explore_run *failed,
		    struct explore_faults *faults, bool *keep, bool *ret_half)
{
	struct shrinking shrinking = begin(explore, failed, faults);
	bool repeats;

	for (size_t i = 0; i < faults->num; i++)
		keep[i] = true;
	repeats = fails_with(&shrinking, keep);
	if (repeats) {
		shrinking.limit -= KEPT_FOR_MERGE(explore->shrink_runs);
		shrink(&shrinking, keep);
		*ret_half = shrinking.runs >= shrinking.limit;
		shrinking.limit = explore->shrink_runs;
		merge(&shrinking, keep);
	}
	end(&shrinking);
	return repeats;
}
