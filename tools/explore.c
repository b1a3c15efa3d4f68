/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * explore.c - polycm explore: a program under each of many seeds, on a network
 * where the seed decides what goes wrong, and of the seeds under which it fails
 * the fewest faults that it takes.
 */
#include "config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "explore.h"

#define MAX_JOBS 256u
#define SHOW_EVERY (EXPLORE_SECOND / 10)

/* What became of all of it. */
struct progress {
	uint64_t done, failed, with_faults, began, shown;
	unsigned int causes;
	bool terminal;
};

void explore_usage(FILE *to)
{
	fputs("usage: polycm explore [OPTION]... [--] COMMAND [ARGUMENT]...\n"
	      "       polycm explore [OPTION]... {--on | --daemon} NODE COMMAND [ARGUMENT]...\n"
	      "                      {--on | --daemon} NODE COMMAND ...\n"
	      "       polycm explore [OPTION]... --scenario FILE\n"
	      "\n"
	      "Runs COMMAND on the simulator, in virtual time, under many seeds. The seed\n"
	      "decides which messages are lost, late, duplicated or out of order. For each way\n"
	      "in which COMMAND fails, prints the fewest faults that make it fail.\n"
	      "\n"
	      "  --seeds A-B         the seeds to run (1-1000)\n"
	      "  --scenario FILE     nodes, links, and limits for faults in its group 'explore'\n"
	      "  --transport NAME    transport of the device: roce, ib, iwarp or a vendor's\n"
	      "  --jobs N            number of runs at a time (one per processor)\n"
	      "  --timeout SECONDS   limit of real time for one run (10)\n"
	      "  --failures N        stop after this many failing seeds; 0: no limit (10)\n"
	      "  --shrink-runs N     limit of additional runs for each failing seed (200)\n"
	      "  --output DIR        folder for the results (polycm-explore)\n"
	      "  --own-files         several programs: each run finds files as they were, and what\n"
	      "                      it writes is not kept\n"
	      "  --on, --daemon NODE several programs, as for polycm run; without COMMAND those\n"
	      "                      of the scenario file\n"
	      "\n"
	      "Exit status: 0: no seed fails, 1: some seeds fail, 2: bad options, or COMMAND\n"
	      "fails without faults, too, 74: some seeds fail, but the results could not be\n"
	      "written completely, 126: COMMAND cannot be executed, 127: it was not found.\n", to);
}

/* ------------------------------------------------------------------------
 * Options.
 */

static bool read_number(const char *text, char end, uint64_t *ret_number, const char **ret_rest)
{
	char *rest;

	errno = 0;
	*ret_number = strtoull(text, &rest, 10);
	*ret_rest = rest;
	return *text >= '0' && *text <= '9' && *rest == end && !errno && *ret_number <= INT64_MAX;
}

/* "1-10000" or "17". */
static int read_seeds(struct explore *explore, const char *text)
{
	const char *rest;
	bool fits;

	if (strchr(text, '-')) {
		fits = read_number(text, '-', &explore->first, &rest) &&
		       read_number(rest + 1, '\0', &explore->last, &rest);
	} else {
		fits = read_number(text, '\0', &explore->first, &rest);
		explore->last = explore->first;
	}
	if (fits && explore->first <= explore->last)
		return 0;
	tool_error("--seeds: '%s' is not like 1-10000", text);
	return STATUS_USAGE;
}

/* Of an option that may not be given: NULL. */
static int read_count(const char *option, const char *text, uint64_t min, uint64_t max,
		      unsigned int *ret_count)
{
	const char *rest;
	uint64_t number;

	if (!text)
		return 0;
	if (read_number(text, '\0', &number, &rest) && number >= min && number <= max) {
		*ret_count = (unsigned int)number;
		return 0;
	}
	tool_error("--%s: '%s' is no number from %llu to %llu", option, text,
		   (unsigned long long)min, (unsigned long long)max);
	return STATUS_USAGE;
}

static int read_timeout(struct explore *explore, const char *text)
{
	char *rest;
	double seconds = strtod(text, &rest);

	if (rest == text || *rest || !(seconds >= 0.01 && seconds <= 86400)) {
		tool_error("--timeout: '%s' is no number of seconds from 0.01 to 86400", text);
		return STATUS_USAGE;
	}
	explore->timeout_ns = (uint64_t)(seconds * (double)EXPLORE_SECOND);
	return 0;
}

enum {
	SEEDS, SCENARIO, TRANSPORT, JOBS, TIMEOUT, FAILURES, SHRINK_RUNS, OUTPUT, OWN_FILES,
	ON, DAEMON, NUM_OPTIONS
};

static const struct option options[] = {
	{ "seeds", required_argument, NULL, SEEDS },
	{ "scenario", required_argument, NULL, SCENARIO },
	{ "transport", required_argument, NULL, TRANSPORT },
	{ "jobs", required_argument, NULL, JOBS },
	{ "timeout", required_argument, NULL, TIMEOUT },
	{ "failures", required_argument, NULL, FAILURES },
	{ "shrink-runs", required_argument, NULL, SHRINK_RUNS },
	{ "output", required_argument, NULL, OUTPUT },
	{ "own-files", no_argument, NULL, OWN_FILES },
	{ "on", required_argument, NULL, ON },
	{ "daemon", required_argument, NULL, DAEMON },
	{ "help", no_argument, NULL, 'h' },
	{ NULL, 0, NULL, 0 },
};

static int read_values(struct explore *explore, const char *const *values)
{
	if ((values[SEEDS] && read_seeds(explore, values[SEEDS])) ||
	    read_count("jobs", values[JOBS], 1, MAX_JOBS, &explore->jobs) ||
	    (values[TIMEOUT] && read_timeout(explore, values[TIMEOUT])) ||
	    read_count("failures", values[FAILURES], 0, UINT32_MAX, &explore->failures) ||
	    read_count("shrink-runs", values[SHRINK_RUNS], 0, UINT32_MAX, &explore->shrink_runs))
		return STATUS_USAGE;
	explore->file = explore->scenario = values[SCENARIO];
	explore->has_own_files = values[OWN_FILES];
	if (values[OUTPUT])
		explore->output = values[OUTPUT];
	return 0;
}

/* ------------------------------------------------------------------------
 * Telling.
 */

static void show_progress(const struct explore *explore, struct progress *progress)
{
	uint64_t time = explore_now();

	if (!progress->terminal || time - progress->shown < SHOW_EVERY)
		return;
	progress->shown = time;
	fprintf(stderr, "\r%llu of %llu seeds, %llu failed, %.0f a second\033[K",
		(unsigned long long)progress->done,
		(unsigned long long)(explore->last - explore->first + 1),
		(unsigned long long)progress->failed,
		(double)progress->done * (double)EXPLORE_SECOND / (double)(time - progress->began + 1));
}

static void clear_progress(const struct progress *progress)
{
	if (progress->terminal)
		fputs("\r\033[K", stderr);
}

/* ------------------------------------------------------------------------
 * All seeds.
 */

/* Of "polycm run --on NODE COMMAND --on NODE COMMAND". */
static bool has_several(const struct explore *explore)
{
	unsigned int num = 0;

	for (char **word = explore->command + 2; *word; word++)
		num += !strcmp(*word, "--on") || !strcmp(*word, "--daemon");
	return num > 1;
}

static const char *name_of(const struct explore *explore)
{
	if (!explore->is_system)
		return explore->command[0];
	if (!explore->command[2])
		return explore->file;
	return has_several(explore) ? "the system" : explore->command[4];
}

static struct explore_run *new_run(const struct explore *explore, uint64_t seed)
{
	struct explore_run *run = tool_realloc(NULL, 1, sizeof(*run));
	unsigned long long number = seed;

	*run = (struct explore_run){
		.seed = seed,
		.scenario = explore->scenario,
		.decide = true,
		.record = tool_printf("%s/%llu.faults", explore->work, number),
		.output = tool_printf("%s/%llu.out", explore->work, number),
	};
	return run;
}

/* Making files takes some file systems longer than using them again. */
static struct explore_run *next_run(const struct explore *explore, struct explore_run **spares,
				    uint64_t seed)
{
	struct explore_run *run = *spares;

	if (!run)
		return new_run(explore, seed);
	*spares = run->next;
	run->seed = seed;
	return run;
}

static void add_failing(struct explore_failing *failing, struct explore_run *run)
{
	size_t at = failing->num;

	failing->runs = tool_realloc(failing->runs, failing->num + 1, sizeof(*failing->runs));
	for (failing->num++; at && failing->runs[at - 1]->seed > run->seed; at--)
		failing->runs[at] = failing->runs[at - 1];
	failing->runs[at] = run;
}

static bool is_enough(const struct explore *explore, const struct progress *progress)
{
	return explore->failures && progress->failed >= explore->failures;
}

static void run_all(const struct explore *explore, struct progress *progress,
		    struct explore_failing *failing)
{
	struct explore_run *run, *spares = NULL;
	uint64_t next = explore->first;
	bool more = true;

	for (;;) {
		while (more && explore_has_place(explore) && !is_enough(explore, progress)) {
			explore_start(explore, next_run(explore, &spares, next));
			more = next++ != explore->last;
		}
		run = explore_wait(explore);
		if (!run)
			break;
		progress->done++;
		progress->with_faults += explore_has_faults(run->record);
		if (run->result.end == ENDED_WELL) {
			run->next = spares;
			spares = run;
		} else {
			progress->failed++;
			run->last_words = explore_last_words(explore, run->output);
			add_failing(failing, run);
		}
		show_progress(explore, progress);
	}
	while ((run = explore_stop()))
		explore_free_run(run);
	while ((run = spares)) {
		spares = run->next;
		explore_free_run(run);
	}
}

static void summarise(const struct explore *explore, const struct progress *progress)
{
	printf("%llu seed%s, %llu failed", (unsigned long long)progress->done,
	       progress->done == 1 ? "" : "s", (unsigned long long)progress->failed);
	if (progress->causes)
		printf(" by %u cause%s", progress->causes, progress->causes > 1 ? "s" : "");
	printf(", %llu with faults%s, %.1f s\n", (unsigned long long)progress->with_faults,
	       explore->is_system ? " or preemptions" : "",
	       (double)(explore_now() - progress->began) / (double)EXPLORE_SECOND);
	if (explore_interrupted())
		puts("interrupted");
	else if (is_enough(explore, progress) &&
		 progress->done <= explore->last - explore->first)
		printf("stopped after --failures %u%s; --failures 0 tries all seeds\n",
		       explore->failures, progress->failed > explore->failures ?
		       " and what ran beside" : "");
	if (progress->done && !progress->with_faults)
		tool_error("nothing went wrong in any run: either %s connects nothing through the "
			   "simulator, or the group 'explore' leaves nothing that may, or there are "
			   "too few seeds", name_of(explore));
	if (explore_is_cut())
		printf("not all of what was found could be written to %s\n", explore->output);
	else if (progress->causes)
		printf("scenario files and what the program printed are in %s\n", explore->output);
}

/* polycm run, or a shell of its programs, says so. */
static bool cannot_run(const struct explore *explore, const struct explore_result *result)
{
	return explore->is_system && result->end == ENDED_BADLY &&
	       (result->number == STATUS_CANNOT_EXECUTE || result->number == STATUS_NOT_FOUND);
}

/* Without faults it must do well, or what is found says nothing of them. */
static int try_without(struct explore *explore)
{
	struct explore_run *run = new_run(explore, explore->first);
	const char *with;
	int status = 0;

	run->decide = false;
	if (!explore_run(explore, run)) {
		tool_error("interrupted");
		status = EXIT_FAILURE;
	} else if (run->result.end != ENDED_WELL) {
		with = explore_lists_faults(explore) ? "with the faults of the file alone" :
						       "without faults";
		tool_error("%s fails %s, too: %s", name_of(explore), with,
			   explore_words(&run->result));
		if (explore_keep_output(explore, run))
			tool_error("what it printed is in %s/seed-%llu.out", explore->output,
				   (unsigned long long)run->seed);
		status = cannot_run(explore, &run->result) ? run->result.number : STATUS_USAGE;
	} else {
		explore->usual_wait = explore_usual_wait(run->output);
		explore->points = explore_points(run->record);
	}
	explore_free_run(run);
	return status;
}

static int explore_all(struct explore *explore)
{
	struct progress progress = { .began = explore_now(), .terminal = isatty(STDERR_FILENO) };
	struct explore_failing failing = { 0 };
	int status;

	explore_runs_begin();
	status = try_without(explore);
	if (status) {
		explore_runs_end();
		return status;
	}
	explore_clear_output(explore);
	run_all(explore, &progress, &failing);
	clear_progress(&progress);
	progress.causes = explore_report(explore, &failing);
	explore_runs_end();
	summarise(explore, &progress);
	return explore_is_cut() ? STATUS_CUT : progress.failed || explore_interrupted();
}

/* Each run of a system is one of `polycm run'. */
static void set_command(struct explore *explore, char **words, size_t num, bool is_system)
{
	explore->is_system = is_system;
	explore->command = tool_realloc(NULL, num + 3, sizeof(char *));
	if (is_system) {
		explore->command[0] = place_command();
		explore->command[1] = tool_strdup("run");
	}
	memcpy(explore->command + (is_system ? 2 : 0), words, (num + 1) * sizeof(char *));
}

/* Before hours of runs, not after them.  An empty one goes again at the end. */
static int make_output(const struct explore *explore)
{
	struct stat st;

	if (!mkdir(explore->output, 0777))
		return 0;
	if (errno == EEXIST && !stat(explore->output, &st)) {
		errno = S_ISDIR(st.st_mode) ? 0 : ENOTDIR;
		if (!errno && !access(explore->output, W_OK | X_OK))
			return 0;
	}
	tool_error("--output %s: %m", explore->output);
	return STATUS_USAGE;
}

/* 0 or the exit status of what cannot be run. */
static int find_programs(const struct explore *explore)
{
	char **word = explore->command + 2;
	int status = 0;

	if (!explore->is_system)
		return run_find(explore->command[0]);
	for (; !status && *word; word++)
		if ((!strcmp(*word, "--on") || !strcmp(*word, "--daemon")) && word[1] && word[2])
			status = run_find(word[2]);
	return status;
}

/*
 * Where the scenario has no nodes: a file with those that are named, if any, and their transport.  Else
 * the scenario must have them; of its own programs it is checked with the rest.
 */
static int set_nodes(struct explore *explore, const char **transport)
{
	char *path = tool_printf("%s/nodes", explore->work);
	bool is_written;
	int status = system_write_nodes(explore->command + 2, explore->scenario, *transport, path,
					&is_written);

	if (!is_written) {
		free(path);
		return status || !explore->command[2] ? status :
			system_check_nodes(explore->command + 2, explore->scenario);
	}
	explore->scenario = path;
	*transport = NULL;
	return status;
}

static int prepare(struct explore *explore, const char *transport)
{
	const char *folder = getenv("TMPDIR");
	int status;

	status = find_programs(explore);
	if (status)
		return status;
	explore->work = tool_printf("%s/polycm-explore.XXXXXX", folder && *folder ? folder : "/tmp");
	if (!mkdtemp(explore->work)) {
		tool_error("%s: %m", explore->work);
		return EXIT_FAILURE;
	}
	unsetenv("POLYCM_SIM_EXPLORE");
	if (explore->is_system)
		status = set_nodes(explore, &transport);
	if (status)
		return status;
	status = run_prepare(explore->scenario, transport,
			     explore->is_system ? NULL : explore->command[0]);
	if (status)
		return status;
	if (explore->scenario)
		explore->scenario = tool_strdup(getenv("POLYCM_SIM_SCENARIO"));
	run_tell_tcp(explore->scenario, explore->is_system);
	if (!explore->is_system || explore->command[2] || system_has_programs(explore->scenario))
		return 0;
	tool_error("explore: no command is given, and %s has no programs", explore->file);
	return STATUS_USAGE;
}

int explore_command(int argc, char **argv)
{
	long processors = sysconf(_SC_NPROCESSORS_ONLN);
	struct explore explore = {
		.output = "polycm-explore",
		.first = 1,
		.last = 1000,
		.jobs = processors > 0 && processors < (long)MAX_JOBS ? (unsigned int)processors : 1,
		.shrink_runs = 200,
		.failures = 10,
		.timeout_ns = 10 * EXPLORE_SECOND,
	};
	const char *values[NUM_OPTIONS] = { NULL };
	int status = tool_options(argc, argv, "+:h", options, explore_usage, values);

	if (status >= 0)
		return status;
	status = read_values(&explore, values);
	if (status)
		return status;
	if (optind == argc && !explore.scenario) {
		tool_error("explore: no command is given; 'polycm help explore' tells more");
		return STATUS_USAGE;
	}
	tool_prepare_children();
	status = values[ON] || values[DAEMON] ? 2 : 0;
	set_command(&explore, argv + optind - status, (size_t)(argc - optind + status),
		    status || optind == argc);
	status = prepare(&explore, values[TRANSPORT]);
	if (!status)
		status = make_output(&explore);
	if (!status) {
		status = explore_all(&explore);
		rmdir(explore.output);
	}
	if (explore.work) {
		char *nodes = tool_printf("%s/nodes", explore.work);

		unlink(nodes);
		rmdir(explore.work);
		free(nodes);
	}
	return status;
}
