/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * HELLO, PORTS, CARRIER and REFUSED: known bytes, which were put together by hand, and everything
 * that is
 * none of them; and what the proof depends on.
 */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ofi_sample.h"
#include "providers/ofi/hello.h"
#include "providers/soft/shm/segment.h"
#include "tests/cmocka_all.h"

/* Where what is in golden_hello. */
#define VERSION_AT 4u
#define SLOT 24u
#define HAS_KEY 26u
#define NAME 32u
#define TRANSPORT 64u
#define WANT 128u
#define WANT_ADDR 140u
#define PORTS 160u
#define PORT 164u
#define ADDRESS 184u
#define ADDRESS_SIZE 24u
#define CARRIERS 232u
#define CARRIER 236u
#define CARRIER_LEN 304u

/* sample_hello() */
static const uint8_t golden_hello[] = {
	/* Magic, version; host; slot, has_key, 0, generation. */
	0x70, 0x63, 0x6d, 0xf1, 0x01, 0x00, 0x00, 0x00, 0x10, 0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17,
	0x18, 0x19, 0x1a, 0x1b, 0x1c, 0x1d, 0x1e, 0x1f, 0x23, 0x01, 0x01, 0x00, 0xef, 0xcd, 0xab, 0x89,
	/* Name, transport. */
	0x68, 0x6f, 0x73, 0x74, 0x61, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
	0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
	0x72, 0x6f, 0x63, 0x65, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
	0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
	/* Rules, token, nonce. */
	0x08, 0x07, 0x06, 0x05, 0x04, 0x03, 0x02, 0x01, 0x18, 0x17, 0x16, 0x15, 0x14, 0x13, 0x12, 0x11,
	0x80, 0x81, 0x82, 0x83, 0x84, 0x85, 0x86, 0x87, 0x88, 0x89, 0x8a, 0x8b, 0x8c, 0x8d, 0x8e, 0x8f,
	/* Want: kind, 0, slot, port space, 0, QP number, address. */
	0x03, 0x00, 0x00, 0x00, 0x06, 0x01, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x04, 0x00, 0x12, 0xb7,
	0x0a, 0x00, 0x00, 0x07, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
	/* Numbers of ports and addresses, 0; GUID, MAC, LID, MTU, active MTU, up. */
	0x01, 0x02, 0x00, 0x00,
	0x02, 0x02, 0xc9, 0xff, 0xfe, 0x01, 0x02, 0x03, 0x02, 0x02, 0xc9, 0x01, 0x02, 0x03,
	0x0b, 0x00, 0xdc, 0x05, 0x03, 0x01,
	/* IP version, 0, port 0, address, length of the prefix, port, 0. */
	0x04, 0x00, 0x00, 0x00, 0x0a, 0x00, 0x00, 0x08, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
	0x00, 0x00, 0x00, 0x00, 0x18, 0x00, 0x00, 0x00,
	0x06, 0x00, 0x00, 0x00, 0xfd, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
	0x00, 0x00, 0x00, 0x08, 0x40, 0x00, 0x00, 0x00,
	/* Number of carriers, 0; provider, protocol, format, length, 0, name. */
	0x01, 0x00, 0x00, 0x00,
	0x74, 0x63, 0x70, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
	0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
	0x72, 0x78, 0x6d, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
	0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
	0x02, 0x00, 0x00, 0x00, 0x04, 0x00, 0x00, 0x00, 0xc0, 0x00, 0x35, 0xff,
};

static const struct ofi_refused sample_refused = {
	.reason = OFI_REFUSED_VERSION, .value = 0x01020304, .text = "too old",
};
static const uint8_t golden_refused[OFI_REFUSED_SIZE] = {
	0x01, 0x00, 0x00, 0x00, 0x04, 0x03, 0x02, 0x01, 't', 'o', 'o', ' ', 'o', 'l', 'd',
};

static struct ofi_hello hello;	/* what was decoded last */
static unsigned int version;

/* Decode from a block of exactly that size, so that a sanitizer sees a byte too many. */
static void *exactly(const uint8_t *bytes, size_t len)
{
	uint8_t *block = malloc(len ? len : 1);

	assert_non_null(block);
	memcpy(block, bytes, len);
	return block;
}

static int decode_hello(const uint8_t *bytes, size_t len)
{
	uint8_t *block = exactly(bytes, len);
	int r;

	memset(&hello, 0x5a, sizeof(hello));
	r = ofi_hello_decode(block, len, &hello, &version);
	free(block);
	return r;
}

static int decode_ports(const uint8_t *bytes, size_t len)
{
	uint8_t *block = exactly(bytes, len);
	int r;

	memset(&hello.ports, 0x5a, sizeof(hello.ports));
	r = ofi_ports_decode(block, len, &hello.ports);
	free(block);
	return r;
}

static int decode_refused(const uint8_t *bytes, size_t len)
{
	struct ofi_refused refused;
	uint8_t *block = exactly(bytes, len);
	int r = ofi_refused_decode(block, len, &refused);

	free(block);
	return r;
}

/* The three bodies, PORTS being that of golden_hello. */
static const struct body {
	int (*decode)(const uint8_t *bytes, size_t len);
	const uint8_t *golden;
	size_t len;
} bodies[] = {
	{ decode_hello, golden_hello, sizeof(golden_hello) },
	{ decode_ports, golden_hello + PORTS, CARRIERS - PORTS },
	{ decode_refused, golden_refused, sizeof(golden_refused) },
};

/* Decode the golden bytes with some of them replaced. */
static int decode_changed(const struct body *body, size_t at, const void *bytes, size_t len)
{
	uint8_t copy[sizeof(golden_hello)];

	assert_true(at + len <= body->len);
	memcpy(copy, body->golden, body->len);
	memcpy(copy + at, bytes, len);
	return body->decode(copy, body->len);
}

static int round_trip(const struct ofi_hello *sent)
{
	uint8_t bytes[OFI_HELLO_MAX], again[OFI_HELLO_MAX];
	size_t len = ofi_hello_encode(sent, bytes);
	int r = decode_hello(bytes, len);

	if (!r) {
		assert_uint_equal(ofi_hello_encode(&hello, again), len);
		assert_memory_equal(again, bytes, len);
	}
	return r;
}

static void known_bytes(void **state)
{
	static struct ofi_hello sample;
	uint8_t bytes[OFI_HELLO_MAX];
	struct ofi_refused refused;

	(void)state;
	sample_hello(&sample);
	memset(bytes, 0xee, sizeof(bytes));
	assert_uint_equal(ofi_hello_encode(&sample, bytes), sizeof(golden_hello));
	assert_memory_equal(bytes, golden_hello, sizeof(golden_hello));
	assert_uint_equal(bytes[sizeof(golden_hello)], 0xee);
	assert_int_equal(decode_hello(golden_hello, sizeof(golden_hello)), 0);
	assert_memory_equal(&hello, &sample, sizeof(sample));
	assert_uint_equal(version, OFI_VERSION);

	assert_uint_equal(ofi_ports_encode(&sample.ports, bytes), CARRIERS - PORTS);
	assert_memory_equal(bytes, golden_hello + PORTS, CARRIERS - PORTS);
	assert_int_equal(decode_ports(bytes, CARRIERS - PORTS), 0);
	assert_memory_equal(&hello.ports, &sample.ports, sizeof(sample.ports));

	ofi_refused_encode(&sample_refused, bytes);
	assert_memory_equal(bytes, golden_refused, sizeof(golden_refused));
	assert_int_equal(ofi_refused_decode(bytes, sizeof(golden_refused), &refused), 0);
	assert_memory_equal(&refused, &sample_refused, sizeof(refused));
}

static void nothing_and_everything(void **state)
{
	static struct ofi_hello sent;
	struct ofi_ports *ports = &sent.ports;

	(void)state;
	memset(&sent, 0, sizeof(sent));
	assert_int_equal(round_trip(&sent), 0);
	assert_memory_equal(&hello, &sent, sizeof(sent));

	sample_hello(&sent);
	ports->num_ports = OFI_MAX_PORTS;
	ports->ports[1] = ports->ports[0];
	ports->num_addresses = OFI_MAX_ADDRESSES;
	for (unsigned int i = 2; i < OFI_MAX_ADDRESSES; i++) {
		ports->addresses[i] = ports->addresses[i % 2];
		ports->addresses[i].port = (uint8_t)(i / 2 % OFI_MAX_PORTS);
	}
	sent.num_carriers = OFI_MAX_CARRIERS;
	for (unsigned int i = 0; i < OFI_MAX_CARRIERS; i++) {
		sent.carriers[i].len = OFI_CARRIER_NAME;
		memset(sent.carriers[i].name, (int)i + 1, OFI_CARRIER_NAME);
		memset(sent.carriers[i].provider, '~', OFI_NAME - 1);
	}
	assert_int_equal(round_trip(&sent), 0);
	assert_memory_equal(&hello, &sent, sizeof(sent));
}

static void cut_or_too_long(void **state)
{
	uint8_t longer[sizeof(golden_hello) + 1] = { 0 };

	(void)state;
	for (size_t b = 0; b < ARRAY_SIZE(bodies); b++) {
		const struct body *body = &bodies[b];

		for (size_t len = 0; len < body->len; len++)
			assert_int_equal(body->decode(body->golden, len), -EBADMSG);
		assert_int_equal(body->decode(body->golden, body->len), 0);
		memcpy(longer, body->golden, body->len);
		longer[body->len] = 0;
		assert_int_equal(body->decode(longer, body->len + 1), -EBADMSG);
	}
}

static void other_versions(void **state)
{
	uint8_t bytes[sizeof(golden_hello)];

	(void)state;
	memcpy(bytes, golden_hello, sizeof(bytes));
	for (unsigned int bit = 0; bit < 8 * sizeof(uint32_t); bit++) {
		bytes[VERSION_AT + bit / 8] ^= (uint8_t)(1u << bit % 8);
		/* All that is known of them. */
		for (size_t len = VERSION_AT + 4; len <= sizeof(bytes); len++)
			assert_int_equal(decode_hello(bytes, len), -EPROTONOSUPPORT);
		assert_uint_equal(version, OFI_VERSION ^ 1u << bit);
		assert_int_equal(decode_hello(bytes, VERSION_AT + 3), -EBADMSG);
		bytes[VERSION_AT + bit / 8] ^= (uint8_t)(1u << bit % 8);
	}
	for (unsigned int bit = 0; bit < 8 * VERSION_AT; bit++) {
		bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
		assert_int_equal(decode_hello(bytes, sizeof(bytes)), -EBADMSG);
		bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
	}
}

/* Bits that must be 0, and those of booleans above the first. */
static void reserved_bytes(void **state)
{
	static const struct {
		unsigned int body;
		size_t at, len;
	} reserved[] = {
		{ 0, HAS_KEY + 1, 1 }, { 0, WANT + 1, 1 }, { 0, WANT + 6, 2 }, { 0, WANT_ADDR + 1, 1 },
		{ 0, WANT_ADDR + 8, 12 }, { 0, PORTS + 2, 2 }, { 0, ADDRESS + 1, 3 },
		{ 0, ADDRESS + 8, 12 }, { 0, ADDRESS + 22, 2 }, { 0, ADDRESS + ADDRESS_SIZE + 1, 3 },
		{ 0, ADDRESS + ADDRESS_SIZE + 22, 2 }, { 0, CARRIERS + 1, 3 },
		{ 0, CARRIER_LEN + 2, 2 }, { 1, 2, 2 }, { 2, 1, 3 },
	};
	static const size_t booleans[] = { HAS_KEY, PORT + 19 };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(reserved); i++)
		for (size_t bit = 0; bit < 8 * reserved[i].len; bit++) {
			uint8_t byte = (uint8_t)(1u << bit % 8);

			assert_int_equal(decode_changed(&bodies[reserved[i].body],
							reserved[i].at + bit / 8, &byte, 1), -EBADMSG);
		}
	for (size_t i = 0; i < ARRAY_SIZE(booleans); i++)
		for (unsigned int value = 0; value < 256; value++) {
			uint8_t byte = (uint8_t)value;

			assert_int_equal(decode_changed(&bodies[0], booleans[i], &byte, 1),
					 byte > 1 ? -EBADMSG : 0);
		}
}

/* Numbers and lengths that do not fit to what is there, or to what may be. */
static void wrong_numbers(void **state)
{
	static const struct {
		size_t at;
		uint16_t right, most;
	} numbers[] = {
		{ PORTS, 1, OFI_MAX_PORTS }, { PORTS + 1, 2, OFI_MAX_ADDRESSES },
		{ CARRIERS, 1, OFI_MAX_CARRIERS }, { CARRIER_LEN, 4, OFI_CARRIER_NAME },
	};
	uint8_t bytes[OFI_HELLO_MAX];

	(void)state;
	memset(bytes, 0, sizeof(bytes));
	memcpy(bytes, golden_hello, sizeof(golden_hello));
	for (size_t i = 0; i < ARRAY_SIZE(numbers); i++) {
		uint16_t wrong[] = { (uint16_t)(numbers[i].right - 1), (uint16_t)(numbers[i].right + 1),
				     (uint16_t)(numbers[i].most + 1), 255, UINT16_MAX };
		size_t size = numbers[i].at == CARRIER_LEN ? 2 : 1;

		for (size_t w = 0; w < ARRAY_SIZE(wrong); w++) {
			memcpy(bytes + numbers[i].at, &(uint16_t){ htole16(wrong[w]) }, size);
			assert_int_equal(decode_hello(bytes, sizeof(golden_hello)), -EBADMSG);
			assert_int_equal(decode_hello(bytes, sizeof(bytes)), -EBADMSG);
		}
		memcpy(bytes + numbers[i].at, golden_hello + numbers[i].at, size);
	}
}

/* One more than there may be, and all of it is there. */
static void one_too_many(void **state)
{
	static const struct {
		size_t number, size;	/* where it is, and how long */
		size_t first, len;	/* the one that is repeated up to the most */
		uint16_t most;
	} cases[] = {
		{ PORTS, 1, PORT, ADDRESS - PORT, OFI_MAX_PORTS },
		{ PORTS + 1, 1, ADDRESS, ADDRESS_SIZE, OFI_MAX_ADDRESSES },
		{ CARRIERS, 1, CARRIER, sizeof(golden_hello) - CARRIER, OFI_MAX_CARRIERS },
		{ CARRIER_LEN, 2, sizeof(golden_hello) - 1, 1, OFI_CARRIER_NAME },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		size_t there = golden_hello[cases[i].number], end = sizeof(golden_hello);
		uint8_t bytes[OFI_HELLO_MAX];

		memcpy(bytes, golden_hello, end);
		for (size_t number = there + 1; number <= cases[i].most + 1u; number++) {
			uint16_t value = htole16((uint16_t)number);
			uint8_t *next = bytes + cases[i].first + cases[i].len;

			memmove(next, bytes + cases[i].first, end - cases[i].first);
			end += cases[i].len;
			memcpy(bytes + cases[i].number, &value, cases[i].size);
			assert_int_equal(decode_hello(bytes, end),
					 number > cases[i].most ? -EBADMSG : 0);
		}
	}
}

static void texts(void **state)
{
	static const struct {
		unsigned int body;
		size_t at;
	} places[] = {
		{ 0, NAME }, { 0, TRANSPORT }, { 0, CARRIER }, { 0, CARRIER + OFI_NAME }, { 2, 8 },
	};
	char text[OFI_NAME];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
		const struct body *body = &bodies[places[i].body];

		/* Each character, first and last. */
		for (unsigned int c = 1; c < 256; c++) {
			bool good = c >= 0x20 && c < 0x7f;

			memset(text, 0, sizeof(text));
			text[0] = (char)c;
			assert_int_equal(decode_changed(body, places[i].at, text, OFI_NAME),
					 good ? 0 : -EBADMSG);
			memset(text, 'a', OFI_NAME - 1);
			text[OFI_NAME - 2] = (char)c;
			assert_int_equal(decode_changed(body, places[i].at, text, OFI_NAME),
					 good ? 0 : -EBADMSG);
			/* No end. */
			text[OFI_NAME - 1] = (char)c;
			assert_int_equal(decode_changed(body, places[i].at, text, OFI_NAME), -EBADMSG);
		}
		/* Behind the end. */
		for (size_t at = 1; at < OFI_NAME; at++) {
			memset(text, 0, sizeof(text));
			text[at] = 'a';
			assert_int_equal(decode_changed(body, places[i].at, text, OFI_NAME), -EBADMSG);
		}
	}
}

/* Names of one's own host that a peer would not take. */
static void own_texts(void **state)
{
	static struct ofi_hello sent;

	(void)state;
	sample_hello(&sent);
	strcpy(sent.name, "m\xc3\xbcller\n\x7f");
	memset(sent.transport, 'x', sizeof(sent.transport));
	assert_int_equal(round_trip(&sent), 0);
	assert_string_equal(hello.name, "m??ller??");
	assert_uint_equal(strlen(hello.transport), OFI_NAME - 1);
}

static void wants(void **state)
{
	static const struct {
		uint8_t kind;
		uint16_t slot, ps;
		uint32_t qpn;
		const char *addr;
		uint16_t port;
		int ret;
	} cases[] = {
		{ OFI_WANT_ANY, 0, 0, 0, "", 0, 0 },
		{ OFI_WANT_ANY, 1, 0, 0, "", 0, -EBADMSG },
		{ OFI_WANT_ANY, 0, RDMA_PS_TCP, 0, "", 0, -EBADMSG },
		{ OFI_WANT_ANY, 0, 0, 1, "", 0, -EBADMSG },
		{ OFI_WANT_ANY, 0, 0, 0, "10.0.0.1", 0, -EBADMSG },
		{ OFI_WANT_SLOT, 0, 0, 0, "", 0, 0 },
		{ OFI_WANT_SLOT, SIM_MAX_SLOTS - 1, 0, 0, "", 0, 0 },
		{ OFI_WANT_SLOT, SIM_MAX_SLOTS, 0, 0, "", 0, -EBADMSG },
		{ OFI_WANT_SLOT, UINT16_MAX, 0, 0, "", 0, -EBADMSG },
		{ OFI_WANT_SLOT, 0, 0, 1, "", 0, -EBADMSG },
		{ OFI_WANT_QPN, 0, 0, 0xffffff, "", 0, 0 },
		{ OFI_WANT_QPN, 0, 0, 0x1000000, "", 0, -EBADMSG },
		{ OFI_WANT_QPN, 1, 0, 1, "", 0, -EBADMSG },
		{ OFI_WANT_SERVICE, 0, RDMA_PS_TCP, 0, "10.0.0.1", 1, 0 },
		{ OFI_WANT_SERVICE, 0, RDMA_PS_UDP, 0, "fd00::1", 0xffff, 0 },
		{ OFI_WANT_SERVICE, 0, RDMA_PS_IB, 0, "fe80::1", 0, 0 },
		{ OFI_WANT_SERVICE, 0, RDMA_PS_IPOIB, 0, "10.0.0.1", 1, 0 },
		{ OFI_WANT_SERVICE, 0, 0, 0, "10.0.0.1", 1, -EBADMSG },
		{ OFI_WANT_SERVICE, 0, RDMA_PS_TCP + 1, 0, "10.0.0.1", 1, -EBADMSG },
		{ OFI_WANT_SERVICE, 0, RDMA_PS_TCP, 0, "", 0, -EBADMSG },
		{ OFI_WANT_SERVICE, 0, RDMA_PS_TCP, 0, "127.0.0.1", 1, -EBADMSG },
		{ OFI_WANT_SERVICE, 0, RDMA_PS_TCP, 1, "10.0.0.1", 1, -EBADMSG },
		{ OFI_WANT_SOCKET, 0, 0, 0, "10.0.0.1", 1, 0 },
		{ OFI_WANT_SOCKET, 0, RDMA_PS_TCP, 0, "10.0.0.1", 1, -EBADMSG },
		{ OFI_WANT_SOCKET, 0, 0, 0, "::1", 1, -EBADMSG },
		{ OFI_WANT_KINDS, 0, 0, 0, "", 0, -EBADMSG },
		{ 0xff, 0, 0, 0, "", 0, -EBADMSG },
	};
	static struct ofi_hello sent;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		sample_hello(&sent);
		sent.want = (struct ofi_want){
			.kind = cases[i].kind, .slot = cases[i].slot, .ps = cases[i].ps,
			.qpn = cases[i].qpn, .addr = sample_addr(cases[i].addr, cases[i].port),
		};
		assert_int_equal(round_trip(&sent), cases[i].ret);
	}
}

/* Nothing of an address that is not there. */
static void no_address(void **state)
{
	uint8_t want[PORTS - WANT] = { OFI_WANT_ANY };

	(void)state;
	assert_int_equal(decode_changed(&bodies[0], WANT, want, sizeof(want)), 0);
	for (size_t at = WANT_ADDR - WANT; at < sizeof(want); at++)
		for (unsigned int value = 1; value < 256; value++) {
			want[at] = (uint8_t)value;
			assert_int_equal(decode_changed(&bodies[0], WANT, want, sizeof(want)),
					 -EBADMSG);
			want[at] = 0;
		}
}

static void addresses(void **state)
{
	static const struct {
		const char *addr;
		uint16_t port;
		uint8_t prefix_len, of_port;
		int ret;
	} cases[] = {
		{ "10.0.0.1", 0, 0, 0, 0 },
		{ "10.0.0.1", 0, 32, 0, 0 },
		{ "10.0.0.1", 0, 33, 0, -EBADMSG },
		{ "10.0.0.1", 0, 24, 1, -EBADMSG },
		{ "10.0.0.1", 1, 24, 0, -EBADMSG },
		{ "fe80::1", 0, 128, 0, 0 },
		{ "fe80::1", 0, 129, 0, -EBADMSG },
		{ "fe80::1", 0, 64, 0xff, -EBADMSG },
		{ "", 0, 0, 0, -EBADMSG },
		{ "0.0.0.0", 0, 24, 0, -EBADMSG },
		{ "127.1.2.3", 0, 8, 0, -EBADMSG },
		{ "224.0.0.1", 0, 24, 0, -EBADMSG },
		{ "239.255.255.255", 0, 24, 0, -EBADMSG },
		{ "255.255.255.255", 0, 24, 0, -EBADMSG },
		{ "::", 0, 64, 0, -EBADMSG },
		{ "::1", 0, 64, 0, -EBADMSG },
		{ "ff02::1", 0, 64, 0, -EBADMSG },
		{ "::ffff:127.0.0.1", 0, 64, 0, -EBADMSG },
		{ "::ffff:10.0.0.1", 0, 64, 0, -EBADMSG },
	};
	static struct ofi_hello sent;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		sample_hello(&sent);
		sent.ports.addresses[1] = (struct ofi_address){
			.addr = sample_addr(cases[i].addr, cases[i].port),
			.prefix_len = cases[i].prefix_len, .port = cases[i].of_port,
		};
		assert_int_equal(round_trip(&sent), cases[i].ret);
	}
	/* Of no family, or of one that is not sent. */
	for (unsigned int value = 0; value < 256; value++) {
		uint8_t ip_version = (uint8_t)value;

		/* Addresses of IPv4 are IPv6 addresses with zeros at the end. */
		assert_int_equal(decode_changed(&bodies[0], ADDRESS, &ip_version, 1),
				 ip_version == 4 || ip_version == 6 ? 0 : -EBADMSG);
	}
	sample_hello(&sent);
	memset(&sent.want.addr, 0, sizeof(sent.want.addr));
	sent.want.addr.ib.sib_family = AF_IB;
	assert_int_equal(round_trip(&sent), -EBADMSG);
	/* The scope means nothing there. */
	sample_hello(&sent);
	sent.ports.addresses[1].addr.in6.sin6_scope_id = 3;
	assert_int_equal(round_trip(&sent), 0);
	assert_uint_equal(hello.ports.addresses[1].addr.in6.sin6_scope_id, 0);
}

/* An integer in golden_hello or golden_refused, and a value of it. */
static void values(void **state)
{
	static const struct {
		unsigned int body;
		size_t at, size;
		uint16_t value;
		int ret;
	} cases[] = {
		{ 0, SLOT, 2, SIM_MAX_SLOTS - 1, 0 }, { 0, SLOT, 2, SIM_MAX_SLOTS, -EBADMSG },
		{ 0, SLOT, 2, UINT16_MAX, -EBADMSG },
		{ 0, PORT + 14, 2, 0, 0 }, { 0, PORT + 14, 2, 0xbfff, 0 },
		{ 0, PORT + 14, 2, 0xc000, -EBADMSG }, { 0, PORT + 14, 2, 0xffff, -EBADMSG },
		{ 0, PORT + 18, 1, 0, -EBADMSG }, { 0, PORT + 18, 1, IBV_MTU_256, 0 },
		{ 0, PORT + 18, 1, IBV_MTU_4096, 0 }, { 0, PORT + 18, 1, IBV_MTU_4096 + 1, -EBADMSG },
		{ 2, 0, 1, 0, -EBADMSG }, { 2, 0, 1, OFI_REFUSALS - 1, 0 },
		{ 2, 0, 1, OFI_REFUSALS, -EBADMSG }, { 2, 0, 1, 255, -EBADMSG },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		assert_int_equal(decode_changed(&bodies[cases[i].body], cases[i].at,
						&(uint16_t){ htole16(cases[i].value) }, cases[i].size),
				 cases[i].ret);
}

static void proof_of(const char *key, bool initiator, const uint8_t *first, size_t first_len,
		     const char *second, char text[2 * SHA256_SIZE + 1])
{
	uint8_t proof[SHA256_SIZE];

	ofi_proof(key, strlen(key), initiator, first, first_len, (const uint8_t *)second,
		  strlen(second), proof);
	for (unsigned int i = 0; i < SHA256_SIZE; i++)
		(void)snprintf(text + 2 * (size_t)i, 3, "%02x", proof[i]);
}

static void proofs(void **state)
{
	/* Python: hmac.new(b'secret\n', role + sha256(first) + sha256(second), 'sha256') */
	static const char *const known[] = {
		"69cbad45ee6d652ccc0400ca332785127f8cddbbf9ca473abfd6bc459ca8b156",
		"5959083f15566e32a860c2b38871c08687c3d642b07c335f2a5c13e48eeb594a",
	};
	uint8_t other[sizeof(golden_hello) + 1];
	char text[2 * SHA256_SIZE + 1];

	(void)state;
	memcpy(other, golden_hello, sizeof(golden_hello));
	other[sizeof(golden_hello)] = 'a';
	for (unsigned int initiator = 0; initiator < 2; initiator++) {
		proof_of("secret\n", initiator, golden_hello, sizeof(golden_hello), "acceptor", text);
		assert_string_equal(text, known[initiator]);
		proof_of("secret", initiator, golden_hello, sizeof(golden_hello), "acceptor", text);
		assert_string_not_equal(text, known[initiator]);
		proof_of("secret\n", initiator, golden_hello, sizeof(golden_hello), "acceptos", text);
		assert_string_not_equal(text, known[initiator]);
		/* Where one ends and the other begins. */
		proof_of("secret\n", initiator, other, sizeof(other), "cceptor", text);
		assert_string_not_equal(text, known[initiator]);
		for (size_t bit = 0; bit < 8 * sizeof(golden_hello); bit++) {
			other[bit / 8] ^= (uint8_t)(1u << bit % 8);
			proof_of("secret\n", initiator, other, sizeof(golden_hello), "acceptor", text);
			assert_string_not_equal(text, known[initiator]);
			other[bit / 8] ^= (uint8_t)(1u << bit % 8);
		}
	}
}

/* READY has the name of the sender's endpoint, the others have nothing behind. */
static void carrier(void **state)
{
	static const uint8_t head[] = {
		0x01, 0x00, 0x02, 0x03, 0x08, 0x07, 0x06, 0x05, 0x04, 0x03, 0x02, 0x01,
	};
	const uint8_t *name = golden_hello + CARRIERS + 4;
	const size_t len = sizeof(head) + sizeof(golden_hello) - CARRIERS - 4;
	struct ofi_carrier_news news = {
		.what = OFI_CARRIER_READY, .window = 0x0302, .number = 0x0102030405060708,
	};
	struct ofi_carrier_news decoded;
	uint8_t bytes[OFI_CARRIER_MAX];
	static struct ofi_hello sample;

	(void)state;
	sample_hello(&sample);
	news.name = sample.carriers[0];
	assert_uint_equal(ofi_carrier_encode(&news, bytes), len);
	assert_memory_equal(bytes, head, sizeof(head));
	assert_memory_equal(bytes + sizeof(head), name, len - sizeof(head));
	assert_int_equal(ofi_carrier_decode(bytes, len, &decoded), 0);
	assert_memory_equal(&decoded, &news, sizeof(news));
	for (size_t cut = 0; cut < len; cut++) {
		uint8_t *block = exactly(bytes, cut);

		assert_int_equal(ofi_carrier_decode(block, cut, &decoded), -EBADMSG);
		free(block);
	}
	assert_int_equal(ofi_carrier_decode(bytes, len + 1, &decoded), -EBADMSG);
	bytes[1] = 1;
	assert_int_equal(ofi_carrier_decode(bytes, len, &decoded), -EBADMSG);
	bytes[1] = 0;
	for (unsigned int what = 0; what < 256; what++) {
		bytes[0] = (uint8_t)what;
		assert_int_equal(ofi_carrier_decode(bytes, sizeof(head), &decoded),
				 what > OFI_CARRIER_READY && what < OFI_CARRIER_WHATS ? 0 : -EBADMSG);
		assert_int_equal(ofi_carrier_decode(bytes, len, &decoded),
				 what == OFI_CARRIER_READY ? 0 : -EBADMSG);
	}
	news.name.len = OFI_CARRIER_NAME;
	assert_uint_equal(ofi_carrier_encode(&news, bytes), OFI_CARRIER_MAX);
	assert_int_equal(ofi_carrier_decode(bytes, OFI_CARRIER_MAX, &decoded), 0);
	/* Its length, 257. */
	bytes[sizeof(head) + 2 * OFI_NAME + 4]++;
	assert_int_equal(ofi_carrier_decode(bytes, OFI_CARRIER_MAX, &decoded), -EBADMSG);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(known_bytes),
		cmocka_unit_test(nothing_and_everything),
		cmocka_unit_test(cut_or_too_long),
		cmocka_unit_test(other_versions),
		cmocka_unit_test(reserved_bytes),
		cmocka_unit_test(wrong_numbers),
		cmocka_unit_test(one_too_many),
		cmocka_unit_test(texts),
		cmocka_unit_test(own_texts),
		cmocka_unit_test(wants),
		cmocka_unit_test(no_address),
		cmocka_unit_test(addresses),
		cmocka_unit_test(values),
		cmocka_unit_test(proofs),
		cmocka_unit_test(carrier),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
