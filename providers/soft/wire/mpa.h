/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * wire/mpa.h - the two frames that begin an iWARP connection: MPA Request and
 * Reply (RFC 5044), with the IRD/ORD words of enhanced set-up (RFC 6581).
 *
 * Pure functions on the caller's memory; no locks, no allocations.
 */
#ifndef SIM_MPA_H
#define SIM_MPA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MPA_KEY_SIZE 16u
#define MPA_OFF_FLAGS 16u
#define MPA_FLAG_REJECT 0x20u
#define MPA_HEADER_SIZE 20u
#define MPA_MAX_PRIVATE 512u	/* control words included */
#define MPA_CONTROL_SIZE 4u
#define MPA_MAX_FRAME (MPA_HEADER_SIZE + MPA_MAX_PRIVATE)

#define MPA_MAX_REVISION 2u
#define MPA_REVISION_ENHANCED 2u

#define MPA_DEPTH_MASK 0x3fffu
#define MPA_DEPTH_UNKNOWN 0x3fffu	/* not negotiated */

enum mpa_type {
	MPA_REQUEST,
	MPA_REPLY,
};

struct mpa_frame {
	enum mpa_type type;
	uint8_t revision;
	bool markers;			/* M: the sender wants to receive markers */
	bool crc;			/* C: the sender wants to use CRCs */
	bool reject;			/* R: in a reply */
	bool enhanced;			/* S: with revision 2 only; the members below exist */
	uint16_t ird, ord;		/* 14 bits */
	bool peer_to_peer;		/* the initiator is to send an RTR first, ... */
	bool rtr_zero_length_send;	/* ... one of these */
	bool rtr_rdma_write;
	bool rtr_rdma_read;
	uint16_t private_data_len;	/* without the control words */
	const uint8_t *private_data;	/* decoded: into the buffer; NULL if there is none */
};

/*
 * Write a frame into buf.  -EINVAL: private data over the limit, an unknown
 * revision, or enhanced with a revision that has no such thing; -ENOBUFS: the
 * buffer is too small (MPA_MAX_FRAME always suffices).
 */
int mpa_encode(const struct mpa_frame *frame, uint8_t *buf, size_t size, size_t *ret_len);

/*
 * Read the frame at the start of a stream of which len bytes have arrived.
 * -EAGAIN: more bytes are needed; -EPROTO: this will not become a frame (key,
 * revision, private length).  Outputs are set on success only; *ret_used is
 * the length of the frame.  What markers or a missing CRC mean is up to the
 * caller, and so are unknown flags: they are ignored.
 */
int mpa_decode(const uint8_t *buf, size_t len, struct mpa_frame *ret_frame, size_t *ret_used);

#endif
