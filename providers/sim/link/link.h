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

#include "providers/sim/fabric.h"

enum sim_packet_type {
	SIM_PACKET_MAD,		/* 256 bytes */
	SIM_PACKET_STREAM,	/* TCP segments of the iWARP engine */
	SIM_PACKET_RC,		/* data path of connected QPs */
	SIM_PACKET_UD,
	SIM_PACKET_NOTE,	/* off the wire: see sim_link_note() */
	SIM_PACKET_TYPES
};

#define SIM_LINK_MAX_PACKET 16384u	/* header and payload */

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

/* Set at start-up: a process of the fabric is gone, and nothing more comes from it. */
void sim_link_set_death_handler(void (*fn)(unsigned int slot));
/* Not from handlers: notice at once if that process is gone. */
void sim_link_look_at(unsigned int slot);
/* Before something begins with the process in the slot: one that had it before is told dead. */
void sim_link_meet(unsigned int slot);
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
/* Which process answers for the host of the one in that slot: that one, or where it is gone, we. */
unsigned int sim_link_answers_for(unsigned int slot);

/*
 * Single copy out of another process's memory (process_vm_readv).
 * sim_link_pullable(): may that process read OUR memory directly?  Known only
 * once it has tried; false until then, and where the system forbids it.
 */
bool sim_link_pullable(unsigned int slot);
int sim_link_pull(unsigned int slot, const struct iovec *remote, unsigned int remote_parts,
		  const struct iovec *local, unsigned int local_parts, size_t len);

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

/*
 * Join the shared fabric of that name as a process, which gives us a slot;
 * -EINVAL: no good name, -EPERM: its folder is not ours alone, -EPROTO: the
 * files in it are none of ours or of another version.  Leave it again.
 */
int sim_shm_join(const char *fabric);
void sim_shm_leave(void);
/* In the child of a fork(): forget what the parent has; sim_shm_join() may follow. */
void sim_shm_after_fork(void);

/* No lock; harmless on a private fabric, also while another thread leaves. */
bool sim_shm_pending(void);	/* has anything come in? */
bool sim_shm_has_mail(unsigned int slot);	/* ... from that process? */
bool sim_shm_watch(uint64_t until);	/* ... or will it, until then?  Meanwhile nobody need ring */
void sim_shm_ring_self(void);	/* wake our own NIC thread */
/* Lock held: does that process live, and has not looked at what we sent it last? */
bool sim_shm_unread(unsigned int slot);
void sim_shm_receive(void);	/* deliver what came in (lock held) */
/*
 * The NIC thread sleeps: prepare with the lock held, wait without it, awake
 * with it again.  The wait ends with the deadline, a ring of our own since the
 * preparation and, unless quiet, when a packet comes in.
 */
uint32_t sim_shm_prepare_wait(bool quiet);
void sim_shm_wait(uint32_t ticket, uint64_t deadline);
void sim_shm_awake(void);

#endif
