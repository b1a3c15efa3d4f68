/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ret.h - the one place where 0/-errno becomes 0/-1 with errno, and where a
 * call that fails says so in the log.
 */
#ifndef POLYCM_CORE_RET_H
#define POLYCM_CORE_RET_H

#include "polycm/provider.h"
#include "thread_local.h"

extern POLYCM_THREAD_LOCAL char polycm_why_text[192];

/*
 * Say in words why the call under way fails; returns err (a negative errno).
 * Kept per thread until polycm_ret() or the next call's polycm_why_clear().
 */
int polycm_fail(int err, const char *format, ...) __attribute__((cold, format(printf, 2, 3)));
/* The same, put before the reason that was given already, if there is one. */
int polycm_fail_in(int err, const char *format, ...) __attribute__((cold, format(printf, 2, 3)));
/* polycm_core.why */
void polycm_why(const char *format, ...) __attribute__((cold, format(printf, 1, 2)));

static inline void polycm_why_clear(void)
{
	polycm_why_text[0] = '\0';
}

/* The next for one that fails. */
int polycm_ret_failed(const char *call, const struct polycm_id *id, int err) __attribute__((cold));

/*
 * The end of an exported call: 0 for 0; for a negative errno one line of log
 * at warn, errno set, -1.  id may be NULL; it must be live otherwise.  -EAGAIN
 * and -EINTR without a reason are no refusals, and told at debug: the call did
 * what it does, but the event that a synchronous id waits for is still to come.
 */
static inline int polycm_ret(const char *call, const struct polycm_id *id, int err)
{
	return err >= 0 ? 0 : polycm_ret_failed(call, id, err);
}

#endif
