/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ofi/peer.h - processes on other machines.  A peer is one from when its slot is known until it
 * has ended.  Engine lock held for all.
 */
#ifndef OFI_PEER_H
#define OFI_PEER_H

#include "host.h"

struct ofi_carry;
struct ofi_session;

struct ofi_peer {
	struct ofi_peer *next;		/* of its host */
	struct ofi_peer *next_number;	/* in the table of numbers */
	struct sim_remote_host *host;
	unsigned int number;		/* our slot for it; never another's later */
	uint16_t slot;			/* on its host */
	bool met;			/* it said its token */
	bool ended;			/* it is about to be freed */
	bool reset;			/* its stream ended so that it may have, too: it is asked for */
	uint64_t checked;		/* ofi_peer_check() */
	uint64_t token;
	struct ofi_session *session;	/* what is sent goes there; NULL: none is open */
	struct ofi_session *others;	/* open, too: it began one when we did */
	struct ofi_carry *carry;	/* NULL: all goes over the stream */
	struct ofi_knock *knock;	/* looking for it again; NULL: not now */
	struct ofi_queue waiting;	/* for that */
	uint64_t knocked;
	bool ping_out;			/* unanswered */
	bool ponged;			/* since anybody asked (ofi_peer_stands_still()) */
	uint64_t ponged_until;
};

/* NULL: there is none. */
struct ofi_peer *ofi_peer_by_number(unsigned int number);
struct ofi_peer *ofi_peer_of_slot(const struct sim_remote_host *host, uint16_t slot);
/* That one, or a new one of which nothing but the slot is known.  NULL: no memory. */
struct ofi_peer *ofi_peer_get(struct sim_remote_host *host, uint16_t slot);

/*
 * The process in a slot said its token: it is the peer from now on, and one that had the slot
 * before has ended.  NULL: no memory.
 */
struct ofi_peer *ofi_peer_meet(struct sim_remote_host *host, uint16_t slot, uint64_t token);
void ofi_peer_add_session(struct ofi_peer *peer, struct ofi_session *session);
/* A session of it has ended; error 0: it closed it. */
void ofi_peer_lose_session(struct ofi_peer *peer, struct ofi_session *session, int error);

/* It is about to be sent something again that it did not answer: is its stream good? */
void ofi_peer_check(struct ofi_peer *peer);

/*
 * The process has ended: connections to it end as its host's kernel would end them.  What waits
 * for it is answered by another process of the host, or by us.  The peer is freed.
 */
void ofi_peer_bury(struct ofi_peer *peer);

/* Is its host there, and has it not handled what was sent to it?  Then a card would still answer. */
bool ofi_peer_stands_still(unsigned int number);
void ofi_peer_ponged(struct ofi_peer *peer);
/* The longest packet that it gets: short ones wait for a stream, and a carrier has its own maximum. */
size_t ofi_peer_max_packet(unsigned int number);

void ofi_peers_stop(void);

#endif
