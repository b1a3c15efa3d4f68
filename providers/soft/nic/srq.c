/* SPDX-License-Identifier: BSD-2-Clause */
/* nic/srq.c - shared receive queues. */
#include "config.h"

#include <stdlib.h>

#include "context.h"
#include "cq.h"
#include "pd.h"
#include "qp.h"
#include "refuse.h"
#include "rq.h"
#include "verbs.h"

static const char create_ex_call[] = "ibv_create_srq_ex", modify_call[] = "ibv_modify_srq";

static int check_new(const struct sim_device *device, const char *call,
		     const struct ibv_srq_attr *attr)
{
	const struct ibv_device_attr *limits = &device->attr;

	if (!(device->services & POLYCM_SVC_SRQ))
		return nic_refuse(device, call, EOPNOTSUPP, "the device has no SRQs");
	if (attr->max_wr < 1 || attr->max_wr > (uint32_t)limits->max_srq_wr)
		return nic_refuse(device, call, EINVAL, "max_wr is %u, the device has 1 to %d",
				  attr->max_wr, limits->max_srq_wr);
	if (attr->max_sge > (uint32_t)limits->max_srq_sge)
		return nic_refuse(device, call, EINVAL, "max_sge is %u, the device has %d",
				  attr->max_sge, limits->max_srq_sge);
	return 0;
}

static struct ibv_srq *create(struct ibv_pd *pd, const char *call, struct ibv_srq_init_attr *init,
			      struct ibv_xrcd *xrcd, struct ibv_cq *cq)
{
	const struct sim_device *device = nic_device(pd->context);
	static uint32_t next_handle;
	struct sim_srq *srq;
	int err = check_new(device, call, &init->attr);

	if (err)
		return nic_fail(NULL, err);
	srq = nic_alloc(device, call, sizeof(*srq));
	if (!srq)
		return NULL;
	srq->rq.size = init->attr.max_wr;
	srq->rq.mask = nic_round_up(srq->rq.size) - 1;
	srq->rq.max_sge = init->attr.max_sge;
	srq->pub.context = pd->context;
	srq->pub.srq_context = init->srq_context;
	srq->pub.pd = pd;
	if (nic_pd_allocates(pd) &&
	    nic_queue_alloc(&srq->rq.ring, NIC_SHARED_QUEUE, pd, nic_rq_bytes(&srq->rq)))
		return nic_fail(srq, nic_no_memory(device, call));

	sim_lock();
	err = cq ? nic_cq_check(call, "cq", pd->context, cq) : 0;
	if (!err)
		err = nic_add(pd->context, call, NIC_SRQ, &srq->node, pd);
	if (!err) {
		nic_known_add(&srq->known, &srq->pub);
		pthread_mutex_init(&srq->pub.mutex, NULL);
		pthread_cond_init(&srq->pub.cond, NULL);
		srq->pub.handle = next_handle++;
		srq->number = srq->pub.handle % NIC_QPN_MASK + 1;
		if (xrcd)
			nic_xrc_enter_srq(srq, nic_xrcd(xrcd));
		if (cq) {
			srq->cq = nic_cq(cq);
			srq->cq->users++;
		}
	}
	sim_unlock();
	if (!err)
		return &srq->pub;
	nic_queue_free(&srq->rq.ring, NIC_SHARED_QUEUE);
	return nic_fail(srq, err);
}

struct ibv_srq *sim_create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *init)
{
	return create(pd, "ibv_create_srq", init, NULL, NULL);
}

/* 0 or an errno. */
static int check_xrc(struct ibv_context *context, const struct ibv_srq_init_attr_ex *attr)
{
	const struct sim_device *device = nic_device(context);

	if (!(device->services & POLYCM_SVC_XRC))
		return nic_refuse(device, create_ex_call, EOPNOTSUPP, "the device has no XRC");
	if (!(attr->comp_mask & IBV_SRQ_INIT_ATTR_XRCD) || !attr->xrcd ||
	    attr->xrcd->context != context)
		return nic_refuse(device, create_ex_call, EINVAL,
				  "it needs an XRC domain of the same context");
	if (!(attr->comp_mask & IBV_SRQ_INIT_ATTR_CQ) || !attr->cq)
		return nic_refuse(device, create_ex_call, EINVAL, "it needs a CQ");
	return 0;
}

struct ibv_srq *sim_create_srq_ex(struct ibv_context *context, struct ibv_srq_init_attr_ex *attr)
{
	const uint32_t xrc_attrs = IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ;
	const uint32_t attrs = IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_TYPE;
	struct ibv_srq_init_attr init = { .srq_context = attr->srq_context, .attr = attr->attr };
	enum ibv_srq_type type = attr->comp_mask & IBV_SRQ_INIT_ATTR_TYPE ? attr->srq_type :
									   IBV_SRQT_BASIC;
	bool is_xrc = type == IBV_SRQT_XRC;
	int err;

	if (attr->comp_mask & ~(is_xrc ? attrs | xrc_attrs : attrs) ||
	    (!is_xrc && type != IBV_SRQT_BASIC))
		return nic_fail(NULL, nic_refuse(nic_device(context), create_ex_call, EOPNOTSUPP,
						 "the simulator has basic SRQs and those of XRC only "
						 "(comp_mask 0x%x)", attr->comp_mask));
	if (!(attr->comp_mask & IBV_SRQ_INIT_ATTR_PD) || attr->pd->context != context)
		return nic_fail(NULL, nic_refuse(nic_device(context), create_ex_call, EINVAL,
						 "it needs a PD of the same context"));
	err = is_xrc ? check_xrc(context, attr) : 0;
	if (err)
		return nic_fail(NULL, err);
	return create(attr->pd, create_ex_call, &init, is_xrc ? attr->xrcd : NULL,
		      is_xrc ? attr->cq : NULL);
}

static void srq_detach(struct sim_srq *srq)
{
	nic_async_forget(nic_context(srq->pub.context), srq);
	nic_known_remove(&srq->known);
	nic_xrc_leave_srq(srq);
	if (srq->cq)
		srq->cq->users--;
	nic_remove(srq->pub.context, NIC_SRQ, &srq->node, nic_pd_of_detached(srq->pub.pd));
}

static void srq_release(struct sim_srq *srq)
{
	struct ibv_pd *pd = srq->pub.pd;

	pthread_mutex_destroy(&srq->pub.mutex);
	pthread_cond_destroy(&srq->pub.cond);
	nic_queue_free(&srq->rq.ring, NIC_SHARED_QUEUE);
	free(srq);
	nic_pd_released(pd);
}

void nic_srq_free(struct sim_srq *srq)
{
	srq_detach(srq);
	srq_release(srq);
}

int sim_destroy_srq(struct ibv_srq *ibsrq)
{
	struct sim_srq *srq = nic_srq(ibsrq);
	const struct nic_acks acks = {
		&ibsrq->mutex, &ibsrq->cond, &ibsrq->events_completed, &srq->async_reported, "SRQ",
		ibsrq->handle,
	};
	int err = 0;

	sim_lock();
	if (srq->users)
		err = nic_refuse(nic_device(ibsrq->context), "ibv_destroy_srq", EBUSY,
				 "QPs that receive from it are left: %u", srq->users);
	else if (nic_acks_never_come(&acks))
		err = EDEADLK;
	else
		srq_detach(srq);
	sim_unlock();
	if (err)
		return err;
	nic_await_acks(&acks);
	srq_release(srq);
	return 0;
}

/* *ret_old is to be freed when the lock is not held any more. */
static int srq_resize(struct sim_srq *srq, uint32_t size, struct nic_queue *ret_old)
{
	const struct sim_device *device = nic_device(srq->pub.context);
	struct nic_rq *rq = &srq->rq, bigger = *rq;

	if (size < 1 || size > (uint32_t)device->attr.max_srq_wr || size < rq->head - rq->tail)
		return nic_refuse(device, modify_call, EINVAL,
				  "max_wr is %u, the device has 1 to %d, and %u requests wait", size,
				  device->attr.max_srq_wr, rq->head - rq->tail);
	bigger.size = size;
	bigger.mask = nic_round_up(size) - 1;
	if (rq->ring.at) {
		bigger.ring = (struct nic_queue) { .at = malloc(nic_rq_bytes(&bigger)) };
		if (!bigger.ring.at)
			return nic_no_memory(device, modify_call);
		for (uint32_t i = rq->tail; i != rq->head; i++)
			memcpy(nic_rq_at(&bigger, i), nic_rq_at(rq, i), nic_rwqe_size(rq->max_sge));
		*ret_old = rq->ring;
	}
	*rq = bigger;
	return 0;
}

int sim_modify_srq(struct ibv_srq *ibsrq, struct ibv_srq_attr *attr, int mask)
{
	const struct sim_device *device = nic_device(ibsrq->context);
	struct sim_srq *srq = nic_srq(ibsrq);
	struct nic_queue old = { 0 };
	int err = 0;

	if (mask & ~(IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT))
		return nic_refuse(device, modify_call, EINVAL, "attributes 0x%x are none of an SRQ's",
				  (unsigned int)(mask & ~(IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT)));
	/* siw has another error for it than adapters. */
	if (mask & IBV_SRQ_MAX_WR && !(device->attr.device_cap_flags & IBV_DEVICE_SRQ_RESIZE))
		return nic_refuse(device, modify_call, nic_is_iwarp(device) ? EOPNOTSUPP : EINVAL,
				  "the device cannot change the size of an SRQ");
	sim_lock();
	if (mask & IBV_SRQ_LIMIT &&
	    attr->srq_limit > (mask & IBV_SRQ_MAX_WR ? attr->max_wr : srq->rq.size))
		err = nic_refuse(device, modify_call, EINVAL, "srq_limit is %u, more than max_wr",
				 attr->srq_limit);
	if (!err && mask & IBV_SRQ_MAX_WR)
		err = srq_resize(srq, attr->max_wr, &old);
	if (!err && mask & IBV_SRQ_LIMIT)
		srq->limit = attr->srq_limit;
	sim_unlock();
	nic_queue_free(&old, NIC_SHARED_QUEUE);
	return err;
}

int sim_query_srq(struct ibv_srq *ibsrq, struct ibv_srq_attr *attr)
{
	struct sim_srq *srq = nic_srq(ibsrq);

	sim_lock();
	attr->max_wr = srq->rq.size;
	attr->max_sge = srq->rq.max_sge;
	attr->srq_limit = srq->limit;
	sim_unlock();
	return 0;
}

int sim_get_srq_num(struct ibv_srq *srq, uint32_t *number)
{
	*number = nic_srq(srq)->number;
	return 0;
}

bool nic_srq_take(struct sim_srq *srq, struct nic_rwqe *ret_wqe)
{
	struct nic_rq *rq = &srq->rq;
	const struct nic_rwqe *wqe;

	if (rq->head == rq->tail)
		return false;
	wqe = nic_rq_at(rq, rq->tail++);
	memcpy(ret_wqe, wqe, sizeof(*wqe) + wqe->num_sge * sizeof(wqe->sge[0]));
	if (srq->limit && rq->head - rq->tail < srq->limit) {
		srq->limit = 0;		/* one event, until the limit is set again */
		nic_async_srq(srq, IBV_EVENT_SRQ_LIMIT_REACHED);
	}
	return true;
}
