/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * base/log.h - one line per message to standard error, POLYCM_LOG decides which.
 * Any thread; a line is written with one write() so that lines never mix.
 */
#ifndef POLYCM_CORE_LOG_H
#define POLYCM_CORE_LOG_H

#include <stdbool.h>
#include "polycm/provider.h"

extern int polycm_log_level;	/* POLYCM_LOG_ERROR until polycm_log_set_level(); atomic */

/* How many lines were errors so far. */
unsigned int polycm_log_errors(void);

/* Its name as in POLYCM_LOG; nothing for another. */
void polycm_log_set_level(const char *name);
/* "sim sim0 127.0.0.1:40000 > 127.0.0.1:7471" into buf: the room cm says how. */
extern void (*polycm_log_describe)(const struct polycm_id *id, char *buf, size_t size);

static inline bool polycm_log_enabled(enum polycm_log_level level)
{
	return __builtin_expect((int)level <= __atomic_load_n(&polycm_log_level, __ATOMIC_RELAXED),
				0);
}

/* id may be NULL; else the line names provider, device and both addresses. */
void polycm_log_id(enum polycm_log_level level, const struct polycm_id *id, const char *format, ...)
	__attribute__((cold, format(printf, 3, 4)));

/* Nothing is called, nor an argument looked at, for a line that is not wanted. */
#define polycm_log_id(level, ...)								\
	(polycm_log_enabled(level) ? (polycm_log_id)(level, __VA_ARGS__) : (void)0)
#define polycm_log(level, ...) polycm_log_id(level, NULL, __VA_ARGS__)

#endif
