/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * main.c - the simulator's own invariants, under many seeds:
 *
 *	./run tests/explore/lives [-v] [--trace FILE] [FIRST-LAST]
 *
 * Without seeds 1-2000.  The first that breaks one is told, with the command
 * that plays it again, and ends the program.
 */
#include <errno.h>
#include <malloc.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lives.h"

#define LAST_SEED 2000u
#define COMPARE_EVERY 50u	/* seeds: one is played twice */
#define WARM_UP 200u		/* seeds, until memory that is kept for good is there */
#define HEAP_SLACK 65536	/* bytes that the C library's own caches may hold */

bool lives_verbose;
static const char *trace_path;

void lives_say(const struct world *world, const char *format, ...)
{
	uint64_t now = 0;
	va_list args;

	(void)world;
	if (!lives_verbose)
		return;
	(void)polycm_sim_now(&now);
	printf("%14.6f ", (double)now / 1e9);
	va_start(args, format);
	vprintf(format, args);
	va_end(args);
	putchar('\n');
}

_Noreturn void lives_broken(const struct world *world, int line, const char *format, ...)
{
	unsigned long long seed = world->seed;
	va_list args;

	fflush(stdout);
	fprintf(stderr, "seed %llu: ", seed);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fprintf(stderr, " (line %d)\nreplay: ./run tests/explore/lives -v --trace %llu.trace %llu\n",
		line, seed, seed);
	(void)polycm_sim_trace(NULL);
	_exit(1);
}

static void check_counts(const struct world *world)
{
	struct polycm_sim_counts c = { .size = sizeof(c) };

	if (polycm_sim_live(&c))
		broken(world, "no counts: %s", strerror(errno));
	if (c.ids || c.contexts || c.pds || c.mrs || c.comp_channels || c.cqs || c.srqs || c.qps ||
	    c.ahs || c.ports || c.packets)
		broken(world, "left: %u ids, %u contexts, %u pds, %u mrs, %u comp_channels, %u cqs, "
		       "%u srqs, %u qps, %u ahs, %u ports, %u packets", c.ids, c.contexts, c.pds,
		       c.mrs, c.comp_channels, c.cqs, c.srqs, c.qps, c.ahs, c.ports, c.packets);
}

static void play(uint64_t seed, const char *trace)
{
	struct world world = { .seed = seed };

	if (polycm_sim_create(seed))
		broken(&world, "no fabric: %s", strerror(errno));
	if (trace && polycm_sim_trace(trace))
		broken(&world, "no trace: %s", strerror(errno));
	lives_build(&world);
	lives_play(&world);
	check_counts(&world);
	if (trace)
		(void)polycm_sim_trace(NULL);
	if (polycm_sim_destroy())
		broken(&world, "the fabric cannot be dropped: %s", strerror(errno));
}

static bool same_files(const char *a, const char *b)
{
	FILE *files[] = { fopen(a, "re"), fopen(b, "re") };
	int c = EOF, d = EOF;

	while (files[0] && files[1]) {
		c = getc_unlocked(files[0]);
		d = getc_unlocked(files[1]);
		if (c != d || c == EOF)
			break;
	}
	for (unsigned int i = 0; i < 2; i++)
		if (files[i])
			fclose(files[i]);
	return files[0] && files[1] && c == d;
}

static void play_twice(uint64_t seed)
{
	const struct world world = { .seed = seed };
	char names[2][64];

	for (unsigned int i = 0; i < 2; i++) {
		snprintf(names[i], sizeof(names[i]), "/tmp/polycm-lives-%d-%u.trace", getpid(), i);
		play(seed, names[i]);
	}
	if (!same_files(names[0], names[1]))
		broken(&world, "two runs differ: %s and %s", names[0], names[1]);
	unlink(names[0]);
	unlink(names[1]);
}

/* Bytes in use; 0 where another allocator is in its place. */
static size_t heap(void)
{
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
	struct mallinfo info = mallinfo();

	return (unsigned int)info.uordblks;
}

static void play_all(uint64_t first, uint64_t last)
{
	size_t before = 0, after;

	for (uint64_t seed = first; seed <= last; seed++) {
		if (seed % COMPARE_EVERY == 0 && !trace_path)
			play_twice(seed);
		else
			play(seed, trace_path);
		if (seed - first == WARM_UP)
			before = heap();
	}
	after = heap();
	if (before && after > before + HEAP_SLACK) {
		fprintf(stderr, "seeds %llu-%llu: the heap grew from %zu to %zu bytes\n",
			(unsigned long long)first, (unsigned long long)last, before, after);
		exit(1);
	}
	printf("seeds %llu-%llu: well\n", (unsigned long long)first, (unsigned long long)last);
}

int main(int argc, char **argv)
{
	unsigned long long first = 1, last = LAST_SEED;
	int num;

	for (int i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "-v")) {
			lives_verbose = true;
		} else if (!strcmp(argv[i], "--trace") && i + 1 < argc) {
			trace_path = argv[++i];
		} else {
			num = sscanf(argv[i], "%llu-%llu", &first, &last);
			if (num < 1)
				return 2;
			last = num == 1 ? first : last;
		}
	}
	if (setenv("POLYCM_PROVIDER", "sim", 1) || setenv("POLYCM_LOG", "error", 0))
		return 2;
	setvbuf(stdout, NULL, _IOLBF, 0);
	play_all(first, last);
	return 0;
}
