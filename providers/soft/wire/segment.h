/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * wire/segment.h - the segments of a simulated TCP stream as they lie in the
 * link's packets (SIM_PACKET_STREAM).
 *
 * Bytes: type 0, version 1, IP version 2 (SYN only), zero 3, destination id 4,
 * source id 8, QP number 12.  A SYN goes on: source port 16, destination port
 * 18, source address 20, destination address 36.  Data follows the header.
 */
#ifndef SIM_CM_SEGMENT_H
#define SIM_CM_SEGMENT_H

#include <stddef.h>

#include "address.h"

enum segment_type {
	SEG_SYN = 1,
	SEG_SYN_ACK,
	SEG_RST,
	SEG_DATA,
	SEG_FIN,
	SEG_TYPES
};

#define SEG_HEADER 16u
#define SEG_DST_ID 4u
#define SEG_SRC_ID 8u
#define SEG_SYN_LEN 52u
#define SEG_VERSION 1u

/* A segment taken apart; data points into the packet. */
struct segment {
	enum segment_type type;
	uint32_t dst_id, src_id, qpn;
	union sim_sockaddr src, dst;	/* SYN */
	const uint8_t *data;
	size_t len;
};

/* -EBADMSG: it is none. */
int iw_segment_parse(const uint8_t *data, size_t len, struct segment *ret_segment);
/* Its header as bytes; returns their number. */
size_t iw_segment_header(const struct segment *segment, uint8_t header[SEG_SYN_LEN]);

#endif
