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
#define SHOWN_SEEDS 10u		/* of a family */

static bool cut;

bool explore_is_cut(void)
{
	return cut;
}

/* "seed-12.out", "seed-12.scenario", "seed-12.md", "seed-12.trace", "seed-12.trace.2" */
static bool is_ours(const char *name)
{
	static const char *const ends[] = { ".out", ".scenario", ".trace", ".md" };
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
static void print_word(FILE *to, const char *word)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyz" "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
				    "0123456789" "_-./=:,@%+";

	if (*word && strspn(word, plain) == strlen(word)) {
		fprintf(to, " %s", word);
		return;
	}
	fputs(" '", to);
	for (; *word; word++)
		if (*word == '\'')
			fputs("'\\''", to);
		else
			fputc(*word, to);
	fputc('\'', to);
}

void explore_print_replay(FILE *to, const struct explore *explore, const char *before,
			  const char *scenario)
{
	const char *transport = getenv("POLYCM_SIM_TRANSPORT");
	char input[4096];
	ssize_t len;

	fprintf(to, "%spolycm run", before);
	if (transport) {
		fputs(" --transport", to);
		print_word(to, transport);
	}
	if (explore->is_system && explore->has_own_files)
		fputs(" --own-files", to);
	fputs(" --scenario", to);
	print_word(to, scenario);
	if (!explore->is_system)
		fputs(" --", to);
	for (char **word = explore->command + (explore->is_system ? 2 : 0); *word; word++)
		print_word(to, *word);
	if (explore_has_input(explore) &&
	    (len = readlink("/proc/self/fd/0", input, sizeof(input) - 1)) > 0) {
		input[len] = '\0';
		fputs(" <", to);
		print_word(to, input);
	}
	fputc('\n', to);
}

const char *explore_faults_name(const struct explore_faults *faults)
{
	for (size_t i = 0; i < faults->num; i++)
		if (explore_is_preemption(faults->lines[i]))
			return "faults and preemptions";
	return "faults";
}

static void print_faults(const struct explore *explore, const struct explore_family *family)
{
	const struct explore_faults *faults = &family->run->faults;

	if (!family->repeats) {
		printf("  it does not fail like that again with the same %zu %s: what it does "
		       "depends on more than the seed%s\n", faults->num, explore_faults_name(faults),
		       explore->is_system ? "" : "; behind '--on all' the seed also decides the "
		       "order of threads");
		return;
	}
	if (!family->needed)
		printf("  none of %zu %s is needed: " EXPLORE_REST_SUFFICES "\n", faults->num,
		       explore_faults_name(faults));
	else if (family->is_half)
		printf("  %zu of %zu %s are left, perhaps more than are needed: a higher "
		       "--shrink-runs than %u may find fewer:\n", family->needed, faults->num,
		       explore_faults_name(faults), explore->shrink_runs);
	else
		printf("  %zu of %zu %s are needed:\n", family->needed, faults->num,
		       explore_faults_name(faults));
	for (size_t i = 0; i < faults->num; i++)
		if (family->keep[i])
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

/* To be freed; NULL: there is none. */
static char *write_trace(const struct explore *explore, struct explore_run *run,
			 const char *scenario)
{
	char *trace = kept_name(explore, run, "trace"), *why;

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
	if (why || access(trace, R_OK)) {
		free(trace);
		trace = NULL;
	}
	free(why);
	return trace;
}

/* ------------------------------------------------------------------------
 * Families.
 */

static struct explore_family shorten(const struct explore *explore, struct explore_run *run)
{
	struct explore_faults *faults = &run->faults;
	struct explore_family family = { .run = run };
	char *scenario = kept_name(explore, run, "scenario");

	if (isatty(STDERR_FILENO))
		fprintf(stderr, "\rshortening the faults of seed %llu\033[K",
			(unsigned long long)run->seed);
	mkdir(explore->output, 0777);
	family.keep = tool_realloc(NULL, faults->num + 1, sizeof(bool));
	family.repeats = explore_shrink(explore, run, faults, family.keep, &family.is_half);
	family.needed = family.repeats ? explore_count(family.keep, faults->num) : 0;
	family.is_half &= family.needed > 1;
	family.saved = !explore_write_scenario(explore, scenario, run->seed, faults, family.keep);
	cut |= !family.saved;
	if (family.saved)
		family.trace = write_trace(explore, run, scenario);
	(void)explore_keep_output(explore, run);
	if (isatty(STDERR_FILENO))
		fputs("\r\033[K", stderr);
	free(scenario);
	return family;
}

/* What is known without another run. */
static struct explore_family take_whole(const struct explore *explore, struct explore_run *run)
{
	struct explore_family family = { .run = run, .is_whole = true };

	mkdir(explore->output, 0777);
	(void)explore_keep_output(explore, run);
	keep_faults(explore, run);
	family.keep = tool_realloc(NULL, run->faults.num + 1, sizeof(bool));
	memset(family.keep, 0, run->faults.num + 1);
	return family;
}

/* The other runs of the family, which are not shortened, are kept. */
static void gather(const struct explore *explore, struct explore_family *family,
		   struct explore_run **runs, size_t num)
{
	/* Words are compared without another run. */
	for (size_t i = 0; i < num && !(family->needed && explore_interrupted()); i++) {
		if (!runs[i] || !explore_has_family(explore, family, runs[i]))
			continue;
		explore_add_seed(family, runs[i]->seed);
		(void)explore_keep_output(explore, runs[i]);
		keep_faults(explore, runs[i]);
		explore_free_run(runs[i]);
		runs[i] = NULL;
	}
}

static int compare_seeds(const void *a, const void *b)
{
	const uint64_t first = *(const uint64_t *)a, second = *(const uint64_t *)b;

	return first < second ? -1 : first > second;
}

static void print_others(struct explore_family *family)
{
	if (!family->num_others)
		return;
	qsort(family->others, family->num_others, sizeof(uint64_t), compare_seeds);
	printf("  %zu more seed%s fail%s like it: ", family->num_others,
	       family->num_others > 1 ? "s" : "", family->num_others > 1 ? "" : "s");
	for (size_t i = 0; i < family->num_others && i < SHOWN_SEEDS; i++)
		printf("%s%llu", i ? ", " : "", (unsigned long long)family->others[i]);
	puts(family->num_others > SHOWN_SEEDS ? ", ..." : "");
}

static void print_files(const struct explore *explore, const struct explore_family *family)
{
	const struct explore_run *run = family->run;
	char *scenario = kept_name(explore, run, "scenario"), *page = kept_name(explore, run, "md");

	explore_print_replay(stdout, explore, "  replay: ", scenario);
	if (family->trace) {
		fputs("  ladder: polycm timeline --cm", stdout);
		print_word(stdout, family->trace);
		putchar('\n');
	}
	if (!explore_write_page(explore, family, page, scenario))
		printf("  page: %s\n", page);
	else
		(void)cannot("write", page);
	free(page);
	free(scenario);
}

static void print_whole(const struct explore *explore, const struct explore_run *run)
{
	char *scenario = kept_name(explore, run, "scenario");

	printf("  not shortened: the scenario file has all of its %zu %s\n", run->faults.num,
	       explore_faults_name(&run->faults));
	explore_print_replay(stdout, explore, "  replay: ", scenario);
	free(scenario);
}

static void print_family(const struct explore *explore, struct explore_family *family)
{
	printf("seed %llu: %s\n", (unsigned long long)family->run->seed,
	       explore_words(&family->run->result));
	if (family->is_whole)
		print_whole(explore, family->run);
	else if (family->repeats || (family->saved && !explore_interrupted()))
		print_faults(explore, family);
	if (family->saved)
		print_files(explore, family);
	print_others(family);
	fflush(stdout);
}

static int compare_families(const void *a, const void *b)
{
	return compare_seeds(&((const struct explore_family *)a)->run->seed,
			     &((const struct explore_family *)b)->run->seed);
}

unsigned int explore_report(const struct explore *explore, struct explore_failing *failing)
{
	struct explore_families families = { .num = 0 };
	struct explore_family family;

	for (size_t i = 0; i < failing->num; i++)
		(void)explore_read_record(failing->runs[i]->record, &failing->runs[i]->faults);
	for (size_t i = 0; i < failing->num; i++) {
		if (!failing->runs[i])
			continue;
		family = explore_interrupted() ? take_whole(explore, failing->runs[i]) :
						 shorten(explore, failing->runs[i]);
		gather(explore, explore_add_family(explore, &families, &family),
		       failing->runs + i + 1, failing->num - i - 1);
	}
	free(failing->runs);
	qsort(families.all, families.num, sizeof(family), compare_families);
	for (size_t i = 0; i < families.num; i++) {
		print_family(explore, &families.all[i]);
		explore_free_family(&families.all[i]);
	}
	free(families.all);
	return (unsigned int)families.num;
}
