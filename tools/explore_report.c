/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * explore_report.c - polycm explore: prints each cause of failures once, with the fewest
 * faults that it takes and the command line that repeats it, and keeps its files.
 */
#include "config.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include "explore.h"

#define MAX_TRACE (16 << 20)
#define MAX_PART (1u << 30)	/* of a file that is copied at once */

static bool cut;

bool explore_is_cut(void)
{
	return cut;
}

/* "seed-12.out", "seed-12.scenario", "seed-12.trace", "seed-12.trace.2" */
static bool is_ours(const char *name)
{
	static const char *const ends[] = { ".out", ".scenario", ".trace" };
	size_t len;

	if (strncmp(name, "seed-", 5) != 0 || !isdigit((unsigned char)name[5]))
		return false;
	name += 5 + strspn(name + 5, "0123456789");
	for (unsigned int i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
		len = strlen(ends[i]);
		if (!strncmp(name, ends[i], len) &&
		    (!name[len] || (name[len] == '.' && isdigit((unsigned char)name[len + 1]))))
			return true;
	}
	return false;
}

void explore_clear_output(const struct explore *explore)
{
	DIR *folder = opendir(explore->output);
	struct dirent *entry;

	while (folder && (entry = readdir(folder)))
		if (is_ours(entry->d_name))
			unlinkat(dirfd(folder), entry->d_name, 0);
	if (folder)
		closedir(folder);
}

void explore_free_run(struct explore_run *run)
{
	unlink(run->record);
	unlink(run->output);
	free(run->record);
	free(run->output);
	free(run->last_words);
	explore_free_faults(&run->faults);
	free(run);
}

/* So that a shell takes it for one word. */
static void print_word(const char *word)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyz" "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
				    "0123456789" "_-./=:,@%+";

	if (*word && strspn(word, plain) == strlen(word)) {
		printf(" %s", word);
		return;
	}
	fputs(" '", stdout);
	for (; *word; word++)
		if (*word == '\'')
			fputs("'\\''", stdout);
		else
			putchar(*word);
	putchar('\'');
}

static void print_replay(const struct explore *explore, const char *scenario)
{
	const char *transport = getenv("POLYCM_SIM_TRANSPORT");

	fputs("  replay: polycm run", stdout);
	if (transport) {
		fputs(" --transport", stdout);
		print_word(transport);
	}
	fputs(" --scenario", stdout);
	print_word(scenario);
	if (!explore->is_system)
		fputs(" --", stdout);
	for (char **word = explore->command + (explore->is_system ? 2 : 0); *word; word++)
		print_word(*word);
	putchar('\n');
}

/* "faults", or "faults and preemptions". */
static const char *name_of(const struct explore_faults *faults)
{
	for (size_t i = 0; i < faults->num; i++)
		if (explore_is_preemption(faults->lines[i]))
			return "faults and preemptions";
	return "faults";
}

static void print_faults(const struct explore_faults *faults, const bool *keep)
{
	printf("  %zu of %zu %s are needed:\n", explore_count(keep, faults->num), faults->num,
	       name_of(faults));
	for (size_t i = 0; i < faults->num; i++)
		if (keep[i])
			printf("    %s\n", faults->lines[i]);
}

/* ------------------------------------------------------------------------
 * A seed under which the program fails.
 */

static bool cannot(const char *what, const char *name)
{
	tool_error("cannot %s %s: %m", what, name);
	cut = true;
	return false;
}

/* "polycm-explore/seed-12.out"; to be freed. */
static char *kept_name(const struct explore *explore, const struct explore_run *run,
		       const char *suffix)
{
	return tool_printf("%s/seed-%llu.%s", explore->output, (unsigned long long)run->seed, suffix);
}

bool explore_keep_output(const struct explore *explore, const struct explore_run *run)
{
	char *name = kept_name(explore, run, "out");
	int from = open(run->output, O_RDONLY | O_CLOEXEC), to = -1;
	ssize_t len = -1;
	bool kept;

	if (from >= 0)
		to = open(name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	if (to >= 0)
		while ((len = sendfile(to, from, NULL, MAX_PART)) > 0)
			;
	kept = !len || cannot(from < 0 ? "read" : "write", from < 0 ? run->output : name);
	if (from >= 0)
		close(from);
	if (to >= 0)
		close(to);
	free(name);
	return kept;
}

/* With all of its faults: only the first seed of a cause is shrunk. */
static void keep_faults(const struct explore *explore, const struct explore_run *run)
{
	char *scenario = kept_name(explore, run, "scenario");
	struct explore_faults faults;

	(void)explore_read_record(run->record, &faults);
	cut |= explore_write_scenario(explore, scenario, run->seed, &faults, NULL) < 0;
	explore_free_faults(&faults);
	free(scenario);
}

static bool is_same_failure(const struct explore_run *a, const struct explore_run *b)
{
	return explore_same(&a->result, &b->result) && !strcmp(a->last_words, b->last_words);
}

/* Of the same cause where that is known, or else with the same words. */
static bool is_of_family(const struct explore *explore, const struct explore_run *first,
			 struct explore_run *run, const bool *keep)
{
	if (!explore_same(&first->result, &run->result))
		return false;
	return keep ? explore_has_cause(explore, run, &first->faults, keep) :
		      is_same_failure(first, run);
}

/* The other runs with the cause of the first one are printed with it, and kept. */
static void print_family(const struct explore *explore, struct explore_run **runs, size_t num,
			const bool *keep)
{
	size_t equal = 0;

	/* Words are compared without another run. */
	for (size_t i = 1; i < num && !(keep && explore_interrupted()); i++) {
		if (!runs[i] || !is_of_family(explore, runs[0], runs[i], keep))
			continue;
		printf("%s%llu", equal++ ? ", " : keep ? "  same cause: seeds " : "  equal: seeds ",
		       (unsigned long long)runs[i]->seed);
		(void)explore_keep_output(explore, runs[i]);
		keep_faults(explore, runs[i]);
		explore_free_run(runs[i]);
		runs[i] = NULL;
	}
	if (equal)
		puts("\n  these are not shortened: their scenario files have all of their faults");
}

/* Fabrics that the program creates have numbered traces. */
static char *newest(char *trace)
{
	char *name = tool_strdup(trace), *next;

	for (unsigned int i = 2; ; i++) {
		next = tool_printf("%s.%u", trace, i);
		if (access(next, R_OK))
			break;
		free(name);
		name = next;
	}
	free(next);
	free(trace);
	return name;
}

/* Of a run that does not end it may be longer than anybody reads. */
static bool is_short(const char *trace)
{
	struct stat st;

	return stat(trace, &st) || st.st_size <= MAX_TRACE;
}

static void print_ladder(const struct explore *explore, const struct explore_run *run,
			 const char *scenario)
{
	char *trace = kept_name(explore, run, "trace"), *why = NULL;

	why = explore_trace(explore, run, scenario, trace);
	/* One that does not end was killed, so the end of its trace may be missing. */
	if (run->result.end == ENDED_BY_TIME) {
		if (!is_short(trace))
			unlink(trace);
		free(why);
		why = NULL;
	}
	if (why) {
		tool_error("%s", why);
		cut = true;
	}
	trace = newest(trace);
	if (!why && !access(trace, R_OK)) {
		fputs("  ladder: polycm timeline --cm", stdout);
		print_word(trace);
		putchar('\n');
	}
	free(why);
	free(trace);
}

static void examine(const struct explore *explore, struct explore_run **runs, size_t num)
{
	struct explore_run *run = runs[0];
	const struct explore_faults *faults = &run->faults;
	char *scenario = kept_name(explore, run, "scenario");
	unsigned int num_runs = 0;
	bool *keep, repeats, saved;

	printf("seed %llu: %s\n", (unsigned long long)run->seed, explore_words(&run->result));
	mkdir(explore->output, 0777);
	(void)explore_keep_output(explore, run);
	fflush(stdout);
	keep = tool_realloc(NULL, faults->num + 1, sizeof(*keep));
	repeats = explore_shrink(explore, run, faults, keep, &num_runs);
	saved = !explore_write_scenario(explore, scenario, run->seed, faults, keep);
	cut |= !saved;
	if (repeats)
		print_faults(faults, keep);
	else if (saved && !explore_interrupted())
		printf("  it does not fail like that again with the same %zu %s: what it does "
		       "depends on more than the seed\n", faults->num, name_of(faults));
	if (saved) {
		print_replay(explore, scenario);
		print_ladder(explore, run, scenario);
	}
	print_family(explore, runs, num, repeats && explore_count(keep, faults->num) ? keep : NULL);
	fflush(stdout);
	free(keep);
	free(scenario);
}

/* What is known without another run. */
static void tell_only(const struct explore *explore, struct explore_run **runs, size_t num)
{
	struct explore_run *run = runs[0];
	char *scenario = kept_name(explore, run, "scenario");

	printf("seed %llu: %s\n", (unsigned long long)run->seed, explore_words(&run->result));
	mkdir(explore->output, 0777);
	(void)explore_keep_output(explore, run);
	keep_faults(explore, run);
	printf("  not shortened: the scenario file has all of its %zu faults\n", run->faults.num);
	print_replay(explore, scenario);
	print_family(explore, runs, num, NULL);
	free(scenario);
}

unsigned int explore_report(const struct explore *explore, struct explore_failing *failing)
{
	unsigned int families = 0;

	for (size_t i = 0; i < failing->num; i++)
		(void)explore_read_record(failing->runs[i]->record, &failing->runs[i]->faults);
	for (size_t i = 0; i < failing->num; i++) {
		if (!failing->runs[i])
			continue;
		if (explore_interrupted())
			tell_only(explore, failing->runs + i, failing->num - i);
		else
			examine(explore, failing->runs + i, failing->num - i);
		families++;
		explore_free_run(failing->runs[i]);
	}
	free(failing->runs);
	return families;
}
