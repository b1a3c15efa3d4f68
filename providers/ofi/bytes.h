/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ofi/bytes.h - what a body of bytes is written with and read with: neither goes beyond its end.
 *
 * A list x_FIELDS(F) is one row per field, in the order of the wire, so that what writes and what
 * reads cannot differ.  Rows are of members of `m':
 *   F_INT(field)	an unsigned integer of its own size, little-endian
 *   F_BOOL(field)	a byte, 0 or 1
 *   F_BYTES(field)	a whole array
 *   F_TEXT(field)	a whole array: printable ASCII, its end, then 0
 *   F_ADDR(field)	a union sim_sockaddr: IP version (0: none) and 0, then in network byte
 *			order a port and 16 bytes, of which IPv4 takes 4 and leaves 0.  What
 *			means nothing on another host, the scope, is not there.
 *   F_ZERO(n)		reserved
 */
#ifndef OFI_BYTES_H
#define OFI_BYTES_H

#include <assert.h>
#include <endian.h>
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "providers/soft/wire/address.h"

/* --- Writing.  A body has room for all that its writer may write: else that is cut off. --- */

struct bytes_writer {
	uint8_t *at;
	size_t left;
};

static inline void bytes_put(struct bytes_writer *w, const void *from, size_t n)
{
	assert(n <= w->left);
	if (n > w->left)
		n = w->left;
	memcpy(w->at, from, n);
	w->at += n;
	w->left -= n;
}

static inline void bytes_put_int(struct bytes_writer *w, uint64_t value, size_t size)
{
	value = htole64(value);
	bytes_put(w, &value, size);
}

static inline void bytes_put_zero(struct bytes_writer *w, size_t n)
{
	while (n--)
		bytes_put_int(w, 0, 1);
}

static inline bool bytes_printable(uint8_t c)
{
	return c >= ' ' && c <= '~';
}

/* The receiver takes nothing else than it can print; the name of a host may be anything. */
static inline void bytes_put_text(struct bytes_writer *w, const char *text, size_t size)
{
	size_t len = strnlen(text, size - 1);

	for (size_t i = 0; i < len; i++)
		bytes_put_int(w, bytes_printable((uint8_t)text[i]) ? (uint8_t)text[i] : '?', 1);
	bytes_put_zero(w, size - len);
}

static inline void bytes_put_addr(struct bytes_writer *w, const union sim_sockaddr *addr)
{
	uint8_t port[2] = { 0 }, ip[16] = { 0 }, version = 0;

	if (addr->sa.sa_family == AF_INET || addr->sa.sa_family == AF_INET6) {
		version = addr->sa.sa_family == AF_INET ? 4 : 6;
		sim_addr_put_ip(addr, version, port, ip);
	}
	bytes_put_int(w, version, 1);
	bytes_put_zero(w, 1);
	bytes_put(w, port, sizeof(port));
	bytes_put(w, ip, sizeof(ip));
}

#define PUT_INT(field) bytes_put_int(w, m->field, sizeof(m->field));
#define PUT_BOOL(field) bytes_put_int(w, m->field, 1);
#define PUT_BYTES(field) bytes_put(w, m->field, sizeof(m->field));
#define PUT_TEXT(field) bytes_put_text(w, m->field, sizeof(m->field));
#define PUT_ADDR(field) bytes_put_addr(w, &m->field);
#define PUT_ZERO(n) bytes_put_zero(w, n);

/* --- Reading.  What is wrong stays: a caller looks at it once, at the end. --- */

struct bytes_reader {
	const uint8_t *at;
	size_t left;
	bool bad;
};

/* Zeros if there is too little. */
static inline void bytes_get(struct bytes_reader *r, void *to, size_t n)
{
	if (r->bad || n > r->left) {
		r->bad = true;
		memset(to, 0, n);
		return;
	}
	memcpy(to, r->at, n);
	r->at += n;
	r->left -= n;
}

static inline uint64_t bytes_get_int(struct bytes_reader *r, size_t size)
{
	uint64_t value = 0;

	bytes_get(r, &value, size);
	return le64toh(value);
}

static inline bool bytes_get_bool(struct bytes_reader *r)
{
	uint64_t value = bytes_get_int(r, 1);

	r->bad |= value > 1;
	return value;
}

static inline void bytes_get_zero(struct bytes_reader *r, size_t n)
{
	while (n--)
		r->bad |= bytes_get_int(r, 1) != 0;
}

static inline void bytes_get_text(struct bytes_reader *r, char *text, size_t size)
{
	size_t len;

	bytes_get(r, text, size);
	len = strnlen(text, size);
	r->bad |= len == size;
	for (size_t i = 0; i < size; i++)
		r->bad |= i < len ? !bytes_printable((uint8_t)text[i]) : text[i] != 0;
}

static inline void bytes_get_addr(struct bytes_reader *r, union sim_sockaddr *ret_addr)
{
	static const uint8_t zero[16];
	uint8_t version = (uint8_t)bytes_get_int(r, 1), used, port[2], ip[16];

	bytes_get_zero(r, 1);
	bytes_get(r, port, sizeof(port));
	bytes_get(r, ip, sizeof(ip));
	memset(ret_addr, 0, sizeof(*ret_addr));
	if (version == 4 || version == 6)
		*ret_addr = sim_addr_get_ip(version, port, ip);
	else
		r->bad |= version || port[0] || port[1];
	used = version == 6 ? 16 : version;
	if (used <= sizeof(ip))
		r->bad |= memcmp(ip + used, zero, sizeof(ip) - used) != 0;
}

/* Is it right, and nothing behind? */
static inline bool bytes_complete(const struct bytes_reader *r)
{
	return !r->bad && !r->left;
}

#define GET_INT(field) m->field = (__typeof__(m->field))bytes_get_int(r, sizeof(m->field));
#define GET_BOOL(field) m->field = bytes_get_bool(r);
#define GET_BYTES(field) bytes_get(r, m->field, sizeof(m->field));
#define GET_TEXT(field) bytes_get_text(r, m->field, sizeof(m->field));
#define GET_ADDR(field) bytes_get_addr(r, &m->field);
#define GET_ZERO(n) bytes_get_zero(r, n);

/* put_NAME() and get_NAME(), which write and read the fields of a struct. */
#define BYTES_FIELDS(name, type, fields)							\
	static void put_##name(struct bytes_writer *w, const type *m)				\
	{											\
		fields(PUT)									\
	}											\
	static void get_##name(struct bytes_reader *r, type *m)					\
	{											\
		fields(GET)									\
	}

/*
 * The same, and the encoder and the decoder of the bytes that are that: a body, or a header before
 * something else.  valid is said of `m'.
 */
#define BYTES_CODER(name, type, size, fields, fits, valid)					\
	BYTES_FIELDS(name, type, fields)							\
	void ofi_##name##_encode(const type *m, uint8_t bytes[size])				\
	{											\
		struct bytes_writer w = { bytes, size };					\
												\
		put_##name(&w, m);								\
		assert(!w.left);								\
	}											\
	int ofi_##name##_decode(const uint8_t *bytes, size_t len, type *m)			\
	{											\
		struct bytes_reader r = { bytes, (fits) ? (size) : 0, false };			\
												\
		memset(m, 0, sizeof(*m));							\
		get_##name(&r, m);								\
		return bytes_complete(&r) && (valid) ? 0 : -EBADMSG;				\
	}
#define BYTES_BODY(name, type, size, fields, valid)						\
	BYTES_CODER(name, type, size, fields, len == (size), valid)
#define BYTES_HEADER(name, type, size, fields, valid)						\
	BYTES_CODER(name, type, size, fields, len >= (size), valid)

#endif
