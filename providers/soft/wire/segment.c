/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * wire/segment.c - the segments of a stream as bytes.  They come from other
 * processes: every field is checked.
 */
#include "config.h"

#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

#include "segment.h"

#define QPN_MASK 0xffffffu

static void put32(uint8_t *at, uint32_t value)
{
	value = htonl(value);
	memcpy(at, &value, sizeof(value));
}

static uint32_t get32(const uint8_t *at)
{
	uint32_t value;

	memcpy(&value, at, sizeof(value));
	return ntohl(value);
}

int iw_segment_parse(const uint8_t *data, size_t len, struct segment *ret_segment)
{
	uint8_t version;

	if (len < SEG_HEADER || data[1] != SEG_VERSION || data[3] ||
	    data[0] < SEG_SYN || data[0] >= SEG_TYPES)
		return -EBADMSG;
	memset(ret_segment, 0, sizeof(*ret_segment));
	ret_segment->type = (enum segment_type)data[0];
	ret_segment->dst_id = get32(data + 4);
	ret_segment->src_id = get32(data + 8);
	ret_segment->qpn = get32(data + 12) & QPN_MASK;
	if (ret_segment->type == SEG_SYN) {
		version = data[2];
		if (len != SEG_SYN_LEN || (version != 4 && version != 6))
			return -EBADMSG;
		ret_segment->src = sim_addr_get_ip(version, data + 16, data + 20);
		ret_segment->dst = sim_addr_get_ip(version, data + 18, data + 36);
	} else if (ret_segment->type == SEG_DATA) {
		ret_segment->data = data + SEG_HEADER;
		ret_segment->len = len - SEG_HEADER;
	} else if (len != SEG_HEADER) {
		return -EBADMSG;
	}
	return 0;
}

size_t iw_segment_header(const struct segment *segment, uint8_t header[SEG_SYN_LEN])
{
	memset(header, 0, SEG_SYN_LEN);
	header[0] = (uint8_t)segment->type;
	header[1] = SEG_VERSION;
	put32(header + 4, segment->dst_id);
	put32(header + 8, segment->src_id);
	put32(header + 12, segment->qpn);
	if (segment->type != SEG_SYN)
		return SEG_HEADER;
	header[2] = segment->src.sa.sa_family == AF_INET ? 4 : 6;
	sim_addr_put_ip(&segment->src, header[2], header + 16, header + 20);
	sim_addr_put_ip(&segment->dst, header[2], header + 18, header + 36);
	return SEG_SYN_LEN;
}
