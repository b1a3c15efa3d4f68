/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * trace/trace.c - the trace file and its lines.
 *
 * Each line is written at once, so that the trace is complete when the program
 * dies and so that lines of several processes do not mix.  Whoever opens the
 * file while no other process writes it begins it anew.
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "providers/soft/engine/engine.h"
#include "providers/soft/shm/segment.h"
#include "trace.h"
#include "write_error.h"

bool sim_trace_on, sim_trace_told;

static FILE *file;
static struct {
	int fd;
	int error;		/* of the first write that failed: nothing is written after it */
	char path[256];		/* for people */
} target = {
	.fd = -1,
};

/* ------------------------------------------------------------------------
 * The file.
 */

/* Alone with it: begin it anew.  A lock that cannot be had (a pipe, a device) is none. */
static int begin_file(int fd)
{
	if (!flock(fd, LOCK_EX | LOCK_NB) && ftruncate(fd, 0) < 0 && errno != EINVAL)
		return -errno;
	(void)flock(fd, LOCK_SH | LOCK_NB);
	return 0;
}

static int open_file(const char *path)
{
	int fd, r;

	if (!strcmp(path, "-")) {
		fd = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
		return fd < 0 ? -errno : fd;
	}
	fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
	if (fd < 0)
		return -errno;
	r = begin_file(fd);
	if (r < 0) {
		close(fd);
		return r;
	}
	return fd;
}

/* In place of the C library's own, which forgets what a signal kept it from writing. */
static ssize_t write_out(void *cookie, const char *text, size_t len)
{
	size_t done = 0;
	ssize_t n;

	(void)cookie;
	while (done < len && !target.error) {
		n = write(target.fd, text + done, len - done);
		if (n > 0)
			done += (size_t)n;
		else if (n < 0 && errno != EINTR)
			target.error = errno;
	}
	return (ssize_t)done;
}

static int close_out(void *cookie)
{
	int fd = target.fd;

	(void)cookie;
	target.fd = -1;
	return close(fd);
}

/* A line was written, or could not be.  The file stays open for whoever is about to write to it. */
static void check_written(void)
{
	if (!target.error || !sim_trace_on)
		return;
	sim_trace_on = false;
	sim_files_failed("trace", target.path, target.error);
}

int sim_trace_start(const char *path)
{
	static const cookie_io_functions_t functions = { .write = write_out, .close = close_out };
	FILE *opened;
	int fd;

	/* Perhaps it is the same one. */
	if (file)
		(void)flock(target.fd, LOCK_UN);
	fd = open_file(path);
	if (fd < 0)
		return fd;
	opened = fopencookie(NULL, "a", functions);
	if (!opened) {
		close(fd);
		return -ENOMEM;
	}
	setvbuf(opened, NULL, _IOLBF, 1u << 16);
	sim_trace_stop();
	file = opened;
	target.fd = fd;
	target.error = 0;
	(void)snprintf(target.path, sizeof(target.path), "%s",
		       strcmp(path, "-") ? path : "standard error");
	sim_trace_on = true;
	sim_engine_hooks.before_fork = sim_trace_flush;	/* or the child would write it once more */
	return 0;
}

void sim_trace_stop(void)
{
	sim_trace_flush();
	sim_trace_on = false;
	if (file)
		fclose(file);
	file = NULL;
}

int sim_trace_error(void)
{
	return -target.error;
}

void sim_trace_flush(void)
{
	if (!file)
		return;
	fflush(file);
	check_written();
}

/* ------------------------------------------------------------------------
 * A line.
 */

/* Bytes that are no ASCII are told as characters of their number: a name may be anything. */
static void put_string(const char *text)
{
	putc('"', file);
	for (; *text; text++) {
		unsigned char c = (unsigned char)*text;

		if (c == '"' || c == '\\')
			fprintf(file, "\\%c", c);
		else if (c < 0x20 || c >= 0x7f)
			fprintf(file, "\\u%04x", c);
		else
			putc(c, file);
	}
	putc('"', file);
}

void sim_trace_begin(const char *kind)
{
	sim_trace_told = true;
	fprintf(file, "{\"time\":%" PRIu64, sim_now());
	if (sim_segment_joined())
		fprintf(file, ",\"process\":%u", sim_segment_slot());
	fprintf(file, ",\"kind\":\"%s\"", kind);
}

void sim_trace_text(const char *name, const char *value)
{
	fprintf(file, ",\"%s\":", name);
	put_string(value);
}

void sim_trace_number(const char *name, uint64_t value)
{
	fprintf(file, ",\"%s\":%" PRIu64, name, value);
}

void sim_trace_status(const char *name, int value)
{
	fprintf(file, ",\"%s\":%d", name, value);
}

void sim_trace_bytes(const char *name, const void *bytes, size_t len)
{
	const uint8_t *at = bytes;

	fprintf(file, ",\"%s\":\"", name);
	for (size_t i = 0; i < len; i++)
		fprintf(file, "%02x", at[i]);
	putc('"', file);
}

void sim_trace_end(void)
{
	fputs("}\n", file);
	check_written();
}

void sim_trace_line(const char *kind, const char *format, ...)
{
	va_list args;

	if (!file)
		return;
	sim_trace_begin(kind);
	if (*format) {
		putc(',', file);
		va_start(args, format);
		vfprintf(file, format, args);
		va_end(args);
	}
	sim_trace_end();
}
