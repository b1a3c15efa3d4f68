/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ofi/carrier.h - the border to what carries packets of RC and UD over a fabric that is faster
 * than TCP: a library of its own, ofi-carrier.so, which alone is linked to libfabric.
 *
 * All functions but open() are called with the engine's lock held, so one at a time.
 */
#ifndef OFI_CARRIER_H
#define OFI_CARRIER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "frame.h"
#include "hello.h"

#define OFI_CARRIER_VERSION 1u
#define OFI_CARRIER_PACKET 131072u	/* the longest: there are 128 buffers of it */
#define OFI_CARRIER_MESSAGE (OFI_CARRIED_HEADER + OFI_CARRIER_PACKET)
#define OFI_CARRIER_BUFFERS 64u		/* receives that are posted, and sends under way */
#define OFI_CARRIER_WHY 256u

struct ofi_carrier;			/* the library's: an endpoint */
struct ofi_carrier_peer;		/* likewise: whom it reaches */

/* What the library calls, from inside progress() only. */
struct ofi_carrier_user {
	/* A message came, aligned as for any type.  Its bytes are the user's until this returns. */
	void (*received)(uint8_t *bytes, size_t len);
	/*
	 * A message to a peer is lost, with which error; the user may remove the peer.  owner NULL:
	 * the carrier works no more.
	 */
	void (*failed)(void *owner, int error);
};

struct ofi_carrier_ops {
	unsigned int version;		/* OFI_CARRIER_VERSION, or the library is another polycm's */
	/*
	 * Open one endpoint, on the first of the providers that is there.  source: an address of
	 * this host that its peers reach, for providers that have IP addresses.  Without the
	 * engine's lock, and may take a second.  A negative errno: none of them is there, why.
	 */
	int (*open)(const char *const *providers, unsigned int num, const struct sockaddr *source,
		    socklen_t source_len, const struct ofi_carrier_user *user,
		    struct ofi_carrier **ret_carrier, struct ofi_carrier_name *ret_name,
		    char ret_why[OFI_CARRIER_WHY]);
	void (*close)(struct ofi_carrier *carrier);
	/* Whom a name says, which comes from the peer and may be anything. */
	int (*peer_add)(struct ofi_carrier *carrier, const struct ofi_carrier_name *name, void *owner,
			struct ofi_carrier_peer **ret_peer);
	/* Nothing is said of it any more. */
	void (*peer_remove)(struct ofi_carrier *carrier, struct ofi_carrier_peer *peer);
	/*
	 * Send a message, which is copied.  Messages to a peer arrive in order, or not at all.
	 * -EAGAIN: not now, try after progress(); anything else: the peer is not reached.
	 */
	int (*send)(struct ofi_carrier *carrier, struct ofi_carrier_peer *peer,
		    const struct iovec *parts, unsigned int num, size_t len);
	/* Do what there is to do, without waiting.  True: there was something. */
	bool (*progress)(struct ofi_carrier *carrier);
	/* Becomes readable when there is something to do; -1: nothing does, so it is looked at often. */
	int (*wait_fd)(const struct ofi_carrier *carrier);
	/* Before each sleep on that: false, there is something to do now. */
	bool (*may_sleep)(struct ofi_carrier *carrier);
	/* Look at it after so many ms at the latest. */
	int (*sleep_ms)(const struct ofi_carrier *carrier);
	/* Has all left that was sent? */
	bool (*is_idle)(const struct ofi_carrier *carrier);
};

/* The one symbol of the library. */
#define OFI_CARRIER_QUERY "ofi_carrier_query_v1"
typedef const struct ofi_carrier_ops *(*ofi_carrier_query_t)(void);
const struct ofi_carrier_ops *ofi_carrier_query_v1(void);

#endif
