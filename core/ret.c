/* SPDX-License-Identifier: BSD-2-Clause */
/* ret.c - errno and the log line of a call that fails.  The reason is kept per thread. */
#include "config.h"
#include "ret.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "id_internal.h"
#include "log.h"

POLYCM_THREAD_LOCAL char polycm_why_text[192];

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

int polycm_ret_failed(const char *call, const struct polycm_id *id, int err)
{
	/* Without a reason: what was begun goes on, its event is not there yet. */
	bool later = (err == -EAGAIN || err == -EINTR) && !polycm_why_text[0];
	enum polycm_log_level level = later ? POLYCM_LOG_DEBUG : POLYCM_LOG_WARN;

	if (polycm_log_enabled(level)) {
		/* The call has left the id: another thread may have destroyed it. */
		const struct polycm_id *inside = id && polycm_enter_unlocked(id) ? id : NULL;

		id = inside;
		if (polycm_why_text[0])
			polycm_log_id(level, id, "%s: %s (%s)", call, strerror(-err), polycm_why_text);
		else
			polycm_log_id(level, id, "%s: %s", call, strerror(-err));
		polycm_why_text[0] = '\0';
		if (inside)
			(void)polycm_leave_unlocked((struct polycm_id *)(uintptr_t)inside);
	}
	errno = -err;
	return -1;
}
