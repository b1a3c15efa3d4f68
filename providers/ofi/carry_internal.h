/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ofi/carry_internal.h - between carry.c (the carrier, what both say on the stream), carry_in.c and
 * carry_out.c (the two directions).  Engine lock held.
 */
#ifndef OFI_CARRY_INTERNAL_H
#define OFI_CARRY_INTERNAL_H

#include "providers/soft/engine/engine.h"
#include "carry.h"
#include "queue.h"

struct ofi_held;

struct ofi_carry {
	struct ofi_carry *prev, *next;	/* all of them */
	struct ofi_carry *next_token;	/* of those whose tokens have the same low bits */
	struct ofi_peer *peer;
	char providers[OFI_MAX_CARRIERS][OFI_NAME];	/* that both have, best first */
	unsigned int num_providers;
	bool failed;			/* on this session: no more */
	struct sim_timer timer;		/* of probes, and of what waits too long */

	/* From the peer. */
	uint64_t token;			/* its messages bear it; 0: we did not say READY */
	bool coming;			/* it has CHANGED */
	uint64_t expected;		/* the sequence number of the next packet to deliver */
	uint64_t granted, told;		/* up to which it may send, and knows */
	struct ofi_held *held[OFI_CARRIER_BUFFERS];	/* by sequence number */
	uint64_t before;		/* what is on the stream waits for this one; 0: no */
	uint64_t before_from;		/* expected, when it began to wait for another 50 ms */
	struct ofi_queue later;
	struct sim_timer give_up;	/* waiting for it */

	/* To the peer. */
	struct ofi_carrier_name name;
	uint64_t their_token;		/* 0: it did not say READY */
	struct ofi_carrier_peer *to;	/* NULL: its name is not one of our carrier's, or not yet */
	uint64_t probe_until;		/* 0: no probe is out */
	bool on;			/* we have CHANGED */
	uint64_t sent, limit;		/* sequence numbers: the last one, and how far we may go */
	uint64_t before_said;
	unsigned int num_waiting;
	uint64_t moved;			/* when one last left, or the first began to wait */
	struct ofi_queue waiting;
};

/* The process's carrier. */
struct ofi_own_carrier {
	const struct ofi_carrier_ops *ops;	/* NULL: there is none */
	struct ofi_carrier *carrier;
	struct ofi_carrier_name name;
	bool busy;				/* inside progress() */
	bool broken;
	unsigned int num_waiting;		/* packets, for all peers */
};
extern struct ofi_own_carrier ofi_own;
extern struct ofi_carry *ofi_carries;

/* Say something on the stream.  False: no memory, or no session. */
bool ofi_carry_say(struct ofi_carry *c, enum ofi_carrier_what what, uint64_t number);
/*
 * The peer's packets go over the stream from now on, for this session; a line of log says why,
 * unless that is NULL.
 */
void ofi_carry_lose(struct ofi_carry *c, const char *why, bool tell);

/* --- From the peer (carry_in.c). --- */

/* It may send, with a token that it must be told: c->token, 0 if there is none to be had. */
void ofi_carry_new_token(struct ofi_carry *c);
void ofi_carry_drop_token(struct ofi_carry *c);
void ofi_carry_received(uint8_t *bytes, size_t len);
/* Deliver what waited for the packet before it.  False: it is nonsense. */
bool ofi_carry_deliver_held(struct ofi_carry *c);
/* What follows on the stream waits for a packet; it waits no more. */
void ofi_carry_wait_for(struct ofi_carry *c, uint64_t number);
void ofi_carry_go_on(struct ofi_carry *c);
void ofi_carry_missing(struct sim_timer *timer);	/* c->give_up */
/* It must hear of a window before it has used up the one that it knows. */
void ofi_carry_tell_window(struct ofi_carry *c);

/* --- To the peer (carry_out.c). --- */

/* See whether the carrier reaches c->to. */
void ofi_carry_probe(struct ofi_carry *c);
void ofi_carry_timed(struct sim_timer *timer);		/* c->timer */
void ofi_carry_take_window(struct ofi_carry *c, uint16_t window);
/* Send what waits, as far as it goes; on the stream, all of it. */
void ofi_carry_push(struct ofi_carry *c);
void ofi_carry_to_stream(struct ofi_carry *c);
void ofi_carry_remove_to(struct ofi_carry *c);

#endif
