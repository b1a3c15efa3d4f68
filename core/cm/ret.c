/* SPDX-License-Identifier: BSD-2-Clause */
/* cm/ret.c - errno and the log line of a call that fails. */
#include "config.h"
#include "ret.h"

#include <errno.h>
#include <string.h>

#include "core/base/log.h"
#include "id_internal.h"

int polycm_ret_failed(const char *call, const struct polycm_id *id, int err)
{
	/* Without a reason: what was begun goes on, its event is not there yet. */
	bool later = (err == -EAGAIN || err == -EINTR) && !polycm_why_text[0];
	enum polycm_log_level level = later ? POLYCM_LOG_DEBUG : POLYCM_LOG_WARN;

	if (polycm_log_enabled(level)) {
		/* The call has left the id: another thread may have destroyed it. */
		if (id && !polycm_enter_unlocked(id))
			id = NULL;
		polycm_log_id(level, id, "%s: %s" POLYCM_WHY_FORMAT, call, strerror(-err), POLYCM_WHY);
		polycm_why_clear();
		if (id)
			(void)polycm_leave_unlocked((struct polycm_id *)(uintptr_t)id);
	}
	errno = -err;
	return -1;
}

int polycm_refused(const char *call)
{
	return polycm_ret_failed(call, NULL, -errno);
}
