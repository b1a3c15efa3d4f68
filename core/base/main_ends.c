/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * base/main_ends.c - the end of a process whose main() has called pthread_exit().  The C library ends
 * it with its last thread, but threads of ours stay.  So main()'s thread leaves one behind, which
 * ends the process when there are only threads of ours.
 */
#include "config.h"

#include <dirent.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "include/held_signals.h"

#define OURS "polycm-"		/* so all are named */
#define NAME_SIZE 16		/* of a thread, as the kernel has it */
/* Between two looks: longer each time, so the end comes at most a sixteenth late, and a second. */
#define FIRST_PAUSE_NS 10000000L
#define LAST_PAUSE_NS 999999999L

static pthread_key_t key;
/* What main()'s thread was called when it began and when it ended: its threads begin with its name. */
static char names_of_main[2][NAME_SIZE];
static sigset_t mask_of_main;

static bool is_of_program(const char *name)
{
	return strncmp(name, OURS, strlen(OURS)) != 0 || !strcmp(name, names_of_main[0]) ||
	       !strcmp(name, names_of_main[1]);
}

/*
 * "17 (name) S ...".  One that has ended stays as long as the process if it is main()'s.  Any other
 * may just have begun one that is not in the list: that is looked at next time.
 */
static bool is_others(const char *tid, bool is_of_main)
{
	char path[64], text[64] = "", *name, *end;
	FILE *file;

	(void)snprintf(path, sizeof(path), "/proc/self/task/%.20s/stat", tid);
	file = fopen(path, "re");
	if (!file)
		return true;
	/* Not fgets(): a name may have more than one line. */
	(void)!fread(text, 1, sizeof(text) - 1, file);
	fclose(file);
	name = strchr(text, '(');
	end = strrchr(text, ')');
	if (!name || !end || end[1] != ' ')
		return true;
	if (is_of_main && strchr("ZXx", end[2]))
		return false;
	*end = '\0';
	return is_of_program(name + 1);
}

static bool others_are_left(void)
{
	DIR *tasks = opendir("/proc/self/task");
	struct dirent *task;
	bool result = !tasks;
	char of_main[24] = "";		/* its number there; in another namespace it is not getpid() */

	(void)!readlink("/proc/self", of_main, sizeof(of_main) - 1);
	while (tasks && !result && (task = readdir(tasks)))
		result = task->d_name[0] != '.' &&
			 is_others(task->d_name, !strcmp(task->d_name, of_main));
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
	/* Handlers of the end get signals as in the program's last thread. */
	pthread_sigmask(SIG_SETMASK, &mask_of_main, NULL);
	exit(0);
}

static void main_ends(void *unused)
{
	pthread_t thread;
	int error;

	(void)unused;
	(void)prctl(PR_GET_NAME, names_of_main[1]);
	/* Those that come from here on are for the program's threads. */
	hold_signals(&mask_of_main);
	error = pthread_create(&thread, NULL, end_with_last, NULL);
	release_signals(&mask_of_main);
	if (!error)
		pthread_detach(thread);
}

__attribute__((constructor)) static void begin(void)
{
	(void)prctl(PR_GET_NAME, names_of_main[0]);
	/* What is not NULL is destroyed when the thread ends, and not when the process does. */
	if (getpid() == gettid() && !pthread_key_create(&key, main_ends))
		(void)pthread_setspecific(key, &key);
}
