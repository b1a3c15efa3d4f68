/* SPDX-License-Identifier: BSD-2-Clause */
/* base/why.c - see why.h.  Nothing is formed that no line would show. */
#include "config.h"
#include "why.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "log.h"

POLYCM_THREAD_LOCAL char polycm_why_text[192];

POLYCM_THREAD_LOCAL bool polycm_in_verb;

bool polycm_why_shown(void)
{
	return polycm_in_verb;
}

int polycm_fail(int err, const char *format, ...)
{
	va_list args;

	if (polycm_log_enabled(POLYCM_LOG_WARN)) {
		va_start(args, format);
		(void)vsnprintf(polycm_why_text, sizeof(polycm_why_text), format, args);
		va_end(args);
	}
	return err;
}

/* What does not fit is cut off. */
static void add(const char *format, ...) __attribute__((format(printf, 1, 2)));

static void add(const char *format, ...)
{
	size_t len = strlen(polycm_why_text);
	va_list args;

	va_start(args, format);
	(void)vsnprintf(polycm_why_text + len, sizeof(polycm_why_text) - len, format, args);
	va_end(args);
}

int polycm_fail_in(int err, const char *format, ...)
{
	char reason[sizeof(polycm_why_text)];
	va_list args;

	if (polycm_log_enabled(POLYCM_LOG_WARN)) {
		memcpy(reason, polycm_why_text, sizeof(reason));
		va_start(args, format);
		(void)vsnprintf(polycm_why_text, sizeof(polycm_why_text), format, args);
		va_end(args);
		if (reason[0])
			add(": %s", reason);
	}
	return err;
}

void polycm_why(const char *format, ...)
{
	va_list args;

	if (polycm_log_enabled(POLYCM_LOG_WARN)) {
		va_start(args, format);
		(void)vsnprintf(polycm_why_text, sizeof(polycm_why_text), format, args);
		va_end(args);
	}
}
