/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * main.c - the program:
 *
 *	scenarios --list [WHAT...]		names, flags and what they show
 *	scenarios NAME				plays one
 *	scenarios --play DIR [-j N] [--calm] [--slow] [--shared|--alone] [WHAT...]
 *						plays many: the trace of each in DIR/NAME.txt
 *
 * WHAT is a scenario or the first part of names ("accept" for accept-too-long
 * and so on; "=accept" for that alone).  Each scenario is a process of its own,
 * which is made before any RDMA call; those with LINK or ALONE run after all
 * others, one at a time (--shared: only others, --alone: only those).  SLOW ones
 * run only with --slow or when named; they mostly wait, so they all run at the
 * same time.  --calm, for a machine that has nothing else to do: each starts
 * only when the others wait, not when all of N want the processor; and the
 * kernel's log tells their names, for one that crashes it.
 *
 * Environment: SCENARIO_CLIENT4 and so on, the addresses; SCENARIO_LINK, the link's command;
 * SCENARIO_PORT, the first of 10 ports for each scenario (default 10000); SCENARIO_PATIENCE, seconds to
 * wait for an event; SCENARIO_PACE, how many times longer than else to wait for what may come;
 * SCENARIO_TIMES, set to be told how long each took.
 */
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "scene_internal.h"

#define TOPIC(name) extern const struct scenario name##_scenarios[];
#include "topics.h"
#undef TOPIC

static const struct scenario *const topics[] = {
#define TOPIC(name) name##_scenarios,
#include "topics.h"
#undef TOPIC
};

enum { MAX_SCENARIOS = 500 };

static struct {
	const struct scenario *scenario;
	bool wanted;
	pid_t process;
	time_t started;
} table[MAX_SCENARIOS];
static unsigned int num;
static unsigned int first_port = 10000;
static bool times; /* tell how long each took */
static bool calm;  /* start one when no other computes */

static void fill_table(void)
{
	const struct scenario *scenario;
	unsigned int i, j;

	for (i = 0; i < ARRAY_LEN(topics); i++) {
		for (scenario = topics[i]; scenario->name; scenario++) {
			for (j = 0; j < num; j++) {
				if (!strcmp(table[j].scenario->name, scenario->name)) {
					fprintf(stderr, "two scenarios %s\n", scenario->name);
					exit(99);
				}
			}
			if (num == MAX_SCENARIOS)
				abort();
			table[num++].scenario = scenario;
		}
	}
}

/* "accept" takes "accept" and "accept-too-long". */
static bool matches(const char *name, const char *what)
{
	size_t len = strlen(what);

	if (*what == '=')
		return !strcmp(name, what + 1);
	return !strncmp(name, what, len) && (!name[len] || name[len] == '-' || what[len - 1] == '-');
}

static void want(char *const *whats, bool slow)
{
	unsigned int i;
	bool any;

	for (i = 0; !*whats && i < num; i++)
		table[i].wanted = slow || !(table[i].scenario->flags & SLOW);
	for (; *whats; whats++) {
		any = false;
		for (i = 0; i < num; i++) {
			if (matches(table[i].scenario->name, *whats)) {
				any = true;
				table[i].wanted = slow || !(table[i].scenario->flags & SLOW) ||
						  !strcmp(table[i].scenario->name,
							  *whats + (**whats == '='));
			}
		}
		if (!any) {
			fprintf(stderr, "no scenario %s\n", *whats);
			exit(99);
		}
	}
}

static int list(char *const *whats)
{
	const struct scenario *scenario;
	unsigned int i;

	want(whats, true);
	for (i = 0; i < num; i++) {
		scenario = table[i].scenario;
		if (table[i].wanted)
			printf("%-32s %s%s%s%s %s\n", scenario->name,
			       scenario->flags & SLOW ? "S" : "-", scenario->flags & LINK ? "L" : "-",
			       scenario->flags & PROCESSES ? "P" : "-",
			       scenario->flags & ALONE ? "A" : "-", scenario->about);
	}
	return 0;
}

/* --- Playing. --- */

static void play(unsigned int index)
{
	places_begin((uint16_t)(first_port + index * SCENE_PORTS));
	scene_begin(table[index].scenario);
	table[index].scenario->play();
	scene_end();
}

static void start(unsigned int index, const char *folder)
{
	table[index].process = start_process(folder, table[index].scenario->name);
	table[index].started = time(NULL);
	if (table[index].process)
		return;
	setpgid(0, 0);
	play(index);
	_exit(0);
}

/* One of those that run has ended. */
static bool reap(void)
{
	unsigned int i;
	int status;
	pid_t process = wait(&status);

	for (i = 0; i < num; i++) {
		if (process > 0 && table[i].process == process) {
			table[i].process = 0;
			if (times)
				fprintf(stderr, "%4ld s %s\n", (long)(time(NULL) - table[i].started),
					table[i].scenario->name);
			if (WIFSIGNALED(status))
				fprintf(stderr, "%s: killed by signal %d\n",
					table[i].scenario->name, WTERMSIG(status));
			return true;
		}
	}
	return process > 0;
}

static void mend_link(void)
{
	const char *command = getenv("SCENARIO_LINK");
	char line[512];

	if (!command || !*command)
		return;
	snprintf(line, sizeof(line), "%s mend >&2", command);
	if (system(line)) /* NOLINT: the runner's own command */
		fprintf(stderr, "%s failed\n", line);
}

static bool is_alone(unsigned int index)
{
	return table[index].scenario->flags & (LINK | ALONE);
}

/* To the console, too, which outlives the kernel. */
static void tell_kernel(const char *name)
{
	FILE *file = calm ? fopen("/dev/kmsg", "we") : NULL;

	if (file) {
		fprintf(file, "<3>scenario %s\n", name);
		fclose(file);
	}
}

/* At the same time as others; SLOW ones do not count, they wait. */
static void play_shared(const char *folder, unsigned int at_once)
{
	unsigned int i, running = 0;

	for (i = 0; i < num; i++) {
		if (!table[i].wanted || is_alone(i))
			continue;
		if (calm)
			wait_for_calm();
		tell_kernel(table[i].scenario->name);
		start(i, folder);
		if (table[i].scenario->flags & SLOW)
			continue;
		if (++running >= at_once && reap())
			running--;
	}
	while (reap())
		;
}

static void play_alone(const char *folder)
{
	unsigned int i;

	for (i = 0; i < num; i++) {
		if (!table[i].wanted || !is_alone(i))
			continue;
		tell_kernel(table[i].scenario->name);
		start(i, folder);
		while (reap())
			;
		if (table[i].scenario->flags & LINK)
			mend_link();
	}
}

static int usage(void)
{
	fprintf(stderr, "scenarios --list [WHAT...]\n"
			"scenarios --play DIR [-j N] [--calm] [--slow] [--shared|--alone] [WHAT...]\n"
			"scenarios NAME\n");
	return 99;
}

/* The options after --play DIR. */
static int play_options(char *const *args)
{
	const char *folder = *args++;
	bool slow = false, shared = true, alone = true;
	unsigned int at_once = 1;

	for (; *args && **args == '-'; args++) {
		if (!strcmp(*args, "--slow"))
			slow = true;
		else if (!strcmp(*args, "--calm"))
			calm = true;
		else if (!strcmp(*args, "--shared"))
			alone = false;
		else if (!strcmp(*args, "--alone"))
			shared = false;
		else if (!strcmp(*args, "-j") && args[1] && atoi(args[1]) > 0)
			at_once = (unsigned int)atoi(*++args);
		else
			return usage();
	}
	want(args, slow);
	if (shared)
		play_shared(folder, at_once);
	if (alone)
		play_alone(folder);
	return 0;
}

int main(int argc, char *argv[])
{
	const char *port = getenv("SCENARIO_PORT");
	unsigned int i;

	fill_table();
	times = getenv("SCENARIO_TIMES") != NULL;
	if (port)
		first_port = (unsigned int)atoi(port);
	if (argc >= 2 && !strcmp(argv[1], "--list"))
		return list(argv + 2);
	if (argc >= 3 && !strcmp(argv[1], "--play"))
		return play_options(argv + 2);
	if (argc != 2 || argv[1][0] == '-')
		return usage();
	for (i = 0; i < num; i++) {
		if (!strcmp(table[i].scenario->name, argv[1])) {
			play(i);
			return 0;
		}
	}
	fprintf(stderr, "no scenario %s\n", argv[1]);
	return 99;
}
