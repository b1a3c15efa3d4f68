/* SPDX-License-Identifier: BSD-2-Clause */
/* link/shape_internal.h - between shape.c, shape_links.c and tcp.c.  Engine lock held. */
#ifndef SIM_SHAPE_INTERNAL_H
#define SIM_SHAPE_INTERNAL_H

#include "message.h"
#include "shape.h"

struct sim_flow;

/* --- shape_links.c --- */

/* How the link between two nodes is. */
const struct polycm_sim_link *sim_shape_link(const struct sim_node *a, const struct sim_node *b);
void sim_shape_forget_links(void);

/* --- shape.c --- */

/* Something was said about links. */
void sim_flows_follow_links(void);
/* The direction that a packet takes; NULL: no memory. */
struct sim_flow *sim_flow_of(const struct sim_frame *frame);
uint64_t sim_flow_latency(const struct sim_flow *flow);

/* What rules and link do to a packet that is sent now. */
void sim_shape_decide(const struct sim_flow *flow, const struct sim_frame *frame,
		      const struct sim_message *message, struct sim_fate *ret_fate);
/*
 * It leaves.  in_order may be NULL; else it arrives no earlier than that, which
 * then is when it arrives, its delay included.
 */
int sim_shape_launch(struct sim_flow *flow, const struct sim_frame *frame, unsigned int slot,
		     uint64_t wire_length, const struct sim_fate *fate, uint64_t *in_order);

/* --- tcp.c --- */

/* What names a connection at its sender; 0: the packet is not one that TCP sees through. */
uint64_t sim_tcp_connection(const struct sim_frame *frame, const struct sim_message *message);
int sim_tcp_send(const struct sim_frame *frame, unsigned int slot,
		 const struct sim_message *message, uint64_t connection);
unsigned int sim_tcp_waiting(void);
void sim_tcp_drop_all(void);

#endif
