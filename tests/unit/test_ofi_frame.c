/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Frames, their small bodies, and the order of bytes in packets: known bytes, which were put
 * together by hand, and everything that is none of them.
 */
#include "config.h"

#include <byteswap.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "providers/ofi/frame.h"
#include "providers/ofi/hello.h"
#include "providers/soft/shm/segment.h"
#include "providers/soft/wire/mad.h"
#include "providers/soft/wire/note.h"
#include "providers/soft/wire/rc.h"
#include "providers/soft/wire/segment.h"
#include "providers/soft/wire/ud.h"
#include "tests/cmocka_all.h"

static const uint32_t max_of[OFI_FRAME_TYPES] = {
	[OFI_HELLO] = 8192, [OFI_PROOF] = 32, [OFI_REFUSED] = 40, [OFI_PACKET] = 16 + 260616,
	[OFI_RETURNED] = 4 + 16 + 16384, [OFI_FIND] = 8, [OFI_FOUND] = 12, [OFI_PORTS] = 8192,
	[OFI_PING] = 8, [OFI_PONG] = 16, [OFI_BYE] = 0, [OFI_CARRIER] = 12 + 72 + 256,
};

static void frame_types(void **state)
{
	uint8_t bytes[OFI_FRAME_HEADER];

	(void)state;
	for (unsigned int type = 0; type < 256; type++) {
		bool exists = type && type < OFI_FRAME_TYPES;
		struct ofi_frame frame = { .len = exists ? max_of[type] : 0, .type = (uint8_t)type };
		struct ofi_frame decoded;

		assert_uint_equal(ofi_frame_max(frame.type), frame.len);
		ofi_frame_encode(&frame, bytes);
		assert_int_equal(ofi_frame_decode(bytes, &decoded), exists ? 0 : -EBADMSG);
		if (!exists)
			continue;
		assert_uint_equal(decoded.len, frame.len);
		assert_uint_equal(decoded.type, type);
		frame.len++;
		ofi_frame_encode(&frame, bytes);
		assert_int_equal(ofi_frame_decode(bytes, &decoded), -EBADMSG);
		frame.len = UINT32_MAX;
		ofi_frame_encode(&frame, bytes);
		assert_int_equal(ofi_frame_decode(bytes, &decoded), -EBADMSG);
	}
}

static void frame_bytes(void **state)
{
	static const uint8_t golden[] = { 0x10, 0x32, 0x00, 0x00, 0x04, 0x00, 0x00, 0x00 };
	const struct ofi_frame sent = { .len = 0x3210, .type = OFI_PACKET };
	uint8_t bytes[OFI_FRAME_HEADER + 1];
	struct ofi_frame frame;

	(void)state;
	memset(bytes, 0xee, sizeof(bytes));
	ofi_frame_encode(&sent, bytes);
	assert_memory_equal(bytes, golden, sizeof(golden));
	assert_uint_equal(bytes[OFI_FRAME_HEADER], 0xee);
	for (unsigned int bit = 8 * 5; bit < 8 * 8; bit++) {
		bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
		assert_int_equal(ofi_frame_decode(bytes, &frame), -EBADMSG);
		bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
	}
	assert_int_equal(ofi_frame_decode(bytes, &frame), 0);
}

/* ------------------------------------------------------------------------
 * Bodies, each with its codec behind one signature.
 */

#define CODEC(name, type)									\
	static void encode_##name(const void *m, uint8_t *bytes)				\
	{											\
		ofi_##name##_encode(m, bytes);							\
	}											\
	static int decode_##name(const uint8_t *bytes, size_t len, void *m)			\
	{											\
		return ofi_##name##_decode(bytes, len, m);					\
	}
CODEC(packet, packet)
CODEC(carried, carried)
CODEC(returned, returned)
CODEC(find, find)
CODEC(found, found)
CODEC(ping, ping)
CODEC(pong, ping)

enum body_name { PACKET, CARRIED, RETURNED, FIND, FOUND, PING, PONG };

#define LARGEST 32u

static const struct body {
	void (*encode)(const void *m, uint8_t *bytes);
	int (*decode)(const uint8_t *bytes, size_t len, void *m);
	const void *sample;
	size_t sample_size;
	uint8_t golden[LARGEST];
	size_t len, reserved;		/* of the bytes; how many of these are 0, at the end */
	bool goes_on;			/* it is the header of what follows */
} bodies[] = {
#define BODY(name, type, ...)									\
	encode_##name, decode_##name, &(const struct ofi_##type)__VA_ARGS__, sizeof(struct ofi_##type)
	[PACKET] = {
		BODY(packet, packet, { .number = 0x1112131415161718, .from = 0x0201, .to = 0x0403,
				       .type = SIM_PACKET_UD }),
		{ 0x18, 0x17, 0x16, 0x15, 0x14, 0x13, 0x12, 0x11, 0x01, 0x02, 0x03, 0x04, 0x03 },
		16, 3, true,
	},
	[CARRIED] = {
		BODY(carried, carried, { .token = 0x0807060504030201, .sequence = 0x2827262524232221,
					 .packet = { .number = 0x1112131415161718, .from = 0x0201,
						     .to = 0x0403, .type = SIM_PACKET_RC },
					 .window = 0x3231 }),
		{ 0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 0x08,
		  0x21, 0x22, 0x23, 0x24, 0x25, 0x26, 0x27, 0x28,
		  0x18, 0x17, 0x16, 0x15, 0x14, 0x13, 0x12, 0x11, 0x01, 0x02, 0x03, 0x04, 0x02,
		  0x00, 0x31, 0x32 },
		32, 0, true,
	},
	[RETURNED] = {
		BODY(returned, returned, { .slot = 0x0302 }), { 0x02, 0x03 }, 4, 2, true,
	},
	[FIND] = {
		BODY(find, find, { .number = 0x04030201, .qpn = 0x070605 }),
		{ 0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 0x00 }, 8, 0, false,
	},
	[FOUND] = {
		BODY(found, found, { .number = 0x04030201, .qpn = 0x070605, .slot = 0x0302 }),
		{ 0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 0x00, 0x02, 0x03 }, 12, 2, false,
	},
	[PING] = {
		BODY(ping, ping, { .sent = 0x0807060504030201 }),
		{ 0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 0x08 }, 8, 0, false,
	},
	[PONG] = {
		BODY(pong, ping, { .sent = 0x0807060504030201, .answered = 0x1817161514131211 }),
		{ 0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 0x08,
		  0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18 }, 16, 0, false,
	},
};

/* Decode from a block of exactly that size, so that a sanitizer sees a byte too many. */
static int decode(const struct body *body, const uint8_t *bytes, size_t len, void *m)
{
	uint8_t *block = malloc(len ? len : 1);
	int r;

	assert_non_null(block);
	memcpy(block, bytes, len);
	r = body->decode(block, len, m);
	free(block);
	return r;
}

static void body_bytes(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bodies); i++) {
		const struct body *body = &bodies[i];
		uint8_t bytes[LARGEST + 1], decoded[64];

		memset(bytes, 0xee, sizeof(bytes));
		body->encode(body->sample, bytes);
		assert_memory_equal(bytes, body->golden, body->len);
		assert_uint_equal(bytes[body->len], 0xee);
		assert_int_equal(decode(body, bytes, body->len, decoded), 0);
		assert_memory_equal(decoded, body->sample, body->sample_size);
		assert_int_equal(decode(body, bytes, body->len + 1, decoded),
				 body->goes_on ? 0 : -EBADMSG);
		for (size_t len = 0; len < body->len; len++)
			assert_int_equal(decode(body, bytes, len, decoded), -EBADMSG);
		for (size_t bit = 8 * (body->len - body->reserved); bit < 8 * body->len; bit++) {
			bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
			assert_int_equal(decode(body, bytes, body->len, decoded), -EBADMSG);
			bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
		}
	}
}

/* An integer in the golden bytes, and a value of it. */
static void body_values(void **state)
{
	static const struct {
		enum body_name body;
		size_t at, size;
		uint32_t value;
		int ret;
	} cases[] = {
		{ PACKET, 12, 1, SIM_PACKET_MAD, 0 },
		{ PACKET, 12, 1, SIM_PACKET_NOTE, 0 },
		{ PACKET, 12, 1, SIM_PACKET_TYPES, -EBADMSG },
		{ PACKET, 12, 1, 255, -EBADMSG },
		{ CARRIED, 28, 1, SIM_PACKET_MAD, -EBADMSG },
		{ CARRIED, 28, 1, SIM_PACKET_STREAM, -EBADMSG },
		{ CARRIED, 28, 1, SIM_PACKET_UD, 0 },
		{ CARRIED, 28, 1, SIM_PACKET_NOTE, -EBADMSG },
		{ CARRIED, 29, 1, 1, -EBADMSG },
		{ CARRIED, 30, 2, 0, 0 },
		{ RETURNED, 0, 2, 0, 0 },
		{ RETURNED, 0, 2, SIM_MAX_SLOTS - 1, 0 },
		{ RETURNED, 0, 2, SIM_MAX_SLOTS, -EBADMSG },
		{ RETURNED, 0, 2, OFI_NO_SLOT, -EBADMSG },
		{ FIND, 4, 4, 0xffffff, 0 },
		{ FIND, 4, 4, 0x1000000, -EBADMSG },
		{ FIND, 4, 4, UINT32_MAX, -EBADMSG },
		{ FOUND, 4, 4, 0xffffff, 0 },
		{ FOUND, 4, 4, 0x1000000, -EBADMSG },
		{ FOUND, 8, 2, SIM_MAX_SLOTS - 1, 0 },
		{ FOUND, 8, 2, SIM_MAX_SLOTS, -EBADMSG },
		{ FOUND, 8, 2, OFI_NO_SLOT - 1, -EBADMSG },
		{ FOUND, 8, 2, OFI_NO_SLOT, 0 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		const struct body *body = &bodies[cases[i].body];
		uint8_t bytes[LARGEST], decoded[64];

		memcpy(bytes, body->golden, sizeof(bytes));
		memcpy(bytes + cases[i].at, &(uint32_t){ htole32(cases[i].value) }, cases[i].size);
		assert_int_equal(decode(body, bytes, body->len, decoded), cases[i].ret);
	}
}

/* The header of a PACKET is in that of a message on a carrier. */
static void carried_packet(void **state)
{
	uint8_t bytes[OFI_CARRIED_HEADER], packet[OFI_PACKET_HEADER];
	const struct ofi_carried *sample = bodies[CARRIED].sample;

	(void)state;
	memcpy(bytes, bodies[CARRIED].golden, sizeof(bytes));
	ofi_packet_encode(&sample->packet, packet);
	assert_ptr_equal(ofi_carried_packet(bytes), bytes + 16);
	assert_memory_equal(bytes + 16, packet, sizeof(packet));
	assert_memory_equal(bytes, bodies[CARRIED].golden, 16);
}

/* ------------------------------------------------------------------------
 * Order of bytes.
 */

/* Swapped, *have is *want; swapped again, what it was.  At an odd address, as in packets. */
static void check_swap(uint8_t type, const void *have, const void *want, size_t len)
{
	uint8_t *block = malloc(len + 1), *bytes = block + 1;

	assert_non_null(block);
	memcpy(bytes, have, len);
	assert_int_equal(ofi_payload_swap(type, bytes, len), 0);
	assert_memory_equal(bytes, want, len);
	assert_int_equal(ofi_payload_order(type, bytes, len), 0);
	assert_memory_equal(bytes, BYTE_ORDER == BIG_ENDIAN ? have : want, len);
	assert_int_equal(ofi_payload_order(type, bytes, len), 0);
	assert_int_equal(ofi_payload_swap(type, bytes, len), 0);
	assert_memory_equal(bytes, have, len);
	free(block);
}

struct rc_packet {
	struct rc_header header;
	struct rc_part parts[2];
};

/* No two bytes of an integer are the same. */
static struct rc_packet rc_packet(uint8_t op, uint8_t flags)
{
	struct rc_packet packet;

	memset(&packet, 0, sizeof(packet));
	packet.header = (struct rc_header){
		.dst_qpn = 0x00010203, .src_qpn = 0x00040506, .psn = 0x00070809, .op = op,
		.flags = flags, .syndrome = 0x11, .rnr_timer = 0x12, .length = 0x13141516,
		.offset = 0x17181920, .imm = 0x21222324, .rkey = 0x25262728,
		.remote_addr = 0x3132333435363738, .compare_add = 0x4142434445464748,
		.swap = 0x5152535455565758, .parts = 0x6162, .rd_depth = 0x63, .placed = 0x64,
		.xrc_srqn = 0x65666768,
	};
	packet.parts[0] = (struct rc_part){ 0x7172737475767778, 0x8182838485868788 };
	packet.parts[1] = (struct rc_part){ 0x9192939495969798, 0xa1a2a3a4a5a6a7a8 };
	return packet;
}

static void order_of_rc(void **state)
{
	(void)state;
	for (uint8_t op = 0; op < RC_OPS; op++)
		for (unsigned int flags = 0; flags < 256; flags++) {
			struct rc_packet have = rc_packet(op, (uint8_t)flags), want = have;
			struct rc_header *h = &want.header;

			h->dst_qpn = 0x03020100;
			h->src_qpn = 0x06050400;
			h->psn = 0x09080700;
			h->length = 0x16151413;
			h->offset = 0x20191817;
			h->rkey = 0x28272625;
			h->remote_addr = 0x3837363534333231;
			if (op != RC_ATOMIC_WRITE)
				h->compare_add = 0x4847464544434241;
			h->swap = 0x5857565554535251;
			h->parts = 0x6261;
			h->xrc_srqn = 0x68676665;
			if (flags & RC_F_REF) {
				want.parts[0] = (struct rc_part){ 0x7877767574737271,
								  0x8887868584838281 };
				want.parts[1] = (struct rc_part){ 0x9897969594939291,
								  0xa8a7a6a5a4a3a2a1 };
			}
			for (size_t parts = 0; parts <= 2; parts++)
				check_swap(SIM_PACKET_RC, &have, &want,
					   sizeof(have.header) + parts * sizeof(have.parts[0]));
		}
}

static void order_of_others(void **state)
{
	struct {
		struct ud_header header;
		uint8_t payload[5];
	} ud, swapped;
	struct cm_note note = { 0x01020304, 0x05060708, 0x09 }, noted = { 0x04030201, 0x08070605, 0x09 };
	uint8_t bytes[CM_MAD_SIZE + 1];

	(void)state;
	memset(&ud, 0x5a, sizeof(ud));
	ud.header.dst_qpn = 0x00010203;
	ud.header.src_qpn = 0x00040506;
	ud.header.qkey = 0x11121314;
	ud.header.imm = 0x15161718;
	ud.header.length = 0x21222324;
	ud.header.flags = 0x25;
	ud.header.tclass = 0x26;
	ud.header.hop_limit = 0x27;
	ud.header.reserved = 0x28;
	for (unsigned int i = 0; i < 16; i++) {
		ud.header.sgid.raw[i] = (uint8_t)(0x30 + i);
		ud.header.dgid.raw[i] = (uint8_t)(0x40 + i);
	}
	memcpy(ud.payload, "12345", 5);
	memcpy(&swapped, &ud, sizeof(ud));
	swapped.header.dst_qpn = 0x03020100;
	swapped.header.src_qpn = 0x06050400;
	swapped.header.qkey = 0x14131211;
	swapped.header.length = 0x24232221;
	check_swap(SIM_PACKET_UD, &ud, &swapped, sizeof(ud.header) + sizeof(ud.payload));
	check_swap(SIM_PACKET_NOTE, &note, &noted, CM_NOTE_SIZE);

	/* Of one order everywhere. */
	for (unsigned int i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)i;
	check_swap(SIM_PACKET_MAD, bytes, bytes, CM_MAD_SIZE);
	check_swap(SIM_PACKET_STREAM, bytes, bytes, SEG_HEADER);
	check_swap(SIM_PACKET_STREAM, bytes, bytes, SEG_SYN_LEN);
}

static void check_order(uint8_t type, const void *bytes, size_t len, int ret)
{
	uint8_t *block = malloc(len ? len : 1);

	assert_non_null(block);
	memcpy(block, bytes, len);
	assert_int_equal(ofi_payload_order(type, block, len), ret);
	assert_int_equal(ofi_payload_swap(type, block, len), ret);
	/* What is refused is left as it is. */
	if (ret)
		assert_memory_equal(block, bytes, len);
	free(block);
}

static void order_of_too_little(void **state)
{
	static const size_t least[SIM_PACKET_TYPES] = {
		[SIM_PACKET_MAD] = 256, [SIM_PACKET_STREAM] = 16, [SIM_PACKET_RC] = 64,
		[SIM_PACKET_UD] = 56, [SIM_PACKET_NOTE] = 9,
	};
	struct rc_packet packet = rc_packet(RC_WRITE, RC_F_REF);
	uint8_t bytes[257] = { 0 };

	(void)state;
	for (unsigned int type = 0; type < 256; type++)
		for (size_t len = 0; len < sizeof(bytes); len++)
			check_order((uint8_t)type, bytes, len,
				    type < SIM_PACKET_TYPES && len >= least[type] ? 0 : -EBADMSG);
	for (size_t len = 0; len <= sizeof(packet); len++)
		check_order(SIM_PACKET_RC, &packet, len,
			    len >= 64 && !((len - 64) % 16) ? 0 : -EBADMSG);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(frame_types),
		cmocka_unit_test(frame_bytes),
		cmocka_unit_test(body_bytes),
		cmocka_unit_test(body_values),
		cmocka_unit_test(carried_packet),
		cmocka_unit_test(order_of_rc),
		cmocka_unit_test(order_of_others),
		cmocka_unit_test(order_of_too_little),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
