/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * threads.c - counting the program's threads and seeing whether they compute.
 * For the virtual clock, which stands still while somebody does.
 */
#include "config.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "threads.h"

#if defined(__has_include)
#if __has_include(<sys/single_threaded.h>)
#include <sys/single_threaded.h>
#define SINGLE_THREADED __libc_single_threaded
#endif
#endif
#ifndef SINGLE_THREADED
#define SINGLE_THREADED 0
#endif

#if defined(__SANITIZE_THREAD__)
#define OWN_THREADS 1u
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define OWN_THREADS 1u
#endif
#endif
#ifndef OWN_THREADS
#define OWN_THREADS 0u		/* threads that the sanitizer's runtime adds */
#endif

unsigned int sim_threads_count(void)
{
	struct stat st;

	/* A folder has a link for each folder in it, and two more. */
	if (SINGLE_THREADED || stat("/proc/self/task", &st) || st.st_nlink < 3 + OWN_THREADS)
		return 1;
	return (unsigned int)st.st_nlink - 2 - OWN_THREADS;
}

/* The letter behind the name in parentheses; 'S' for a thread that is gone. */
static char state_of(int dir, const char *tid)
{
	char path[32], text[128];
	const char *end;
	ssize_t len;
	int fd;

	if ((size_t)snprintf(path, sizeof(path), "%s/stat", tid) >= sizeof(path))
		return 'S';
	fd = openat(dir, path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return 'S';
	len = read(fd, text, sizeof(text) - 1);
	close(fd);
	if (len <= 0)
		return 'S';
	text[len] = '\0';
	end = strrchr(text, ')');
	return end && end[1] == ' ' ? end[2] : 'S';
}

bool sim_threads_compute(void)
{
	struct dirent *entry;
	bool compute = false;
	long self = gettid();
	DIR *dir;

	if (sim_threads_count() == 1)
		return false;
	dir = opendir("/proc/self/task");
	if (!dir)
		return false;
	while (!compute && (entry = readdir(dir))) {
		if (entry->d_name[0] == '.' || strtol(entry->d_name, NULL, 10) == self)
			continue;
		compute = strchr("RD", state_of(dirfd(dir), entry->d_name)) != NULL;
	}
	closedir(dir);
	return compute;
}
