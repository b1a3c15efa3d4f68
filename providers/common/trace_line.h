/* SPDX-License-Identifier: BSD-2-Clause */
/* trace_line.h - the file of a trace, and its lines: JSON objects as in polycm-trace(5). */
#ifndef COMMON_TRACE_LINE_H
#define COMMON_TRACE_LINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>

/* A line in the making.  A member that does not fit is left out. */
struct trace_line {
	bool is_unread;		/* by anybody: its members are not made */
	size_t len;
	char text[4096];
};

/*
 * Open the file; "-": standard error.  A file that no other process writes is truncated.
 * The descriptor, or a negative errno.
 */
int trace_file_open(const char *path);

void trace_begin(struct trace_line *line, uint64_t time_ns);
/* Members as text, each with a comma in front. */
void trace_members(struct trace_line *line, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
void trace_text(struct trace_line *line, const char *name, const char *value);
void trace_number(struct trace_line *line, const char *name, uint64_t value);
void trace_status(struct trace_line *line, const char *name, int value);
/* "10.0.0.1:7174", "[fd00::1]:7174"; nothing if the address is NULL. */
void trace_address(struct trace_line *line, const char *name, const struct sockaddr *addr);
void trace_bytes(struct trace_line *line, const char *name, const void *bytes, size_t len);
/* private_data_len, and private_data without the zeros at its end; nothing for 0 bytes. */
void trace_private_data(struct trace_line *line, const void *data, size_t len);
/* write(2), or what stands for it. */
typedef ssize_t trace_writer(int fd, const void *text, size_t len);
/*
 * Write the line at once, so that the trace is complete if the program dies, and lines of
 * several threads or processes do not mix.  0, or the negative errno of the failure.
 */
int trace_end(struct trace_line *line, int fd, trace_writer *writer);

#endif
