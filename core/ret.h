/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ret.h - the one place where 0/-errno becomes 0/-1 with errno, and where a
 * call that fails says so in the log.
 */
#ifndef POLYCM_CORE_RET_H
#define POLYCM_CORE_RET_H

#include "polycm/provider.h"

/*
 * Say in words why the call under way fails; returns err (a negative errno).
 * Kept per thread until polycm_ret() or the next call's polycm_why_clear().
 */
int polycm_fail(int err, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* The same, put before the reason that was given already, if there is one. */
int polycm_fail_in(int err, const char *format, ...) __attribute__((format(printf, 2, 3)));
void polycm_why_clear(void);
/* polycm_core.why */
void polycm_why(const char *format, ...) __attribute__((format(printf, 1, 2)));

/*
 * The end of an exported call: 0 for 0; for a negative errno one line of log
 * at warn, errno set, -1.  id may be NULL; it must be live otherwise.
 */
int polycm_ret(const char *call, const struct polycm_id *id, int err);

#endif
