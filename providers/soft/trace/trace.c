/* SPDX-License-Identifier: BSD-2-Clause */
/* trace/trace.c - see trace.h. */
#include "config.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "providers/common/write_error.h"
#include "providers/soft/engine/engine.h"
#include "providers/soft/engine/turns.h"
#include "providers/soft/shm/segment.h"
#include "trace.h"

bool sim_trace_on, sim_trace_used;
struct trace_line sim_trace_current;

static struct {
	int fd;
	bool is_shown;		/* not a file of its own: others may read it at once, or have no room */
	int error;		/* of the first write that failed: nothing is written after it */
	char path[256];		/* for people */
} file = {
	.fd = -1,
};

static bool is_same(const struct stat *st, int fd)
{
	struct stat other;

	return !fstat(fd, &other) && other.st_dev == st->st_dev && other.st_ino == st->st_ino;
}

static bool is_shown(int fd)
{
	struct stat st;

	return fstat(fd, &st) || !S_ISREG(st.st_mode) || is_same(&st, STDOUT_FILENO) ||
	       is_same(&st, STDERR_FILENO);
}

int sim_trace_start(const char *path)
{
	int fd;

	/* It may be the file that is open now: then it is truncated. */
	if (file.fd >= 0)
		(void)flock(file.fd, LOCK_UN);
	fd = trace_file_open(path);
	if (fd < 0)
		return fd;
	sim_trace_stop();
	file.fd = fd;
	sim_trace_current.is_unread = !strcmp(path, "/dev/null");
	file.is_shown = is_shown(fd);
	file.error = 0;
	(void)snprintf(file.path, sizeof(file.path), "%s", strcmp(path, "-") ? path : "standard error");
	sim_trace_on = true;
	return 0;
}

void sim_trace_stop(void)
{
	sim_trace_on = false;
	if (file.fd >= 0)
		close(file.fd);
	file.fd = -1;
}

int sim_trace_error(void)
{
	return file.error;
}

void sim_trace_begin(const char *kind)
{
	sim_trace_used = true;
	if (sim_trace_current.is_unread)
		return;
	trace_begin(&sim_trace_current, sim_now_to_note());
	if (sim_segment_joined())
		trace_number(&sim_trace_current, "process", sim_segment_slot());
	trace_text(&sim_trace_current, "kind", kind);
}

void sim_trace_end(void)
{
	const struct turn_tells *turns;

	if (!sim_trace_on || sim_trace_current.is_unread)
		return;
	turns = file.is_shown ? NULL : sim_turns();
	file.error = trace_end(&sim_trace_current, file.fd, turns ? turns->write_unseen : write);
	if (!file.error)
		return;
	sim_trace_on = false;
	sim_files_failed("trace", file.path, -file.error);
}

void sim_trace_line(const char *kind, const char *format, ...)
{
	char members[sizeof(sim_trace_current.text)];
	va_list args;
	int len;

	sim_trace_begin(kind);
	va_start(args, format);
	len = vsnprintf(members, sizeof(members), format, args);
	va_end(args);
	if (len > 0 && (size_t)len < sizeof(members))
		trace_members(&sim_trace_current, ",%s", members);
	sim_trace_end();
}
