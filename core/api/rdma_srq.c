/* SPDX-License-Identifier: BSD-2-Clause */
/* api/rdma_srq.c - shared receive queues on ids.  Under the id's lock. */
#include "config.h"
#include "core/cm/id_internal.h"

#include <errno.h>
#include <rdma/rdma_verbs.h>
#include <string.h>

#include "core/base/export.h"
#include "core/cm/cq.h"
#include "core/cm/ret.h"

static int complete_xrc(struct polycm_id *id, struct ibv_srq_init_attr_ex *attr,
			struct polycm_cqs_made *made)
{
	int err;

	if (!(attr->comp_mask & IBV_SRQ_INIT_ATTR_XRCD) || !attr->xrcd) {
		err = polycm_xrcd_get(id->device, &attr->xrcd);
		if (err)
			return err;
		attr->comp_mask |= IBV_SRQ_INIT_ATTR_XRCD;
	}
	if (!(attr->comp_mask & IBV_SRQ_INIT_ATTR_CQ) || !attr->cq) {
		err = polycm_cqs_create(id, 0, attr->attr.max_wr ? attr->attr.max_wr : 1, made);
		if (err)
			return err;
		attr->cq = id->pub.recv_cq;
		attr->comp_mask |= IBV_SRQ_INIT_ATTR_CQ;
	}
	return 0;
}

static int create_srq(struct polycm_id *id, struct ibv_srq_init_attr_ex *attr)
{
	struct polycm_cqs_made made = { false, false };
	struct ibv_srq *srq;
	int err = attr ? polycm_need_device(id) : polycm_fail(-EINVAL, "no attributes");

	if (err)
		return err;
	if (id->pub.srq)
		return polycm_fail(-EINVAL, "the id has an SRQ already");
	if (!(attr->comp_mask & IBV_SRQ_INIT_ATTR_PD) || !attr->pd)
		attr->pd = id->pub.pd;
	attr->comp_mask |= IBV_SRQ_INIT_ATTR_PD;
	if (!attr->pd || attr->pd->context != id->pub.verbs)
		return polycm_fail(-EINVAL, "no protection domain of the id's device");

	if (attr->comp_mask & IBV_SRQ_INIT_ATTR_TYPE && attr->srq_type == IBV_SRQT_XRC) {
		err = complete_xrc(id, attr, &made);
		if (err)
			return err;
	}

	errno = 0;
	srq = POLYCM_VERB(ibv_create_srq_ex(id->pub.verbs, attr));
	if (!srq) {
		err = errno ? -errno : -ENOMEM;
		polycm_cqs_undo(id, &made);
		return err;
	}
	id->pub.pd = attr->pd;
	id->pub.srq = srq;
	return 0;
}

/* As librdmacm: the SRQ of an XRC target is one of XRC. */
static int create_plain_srq(struct polycm_id *id, struct ibv_pd *pd, struct ibv_srq_init_attr *attr)
{
	struct ibv_srq_init_attr_ex ex;
	int err;

	if (!attr)
		return polycm_fail(-EINVAL, "no attributes");
	memset(&ex, 0, sizeof(ex));
	ex.srq_context = attr->srq_context;
	ex.attr = attr->attr;
	ex.pd = pd;
	ex.srq_type = id->pub.qp_type == IBV_QPT_XRC_RECV ? IBV_SRQT_XRC : IBV_SRQT_BASIC;
	ex.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD;
	err = create_srq(id, &ex);
	if (!err)
		attr->attr = ex.attr;
	return err;
}

void polycm_srq_destroy(struct polycm_id *id)
{
	if (!id->pub.srq)
		return;
	(void)ibv_destroy_srq(id->pub.srq);
	id->pub.srq = NULL;
	if (!id->pub.qp)
		polycm_cqs_destroy(id);
}

POLYCM_EXPORT int rdma_create_srq(struct rdma_cm_id *id, struct ibv_pd *pd,
				  struct ibv_srq_init_attr *attr)
{
	return POLYCM_CALL(polycm_exit, self, id, create_plain_srq(self, pd, attr));
}

POLYCM_EXPORT int rdma_create_srq_ex(struct rdma_cm_id *id, struct ibv_srq_init_attr_ex *attr)
{
	return POLYCM_CALL(polycm_exit, self, id, create_srq(self, attr));
}

POLYCM_EXPORT void rdma_destroy_srq(struct rdma_cm_id *id)
{
	struct polycm_id *self = polycm_enter_to_end(id);

	if (!self) {
		(void)polycm_refused(__func__);
		return;
	}
	polycm_srq_destroy(self);
	polycm_leave(self);
}
