/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * system_files.c - the trace and the capture of a run of several programs.  A process that opens
 * such a file while no other writes it begins it anew.  There may be times when no member uses the
 * network, and the files are of the whole run: so they are begun here, and locked until it ends.
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "run.h"
#include "system.h"

static const unsigned int options[SYSTEM_NUM_FILES] = { RUN_TRACE, RUN_PCAP };
static int fds[SYSTEM_NUM_FILES];

/* NULL: there is none, or it is standard output. */
static const char *path_of(const struct system *system, size_t i)
{
	const char *path = system_value(system, options[i]);

	return path && *path && strcmp(path, "-") != 0 ? path : NULL;
}

void system_files_begin(const struct system *system)
{
	for (size_t i = 0; i < SYSTEM_NUM_FILES; i++) {
		const char *path = path_of(system, i);

		fds[i] = -1;
		if (!path)
			continue;
		/* What is wrong with it the members say.  A FIFO's reader may come later. */
		fds[i] = open(path, O_WRONLY | O_CREAT | O_NONBLOCK | O_CLOEXEC, 0666);
		if (fds[i] >= 0 && !flock(fds[i], LOCK_EX | LOCK_NB))
			(void)!ftruncate(fds[i], 0);
		if (fds[i] >= 0)
			(void)flock(fds[i], LOCK_SH | LOCK_NB);
	}
}

/* missing: "--trace", or both; NULL: none. */
static void tell_missing(const struct system *system, const char *missing)
{
	/* One that did not begin has said why.  polycm explore traces for itself. */
	if (missing && system->segment->turns && !system->hides && !getenv(SYSTEM_RECORD_VARIABLE))
		tool_error("run: no program used the simulated network: there is no %s", missing);
}

void system_files_end(const struct system *system)
{
	char *missing = NULL;	/* not by path, in which runs that are the same differ */
	struct stat st;

	for (size_t i = 0; i < SYSTEM_NUM_FILES; i++) {
		if (fds[i] < 0)
			continue;
		/* Nobody used the network. */
		if (!fstat(fds[i], &st) && S_ISREG(st.st_mode) && !st.st_size) {
			unlink(path_of(system, i));
			tool_append(&missing, "%s--%s", missing ? " and no " : "",
				    system_files_name(i));
		}
		close(fds[i]);
	}
	tell_missing(system, missing);
	free(missing);
}

/* 0 or a negative errno. */
static int copy(int from, int to)
{
	char bytes[65536];
	ssize_t num, written;

	while ((num = read(from, bytes, sizeof(bytes))) > 0)
		for (ssize_t at = 0; at < num; at += written) {
			written = write(to, bytes + at, (size_t)(num - at));
			if (written <= 0)
				return written ? -errno : -EIO;
		}
	return num ? -errno : 0;
}

FILE *system_files_new(void)
{
	FILE *file = tmpfile();

	if (file && fcntl(fileno(file), F_SETFD, FD_CLOEXEC)) {
		fclose(file);
		return NULL;
	}
	return file;
}

int system_files_copy(const struct system *system, size_t i, FILE **ret)
{
	const char *path = path_of(system, i);
	int fd = path ? open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC) : -1, err = 0;
	struct stat st;

	*ret = NULL;
	if (fd < 0)
		return path && errno != ENOENT ? -errno : 0;
	if (!fstat(fd, &st) && S_ISREG(st.st_mode)) {
		*ret = system_files_new();
		err = *ret ? copy(fd, fileno(*ret)) : -errno;
		/* A part of it is not to be taken for all. */
		if (err && *ret) {
			fclose(*ret);
			*ret = NULL;
		}
	}
	close(fd);
	return err;
}

void system_files_restore(const struct system *system, size_t i, FILE *file)
{
	const char *path = path_of(system, i);
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666), err;

	rewind(file);
	err = fd < 0 ? -errno : copy(fileno(file), fd);
	if (err)
		tool_error("run: %s: %s", path, strerror(-err));
	if (fd >= 0)
		close(fd);
}

const char *system_files_name(size_t i)
{
	return run_options[options[i]].name;
}

bool system_files_has_lines(size_t i)
{
	return options[i] != RUN_PCAP;
}
