/* SPDX-License-Identifier: BSD-2-Clause */
/* caught.h - what a call writes to stderr. */
#ifndef TESTS_API_CAUGHT_H
#define TESTS_API_CAUGHT_H

#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/cmocka_all.h"

static int caught = -1, real_stderr;

static inline void catch_stderr(void)
{
	fflush(stderr);
	caught = memfd_create("stderr", MFD_CLOEXEC);
	assert_true(caught >= 0);
	real_stderr = dup(STDERR_FILENO);
	assert_true(real_stderr >= 0);
	assert_true(dup2(caught, STDERR_FILENO) >= 0);
}

/* What was written since catch_stderr(), in a static buffer. */
static inline const char *caught_text(void)
{
	static char text[8192];
	ssize_t len;

	fflush(stderr);
	assert_true(dup2(real_stderr, STDERR_FILENO) >= 0);
	close(real_stderr);
	len = pread(caught, text, sizeof(text) - 1, 0);
	assert_true(len >= 0);
	text[len] = '\0';
	close(caught);
	return text;
}

#endif
