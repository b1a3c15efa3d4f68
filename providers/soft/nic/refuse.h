/* SPDX-License-Identifier: BSD-2-Clause */
/* nic/refuse.h - what a device has no more of, and calls that are refused (limits.c, refuse.c). */
#ifndef SIM_NIC_REFUSE_H
#define SIM_NIC_REFUSE_H

#include "objects.h"

/* --- limits.c --- */

enum nic_kind { NIC_PD, NIC_MR, NIC_MW, NIC_CQ, NIC_SRQ, NIC_QP, NIC_AH, NIC_KINDS };
_Static_assert(NIC_KINDS <= SIM_DEVICE_KINDS, "a device counts all kinds");
/*
 * One more object: 0, ENOMEM or EINVAL where the device has no more of them, EIO
 * where it is gone.  What fails is told of.
 */
int nic_take(struct ibv_context *context, enum nic_kind kind);
void nic_give(struct ibv_context *context, enum nic_kind kind);

/* One line for people; free when nobody listens. */
#define nic_log(level, ...) do { \
	if (sim_core->log_enabled(level)) \
		sim_core->log(level, NULL, __VA_ARGS__); \
} while (0)
#define nic_debug(...) nic_log(POLYCM_LOG_DEBUG, __VA_ARGS__)

/* --- refuse.c --- */

/* Why what is under way fails: for the line of nic_tell_failure(), which is next.  Engine lock held. */
void nic_because(const char *format, ...) __attribute__((cold, format(printf, 1, 2)));
/*
 * What becomes of the QP or its request, with that reason: a line at `warn' for
 * the first failure of a QP since RESET, at `debug' for those that follow it.
 */
void nic_tell_failure(struct sim_qp *qp, const char *format, ...)
	__attribute__((cold, format(printf, 2, 3)));
/* Neither good nor flushed behind another one. */
static inline bool nic_is_bad(enum ibv_wc_status status)
{
	return __builtin_expect(status != IBV_WC_SUCCESS && status != IBV_WC_WR_FLUSH_ERR, 0);
}
/* The same for a completion that is bad. */
void nic_tell_bad(struct sim_qp *qp, const struct ibv_wc *wc, bool receive) __attribute__((cold));

/* One line at `warn': the program's call fails, and why.  Returns err, an errno. */
int nic_refuse(const struct sim_device *device, const char *call, int err, const char *format, ...)
	__attribute__((cold, format(printf, 4, 5)));
int nic_no_memory(const struct sim_device *device, const char *call) __attribute__((cold));

#endif
