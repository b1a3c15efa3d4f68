/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * nic/rc_transmit.c - the requesting side of a connected QP: what may be sent
 * and in which form it goes.
 */
#include "config.h"

#include "providers/soft/link/shm/shm.h"
#include "direct.h"
#include "mr.h"
#include "rc_internal.h"
#include "refuse.h"
#include "sq.h"

struct rc_header rc_request_header(const struct sim_qp *qp, uint32_t index)
{
	const struct nic_swqe *wqe = nic_sq_at(qp, index);
	struct rc_header h = {
		.psn = (qp->sq_psn + index) & NIC_PSN_MASK,
		.op = nic_opcodes[wqe->opcode].rc_op,
		.flags = nic_opcodes[wqe->opcode].rc_flags,
		.length = wqe->length,
		.imm = wqe->imm,
		.rkey = wqe->rkey,
		.remote_addr = wqe->remote_addr,
		.compare_add = wqe->compare_add,
		.swap = wqe->swap,
		.xrc_srqn = wqe->remote_qpn,
	};

	if (wqe->flags & IBV_SEND_SOLICITED)
		h.flags |= RC_F_SOLICITED;
	return h;
}

void rc_send_read(struct sim_qp *qp, uint32_t index, uint32_t offset)
{
	struct rc_header h = rc_request_header(qp, index);

	h.rd_depth = qp->rd_outstanding;
	if (qp->no_read_ref)
		h.flags |= RC_F_NO_REF;
	h.offset = offset;
	rc_send(qp, &h, NULL, 0, 0);
}

static void send_reference(struct sim_qp *qp, struct rc_header *h, const struct iovec *iov,
			   unsigned int parts)
{
	struct rc_part list[NIC_MAX_SGE];
	struct iovec payload = { .iov_base = list, .iov_len = parts * sizeof(list[0]) };

	for (unsigned int i = 0; i < parts; i++) {
		list[i].addr = (uintptr_t)iov[i].iov_base;
		list[i].len = iov[i].iov_len;
	}
	h->flags |= RC_F_REF;
	h->parts = (uint16_t)parts;
	rc_send(qp, h, &payload, 1, payload.iov_len);
}

/* Nothing that is not there yet comes before its data. */
static bool may_place(const struct sim_qp *qp, uint32_t index)
{
	const struct nic_swqe *wqe = nic_sq_at(qp, index);

	return qp->peer_entry && wqe->opcode == IBV_WR_RDMA_WRITE_WITH_IMM && index == qp->sq_tail &&
	       index == qp->sq_high && !qp->tx_off && wqe->length;
}

/* One packet of a message.  *ret_sent: that much of it.  0, or the local memory is wrong. */
static int send_data(struct sim_qp *qp, uint32_t index, uint32_t *ret_sent)
{
	struct nic_swqe *wqe = nic_sq_at(qp, index);
	struct rc_header h = rc_request_header(qp, index);
	unsigned int slot = rc_peer_slot(qp);
	struct iovec iov[NIC_MAX_SGE];
	uint32_t len = wqe->length - qp->tx_off, fragment;
	bool by_value = wqe->length <= RC_INLINE_MAX, local = slot == sim_self_slot();
	unsigned int parts;
	int r;

	if (!by_value && (qp->tx_off || qp->no_ref || (!local && !sim_link_pullable(slot)))) {
		by_value = true;
		fragment = rc_fragment(qp);
		if (len > fragment)
			len = fragment;
	}
	r = nic_swqe_resolve(qp, wqe, qp->tx_off, len, iov, &parts);
	if (r < 0)
		return r;
	h.offset = qp->tx_off;
	*ret_sent = len;
	if (may_place(qp, index) && nic_direct_execute(qp, wqe) == NIC_DIRECT_DONE) {
		h.placed = true;
		*ret_sent = wqe->length;
		rc_send(qp, &h, NULL, 0, 0);
	} else if (by_value) {
		rc_send(qp, &h, iov, parts, len);
		wqe->inflight += len;
		qp->inflight += len;
	} else if (local) {
		h.flags |= RC_F_LOCAL;
		rc_send(qp, &h, NULL, 0, 0);
	} else {
		send_reference(qp, &h, iov, parts);
	}
	return 0;
}

/* May the request be started?  Its status is set if it cannot be carried out at all. */
static bool may_start(struct sim_qp *qp, struct nic_swqe *wqe)
{
	struct iovec iov[NIC_MAX_SGE];
	unsigned int parts;

	if (wqe->flags & IBV_SEND_FENCE && qp->rd_outstanding)
		return false;
	if (wqe->length > qp->port->max_msg_sz)
		wqe->status = IBV_WC_LOC_LEN_ERR;
	else if (nic_is_read(wqe) && !qp->attr.max_rd_atomic)
		wqe->status = IBV_WC_LOC_QP_OP_ERR;
	else if (nic_is_read(wqe) && nic_swqe_resolve(qp, wqe, 0, wqe->length, iov, &parts))
		wqe->status = IBV_WC_LOC_PROT_ERR;
	if (wqe->status)
		return false;
	return !nic_is_read(wqe) || qp->rd_outstanding < qp->attr.max_rd_atomic;
}

/*
 * A large read whose data comes in chunks is alone in flight: answers to other
 * requests would come between them.
 */
static bool read_in_chunks(const struct sim_qp *qp)
{
	const struct nic_swqe *wqe = nic_sq_at(qp, qp->sq_tail);

	return qp->read_by_value && qp->sq_next != qp->sq_tail && wqe->opcode == IBV_WR_RDMA_READ &&
	       wqe->length > RC_INLINE_MAX;
}

/* The oldest request, which no packet was sent for, is done: it takes no number. */
static void complete_unsent(struct sim_qp *qp)
{
	qp->sq_psn = (qp->sq_psn - 1) & NIC_PSN_MASK;
	nic_sq_complete(qp, IBV_WC_SUCCESS);
}

/* A request that no packet is sent for is carried out when all before it are complete. */
static bool execute_local(struct sim_qp *qp, struct nic_swqe *wqe)
{
	if (qp->sq_next != qp->sq_tail)
		return false;
	wqe->status = (uint8_t)nic_mw_execute(qp, wqe);
	if (wqe->status)
		return false;
	complete_unsent(qp);
	return true;
}

/*
 * While others of its kind are under way as packets, it is better to wait for them: behind it,
 * too, would be packets only.  On iWARP what is posted is handed over at once (wr_send.c).
 */
static bool waits_for_packets(const struct sim_qp *qp, const struct nic_swqe *wqe)
{
	return qp->sq_next != qp->sq_tail && qp->is_direct && wqe->rkey != qp->packets_key &&
	       (int32_t)(qp->last_message - qp->sq_tail) <= 0 && !nic_qp_is_iwarp(qp);
}

static bool try_direct(struct sim_qp *qp, struct nic_swqe *wqe)
{
	enum nic_direct result;

	if (qp->sq_next != qp->sq_tail)
		return false;
	result = nic_direct_execute(qp, wqe);
	qp->is_direct = result != NIC_DIRECT_NOT_NOW;
	if (result == NIC_DIRECT_REFUSED)
		qp->packets_key = wqe->rkey;
	else if (qp->packets_key == wqe->rkey)
		qp->packets_key = 0;
	return result == NIC_DIRECT_DONE;
}

enum direct { DONE, TO_BE_SENT, TO_WAIT };

/* The same for one that this process carries out in the peer's memory, if nothing of it was sent. */
static enum direct execute_direct(struct sim_qp *qp, struct nic_swqe *wqe)
{
	if (qp->sq_high != qp->sq_next || qp->tx_off || !nic_direct_may(wqe))
		return TO_BE_SENT;
	if (waits_for_packets(qp, wqe))
		return TO_WAIT;
	if (!try_direct(qp, wqe))
		return TO_BE_SENT;
	complete_unsent(qp);
	return DONE;
}

/* Send one packet of the next request; false: nothing can be sent now. */
static bool transmit_one(struct sim_qp *qp)
{
	uint32_t limit = qp->state == IBV_QPS_SQD ? qp->sq_high : qp->sq_head;
	struct nic_swqe *wqe;
	enum direct direct;
	uint32_t sent = 0;

	if (qp->sq_next == limit || qp->rnr_wait || qp->cqe_lost || qp->inflight >= RC_WINDOW ||
	    read_in_chunks(qp))
		return false;
	wqe = nic_sq_at(qp, qp->sq_next);
	if (wqe->status || (!qp->tx_off && !may_start(qp, wqe)))
		return false;
	if (nic_is_local(wqe))
		return execute_local(qp, wqe);
	if (qp->peer_entry) {
		direct = execute_direct(qp, wqe);
		if (direct != TO_BE_SENT)
			return direct == DONE;
		if (!nic_direct_may(wqe))
			qp->last_message = qp->sq_next + 1;
	}
	if (nic_is_read(wqe)) {
		qp->rd_outstanding++;
		rc_send_read(qp, qp->sq_next, qp->sq_next == qp->sq_tail ? qp->rd_off : 0);
	} else if (send_data(qp, qp->sq_next, &sent)) {
		wqe->status = IBV_WC_LOC_PROT_ERR;
		return false;
	}
	if (qp->sq_high == qp->sq_next)
		qp->sq_high++;
	qp->tx_off += sent;
	if (nic_is_read(wqe) || qp->tx_off == wqe->length) {
		qp->sq_next++;
		qp->tx_off = 0;
	}
	return true;
}

/* Data sent by reference is not fetched yet, so the stream has none of it. */
static bool stream_has(const struct nic_swqe *wqe)
{
	return !nic_is_read(wqe) && (uint64_t)wqe->acked + wqe->inflight >= wqe->length;
}

void rc_stream_took(struct sim_qp *qp)
{
	while (qp->sq_tail != qp->sq_next && stream_has(nic_sq_at(qp, qp->sq_tail)))
		nic_sq_complete(qp, IBV_WC_SUCCESS);
	if (qp->sq_tail == qp->sq_next && !qp->tx_off)
		sim_timer_disarm(&qp->timer);
}

/* Others were completed since may_start() set the status, so the reason is found again. */
static void local_reason(struct sim_qp *qp, struct nic_swqe *wqe)
{
	struct iovec iov[NIC_MAX_SGE];
	unsigned int parts;

	if (nic_is_local(wqe))
		return;		/* nic_mw_execute() has said it */
	if (wqe->status == IBV_WC_LOC_LEN_ERR) {
		nic_set_reason("%u bytes are more than a message may have (%u)", wqe->length,
			    qp->port->max_msg_sz);
	} else if (wqe->status == IBV_WC_LOC_QP_OP_ERR) {
		nic_set_reason("it reads, and the QP's max_rd_atomic (initiator depth) is 0");
	} else {
		nic_set_reason("a local key did not allow it");
		(void)nic_swqe_resolve(qp, wqe, 0, wqe->length, iov, &parts);
	}
}

void rc_transmit(struct sim_qp *qp)
{
	struct nic_swqe *wqe;

	if (qp->state != IBV_QPS_RTS && qp->state != IBV_QPS_SQD)
		return;
	while (transmit_one(qp))
		;
	/* A request with a local error fails when all before it are complete. */
	if (qp->sq_tail != qp->sq_head) {
		wqe = nic_sq_at(qp, qp->sq_tail);
		if (wqe->status) {
			local_reason(qp, wqe);
			rc_fail(qp, (enum ibv_wc_status)wqe->status, NULL);
			return;
		}
	}
	if (qp->state == IBV_QPS_SQD && qp->sq_tail == qp->sq_high)
		nic_sq_drained(qp);
	rc_arm(qp);
}
