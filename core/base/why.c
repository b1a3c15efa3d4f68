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

static __attribute__((format(printf, 1, 0))) void say(const char *format, va_list args)
{
	if (polycm_log_enabled(POLYCM_LOG_WARN))
		(void)vsnprintf(polycm_why_text, sizeof(polycm_why_text), format, args);
}

int polycm_fail(int err, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	say(format, args);
	va_end(args);
	return err;
}

int polycm_fail_in(int err, const char *format, ...)
{
	char reason[sizeof(polycm_why_text)];
	va_list args;
	int len, room;

	memcpy(reason, polycm_why_text, sizeof(reason));
	va_start(args, format);
	say(format, args);
	va_end(args);
	len = (int)strlen(polycm_why_text);
	room = (int)sizeof(polycm_why_text) - len;
	if (reason[0] && room > 3 && polycm_log_enabled(POLYCM_LOG_WARN))
		(void)snprintf(polycm_why_text + len, (size_t)room, ": %.*s", room - 3, reason);
	return err;
}

void polycm_why(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	say(format, args);
	va_end(args);
}
