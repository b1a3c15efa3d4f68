/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * link/shm/peer.h - what we know about the other processes of the shared fabric.  The state
 * and generation of a slot show that its process is gone, or is another one.  Engine lock
 * held.
 */
#ifndef SIM_PEER_H
#define SIM_PEER_H

#include "providers/soft/link/link.h"
#include "providers/soft/wire/left.h"
#include "access.h"
#include "pull.h"
#include "ring.h"
#include "window.h"

#define SIM_RING_SIZE (1u << 18)

/* In front of each packet. */
struct sim_wire {
	uint32_t from, to;		/* ports */
	uint64_t number;		/* of the packet */
};

#define SIM_MAX_RECORD \
	((uint32_t)(sizeof(struct sim_wire) + sizeof(struct sim_left) + SIM_LINK_MAX_PACKET))

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
	bool deaf;			/* its ring to us is invalid, and not read any more */
	bool unopened;			/* memory or descriptors were short for its ring to us */
	bool logged;			/* logged that they are short, for either ring */
	bool reading;			/* its ring to us: keep it while handlers run */
	struct sim_ring_writer out;	/* out.ring NULL: none yet */
	struct sim_ring_reader in;
	struct sim_window *window;	/* that in.ring is in */
	struct sim_pull pull;		/* reading its memory */
	struct sim_access_peer access;	/* what it allows without its doing */
	struct sim_waiting *first, **end;
	uint32_t num_waiting;
	size_t waiting_bytes;
};

/* -ESRCH: another process has the slot now, and the death of the one before is to be handled. */
int sim_peer_get(unsigned int slot, struct sim_peer **ret_peer);
/* Do we still have a ring or packets of the process that had the slot before? */
bool sim_peer_is_stale(unsigned int slot);
struct sim_peer *sim_peer_known(unsigned int slot);	/* or NULL */
bool sim_peer_is_live(unsigned int slot);

/* The ring to it.  -EAGAIN, logged: memory or descriptors are short; try again later. */
int sim_peer_make_ring(struct sim_peer *peer, unsigned int slot);
/* Its ring to us.  -ENOENT: it made none; -EBADMSG: the file is no ring; -EAGAIN as above. */
int sim_peer_find_ring(struct sim_peer *peer, unsigned int slot);
void sim_peer_close_ring(struct sim_peer *peer);	/* the one to us */

void sim_peer_forget_outgoing(struct sim_peer *peer);	/* there is nobody to send to */
void sim_peer_forget(struct sim_peer *peer);
void sim_peer_forget_all(void);		/* and what we published for them */

#endif
