/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * link/shm/peer.h - the other processes of the shared fabric as we know them.  A
 * process that is gone, or another one in its slot, is noticed by the slot's
 * state and generation whenever we have to do with it.  Engine lock held.
 */
#ifndef SIM_PEER_H
#define SIM_PEER_H

#include "providers/soft/link/link.h"
#include "pull.h"
#include "ring.h"

#define SIM_RING_SIZE (1u << 18)

/* In front of each packet. */
struct sim_wire {
	uint32_t from, to;		/* ports */
	uint64_t number;		/* of the packet */
};

#define SIM_MAX_RECORD ((uint32_t)(sizeof(struct sim_wire) + SIM_LINK_MAX_PACKET))

/* A packet for which the ring had no room. */
struct sim_waiting {
	struct sim_waiting *next;
	uint32_t len;
	uint32_t tag;
	uint8_t bytes[];
};

struct sim_peer {
	uint32_t generation;		/* of the process that the rest is about */
	bool met;
	bool deaf;			/* its ring to us made no sense: not read any more */
	bool unopened;			/* its ring to us is there, but what it takes was short */
	bool told;			/* ... or for ours to it: one line is enough */
	bool reading;			/* its ring to us: handlers run, keep it */
	struct sim_ring_writer out;	/* out.ring NULL: none yet */
	struct sim_ring_reader in;
	struct sim_pull pull;		/* reading its memory */
	struct sim_waiting *first, **end;
	uint32_t num_waiting;
	size_t waiting_bytes;
};

/* -ESRCH: another process has the slot now, and the one that we know is to be buried. */
int sim_peer_get(unsigned int slot, struct sim_peer **ret_peer);
/* Do we still have something of a process that had the slot before? */
bool sim_peer_is_stale(unsigned int slot);
struct sim_peer *sim_peer_known(unsigned int slot);	/* or NULL */
bool sim_peer_is_live(unsigned int slot);

/*
 * Ours to it.  -EAGAIN: memory or descriptors are short, which passes; it was
 * told and is to be tried again.
 */
int sim_peer_make_ring(struct sim_peer *peer, unsigned int slot);
/* Its to us.  -ENOENT: it made none; -EBADMSG: what it made is none; -EAGAIN as above. */
int sim_peer_find_ring(struct sim_peer *peer, unsigned int slot);
void sim_peer_unmap(void *ring);

void sim_peer_forget_outgoing(struct sim_peer *peer);	/* there is nobody to send to */
void sim_peer_forget(struct sim_peer *peer);
void sim_peer_forget_all(void);

#endif
