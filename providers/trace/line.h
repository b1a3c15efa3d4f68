/* SPDX-License-Identifier: BSD-2-Clause */
/* line.h - the file of the layer "trace", and its lines, as polycm-trace(5) has them. */
#ifndef TRACE_LINE_H
#define TRACE_LINE_H

#include "polycm/layer.h"

/* A line in the making; what has no room is left out. */
struct trace_line {
	char text[4096];
	size_t len;
};

extern const struct polycm_core *trace_core;

/*
 * "-": standard error.  0 or a negative errno.  If a line cannot be written later, that is
 * told once, and the process that would end with status 0 ends with EX_IOERR.
 */
int trace_open(const char *path);
void trace_close(void);

void trace_begin(struct trace_line *line, const char *kind, uint32_t id);
void trace_text(struct trace_line *line, const char *name, const char *value);
void trace_number(struct trace_line *line, const char *name, uint64_t value);
void trace_status(struct trace_line *line, const char *name, int value);
void trace_address(struct trace_line *line, const char *name, const struct sockaddr *addr);
/* private_data_len and private_data, hexadecimal, without zeros at the end; nothing of 0 bytes. */
void trace_data(struct trace_line *line, const void *data, size_t len);
/* Written in one piece. */
void trace_end(struct trace_line *line);

#endif
