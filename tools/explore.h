/* SPDX-License-Identifier: BSD-2-Clause */
/* explore.h - between the files explore*.c: polycm explore.  One thread. */
#ifndef TOOLS_EXPLORE_H
#define TOOLS_EXPLORE_H

#include <stdint.h>
#include <sys/types.h>

#include "polycm.h"

#define EXPLORE_SECOND UINT64_C(1000000000)	/* in ns */

/* What all runs have in common. */
struct explore {
	char **command;
	bool is_system;			/* it is `polycm run', with several programs behind it */
	const char *file;		/* the scenario as it was given, or NULL */
	const char *scenario;		/* with nodes; absolute, or NULL */
	const char *output;		/* folder of what is kept */
	char *work;			/* folder of what is not */
	bool has_own_files;		/* a system finds them as they were (system_overlay.c) */
	char *usual_wait;		/* without faults, too; or NULL */
	uint64_t first, last;		/* seeds */
	char *points;			/* number of places at which threads can be held up, or NULL */
	unsigned int jobs, shrink_runs, failures;
	uint64_t timeout_ns;
};

enum explore_end {
	ENDED_WELL,
	ENDED_BADLY,
	ENDED_BY_SIGNAL,
	ENDED_BY_TIME,
	ENDED_WAITING,			/* badly, after a wait that nothing could end */
	ENDED_WAITING_BY_SIGNAL,	/* likewise */
	ENDED_DAEMON,			/* of a system: a daemon died; the most severe comes first */
	ENDED_UNSERVED,			/* the last program is not served */
	ENDED_PROGRAM,			/* the status of one is not expected */
	ENDED_APART,			/* programs do not agree */
	NOT_STARTED,
};

/* How a program ended. */
struct explore_result {
	enum explore_end end;
	uint64_t at;			/* when, in ns of a system's time; 0: not known */
	int number;			/* exit status, signal, or errno */
	char wait[300];			/* who waits for what, what it does when its time is over, or
					   how a system ended */
	char before[100];		/* how a program of it ended before it waits, or "" */
};

/* Faults that the simulator wrote down, and preemptions that the launcher of several programs did. */
struct explore_faults {
	char **lines;			/* groups as in a scenario file */
	size_t num;
	bool several_fabrics;
};

/* --- explore_run.c: programs, as many at a time as there are jobs --- */

struct explore_run {
	uint64_t seed;
	const char *scenario;		/* absolute, or NULL */
	bool decide;			/* let the seed decide on faults */
	struct explore_result result;
	const char *trace;		/* file for it, or NULL */
	char *record, *output;		/* files; what was decided, and what the program said */
	char *last_words;		/* the end of that, to compare failures (explore_words.c) */
	struct explore_faults faults;	/* of one that failed */
	struct explore_run *next;	/* whose files can be used again */
};

/* The signals are ready to be waited for. */
void explore_runs_begin(void);
/* Begin one in a free place, which must be there; run stays the caller's. */
void explore_start(const struct explore *explore, struct explore_run *run);
bool explore_has_place(const struct explore *explore);
/* The programs of a system may read a file from standard input. */
bool explore_has_input(const struct explore *explore);
/* One that has ended; NULL: none is running, or a signal asks for the end. */
struct explore_run *explore_wait(const struct explore *explore);
/* End one that is running; NULL: none is. */
struct explore_run *explore_stop(void);
bool explore_interrupted(void);
/* Monotonic time in ns. */
uint64_t explore_now(void);
/* There are no more runs. */
void explore_runs_end(void);
/* Begin and wait, when no other is running.  False: a signal asked for the end first. */
bool explore_run(const struct explore *explore, struct explore_run *run);

/* --- explore_launcher.c: a launcher of several programs, which makes one run after the other --- */

/* The first is explore's, the other the launcher's; 0 or a negative errno. */
int explore_launcher_sockets(int sockets[2]);
/* In its process, before exec; number: of all launchers it alone has it. */
void explore_launcher_become(int socket, unsigned int number);
/* Another run with these variables (SYSTEM_AGAIN_VARIABLE), into that file; 0 or a negative errno. */
int explore_launcher_ask(int socket, const char *request, size_t len, const char *output);
/* Has it told the exit status of its run? */
bool explore_launcher_told(int socket, int *ret_status);

/* --- explore_ends.c --- */

/* The wait without end that the program has without faults, too; NULL: none.  To be freed. */
char *explore_usual_wait(const char *output);
/* " waits for ...: WHAT" in a line that says who waits for what; NULL: it is another line. */
const char *explore_find_wait(const char *line, const char **ret_what);
/* A run that failed: was it a wait without end? */
void explore_classify(const struct explore *explore, struct explore_run *run);
/*
 * What the threads of a process group do now, or those of a system that it has launched; returns the
 * processor time, in ns, of the processes.
 */
uint64_t explore_describe_group(pid_t group, bool is_system, char *text, size_t size);
/* Says that text that a thread waits in the kernel, which no turn ends? */
bool explore_is_blocked(const char *text);
bool explore_same(const struct explore_result *a, const struct explore_result *b);
/* "exit status 3", "waits for ever: poll waits for ..."; static. */
const char *explore_words(const struct explore_result *result);

/* --- explore_system.c --- */

/* A system that failed: in which way? */
void explore_classify_system(struct explore_run *run);
/* Of the same one of its ways. */
bool explore_same_system(const struct explore_result *a, const struct explore_result *b);

/* --- explore_faults.c: lists of faults, and scenario files with them --- */

/* Was there any fault in the run, or preemption? */
bool explore_has_faults(const char *record);
/* Does the base scenario itself list faults or preemptions? */
bool explore_lists_faults(const struct explore *explore);
/* At how many places threads of several programs could be held up, for the launcher; or NULL. */
char *explore_points(const char *record);
/* It is a preemption, and no fault. */
bool explore_is_preemption(const char *line);
int explore_read_record(const char *path, struct explore_faults *ret_faults);
void explore_free_faults(struct explore_faults *faults);
/*
 * The base scenario with these faults and this seed; keep[i]: is the i-th in?
 * NULL: all.  On an error it prints why, returns a negative errno, and leaves no file.
 */
int explore_write_scenario(const struct explore *explore, const char *path, uint64_t seed,
			   const struct explore_faults *faults, const bool *keep);

/* --- explore_families.c: failures that are alike --- */

struct explore_family {
	struct explore_run *run;	/* the first of them with the fewest faults */
	bool *keep;			/* the faults that it needs */
	size_t needed;			/* so many; 0: none, or it does not repeat */
	bool repeats;
	bool is_whole;			/* nobody had the time to shorten it */
	bool is_half;			/* --shrink-runs was too low to shorten it further */
	bool saved;			/* its scenario file is there */
	char *trace;			/* or NULL */
	uint64_t *others;		/* seeds of the others */
	size_t num_others;
};

struct explore_families {
	struct explore_family *all;
	size_t num;
};

/* Is the run, which was not shortened, one of them?  Takes another run, or none. */
bool explore_has_family(const struct explore *explore, const struct explore_family *family,
			struct explore_run *run);
void explore_add_seed(struct explore_family *family, uint64_t seed);
void explore_free_family(struct explore_family *family);
/* As a new one or to the one that it is of, which is returned until the next is added. */
struct explore_family *explore_add_family(const struct explore *explore,
					  struct explore_families *families,
					  struct explore_family *family);

/* --- explore_page.c --- */

/* All about a family, in Markdown.  0, or -1 and errno. */
int explore_write_page(const struct explore *explore, const struct explore_family *family,
		       const char *path, const char *scenario);

/* --- explore_report.c --- */

/* "faults", or "faults and preemptions". */
const char *explore_faults_name(const struct explore_faults *faults);
/* Why a run fails whose faults were all left out. */
#define EXPLORE_REST_SUFFICES \
	"what else the seed decides suffices (the order of threads, losses on links)"
/* The command line that repeats it, behind `before'. */
void explore_print_replay(FILE *to, const struct explore *explore, const char *before,
			  const char *scenario);

/* Failing runs, in the order of their seeds.  NULL: reported already. */
struct explore_failing {
	struct explore_run **runs;
	size_t num;
};

/* Reports the runs, each cause once, and frees them; returns the number of causes. */
unsigned int explore_report(const struct explore *explore, struct explore_failing *failing);
/* Nothing of an earlier exploration is left in the folder. */
void explore_clear_output(const struct explore *explore);
/* Could some result not be written?  That was printed. */
bool explore_is_cut(void);
/* Copies what the program printed to the results.  false: it could not, which was printed. */
bool explore_keep_output(const struct explore *explore, const struct explore_run *run);
void explore_free_run(struct explore_run *run);

/* --- explore_words.c --- */

/*
 * The last lines of what the program said, or the last line of each program of a system, without
 * numbers; to be freed.
 */
char *explore_last_words(const struct explore *explore, const char *output);
/* Long numbers become #. */
void explore_blur(char *line);

/* --- explore_shrink.c --- */

/* How many are in. */
size_t explore_count(const bool *keep, size_t num);
/*
 * The fewest faults that end the program in the same way, as keep[] says; the delay of one may be
 * longer then.
 * False: not even all of them do.  *ret_half: --shrink-runs was too low for more.
 */
bool explore_shrink(const struct explore *explore, const struct explore_run *failed,
		    struct explore_faults *faults, bool *keep, bool *ret_half);

/* Does it fail in the same way with these faults?  Its last words then, to be freed, or NULL. */
bool explore_fails_with(const struct explore *explore, const struct explore_run *failed,
			struct explore_faults *faults, const bool *keep, char **ret_last_words);

/*
 * Runs it once more with that scenario, to trace it, and if it fails in the same way, this is the run
 * from now on.  NULL, or why the trace is not complete; to be freed.
 */
char *explore_trace(const struct explore *explore, struct explore_run *failed, const char *scenario,
		    const char *trace);

/* --- explore_causes.c --- */

/*
 * Does it end well, or differently, without faults of these kinds?  If not, its cause is
 * another one, and they are removed from its faults.
 */
bool explore_has_cause(const struct explore *explore, struct explore_run *run,
		       const struct explore_faults *faults, const bool *keep);
/* The last words with its faults of these kinds only; NULL: it does not fail like that. */
char *explore_words_of_kinds(const struct explore *explore, struct explore_run *run,
			     const struct explore_faults *faults, const bool *keep);
/* Are those that are kept of the same kinds? */
bool explore_same_kinds(const struct explore_faults *a, const bool *keep_a,
			const struct explore_faults *b, const bool *keep_b);

#endif
