/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * nic/rc.h - the protocol of connected QPs.
 *
 * A request message has a sequence number, one per message, in the place of
 * PSNs.  The responder takes messages in order and answers each: ACK and
 * PROGRESS are cumulative, responses of reads and atomics acknowledge what was
 * before them.  The requester goes back to the oldest open message on a time-out
 * or a NAK; repeated messages have no effect but an answer.
 *
 * Payload is in the packet if it is small.  Larger data goes by reference:
 * within the process the receiver looks up the sender's request (or region)
 * when the packet arrives, from another process it reads the memory that the
 * packet lists.  Where that is impossible, it goes in fragments.
 *
 * Between processes of one host: host byte order.  Everything is checked.
 */
#ifndef SIM_NIC_RC_H
#define SIM_NIC_RC_H

#include "providers/sim/link/link.h"
#include "nic_internal.h"

enum rc_op {
	/* Requests. */
	RC_SEND,
	RC_WRITE,
	RC_READ,
	RC_CMP_SWAP,
	RC_FETCH_ADD,
	/* Responses. */
	RC_ACK,
	RC_PROGRESS,	/* a fragmented message is here up to offset */
	RC_READ_DATA,
	RC_ATOMIC_DATA,	/* compare_add is the old value */
	RC_NAK,
	RC_OPS
};

enum rc_flags {
	RC_F_IMM = 1 << 0,
	RC_F_SOLICITED = 1 << 1,
	RC_F_LOCAL = 1 << 2,	/* by reference within the process */
	RC_F_REF = 1 << 3,	/* by reference: the payload is struct rc_part[parts] */
	RC_F_NO_REF = 1 << 4,	/* READ: do not answer by reference */
	RC_F_CHUNK_END = 1 << 5,	/* READ_DATA: ask for the next chunk */
	RC_F_UNRELIABLE = 1 << 6,	/* between UC QPs: there are no answers */
	RC_F_INVALIDATE = 1 << 7,	/* SEND: rkey is to be invalidated */
};

enum rc_syndrome {
	RC_NAK_SEQUENCE,
	RC_NAK_RNR,		/* rnr_timer */
	RC_NAK_INVALID_REQUEST,
	RC_NAK_REMOTE_ACCESS,
	RC_NAK_REMOTE_OPERATION,
	RC_NAK_NO_REF,		/* we cannot read your memory: send the data */
	RC_SYNDROMES
};

struct rc_header {
	uint32_t dst_qpn, src_qpn;
	uint32_t psn;
	uint8_t op, flags;
	uint8_t syndrome;
	uint8_t rnr_timer;
	uint32_t length;	/* of the message */
	uint32_t offset;	/* of this packet's data */
	uint32_t imm;
	uint32_t rkey;
	uint64_t remote_addr;
	uint64_t compare_add, swap;
	uint16_t parts;
	uint8_t rd_depth;	/* READ, atomics: how many are outstanding, this one included */
	uint8_t reserved[5];
};

struct rc_part {
	uint64_t addr, len;
};

#define RC_INLINE_MAX 8192u
#define RC_FRAGMENT (SIM_LINK_MAX_PACKET - (uint32_t)sizeof(struct rc_header))
#define RC_WINDOW (512u << 10)		/* bytes on the link per QP */
#define RC_PROGRESS_EVERY (8 * RC_FRAGMENT)
#define RC_READ_CHUNK (16 * RC_FRAGMENT)

/* A packet taken apart. */
struct rc_packet {
	struct rc_header h;
	const struct sim_packet *packet;
	const uint8_t *data;
	uint32_t len;
};

static inline int32_t rc_ahead(uint32_t psn, uint32_t of)
{
	return (int32_t)((psn - of) << 8) >> 8;
}

/* All of a message is here: the next one is due, and a receive that it took is complete. */
static inline void rc_message_done(struct sim_qp *qp, const struct rc_header *h, bool receives,
				   bool invalidates)
{
	struct ibv_wc wc = {
		.opcode = h->op == RC_SEND ? IBV_WC_RECV : IBV_WC_RECV_RDMA_WITH_IMM,
		.byte_len = h->length,
		.wc_flags = qp->ah.is_global ? IBV_WC_GRH : 0,
	};

	qp->rx_off = 0;
	qp->rq_psn = (qp->rq_psn + 1) & NIC_PSN_MASK;
	if (!receives)
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

/* What the packets of a request begin with. */
struct rc_header rc_request_header(const struct sim_qp *qp, uint32_t index);
/* Fills in the numbers.  Lost, as on a wire, if the connection leads to nobody. */
void rc_send(struct sim_qp *qp, struct rc_header *header, const struct iovec *payload,
	     unsigned int parts, size_t len);
/* The process that the connection leads to, or SIM_MAX_SLOTS. */
unsigned int rc_peer_slot(struct sim_qp *qp);
/*
 * Bring a packet's data, n bytes, to local memory: 0; -EAGAIN: drop the packet,
 * its sender has no such request any more; else the sender's memory cannot be
 * read from here.
 */
int rc_fetch(struct sim_qp *qp, const struct rc_packet *p, const struct iovec *to,
	     unsigned int to_parts, uint32_t n);

/* The handlers of SIM_PACKET_RC and SIM_PACKET_UD. */
void rc_receive(const struct sim_packet *packet);
void ud_receive(const struct sim_packet *packet);
void rc_handle_request(struct sim_qp *qp, const struct rc_packet *p);
void rc_handle_response(struct sim_qp *qp, const struct rc_packet *p);
/* UC: all of a request, and what comes in. */
enum ibv_wc_status uc_send(struct sim_qp *qp, struct nic_swqe *wqe);
void uc_handle_request(struct sim_qp *qp, const struct rc_packet *p);
/* The oldest request, or the stream, failed. */
void rc_fail(struct sim_qp *qp, enum ibv_wc_status status, const char *why);
/*
 * iWARP, the stream ends: what it has taken is done, whatever becomes of it, as far
 * as nothing before it waits for an answer.
 */
void rc_stream_took(struct sim_qp *qp);
/* Something is open: see that it does not stay so for ever. */
void rc_arm(struct sim_qp *qp);
/* Ask for a read's data, or for more of it. */
void rc_send_read(struct sim_qp *qp, uint32_t index);
/* Request `psn' of this QP, if it was sent and is not complete; else NULL. */
struct nic_swqe *rc_open_request(struct sim_qp *qp, uint32_t psn, uint32_t *ret_index);

#endif
