/* SPDX-License-Identifier: BSD-2-Clause */
/* trace_line.c - see trace_line.h. */
#include "config.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "trace_line.h"

#define END "}\n"
#define ROOM (sizeof(((struct trace_line *)0)->text) - sizeof(END))

int trace_file_open(const char *path)
{
	struct stat st;
	int fd, err;

	if (!strcmp(path, "-")) {
		fd = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
		return fd < 0 ? -errno : fd;
	}
	fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
	if (fd < 0)
		return -errno;
	/* Pipes and devices need no lock, and another run may have it. */
	if (!fstat(fd, &st) && !S_ISREG(st.st_mode))
		return fd;
	if (!flock(fd, LOCK_EX | LOCK_NB) && ftruncate(fd, 0) < 0 && errno != EINVAL) {
		err = -errno;
		close(fd);
		return err;
	}
	(void)flock(fd, LOCK_SH | LOCK_NB);
	return fd;
}

void trace_members(struct trace_line *line, const char *format, ...)
{
	size_t room = ROOM - line->len;
	va_list args;
	int len;

	if (line->is_unread)
		return;
	va_start(args, format);
	len = vsnprintf(line->text + line->len, room, format, args);
	va_end(args);
	if (len > 0 && (size_t)len < room)
		line->len += (size_t)len;
}

/* Bytes that are not ASCII become characters of their number: a name may be anything. */
static size_t escape(unsigned char c, char text[8])
{
	if (c == '"' || c == '\\')
		return (size_t)sprintf(text, "\\%c", c);
	if (c < 0x20 || c >= 0x7f)
		return (size_t)sprintf(text, "\\u%04x", c);
	*text = (char)c;
	return 1;
}

void trace_text(struct trace_line *line, const char *name, const char *value)
{
	size_t start = line->len, len;
	char text[8];

	trace_members(line, ",\"%s\":\"", name);
	if (line->len == start)
		return;
	for (; *value; value++) {
		len = escape((unsigned char)*value, text);
		if (line->len + len + 1 >= ROOM) {
			line->len = start;
			return;
		}
		memcpy(line->text + line->len, text, len);
		line->len += len;
	}
	line->text[line->len++] = '"';
}

void trace_number(struct trace_line *line, const char *name, uint64_t value)
{
	trace_members(line, ",\"%s\":%" PRIu64, name, value);
}

void trace_status(struct trace_line *line, const char *name, int value)
{
	trace_members(line, ",\"%s\":%d", name, value);
}

void trace_address(struct trace_line *line, const char *name, const struct sockaddr *addr)
{
	const struct sockaddr_in *in = (const struct sockaddr_in *)(const void *)addr;
	const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)(const void *)addr;
	char text[INET6_ADDRSTRLEN];

	if (!addr)
		return;
	if (addr->sa_family == AF_INET)
		trace_members(line, ",\"%s\":\"%s:%u\"", name,
			      inet_ntop(AF_INET, &in->sin_addr, text, sizeof(text)),
			      ntohs(in->sin_port));
	else if (addr->sa_family == AF_INET6)
		trace_members(line, ",\"%s\":\"[%s]:%u\"", name,
			      inet_ntop(AF_INET6, &in6->sin6_addr, text, sizeof(text)),
			      ntohs(in6->sin6_port));
	else
		trace_members(line, ",\"%s\":\"family %u\"", name, addr->sa_family);
}

void trace_bytes(struct trace_line *line, const char *name, const void *bytes, size_t len)
{
	const uint8_t *at = bytes;
	size_t start = line->len;

	trace_members(line, ",\"%s\":\"", name);
	if (line->len == start)
		return;
	if (line->len + 2 * len + 1 >= ROOM) {
		line->len = start;
		return;
	}
	for (size_t i = 0; i < len; i++)
		line->len += (size_t)sprintf(line->text + line->len, "%02x", at[i]);
	line->text[line->len++] = '"';
}

void trace_private_data(struct trace_line *line, const void *data, size_t len)
{
	if (!data || !len)
		return;
	trace_number(line, "private_data_len", len);
	while (len && !((const uint8_t *)data)[len - 1])
		len--;
	trace_bytes(line, "private_data", data, len);
}

void trace_begin(struct trace_line *line, uint64_t time_ns)
{
	line->is_unread = false;
	line->len = 0;
	trace_members(line, "{\"time\":%" PRIu64, time_ns);
}

static int write_all(int fd, trace_writer *writer, const char *text, size_t len)
{
	size_t done = 0;
	ssize_t n;

	while (done < len) {
		n = writer(fd, text + done, len - done);
		if (n > 0)
			done += (size_t)n;
		else if (!n || errno != EINTR)
			return n ? -errno : -ENOSPC;
	}
	return 0;
}

int trace_end(struct trace_line *line, int fd, trace_writer *writer)
{
	int r, cancel_state;

	memcpy(line->text + line->len, END, sizeof(END));
	line->len += sizeof(END) - 1;
	/* Lines are written under locks, and write() is a cancellation point. */
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
	r = write_all(fd, writer, line->text, line->len);
	pthread_setcancelstate(cancel_state, NULL);
	return r;
}
