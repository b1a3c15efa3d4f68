/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * plugin/options.h - every setting: one row in one table, the core's own or a
 * provider's.  Parser, `polycm info --config` and the manual page come from
 * the rows.  Values are read once per process and never change afterwards.
 */
#ifndef POLYCM_CORE_OPTIONS_H
#define POLYCM_CORE_OPTIONS_H

#include "polycm/provider.h"

/* Add a provider's rows (they stay valid).  -EEXIST: a name is taken; nothing is added then. */
int polycm_options_add(const char *owner, const struct polycm_option *rows, size_t num_rows);

/*
 * The value of a row: the environment's, else the default.  A value outside
 * the row's choices is reported once, as an error, and the default used here;
 * its provider does not start with it.  NULL: no such row.
 * A process with raised privileges reads none but POLYCM_LOG.
 */
const char *polycm_setting(const char *name);
/*
 * Has the process more rights than its user, so that the environment may not
 * decide what is loaded or written?  Tests override it with 0 or 1 (else -1).
 */
bool polycm_privileged(void);
extern int polycm_privileged_override;

/* -EINVAL if one of the owner's settings has a value outside its choices. */
int polycm_options_check_values(const char *owner);

/* Read POLYCM_LOG, once per process. */
void polycm_log_init(void);

/* Did the environment (and not the default) give the value? */
bool polycm_setting_given(const char *name);

/*
 * Log unknown POLYCM_* variables, with the nearest match, and variables that have no effect
 * because their owner is not in use (NULL: all are).
 */
void polycm_options_check_environment(bool (*in_use)(const char *owner));

/* Walk the rows in a stable order; stops at the first non-zero return. */
int polycm_options_walk(int (*fn)(void *arg, const char *owner, const struct polycm_option *row),
			void *arg);

/* Of the candidates that were tried, the first of those nearest to word. */
struct polycm_nearest {
	const char *word;
	const char *found;		/* NULL: none is within a small edit distance */
	unsigned int distance;		/* of that one */
};

void polycm_nearest_try(struct polycm_nearest *self, const char *candidate);

#endif
