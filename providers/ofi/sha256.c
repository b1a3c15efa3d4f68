/* SPDX-License-Identifier: BSD-2-Clause */
/* ofi/sha256.c - see sha256.h. */
#include "config.h"

#include <endian.h>
#include <string.h>

#include "sha256.h"

static const uint32_t rounds[64] = {
	0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
	0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
	0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
	0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
	0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
	0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
	0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
	0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

static uint32_t rotate(uint32_t x, unsigned int bits)
{
	return x >> bits | x << (32 - bits);
}

static void schedule(uint32_t w[64], const uint8_t block[SHA256_BLOCK])
{
	for (unsigned int t = 0; t < 16; t++) {
		memcpy(&w[t], block + 4 * (size_t)t, 4);
		w[t] = be32toh(w[t]);
	}
	for (unsigned int t = 16; t < 64; t++) {
		uint32_t s0 = rotate(w[t - 15], 7) ^ rotate(w[t - 15], 18) ^ w[t - 15] >> 3;
		uint32_t s1 = rotate(w[t - 2], 17) ^ rotate(w[t - 2], 19) ^ w[t - 2] >> 10;

		w[t] = w[t - 16] + s0 + w[t - 7] + s1;
	}
}

/* v is a..h of the standard. */
static void compress(uint32_t state[8], const uint8_t block[SHA256_BLOCK])
{
	uint32_t w[64], v[8];

	schedule(w, block);
	memcpy(v, state, sizeof(v));
	for (unsigned int t = 0; t < 64; t++) {
		uint32_t s1 = rotate(v[4], 6) ^ rotate(v[4], 11) ^ rotate(v[4], 25);
		uint32_t choice = (v[4] & v[5]) ^ (~v[4] & v[6]);
		uint32_t first = v[7] + s1 + choice + rounds[t] + w[t];
		uint32_t s0 = rotate(v[0], 2) ^ rotate(v[0], 13) ^ rotate(v[0], 22);
		uint32_t majority = (v[0] & v[1]) ^ (v[0] & v[2]) ^ (v[1] & v[2]);

		memmove(v + 1, v, 7 * sizeof(v[0]));
		v[4] += first;
		v[0] = first + s0 + majority;
	}
	for (unsigned int i = 0; i < 8; i++)
		state[i] += v[i];
}

void sha256_start(struct sha256 *hash)
{
	static const uint32_t first[8] = {
		0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
		0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19,
	};

	memcpy(hash->state, first, sizeof(first));
	hash->len = 0;
}

void sha256_add(struct sha256 *hash, const void *data, size_t len)
{
	const uint8_t *from = data;

	while (len) {
		size_t at = hash->len % SHA256_BLOCK, n = SHA256_BLOCK - at;

		if (n > len)
			n = len;
		memcpy(hash->block + at, from, n);
		hash->len += n;
		from += n;
		len -= n;
		if (at + n == SHA256_BLOCK)
			compress(hash->state, hash->block);
	}
}

void sha256_finish(struct sha256 *hash, uint8_t digest[SHA256_SIZE])
{
	static const uint8_t pad[SHA256_BLOCK] = { 0x80 };
	uint64_t bits = htobe64(hash->len * 8);
	size_t at = hash->len % SHA256_BLOCK;

	sha256_add(hash, pad, (at < 56 ? 56 : 56 + SHA256_BLOCK) - at);
	sha256_add(hash, &bits, sizeof(bits));
	for (unsigned int i = 0; i < 8; i++) {
		uint32_t word = htobe32(hash->state[i]);

		memcpy(digest + 4 * (size_t)i, &word, 4);
	}
}

void hmac_sha256_start(struct hmac_sha256 *hmac, const void *key, size_t key_len)
{
	uint8_t block[SHA256_BLOCK] = { 0 };

	if (key_len > sizeof(block)) {
		sha256_start(&hmac->inner);
		sha256_add(&hmac->inner, key, key_len);
		sha256_finish(&hmac->inner, block);
	} else if (key_len) {
		memcpy(block, key, key_len);
	}
	for (unsigned int i = 0; i < sizeof(block); i++)
		block[i] ^= 0x36;
	sha256_start(&hmac->inner);
	sha256_add(&hmac->inner, block, sizeof(block));
	for (unsigned int i = 0; i < sizeof(block); i++)
		block[i] ^= 0x36 ^ 0x5c;
	sha256_start(&hmac->outer);
	sha256_add(&hmac->outer, block, sizeof(block));
	explicit_bzero(block, sizeof(block));
}

void hmac_sha256_add(struct hmac_sha256 *hmac, const void *data, size_t len)
{
	sha256_add(&hmac->inner, data, len);
}

void hmac_sha256_finish(struct hmac_sha256 *hmac, uint8_t digest[SHA256_SIZE])
{
	sha256_finish(&hmac->inner, digest);
	sha256_add(&hmac->outer, digest, SHA256_SIZE);
	sha256_finish(&hmac->outer, digest);
	explicit_bzero(hmac, sizeof(*hmac));
}

bool sha256_equal(const uint8_t a[SHA256_SIZE], const uint8_t b[SHA256_SIZE])
{
	uint8_t differ = 0;

	for (unsigned int i = 0; i < SHA256_SIZE; i++)
		differ |= a[i] ^ b[i];
	return !differ;
}
