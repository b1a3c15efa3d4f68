/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * nic/wr_send.c - send requests: posting (wr_check.c: what may be), their local memory, completing.
 * Requests complete in the order of posting; a slot is free again when its
 * request is complete, signaled or not.
 */
#include "config.h"

#include <stdlib.h>

#include "providers/soft/fabric/counters.h"
#include "providers/soft/wire/rc.h"
#include "context.h"
#include "cq.h"
#include "direct.h"
#include "mr.h"
#include "qp.h"
#include "refuse.h"
#include "sq.h"
#include "verbs.h"

/* A peer without a processor is not waited for longer. */
#define LONGEST_HAND_OVER SIM_MS(50)
#define HEAD_START SIM_US(5)
#define PAUSE SIM_US(1)		/* longer than between posts of a loop that only posts */

static void copy_inline(struct nic_swqe *wqe, const struct ibv_send_wr *wr)
{
	uint8_t *to = (uint8_t *)wqe->sge;

	for (int i = 0; i < wr->num_sge; i++) {
		if (!wr->sg_list[i].length)
			continue;
		memcpy(to, (const void *)(uintptr_t)wr->sg_list[i].addr, wr->sg_list[i].length);
		to += wr->sg_list[i].length;
	}
}

static void fill_address(struct nic_swqe *wqe, const struct ibv_send_wr *wr)
{
	const struct sim_ah *ah = nic_container(wr->wr.ud.ah, struct sim_ah, pub);

	wqe->ud_peer = ah->peer;
	wqe->ud_peer_mac = ah->peer_mac;
	wqe->ud_global = ah->attr.is_global;
	wqe->ud_dgid = ah->attr.grh.dgid;
	wqe->ud_sgid_index = ah->attr.grh.sgid_index;
	wqe->ud_tclass = ah->attr.grh.traffic_class;
	wqe->ud_hop_limit = ah->attr.grh.hop_limit;
	wqe->remote_qpn = wr->wr.ud.remote_qpn & NIC_QPN_MASK;
	wqe->rkey = wr->wr.ud.remote_qkey;
}

static void fill_bind(struct nic_swqe *wqe, const struct ibv_send_wr *wr)
{
	const struct ibv_mw_bind_info *info = &wr->bind_mw.bind_info;

	wqe->bind_window = wr->bind_mw.mw->handle;
	wqe->rkey = wr->bind_mw.rkey;
	wqe->remote_addr = info->addr;
	wqe->bind_length = info->length;
	wqe->bind_lkey = info->mr ? info->mr->lkey : 0;
	wqe->bind_access = info->mw_access_flags;
}

static void fill_wqe(const struct sim_qp *qp, struct nic_swqe *wqe, const struct ibv_send_wr *wr,
		     uint64_t length)
{
	*wqe = (struct nic_swqe) {
		.wr_id = wr->wr_id,
		.imm = wr->imm_data,
		.length = length > UINT32_MAX ? UINT32_MAX : (uint32_t)length,
		.opcode = (uint8_t)wr->opcode,
		.flags = (uint8_t)wr->send_flags,
		.num_sge = (uint8_t)wr->num_sge,
	};
	switch ((unsigned int)wr->opcode) {
	case IBV_WR_RDMA_WRITE:
	case IBV_WR_RDMA_WRITE_WITH_IMM:
	case IBV_WR_RDMA_READ:
		wqe->remote_addr = wr->wr.rdma.remote_addr;
		wqe->rkey = wr->wr.rdma.rkey;
		break;
	case IBV_WR_ATOMIC_CMP_AND_SWP:
	case IBV_WR_ATOMIC_FETCH_AND_ADD:
	case IBV_WR_ATOMIC_WRITE:
	case SIM_WR_FLUSH:
		wqe->remote_addr = wr->wr.atomic.remote_addr;
		wqe->rkey = wr->wr.atomic.rkey;
		wqe->compare_add = wr->wr.atomic.compare_add;
		wqe->swap = wr->wr.atomic.swap;
		break;
	case IBV_WR_SEND_WITH_INV:
	case IBV_WR_LOCAL_INV:
		wqe->rkey = wr->invalidate_rkey;
		break;
	case IBV_WR_BIND_MW:
		fill_bind(wqe, wr);
		break;
	default:
		if (qp->type == IBV_QPT_UD)
			fill_address(wqe, wr);
		break;
	}
	if (qp->type == IBV_QPT_XRC_SEND)
		wqe->remote_qpn = (wr->qp_type.xrc.remote_srqn & NIC_QPN_MASK) | RC_XRC;
	if (wqe->flags & IBV_SEND_INLINE)
		copy_inline(wqe, wr);
	else if (wqe->num_sge)
		memcpy(wqe->sge, wr->sg_list, wqe->num_sge * sizeof(wqe->sge[0]));
}

static int sq_post(const struct nic_post *post, const struct ibv_send_wr *wr)
{
	struct sim_qp *qp = post->qp;
	uint64_t length;
	int err = nic_check_send(post, wr, &length);

	if (err)
		return err;
	if (!qp->sq.at) {
		qp->sq.at = malloc(nic_sq_bytes(qp));
		if (!qp->sq.at)
			return nic_no_memory(qp->port->device, post->call);
	}
	fill_wqe(qp, nic_sq_at(qp, qp->sq_head++), wr, length);
	return 0;
}

static void sq_kick(struct sim_qp *qp)
{
	if (qp->state == IBV_QPS_ERR)
		nic_sq_flush(qp);
	else
		nic_transmit(qp);
	nic_check_cqe_lost(qp);
}

/* --- iWARP: handing over. --- */

static bool is_armed(const struct ibv_cq *cq)
{
	return atomic_load(&nic_container(cq, const struct sim_cq, pub)->armed) != CQ_IDLE;
}

/* Lock held.  The answer to a read comes later, and is not awaited here. */
static bool is_taken(const struct sim_qp *qp, uint32_t head)
{
	return qp->state != IBV_QPS_RTS || (int32_t)(qp->sq_tail - head) >= 0 ||
	       nic_is_read(nic_sq_at(qp, qp->sq_tail));
}

/*
 * The peer has what was posted before `head'.  Lock held, but not meanwhile.
 * One that is slow is waited for again when it has come on.  EINVAL: another
 * thread has destroyed the QP, as one may that has seen the last completion.
 */
static int await_taken(struct sim_qp *qp, uint32_t head)
{
	uint64_t until = sim_now() + LONGEST_HAND_OVER;
	uint32_t qpn = nic_qpn(qp);

	qp->is_slow = qp->is_slow && qp->slow_since == qp->sq_tail;
	if (qp->is_slow)
		return 0;
	while (!is_taken(qp, head)) {
		if (sim_now() >= until) {
			qp->slow_since = qp->sq_tail;
			qp->is_slow = true;
			return 0;
		}
		sim_unlock();
		sim_progress();
		sched_yield();
		sim_lock();
		if (nic_qp_by_number(qpn) != qp)
			return EINVAL;
	}
	return 0;
}

/* The same for a call that fails if the QP is gone. */
static int hand_over_before(struct sim_qp *qp, const char *call, uint32_t head)
{
	const struct sim_device *device = qp->port->device;
	uint32_t qpn = nic_qpn(qp);

	if (!await_taken(qp, head))
		return 0;
	return nic_refuse(device, call, EINVAL, "QP 0x%06x: another thread has destroyed it", qpn);
}

static bool hands_over(const struct sim_qp *qp)
{
	return nic_qp_is_iwarp(qp) && !sim_is_virtual() && qp->state == IBV_QPS_RTS;
}

/*
 * siw sends in the caller, and TCP delivers at once: usually the peer has a
 * message when the call returns, and its program can have seen it before the next
 * one.  Programs that check for credits between two posts, or close after the
 * last, depend on this.  Here a program that only posts may be HEAD_START ahead of
 * the peer, which is about the time that a post takes with siw.  After a pause it
 * is not ahead at all.
 */
static int before_post(struct sim_qp *qp, const char *call)
{
	uint64_t now;

	if (__builtin_expect(nic_direct_pending, 0))
		nic_direct_share();
	if (!hands_over(qp))
		return 0;
	now = sim_now();
	if (now - qp->posted_at > PAUSE)
		return hand_over_before(qp, call, qp->sq_head);
	if (now - qp->mark_at > HEAD_START)
		return hand_over_before(qp, call, qp->mark);
	return 0;
}

/*
 * A program that may sleep in its next call sees nothing until it is woken, so it
 * gets no head start.
 */
static void after_post(struct sim_qp *qp)
{
	if (!hands_over(qp))
		return;
	if ((is_armed(qp->pub.qp.send_cq) || is_armed(qp->pub.qp.recv_cq)) &&
	    await_taken(qp, qp->sq_head))
		return;
	qp->posted_at = sim_now();
	if ((int32_t)(qp->sq_tail - qp->mark) >= 0) {
		qp->mark = qp->sq_head;
		qp->mark_at = qp->posted_at;
	}
}

int nic_hand_over(struct sim_qp *qp, const char *call)
{
	return hands_over(qp) ? hand_over_before(qp, call, qp->sq_head) : 0;
}

/* --- Posting. --- */

int nic_post_send(struct sim_qp *qp, const char *call, struct ibv_send_wr *wr,
		  struct ibv_send_wr **bad_wr)
{
	const struct nic_post post = { .qp = qp, .call = call };
	int err;

	sim_lock();
	err = before_post(qp, call);
	if (err) {
		*bad_wr = wr;
	} else {
		for (; wr && !err; wr = err ? wr : wr->next)
			err = sq_post(&post, wr);
		if (err)
			*bad_wr = wr;
		sq_kick(qp);
		after_post(qp);
	}
	sim_unlock();
	return err;
}

int sim_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad_wr)
{
	return nic_post_send(nic_qp(qp), "ibv_post_send", wr, bad_wr);
}

int nic_post_all(struct sim_qp *qp, const char *call, struct ibv_send_wr *wr)
{
	const struct nic_post post = { .qp = qp, .call = call, .built = true };
	int err = before_post(qp, call);
	uint32_t head;

	if (err)
		return err;
	head = qp->sq_head;
	for (; wr && !err; wr = wr->next)
		err = sq_post(&post, wr);
	if (err) {
		qp->sq_head = head;
		return err;
	}
	sq_kick(qp);
	after_post(qp);
	return 0;
}

int nic_swqe_resolve(const struct sim_qp *qp, struct nic_swqe *wqe, uint32_t offset,
		     uint32_t length, struct iovec iov[static NIC_MAX_SGE],
		     unsigned int *ret_parts)
{
	if (!(wqe->flags & IBV_SEND_INLINE))
		return nic_sge_resolve(qp, wqe->sge, wqe->num_sge, offset, length,
				       nic_is_read(wqe) ? IBV_ACCESS_LOCAL_WRITE : 0, iov, ret_parts);
	iov[0].iov_base = (uint8_t *)wqe->sge + offset;
	iov[0].iov_len = length;
	*ret_parts = length ? 1 : 0;
	return 0;
}

void nic_sq_complete(struct sim_qp *qp, enum ibv_wc_status status)
{
	const struct nic_swqe *wqe = nic_sq_at(qp, qp->sq_tail);
	struct ibv_wc wc = {
		.wr_id = wqe->wr_id,
		.status = status,
		.opcode = (enum ibv_wc_opcode)nic_opcodes[wqe->opcode].wc_opcode,
		.byte_len = wqe->length,
		.qp_num = nic_qpn(qp),
	};

	qp->inflight -= wqe->inflight;
	if (nic_is_read(wqe) && qp->sq_next != qp->sq_tail)
		qp->rd_outstanding--;
	qp->rd_off = 0;
	if (qp->sq_next == qp->sq_tail) {
		qp->sq_next++;
		qp->tx_off = 0;
	}
	if (qp->sq_high == qp->sq_tail)
		qp->sq_high++;
	qp->sq_tail++;
	if (status == IBV_WC_SUCCESS && wc.opcode == IBV_WC_SEND)
		sim_count(qp->port, SIM_SENDS, 1);
	if (nic_is_bad(status))
		nic_log_bad(qp, &wc, false);
	if (status == IBV_WC_SUCCESS && !qp->sq_sig_all && !(wqe->flags & IBV_SEND_SIGNALED))
		return;
	if (!nic_cq_push(nic_cq(qp->pub.qp.send_cq), &wc, false))
		qp->cqe_lost = true;
}

void nic_sq_flush(struct sim_qp *qp)
{
	while (qp->sq_tail != qp->sq_head)
		nic_sq_complete(qp, IBV_WC_WR_FLUSH_ERR);
}

void nic_sq_drained(struct sim_qp *qp)
{
	if (!qp->sqd_drained && qp->sqd_notify)
		nic_async_qp(qp, IBV_EVENT_SQ_DRAINED);
	qp->sqd_drained = true;
}
