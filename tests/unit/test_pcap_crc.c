/* SPDX-License-Identifier: BSD-2-Clause */
/* The checks of captured packets, against the examples of their specifications. */
#include "config.h"

#include <endian.h>
#include <stdbool.h>
#include <string.h>

#include "providers/soft/watch/pcap/pcap_crc.h"
#include "tests/cmocka_all.h"

/* RFC 3720, B.4: 32 bytes, all equal, or counting up or down, and a read command. */
static const uint8_t zeros[32];
static const uint8_t ones[32] = { [0 ... 31] = 0xff };
static const uint8_t up[32] = { 0,  1,	2,  3,	4,  5,	6,  7,	8,  9,	10, 11, 12, 13, 14, 15,
				16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31 };
static const uint8_t down[32] = { 31, 30, 29, 28, 27, 26, 25, 24, 23, 22, 21, 20, 19, 18, 17, 16,
				  15, 14, 13, 12, 11, 10, 9,  8,  7,  6,  5,  4,  3,  2,  1,  0 };
static const uint8_t read_command[48] = {
	[0] = 0x01, [1] = 0xc0, [16] = 0x14, [22] = 0x04, [27] = 0x14, [31] = 0x18, [32] = 0x28,
	[40] = 0x02,
};

/*
 * IBTA vol. 1, 7.8.1: an RDMA WRITE of 14 bytes in a local packet, with ones
 * where switches may write.
 */
static const uint8_t rdma_write[] = {
	0xf0, 0x12, 0x37, 0x5c, 0x00, 0x0e, 0x17, 0xd2,				/* LRH */
	0x0a, 0x20, 0x24, 0x87, 0xff, 0x87, 0xb1, 0xb3, 0x00, 0x0d, 0xec, 0x2a,	/* BTH */
	0x01, 0x71, 0x0a, 0x1c, 0x01, 0x5d, 0x40, 0x02,				/* RETH */
	0x38, 0xf2, 0x7a, 0x05, 0x00, 0x00, 0x00, 0x0e,
	0xbb, 0x88, 0x4d, 0x85, 0xfd, 0x5c, 0xfb, 0xa4,
	0x72, 0x8b, 0xc0, 0x69, 0x0e, 0xd4, 0x00, 0x00,
};

typedef uint32_t (*crc_fn)(uint32_t crc, const void *data, size_t len);

/* As the four bytes are sent. */
static const struct {
	crc_fn fn;
	const void *data;
	size_t len;
	uint8_t sent[4];
} known[] = {
	{ sim_crc32, "123456789", 9, { 0x26, 0x39, 0xf4, 0xcb } },
	{ sim_crc32, rdma_write, sizeof(rdma_write), { 0x96, 0x25, 0xb7, 0x5a } },
	{ sim_crc32c, "123456789", 9, { 0x83, 0x92, 0x06, 0xe3 } },
	{ sim_crc32c, zeros, sizeof(zeros), { 0xaa, 0x36, 0x91, 0x8a } },
	{ sim_crc32c, ones, sizeof(ones), { 0x43, 0xab, 0xa8, 0x62 } },
	{ sim_crc32c, up, sizeof(up), { 0x4e, 0x79, 0xdd, 0x46 } },
	{ sim_crc32c, down, sizeof(down), { 0x5c, 0xdb, 0x3f, 0x11 } },
	{ sim_crc32c, read_command, sizeof(read_command), { 0x56, 0x3a, 0x96, 0xd9 } },
};

static void crcs_are_those_of_the_specifications(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		const uint8_t *data = known[i].data;
		uint32_t crc = htole32(known[i].fn(0, data, known[i].len));

		assert_memory_equal(&crc, known[i].sent, sizeof(crc));
		/* The same in parts. */
		for (size_t first = 0; first <= known[i].len; first++) {
			crc = known[i].fn(0, data, first);
			crc = htole32(known[i].fn(crc, data + first, known[i].len - first));
			assert_memory_equal(&crc, known[i].sent, sizeof(crc));
		}
	}
}

/*
 * IBTA vol. 1, 7.8.2: x^16 + x^12 + x^3 + x + 1, the register all ones at first
 * and inverted at the end, bits as they are sent: bit 0 of each byte first.
 */
static uint16_t shift_register(const uint8_t *data, size_t len)
{
	uint16_t reg = 0xffff, sent = 0;

	for (size_t bit = 0; bit < 8 * len; bit++) {
		bool feedback = (reg >> 15 ^ data[bit / 8] >> bit % 8) & 1;

		reg = (uint16_t)(reg << 1 ^ (feedback ? 0x100b : 0));
	}
	/* The highest power goes first, as bit 0 of the first byte. */
	for (int bit = 0; bit < 16; bit++)
		sent |= (uint16_t)((~reg >> (15 - bit) & 1) << bit);
	return sent;
}

static void vcrc_is_the_shift_register(void **state)
{
	uint8_t packet[sizeof(rdma_write) + 2];
	uint16_t vcrc, good = 0;

	(void)state;
	for (size_t len = 0; len <= sizeof(rdma_write); len++)
		assert_int_equal(sim_vcrc(rdma_write, len), shift_register(rdma_write, len));

	/* What a receiver computes over a whole packet is the same for all that are intact. */
	for (size_t len = 0; len <= sizeof(rdma_write); len++) {
		memcpy(packet, rdma_write, len);
		vcrc = htole16(sim_vcrc(rdma_write, len));
		memcpy(packet + len, &vcrc, sizeof(vcrc));
		if (!len)
			good = sim_vcrc(packet, 2);
		assert_int_equal(sim_vcrc(packet, len + 2), good);
		packet[len / 2] ^= 0x10;
		assert_int_not_equal(sim_vcrc(packet, len + 2), good);
	}
}

/* RFC 1071, 3. */
static void sums_are_those_of_the_rfc(void **state)
{
	static const uint8_t data[] = { 0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7, 0x80 };

	(void)state;
	assert_int_equal(sim_inet_fold(sim_inet_sum(0, data, 8)), 0x220d);
	for (size_t first = 0; first <= 8; first += 2)
		assert_int_equal(sim_inet_fold(sim_inet_sum(sim_inet_sum(0, data, first),
							    data + first, 8 - first)), 0x220d);
	/* An odd byte counts as if a zero came after it. */
	assert_int_equal(sim_inet_fold(sim_inet_sum(0, data, 9)), 0xa20c);
	assert_int_equal(sim_inet_fold(sim_inet_sum(0, data, 0)), 0xffff);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(crcs_are_those_of_the_specifications),
		cmocka_unit_test(vcrc_is_the_shift_register),
		cmocka_unit_test(sums_are_those_of_the_rfc),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
