/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * link/link.h - packets from port to port.
 *
 * Inside a process a packet is a timer that fires after the link's latency;
 * between processes it goes through a ring in shared memory (one per ordered
 * pair of processes, so a dying writer can harm nobody) and a futex doorbell.
 * Order is kept per pair of ports.  A packet to a process that is gone is
 * lost, as on a wire to a dead host.
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
};

/*
 * Send header and payload (both copied) to a port of the process `slot`; to
 * NULL, where nobody is: it is lost.
 * Never fails as seen from here: what the wire cannot take now is queued.
 * -EMSGSIZE over the limit, -ENOMEM.
 */
int sim_link_send(struct sim_port *from, struct sim_port *to, unsigned int slot,
		  enum sim_packet_type type, const void *header, size_t header_len,
		  const struct iovec *payload, unsigned int payload_parts, size_t payload_len);

/* One handler per type, set at start-up.  The packet is the handler's during the call only. */
typedef void (*sim_packet_handler_t)(const struct sim_packet *packet);
void sim_link_set_handler(enum sim_packet_type type, sim_packet_handler_t handler);

/* The answer that a fault rule gives in the receiver's place; one per type, set at start-up. */
typedef void (*sim_packet_rejecter_t)(const struct sim_packet *packet, uint16_t reason);
void sim_link_set_rejecter(enum sim_packet_type type, sim_packet_rejecter_t rejecter);

/*
 * Tell another process what it has to know when this one dies.  It is on no wire:
 * no fault, link or port keeps it back, and no watcher sees it; but it is not
 * there before what was sent in that direction earlier, nor does it wake anyone.
 */
void sim_link_note(struct sim_port *from, struct sim_port *to, unsigned int slot, const void *note,
		   size_t len);
/*
 * Send what the host of a process that is gone sends in its place, to a port of
 * ours.  Links and faults may lose or delay it; else it has arrived when this returns,
 * as the process did not die just now.
 */
void sim_link_inject(const struct sim_packet *packet);
/* --- Used by the engine and the fabric only. --- */

/* Packets under way inside the process. */
unsigned int sim_link_under_way(void);
/* They are lost; handlers stay. */
void sim_link_drop_all(void);

/*
 * Who sends over RoCE keeps the MAC that its peer had when it asked: a path of
 * the CM when it resolved the address, a QP when it got the path, an address
 * handle when it was made.  The port takes no frame for another than its own.
 */
static inline bool sim_port_has_mac(const struct sim_port *port, uint32_t number)
{
	return __builtin_expect(port->mac_number == number, 1);
}

/* Send to a MAC that `to' has no more: it leaves, and nobody takes it. */
void sim_link_send_in_vain(struct sim_port *from, struct sim_port *to, enum sim_packet_type type,
			   const void *header, size_t header_len, const struct iovec *payload,
			   unsigned int payload_parts, size_t payload_len);

#endif
