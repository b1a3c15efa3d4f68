/* SPDX-License-Identifier: BSD-2-Clause */
/* nic/srq.c - shared receive queues. */
#include "config.h"

#include <stdlib.h>

#include "context.h"
#include "refuse.h"
#include "rq.h"
#include "verbs.h"

static const char create_call[] = "ibv_create_srq", modify_call[] = "ibv_modify_srq";

static int check_new(const struct sim_device *device, const struct ibv_srq_attr *attr)
{
	const struct ibv_device_attr *limits = &device->attr;

	if (!limits->max_srq)
		return nic_refuse(device, create_call, EOPNOTSUPP, "the device has no SRQs");
	if (attr->max_wr < 1 || attr->max_wr > (uint32_t)limits->max_srq_wr)
		return nic_refuse(device, create_call, EINVAL, "max_wr is %u, the device has 1 to %d",
				  attr->max_wr, limits->max_srq_wr);
	if (attr->max_sge > (uint32_t)limits->max_srq_sge)
		return nic_refuse(device, create_call, EINVAL, "max_sge is %u, the device has %d",
				  attr->max_sge, limits->max_srq_sge);
	return 0;
}

struct ibv_srq *sim_create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *init)
{
	const struct sim_device *device = nic_device(pd->context);
	static uint32_t next_handle;
	struct sim_srq *srq;
	int err = check_new(device, &init->attr);

	if (err)
		return nic_fail(NULL, err);
	srq = nic_alloc(device, create_call, sizeof(*srq));
	if (!srq)
		return NULL;
	srq->rq.size = init->attr.max_wr;
	srq->rq.mask = nic_round_up(srq->rq.size) - 1;
	srq->rq.max_sge = init->attr.max_sge;
	srq->pub.context = pd->context;
	srq->pub.srq_context = init->srq_context;
	srq->pub.pd = pd;

	sim_lock();
	err = nic_add(pd->context, NIC_SRQ, &srq->node, pd);
	if (!err) {
		pthread_mutex_init(&srq->pub.mutex, NULL);
		pthread_cond_init(&srq->pub.cond, NULL);
		srq->pub.handle = next_handle++;
		srq->number = srq->pub.handle + 1;
	}
	sim_unlock();
	return err ? nic_fail(srq, err) : &srq->pub;
}

struct ibv_srq *sim_create_srq_ex(struct ibv_context *context, struct ibv_srq_init_attr_ex *attr)
{
	static const char call[] = "ibv_create_srq_ex";
	struct ibv_srq_init_attr init = { .srq_context = attr->srq_context, .attr = attr->attr };

	if (attr->comp_mask & ~(uint32_t)(IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_TYPE) ||
	    (attr->comp_mask & IBV_SRQ_INIT_ATTR_TYPE && attr->srq_type != IBV_SRQT_BASIC))
		return nic_fail(NULL, nic_refuse(nic_device(context), call, EOPNOTSUPP,
						 "the simulator has basic SRQs only (comp_mask 0x%x)",
						 attr->comp_mask));
	if (!(attr->comp_mask & IBV_SRQ_INIT_ATTR_PD) || attr->pd->context != context)
		return nic_fail(NULL, nic_refuse(nic_device(context), call, EINVAL,
						 "it needs a PD of the same context"));
	return sim_create_srq(attr->pd, &init);
}

static void srq_detach(struct sim_srq *srq)
{
	nic_async_forget(nic_context(srq->pub.context), srq);
	nic_remove(srq->pub.context, NIC_SRQ, &srq->node, srq->pub.pd);
}

static void srq_release(struct sim_srq *srq)
{
	pthread_mutex_destroy(&srq->pub.mutex);
	pthread_cond_destroy(&srq->pub.cond);
	free(srq->rq.ring);
	free(srq);
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

static int srq_resize(struct sim_srq *srq, uint32_t size)
{
	const struct sim_device *device = nic_device(srq->pub.context);
	struct nic_rq *rq = &srq->rq, bigger = *rq;

	if (size < 1 || size > (uint32_t)device->attr.max_srq_wr || size < rq->head - rq->tail)
		return nic_refuse(device, modify_call, EINVAL,
				  "max_wr is %u, the device has 1 to %d, and %u requests wait", size,
				  device->attr.max_srq_wr, rq->head - rq->tail);
	bigger.size = size;
	bigger.mask = nic_round_up(size) - 1;
	if (rq->ring) {
		bigger.ring = malloc((bigger.mask + 1) * nic_rwqe_size(rq->max_sge));
		if (!bigger.ring)
			return nic_no_memory(device, modify_call);
		for (uint32_t i = rq->tail; i != rq->head; i++)
			memcpy(nic_rq_at(&bigger, i), nic_rq_at(rq, i), nic_rwqe_size(rq->max_sge));
		free(rq->ring);
	}
	*rq = bigger;
	return 0;
}

int sim_modify_srq(struct ibv_srq *ibsrq, struct ibv_srq_attr *attr, int mask)
{
	const struct sim_device *device = nic_device(ibsrq->context);
	struct sim_srq *srq = nic_srq(ibsrq);
	int err = 0;

	if (mask & ~(IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT))
		return nic_refuse(device, modify_call, EINVAL, "attributes 0x%x are none of an SRQ's",
				  (unsigned int)(mask & ~(IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT)));
	sim_lock();
	if (mask & IBV_SRQ_LIMIT &&
	    attr->srq_limit > (mask & IBV_SRQ_MAX_WR ? attr->max_wr : srq->rq.size))
		err = nic_refuse(device, modify_call, EINVAL, "srq_limit is %u, more than max_wr",
				 attr->srq_limit);
	if (!err && mask & IBV_SRQ_MAX_WR)
		err = srq_resize(srq, attr->max_wr);
	if (!err && mask & IBV_SRQ_LIMIT)
		srq->limit = attr->srq_limit;
	sim_unlock();
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
