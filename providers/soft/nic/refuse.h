/* SPDX-License-Identifier: BSD-2-Clause */
/* nic/refuse.h - log lines about calls and requests that fail (refuse.c). */
#ifndef SIM_NIC_REFUSE_H
#define SIM_NIC_REFUSE_H

#include "objects.h"

/* One line of log.  Arguments are evaluated only if the level is enabled. */
#define nic_log(level, ...) do { \
	if (sim_core->log_enabled(level)) \
		sim_core->log(level, NULL, __VA_ARGS__); \
} while (0)
#define nic_debug(...) nic_log(POLYCM_LOG_DEBUG, __VA_ARGS__)

/* The reason that nic_log_failure(), which must follow, logs.  Engine lock held. */
void nic_set_reason(const char *format, ...) __attribute__((cold, format(printf, 1, 2)));
/*
 * Log the failure of a QP or of its request, with that reason: at `warn' for the
 * first failure of a QP since RESET, at `debug' for those that follow.
 */
void nic_log_failure(struct sim_qp *qp, const char *format, ...)
	__attribute__((cold, format(printf, 2, 3)));
/* An error, but not flushed because of an earlier one. */
static inline bool nic_is_bad(enum ibv_wc_status status)
{
	return __builtin_expect(status != IBV_WC_SUCCESS && status != IBV_WC_WR_FLUSH_ERR, 0);
}
/* The same for a completion that is bad. */
void nic_log_bad(struct sim_qp *qp, const struct ibv_wc *wc, bool receive) __attribute__((cold));

/* One line at `warn': the program's call fails, and why.  Returns err, an errno. */
int nic_refuse(const struct sim_device *device, const char *call, int err, const char *format, ...)
	__attribute__((cold, format(printf, 4, 5)));
/* Not the program's, but those of a library that the calling thread has begun to use. */
void nic_refuse_quietly(bool on);
int nic_no_memory(const struct sim_device *device, const char *call) __attribute__((cold));

#endif
