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

static void put_address(uint8_t *port, uint8_t *ip, const union sim_sockaddr *addr)
{
	uint16_t number = htons(sim_addr_port(&addr->sa));

	memcpy(port, &number, sizeof(number));
	if (addr->sa.sa_family == AF_INET)
		memcpy(ip, &addr->in.sin_addr, 4);
	else
		memcpy(ip, &addr->in6.sin6_addr, 16);
}

static void get_address(const uint8_t *port, const uint8_t *ip, uint8_t version,
			union sim_sockaddr *ret_addr)
{
	memset(ret_addr, 0, sizeof(*ret_addr));
	if (version == 4) {
		ret_addr->in.sin_family = AF_INET;
		memcpy(&ret_addr->in.sin_port, port, 2);
		memcpy(&ret_addr->in.sin_addr, ip, 4);
	} else {
		ret_addr->in6.sin6_family = AF_INET6;
		memcpy(&ret_addr->in6.sin6_port, port, 2);
		memcpy(&ret_addr->in6.sin6_addr, ip, 16);
	}
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
		get_address(data + 16, data + 20, version, &ret_segment->src);
		get_address(data + 18, data + 36, version, &ret_segment->dst);
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
	put_address(header + 16, header + 20, &segment->src);
	put_address(header + 18, header + 36, &segment->dst);
	return SEG_SYN_LEN;
}
