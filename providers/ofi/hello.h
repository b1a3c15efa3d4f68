/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ofi/hello.h - what two processes tell each other first: who they are, which transport they
 * play, which ports and addresses their host has, and what the initiator wants.
 *
 * Pure functions on the caller's memory; no locks, no allocations.  Peer input is checked
 * whole: counts, lengths, texts (printable ASCII, 0 behind their end), reserved bytes that must be
 * 0, values that mean nothing, nothing behind.  After an error what was returned means nothing.
 *
 * Encoders trust the caller with counts, lengths and values, but not with texts: what is not
 * printable becomes `?', what is too long is cut off.  Scopes of addresses are not sent.
 */
#ifndef OFI_HELLO_H
#define OFI_HELLO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "providers/soft/wire/address.h"
#include "sha256.h"

#define OFI_HELLO_MAX 8192u
#define OFI_MAX_LID 0xbfffu		/* those above are groups */
#define OFI_VERSION 1u		/* of all that is on the stream */
#define OFI_HOST_ID 16u
#define OFI_NONCE 16u
#define OFI_NAME 32u		/* texts, with their end */
#define OFI_MAX_PORTS 2u
#define OFI_MAX_ADDRESSES 64u
#define OFI_MAX_CARRIERS 4u
#define OFI_CARRIER_NAME 256u

/* What the initiator is looking for: the member that accepts hands the stream to its owner. */
enum ofi_want_kind {
	OFI_WANT_ANY,		/* any process of the host */
	OFI_WANT_SLOT,		/* slot */
	OFI_WANT_QPN,		/* qpn */
	OFI_WANT_SERVICE,	/* who listens at addr, with its port, in the port space ps */
	OFI_WANT_SOCKET,	/* the same of TCP sockets, whatever the port space */
	OFI_WANT_KINDS
};

/* What the kind does not name is 0. */
struct ofi_want {
	uint8_t kind;
	uint16_t slot;			/* below SIM_MAX_SLOTS */
	uint16_t ps;		/* enum rdma_port_space */
	uint32_t qpn;
	union sim_sockaddr addr;	/* as in struct ofi_address, but with the port */
};

struct ofi_address {
	/*
	 * IPv4 or IPv6, without port; no loopback, no wildcard, no group, no broadcast, and not
	 * IPv4 inside IPv6, which could be one of these.
	 */
	union sim_sockaddr addr;
	uint8_t prefix_len;
	uint8_t port;			/* which of the ports, from 0 */
};

struct ofi_port {
	uint8_t guid[8];		/* as in a GID */
	uint8_t mac[6];
	uint16_t lid;			/* below 0xc000; 0 on Ethernet */
	uint16_t mtu;			/* of the interface, bytes */
	uint8_t active_mtu;		/* enum ibv_mtu */
	bool up;
};

/* How a faster fabric reaches the process.  In a HELLO: len 0, it has not looked for it yet. */
struct ofi_carrier_name {
	char provider[OFI_NAME], protocol[OFI_NAME];
	uint32_t format;		/* FI_ADDR_* */
	uint16_t len;
	uint8_t name[OFI_CARRIER_NAME];
};

struct ofi_ports {
	unsigned int num_ports, num_addresses;
	struct ofi_port ports[OFI_MAX_PORTS];
	struct ofi_address addresses[OFI_MAX_ADDRESSES];
};

struct ofi_hello {
	uint8_t host[OFI_HOST_ID];	/* the same of all processes of one host and transport */
	uint16_t slot;			/* below SIM_MAX_SLOTS */
	uint32_t generation;
	bool has_key;			/* a PROOF follows, and one is wanted */
	char name[OFI_NAME];		/* of the host, for people */
	char transport[OFI_NAME];
	uint64_t rules;			/* a digest of the transport's rules */
	uint64_t token;			/* packets to this process by a carrier bear it */
	uint8_t nonce[OFI_NONCE];
	struct ofi_want want;		/* of the initiator; the acceptor: all 0 */
	struct ofi_ports ports;
	unsigned int num_carriers;
	struct ofi_carrier_name carriers[OFI_MAX_CARRIERS];
};

/* The body of a HELLO; returns its length, at most OFI_HELLO_MAX. */
size_t ofi_hello_encode(const struct ofi_hello *hello, uint8_t bytes[OFI_HELLO_MAX]);
/*
 * -EPROTONOSUPPORT: of another version, *ret_version, nothing else is read; -EBADMSG: malformed.
 * ret_hello is large: callers have it in static or allocated memory.
 */
int ofi_hello_decode(const uint8_t *body, size_t len, struct ofi_hello *ret_hello,
		     unsigned int *ret_version);

/* The body of PORTS, which stands in a HELLO, too. */
size_t ofi_ports_encode(const struct ofi_ports *ports, uint8_t bytes[OFI_HELLO_MAX]);
int ofi_ports_decode(const uint8_t *body, size_t len, struct ofi_ports *ret_ports);

/* The body of REFUSED: why the sender does not talk to the receiver. */
enum ofi_refusal {
	OFI_REFUSED_VERSION = 1,	/* value: the sender's */
	OFI_REFUSED_TRANSPORT,		/* text: the sender's */
	OFI_REFUSED_RULES,		/* of the transport: another version of polycm, or of a plugin */
	OFI_REFUSED_KEY,		/* none, or another one */
	OFI_REFUSED_MALFORMED,
	OFI_REFUSED_BUSY,		/* too many streams */
	OFI_REFUSED_ADDRESS,		/* all its addresses are another host's, which is there */
	OFI_REFUSALS
};

struct ofi_refused {
	uint8_t reason;			/* enum ofi_refusal */
	uint32_t value;
	char text[OFI_NAME];
};

#define OFI_REFUSED_SIZE 40u

void ofi_refused_encode(const struct ofi_refused *refused, uint8_t bytes[OFI_REFUSED_SIZE]);
int ofi_refused_decode(const uint8_t *body, size_t len, struct ofi_refused *ret_refused);

/*
 * The body of CARRIER.  Each direction begins on the stream.  Both say READY; who has got it sends
 * a probe on the carrier, and when that was HEARD says CHANGED and sends packets there.
 */
enum ofi_carrier_what {
	OFI_CARRIER_READY = 1,	/* the sender can be reached: name, number its token, window */
	OFI_CARRIER_HEARD,	/* the receiver's probe came */
	OFI_CARRIER_CHANGED,	/* the packets that follow are on the carrier */
	OFI_CARRIER_WINDOW,	/* window */
	OFI_CARRIER_BEFORE,	/* number: packets up to this come before what follows on the stream */
	OFI_CARRIER_LOST,	/* what follows is on the stream, both ways; number 0: by choice */
	OFI_CARRIER_WHATS
};

struct ofi_carrier_news {
	uint8_t what;			/* enum ofi_carrier_what */
	uint16_t window;		/* as in struct ofi_carried */
	uint64_t number;
	struct ofi_carrier_name name;	/* READY; else all 0 */
};

#define OFI_CARRIER_MAX (12u + 2u * OFI_NAME + 8u + OFI_CARRIER_NAME)

/* Returns its length. */
size_t ofi_carrier_encode(const struct ofi_carrier_news *news, uint8_t bytes[OFI_CARRIER_MAX]);
int ofi_carrier_decode(const uint8_t *body, size_t len, struct ofi_carrier_news *ret_news);

/*
 * The proof of one side, that of the initiator or that of the acceptor: HMAC-SHA-256 with the key
 * over its role and the digests of both HELLO bodies, so nobody can change what they say.  Nonces,
 * host ids and slots are in these.
 */
void ofi_proof(const void *key, size_t key_len, bool initiator,
	       const uint8_t *hello_of_initiator, size_t len_of_initiator,
	       const uint8_t *hello_of_acceptor, size_t len_of_acceptor,
	       uint8_t ret_proof[SHA256_SIZE]);

#endif
