/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * base/why.h - why the call under way fails, in words, for its line of log
 * (cm/ret.h).  Kept per thread until that line, or the next call.
 */
#ifndef POLYCM_CORE_WHY_H
#define POLYCM_CORE_WHY_H

#include <stdbool.h>

#include "thread_local.h"

extern POLYCM_THREAD_LOCAL char polycm_why_text[192];

/* What was said, for the end of a line. */
#define POLYCM_WHY_FORMAT "%s%s%s"
#define POLYCM_WHY polycm_why_text[0] ? " (" : "", polycm_why_text, polycm_why_text[0] ? ")" : ""

/* Say why; returns err, a negative errno. */
int polycm_fail(int err, const char *format, ...) __attribute__((cold, format(printf, 2, 3)));
/* The same, put before the reason that was given already, if there is one. */
int polycm_fail_in(int err, const char *format, ...) __attribute__((cold, format(printf, 2, 3)));
/* polycm_core.why */
void polycm_why(const char *format, ...) __attribute__((cold, format(printf, 1, 2)));

/*
 * Set while the core calls a verb for a call of rdma_*: its line shows why the
 * verb was refused.  polycm_verbs_services.why_shown asks for it.
 */
extern POLYCM_THREAD_LOCAL bool polycm_in_verb;

bool polycm_why_shown(void);

/* The value of the call of a verb. */
#define POLYCM_VERB(call)                       \
	__extension__({                         \
		polycm_in_verb = true;          \
		__typeof__(call) ret_ = (call); \
		polycm_in_verb = false;         \
		ret_;                           \
	})

static inline void polycm_why_clear(void)
{
	polycm_why_text[0] = '\0';
}

#endif
