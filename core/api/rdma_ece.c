/* SPDX-License-Identifier: BSD-2-Clause */
/* api/rdma_ece.c - the calls about ECE options for programs that have QPs of their own (cm/ece.c). */
#include "config.h"
#include "core/cm/id_internal.h"

#include <errno.h>

#include "core/base/export.h"
#include "core/cm/ret.h"

static int set_local(struct polycm_id *id, const struct ibv_ece *ece)
{
	if (id->pub.qp)
		return polycm_fail(-EINVAL, "the id has a QP: the library asks it");
	if (!ece || !ece->vendor_id || ece->comp_mask)
		return polycm_fail(-EINVAL, "no vendor, or a comp_mask that is not 0");
	id->local_ece.vendor_id = ece->vendor_id;
	id->local_ece.options = ece->options;
	return 0;
}

static int get_remote(const struct polycm_id *id, struct ibv_ece *ece)
{
	if (id->pub.qp)
		return polycm_fail(-EINVAL, "the id has a QP: the library sets its options");
	if (!ece)
		return polycm_fail(-EINVAL, "nowhere to put the options");
	ece->vendor_id = id->remote_ece.vendor_id;
	ece->options = id->remote_ece.options;
	ece->comp_mask = 0;
	return 0;
}

POLYCM_EXPORT int rdma_set_local_ece(struct rdma_cm_id *id, struct ibv_ece *ece)
{
	return POLYCM_CALL(polycm_exit, self, id, set_local(self, ece));
}

POLYCM_EXPORT int rdma_get_remote_ece(struct rdma_cm_id *id, struct ibv_ece *ece)
{
	return POLYCM_CALL(polycm_exit, self, id, get_remote(self, ece));
}
