/* SPDX-License-Identifier: BSD-2-Clause */
/* link/shape_internal.h - between shape.c, shape_links.c, tcp.c and local.c.  Engine lock held. */
#ifndef SIM_SHAPE_INTERNAL_H
#define SIM_SHAPE_INTERNAL_H

#include "message.h"
#include "shape.h"

/* When memory is looked for again, for a packet that nobody repeats. */
#define SIM_LINK_AGAIN SIM_MS(10)

struct sim_flow;

/* --- shape_links.c --- */

/* How the link between two nodes is. */
const struct polycm_sim_link *sim_shape_link(const struct sim_node *a, const struct sim_node *b);
void sim_shape_forget_links(void);

/* --- shape.c --- */

/* Something was said about links. */
void sim_flows_follow_links(void);
/* The direction that a packet takes; good until the next call. */
struct sim_flow *sim_flow_of(const struct sim_frame *frame);
uint64_t sim_flow_latency(const struct sim_flow *flow);
/* When the last of what has left arrives, but for what is late on purpose. */
uint64_t sim_flow_last(const struct sim_flow *flow);

/* What rules and link do to a packet that is sent now. */
void sim_shape_decide(const struct sim_flow *flow, const struct sim_frame *frame,
		      const struct sim_message *message, struct sim_fate *ret_fate);
/* Of TCP: a packet arrives no earlier than `at', which then is when it does, its delay included. */
struct sim_in_order {
	uint64_t at;
	unsigned int repeats;		/* of this packet, before */
};

/* It leaves.  in_order may be NULL. */
int sim_shape_launch(struct sim_flow *flow, const struct sim_frame *frame, unsigned int slot,
		     uint64_t wire_length, const struct sim_fate *fate, struct sim_in_order *in_order);

/* --- tcp.c --- */

/* What names a connection at its sender; 0: the packet is not one that TCP sees through. */
uint64_t sim_tcp_connection(const struct sim_frame *frame, const struct sim_message *message);
int sim_tcp_send(const struct sim_frame *frame, unsigned int slot,
		 const struct sim_message *message, uint64_t connection);
/*
 * A packet of this process has come to its receiver.  0: that one gets it.  1: TCP
 * keeps it, as nobody takes it there, and it is to be sent again, or as one before it
 * is missing.  -ENOMEM: it would, and the packet may come once more.
 */
int sim_tcp_catch(const struct sim_frame *frame, unsigned int slot, uint64_t sent,
		   unsigned int repeats);
static inline bool sim_tcp_may_catch(const struct sim_frame *frame)
{
	return __builtin_expect(sim_tcp_on || !sim_port_carries(frame->to), 0);
}

unsigned int sim_tcp_waiting(void);
void sim_tcp_drop_all(void);

#endif
