/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * nic/wr_send.c - send requests: posting, their local memory, completing.
 * Requests complete in the order of posting; a slot is free again when its
 * request is complete, signaled or not.
 */
#include "config.h"

#include <stdlib.h>

#include "providers/soft/wire/rc.h"
#include "context.h"
#include "cq.h"
#include "mr.h"
#include "qp.h"
#include "refuse.h"
#include "sq.h"
#include "verbs.h"

/* A peer without a processor is not waited for longer. */
#define LONGEST_HAND_OVER SIM_MS(50)
#define HEAD_START SIM_US(5)
#define PAUSE SIM_US(1)		/* longer than between posts of a loop that only posts */

#define KNOWN_FLAGS (IBV_SEND_FENCE | IBV_SEND_SIGNALED | IBV_SEND_SOLICITED | IBV_SEND_INLINE)

#define RC (1 << IBV_QPT_RC)
#define CONNECTED (RC | 1 << IBV_QPT_UC)
#define ALL (CONNECTED | 1 << IBV_QPT_UD)
#define IMM POLYCM_SVC_IMM
#define ATOMIC POLYCM_SVC_ATOMIC

const struct nic_opcode nic_opcodes[] = {
	[IBV_WR_SEND] = { ALL, 0, IBV_WC_SEND, RC_SEND, 0 },
	[IBV_WR_SEND_WITH_IMM] = { ALL, IMM, IBV_WC_SEND, RC_SEND, RC_F_IMM },
	[IBV_WR_SEND_WITH_INV] = { RC, 0, IBV_WC_SEND, RC_SEND, RC_F_INVALIDATE },
	[IBV_WR_RDMA_WRITE] = { CONNECTED, 0, IBV_WC_RDMA_WRITE, RC_WRITE, 0 },
	[IBV_WR_RDMA_WRITE_WITH_IMM] = { CONNECTED, IMM, IBV_WC_RDMA_WRITE, RC_WRITE, RC_F_IMM },
	[IBV_WR_RDMA_READ] = { RC, 0, IBV_WC_RDMA_READ, RC_READ, 0 },
	[IBV_WR_ATOMIC_CMP_AND_SWP] = { RC, ATOMIC, IBV_WC_COMP_SWAP, RC_CMP_SWAP, 0 },
	[IBV_WR_ATOMIC_FETCH_AND_ADD] = { RC, ATOMIC, IBV_WC_FETCH_ADD, RC_FETCH_ADD, 0 },
	/* These two send no packet. */
	[IBV_WR_BIND_MW] = { CONNECTED, 0, IBV_WC_BIND_MW, 0, 0 },
	[IBV_WR_LOCAL_INV] = { CONNECTED, 0, IBV_WC_LOCAL_INV, 0, 0 },
};

bool nic_has_opcode(const struct sim_device *device, enum ibv_qp_type type, unsigned int opcode)
{
	const struct nic_opcode *row;

	if (opcode >= sizeof(nic_opcodes) / sizeof(nic_opcodes[0]) || type > IBV_QPT_UD)
		return false;
	row = &nic_opcodes[opcode];
	return row->qp_types >> type & 1 && !(row->services & ~device->rules->services);
}

/* Why the device has no such request: EINVAL; NULL: it has. */
static const char *wr_error(const struct sim_qp *qp, const struct ibv_send_wr *wr, uint64_t length)
{
	const struct sim_device *device = qp->port->device;
	bool inl = wr->send_flags & IBV_SEND_INLINE;

	if (!nic_has_opcode(device, (enum ibv_qp_type)qp->type, wr->opcode))
		return "a QP of this type and transport has no such operation";
	if (wr->send_flags & ~(unsigned int)KNOWN_FLAGS)
		return "send_flags has bits that are not supported";
	switch (wr->opcode) {
	case IBV_WR_RDMA_READ:
		if (nic_qp_is_iwarp(qp) && !qp->max_rd_atomic)
			return "the connection was made without initiator depth";
		if (wr->num_sge > device->attr.max_sge_rd)
			return "num_sge is above the device's max_sge_rd";
		return inl ? "a read cannot be inline" : NULL;
	case IBV_WR_ATOMIC_CMP_AND_SWP:
	case IBV_WR_ATOMIC_FETCH_AND_ADD:
		if (length != 8 || wr->wr.atomic.remote_addr & 7)
			return "atomics are of 8 bytes at an address that 8 divides";
		return inl ? "an atomic cannot be inline" : NULL;
	case IBV_WR_BIND_MW:
		if (!wr->bind_mw.mw)
			return "bind_mw.mw is NULL";
		return inl || length ? "a bind carries no data" : NULL;
	case IBV_WR_LOCAL_INV:
		return inl || length ? "an invalidation carries no data" : NULL;
	default:
		break;
	}
	if (inl && length > qp->cap.max_inline_data)
		return "more inline data than the QP's max_inline_data";
	if (qp->type == IBV_QPT_UD && !wr->wr.ud.ah)
		return "it has no address handle";
	return NULL;
}

/* Returns err.  One log line for each request: programs that check for errors stop at the first. */
static int refuse(const struct sim_qp *qp, const struct ibv_send_wr *wr, int err, const char *why)
{
	nic_log(POLYCM_LOG_WARN, "%s QP 0x%06x: send request refused (wr_id 0x%llx, opcode %d, "
		"num_sge %d; the QP has max_send_sge %u, max_send_wr %u): %s: %s",
		qp->port->device->vdev.device.name, nic_qpn(qp), (unsigned long long)wr->wr_id,
		(int)wr->opcode, wr->num_sge, qp->cap.max_send_sge, qp->cap.max_send_wr, why,
		strerror(err));
	return err;
}

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
	switch (wr->opcode) {
	case IBV_WR_RDMA_WRITE:
	case IBV_WR_RDMA_WRITE_WITH_IMM:
	case IBV_WR_RDMA_READ:
		wqe->remote_addr = wr->wr.rdma.remote_addr;
		wqe->rkey = wr->wr.rdma.rkey;
		break;
	case IBV_WR_ATOMIC_CMP_AND_SWP:
	case IBV_WR_ATOMIC_FETCH_AND_ADD:
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
	if (wqe->flags & IBV_SEND_INLINE)
		copy_inline(wqe, wr);
	else if (wqe->num_sge)
		memcpy(wqe->sge, wr->sg_list, wqe->num_sge * sizeof(wqe->sge[0]));
}

static int sq_post(struct sim_qp *qp, const struct ibv_send_wr *wr)
{
	uint64_t length = 0;
	const char *why;

	/* On iWARP, SQD is a stream that is being closed. */
	if (qp->state < IBV_QPS_RTS || (qp->state == IBV_QPS_SQD && nic_qp_is_iwarp(qp)))
		return refuse(qp, wr, nic_qp_is_iwarp(qp) ? ENOTCONN : EINVAL,
			      "the QP is not in a state that sends (RTS)");
	if (qp->state == IBV_QPS_ERR && qp->port->device->removed)
		return refuse(qp, wr, EIO, "the device was removed");
	if (wr->num_sge < 0 || (uint32_t)wr->num_sge > qp->cap.max_send_sge)
		return refuse(qp, wr, EINVAL, "num_sge is not within max_send_sge");
	for (int i = 0; i < wr->num_sge; i++)
		length += wr->sg_list[i].length;
	why = wr_error(qp, wr, length);
	if (why)
		return refuse(qp, wr, EINVAL, why);
	if (qp->sq_head - qp->sq_tail >= qp->cap.max_send_wr)
		return nic_full_logged(&qp->full, qp->sq_tail) ? ENOMEM :
		       refuse(qp, wr, ENOMEM, "the send queue is full");
	if (!qp->sq) {
		qp->sq = malloc(((size_t)qp->sq_mask + 1) * nic_swqe_size(qp));
		if (!qp->sq)
			return refuse(qp, wr, ENOMEM, "no memory for the send queue");
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
static int before_post(struct sim_qp *qp)
{
	uint64_t now;

	if (!hands_over(qp))
		return 0;
	now = sim_now();
	if (now - qp->posted_at > PAUSE)
		return await_taken(qp, qp->sq_head);
	if (now - qp->mark_at > HEAD_START)
		return await_taken(qp, qp->mark);
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

int nic_hand_over(struct sim_qp *qp)
{
	return hands_over(qp) ? await_taken(qp, qp->sq_head) : 0;
}

/* --- Posting. --- */

int sim_post_send(struct ibv_qp *ibqp, struct ibv_send_wr *wr, struct ibv_send_wr **bad_wr)
{
	struct sim_qp *qp = nic_qp(ibqp);
	int err;

	sim_lock();
	err = before_post(qp);
	if (err) {
		*bad_wr = wr;
	} else {
		for (; wr && !err; wr = err ? wr : wr->next)
			err = sq_post(qp, wr);
		if (err)
			*bad_wr = wr;
		sq_kick(qp);
		after_post(qp);
	}
	sim_unlock();
	return err;
}

int nic_post_all(struct sim_qp *qp, struct ibv_send_wr *wr)
{
	int err = before_post(qp);
	uint32_t head;

	if (err)
		return err;
	head = qp->sq_head;
	for (; wr && !err; wr = wr->next)
		err = sq_post(qp, wr);
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
