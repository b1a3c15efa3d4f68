/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * kernel/explain.c - the reason, in words, where the kernel refuses a call because
 * the transport lacks something.  The kernel returns only an errno.
 */
#include "config.h"
#include "internal.h"

int kernel_explain(const struct kernel_id *id, int err, uint32_t service, const char *what)
{
	const struct polycm_transport *rules;

	if (err >= 0)
		return err;
	rules = polycm_id_transport(id->core);
	if (!rules || rules->services & service)
		return err;
	return polycm_fail(err, "%s has no %s", rules->name, what);
}

int kernel_explain_kind(const struct kernel_id *id, int err)
{
	if (err >= 0)
		return err;
	switch (kernel_kind(id)) {
	case POLYCM_KIND_UD:
		return kernel_explain(id, err, POLYCM_SVC_UD, "datagrams (UD)");
	case POLYCM_KIND_RC_AF_IB:
	case POLYCM_KIND_UD_AF_IB:
		return kernel_explain(id, err, POLYCM_SVC_AF_IB, "addresses of family AF_IB");
	default:
		return err;
	}
}
