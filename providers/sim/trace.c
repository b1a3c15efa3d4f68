/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * trace.c - the trace file.  A process that shares its file with another
 * appends whole lines, so that theirs do not mix.
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "trace.h"

bool sim_trace_on;

static FILE *file;

int sim_trace_open(const char *path)
{
	FILE *opened;
	int fd;

	if (!strcmp(path, "-"))
		fd = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
	else
		fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0666);
	if (fd < 0)
		return -errno;
	opened = fdopen(fd, "a");
	if (!opened) {
		close(fd);
		return -ENOMEM;
	}
	setvbuf(opened, NULL, sim_is_virtual() ? _IOFBF : _IOLBF, 1u << 16);

	sim_trace_close();
	file = opened;
	sim_trace_on = true;
	return 0;
}

void sim_trace_close(void)
{
	sim_trace_on = false;
	if (file)
		fclose(file);
	file = NULL;
}

void sim_trace_flush(void)
{
	if (file)
		fflush(file);
}

void sim_trace_line(const char *kind, const char *format, ...)
{
	va_list args;

	if (!file)
		return;
	fprintf(file, "{\"time\":%" PRIu64 ",\"kind\":\"%s\"", sim_now(), kind);
	if (*format) {
		putc(',', file);
		va_start(args, format);
		vfprintf(file, format, args);
		va_end(args);
	}
	fputs("}\n", file);
}
