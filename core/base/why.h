/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * base/why.h - why the call under way fails, in words, for its line of log
 * (cm/ret.h).  Kept per thread until that line, or the next call.
 */
#ifndef POLYCM_CORE_WHY_H
#define POLYCM_CORE_WHY_H

#include "thread_local.h"

extern POLYCM_THREAD_LOCAL char polycm_why_text[192];

/* Say why; returns err, a negative errno. */
int polycm_fail(int err, const char *format, ...) __attribute__((cold, format(printf, 2, 3)));
/* The same, put before the reason that was given already, if there is one. */
int polycm_fail_in(int err, const char *format, ...) __attribute__((cold, format(printf, 2, 3)));
/* polycm_core.why */
void polycm_why(const char *format, ...) __attribute__((cold, format(printf, 1, 2)));

static inline void polycm_why_clear(void)
{
	polycm_why_text[0] = '\0';
}

#endif
