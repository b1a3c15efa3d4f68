/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * wire/rc.h - the protocol of connected QPs.
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

#include <stdint.h>

#include "packet.h"

enum rc_op {
	/* Requests. */
	RC_SEND,
	RC_WRITE,
	RC_READ,
	RC_CMP_SWAP,
	RC_FETCH_ADD,
	RC_FLUSH,	/* compare_add is the length, swap placement | level << RC_FLUSH_LEVEL */
	RC_ATOMIC_WRITE,	/* compare_add has the 8 bytes */
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
	RC_F_ASK_ON = 1 << 5,	/* READ_DATA: ask for what is behind the offset compare_add */
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
	uint32_t rkey;		/* answers: the responder's entry for direct access, or 0 */
	uint64_t remote_addr;
	uint64_t compare_add, swap;
	uint16_t parts;
	uint8_t rd_depth;	/* READ, atomics: how many are outstanding, this one included */
	uint8_t placed;		/* a write: all of its data is in the responder's memory already */
	uint32_t xrc_srqn;	/* requests of XRC: RC_XRC and the SRQ's number; others: 0 */
};

#define RC_XRC 0x80000000u
#define RC_FLUSH_LEVEL 8u

struct rc_part {
	uint64_t addr, len;
};

#define RC_INLINE_MAX 8192u
#define RC_FRAGMENT (SIM_LINK_MAX_PACKET - (uint32_t)sizeof(struct rc_header))
#define RC_WINDOW (512u << 10)		/* bytes on the link per QP */
#define RC_PROGRESS_EVERY (8 * RC_FRAGMENT)
#define RC_READ_CHUNK (2 * (SIM_LINK_MAX_LONG - (uint32_t)sizeof(struct rc_header)))

#endif
