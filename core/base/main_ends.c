/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * base/main_ends.c - the end of a process whose main() has called pthread_exit().  The C library ends
 * it with its last thread, but threads of ours stay.  So main()'s thread leaves one behind, which
 * ends the process when there are only threads of ours.
 */
#include "config.h"

#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define OURS "(polycm-"		/* so all are named */
/* Between two looks: longer each time, so the end comes at most a sixteenth late, and a second. */
#define FIRST_PAUSE_NS 10000000L
#define LAST_PAUSE_NS 999999999L

static pthread_key_t key;

/* One that has ended stays as long as the process if it is main()'s. */
static bool is_others(const char *tid)
{
	char path[64], text[64] = "";
	const char *state;
	FILE *file;

	(void)snprintf(path, sizeof(path), "/proc/self/task/%.20s/stat", tid);
	file = fopen(path, "re");
	if (!file)
		return errno != ENOENT;
	(void)!fgets(text, sizeof(text), file);
	fclose(file);
	state = strrchr(text, ')');
	return state && !strstr(text, OURS) && state[1] && !strchr("ZXx", state[2]);
}

static bool others_are_left(void)
{
	DIR *tasks = opendir("/proc/self/task");
	struct dirent *task;
	bool result = !tasks;

	while (tasks && !result && (task = readdir(tasks)))
		result = task->d_name[0] != '.' && is_others(task->d_name);
	if (tasks)
		closedir(tasks);
	return result;
}

static void *end_with_last(void *unused)
{
	struct timespec pause = { .tv_nsec = FIRST_PAUSE_NS };

	(void)unused;
	pthread_setname_np(pthread_self(), "polycm-last");
	while (others_are_left()) {
		/* Not nanosleep(), which may be libpolycm-interpose's. */
		(void)syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, &pause, NULL);
		pause.tv_nsec += pause.tv_nsec / 16;
		if (pause.tv_nsec > LAST_PAUSE_NS)
			pause.tv_nsec = LAST_PAUSE_NS;
	}
	exit(0);
}

static void main_ends(void *unused)
{
	pthread_t thread;

	(void)unused;
	if (pthread_create(&thread, NULL, end_with_last, NULL))
		return;
	pthread_detach(thread);
}

__attribute__((constructor)) static void begin(void)
{
	/* What is not NULL is destroyed when the thread ends, and not when the process does. */
	if (getpid() == gettid() && !pthread_key_create(&key, main_ends))
		(void)pthread_setspecific(key, &key);
}
