/* SPDX-License-Identifier: BSD-2-Clause */
/* nic/rc_internal.h - between the files of connected QPs: rc*.c, uc.c.  Engine lock held. */
#ifndef SIM_NIC_RC_INTERNAL_H
#define SIM_NIC_RC_INTERNAL_H

#include "providers/soft/link/link.h"
#include "providers/soft/wire/rc.h"
#include "rq.h"

/* A packet taken apart. */
struct rc_packet {
	struct rc_header h;
	const struct sim_packet *packet;
	const uint8_t *data;		/* NULL: the payload is where rc_place() said */
	uint32_t len;
	uint32_t acked;			/* by a request: struct rc_short */
};

static inline int32_t rc_ahead(uint32_t psn, uint32_t of)
{
	return (int32_t)((psn - of) << 8) >> 8;
}

/* Does the message take a receive request? */
static inline bool rc_receives(const struct rc_header *h)
{
	return h->op == RC_SEND || (h->op == RC_WRITE && h->flags & RC_F_IMM);
}

/* All of a message is here: the next one is due, and a receive that it took is complete. */
static inline void rc_message_done(struct sim_qp *qp, const struct rc_header *h, bool invalidates)
{
	struct ibv_wc wc = {
		.opcode = h->op == RC_SEND ? IBV_WC_RECV : IBV_WC_RECV_RDMA_WITH_IMM,
		.byte_len = h->length,
		.wc_flags = qp->attr.ah_attr.is_global ? IBV_WC_GRH : 0,
	};

	qp->rx_off = 0;
	qp->rq_psn = (qp->rq_psn + 1) & NIC_PSN_MASK;
	if (!rc_receives(h))
		return;
	if (invalidates) {
		wc.wc_flags |= IBV_WC_WITH_INV;
		wc.invalidated_rkey = h->rkey;
	}
	if (h->flags & RC_F_IMM) {
		wc.wc_flags |= IBV_WC_WITH_IMM;
		wc.imm_data = h->imm;
	}
	nic_rq_complete(qp, &wc, h->flags & RC_F_SOLICITED);
}

/* Its data came another way. */
static inline bool rc_is_placed(const struct rc_header *h)
{
	return h->placed && h->op == RC_WRITE && h->flags & RC_F_IMM;
}

/* A QP that is not ready to receive does not answer. */
static inline bool rc_receives_now(const struct sim_qp *qp)
{
	return qp->state >= IBV_QPS_RTR && qp->state != IBV_QPS_ERR &&
	       (!nic_qp_is_iwarp(qp) || qp->state == IBV_QPS_RTS);
}

/* What the packets of a request begin with. */
struct rc_header rc_request_header(const struct sim_qp *qp, uint32_t index);
/* Fills in the numbers.  Lost, as on a wire, if no QP is at its other end. */
void rc_send(struct sim_qp *qp, struct rc_header *header, const struct iovec *payload,
	     unsigned int parts, size_t len);
/* The process that the connection leads to, or SIM_NOBODY. */
unsigned int rc_peer_slot(struct sim_qp *qp);
/*
 * Bring a packet's data, n bytes, to local memory: 0; -EAGAIN: drop the packet,
 * its sender has no such request any more; else the sender's memory cannot be
 * read from here.
 */
int rc_fetch(struct sim_qp *qp, const struct rc_packet *p, const struct iovec *to,
	     unsigned int to_parts, uint32_t n);

/* The memory that a request names; NULL: it may not use it, and *ret_why says why. */
void *rc_memory(const struct sim_qp *qp, const struct rc_header *h, uint32_t length,
		unsigned int access, const char **ret_why);
/* Where a message goes to. */
struct rc_target {
	struct iovec iov[NIC_MAX_SGE];
	unsigned int parts;
	const char *why;		/* -EPERM: the reason */
};
/*
 * For n bytes of a Send or an RDMA Write.  0; -ENOBUFS: no receive is posted that
 * it may take; -EMSGSIZE: the message is longer than the receive; -EACCES: the
 * receive's scatter list is wrong; -EPERM: the write is not allowed.
 */
int rc_target(struct sim_qp *qp, const struct rc_header *h, uint32_t n,
	      struct rc_target *ret_target);

/* The longest payload of a packet to the peer. */
uint32_t rc_fragment(struct sim_qp *qp);
/* Where the payload of a packet goes that is next in its message (sim_packet_placer_t). */
unsigned int rc_place(const struct sim_packet *packet, struct iovec to[static SIM_PLACE_PARTS]);

/* The handlers of SIM_PACKET_RC and SIM_PACKET_UD; a NAK for the former that a fault rule asks for. */
void rc_receive(const struct sim_packet *packet);
void ud_receive(const struct sim_packet *packet);
void rc_reject_by_rule(const struct sim_packet *packet, uint16_t reason);
void rc_handle_request(struct sim_qp *qp, const struct rc_packet *p);
void rc_handle_response(struct sim_qp *qp, const struct rc_packet *p);
unsigned int rc_place_request(struct sim_qp *qp, const struct rc_packet *p,
			      struct iovec to[static NIC_MAX_SGE]);
unsigned int rc_place_response(struct sim_qp *qp, const struct rc_packet *p,
			       struct iovec to[static NIC_MAX_SGE]);
/* UC: all of a request, and what comes in. */
enum ibv_wc_status uc_send(struct sim_qp *qp, struct nic_swqe *wqe);
void uc_handle_request(struct sim_qp *qp, const struct rc_packet *p);
/* The oldest request, or the stream, failed. */
void rc_fail(struct sim_qp *qp, enum ibv_wc_status status, const char *why);
/*
 * iWARP, the stream ends: complete the requests that TCP has taken, up to the first
 * that waits for an answer.
 */
void rc_stream_took(struct sim_qp *qp);
/* Something is open: see that it does not stay so for ever. */
void rc_arm(struct sim_qp *qp);
/* --- rc_ack.c --- */

/* A message is done; rkey: what its answer offers (nic_direct_offer()), or 0. */
void rc_ack(struct sim_qp *qp, uint32_t psn, uint32_t rkey);
/* Before anything else is said of later messages: what is owed of those before. */
void rc_ack_now(struct sim_qp *qp);
/* The same, and the QP is as new: it is reset or destroyed. */
void rc_ack_end(struct sim_qp *qp);
/* What came together is read; send what is owed for it, or let it wait for the program's answer. */
void rc_ack_read(void);
/* Nothing waits any longer. */
void rc_ack_all(void);
/* The program sends something: what is owed can go with it (struct rc_short), or 0.  It was sent. */
uint32_t rc_ack_with(struct sim_qp *qp);
void rc_ack_sent(struct sim_qp *qp);

/* Ask for a read's data from an offset on. */
void rc_send_read(struct sim_qp *qp, uint32_t index, uint32_t offset);
/* Request `psn' of this QP, if it was sent and is not complete; else NULL. */
struct nic_swqe *rc_open_request(struct sim_qp *qp, uint32_t psn, uint32_t *ret_index);

#endif
