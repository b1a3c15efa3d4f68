/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cm/mad.c - the encoder, the decoder and the visitor over the layouts of
 * mad_fields.c, and the CMA header.
 *
 * Every connection passes here several times: the loops do little per row and
 * leave the decisions to the table.
 */
#include "config.h"

#include <assert.h>
#include <endian.h>
#include <errno.h>
#include <string.h>

#include "mad_fields.h"

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

/* The structs of all messages start where the union does. */
#define CM_BODY offsetof(struct cm_msg, req)

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

/* A member of 1, 2, 4 or 8 bytes. */
static inline uint64_t load(const uint8_t *member, unsigned int size)
{
	uint16_t u16;
	uint32_t u32;
	uint64_t u64;

	switch (size) {
	case 1:
		return *member;
	case 2:
		memcpy(&u16, member, sizeof(u16));
		return u16;
	case 4:
		memcpy(&u32, member, sizeof(u32));
		return u32;
	default:
		memcpy(&u64, member, sizeof(u64));
		return u64;
	}
}

/* Data is all zero beforehand: fields that share a word are ORed together. */
static void encode_fields(const struct cm_layout *layout, const uint8_t *body, uint8_t *data)
{
	for (size_t i = 0; i < layout->num_fields; i++) {
		const struct cm_field *field = &layout->fields[i];
		const uint8_t *member = body + field->member;
		uint8_t *wire = data + field->at;
		uint32_t value;

		switch (field->size) {
		case CM_FIELD_BYTES:
			memcpy(wire, member, field->width / 8u);
			break;
		case 8:
			put_be64(wire, load(member, 8));
			break;
		default:
			value = (uint32_t)load(member, field->size) >> field->shift & field->mask;
			put_be32(wire, get_be32(wire) | value << field->lsb);
			break;
		}
	}
}

/* Body is all zero beforehand: pieces of a member are ORed together. */
static void decode_fields(const struct cm_layout *layout, const uint8_t *data, uint8_t *body)
{
	for (size_t i = 0; i < layout->num_fields; i++) {
		const struct cm_field *field = &layout->fields[i];
		const uint8_t *wire = data + field->at;
		uint8_t *member = body + field->member;
		uint64_t u64;
		uint32_t u32;
		uint16_t u16;

		switch (field->size) {
		case CM_FIELD_BYTES:
			memcpy(member, wire, field->width / 8u);
			break;
		case 1:
			*member = (uint8_t)(get_be32(wire) >> field->lsb & field->mask);
			break;
		case 2:
			u16 = (uint16_t)(get_be32(wire) >> field->lsb & field->mask);
			memcpy(member, &u16, sizeof(u16));
			break;
		case 4:
			u32 = (get_be32(wire) >> field->lsb & field->mask) << field->shift;
			u32 |= (uint32_t)load(member, 4);
			memcpy(member, &u32, sizeof(u32));
			break;
		default:
			u64 = get_be64(wire);
			memcpy(member, &u64, sizeof(u64));
			break;
		}
	}
}

void cm_encode(const struct cm_msg *msg, uint8_t mad[CM_MAD_SIZE])
{
	const struct cm_layout *layout = cm_layout(msg->attr_id);

	memset(mad, 0, CM_MAD_SIZE);
	mad[0] = MAD_BASE_VERSION;
	mad[1] = MAD_CLASS_CM;
	mad[2] = MAD_CLASS_VERSION;
	mad[3] = MAD_METHOD_SEND;
	put_be64(mad + MAD_OFF_TID, msg->tid);
	put_be32(mad + MAD_OFF_ATTR_ID, (uint32_t)msg->attr_id << 16);
	put_be32(mad + MAD_OFF_ATTR_MOD, msg->attr_mod);
	assert(layout);
	if (layout)
		encode_fields(layout, (const uint8_t *)msg + CM_BODY, mad + CM_MAD_HEADER_SIZE);
}

/* A length that lies must not lead a reader of the array out of it. */
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
	const struct cm_layout *layout;
	uint16_t attr_id;

	if (len != CM_MAD_SIZE)
		return -EBADMSG;
	if (mad[0] != MAD_BASE_VERSION || mad[1] != MAD_CLASS_CM ||
	    mad[2] != MAD_CLASS_VERSION || mad[3] != MAD_METHOD_SEND)
		return -EBADMSG;
	attr_id = (uint16_t)(get_be32(mad + MAD_OFF_ATTR_ID) >> 16);
	layout = cm_layout(attr_id);
	if (!layout)
		return -EBADMSG;

	memset(ret_msg, 0, sizeof(*ret_msg));
	ret_msg->attr_id = attr_id;
	ret_msg->attr_mod = get_be32(mad + MAD_OFF_ATTR_MOD);
	ret_msg->tid = get_be64(mad + MAD_OFF_TID);
	decode_fields(layout, mad + CM_MAD_HEADER_SIZE, (uint8_t *)ret_msg + CM_BODY);
	clamp_info_length(ret_msg);
	return 0;
}

const char *cm_msg_name(uint16_t attr_id)
{
	const struct cm_layout *layout = cm_layout(attr_id);

	return layout ? layout->name : "?";
}

void cm_for_each_field(const struct cm_msg *msg, cm_field_visitor_t visit, void *arg)
{
	const struct cm_layout *layout = cm_layout(msg->attr_id);
	const uint8_t *body = (const uint8_t *)msg + CM_BODY;

	for (size_t i = 0; layout && i < layout->num_fields; i++) {
		const struct cm_field *field = &layout->fields[i];
		struct cm_field_value value = {
			.name = field->name, .byte = field->at, .width = field->width,
		};

		if (!field->name)
			continue;
		if (field->size == CM_FIELD_BYTES) {
			value.bytes = body + field->member;
		} else if (field->size == 8) {
			value.value = load(body + field->member, 8);
		} else {
			unsigned int first = 32u - field->lsb - field->width;

			value.byte += first / 8u;
			value.bit = first % 8u;
			value.width += field->shift;	/* with the pieces that follow */
			value.value = load(body + field->member, field->size) &
				      ((UINT64_C(1) << value.width) - 1u);
		}
		visit(&value, arg);
	}
}

void cma_hdr_encode(const struct cma_hdr_info *info, uint8_t hdr[CMA_HDR_SIZE])
{
	bool ipv4 = info->ip_version == 4;

	memset(hdr, 0, CMA_HDR_SIZE);
	hdr[0] = CMA_VERSION;
	hdr[1] = (uint8_t)(info->ip_version << 4);
	if (ipv4) {
		memcpy(hdr + CMA_OFF_PORT, &info->src.in.sin_port, 2);
		memcpy(hdr + CMA_OFF_SRC + CMA_OFF_IPV4, &info->src.in.sin_addr, 4);
		memcpy(hdr + CMA_OFF_DST + CMA_OFF_IPV4, &info->dst.in.sin_addr, 4);
	} else {
		memcpy(hdr + CMA_OFF_PORT, &info->src.in6.sin6_port, 2);
		memcpy(hdr + CMA_OFF_SRC, &info->src.in6.sin6_addr, 16);
		memcpy(hdr + CMA_OFF_DST, &info->dst.in6.sin6_addr, 16);
	}
}

int cma_hdr_decode(const uint8_t *hdr, size_t len, struct cma_hdr_info *ret_info)
{
	uint8_t ip_version;

	if (len < CMA_HDR_SIZE || hdr[0] != CMA_VERSION)
		return -EBADMSG;
	ip_version = hdr[1] >> 4;
	if (ip_version != 4 && ip_version != 6)
		return -EBADMSG;

	memset(ret_info, 0, sizeof(*ret_info));
	ret_info->ip_version = ip_version;
	if (ip_version == 4) {
		ret_info->src.in.sin_family = AF_INET;
		ret_info->dst.in.sin_family = AF_INET;
		memcpy(&ret_info->src.in.sin_port, hdr + CMA_OFF_PORT, 2);
		memcpy(&ret_info->src.in.sin_addr, hdr + CMA_OFF_SRC + CMA_OFF_IPV4, 4);
		memcpy(&ret_info->dst.in.sin_addr, hdr + CMA_OFF_DST + CMA_OFF_IPV4, 4);
	} else {
		ret_info->src.in6.sin6_family = AF_INET6;
		ret_info->dst.in6.sin6_family = AF_INET6;
		memcpy(&ret_info->src.in6.sin6_port, hdr + CMA_OFF_PORT, 2);
		memcpy(&ret_info->src.in6.sin6_addr, hdr + CMA_OFF_SRC, 16);
		memcpy(&ret_info->dst.in6.sin6_addr, hdr + CMA_OFF_DST, 16);
	}
	return 0;
}
