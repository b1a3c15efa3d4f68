/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * wire/mad.c - the encoder and the decoder, made from the rows of mad_rows.h, what
 * traces show of a message, and the CMA header.
 */
#include "config.h"

#include <assert.h>
#include <endian.h>
#include <errno.h>
#include <string.h>

#include "mad.h"
#include "mad_rows.h"

#define MAD_BASE_VERSION 1u
#define MAD_CLASS_CM 0x07u
#define MAD_CLASS_VERSION 2u
#define MAD_METHOD_SEND 0x03u

/* Offsets in the MAD header. */
#define MAD_OFF_TID 8u
#define MAD_OFF_ATTR_ID 16u
#define MAD_OFF_ATTR_MOD 20u

#define CMA_VERSION 0u
#define CMA_OFF_PORT 2u
#define CMA_OFF_SRC 4u
#define CMA_OFF_DST 20u
#define CMA_OFF_IPV4 12u	/* an IPv4 address is the last 4 of the 16 bytes */

static inline uint32_t get_be32(const uint8_t *wire)
{
	uint32_t value;

	memcpy(&value, wire, sizeof(value));
	return be32toh(value);
}

static inline uint64_t get_be64(const uint8_t *wire)
{
	uint64_t value;

	memcpy(&value, wire, sizeof(value));
	return be64toh(value);
}

static inline void put_be32(uint8_t *wire, uint32_t value)
{
	value = htobe32(value);
	memcpy(wire, &value, sizeof(value));
}

static inline void put_be64(uint8_t *wire, uint64_t value)
{
	value = htobe64(value);
	memcpy(wire, &value, sizeof(value));
}

/* --- Rows of the lists, for values that are in a struct `m' and in `data'. --- */

#define INLINE static inline __attribute__((always_inline))

/* Fields that share a word are ORed together. */
INLINE void put_bits(uint8_t *data, unsigned int byte, unsigned int bit, unsigned int bits,
		     uint32_t value)
{
	uint8_t *word = data + byte / 4u * 4u;
	unsigned int lsb = 32u - (byte % 4u * 8u + bit) - bits;
	uint32_t mask = (uint32_t)((UINT64_C(1) << bits) - 1u);

	put_be32(word, get_be32(word) | (value & mask) << lsb);
}

INLINE uint32_t get_bits(const uint8_t *data, unsigned int byte, unsigned int bit,
			 unsigned int bits)
{
	unsigned int lsb = 32u - (byte % 4u * 8u + bit) - bits;

	return get_be32(data + byte / 4u * 4u) >> lsb & (uint32_t)((UINT64_C(1) << bits) - 1u);
}

#define PUT_INT(field, byte, bit, bits, low)							\
	put_bits(data, byte, bit, bits, (uint32_t)m->field >> (low));
#define PUT_U64(field, byte) put_be64(data + (byte), m->field);
#define PUT_BYTES(field, byte) memcpy(data + (byte), &m->field, sizeof(m->field));

/* Pieces of a member are ORed together. */
#define GET_INT(field, byte, bit, bits, low)							\
	m->field = (__typeof__(m->field))(m->field | get_bits(data, byte, bit, bits) << (low));
#define GET_U64(field, byte) m->field = get_be64(data + (byte));
#define GET_BYTES(field, byte) memcpy(&m->field, data + (byte), sizeof(m->field));

/*
 * Straight-line code for each message: every connection passes here several
 * times.  What has no row in the data is 0; ret is all zero beforehand.
 */
#define CODER(attr, body, rows)									\
	static void put_##body(const struct cm_##body *restrict m, uint8_t *restrict data)	\
	{											\
		memset(data, 0, CM_MAD_DATA_SIZE);						\
		rows(PUT)									\
	}											\
	static void get_##body(const uint8_t *restrict data, struct cm_##body *restrict m)	\
	{											\
		rows(GET)									\
	}
CM_MESSAGES(CODER)

#define PUT_CASE(attr, body, rows)								\
	case CM_##attr:										\
		put_##body(&msg->body, mad + CM_MAD_HEADER_SIZE);				\
		break;
#define GET_CASE(attr, body, rows)								\
	case CM_##attr:										\
		get_##body(mad + CM_MAD_HEADER_SIZE, &ret_msg->body);				\
		break;

void cm_encode(const struct cm_msg *msg, uint8_t mad[CM_MAD_SIZE])
{
	memset(mad, 0, CM_MAD_HEADER_SIZE);
	mad[0] = MAD_BASE_VERSION;
	mad[1] = MAD_CLASS_CM;
	mad[2] = MAD_CLASS_VERSION;
	mad[3] = MAD_METHOD_SEND;
	put_be64(mad + MAD_OFF_TID, msg->tid);
	put_be32(mad + MAD_OFF_ATTR_ID, (uint32_t)msg->attr_id << 16);
	put_be32(mad + MAD_OFF_ATTR_MOD, msg->attr_mod);
	switch (msg->attr_id) {
	CM_MESSAGES(PUT_CASE)
	default:
		assert(false);		/* it is no message of the CM */
		memset(mad + CM_MAD_HEADER_SIZE, 0, CM_MAD_DATA_SIZE);
		break;
	}
}

/* A wrong length must not lead beyond the array. */
static void clamp_info_length(struct cm_msg *msg)
{
	uint8_t *length;

	switch (msg->attr_id) {
	case CM_REJ:
		length = &msg->rej.info_length;
		break;
	case CM_SIDR_REP:
		length = &msg->sidr_rep.info_length;
		break;
	case CM_APR:
		length = &msg->apr.info_length;
		break;
	default:
		return;
	}
	static_assert(CM_REJ_ARI_SIZE == CM_APR_INFO_SIZE, "one limit");
	static_assert(CM_REJ_ARI_SIZE == CM_SIDR_REP_INFO_SIZE, "one limit");
	if (*length > CM_REJ_ARI_SIZE)
		*length = CM_REJ_ARI_SIZE;
}

int cm_decode(const uint8_t *mad, size_t len, struct cm_msg *ret_msg)
{
	uint16_t attr_id;

	if (len != CM_MAD_SIZE)
		return -EBADMSG;
	if (mad[0] != MAD_BASE_VERSION || mad[1] != MAD_CLASS_CM ||
	    mad[2] != MAD_CLASS_VERSION || mad[3] != MAD_METHOD_SEND)
		return -EBADMSG;
	attr_id = (uint16_t)(get_be32(mad + MAD_OFF_ATTR_ID) >> 16);
	if (attr_id < CM_REQ || attr_id > CM_APR)
		return -EBADMSG;

	memset(ret_msg, 0, sizeof(*ret_msg));
	ret_msg->attr_id = attr_id;
	ret_msg->attr_mod = get_be32(mad + MAD_OFF_ATTR_MOD);
	ret_msg->tid = get_be64(mad + MAD_OFF_TID);
	switch (attr_id) {
	CM_MESSAGES(GET_CASE)
	}
	clamp_info_length(ret_msg);
	return 0;
}

#define NAME(attr, body, rows) [CM_##attr - CM_REQ] = #attr,

const char *cm_msg_name(uint16_t attr_id)
{
	static const char *const names[] = { CM_MESSAGES(NAME) };

	return attr_id < CM_REQ || attr_id > CM_APR ? "?" : names[attr_id - CM_REQ];
}

void cm_msg_ids(const struct cm_msg *msg, uint32_t *ret_local, uint32_t *ret_remote)
{
	*ret_local = *ret_remote = 0;
	if (msg->attr_id == CM_REQ) {
		*ret_local = msg->req.local_comm_id;
	} else if (msg->attr_id == CM_SIDR_REQ) {
		*ret_local = msg->sidr_req.request_id;
	} else if (msg->attr_id == CM_SIDR_REP) {
		*ret_remote = msg->sidr_rep.request_id;
	} else {
		/* The same place in all others. */
		*ret_local = msg->rtu.local_comm_id;
		*ret_remote = msg->rtu.remote_comm_id;
	}
}

static unsigned int cma_ip(uint8_t ip_version)
{
	return ip_version == 4 ? CMA_OFF_IPV4 : 0;
}

void cma_hdr_encode(const struct cma_hdr_info *info, uint8_t hdr[CMA_HDR_SIZE])
{
	uint8_t version = info->ip_version, *ip = hdr + cma_ip(version);

	memset(hdr, 0, CMA_HDR_SIZE);
	hdr[0] = CMA_VERSION;
	hdr[1] = (uint8_t)(version << 4);
	sim_addr_put_ip(&info->src, version, hdr + CMA_OFF_PORT, ip + CMA_OFF_SRC);
	sim_addr_put_ip(&info->dst, version, NULL, ip + CMA_OFF_DST);
}

int cma_hdr_decode(const uint8_t *hdr, size_t len, struct cma_hdr_info *ret_info)
{
	const uint8_t *ip;
	uint8_t version;

	if (len < CMA_HDR_SIZE || hdr[0] != CMA_VERSION)
		return -EBADMSG;
	version = hdr[1] >> 4;
	if (version != 4 && version != 6)
		return -EBADMSG;
	ip = hdr + cma_ip(version);
	memset(ret_info, 0, sizeof(*ret_info));
	ret_info->ip_version = version;
	ret_info->src = sim_addr_get_ip(version, hdr + CMA_OFF_PORT, ip + CMA_OFF_SRC);
	ret_info->dst = sim_addr_get_ip(version, NULL, ip + CMA_OFF_DST);
	return 0;
}
