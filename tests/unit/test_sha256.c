/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * SHA-256 and HMAC-SHA-256: the examples of FIPS 180-4 and the test cases of RFC 4231,
 * whole and in pieces of each size.
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "providers/ofi/sha256.h"
#include "tests/cmocka_all.h"

#define BYTES(text) (text), sizeof(text) - 1

static void hex(const uint8_t digest[SHA256_SIZE], char text[2 * SHA256_SIZE + 1])
{
	for (unsigned int i = 0; i < SHA256_SIZE; i++)
		(void)snprintf(text + 2 * (size_t)i, 3, "%02x", digest[i]);
}

static void digests(void **state)
{
	static const struct {
		const char *data;
		size_t len;
		const char *digest;
	} cases[] = {
		{ BYTES(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855" },
		{ BYTES("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad" },
		{ BYTES("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
		  "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1" },
		{ BYTES("abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmn"
			"hijklmnoijklmnopjklmnopqklmnopqrlmnopqrsmnopqrstnopqrstu"),
		  "cf5b16a778af8380036ce59e7b0492370b249b11e8f07a51afac45037afee9d1" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		for (size_t piece = 1; piece <= cases[i].len + 1; piece++) {
			uint8_t digest[SHA256_SIZE];
			char text[2 * SHA256_SIZE + 1];
			struct sha256 hash;

			sha256_start(&hash);
			for (size_t at = 0; at < cases[i].len; at += piece)
				sha256_add(&hash, cases[i].data + at,
					   at + piece < cases[i].len ? piece : cases[i].len - at);
			sha256_finish(&hash, digest);
			hex(digest, text);
			assert_string_equal(text, cases[i].digest);
		}
}

static void a_million_bytes(void **state)
{
	uint8_t digest[SHA256_SIZE], block[1000];
	char text[2 * SHA256_SIZE + 1];
	struct sha256 hash;

	(void)state;
	memset(block, 'a', sizeof(block));
	sha256_start(&hash);
	for (unsigned int i = 0; i < 1000; i++)
		sha256_add(&hash, block, sizeof(block));
	sha256_finish(&hash, digest);
	hex(digest, text);
	assert_string_equal(text, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

/* A key or data that is one byte, many times. */
struct bytes {
	const char *text;
	size_t len;
	char repeated;
};

static uint8_t *spell(const struct bytes *bytes)
{
	uint8_t *block = malloc(bytes->len ? bytes->len : 1);

	assert_non_null(block);
	if (bytes->text)
		memcpy(block, bytes->text, bytes->len);
	else
		memset(block, bytes->repeated, bytes->len);
	return block;
}

static void hmacs(void **state)
{
	static const struct {
		struct bytes key, data;
		const char *digest;	/* test case 5 has the first 128 bits */
	} cases[] = {
		{ { NULL, 20, 0x0b }, { BYTES("Hi There"), 0 },
		  "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7" },
		{ { BYTES("Jefe"), 0 }, { BYTES("what do ya want for nothing?"), 0 },
		  "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843" },
		{ { NULL, 20, (char)0xaa }, { NULL, 50, (char)0xdd },
		  "773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe" },
		{ { BYTES("\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\x0c\x0d\x0e\x0f\x10\x11\x12"
			  "\x13\x14\x15\x16\x17\x18\x19"), 0 }, { NULL, 50, (char)0xcd },
		  "82558a389a443c0ea4cc819899f2083a85f0faa3e578f8077a2e3ff46729665b" },
		{ { NULL, 20, 0x0c }, { BYTES("Test With Truncation"), 0 },
		  "a3b6167473100ee06e0c796c2955552b" },
		{ { NULL, 131, (char)0xaa },
		  { BYTES("Test Using Larger Than Block-Size Key - Hash Key First"), 0 },
		  "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54" },
		{ { NULL, 131, (char)0xaa },
		  { BYTES("This is a test using a larger than block-size key and a larger than "
			  "block-size data. The key needs to be hashed before being used by the "
			  "HMAC algorithm."), 0 },
		  "9b09ffa71b942fcb27635fbcd5b0e944bfdc63644f0713938a7f51535c3a35e2" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		uint8_t *key = spell(&cases[i].key), *data = spell(&cases[i].data);
		uint8_t digest[SHA256_SIZE];
		char text[2 * SHA256_SIZE + 1];
		struct hmac_sha256 hmac;

		hmac_sha256_start(&hmac, key, cases[i].key.len);
		hmac_sha256_add(&hmac, data, cases[i].data.len);
		hmac_sha256_finish(&hmac, digest);
		hex(digest, text);
		text[strlen(cases[i].digest)] = '\0';
		assert_string_equal(text, cases[i].digest);
		free(key);
		free(data);
	}
}

static void equal(void **state)
{
	uint8_t a[SHA256_SIZE] = { 1 }, b[SHA256_SIZE] = { 1 };

	(void)state;
	assert_true(sha256_equal(a, b));
	for (unsigned int i = 0; i < 8 * SHA256_SIZE; i++) {
		b[i / 8] ^= (uint8_t)(1u << i % 8);
		assert_false(sha256_equal(a, b));
		b[i / 8] ^= (uint8_t)(1u << i % 8);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(digests),
		cmocka_unit_test(a_million_bytes),
		cmocka_unit_test(hmacs),
		cmocka_unit_test(equal),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
