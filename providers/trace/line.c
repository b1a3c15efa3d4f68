/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * line.c - see line.h.  A line is one write(), so that the trace is complete
 * when the program dies and those of several threads do not mix.
 */
#include "config.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sysexits.h>
#include <unistd.h>

#include "line.h"

#define END "}\n"

const struct polycm_core *trace_core;

static int file = -1;
static atomic_bool failed;	/* a line could not be written */

static bool ends_well;		/* the process, with status 0 */

static void at_exit(int status, void *unused)
{
	(void)unused;
	ends_well = !status;
}

/* Behind all exit handlers: those of what it is around, and the program's own. */
static __attribute__((destructor)) void change_status(void)
{
	if (!ends_well || !atomic_load(&failed))
		return;
	fflush(NULL);
	_exit(EX_IOERR);
}

int trace_open(const char *path)
{
	static bool watched;
	int err;

	if (!watched && on_exit(at_exit, NULL))
		return -ENOMEM;
	watched = true;

	if (!strcmp(path, "-")) {
		file = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
		return file < 0 ? -errno : 0;
	}
	file = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
	if (file < 0)
		return -errno;
	/* Alone with it: begin it anew.  A lock that cannot be had (a pipe, a device) is none. */
	if (!flock(file, LOCK_EX | LOCK_NB) && ftruncate(file, 0) < 0 && errno != EINVAL) {
		err = -errno;
		trace_close();
		return err;
	}
	(void)flock(file, LOCK_SH | LOCK_NB);
	return 0;
}

void trace_close(void)
{
	if (file >= 0)
		close(file);
	file = -1;
}

static void put(struct trace_line *line, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

static void put(struct trace_line *line, const char *format, ...)
{
	size_t room = sizeof(line->text) - sizeof(END) - line->len;
	va_list args;
	int len;

	va_start(args, format);
	len = vsnprintf(line->text + line->len, room, format, args);
	va_end(args);
	if (len > 0 && (size_t)len < room)
		line->len += (size_t)len;
}

/* Bytes that are no ASCII are told as characters of their number: a name may be anything. */
static void quote(const char *value, char *text, size_t size)
{
	size_t len = 0;

	for (; *value && len + 7 < size; value++) {
		unsigned char c = (unsigned char)*value;

		if (c == '"' || c == '\\')
			len += (size_t)snprintf(text + len, size - len, "\\%c", c);
		else if (c < 0x20 || c >= 0x7f)
			len += (size_t)snprintf(text + len, size - len, "\\u%04x", c);
		else
			text[len++] = (char)c;
	}
	text[len] = '\0';
}

void trace_begin(struct trace_line *line, const char *kind, uint32_t id)
{
	line->len = 0;
	put(line, "{\"time\":%" PRIu64 ",\"kind\":\"%s\"", trace_core->now_ns(), kind);
	trace_text(line, "node", program_invocation_short_name);
	trace_number(line, "id", id);
}

void trace_text(struct trace_line *line, const char *name, const char *value)
{
	char text[512];

	quote(value, text, sizeof(text));
	put(line, ",\"%s\":\"%s\"", name, text);
}

void trace_number(struct trace_line *line, const char *name, uint64_t value)
{
	put(line, ",\"%s\":%" PRIu64, name, value);
}

void trace_status(struct trace_line *line, const char *name, int value)
{
	put(line, ",\"%s\":%d", name, value);
}

void trace_address(struct trace_line *line, const char *name, const struct sockaddr *addr)
{
	const struct sockaddr_in *in = (const struct sockaddr_in *)(const void *)addr;
	const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)(const void *)addr;
	char text[INET6_ADDRSTRLEN];

	if (!addr)
		return;
	if (addr->sa_family == AF_INET)
		put(line, ",\"%s\":\"%s:%u\"", name,
		    inet_ntop(AF_INET, &in->sin_addr, text, sizeof(text)), ntohs(in->sin_port));
	else if (addr->sa_family == AF_INET6)
		put(line, ",\"%s\":\"[%s]:%u\"", name,
		    inet_ntop(AF_INET6, &in6->sin6_addr, text, sizeof(text)), ntohs(in6->sin6_port));
	else
		put(line, ",\"%s\":\"family %u\"", name, addr->sa_family);
}

void trace_data(struct trace_line *line, const void *data, size_t len)
{
	const uint8_t *bytes = data;
	char text[2 * UINT8_MAX + 1] = "";

	if (!data || !len)
		return;
	trace_number(line, "private_data_len", len);
	while (len && !bytes[len - 1])
		len--;
	for (size_t i = 0; i < len && i < UINT8_MAX; i++)
		snprintf(text + 2 * i, 3, "%02x", bytes[i]);
	put(line, ",\"private_data\":\"%s\"", text);
}

void trace_end(struct trace_line *line)
{
	size_t done = 0;
	ssize_t n;

	memcpy(line->text + line->len, END, sizeof(END));
	line->len += sizeof(END) - 1;
	do {
		n = write(file, line->text + done, line->len - done);
		if (n > 0)
			done += (size_t)n;
	} while (done < line->len && (n > 0 || (n < 0 && errno == EINTR)));
	if (done == line->len || atomic_exchange(&failed, true))
		return;
	trace_core->log(POLYCM_LOG_ERROR, NULL, "POLYCM_TRACE_FILE: lines are missing from here on: %s",
			strerror(n < 0 ? errno : ENOSPC));
}
