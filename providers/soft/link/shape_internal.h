/* SPDX-License-Identifier: BSD-2-Clause */
/* link/shape_internal.h - between shape.c, flow.c and tcp.c.  Engine lock held. */
#ifndef SIM_SHAPE_INTERNAL_H
#define SIM_SHAPE_INTERNAL_H

#include <uthash.h>

#include "providers/soft/wire/left.h"
#include "shape.h"

/* When to try again for memory, for a packet that nobody repeats. */
#define SIM_LINK_AGAIN SIM_MS(10)

/* --- message.c --- */

struct sim_message {
	enum sim_what what;
	uint32_t start, length;		/* of the message in the packet's bytes */
	uint64_t wire_length;		/* with what is not copied into the packet */
};

void sim_message_of(const struct sim_frame *frame, struct sim_message *ret_message);

/* --- flow.c --- */

struct transit;

struct sim_flow_key {
	const struct sim_node *from, *to;
};

struct sim_flow {
	struct sim_flow_key key;
	UT_hash_handle hh;
	struct polycm_sim_link link;
	uint64_t free_at;		/* bandwidth: when what was sent before has left */
	uint64_t last;			/* when the last packet arrives, except delayed ones */
	struct transit *held;		/* a packet that the next one overtakes */
};

/* The flow of a packet; valid until the next call. */
struct sim_flow *sim_flow_of(const struct sim_frame *frame);

/* --- shape.c --- */

/* What do rules and the link do to a packet that is sent now? */
void sim_shape_decide(const struct sim_flow *flow, const struct sim_frame *frame,
		      const struct sim_message *message, struct sim_fate *ret_fate);
/* For TCP: a packet arrives no earlier than `at', which is set to when it does. */
struct sim_in_order {
	uint64_t at;
	unsigned int repeats;		/* of this packet, before */
};

/* The packet leaves.  in_order may be NULL. */
int sim_shape_launch(struct sim_flow *flow, const struct sim_frame *frame, unsigned int slot,
		     uint64_t wire_length, const struct sim_fate *fate, struct sim_in_order *in_order);

/* A packet that a process which has ended left under way to this one. */
void sim_shape_take_over(const struct sim_packet *packet, const struct sim_left *about);

/* --- tcp.c --- */

/* A number of the packet's connection at its sender; 0: TCP does not repeat the packet. */
uint64_t sim_tcp_connection(const struct sim_frame *frame);
int sim_tcp_send(const struct sim_frame *frame, unsigned int slot,
		 const struct sim_message *message, uint64_t connection);
/*
 * A packet of this process arrives.  0: its receiver gets it.  1: TCP keeps it, because the
 * port is down or a packet before it is missing.  -ENOMEM: TCP would keep it, and the packet
 * may arrive once more.
 */
int sim_tcp_catch(const struct sim_frame *frame, unsigned int slot, uint64_t sent,
		   unsigned int repeats);
static inline bool sim_tcp_may_catch(const struct sim_port *to)
{
	return __builtin_expect(sim_tcp_on || !sim_port_carries(to), 0);
}

unsigned int sim_tcp_waiting(void);
void sim_tcp_drop_all(void);

#endif
