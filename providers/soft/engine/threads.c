/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * engine/threads.c - counts the program's threads and finds out whether they compute, for the
 * virtual clock, which stands still while one does.  libpolycm-turn knows, and lets those that
 * compute go on first; else the kernel does.
 */
#include "config.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "threads.h"
#include "turns.h"

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

const char *sim_threads_folder = "/proc/self/task";

int sim_threads_counted(void)
{
	const struct turn_tells *turns = sim_turns();
	struct stat st;

	if (turns)
		return (int)turns->num_threads();
	if (stat(sim_threads_folder, &st))
		return -errno;
	/* A folder has a link for each folder in it, and two more. */
	if (st.st_nlink < 3 + OWN_THREADS)
		return 1;
	return (int)(st.st_nlink - 2 - OWN_THREADS);
}

/* A file of a thread, as text.  0 or a negative errno. */
static int read_file(int dir, const char *tid, const char *name, char *text, size_t size)
{
	char path[40];
	ssize_t len;
	int fd, r;

	if ((size_t)snprintf(path, sizeof(path), "%s/%s", tid, name) >= sizeof(path))
		return -ENAMETOOLONG;
	fd = openat(dir, path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	len = read(fd, text, size - 1);
	r = len < 0 ? -errno : 0;
	close(fd);
	text[r ? 0 : len] = '\0';
	return r;
}

/* Does the state, after the name in parentheses, say that it computes?  Or a negative errno. */
static int computes(int dir, const char *tid)
{
	char text[128];
	const char *end;
	int r = read_file(dir, tid, "stat", text, sizeof(text));

	/* It may just have ended. */
	if (r)
		return r == -ENOENT || r == -ESRCH ? 0 : r;
	end = strrchr(text, ')');
	return end && end[1] == ' ' && strchr("RD", end[2]);
}

/* The list ends early if the thread ends at which the kernel just is. */
static bool is_whole(int dir, unsigned int seen)
{
	struct stat st;

	return fstat(dir, &st) || seen + 2 >= st.st_nlink;
}

/* Does one that the folder shows?  Or a negative errno. */
static int shown_compute(void)
{
	struct dirent *entry;
	unsigned int seen = 0;
	int compute = 0;
	long self;
	DIR *dir;

	self = gettid();
	dir = opendir(sim_threads_folder);
	if (!dir)
		return -errno;
	while (!compute && (entry = readdir(dir))) {
		if (entry->d_name[0] == '.')
			continue;
		seen++;
		if (strtol(entry->d_name, NULL, 10) != self)
			compute = computes(dirfd(dir), entry->d_name);
	}
	if (!compute)
		compute = !is_whole(dirfd(dir), seen);
	closedir(dir);
	return compute;
}

int sim_threads_others_compute(void)
{
	const struct turn_tells *turns = sim_turns();
	int num = sim_threads_counted();

	if (num < 0 || num == 1)
		return num < 0 ? num : 0;
	if (!turns)
		return shown_compute();
	turns->let_others();
	return 0;
}

/*
 * A futex without the private flag may be in shared memory, except that of pthread_join(), whose
 * value is the thread's id.
 */
static bool is_private(int dir, unsigned long op, unsigned long value)
{
	char tid[24];

	if (op & FUTEX_PRIVATE_FLAG)
		return true;
	snprintf(tid, sizeof(tid), "%lu", value);
	return !faccessat(dir, tid, F_OK, 0);
}

/* "202 0x7f.. 0x189 0x0 0x0 ...": the number of the system call that it sleeps in, and arguments. */
static bool is_parked(int dir, const char *tid, uintptr_t lock, unsigned long size)
{
	unsigned long number, address, op, value, timeout;
	char text[160];
	int n;

	if (read_file(dir, tid, "syscall", text, sizeof(text)))
		return false;
	n = sscanf(text, "%lu %lx %lx %lx %lx", &number, &address, &op, &value, &timeout);
	if (n != 5 || number != SYS_futex || timeout || address - lock < size)
		return false;
	switch (op & 0x7f) {
	case FUTEX_WAIT:
	case FUTEX_WAIT_BITSET:
		return is_private(dir, op, value & 0xffffffff);
	default:
		return false;
	}
}

unsigned int sim_threads_parked(const void *lock, unsigned long size)
{
	const struct turn_tells *turns = sim_turns();
	struct dirent *entry;
	unsigned int parked = 0;
	long self = gettid();
	DIR *dir;

	if (turns)
		return turns->num_parked(lock, size);
	dir = opendir(sim_threads_folder);
	if (!dir)
		return 0;
	while ((entry = readdir(dir))) {
		if (entry->d_name[0] == '.' || strtol(entry->d_name, NULL, 10) == self)
			continue;
		parked += is_parked(dirfd(dir), entry->d_name, (uintptr_t)lock, size);
	}
	closedir(dir);
	return parked;
}
