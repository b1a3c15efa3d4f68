/* SPDX-License-Identifier: BSD-2-Clause */
/* link/link_internal.h - between link.c and the two kinds of link.  Engine lock held. */
#ifndef SIM_LINK_INTERNAL_H
#define SIM_LINK_INTERNAL_H

#include <string.h>

#include "providers/soft/fabric/remote.h"
#include "tap.h"

/* What there is to send, checked against SIM_LINK_MAX_PACKET. */
struct sim_frame {
	struct sim_port *from, *to;
	enum sim_packet_type type;
	const void *header;
	size_t header_len;
	const struct iovec *payload;
	unsigned int payload_parts;
	size_t payload_len;
	uint64_t number;		/* of the packet, in traces */
};

static inline size_t sim_frame_len(const struct sim_frame *frame)
{
	return frame->header_len + frame->payload_len;
}

/* Copy bytes at an offset of header and payload.  false: they are not that long. */
bool sim_frame_read(const struct sim_frame *frame, size_t offset, void *to, size_t len);
static inline void sim_frame_copy(const struct sim_frame *frame, void *to)
{
	if (frame->payload_len)
		(void)sim_frame_read(frame, 0, to, sim_frame_len(frame));
	else if (frame->header_len)
		memcpy(to, frame->header, frame->header_len);
}

/* Hand a packet to its type's handler. */
void sim_link_deliver(const struct sim_packet *packet);
/*
 * Where the payload of a packet can be read to (link.h).  The caller asks again before each read, and
 * if the answer is another one, the packet is lost.
 */
unsigned int sim_link_place(const struct sim_packet *packet, struct iovec to[static SIM_PLACE_PARTS]);
/* The same for what no tap sees and no port stops. */
void sim_link_tell(const struct sim_packet *packet);

/* By a fault rule, instead of delivering it. */
void sim_link_reject(const struct sim_packet *packet, uint16_t reason);

/* Inside the process, over a link without settings: in order, after the same latency (shape.c). */
int sim_local_send(const struct sim_frame *frame);

/* To another process, by link/shm/shm.c; lost before a shared fabric is joined. */
extern int (*sim_link_to_process)(const struct sim_frame *frame, unsigned int slot);
/* To a process of another machine (fabric/remote.h); lost where there are none. */
extern int (*sim_link_to_machine)(const struct sim_frame *frame, unsigned int slot);

/* To one of the two. */
static inline int sim_link_leave(const struct sim_frame *frame, unsigned int slot)
{
	return sim_slot_is_remote(slot) ? sim_link_to_machine(frame, slot)
					: sim_link_to_process(frame, slot);
}

#endif
