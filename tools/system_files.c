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

static const unsigned int options[] = { RUN_TRACE, RUN_PCAP };
static int fds[sizeof(options) / sizeof(options[0])];

void system_files_begin(const struct system *system)
{
	for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++) {
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

	for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++) {
		if (fds[i] < 0)
			continue;
		/* Nobody used the network. */
		if (!fstat(fds[i], &st) && S_ISREG(st.st_mode) && !st.st_size)
			unlink(system_value(system, options[i]));
		close(fds[i]);
	}
}
