/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * MPA Request and Reply frames: known bytes, streams that come in pieces, and
 * everything that is no frame.
 */
#include "config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "providers/soft/wire/mpa.h"
#include "tests/cmocka_all.h"

#define REQUEST_KEY "MPA ID Req Frame"
#define REPLY_KEY "MPA ID Rep Frame"

#define DATA(text) .private_data_len = sizeof(text) - 1, .private_data = (const uint8_t *)(text)

static const struct {
	struct mpa_frame frame;
	const char *bytes;
	size_t len;
} known[] = {
#define BYTES(text) (text), sizeof(text) - 1
	{ { .type = MPA_REQUEST }, BYTES(REQUEST_KEY "\x00\x00\x00\x00") },
	{ { .type = MPA_REQUEST, .revision = 1, .crc = true, DATA("hello") },
	  BYTES(REQUEST_KEY "\x40\x01\x00\x05" "hello") },
	{ { .type = MPA_REQUEST, .revision = 1, .markers = true },
	  BYTES(REQUEST_KEY "\x80\x01\x00\x00") },
	{ { .type = MPA_REPLY, .revision = 1, .reject = true, DATA("no\0") },
	  BYTES(REPLY_KEY "\x20\x01\x00\x03" "no\0") },
	{ { .type = MPA_REPLY, .revision = 2 }, BYTES(REPLY_KEY "\x00\x02\x00\x00") },
	{ { .type = MPA_REQUEST, .revision = 2, .enhanced = true, .ird = 0x1234, .ord = 0x0056 },
	  BYTES(REQUEST_KEY "\x10\x02\x00\x04" "\x12\x34\x00\x56") },
	{ { .type = MPA_REQUEST, .revision = 2, .enhanced = true, .ird = MPA_DEPTH_UNKNOWN,
	    .ord = 1, .peer_to_peer = true, DATA("x") },
	  BYTES(REQUEST_KEY "\x10\x02\x00\x05" "\xbf\xff\x00\x01" "x") },
	{ { .type = MPA_REPLY, .revision = 2, .enhanced = true, .rtr_zero_length_send = true },
	  BYTES(REPLY_KEY "\x10\x02\x00\x04" "\x40\x00\x00\x00") },
	{ { .type = MPA_REPLY, .revision = 2, .enhanced = true, .rtr_rdma_write = true },
	  BYTES(REPLY_KEY "\x10\x02\x00\x04" "\x00\x00\x80\x00") },
	{ { .type = MPA_REPLY, .revision = 2, .enhanced = true, .rtr_rdma_read = true },
	  BYTES(REPLY_KEY "\x10\x02\x00\x04" "\x00\x00\x40\x00") },
	{ { .type = MPA_REPLY, .revision = 2, .markers = true, .crc = true, .reject = true,
	    .enhanced = true, .ird = 128, .ord = MPA_DEPTH_UNKNOWN, .peer_to_peer = true,
	    .rtr_zero_length_send = true, .rtr_rdma_write = true, .rtr_rdma_read = true,
	    DATA("all") },
	  BYTES(REPLY_KEY "\xf0\x02\x00\x07" "\xc0\x80\xff\xff" "all") },
#undef BYTES
};

static void assert_same_frame(const struct mpa_frame *frame, const struct mpa_frame *want)
{
	assert_int_equal(frame->type, want->type);
	assert_uint_equal(frame->revision, want->revision);
	assert_int_equal(frame->markers, want->markers);
	assert_int_equal(frame->crc, want->crc);
	assert_int_equal(frame->reject, want->reject);
	assert_int_equal(frame->enhanced, want->enhanced);
	assert_uint_equal(frame->ird, want->ird);
	assert_uint_equal(frame->ord, want->ord);
	assert_int_equal(frame->peer_to_peer, want->peer_to_peer);
	assert_int_equal(frame->rtr_zero_length_send, want->rtr_zero_length_send);
	assert_int_equal(frame->rtr_rdma_write, want->rtr_rdma_write);
	assert_int_equal(frame->rtr_rdma_read, want->rtr_rdma_read);
	assert_uint_equal(frame->private_data_len, want->private_data_len);
	if (want->private_data_len)
		assert_memory_equal(frame->private_data, want->private_data,
				    want->private_data_len);
	else
		assert_null(frame->private_data);
}

/* Decode from a block of exactly that size, so that a sanitizer sees a byte too many. */
static int decode_exactly(const void *bytes, size_t len)
{
	struct mpa_frame frame, untouched;
	size_t used = 12345;
	uint8_t *block = malloc(len ? len : 1);
	int ret;

	assert_non_null(block);
	if (len)
		memcpy(block, bytes, len);
	memset(&untouched, 0x5a, sizeof(untouched));
	memcpy(&frame, &untouched, sizeof(frame));
	ret = mpa_decode(len ? block : NULL, len, &frame, &used);
	if (ret) {
		assert_memory_equal(&frame, &untouched, sizeof(frame));
		assert_uint_equal(used, 12345);
	} else {
		assert_in_range(used, MPA_HEADER_SIZE, len);
	}
	free(block);
	return ret;
}

static void known_bytes(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(known); i++) {
		const uint8_t *want = (const uint8_t *)known[i].bytes;
		uint8_t buf[MPA_MAX_FRAME + 1];
		struct mpa_frame frame;
		size_t len = 0, used = 0;

		memset(buf, 0xee, sizeof(buf));
		assert_int_equal(mpa_encode(&known[i].frame, buf, known[i].len, &len), 0);
		assert_uint_equal(len, known[i].len);
		assert_memory_equal(buf, want, len);
		assert_uint_equal(buf[len], 0xee);

		/* The stream goes on behind it. */
		assert_int_equal(mpa_decode(buf, len + 1, &frame, &used), 0);
		assert_uint_equal(used, len);
		assert_same_frame(&frame, &known[i].frame);
		if (frame.private_data)
			assert_ptr_equal(frame.private_data, buf + len - frame.private_data_len);
	}
}

static void pieces_of_a_frame(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(known); i++) {
		for (size_t len = 0; len < known[i].len; len++)
			assert_int_equal(decode_exactly(known[i].bytes, len), -EAGAIN);
		assert_int_equal(decode_exactly(known[i].bytes, known[i].len), 0);
	}
}

static void two_frames_in_a_row(void **state)
{
	uint8_t buf[2 * MPA_MAX_FRAME];
	struct mpa_frame frame;
	size_t len = 0, first, second, used;

	(void)state;
	assert_int_equal(mpa_encode(&known[1].frame, buf, sizeof(buf), &first), 0);
	assert_int_equal(mpa_encode(&known[10].frame, buf + first, sizeof(buf) - first, &second),
			 0);
	len = first + second;
	assert_int_equal(mpa_decode(buf, len, &frame, &used), 0);
	assert_uint_equal(used, first);
	assert_same_frame(&frame, &known[1].frame);
	assert_int_equal(mpa_decode(buf + used, len - used, &frame, &used), 0);
	assert_uint_equal(used, second);
	assert_same_frame(&frame, &known[10].frame);
}

/* Every other value of every byte of the key. */
static void bad_keys(void **state)
{
	(void)state;
	for (size_t i = 0; i < 2 * 16 * 255; i++) {
		char bytes[] = REQUEST_KEY "\x00\x01\x00\x00";
		size_t at = i / 255 % 16;

		if (i >= 16 * 255)
			memcpy(bytes, REPLY_KEY, 16);
		bytes[at] = (char)(bytes[at] ^ (char)(1 + i % 255));
		if (memcmp(bytes, REQUEST_KEY, 16) == 0 || memcmp(bytes, REPLY_KEY, 16) == 0)
			continue;
		assert_int_equal(decode_exactly(bytes, 20), -EPROTO);
		assert_int_equal(decode_exactly(bytes, 19), -EAGAIN);
	}
}

static void revisions(void **state)
{
	char bytes[] = REQUEST_KEY "\x00\x00\x00\x00";

	(void)state;
	for (unsigned int revision = 0; revision < 256; revision++) {
		bytes[17] = (char)revision;
		assert_int_equal(decode_exactly(bytes, 20), revision <= 2 ? 0 : -EPROTO);
	}
}

/* The length is judged before its bytes are waited for. */
static void private_lengths(void **state)
{
	uint8_t bytes[MPA_MAX_FRAME + 1] = REQUEST_KEY "\x00\x01";

	(void)state;
	for (unsigned int length = 0; length < 0x10000; length++) {
		bytes[18] = (uint8_t)(length >> 8);
		bytes[19] = (uint8_t)length;
		if (length > 512) {
			assert_int_equal(decode_exactly(bytes, 20), -EPROTO);
			continue;
		}
		if (length)
			assert_int_equal(decode_exactly(bytes, 20 + length - 1), -EAGAIN);
		assert_int_equal(decode_exactly(bytes, 20 + length), 0);
	}
}

static void enhanced_needs_its_words(void **state)
{
	uint8_t bytes[] = REQUEST_KEY "\x10\x02\x00\x00" "\x12\x34\x56\x78";
	struct mpa_frame frame;
	size_t used;

	(void)state;
	for (uint8_t length = 0; length < 4; length++) {
		bytes[19] = length;
		assert_int_equal(decode_exactly(bytes, 20), -EPROTO);
	}
	bytes[19] = 4;
	assert_int_equal(decode_exactly(bytes, 24), 0);

	/* Before revision 2 the flag is a reserved bit and the words are the program's. */
	for (uint8_t revision = 0; revision < 2; revision++) {
		bytes[17] = revision;
		assert_int_equal(mpa_decode(bytes, 24, &frame, &used), 0);
		assert_false(frame.enhanced);
		assert_uint_equal(frame.ird, 0);
		assert_uint_equal(frame.private_data_len, 4);
		assert_ptr_equal(frame.private_data, bytes + 20);
	}
}

static void unknown_flags_are_ignored(void **state)
{
	uint8_t bytes[] = REPLY_KEY "\x0f\x02\x00\x00";
	struct mpa_frame frame;
	size_t used;

	(void)state;
	assert_int_equal(mpa_decode(bytes, 20, &frame, &used), 0);
	assert_same_frame(&frame, &known[4].frame);
}

static const struct {
	uint8_t revision;
	bool enhanced;
	uint16_t private_data_len;
	size_t size;
	int ret;
	size_t len;
} limits[] = {
	{ 1, false, 512, 532, 0, 532 },
	{ 1, false, 512, 531, -ENOBUFS, 0 },
	{ 1, false, 513, 1000, -EINVAL, 0 },
	{ 1, false, 65535, 1000, -EINVAL, 0 },
	{ 2, true, 508, 532, 0, 532 },
	{ 2, true, 508, 531, -ENOBUFS, 0 },
	{ 2, true, 509, 1000, -EINVAL, 0 },
	{ 2, true, 0, 24, 0, 24 },
	{ 2, true, 0, 23, -ENOBUFS, 0 },
	{ 1, true, 0, 1000, -EINVAL, 0 },
	{ 0, true, 0, 1000, -EINVAL, 0 },
	{ 3, false, 0, 1000, -EINVAL, 0 },
	{ 0, false, 0, 20, 0, 20 },
	{ 0, false, 0, 19, -ENOBUFS, 0 },
};

static void encode_limits(void **state)
{
	static const uint8_t data[65535];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(limits); i++) {
		struct mpa_frame frame = {
			.revision = limits[i].revision, .enhanced = limits[i].enhanced,
			.private_data_len = limits[i].private_data_len, .private_data = data,
		};
		uint8_t *buf = malloc(limits[i].size);
		size_t len = 0;

		assert_non_null(buf);
		assert_int_equal(mpa_encode(&frame, buf, limits[i].size, &len), limits[i].ret);
		assert_uint_equal(len, limits[i].len);
		free(buf);
	}
}

/* 14 bits each: more must not reach the control bits. */
static void depths_are_cut(void **state)
{
	struct mpa_frame frame = {
		.revision = 2, .enhanced = true, .ird = 0xffff, .ord = 0xc001,
	};
	uint8_t buf[24];
	size_t len;

	(void)state;
	assert_int_equal(mpa_encode(&frame, buf, sizeof(buf), &len), 0);
	assert_memory_equal(buf + 20, "\x3f\xff\x00\x01", 4);
}

static void random_frames_survive(void **state)
{
	uint8_t data[512], buf[MPA_MAX_FRAME];
	uint32_t seed = 0x13579bdf;

	(void)state;
	for (unsigned int round = 0; round < 5000; round++) {
		struct mpa_frame frame = { .private_data = data }, decoded;
		size_t len, used;
		uint32_t bits;

		for (unsigned int i = 0; i < 3; i++)
			seed = seed * 1664525 + 1013904223;
		bits = seed >> 8;
		frame.type = bits & 1 ? MPA_REPLY : MPA_REQUEST;
		frame.revision = (uint8_t)(round % 3);
		frame.markers = bits & 2;
		frame.crc = bits & 4;
		frame.reject = bits & 8;
		frame.enhanced = frame.revision == 2 && bits & 16;
		if (frame.enhanced) {
			frame.ird = bits >> 10 & MPA_DEPTH_MASK;
			frame.ord = bits >> 7 & MPA_DEPTH_MASK;
			frame.peer_to_peer = bits & 32;
			frame.rtr_zero_length_send = bits & 64;
			frame.rtr_rdma_write = bits & 128;
			frame.rtr_rdma_read = bits & 256;
		}
		frame.private_data_len = (uint16_t)(bits >> 3) % 509;
		memset(data, (int)(bits >> 4 & 0xff), sizeof(data));
		assert_int_equal(mpa_encode(&frame, buf, sizeof(buf), &len), 0);
		assert_int_equal(mpa_decode(buf, len, &decoded, &used), 0);
		assert_uint_equal(used, len);
		assert_same_frame(&decoded, &frame);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(known_bytes),
		cmocka_unit_test(pieces_of_a_frame),
		cmocka_unit_test(two_frames_in_a_row),
		cmocka_unit_test(bad_keys),
		cmocka_unit_test(revisions),
		cmocka_unit_test(private_lengths),
		cmocka_unit_test(enhanced_needs_its_words),
		cmocka_unit_test(unknown_flags_are_ignored),
		cmocka_unit_test(encode_limits),
		cmocka_unit_test(depths_are_cut),
		cmocka_unit_test(random_frames_survive),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
