/* SPDX-License-Identifier: BSD-2-Clause */
/* cm_fake_verbs.c - just enough verbs for the QPs of ids; see cm_fake.h */
#include "cm_fake.h"

#include <stdlib.h>

struct fake_verbs fake_verbs;

static struct ibv_context *open_device(struct ibv_device *device)
{
	struct ibv_context *context = calloc(1, sizeof(*context));

	context->device = device;
	fake_verbs.contexts++;
	return context;
}

static int close_device(struct ibv_context *context)
{
	free(context);
	fake_verbs.contexts--;
	return 0;
}

static int query_device(struct ibv_context *context, struct ibv_device_attr *attr)
{
	(void)context;
	attr->max_qp_rd_atom = FAKE_RESPONDER_RESOURCES;
	attr->max_qp_init_rd_atom = FAKE_INITIATOR_DEPTH;
	return 0;
}

static int query_port(struct ibv_context *context, uint8_t port, struct ibv_port_attr *attr)
{
	(void)context;
	(void)port;
	attr->link_layer = IBV_LINK_LAYER_INFINIBAND;
	return 0;
}

static struct ibv_pd *alloc_pd(struct ibv_context *context)
{
	struct ibv_pd *pd = calloc(1, sizeof(*pd));

	pd->context = context;
	fake_verbs.pds++;
	return pd;
}

static int dealloc_pd(struct ibv_pd *pd)
{
	free(pd);
	fake_verbs.pds--;
	return 0;
}

static struct ibv_comp_channel *create_comp_channel(struct ibv_context *context)
{
	struct ibv_comp_channel *channel = calloc(1, sizeof(*channel));

	channel->context = context;
	fake_verbs.channels++;
	return channel;
}

static int destroy_comp_channel(struct ibv_comp_channel *channel)
{
	free(channel);
	fake_verbs.channels--;
	return 0;
}

static struct ibv_cq *create_cq(struct ibv_context *context, int cqe, void *cq_context,
				struct ibv_comp_channel *channel, int comp_vector)
{
	struct ibv_cq *cq;

	(void)comp_vector;
	if (fake_verbs.no_cq) {
		errno = ENOSPC;
		return NULL;
	}
	cq = calloc(1, sizeof(*cq));
	cq->context = context;
	cq->channel = channel;
	cq->cq_context = cq_context;
	cq->cqe = cqe;
	fake_verbs.cqe = cqe;
	fake_verbs.cqs++;
	return cq;
}

static int destroy_cq(struct ibv_cq *cq)
{
	free(cq);
	fake_verbs.cqs--;
	return 0;
}

static struct ibv_srq *create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *attr)
{
	struct ibv_srq *srq = calloc(1, sizeof(*srq));

	srq->context = pd->context;
	srq->pd = pd;
	attr->attr.max_wr = 64;
	fake_verbs.srqs++;
	return srq;
}

static int destroy_srq(struct ibv_srq *srq)
{
	free(srq);
	fake_verbs.srqs--;
	return 0;
}

static struct ibv_qp *create_fake_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
	struct ibv_qp *qp;

	if (fake_verbs.create_qp_errno) {
		errno = fake_verbs.create_qp_errno;
		return NULL;
	}
	qp = calloc(1, sizeof(*qp));
	qp->context = pd->context;
	qp->pd = pd;
	qp->srq = attr->srq;
	qp->qp_num = 0x123456;
	qp->qp_type = attr->qp_type;
	fake_verbs.qp_attr = *attr;
	attr->cap.max_inline_data = 99;
	fake_verbs.qps++;
	return qp;
}

static int destroy_qp(struct ibv_qp *qp)
{
	free(qp);
	fake_verbs.qps--;
	return 0;
}

static int modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask)
{
	static const char *const names[] = { "RESET", "INIT", "RTR", "RTS", "SQD", "SQE", "ERR" };
	size_t len = strlen(fake_verbs.moves), size = sizeof(fake_verbs.moves);
	const char *blank = len ? " " : "";

	assert_true(mask & IBV_QP_STATE);
	if (fake_verbs.refuse_errno && attr->qp_state == fake_verbs.refuse)
		return fake_verbs.refuse_errno;
	if (mask & IBV_QP_MAX_DEST_RD_ATOMIC)
		snprintf(fake_verbs.moves + len, size - len, "%s%s(%u)", blank,
			 names[attr->qp_state], attr->max_dest_rd_atomic);
	else if (mask & IBV_QP_MAX_QP_RD_ATOMIC)
		snprintf(fake_verbs.moves + len, size - len, "%s%s(%u)", blank,
			 names[attr->qp_state], attr->max_rd_atomic);
	else
		snprintf(fake_verbs.moves + len, size - len, "%s%s", blank, names[attr->qp_state]);
	if (attr->qp_state == IBV_QPS_RTR) {
		fake_verbs.mask = mask;
		fake_verbs.rtr = *attr;
	}
	qp->state = attr->qp_state;
	return 0;
}

static int attach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
	(void)qp;
	(void)gid;
	(void)lid;
	if (fake_verbs.attach_errno)
		return fake_verbs.attach_errno;
	fake_verbs.attached++;
	return 0;
}

static int detach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
	(void)qp;
	(void)gid;
	(void)lid;
	fake_verbs.attached--;
	return 0;
}

static int set_ece(struct ibv_qp *qp, struct ibv_ece *ece)
{
	(void)qp;
	if (!fake_verbs.has_ece)
		return EOPNOTSUPP;
	if (fake_verbs.set_ece_errno)
		return fake_verbs.set_ece_errno;
	fake_verbs.set_ece = *ece;
	return 0;
}

static int query_ece(struct ibv_qp *qp, struct ibv_ece *ece)
{
	(void)qp;
	if (!fake_verbs.has_ece)
		return EOPNOTSUPP;
	*ece = fake_verbs.own_ece;
	return 0;
}

const struct polycm_verbs fake_verbs_table = {
	.size = sizeof(fake_verbs_table),
	.open_device = open_device,
	.close_device = close_device,
	.query_device = query_device,
	.query_port = query_port,
	.alloc_pd = alloc_pd,
	.dealloc_pd = dealloc_pd,
	.create_comp_channel = create_comp_channel,
	.destroy_comp_channel = destroy_comp_channel,
	.create_cq = create_cq,
	.destroy_cq = destroy_cq,
	.create_srq = create_srq,
	.destroy_srq = destroy_srq,
	.create_qp = create_fake_qp,
	.destroy_qp = destroy_qp,
	.modify_qp = modify_qp,
	.attach_mcast = attach_mcast,
	.detach_mcast = detach_mcast,
	.set_ece = set_ece,
	.query_ece = query_ece,
};
