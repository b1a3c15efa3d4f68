/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * wire/mad_fields.c - the names of the CM messages and of their fields, and their
 * values one by one, for traces and the like.
 */
#include "config.h"

#include <string.h>

#include "mad.h"
#include "mad_rows.h"

struct field {
	const char *name;	/* NULL: another piece of the member named before */
	uint16_t member;	/* offset in the message's struct */
	uint16_t width;		/* bits on the wire */
	uint8_t size;		/* of the member: 1, 2, 4, 8; AN_ARRAY */
	uint8_t byte, bit;	/* in the CM data */
	uint8_t shift;		/* lowest bit in the member, not 0 only in pieces */
};

#define AN_ARRAY 0u

struct layout {
	const char *name;
	const struct field *fields;
	size_t num_fields;
};

#define SIZE_OF(type, member) sizeof(((struct type *)0)->member)

#define FIELD_INT(label, type, member_name, at, first, bits, low)				\
	{											\
		.name = (label), .member = offsetof(struct type, member_name),			\
		.width = (bits), .size = SIZE_OF(type, member_name), .byte = (at),		\
		.bit = (first), .shift = (low),							\
	},
#define FIELD_U64(type, member_name, at)							\
	{											\
		.name = #member_name, .member = offsetof(struct type, member_name),		\
		.width = 64u, .size = SIZE_OF(type, member_name), .byte = (at),			\
	},
#define FIELD_BYTES(type, member_name, at)							\
	{											\
		.name = #member_name, .member = offsetof(struct type, member_name),		\
		.width = 8u * SIZE_OF(type, member_name), .size = AN_ARRAY, .byte = (at),	\
	},

#define TABLE(attr, body, rows) static const struct field body##_fields[] = { rows(FIELD) };
CM_MESSAGES(TABLE)

#define LAYOUT(attr, body, rows)								\
	[CM_##attr - CM_REQ] = {								\
		.name = #attr, .fields = body##_fields,						\
		.num_fields = sizeof(body##_fields) / sizeof(body##_fields[0]),			\
	},

static const struct layout *layout_of(uint16_t attr_id)
{
	static const struct layout layouts[] = { CM_MESSAGES(LAYOUT) };

	return attr_id < CM_REQ || attr_id > CM_APR ? NULL : &layouts[attr_id - CM_REQ];
}

const char *cm_msg_name(uint16_t attr_id)
{
	const struct layout *layout = layout_of(attr_id);

	return layout ? layout->name : "?";
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

/* A member of 1, 2, 4 or 8 bytes. */
static uint64_t load(const uint8_t *member, unsigned int size)
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

void cm_for_each_field(const struct cm_msg *msg, cm_field_visitor_t visit, void *arg)
{
	/* The structs of all messages start where the union does. */
	const uint8_t *body = (const uint8_t *)msg + offsetof(struct cm_msg, req);
	const struct layout *layout = layout_of(msg->attr_id);

	for (size_t i = 0; layout && i < layout->num_fields; i++) {
		const struct field *field = &layout->fields[i];
		struct cm_field_value value = {
			.name = field->name, .byte = field->byte, .bit = field->bit,
			.width = field->width,
		};

		if (!field->name)
			continue;
		if (field->size == AN_ARRAY) {
			value.bytes = body + field->member;
		} else {
			value.value = load(body + field->member, field->size);
			value.width += field->shift;	/* with the pieces that follow */
			if (value.width < 64)
				value.value &= (UINT64_C(1) << value.width) - 1u;
		}
		visit(&value, arg);
	}
}
