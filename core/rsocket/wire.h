/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rsocket/wire.h - what rsockets of both ends agree on, as librdmacm's have it.
 *
 * Streams.  Each end tells the other, in the private data of its request or
 * reply, where a table and a first receive buffer of its are.  Data goes by RDMA
 * writes into the buffer that the peer named last, one after the other until
 * it is full.  The peer names the next one by a write into the table.  Each
 * write of these comes with a message of 32 bits: as immediate data, or on iWARP,
 * which has none, as a send behind the write, in the byte order of its sender.
 *
 * On iWARP the end that accepted sends nothing before something came from the other.
 *
 * A message uses up a credit if it says that data or an entry for riowrite()
 * came.  An end grants credits as its count of such messages, 16 bits, up to
 * which the peer may go.
 *
 * Datagrams go between UD queue pairs behind a header with the sender's
 * address.  Until a sender knows the queue pair of an address, it sends to the
 * UDP port of that address, with its own queue pair in a header; a receiver
 * answers with a header alone.
 */
#ifndef POLYCM_CORE_RSOCKET_WIRE_H
#define POLYCM_CORE_RSOCKET_WIRE_H

#include <stdint.h>
#include <linux/types.h>

#define RSOCKET_WIRE_VERSION	1
#define RSOCKET_TABLE_BUFFERS	2	/* entries for buffers; those for riowrite() follow */

/* Where in its memory the sender of this lets be written. */
struct rsocket_range {
	uint64_t addr;
	uint32_t key;
	uint32_t length;
};

/* An entry of the table for riowrite(): what the peer calls offset is there. */
struct rsocket_iomap {
	uint64_t offset;
	struct rsocket_range range;
};

enum rsocket_hello_flags {
	RSOCKET_BIG_ENDIAN	= 1 << 0,	/* what is written into its memory is to be so */
	RSOCKET_HAS_IOMAPS	= 1 << 1,	/* num_iomaps is meant */
};

/* The private data; of AF_IB behind the request's addresses.  Ranges are big endian. */
struct rsocket_hello {
	uint8_t version;
	uint8_t flags;
	__be16 credits;
	uint8_t reserved[3];
	uint8_t num_iomaps;			/* rsocket_scale_down() */
	struct rsocket_range table;		/* length: how many of its entries are for buffers */
	struct rsocket_range buffer;
};

/* Numbers up to 128 as they are, larger ones by their eighth bit. */
static inline uint8_t rsocket_scale_down(uint32_t value)
{
	if (value > 0x7f00)
		value = 0x7f00;
	return (uint8_t)(value <= 0x80 ? value : 0x80 | value >> 8);
}

static inline uint32_t rsocket_scale_up(uint8_t value)
{
	return value <= 0x80 ? value : (value & 0x7fu) << 8;
}

/* A message is one of these and 29 bits. */
enum rsocket_message {
	RSOCKET_DATA		= 0,		/* so many bytes */
	RSOCKET_GRANT		= 4,		/* credits up to this count; perhaps a buffer */
	RSOCKET_IOMAP		= 6,		/* the entry of this index changed */
	RSOCKET_CONTROL		= 7,
};

enum rsocket_control {
	RSOCKET_DISCONNECT,			/* neither sends nor receives any more */
	RSOCKET_KEEPALIVE,			/* not sent: the write alone shows that the peer lives */
	RSOCKET_SHUTDOWN,			/* sends no more */
};

#define RSOCKET_VALUE_MASK 0x1fffffffu

static inline uint32_t rsocket_message(enum rsocket_message kind, uint32_t value)
{
	return (uint32_t)kind << 29 | (value & RSOCKET_VALUE_MASK);
}

/* In front of a datagram between queue pairs.  length: of what is used of it. */
struct rsocket_dgram_header {
	uint8_t version;			/* 4 or 6 */
	uint8_t length;
	__be16 port;
	union {
		__be32 ipv4;
		struct {
			__be32 flowinfo;
			uint8_t addr[16];
		} ipv6;
	};
};

#define RSOCKET_DGRAM_LENGTH(version) ((version) == 4 ? 8u : 24u)

/* In front of a datagram, or alone, between UDP sockets. */
struct rsocket_udp_header {
	__be32 tag;
	uint8_t version;
	uint8_t op;				/* RSOCKET_DATA or RSOCKET_CONTROL */
	uint8_t length;
	uint8_t reserved;
	__be32 qpn;				/* of the sender, 24 bits */
	union {
		__be32 ipv4;			/* the sender's address on its device */
		uint8_t ipv6[16];
	};
};

#define RSOCKET_UDP_TAG			0x55555555u
#define RSOCKET_UDP_LENGTH(version)	((version) == 4 ? 16u : 28u)

/* A receiver has room for that, headers included. */
#define RSOCKET_DGRAM_MAX		2048u

#endif
