/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * nic/rc_responder.c - the responding side of a connected QP: checks of what
 * the peer asks for, its execution, and answers (IBTA vol. 1, 9.7.4, 9.9.3).
 */
#include "config.h"

#include <stdio.h>

#include "providers/soft/fabric/counters.h"
#include "providers/soft/link/shm/shm.h"
#include "device.h"
#include "direct.h"
#include "mr.h"
#include "qp.h"
#include "rc_internal.h"
#include "refuse.h"
#include "rq.h"

#define ACCESS_ERROR IBV_EVENT_QP_ACCESS_ERR
#define REQUEST_ERROR IBV_EVENT_QP_REQ_ERR

static void answer(struct sim_qp *qp, uint32_t psn, enum rc_op op, uint32_t offset)
{
	struct rc_header h = { .psn = psn & NIC_PSN_MASK, .op = (uint8_t)op, .offset = offset };

	rc_ack_now(qp);
	rc_send(qp, &h, NULL, 0, 0);
}

/* A message is done.  Its sender may do the next one like that itself. */
static void acknowledge(struct sim_qp *qp, const struct rc_header *request)
{
	rc_ack(qp, request->psn, request->op == RC_WRITE ? nic_direct_offer(qp) : 0);
}

static void nak(struct sim_qp *qp, enum rc_syndrome syndrome)
{
	struct rc_header h = {
		.psn = qp->rq_psn,
		.op = RC_NAK,
		.syndrome = (uint8_t)syndrome,
		.rnr_timer = qp->attr.min_rnr_timer,
	};

	rc_ack_now(qp);
	rc_send(qp, &h, NULL, 0, 0);
}

/* The peer is not allowed to do this: a NAK, an event for the program, the end. */
static void refuse(struct sim_qp *qp, enum rc_syndrome syndrome, enum ibv_event_type event,
		   const char *what)
{
	nic_set_reason("%s", what);
	nic_log_failure(qp, "a request of QP 0x%06x is refused", qp->attr.dest_qp_num);
	nak(qp, syndrome);
	nic_qp_fatal(qp, event);
}

/* The receive request that was to take the message cannot. */
static void fail_receive(struct sim_qp *qp, enum ibv_wc_status status, enum rc_syndrome syndrome,
			 const char *what)
{
	struct ibv_wc wc = { .status = status, .opcode = IBV_WC_RECV };

	if (what)
		nic_set_reason("the message of QP 0x%06x: %s", qp->attr.dest_qp_num, what);
	nak(qp, syndrome);
	nic_rq_complete(qp, &wc, true);
	nic_qp_error(qp, false);
}

static void no_receive(struct sim_qp *qp)
{
	if (nic_qp_is_iwarp(qp)) {
		refuse(qp, RC_NAK_REMOTE_OPERATION, IBV_EVENT_QP_FATAL, "no receive is posted");
		return;
	}
	qp->nak_sent = true;
	sim_count(qp->port, SIM_RNR_SENT, 1);
	nak(qp, RC_NAK_RNR);
}

static void refuse_access(struct sim_qp *qp, const struct rc_header *h, uint32_t length,
			  const char *why)
{
	char text[160];

	(void)snprintf(text, sizeof(text), "rkey 0x%x does not allow 0x%llx + %u: %s", h->rkey,
		       (unsigned long long)h->remote_addr, length, why);
	refuse(qp, RC_NAK_REMOTE_ACCESS, ACCESS_ERROR, text);
}

/* The memory that a request names; NULL: the request was refused. */
static void *resolve(struct sim_qp *qp, const struct rc_header *h, uint32_t length,
		     unsigned int access)
{
	const char *why;
	void *memory = rc_memory(qp, h, length, access, &why);

	if (!memory)
		refuse_access(qp, h, length, why);
	return memory;
}

/* --- Send and RDMA Write. --- */

/* rc_target() has failed. */
static void refuse_target(struct sim_qp *qp, const struct rc_header *h, int err, const char *why)
{
	if (err == -ENOBUFS)
		no_receive(qp);
	else if (err == -EMSGSIZE)
		fail_receive(qp, IBV_WC_LOC_LEN_ERR, RC_NAK_INVALID_REQUEST,
			     "it is longer than the receive");
	else if (err == -EACCES)
		fail_receive(qp, IBV_WC_LOC_PROT_ERR, RC_NAK_REMOTE_OPERATION, NULL);
	else
		refuse_access(qp, h, h->length, why);
}

static void message_complete(struct sim_qp *qp, const struct rc_header *h)
{
	bool invalidates = h->op == RC_SEND && h->flags & RC_F_INVALIDATE;

	if (invalidates && !nic_mw_invalidate(qp, h->rkey)) {
		fail_receive(qp, IBV_WC_REM_INV_REQ_ERR, RC_NAK_REMOTE_OPERATION,
			     "its key cannot be invalidated");
		return;
	}
	rc_message_done(qp, h, invalidates);
	acknowledge(qp, h);
}

/* n bytes of its data are not part of a message. */
static bool is_malformed(const struct rc_header *h, uint32_t n)
{
	return h->length > NIC_MAX_MESSAGE || h->offset > h->length || n > h->length - h->offset ||
	       (!n && h->length);
}

unsigned int rc_place_request(struct sim_qp *qp, const struct rc_packet *p,
			      struct iovec to[static NIC_MAX_SGE])
{
	struct rc_target target;

	if ((p->h.op != RC_SEND && p->h.op != RC_WRITE) || p->h.psn != qp->rq_psn ||
	    p->h.offset != qp->rx_off || is_malformed(&p->h, p->len) ||
	    rc_target(qp, &p->h, p->len, &target))
		return 0;
	memcpy(to, target.iov, target.parts * sizeof(*to));
	return target.parts;
}

static void receive_data(struct sim_qp *qp, const struct rc_packet *p)
{
	const struct rc_header *h = &p->h;
	bool ref = h->flags & (RC_F_LOCAL | RC_F_REF) || rc_is_placed(h);
	uint32_t n = ref ? h->length : p->len;
	struct rc_target to;
	int r;

	if (is_malformed(h, n)) {
		refuse(qp, RC_NAK_INVALID_REQUEST, REQUEST_ERROR, "malformed message");
		return;
	}
	if (h->offset > qp->rx_off) {
		qp->nak_sent = true;
		nak(qp, RC_NAK_SEQUENCE);
		return;
	}
	if (h->offset < qp->rx_off) {
		answer(qp, h->psn, RC_PROGRESS, qp->rx_off);
		return;
	}
	r = rc_target(qp, h, n, &to);
	if (r < 0) {
		refuse_target(qp, h, r, to.why);
		return;
	}
	r = rc_fetch(qp, p, to.iov, to.parts, n);
	if (r < 0) {
		if (r != -EAGAIN) {
			qp->nak_sent = true;
			nak(qp, RC_NAK_NO_REF);
		}
		return;
	}
	qp->rx_off += n;
	if (qp->rx_off == h->length)
		message_complete(qp, h);
	else if (qp->rx_off / RC_PROGRESS_EVERY != (qp->rx_off - n) / RC_PROGRESS_EVERY)
		answer(qp, h->psn, RC_PROGRESS, qp->rx_off);
}

/* --- RDMA Read. --- */

static void read_by_reference(struct sim_qp *qp, struct rc_header *h, char *memory, uint32_t left)
{
	struct rc_part part = { .addr = (uintptr_t)memory, .len = left };
	struct iovec payload = { .iov_base = &part, .iov_len = sizeof(part) };

	h->flags = RC_F_REF;
	h->parts = 1;
	rc_send(qp, h, &payload, 1, sizeof(part));
}

/* A chunk; half-way through it the requester asks for the next one, so that none has to wait. */
static void read_by_value(struct sim_qp *qp, struct rc_header *h, char *memory, uint32_t left)
{
	uint32_t chunk = left < RC_READ_CHUNK ? left : RC_READ_CHUNK, half = chunk / 2;
	uint32_t fragment = rc_fragment(qp);

	h->compare_add = h->offset + chunk;
	do {
		uint32_t n = chunk < fragment ? chunk : fragment;
		struct iovec payload = { .iov_base = memory, .iov_len = n };

		h->flags = chunk > half && chunk - n <= half ? RC_F_ASK_ON : 0;
		chunk -= n;
		rc_send(qp, h, &payload, n ? 1 : 0, n);
		h->offset += n;
		if (n)	/* else memory may be NULL */
			memory += n;
	} while (chunk);
}

/* Answer a read, or go on answering it; false: it was refused. */
static bool execute_read(struct sim_qp *qp, const struct rc_header *request)
{
	unsigned int slot = rc_peer_slot(qp);
	bool by_value = request->length <= RC_INLINE_MAX || request->flags & RC_F_NO_REF ||
			qp->type == IBV_QPT_XRC_RECV;	/* the PD is this request's only */
	struct rc_header h = {
		.psn = request->psn,
		.op = RC_READ_DATA,
		.length = request->length,
		.offset = request->offset,
		.rkey = nic_direct_offer(qp),
	};
	uint32_t left = request->length - request->offset;
	char *memory = NULL;

	if (request->length > NIC_MAX_MESSAGE || request->offset > request->length) {
		refuse(qp, RC_NAK_INVALID_REQUEST, REQUEST_ERROR, "malformed read");
		return false;
	}
	if (request->length) {
		memory = resolve(qp, request, request->length, IBV_ACCESS_REMOTE_READ);
		if (!memory)
			return false;
		memory += request->offset;
	}
	rc_ack_now(qp);
	if (!by_value && slot == sim_self_slot()) {
		h.flags = RC_F_LOCAL;
		rc_send(qp, &h, NULL, 0, 0);
	} else if (!by_value && sim_link_pullable(slot)) {
		read_by_reference(qp, &h, memory, left);
	} else {
		read_by_value(qp, &h, memory, left);
	}
	return true;
}

/* --- Atomics. --- */

static void send_atomic(struct sim_qp *qp, uint32_t psn, uint64_t value)
{
	struct rc_header h = {
		.psn = psn,
		.op = RC_ATOMIC_DATA,
		.compare_add = value,
		.rkey = nic_direct_offer(qp),
	};

	rc_ack_now(qp);
	rc_send(qp, &h, NULL, 0, 0);
}

static bool execute_atomic(struct sim_qp *qp, const struct rc_header *h)
{
	struct nic_atomic *saved;
	uint64_t *memory, old;

	memory = resolve(qp, h, sizeof(*memory), IBV_ACCESS_REMOTE_ATOMIC);
	if (!memory)
		return false;
	if (h->remote_addr & 7 || (uintptr_t)memory & 7) {
		refuse(qp, RC_NAK_INVALID_REQUEST, REQUEST_ERROR, "misaligned atomic");
		return false;
	}
	if (h->op == RC_FETCH_ADD) {
		old = __atomic_fetch_add(memory, h->compare_add, __ATOMIC_SEQ_CST);
	} else {
		old = h->compare_add;
		__atomic_compare_exchange_n(memory, &old, h->swap, false, __ATOMIC_SEQ_CST,
					    __ATOMIC_SEQ_CST);
	}
	saved = &qp->atomics[qp->next_atomic];
	qp->next_atomic = (uint8_t)((qp->next_atomic + 1) % qp->num_atomics);
	*saved = (struct nic_atomic) { .psn = h->psn, .valid = true, .value = old };
	send_atomic(qp, h->psn, old);
	return true;
}

/* Reads and atomics take resources of the responder; the requester must know how many it has. */
static void receive_read(struct sim_qp *qp, const struct rc_header *h)
{
	bool atomic = h->op != RC_READ;
	bool done;

	if (atomic && !(qp->port->device->services & POLYCM_SVC_ATOMIC)) {
		refuse(qp, RC_NAK_INVALID_REQUEST, REQUEST_ERROR, "the device has no atomics");
		return;
	}
	if (!h->rd_depth || h->rd_depth > qp->attr.max_dest_rd_atomic) {
		refuse(qp, RC_NAK_INVALID_REQUEST, REQUEST_ERROR,
		       "more reads and atomics at a time than max_dest_rd_atomic");
		return;
	}
	done = atomic ? execute_atomic(qp, h) : execute_read(qp, h);
	if (done)
		qp->rq_psn = (qp->rq_psn + 1) & NIC_PSN_MASK;
}

/* --- Flush and atomic write: IBTA vol. 1, annex A19. --- */

/* What came before is in memory already.  true: it was done. */
static bool execute_flush(struct sim_qp *qp, struct rc_header h)
{
	uint64_t level = h.swap >> RC_FLUSH_LEVEL, placement = h.swap & ((1u << RC_FLUSH_LEVEL) - 1);
	uint32_t length = (uint32_t)h.compare_add;
	const struct sim_mr *mr = nic_mr_by_key(h.rkey);	/* windows have no such right */
	unsigned int access = 0;

	if (!placement || placement & ~(uint64_t)(SIM_FLUSH_GLOBAL | SIM_FLUSH_PERSISTENT) ||
	    level > SIM_FLUSH_MR) {
		refuse(qp, RC_NAK_INVALID_REQUEST, REQUEST_ERROR, "malformed flush");
		return false;
	}
	if (placement & SIM_FLUSH_GLOBAL)
		access |= SIM_ACCESS_FLUSH_GLOBAL;
	if (placement & SIM_FLUSH_PERSISTENT)
		access |= SIM_ACCESS_FLUSH_PERSISTENT;
	if (level == SIM_FLUSH_MR && mr) {	/* all of it, whatever the range */
		h.remote_addr = mr->iova + mr->pub.length;
		length = 0;
	}
	return resolve(qp, &h, length, access);
}

static bool execute_atomic_write(struct sim_qp *qp, const struct rc_header *h)
{
	uint64_t *memory = resolve(qp, h, sizeof(*memory), IBV_ACCESS_REMOTE_WRITE);

	if (!memory)
		return false;
	if (h->remote_addr & 7 || (uintptr_t)memory & 7) {
		refuse(qp, RC_NAK_INVALID_REQUEST, REQUEST_ERROR, "misaligned atomic write");
		return false;
	}
	__atomic_store_n(memory, h->compare_add, __ATOMIC_SEQ_CST);
	return true;
}

static void receive_placement(struct sim_qp *qp, const struct rc_header *h)
{
	if (!qp->attr.max_dest_rd_atomic || !(qp->port->device->services & NIC_SVC_PLACEMENT)) {
		refuse(qp, RC_NAK_INVALID_REQUEST, REQUEST_ERROR,
		       "a flush or an atomic write, and max_dest_rd_atomic is 0");
		return;
	}
	if (!(h->op == RC_FLUSH ? execute_flush(qp, *h) : execute_atomic_write(qp, h)))
		return;
	rc_message_done(qp, h, false);
	answer(qp, h->psn, RC_ACK, 0);
}

/* --- Sequence. --- */

static void repeat_atomic(struct sim_qp *qp, const struct rc_header *h)
{
	for (unsigned int i = 0; i < qp->num_atomics; i++) {
		if (qp->atomics[i].valid && qp->atomics[i].psn == h->psn) {
			send_atomic(qp, h->psn, qp->atomics[i].value);
			return;
		}
	}
}

/* We have had that message: its answer may be lost, or more of a read is wanted. */
static void receive_duplicate(struct sim_qp *qp, const struct rc_header *h)
{
	struct ibv_pd *pd = qp->pd;
	const struct sim_srq *srq;

	switch (h->op) {
	case RC_READ:
		if (qp->type == IBV_QPT_XRC_RECV) {
			srq = nic_xrc_find(qp, h->xrc_srqn & ~RC_XRC);
			if (!srq)
				return;
			qp->pd = nic_protection(srq->pub.pd);
		}
		execute_read(qp, h);
		qp->pd = pd;
		break;
	case RC_CMP_SWAP:
	case RC_FETCH_ADD:
		repeat_atomic(qp, h);
		break;
	default:
		answer(qp, qp->rq_psn - 1, RC_ACK, 0);
		break;
	}
}

void rc_handle_request(struct sim_qp *qp, const struct rc_packet *p)
{
	int32_t ahead = rc_ahead(p->h.psn, qp->rq_psn);

	if (ahead < 0) {
		sim_count(qp->port, SIM_DUPLICATE_REQUESTS, 1);
		receive_duplicate(qp, &p->h);
		return;
	}
	if (ahead > 0) {
		sim_count(qp->port, SIM_OUT_OF_SEQUENCE, 1);
		/* Said once; what follows is repeated anyway. */
		if (!qp->nak_sent) {
			qp->nak_sent = true;
			nak(qp, RC_NAK_SEQUENCE);
		}
		return;
	}
	qp->nak_sent = false;
	if (p->h.xrc_srqn && !nic_xrc_select(qp, p->h.xrc_srqn & ~RC_XRC)) {
		refuse(qp, RC_NAK_INVALID_REQUEST, REQUEST_ERROR,
		       "the QP's XRC domain has no SRQ of the number that it names");
		return;
	}
	if (p->h.op == RC_SEND || p->h.op == RC_WRITE)
		receive_data(qp, p);
	else if (p->h.op == RC_FLUSH || p->h.op == RC_ATOMIC_WRITE)
		receive_placement(qp, &p->h);
	else
		receive_read(qp, &p->h);
}
