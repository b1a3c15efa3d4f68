/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * main.c - the program:
 *
 *	sequences SEED			plays one, its trace on standard output
 *	sequences --play DIR [-j N] [--calm] SEEDS...
 *					plays many, "7" or "1-100": the trace of each in DIR/SEED.txt
 *
 * A sequence is a process of its own.  Environment: as of the program scenarios,
 * and SCENARIO_SECOND4, SCENARIO_OTHER_SERVER4 and so on where the host has them.
 */
#include <sys/wait.h>
#include <unistd.h>

#include "sequence.h"

enum { STEPS = 14, PLACES = 300 };

static unsigned int first_port = 10000;

static void play(unsigned int seed)
{
	static const struct scenario sequence = { .name = "sequence" };
	unsigned int step;

	places_begin((uint16_t)(first_port + seed % PLACES * SCENE_PORTS));
	scene_begin(&sequence);
	actors_begin();
	for (step = 0; step < STEPS; step++) {
		draw_begin(seed, step);
		play_step();
	}
	scene_end();
}

static void start(unsigned int seed, const char *folder)
{
	char name[16];

	snprintf(name, sizeof(name), "%u", seed);
	if (start_process(folder, name))
		return;
	play(seed);
	_exit(0);
}

static int usage(void)
{
	fprintf(stderr, "sequences SEED\nsequences --play DIR [-j N] [--calm] SEEDS...\n");
	return 99;
}

static int play_many(char *const *args)
{
	const char *folder = *args++;
	unsigned int seed, last, running = 0, at_once = 1;
	bool calm = false;
	int given;

	for (; *args && **args == '-'; args++) {
		if (!strcmp(*args, "--calm"))
			calm = true;
		else if (!strcmp(*args, "-j") && args[1] && atoi(args[1]) > 0)
			at_once = (unsigned int)atoi(*++args);
		else
			return usage();
	}
	if (!*args)
		return usage();
	for (; *args; args++) {
		given = sscanf(*args, "%u-%u", &seed, &last);
		if (given < 1)
			return usage();
		for (last = given == 1 ? seed : last; seed <= last; seed++) {
			if (calm)
				wait_for_calm();
			start(seed, folder);
			if (++running >= at_once && wait(NULL) > 0)
				running--;
		}
	}
	while (wait(NULL) > 0)
		;
	return 0;
}

int main(int argc, char *argv[])
{
	const char *port = getenv("SCENARIO_PORT");

	if (port)
		first_port = (unsigned int)atoi(port);
	if (argc >= 4 && !strcmp(argv[1], "--play"))
		return play_many(argv + 2);
	if (argc != 2 || argv[1][0] < '0' || argv[1][0] > '9')
		return usage();
	play((unsigned int)strtoul(argv[1], NULL, 10));
	return 0;
}
