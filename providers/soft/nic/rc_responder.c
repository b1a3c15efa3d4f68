/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * nic/rc_responder.c - the responding side of a connected QP: checks of what
 * the peer asks for, its execution, and answers (IBTA vol. 1, 9.7.4, 9.9.3).
 */
#include "config.h"

#include <stdio.h>

#include "providers/soft/link/shm/shm.h"
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

	rc_send(qp, &h, NULL, 0, 0);
}

static void nak(struct sim_qp *qp, enum rc_syndrome syndrome)
{
	struct rc_header h = {
		.psn = qp->rq_psn,
		.op = RC_NAK,
		.syndrome = (uint8_t)syndrome,
		.rnr_timer = qp->min_rnr_timer,
	};

	rc_send(qp, &h, NULL, 0, 0);
}

/* The peer is not allowed to do this: a NAK, an event for the program, the end. */
static void refuse(struct sim_qp *qp, enum rc_syndrome syndrome, enum ibv_event_type event,
		   const char *what)
{
	nic_set_reason("%s", what);
	nic_log_failure(qp, "a request of QP 0x%06x is refused", qp->dest_qpn);
	nak(qp, syndrome);
	nic_qp_fatal(qp, event);
}

/* The receive request that was to take the message cannot. */
static void fail_receive(struct sim_qp *qp, enum ibv_wc_status status, enum rc_syndrome syndrome,
			 const char *what)
{
	struct ibv_wc wc = { .status = status, .opcode = IBV_WC_RECV };

	if (what)
		nic_set_reason("the message of QP 0x%06x: %s", qp->dest_qpn, what);
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
	if (err == -EMSGSIZE)
		fail_receive(qp, IBV_WC_LOC_LEN_ERR, RC_NAK_INVALID_REQUEST,
			     "it is longer than the receive");
	else if (err == -EACCES)
		fail_receive(qp, IBV_WC_LOC_PROT_ERR, RC_NAK_REMOTE_OPERATION, NULL);
	else
		refuse_access(qp, h, h->length, why);
}

static void message_complete(struct sim_qp *qp, const struct rc_header *h, bool receives)
{
	bool invalidates = h->op == RC_SEND && h->flags & RC_F_INVALIDATE;

	if (invalidates && !nic_mw_invalidate(qp, h->rkey)) {
		fail_receive(qp, IBV_WC_REM_INV_REQ_ERR, RC_NAK_REMOTE_OPERATION,
			     "its key cannot be invalidated");
		return;
	}
	rc_message_done(qp, h, receives, invalidates);
	answer(qp, h->psn, RC_ACK, 0);
}

static void receive_data(struct sim_qp *qp, const struct rc_packet *p)
{
	const struct rc_header *h = &p->h;
	bool receives = h->op == RC_SEND || h->flags & RC_F_IMM;
	bool ref = h->flags & (RC_F_LOCAL | RC_F_REF);
	uint32_t n = ref ? h->length : p->len;
	const struct nic_rwqe *wqe = NULL;
	struct rc_target to;
	int r;

	if (h->length > NIC_MAX_MESSAGE || h->offset > h->length || n > h->length - h->offset ||
	    (!n && h->length)) {
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
	if (receives) {
		wqe = nic_rq_hold(qp);
		if (!wqe) {
			no_receive(qp);
			return;
		}
	}
	r = rc_target(qp, h, n, wqe, &to);
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
		message_complete(qp, h, receives);
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

static void read_by_value(struct sim_qp *qp, struct rc_header *h, char *memory, uint32_t left)
{
	uint32_t chunk = left < RC_READ_CHUNK ? left : RC_READ_CHUNK;

	do {
		uint32_t n = chunk < RC_FRAGMENT ? chunk : RC_FRAGMENT;
		struct iovec payload = { .iov_base = memory, .iov_len = n };

		chunk -= n;
		h->flags = chunk ? 0 : RC_F_CHUNK_END;
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
	bool by_value = request->length <= RC_INLINE_MAX || request->flags & RC_F_NO_REF;
	struct rc_header h = {
		.psn = request->psn,
		.op = RC_READ_DATA,
		.length = request->length,
		.offset = request->offset,
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
	struct rc_header h = { .psn = psn, .op = RC_ATOMIC_DATA, .compare_add = value };

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

	if (!h->rd_depth || h->rd_depth > qp->max_dest_rd_atomic ||
	    (atomic && !(qp->port->device->rules->services & POLYCM_SVC_ATOMIC))) {
		refuse(qp, RC_NAK_INVALID_REQUEST, REQUEST_ERROR,
		       "more reads and atomics at a time than max_dest_rd_atomic");
		return;
	}
	done = atomic ? execute_atomic(qp, h) : execute_read(qp, h);
	if (done)
		qp->rq_psn = (qp->rq_psn + 1) & NIC_PSN_MASK;
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
	switch (h->op) {
	case RC_READ:
		execute_read(qp, h);
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
		receive_duplicate(qp, &p->h);
		return;
	}
	if (ahead > 0) {
		/* Said once; what follows is repeated anyway. */
		if (!qp->nak_sent) {
			qp->nak_sent = true;
			nak(qp, RC_NAK_SEQUENCE);
		}
		return;
	}
	qp->nak_sent = false;
	if (p->h.op == RC_SEND || p->h.op == RC_WRITE)
		receive_data(qp, p);
	else
		receive_read(qp, &p->h);
}
