/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cm/ret.h - the one place where 0/-errno becomes 0/-1 with errno, and where a
 * call that fails says so in the log.
 */
#ifndef POLYCM_CORE_RET_H
#define POLYCM_CORE_RET_H

#include "core/base/why.h"
#include "polycm/provider.h"

/* polycm_ret() for one that fails. */
int polycm_ret_failed(const char *call, const struct polycm_id *id, int err) __attribute__((cold));
/* The same for a call that polycm_enter() did not let in. */
int polycm_refused(const char *call) __attribute__((cold));

/*
 * The end of an exported call: 0 for 0; for a negative errno one line of log
 * at warn, errno set, -1.  id may be NULL; it must be live otherwise.  -EAGAIN
 * and -EINTR without a reason are no refusals, and logged at debug: the call did
 * what it does, but the event that a synchronous id waits for is still to come.
 */
static inline int polycm_ret(const char *call, const struct polycm_id *id, int err)
{
	return err >= 0 ? 0 : polycm_ret_failed(call, id, err);
}

#endif
