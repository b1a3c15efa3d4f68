/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * seeds.c - what polycm explore needs for a seed of several programs, in times of what it takes to
 * start /bin/true and to wait for its end, measured in between: machines and their load differ.
 *
 *	./run bench/seeds [SEEDS [COMMAND OF POLYCM EXPLORE]...]
 *
 * Without a command: an rping pair.  Processor time of all processes, and elapsed time.
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define ROUNDS 3
#define STARTS 50
#define MOST_WORDS 200

extern char **environ;

/* In ms. */
struct cost {
	double cpu, elapsed;
};

static void die(const char *what)
{
	fprintf(stderr, "seeds: %s: %s\n", what, strerror(errno));
	exit(EXIT_FAILURE);
}

static double ms_of(struct timeval time)
{
	return (double)time.tv_sec * 1e3 + (double)time.tv_usec / 1e3;
}

static struct cost so_far(void)
{
	struct rusage usage;
	struct timespec now;

	getrusage(RUSAGE_CHILDREN, &usage);
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (struct cost){
		.cpu = ms_of(usage.ru_utime) + ms_of(usage.ru_stime),
		.elapsed = (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6,
	};
}

/* The exit status. */
static int start(char *const *words)
{
	posix_spawn_file_actions_t files;
	int status;
	pid_t pid;

	posix_spawn_file_actions_init(&files);
	posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
	/* polycm explore warns where nothing goes wrong in its only seed. */
	posix_spawn_file_actions_addopen(&files, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
	errno = posix_spawnp(&pid, words[0], &files, NULL, words, environ);
	if (errno)
		die(words[0]);
	posix_spawn_file_actions_destroy(&files);
	if (waitpid(pid, &status, 0) != pid)
		die("waitpid");
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}

static struct cost cost_of(char *const *words, unsigned int times)
{
	struct cost before = so_far(), after;

	for (unsigned int i = 0; i < times; i++)
		/* Some seeds may fail. */
		if (start(words) > 1) {
			fprintf(stderr, "seeds: %s does not work here\n", words[0]);
			exit(EXIT_FAILURE);
		}
	after = so_far();
	return (struct cost){ (after.cpu - before.cpu) / times,
			      (after.elapsed - before.elapsed) / times };
}

/* Without the start of polycm explore, and its first run without faults. */
static struct cost cost_of_seed(char *const *words, char *range, size_t size, unsigned long seeds)
{
	struct cost one, all;

	snprintf(range, size, "1-1");
	one = cost_of(words, 1);
	snprintf(range, size, "1-%lu", seeds + 1);
	all = cost_of(words, 1);
	return (struct cost){ (all.cpu - one.cpu) / (double)seeds,
			      (all.elapsed - one.elapsed) / (double)seeds };
}

static int by_cpu(const void *a, const void *b)
{
	double x = ((const struct cost *)a)->cpu, y = ((const struct cost *)b)->cpu;

	return (x > y) - (x < y);
}

int main(int argc, char **argv)
{
	char pair[][10] = {
		"--on", "server", "rping", "-s", "-a", "10.0.0.1", "-C", "3",
		"--on", "client", "rping", "-c", "-a", "10.0.0.1", "-C", "3",
	};
	unsigned long seeds = argc > 1 ? strtoul(argv[1], NULL, 10) : 100;
	char range[32], folder[] = "/tmp/polycm-seeds.XXXXXX", *command = getenv("POLYCM");
	char explore[][16] = { "explore", "--jobs", "1", "--failures", "0", "--shrink-runs", "0" };
	char output[] = "--output", numbers[] = "--seeds", true_path[] = "/bin/true";
	char *words[MOST_WORDS] = { command };
	char *const nothing[] = { true_path, NULL };
	struct cost ratios[ROUNDS];
	size_t num = 1;

	if (!command || !seeds || argc > MOST_WORDS - 32) {
		fputs("usage: ./run bench/seeds [SEEDS [COMMAND OF POLYCM EXPLORE]...]\n", stderr);
		return 2;
	}
	if (!mkdtemp(folder))
		die(folder);
	for (size_t i = 0; i < sizeof(explore) / sizeof(explore[0]); i++)
		words[num++] = explore[i];
	words[num++] = output;
	words[num++] = folder;
	words[num++] = numbers;
	words[num++] = range;
	for (size_t i = 0; argc < 3 && i < sizeof(pair) / sizeof(pair[0]); i++)
		words[num++] = pair[i];
	for (int i = 2; i < argc; i++)
		words[num++] = argv[i];
	for (unsigned int i = 0; i < ROUNDS; i++) {
		struct cost before = cost_of(nothing, STARTS);
		struct cost seed = cost_of_seed(words, range, sizeof(range), seeds);
		struct cost after = cost_of(nothing, STARTS);

		ratios[i] = (struct cost){ 2 * seed.cpu / (before.cpu + after.cpu),
					   2 * seed.elapsed / (before.elapsed + after.elapsed) };
		printf("a seed: %.1f ms of processor, %.1f ms; /bin/true: %.2f and %.2f ms; ratio %.1f "
		       "and %.1f\n", seed.cpu, seed.elapsed, (before.cpu + after.cpu) / 2,
		       (before.elapsed + after.elapsed) / 2, ratios[i].cpu, ratios[i].elapsed);
	}
	qsort(ratios, ROUNDS, sizeof(ratios[0]), by_cpu);
	printf("median: a seed takes %.1f times the processor time of /bin/true\n",
	       ratios[ROUNDS / 2].cpu);
	fflush(stdout);
	execlp("rm", "rm", "-rf", folder, NULL);
	die("rm");
	return EXIT_FAILURE;
}
