/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * wire/rc_short.h - the short form of a packet's header (rc.h): what most packets between two
 * processes of a host need of it, so that a small message is in one cache line of the ring.
 */
#ifndef SIM_NIC_RC_SHORT_H
#define SIM_NIC_RC_SHORT_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "rc.h"

/* The other fields of struct rc_header are 0. */
struct rc_short {
	uint32_t dst_qpn, src_qpn;
	uint32_t psn;
	uint8_t op;		/* RC_SHORT | enum rc_op */
	uint8_t flags;
	uint8_t syndrome;
	uint8_t rnr_timer;
	uint32_t length;
	uint32_t imm;
	uint32_t rkey;
	uint32_t acked;		/* requests: RC_ACKED | psn acknowledges all up to that one; or 0 */
};

#define RC_SHORT 0x80u
#define RC_ACKED 0x80000000u

/* false: it does not fit. */
static inline bool rc_shorten(const struct rc_header *h, struct rc_short *ret_short)
{
	if (h->offset || h->remote_addr || h->compare_add || h->swap || h->parts || h->rd_depth ||
	    h->placed || h->xrc_srqn)
		return false;
	*ret_short = (struct rc_short){
		.dst_qpn = h->dst_qpn,
		.src_qpn = h->src_qpn,
		.psn = h->psn,
		.op = h->op | RC_SHORT,
		.flags = h->flags,
		.syndrome = h->syndrome,
		.rnr_timer = h->rnr_timer,
		.length = h->length,
		.imm = h->imm,
		.rkey = h->rkey,
	};
	return true;
}

/*
 * Read a header of either form: its length in the packet, or 0: it is too short.  *ret_acked as
 * above; a response has 0.
 */
static inline size_t rc_read_header(const void *packet, size_t len, struct rc_header *ret_header,
				    uint32_t *ret_acked)
{
	struct rc_short s;

	*ret_acked = 0;
	if (len < sizeof(s))
		return 0;
	memcpy(&s, packet, sizeof(s));
	if (!(s.op & RC_SHORT)) {
		if (len < sizeof(*ret_header))
			return 0;
		memcpy(ret_header, packet, sizeof(*ret_header));
		return sizeof(*ret_header);
	}
	*ret_header = (struct rc_header){
		.dst_qpn = s.dst_qpn,
		.src_qpn = s.src_qpn,
		.psn = s.psn,
		.op = s.op & (uint8_t)~RC_SHORT,
		.flags = s.flags,
		.syndrome = s.syndrome,
		.rnr_timer = s.rnr_timer,
		.length = s.length,
		.imm = s.imm,
		.rkey = s.rkey,
	};
	if (ret_header->op < RC_ACK)
		*ret_acked = s.acked;
	return sizeof(s);
}

#endif
