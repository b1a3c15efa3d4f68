/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ofi/frame.c - headers of frames, the small bodies, and the order of bytes of what is in the
 * packets of the simulated wire.
 */
#include "config.h"

#include "providers/soft/shm/segment.h"
#include "providers/soft/wire/mad.h"
#include "providers/soft/wire/note.h"
#include "providers/soft/wire/rc.h"
#include "providers/soft/wire/segment.h"
#include "providers/soft/wire/ud.h"
#include "bytes.h"
#include "frame.h"
#include "hello.h"

#define QPN_MAX 0xffffffu

uint32_t ofi_frame_max(uint8_t type)
{
	static const uint32_t max[OFI_FRAME_TYPES] = {
		[OFI_HELLO] = OFI_HELLO_MAX,
		[OFI_PROOF] = SHA256_SIZE,
		[OFI_REFUSED] = OFI_REFUSED_SIZE,
		[OFI_PACKET] = OFI_PACKET_MAX,
		[OFI_RETURNED] = OFI_RETURNED_MAX,
		[OFI_FIND] = OFI_FIND_SIZE,
		[OFI_FOUND] = OFI_FOUND_SIZE,
		[OFI_PORTS] = OFI_HELLO_MAX,
		[OFI_PING] = OFI_PING_SIZE,
		[OFI_PONG] = OFI_PONG_SIZE,
		[OFI_CARRIER] = OFI_CARRIER_MAX,
	};

	return type < OFI_FRAME_TYPES ? max[type] : 0;
}

#define FRAME_FIELDS(F) F##_INT(len) F##_INT(type) F##_ZERO(3)
BYTES_FIELDS(frame, struct ofi_frame, FRAME_FIELDS)

void ofi_frame_encode(const struct ofi_frame *frame, uint8_t bytes[OFI_FRAME_HEADER])
{
	struct bytes_writer w = { bytes, OFI_FRAME_HEADER };

	put_frame(&w, frame);
}

int ofi_frame_decode(const uint8_t bytes[OFI_FRAME_HEADER], struct ofi_frame *ret_frame)
{
	struct bytes_reader r = { bytes, OFI_FRAME_HEADER, false };

	memset(ret_frame, 0, sizeof(*ret_frame));
	get_frame(&r, ret_frame);
	return bytes_complete(&r) && ret_frame->type && ret_frame->type < OFI_FRAME_TYPES &&
	       ret_frame->len <= ofi_frame_max(ret_frame->type) ? 0 : -EBADMSG;
}

static bool is_slot(uint16_t slot)
{
	return slot < SIM_MAX_SLOTS;
}

#define PACKET_FIELDS(F) F##_INT(number) F##_INT(from) F##_INT(to) F##_INT(type) F##_ZERO(3)
BYTES_HEADER(packet, struct ofi_packet, OFI_PACKET_HEADER, PACKET_FIELDS,
	     m->type < SIM_PACKET_TYPES)

#define CARRIED_FIELDS(F)									\
	F##_INT(token) F##_INT(sequence)							\
	F##_INT(packet.number) F##_INT(packet.from) F##_INT(packet.to) F##_INT(packet.type)	\
	F##_ZERO(1) F##_INT(window)
BYTES_HEADER(carried, struct ofi_carried, OFI_CARRIED_HEADER, CARRIED_FIELDS,
	     m->packet.type == SIM_PACKET_RC || m->packet.type == SIM_PACKET_UD)

uint8_t *ofi_carried_packet(uint8_t bytes[OFI_CARRIED_HEADER])
{
	memset(bytes + OFI_CARRIED_HEADER - 2, 0, 2);
	return bytes + OFI_CARRIED_HEADER - OFI_PACKET_HEADER;
}

#define RETURNED_FIELDS(F) F##_INT(slot) F##_ZERO(2)
BYTES_HEADER(returned, struct ofi_returned, OFI_RETURNED_HEADER, RETURNED_FIELDS, is_slot(m->slot))

#define FIND_FIELDS(F) F##_INT(number) F##_INT(qpn)
BYTES_BODY(find, struct ofi_find, OFI_FIND_SIZE, FIND_FIELDS, m->qpn <= QPN_MAX)

#define FOUND_FIELDS(F) F##_INT(number) F##_INT(qpn) F##_INT(slot) F##_ZERO(2)
BYTES_BODY(found, struct ofi_found, OFI_FOUND_SIZE, FOUND_FIELDS,
	   m->qpn <= QPN_MAX && (is_slot(m->slot) || m->slot == OFI_NO_SLOT))

#define PING_FIELDS(F) F##_INT(sent)
BYTES_BODY(ping, struct ofi_ping, OFI_PING_SIZE, PING_FIELDS, true)

#define PONG_FIELDS(F) F##_INT(sent) F##_INT(answered)
BYTES_BODY(pong, struct ofi_ping, OFI_PONG_SIZE, PONG_FIELDS, true)

/* ------------------------------------------------------------------------
 * The order of bytes.
 */

struct field {
	uint8_t at, size;
};

#define FIELD(type, member) { offsetof(type, member), sizeof(((type *)NULL)->member) }

/* Not imm, which has the order of the network.  compare_add is the last: see below. */
static const struct field rc_fields[] = {
	FIELD(struct rc_header, dst_qpn), FIELD(struct rc_header, src_qpn),
	FIELD(struct rc_header, psn), FIELD(struct rc_header, length),
	FIELD(struct rc_header, offset), FIELD(struct rc_header, rkey),
	FIELD(struct rc_header, remote_addr), FIELD(struct rc_header, swap),
	FIELD(struct rc_header, parts), FIELD(struct rc_header, xrc_srqn),
	FIELD(struct rc_header, compare_add),
};

static const struct field part_fields[] = {
	FIELD(struct rc_part, addr), FIELD(struct rc_part, len),
};

static const struct field ud_fields[] = {
	FIELD(struct ud_header, dst_qpn), FIELD(struct ud_header, src_qpn),
	FIELD(struct ud_header, qkey), FIELD(struct ud_header, length),
};

static const struct field note_fields[] = {
	FIELD(struct cm_note, local_id), FIELD(struct cm_note, remote_id),
};

#define FIELDS(list) (list), sizeof(list) / sizeof((list)[0])

/* MADs and segments have one order everywhere. */
static const struct payload {
	uint32_t header;
	const struct field *fields;
	size_t num;
} payloads[SIM_PACKET_TYPES] = {
	[SIM_PACKET_MAD] = { CM_MAD_SIZE, NULL, 0 },
	[SIM_PACKET_STREAM] = { SEG_HEADER, NULL, 0 },
	[SIM_PACKET_RC] = { sizeof(struct rc_header), FIELDS(rc_fields) },
	[SIM_PACKET_UD] = { sizeof(struct ud_header), FIELDS(ud_fields) },
	[SIM_PACKET_NOTE] = { CM_NOTE_SIZE, FIELDS(note_fields) },
};

/* These structs are the wire: another compiler must not make something else of them. */
static_assert(sizeof(struct rc_header) == 64 && sizeof(struct rc_part) == 16, "no padding");
static_assert(sizeof(struct ud_header) == 56 && CM_NOTE_SIZE == 9, "no padding");

static bool lists_parts(uint8_t type, const uint8_t *bytes)
{
	return type == SIM_PACKET_RC && bytes[offsetof(struct rc_header, flags)] & RC_F_REF;
}

static int check_payload(uint8_t type, const uint8_t *bytes, size_t len)
{
	if (type >= SIM_PACKET_TYPES || len < payloads[type].header)
		return -EBADMSG;
	if (lists_parts(type, bytes) && (len - payloads[type].header) % sizeof(struct rc_part))
		return -EBADMSG;
	return 0;
}

static void swap_fields(uint8_t *bytes, const struct field *fields, size_t num)
{
	for (size_t i = 0; i < num; i++) {
		uint8_t *low = bytes + fields[i].at, *high = low + fields[i].size - 1;

		for (; low < high; low++, high--) {
			uint8_t byte = *low;

			*low = *high;
			*high = byte;
		}
	}
}

int ofi_payload_swap(uint8_t type, uint8_t *bytes, size_t len)
{
	const struct payload *payload;
	size_t num;

	if (check_payload(type, bytes, len) < 0)
		return -EBADMSG;
	payload = &payloads[type];
	num = payload->num;
	/* There compare_add is the 8 bytes that the program wrote. */
	if (type == SIM_PACKET_RC && bytes[offsetof(struct rc_header, op)] == RC_ATOMIC_WRITE)
		num--;
	swap_fields(bytes, payload->fields, num);
	/* As many as there are: the number in the header may have either order here. */
	if (lists_parts(type, bytes))
		for (size_t at = payload->header; at < len; at += sizeof(struct rc_part))
			swap_fields(bytes + at, FIELDS(part_fields));
	return 0;
}

int ofi_payload_order(uint8_t type, uint8_t *bytes, size_t len)
{
	return BYTE_ORDER == BIG_ENDIAN ? ofi_payload_swap(type, bytes, len)
					: check_payload(type, bytes, len);
}
