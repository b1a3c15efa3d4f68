/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ofi/sha256.h - SHA-256 (FIPS 180-4) and HMAC-SHA-256 (RFC 2104), for the proof in the hello.
 *
 * Pure functions on the caller's memory; no locks, no allocations.
 */
#ifndef OFI_SHA256_H
#define OFI_SHA256_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SHA256_SIZE 32u
#define SHA256_BLOCK 64u

struct sha256 {
	uint32_t state[8];
	uint64_t len;			/* bytes so far */
	uint8_t block[SHA256_BLOCK];
};

void sha256_start(struct sha256 *hash);
void sha256_add(struct sha256 *hash, const void *data, size_t len);
void sha256_finish(struct sha256 *hash, uint8_t digest[SHA256_SIZE]);

struct hmac_sha256 {
	struct sha256 inner, outer;
};

void hmac_sha256_start(struct hmac_sha256 *hmac, const void *key, size_t key_len);
void hmac_sha256_add(struct hmac_sha256 *hmac, const void *data, size_t len);
/* Overwrites *hmac, which had secrets in it. */
void hmac_sha256_finish(struct hmac_sha256 *hmac, uint8_t digest[SHA256_SIZE]);

/* Its time does not depend on where the digests differ. */
bool sha256_equal(const uint8_t a[SHA256_SIZE], const uint8_t b[SHA256_SIZE]);

#endif
