/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fuzz_mpa.c - bytes as MPA frames and as segments of the stream: through the
 * decoder, and from a peer of our own making to the iWARP engine where it
 * listens, waits for a request or for a reply, has a request, or is connected.
 *
 * An input: a byte that says where the engine is, and then records of a byte
 * of flags, a length of 16 bits and so many bytes.
 */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "fuzz.h"
#include "tests/unit/iwarp_peer.h"

#define FLAG_SEGMENT 0x01u	/* a whole segment; otherwise bytes of the stream */
#define FLAG_ACCEPT 0x02u	/* the engine's program accepts what it is asked, ... */
#define FLAG_REJECT 0x04u	/* ... or rejects it */
#define FLAG_WAIT 0x08u		/* timers fire afterwards */

const char fuzz_name[] = "mpa";

static enum peer_answer answer_of(uint8_t flags)
{
	return flags & FLAG_ACCEPT ? ACCEPT : flags & FLAG_REJECT ? REJECT : LEAVE;
}

/* What decodes encodes to the same frame, but for flags that mean nothing. */
static void check_codec(const uint8_t *data, size_t len)
{
	struct mpa_frame frame, second;
	uint8_t again[MPA_MAX_FRAME];
	size_t used, again_len, again_used;

	if (mpa_decode(data, len, &frame, &used) < 0)
		return;
	assert_true(used <= len);
	assert_int_equal(mpa_encode(&frame, again, sizeof(again), &again_len), 0);
	assert_int_equal(again_len, used);
	assert_int_equal(mpa_decode(again, again_len, &second, &again_used), 0);
	assert_int_equal(again_used, used);
	assert_memory_equal(again + MPA_HEADER_SIZE, data + MPA_HEADER_SIZE,
			    used - MPA_HEADER_SIZE);
}

static void play(const uint8_t *data, size_t size)
{
	while (size > 3) {
		uint8_t flags = data[0];
		size_t len = (size_t)data[1] << 8 | data[2];

		data += 3;
		size -= 3;
		if (len > size)
			len = size;
		if (len > PEER_MAX_SEGMENT)
			len = PEER_MAX_SEGMENT;
		check_codec(data, len);
		if (flags & FLAG_SEGMENT) {
			peer_send_raw(data, len);
		} else {
			peer_send(DATA, data, len);
		}
		peer_serve(answer_of(flags));
		if (flags & FLAG_WAIT)
			world_advance(SIM_MS(11000));
		data += len;
		size -= len;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size < 2)
		return 0;
	peer_set((enum place)(data[0] % PLACES));
	play(data + 1, size - 1);
	peer_leave();
	return 0;
}

static size_t record(uint8_t *out, uint8_t flags, const uint8_t *data, size_t len)
{
	out[0] = flags;
	out[1] = (uint8_t)(len >> 8);
	out[2] = (uint8_t)len;
	memcpy(out + 3, data, len);
	return len + 3;
}

/* The frames that the engine itself sends: its request, its reply, its reject. */
static size_t engines_frame(enum mpa_type type, bool reject, uint8_t buf[MPA_MAX_FRAME])
{
	size_t len;

	peer_set(type == MPA_REQUEST ? WAITS_FOR_REPLY : WAITS_FOR_REQUEST);
	if (type == MPA_REPLY) {
		peer_send(DATA, buf, peer_make_frame(MPA_REQUEST, 2, buf));
		peer_serve(reject ? REJECT : ACCEPT);
		world_advance(SIM_MS(1));
	}
	len = peer.first_len;
	memcpy(buf, peer.first, len);
	peer_leave();
	return len;
}

void fuzz_seeds(void (*put)(const char *name, const uint8_t *data, size_t size))
{
	static const struct {
		const char *name;
		uint8_t flags;
	} ways[] = {
		{ "left", 0 }, { "accepted", FLAG_ACCEPT }, { "rejected", FLAG_REJECT },
		{ "late", FLAG_WAIT },
	};
	static const char *const frames[] = { "request", "reply", "reject", "v1_request",
					      "v1_reply", "fin", "rst", "syn_ack" };
	uint8_t frame[MPA_MAX_FRAME], out[1 + 3 + MPA_MAX_FRAME];
	char name[64];

	for (unsigned int f = 0; f < sizeof(frames) / sizeof(frames[0]); f++) {
		bool segment = f >= 5;
		size_t len = PEER_HEADER;

		memset(frame, 0, sizeof(frame));
		if (f == 0)
			len = engines_frame(MPA_REQUEST, false, frame);
		else if (f <= 2)
			len = engines_frame(MPA_REPLY, f == 2, frame);
		else if (f <= 4)
			len = peer_make_frame(f == 3 ? MPA_REQUEST : MPA_REPLY, 1, frame);
		else
			frame[0] = f == 5 ? FIN : f == 6 ? RST : SYN_ACK, frame[1] = 1;
		for (unsigned int place = 0; place < PLACES; place++)
			for (unsigned int way = 0; way < 4; way++) {
				uint8_t flags = ways[way].flags;

				out[0] = (uint8_t)place;
				(void)snprintf(name, sizeof(name), "%u_%s_%s", place, frames[f],
					       ways[way].name);
				put(name, out, 1 + record(out + 1, segment ?
							  (uint8_t)(flags | FLAG_SEGMENT) : flags,
							  frame, len));
			}
	}
}
