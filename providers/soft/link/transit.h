/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * link/transit.h - packets under way inside a process or on a slow link: each of them is a timer with
 * a copy of the bytes.  Engine lock held.
 */
#ifndef SIM_TRANSIT_H
#define SIM_TRANSIT_H

#include "providers/soft/wire/left.h"
#include "shape_internal.h"

/* A packet under way, or one that is still to leave. */
struct transit {
	struct sim_timer timer;			/* first */
	struct transit *prev, *next;
	struct sim_flow *flow;			/* NULL: the link has no settings */
	struct sim_packet packet;
	uint64_t wire_length;
	unsigned int slot;			/* of the receiver */
	uint16_t reason;			/* to be rejected */
	uint8_t value;				/* XORed to the byte at offset; 0: to none */
	uint32_t offset;
	uint64_t sent;
	unsigned int repeats;			/* by TCP, before this one */
	uint64_t announced;			/* of sim_left_announce() */
	bool in_order;				/* left by another process (left.h) */
	uint8_t data[];
};

/* A copy of the packet, to be armed by the caller.  NULL: no memory. */
struct transit *sim_transit_begin(struct sim_flow *flow, const struct sim_frame *frame,
				  unsigned int slot, uint64_t wire_length,
				  void (*fn)(struct sim_timer *timer));
/* Its timer fires then.  The receiving process is told so. */
void sim_transit_arm(struct transit *transit, uint64_t at, enum sim_left_how how);
/* It is one of another process, which has ended. */
void sim_transit_arm_left(struct transit *transit, unsigned int slot, const struct sim_left *about);
/* Is one of those in order under way that this process has left? */
bool sim_transits_in_order_of(unsigned int slot);
struct sim_frame sim_transit_frame(const struct transit *transit);

/* Each arrival begins with this, since a handler may drop all packets under way. */
void sim_transit_take_out(struct transit *transit);
int sim_transit_to_process(const struct transit *transit);
void sim_transit_free(struct transit *transit);

/* What timers do. */
void sim_transit_arrive(struct sim_timer *timer);
void sim_transit_arrive_to_be_rejected(struct sim_timer *timer);

void sim_transits_drop_all(void);

#endif
