/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * nic/wr_recv.c - receive requests: posting to a QP or an SRQ, and what the
 * receiving side does with them.  A request is held by the message that is
 * being received until that is complete or the QP fails.
 */
#include "config.h"

#include <stdlib.h>

#include "providers/soft/fabric/counters.h"
#include "cq.h"
#include "refuse.h"
#include "rq.h"
#include "verbs.h"

/* A receive queue, for log lines. */
struct owner {
	const char *call, *device, *kind;
	uint32_t number;
};

static int refuse(const struct owner *owner, const struct nic_rq *rq, const struct ibv_recv_wr *wr,
		  int err, const char *why)
{
	nic_log(POLYCM_LOG_WARN, "%s %s 0x%06x: %s refused (wr_id 0x%llx, num_sge %d; the queue has "
		"max_wr %u, max_sge %u): %s: %s", owner->device, owner->kind, owner->number,
		owner->call, wr ? (unsigned long long)wr->wr_id : 0, wr ? wr->num_sge : 0, rq->size,
		rq->max_sge, why, strerror(err));
	return err;
}

/* As for a send queue that is full. */
__attribute__((cold))
static int refuse_full(const struct owner *owner, struct nic_rq *rq, const struct ibv_recv_wr *wr)
{
	if (rq->full_logged)
		return ENOMEM;
	rq->full_logged = true;
	return refuse(owner, rq, wr, ENOMEM, "the receive queue is full: post again when a receive is "
		      "complete; it is not logged again for this queue");
}

static int rq_post(const struct owner *owner, struct nic_rq *rq, const struct ibv_recv_wr *wr)
{
	struct nic_rwqe *wqe;

	if (wr->num_sge < 0 || (uint32_t)wr->num_sge > rq->max_sge)
		return refuse(owner, rq, wr, EINVAL, "num_sge is not within max_sge");
	if (rq->head - rq->tail >= rq->size)
		return refuse_full(owner, rq, wr);
	if (!rq->ring.at) {
		rq->ring.at = malloc(nic_rq_bytes(rq));
		if (!rq->ring.at)
			return refuse(owner, rq, wr, ENOMEM, "no memory for the receive queue");
	}
	wqe = nic_rq_at(rq, rq->head);
	wqe->wr_id = wr->wr_id;
	wqe->num_sge = (uint32_t)wr->num_sge;
	if (wqe->num_sge)
		memcpy(wqe->sge, wr->sg_list, wqe->num_sge * sizeof(wqe->sge[0]));
	rq->head++;
	return 0;
}

/* Returns err, if set, or the first request's that is refused. */
static int rq_post_all(const struct owner *owner, struct nic_rq *rq, int err,
		       struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr)
{
	for (; wr && !err; wr = err ? wr : wr->next)
		err = rq_post(owner, rq, wr);
	if (err)
		*bad_wr = wr;
	return err;
}

int sim_post_recv(struct ibv_qp *ibqp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr)
{
	struct sim_qp *qp = nic_qp(ibqp);
	const struct owner owner = {
		"ibv_post_recv", qp->port->device->vdev.device.name, "QP", nic_qpn(qp),
	};
	int err = 0;

	sim_lock();
	if (qp->srq || qp->type == IBV_QPT_XRC_RECV)
		err = refuse(&owner, &qp->rq, wr, EINVAL, "the QP receives from an SRQ");
	else if (qp->type == IBV_QPT_XRC_SEND)
		err = refuse(&owner, &qp->rq, wr, EINVAL, "a QP of type XRC_SEND does not receive");
	else if (qp->state == IBV_QPS_RESET)
		err = refuse(&owner, &qp->rq, wr, EINVAL, "the QP is in RESET");
	else if (qp->state == IBV_QPS_ERR && qp->port->device->removed)
		err = refuse(&owner, &qp->rq, wr, EIO, "the device was removed");
	err = rq_post_all(&owner, &qp->rq, err, wr, bad_wr);
	if (qp->state == IBV_QPS_ERR)
		nic_rq_flush(qp);
	sim_unlock();
	return err;
}

int sim_post_srq_recv(struct ibv_srq *ibsrq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr)
{
	struct sim_srq *srq = nic_srq(ibsrq);
	const struct owner owner = {
		"ibv_post_srq_recv", ibsrq->context->device->name, "SRQ", srq->number,
	};
	int err = 0;

	sim_lock();
	if (nic_device(ibsrq->context)->removed)
		err = refuse(&owner, &srq->rq, wr, EIO, "the device was removed");
	err = rq_post_all(&owner, &srq->rq, err, wr, bad_wr);
	sim_unlock();
	return err;
}

struct nic_rwqe *nic_rq_hold(struct sim_qp *qp)
{
	if (!qp->srq) {
		if (qp->rq.head == qp->rq.tail)
			return NULL;
		qp->rx_held = true;
		return nic_rq_at(&qp->rq, qp->rq.tail);
	}
	if (qp->rx_held)
		return qp->srq_held;
	if (!nic_srq_take(qp->srq, qp->srq_held))
		return NULL;
	qp->rx_held = true;
	return qp->srq_held;
}

void nic_rq_complete(struct sim_qp *qp, struct ibv_wc *wc, bool solicited)
{
	if (qp->srq)
		wc->wr_id = qp->srq_held->wr_id;
	else
		wc->wr_id = nic_rq_at(&qp->rq, qp->rq.tail++)->wr_id;
	qp->rx_held = false;
	wc->qp_num = nic_qpn(qp);
	if (wc->status == IBV_WC_SUCCESS && wc->opcode == IBV_WC_RECV)
		sim_count(qp->port, SIM_RECEIVES, 1);
	if (nic_is_bad(wc->status))
		nic_log_bad(qp, wc, true);
	if (!nic_cq_push(qp->recv_cq, wc, solicited))
		qp->cqe_lost = true;
}

void nic_rq_flush(struct sim_qp *qp)
{
	struct ibv_wc wc = { .status = IBV_WC_WR_FLUSH_ERR, .opcode = IBV_WC_RECV };

	if (qp->srq) {
		if (qp->rx_held)
			nic_rq_complete(qp, &wc, true);
		return;
	}
	while (qp->rq.tail != qp->rq.head)
		nic_rq_complete(qp, &wc, true);
}
