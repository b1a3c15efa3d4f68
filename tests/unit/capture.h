/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * capture.h - what the library writes to standard error, for tests.
 */
#ifndef TESTS_UNIT_CAPTURE_H
#define TESTS_UNIT_CAPTURE_H

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

struct capture {
	int file;
	int stderr_before;
	char text[16384];
};

static inline void capture_begin(struct capture *capture)
{
	capture->file = memfd_create("stderr", 0);
	capture->stderr_before = dup(STDERR_FILENO);
	if (capture->file < 0 || capture->stderr_before < 0 ||
	    dup2(capture->file, STDERR_FILENO) < 0)
		abort();
}

/* The text since then, NUL-terminated; cut off at the size of the buffer. */
static inline const char *capture_end(struct capture *capture)
{
	ssize_t n;

	if (dup2(capture->stderr_before, STDERR_FILENO) < 0)
		abort();
	n = pread(capture->file, capture->text, sizeof(capture->text) - 1, 0);
	capture->text[n < 0 ? 0 : n] = '\0';
	close(capture->file);
	close(capture->stderr_before);
	return capture->text;
}

static inline size_t count_lines(const char *text)
{
	size_t lines = 0;

	for (; *text; text++)
		lines += *text == '\n';
	return lines;
}

#endif
