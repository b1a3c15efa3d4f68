/* SPDX-License-Identifier: BSD-2-Clause */
/* ret.c - errno and the log line of a call that fails.  No locks: the reason is kept per thread. */
#include "config.h"
#include "ret.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "log.h"

static _Thread_local char why[192];

int polycm_fail(int err, const char *format, ...)
{
	va_list args;

	if (polycm_log_enabled(POLYCM_LOG_WARN)) {
		va_start(args, format);
		(void)vsnprintf(why, sizeof(why), format, args);
		va_end(args);
	}
	return err;
}

int polycm_fail_in(int err, const char *format, ...)
{
	char reason[sizeof(why)];
	va_list args;
	size_t len;

	if (polycm_log_enabled(POLYCM_LOG_WARN)) {
		memcpy(reason, why, sizeof(reason));
		va_start(args, format);
		(void)vsnprintf(why, sizeof(why), format, args);
		va_end(args);
		len = strlen(why);
		if (reason[0])
			(void)snprintf(why + len, sizeof(why) - len, ": %s", reason);
	}
	return err;
}

void polycm_why(const char *format, ...)
{
	va_list args;

	if (polycm_log_enabled(POLYCM_LOG_WARN)) {
		va_start(args, format);
		(void)vsnprintf(why, sizeof(why), format, args);
		va_end(args);
	}
}

void polycm_why_clear(void)
{
	why[0] = '\0';
}

int polycm_ret(const char *call, const struct polycm_id *id, int err)
{
	if (err >= 0)
		return 0;

	if (polycm_log_enabled(POLYCM_LOG_WARN)) {
		if (why[0])
			polycm_log_id(POLYCM_LOG_WARN, id, "%s: %s (%s)", call, strerror(-err),
				      why);
		else
			polycm_log_id(POLYCM_LOG_WARN, id, "%s: %s", call, strerror(-err));
		why[0] = '\0';
	}
	errno = -err;
	return -1;
}
