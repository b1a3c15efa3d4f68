/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ofi/frame.h - what is on the TCP stream between two processes: frames, each a header of 8
 * bytes and a body.  Little-endian.
 *
 * Pure functions on the caller's memory; no locks, no allocations.  What is decoded is peer
 * input: each function checks all of it, and says -EBADMSG of what it does not know; what it
 * returned then means nothing.  Reserved bytes are 0.
 */
#ifndef OFI_FRAME_H
#define OFI_FRAME_H

#include <stddef.h>
#include <stdint.h>

#include "providers/soft/wire/packet.h"

#define OFI_FRAME_HEADER 8u

enum ofi_frame_type {
	OFI_HELLO = 1,		/* first in both directions (hello.h) */
	OFI_PROOF,		/* 32 bytes: the sender knows the key; after both HELLOs */
	OFI_REFUSED,		/* the stream ends: a reason (hello.h) */
	OFI_PACKET,		/* of the simulated wire */
	OFI_RETURNED,		/* a packet of the receiver's, and whose it is */
	OFI_FIND,		/* who has a QP number? */
	OFI_FOUND,
	OFI_PORTS,		/* the sender's ports have changed: as in the HELLO */
	OFI_PING,		/* the sender's time */
	OFI_PONG,		/* that of the PING, and the sender's */
	OFI_BYE,		/* the process ends: nothing follows */
	OFI_CARRIER,		/* of another way to the process (hello.h) */
	OFI_FRAME_TYPES
};

struct ofi_frame {
	uint32_t len;		/* of the body */
	uint8_t type;		/* enum ofi_frame_type */
};

/* The longest body of a type; 0: it has none (BYE), or there is no such type. */
uint32_t ofi_frame_max(uint8_t type);
void ofi_frame_encode(const struct ofi_frame *frame, uint8_t bytes[OFI_FRAME_HEADER]);
/* -EBADMSG: no such type, a reserved byte, or longer than a body of it may be. */
int ofi_frame_decode(const uint8_t bytes[OFI_FRAME_HEADER], struct ofi_frame *ret_frame);

/*
 * PACKET: this header, then the header of its type and its payload as on the simulated wire.
 * RETURNED: OFI_RETURNED_HEADER bytes that name the slot of the packet's owner, then the same.
 */
#define OFI_PACKET_HEADER 16u
#define OFI_RETURNED_HEADER 4u
#define OFI_PACKET_MAX (OFI_PACKET_HEADER + SIM_LINK_MAX_LONG)
#define OFI_RETURNED_MAX (OFI_RETURNED_HEADER + OFI_PACKET_HEADER + SIM_LINK_MAX_PACKET)

struct ofi_packet {
	uint64_t number;	/* of the packet, in traces */
	uint16_t from, to;	/* ports, as the sender's and the receiver's HELLO count them */
	uint8_t type;		/* enum sim_packet_type */
};

void ofi_packet_encode(const struct ofi_packet *packet, uint8_t bytes[OFI_PACKET_HEADER]);
/* -EBADMSG: too short, or of no type.  What is behind is not looked at. */
int ofi_packet_decode(const uint8_t *body, size_t len, struct ofi_packet *ret_packet);

/*
 * A message on a carrier: this header, then what is behind the header of a PACKET.  Its last 16
 * bytes are that header, but for the window.
 */
#define OFI_CARRIED_HEADER 32u

struct ofi_carried {
	uint64_t token;		/* of the receiver for this sender: it said it in CARRIER */
	uint64_t sequence;	/* from 1; 0: a probe, which has no packet */
	struct ofi_packet packet;	/* RC or UD */
	uint16_t window;	/* the low bits of the last sequence number that the receiver may use */
};

void ofi_carried_encode(const struct ofi_carried *carried, uint8_t bytes[OFI_CARRIED_HEADER]);
/* -EBADMSG: too short, or no packet that carriers carry. */
int ofi_carried_decode(const uint8_t *bytes, size_t len, struct ofi_carried *ret_carried);
/* The header of a PACKET, which stands in place of the last 16 bytes then. */
uint8_t *ofi_carried_packet(uint8_t bytes[OFI_CARRIED_HEADER]);

struct ofi_returned {
	uint16_t slot;		/* on the receiver's host */
};

void ofi_returned_encode(const struct ofi_returned *returned, uint8_t bytes[OFI_RETURNED_HEADER]);
/* Likewise. */
int ofi_returned_decode(const uint8_t *body, size_t len, struct ofi_returned *ret_returned);

/*
 * The headers of RC and UD, the parts that RC lists and notes, which lie in memory in the order of
 * the host's bytes, to the order of the wire and back; MADs and segments have one order everywhere.
 * bytes: the packet behind its header of 16 bytes.  On a little-endian host nothing changes.
 * -EBADMSG: no such type, too short for it, or RC lists parts and the last one is not whole.
 */
int ofi_payload_order(uint8_t type, uint8_t *bytes, size_t len);
/* The same as on a big-endian host, for tests. */
int ofi_payload_swap(uint8_t type, uint8_t *bytes, size_t len);

struct ofi_find {
	uint32_t number;	/* of the question: FOUND repeats it */
	uint32_t qpn;		/* 24 bits */
};

struct ofi_found {
	uint32_t number;
	uint32_t qpn;
	uint16_t slot;		/* below SIM_MAX_SLOTS; OFI_NO_SLOT: nobody has it */
};

#define OFI_NO_SLOT UINT16_MAX
#define OFI_FIND_SIZE 8u
#define OFI_FOUND_SIZE 12u

void ofi_find_encode(const struct ofi_find *find, uint8_t bytes[OFI_FIND_SIZE]);
int ofi_find_decode(const uint8_t *body, size_t len, struct ofi_find *ret_find);
void ofi_found_encode(const struct ofi_found *found, uint8_t bytes[OFI_FOUND_SIZE]);
int ofi_found_decode(const uint8_t *body, size_t len, struct ofi_found *ret_found);

/* PING: when it was sent.  PONG: that, and when it was answered.  ns of each host's real time. */
struct ofi_ping {
	uint64_t sent, answered;	/* answered: PONG only */
};

#define OFI_PING_SIZE 8u
#define OFI_PONG_SIZE 16u

void ofi_ping_encode(const struct ofi_ping *ping, uint8_t bytes[OFI_PING_SIZE]);
int ofi_ping_decode(const uint8_t *body, size_t len, struct ofi_ping *ret_ping);
void ofi_pong_encode(const struct ofi_ping *pong, uint8_t bytes[OFI_PONG_SIZE]);
int ofi_pong_decode(const uint8_t *body, size_t len, struct ofi_ping *ret_pong);

#endif
