/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * link/shape.h - what links and fault rules do to packets: latency, loss, copies, order.  It
 * is done at the sender, so it is the same inside a process and between processes.  Engine
 * lock held.
 */
#ifndef SIM_SHAPE_H
#define SIM_SHAPE_H

#include "providers/soft/fabric/world.h"
#include "providers/soft/faults/fault.h"
#include "link_internal.h"

/* Of a link without settings, under the virtual clock. */
#define SIM_LINK_LATENCY SIM_US(1)

/* Some link has settings. */
extern bool sim_shape_on;
/* Some connection's segments are late. */
extern bool sim_tcp_on;

/* Also while a port is down: TCP repeats what it sends to it. */
static inline bool sim_shaping(void)
{
	return __builtin_expect(sim_shape_on | sim_faults_on | sim_world_disturbed |
				sim_tcp_on, 0);
}

/* NULL nodes: all; the last call that names a pair counts.  -EINVAL: why in words; -ENOMEM. */
int sim_shape_set(const struct sim_node *a, const struct sim_node *b,
		  const struct polycm_sim_link *given, char *ret_why, size_t why_size);

/* A request over the link and its answer: do both arrive, and after what latency? */
bool sim_shape_exchange(const struct sim_node *a, const struct sim_node *b, uint64_t *ret_delay);

/* In place of sim_local_send() and sim_link_leave(). */
int sim_shape_send(const struct sim_frame *frame, unsigned int slot);
/* To a port of this process, as if the process from_slot had sent it. */
int sim_shape_send_as(const struct sim_frame *frame, unsigned int from_slot);

/* sim_link_note() */
int sim_shape_note(const struct sim_frame *frame, unsigned int slot);
/* sim_link_inject() */
int sim_shape_inject(const struct sim_packet *packet, const struct sim_frame *frame);

/* Packets under way are lost. */
void sim_shape_drop_all(void);
/* Forget all flows, and the settings of links.  No packet is under way. */
void sim_flows_forget(void);

/* link.c: sends such a packet. */
int sim_link_send_as(struct sim_port *from, struct sim_port *to, unsigned int from_slot,
		     enum sim_packet_type type, const void *bytes, size_t len);

#endif
