/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * system_files.c - the trace and the capture of a run of several programs.  A process that opens
 * such a file while no other writes it begins it anew.  There may be times when no member uses the
 * network, and the files are of the whole run: so they are begun here, and locked until it ends.
 */
#include "config.h"

#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "run.h"
#include "system.h"

static const unsigned int options[SYSTEM_NUM_FILES] = { RUN_TRACE, RUN_PCAP };
static int fds[SYSTEM_NUM_FILES];

void system_files_begin(const struct system *system)
{
	for (size_t i = 0; i < SYSTEM_NUM_FILES; i++) {
		const char *path = system_value(system, options[i]);

		fds[i] = -1;
		if (!path || !*path || !strcmp(path, "-"))
			continue;
		/* What is wrong with it the members say.  A FIFO's reader may come later. */
		fds[i] = open(path, O_WRONLY | O_CREAT | O_NONBLOCK | O_CLOEXEC, 0666);
		if (fds[i] >= 0 && !flock(fds[i], LOCK_EX | LOCK_NB))
			(void)!ftruncate(fds[i], 0);
		if (fds[i] >= 0)
			(void)flock(fds[i], LOCK_SH | LOCK_NB);
	}
}

void system_files_end(const struct system *system)
{
	struct stat st;

	for (size_t i = 0; i < SYSTEM_NUM_FILES; i++) {
		if (fds[i] < 0)
			continue;
		/* Nobody used the network. */
		if (!fstat(fds[i], &st) && S_ISREG(st.st_mode) && !st.st_size)
			unlink(system_value(system, options[i]));
		close(fds[i]);
	}
}

static bool copy(int from, int to)
{
	char bytes[65536];
	ssize_t num;

	while ((num = read(from, bytes, sizeof(bytes))) > 0)
		if (write(to, bytes, (size_t)num) != num)
			return false;
	return !num;
}

FILE *system_files_copy(const struct system *system, size_t i)
{
	const char *path = system_value(system, options[i]);
	int fd = path && *path ? open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC) : -1;
	FILE *file = NULL;
	struct stat st;

	if (fd >= 0 && !fstat(fd, &st) && S_ISREG(st.st_mode)) {
		file = tmpfile();
		if (!file || !copy(fd, fileno(file)))
			tool_error("run: %s cannot be copied: %m", path);
	}
	if (fd >= 0)
		close(fd);
	return file;
}

void system_files_restore(const struct system *system, size_t i, FILE *file)
{
	const char *path = system_value(system, options[i]);
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);

	rewind(file);
	if (fd < 0 || !copy(fileno(file), fd))
		tool_error("run: %s: %m", path);
	if (fd >= 0)
		close(fd);
}

const char *system_files_name(size_t i)
{
	return run_options[options[i]].name;
}
