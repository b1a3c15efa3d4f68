/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * link/link.h - packets from port to port.
 *
 * Inside a process a packet is a timer that fires after the link's latency.  Between
 * processes it goes through a ring in shared memory, one for each ordered pair of processes.
 * Order is kept per pair of ports.  A packet to a process that is gone is lost.
 *
 * Engine lock held for all calls, and while handlers run.
 */
#ifndef SIM_LINK_H
#define SIM_LINK_H

#include <sys/uio.h>

#include "providers/soft/fabric/fabric.h"
#include "providers/soft/wire/packet.h"

struct sim_packet {
	enum sim_packet_type type;
	struct sim_port *from, *to;
	unsigned int from_slot;
	uint64_t number;	/* of the packet, in traces */
	const uint8_t *data;	/* header, then payload; unaligned, peer input */
	size_t len;
	size_t placed;		/* so much more payload is where sim_link_place() said, not in data */
};

/*
 * Send header and payload (both copied) to a port of the process `slot`.  `to' NULL or `slot'
 * SIM_NOBODY: it leaves, and is lost.  What cannot be sent now is queued.  -EMSGSIZE: too
 * long; -ENOMEM.
 */
int sim_link_send(struct sim_port *from, struct sim_port *to, unsigned int slot,
		  enum sim_packet_type type, const void *header, size_t header_len,
		  const struct iovec *payload, unsigned int payload_parts, size_t payload_len);

/* One handler per type, set at start-up.  The packet is the handler's during the call only. */
typedef void (*sim_packet_handler_t)(const struct sim_packet *packet);
void sim_link_set_handler(enum sim_packet_type type, sim_packet_handler_t handler);

/* Answers in place of the receiver, for fault rules; one per type, set at start-up. */
typedef void (*sim_packet_rejecter_t)(const struct sim_packet *packet, uint16_t reason);
void sim_link_set_rejecter(enum sim_packet_type type, sim_packet_rejecter_t rejecter);

/* The longest packet to a process that sim_link_send() takes now. */
size_t sim_link_max(unsigned int slot);

/*
 * Says where a packet's payload goes before all of it is here: `data' has its header, `placed' says
 * how much payload follows.  Returns how many parts, which have as many bytes; 0: nowhere, it
 * is to be delivered in one piece.  One per type, set at start-up.
 */
#define SIM_PLACE_PARTS 32u
typedef unsigned int (*sim_packet_placer_t)(const struct sim_packet *packet,
					    struct iovec to[static SIM_PLACE_PARTS]);
void sim_link_set_placer(enum sim_packet_type type, sim_packet_placer_t placer);

/*
 * Send another process what it has to know when this one dies.  No fault, link or port stops
 * it, and no tap sees it; but it does not overtake packets, and wakes nobody.
 */
void sim_link_note(struct sim_port *from, struct sim_port *to, unsigned int slot, const void *note,
		   size_t len);
/*
 * Send a packet to a port of ours in place of a process that is gone.  Links and faults may
 * lose or delay it; else it has arrived when this returns.
 */
void sim_link_inject(const struct sim_packet *packet);

/*
 * Packets that came together are delivered one by one; when all are, this is called (set at
 * start-up).  So what answers each of them can be one answer.
 */
extern bool sim_link_reads_many;
extern void (*sim_link_has_read)(void);

/* --- Used by the engine and the fabric only. --- */

/* Packets under way, except those in rings between processes. */
unsigned int sim_link_under_way(void);
/* They are lost; handlers stay. */
void sim_link_drop_all(void);

/*
 * A sender over RoCE keeps the MAC that it resolved: a path of the CM, a QP, an address handle.
 * A port takes no frame for another MAC than its own: such a packet goes to nobody's slot.
 */
static inline bool sim_port_has_mac(const struct sim_port *port, uint32_t number)
{
	return __builtin_expect(port->mac_number == number, 1);
}

#endif
