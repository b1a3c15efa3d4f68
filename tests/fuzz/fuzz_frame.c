/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fuzz_frame.c - bytes as a stream of frames, with bodies that fuzz_hello.c does not have.  Each
 * has one form: what decodes encodes to the same bytes.  Packets change the order of their bytes
 * and change it back.
 */
#include "config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "providers/ofi/frame.h"
#include "providers/soft/shm/segment.h"
#include "providers/soft/wire/mad.h"
#include "providers/soft/wire/note.h"
#include "providers/soft/wire/rc.h"
#include "providers/soft/wire/segment.h"
#include "providers/soft/wire/ud.h"
#include "tests/cmocka_all.h"

const char fuzz_name[] = "frame";

/* In a block of its own length, so that a sanitizer sees a byte too many. */
static void try_payload(uint8_t type, const uint8_t *data, size_t len)
{
	uint8_t *block = malloc(len ? len : 1);
	int r;

	assert_non_null(block);
	memcpy(block, data, len);
	r = ofi_payload_order(type, block, len);
	assert_true(!r || r == -EBADMSG);
	assert_int_equal(ofi_payload_order(type, block, len), r);
	assert_memory_equal(block, data, len);
	assert_int_equal(ofi_payload_swap(type, block, len), r);
	assert_int_equal(ofi_payload_swap(type, block, len), r);
	assert_memory_equal(block, data, len);
	free(block);
}

static void try_packet(const uint8_t *data, size_t len)
{
	uint8_t again[OFI_PACKET_HEADER];
	struct ofi_packet packet;

	if (ofi_packet_decode(data, len, &packet))
		return;
	assert_true(packet.type < SIM_PACKET_TYPES);
	ofi_packet_encode(&packet, again);
	assert_memory_equal(again, data, sizeof(again));
	try_payload(packet.type, data + sizeof(again), len - sizeof(again));
}

static void try_returned(const uint8_t *data, size_t len)
{
	uint8_t again[OFI_RETURNED_HEADER];
	struct ofi_returned returned;

	if (ofi_returned_decode(data, len, &returned))
		return;
	assert_true(returned.slot < SIM_MAX_SLOTS);
	ofi_returned_encode(&returned, again);
	assert_memory_equal(again, data, sizeof(again));
	try_packet(data + sizeof(again), len - sizeof(again));
}

#define TRY(name, type, size)									\
	static void try_##name(const uint8_t *data, size_t len)					\
	{											\
		struct type name;								\
		uint8_t again[size];								\
												\
		if (ofi_##name##_decode(data, len, &name))					\
			return;									\
		assert_int_equal(len, size);							\
		ofi_##name##_encode(&name, again);						\
		assert_memory_equal(again, data, size);						\
	}
TRY(find, ofi_find, OFI_FIND_SIZE)
TRY(found, ofi_found, OFI_FOUND_SIZE)
TRY(ping, ofi_ping, OFI_PING_SIZE)
TRY(pong, ofi_ping, OFI_PONG_SIZE)

/* On a carrier it is the message alone. */
static void try_carried(const uint8_t *data, size_t len)
{
	uint8_t again[OFI_CARRIED_HEADER], packet[OFI_PACKET_HEADER];
	struct ofi_carried carried;

	if (ofi_carried_decode(data, len, &carried))
		return;
	ofi_carried_encode(&carried, again);
	assert_memory_equal(again, data, sizeof(again));
	ofi_packet_encode(&carried.packet, packet);
	assert_memory_equal(ofi_carried_packet(again), packet, sizeof(packet));
}

static void (*const bodies[OFI_FRAME_TYPES])(const uint8_t *data, size_t len) = {
	[OFI_PACKET] = try_packet, [OFI_RETURNED] = try_returned, [OFI_FIND] = try_find,
	[OFI_FOUND] = try_found, [OFI_PING] = try_ping, [OFI_PONG] = try_pong,
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t again[OFI_FRAME_HEADER];
	struct ofi_frame frame;

	try_carried(data, size);
	while (size >= OFI_FRAME_HEADER && !ofi_frame_decode(data, &frame)) {
		assert_true(frame.type < OFI_FRAME_TYPES && frame.len <= ofi_frame_max(frame.type));
		ofi_frame_encode(&frame, again);
		assert_memory_equal(again, data, sizeof(again));
		data += OFI_FRAME_HEADER;
		size -= OFI_FRAME_HEADER;
		/* The last one may be cut. */
		if (frame.len > size)
			frame.len = (uint32_t)size;
		if (bodies[frame.type])
			bodies[frame.type](data, frame.len);
		data += frame.len;
		size -= frame.len;
	}
	return 0;
}

static uint8_t out[1024];

static uint8_t *body_at(size_t at)
{
	return out + at + OFI_FRAME_HEADER;
}

/* Behind its body, which is there already; returns where it ends. */
static size_t end_frame(size_t at, uint8_t type, size_t len)
{
	ofi_frame_encode(&(struct ofi_frame){ .len = (uint32_t)len, .type = type }, out + at);
	return at + OFI_FRAME_HEADER + len;
}

static size_t fill_packet(uint8_t *body, uint8_t type, const void *payload, size_t len)
{
	ofi_packet_encode(&(struct ofi_packet){ .number = 1, .to = 1, .type = type }, body);
	memcpy(body + OFI_PACKET_HEADER, payload, len);
	return OFI_PACKET_HEADER + len;
}

static const uint8_t mad[CM_MAD_SIZE] = { 1, 7, 2, 3 };
static const uint8_t segment[SEG_HEADER + 1] = { SEG_DATA, SEG_VERSION };
static const struct ud_header ud = { .dst_qpn = 1, .src_qpn = 2, .qkey = 3 };
static const struct cm_note note = { 1, 2, 3 };
static const struct rc_header rc = { .dst_qpn = 1, .op = RC_ATOMIC_WRITE, .compare_add = 4 };
static const struct {
	struct rc_header header;
	struct rc_part parts[2];
} rc_parts = { .header = { .dst_qpn = 1, .op = RC_SEND, .flags = RC_F_REF, .parts = 2 } };

static const struct {
	const char *name;
	uint8_t type;
	const void *payload;
	size_t len;
} packets[] = {
	{ "mad", SIM_PACKET_MAD, mad, sizeof(mad) },
	{ "segment", SIM_PACKET_STREAM, segment, sizeof(segment) },
	{ "ud", SIM_PACKET_UD, &ud, sizeof(ud) },
	{ "rc", SIM_PACKET_RC, &rc, sizeof(rc) },
	{ "rc_parts", SIM_PACKET_RC, &rc_parts, sizeof(rc_parts) },
	{ "note", SIM_PACKET_NOTE, &note, CM_NOTE_SIZE },
};

void fuzz_seeds(void (*put)(const char *name, const uint8_t *data, size_t size))
{
	size_t at = 0, len;

	for (unsigned int i = 0; i < ARRAY_SIZE(packets); i++) {
		len = fill_packet(body_at(0), packets[i].type, packets[i].payload, packets[i].len);
		put(packets[i].name, out, end_frame(0, OFI_PACKET, len));
	}
	ofi_returned_encode(&(struct ofi_returned){ 2 }, body_at(0));
	len = fill_packet(body_at(0) + OFI_RETURNED_HEADER, SIM_PACKET_NOTE, &note, CM_NOTE_SIZE);
	put("returned", out, end_frame(0, OFI_RETURNED, OFI_RETURNED_HEADER + len));
	ofi_found_encode(&(struct ofi_found){ 1, 2, OFI_NO_SLOT }, body_at(0));
	put("found", out, end_frame(0, OFI_FOUND, OFI_FOUND_SIZE));
	ofi_pong_encode(&(struct ofi_ping){ 1, 2 }, body_at(0));
	put("pong", out, end_frame(0, OFI_PONG, OFI_PONG_SIZE));

	ofi_find_encode(&(struct ofi_find){ 1, 2 }, body_at(at));
	at = end_frame(at, OFI_FIND, OFI_FIND_SIZE);
	ofi_ping_encode(&(struct ofi_ping){ 1, 0 }, body_at(at));
	at = end_frame(at, OFI_PING, OFI_PING_SIZE);
	len = fill_packet(body_at(at), SIM_PACKET_NOTE, &note, CM_NOTE_SIZE);
	at = end_frame(at, OFI_PACKET, len);
	put("several", out, end_frame(at, OFI_BYE, 0));
	put("cut", out, at - 1);
	ofi_carried_encode(&(struct ofi_carried){ 1, 2, { .type = SIM_PACKET_RC }, 4 }, out);
	put("carried", out, OFI_CARRIED_HEADER);
}
