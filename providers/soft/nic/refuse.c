/* SPDX-License-Identifier: BSD-2-Clause */
/* nic/refuse.c - calls and requests of the program's that fail: a line at `warn', with the reason. */
#include "config.h"

#include <stdio.h>

#include "refuse.h"

/* Is it part of a call of rdma_*, whose own line shows the reason? */
static bool shown_by_core(void)
{
	return sim_verbs_services && sim_verbs_services->why_shown();
}

static __thread __attribute__((tls_model("initial-exec"))) bool quietly;

void nic_refuse_quietly(bool on)
{
	quietly = on;
}

int nic_refuse(const struct sim_device *device, const char *call, int err, const char *format, ...)
{
	char why[160];
	va_list args;

	if (quietly || !sim_core->log_enabled(POLYCM_LOG_WARN))
		return err;
	va_start(args, format);
	(void)vsnprintf(why, sizeof(why), format, args);
	va_end(args);
	if (shown_by_core()) {
		sim_core->why("%s", why);
		return err;
	}
	nic_log(POLYCM_LOG_WARN, "%s: %s refused: %s: %s", device->vdev.device.name, call, why,
		strerror(err));
	return err;
}

int nic_no_memory(const struct sim_device *device, const char *call)
{
	return nic_refuse(device, call, ENOMEM, "no memory");
}

static char because[200];	/* engine lock */

void nic_set_reason(const char *format, ...)
{
	va_list args;

	if (!sim_core->log_enabled(POLYCM_LOG_WARN))
		return;
	va_start(args, format);
	(void)vsnprintf(because, sizeof(because), format, args);
	va_end(args);
}

void nic_log_failure(struct sim_qp *qp, const char *format, ...)
{
	enum polycm_log_level level = qp->failure_logged ? POLYCM_LOG_DEBUG : POLYCM_LOG_WARN;
	char what[120];
	va_list args;

	qp->failure_logged = true;
	if (!sim_core->log_enabled(level))
		return;
	va_start(args, format);
	(void)vsnprintf(what, sizeof(what), format, args);
	va_end(args);
	nic_log(level, "%s QP 0x%06x: %s: %s", qp->port->device->vdev.device.name, nic_qpn(qp), what,
		because);
}

static const char *status_name(enum ibv_wc_status status)
{
	static const char *const names[] = {
		[IBV_WC_LOC_LEN_ERR] = "LOC_LEN_ERR",
		[IBV_WC_LOC_QP_OP_ERR] = "LOC_QP_OP_ERR",
		[IBV_WC_LOC_PROT_ERR] = "LOC_PROT_ERR",
		[IBV_WC_MW_BIND_ERR] = "MW_BIND_ERR",
		[IBV_WC_BAD_RESP_ERR] = "BAD_RESP_ERR",
		[IBV_WC_REM_INV_REQ_ERR] = "REM_INV_REQ_ERR",
		[IBV_WC_REM_ACCESS_ERR] = "REM_ACCESS_ERR",
		[IBV_WC_REM_OP_ERR] = "REM_OP_ERR",
		[IBV_WC_RETRY_EXC_ERR] = "RETRY_EXC_ERR",
		[IBV_WC_RNR_RETRY_EXC_ERR] = "RNR_RETRY_EXC_ERR",
	};

	return status < sizeof(names) / sizeof(names[0]) && names[status] ? names[status] :
									     "GENERAL_ERR";
}

void nic_log_bad(struct sim_qp *qp, const struct ibv_wc *wc, bool receive)
{
	nic_log_failure(qp, "a %s request (wr_id 0x%llx) completes with IBV_WC_%s",
			 receive ? "receive" : "send", (unsigned long long)wc->wr_id,
			 status_name(wc->status));
}
