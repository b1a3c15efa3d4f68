/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * link/shape.h - what links and fault rules do to packets on their way: time,
 * loss, copies, order.  It happens at the sender, so it is the same inside a
 * process and between processes.  Engine lock held.
 */
#ifndef SIM_SHAPE_H
#define SIM_SHAPE_H

#include "providers/soft/fabric/world.h"
#include "providers/soft/faults/fault.h"
#include "link_internal.h"

/* Of a packet where nothing is said, under the virtual clock. */
#define SIM_LINK_LATENCY SIM_US(1)

/* Something was said about a link. */
extern bool sim_shape_on;
/* Some connection's segments are late. */
extern bool sim_tcp_on;

/* Also where a port does not work: what TCP sends to it is not lost for good. */
static inline bool sim_shaping(void)
{
	return __builtin_expect(sim_shape_on | sim_faults_on | sim_world_disturbed |
				sim_tcp_on, 0);
}

/* NULL nodes: all; the last call that names a pair counts.  -EINVAL: why in words; -ENOMEM. */
int sim_shape_set(const struct sim_node *a, const struct sim_node *b,
		  const struct polycm_sim_link *given, char *ret_why, size_t why_size);

/* A question over the link and its answer: do both get through, and what does the link's length take? */
bool sim_shape_exchange(const struct sim_node *a, const struct sim_node *b, uint64_t *ret_delay);

/* In place of sim_local_send() and sim_link_to_process(). */
int sim_shape_send(const struct sim_frame *frame, unsigned int slot);
/* To a port of this process, as if that one had sent it. */
int sim_shape_send_as(const struct sim_frame *frame, unsigned int from_slot);

/* Nothing of it on the wire, but it comes after what was sent before. */
int sim_shape_note(const struct sim_frame *frame, unsigned int slot);
/* A packet of a process that is gone, to us: there at once, if no rule or link is against it. */
int sim_shape_inject(const struct sim_packet *packet, const struct sim_frame *frame);

/* Packets that are on their way here are lost; so many are. */
void sim_shape_drop_all(void);
unsigned int sim_shape_under_way(void);
/* The fabric is being closed. */
void sim_shape_close(void);

/* link.c: such a packet. */
int sim_link_send_as(struct sim_port *from, struct sim_port *to, unsigned int from_slot,
		     enum sim_packet_type type, const void *bytes, size_t len);

#endif
