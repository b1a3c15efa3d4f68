/* SPDX-License-Identifier: BSD-2-Clause */
/* link/link.c - which way a packet goes, and who gets it.  Engine lock held. */
#include "config.h"

#include <errno.h>
#include <string.h>

#include "providers/soft/engine/turns.h"
#include "providers/soft/fabric/gids.h"
#include "providers/soft/fabric/world.h"
#include "count.h"
#include "link_internal.h"
#include "shape.h"

static sim_packet_handler_t handlers[SIM_PACKET_TYPES];
static sim_packet_rejecter_t rejecters[SIM_PACKET_TYPES];
static sim_packet_placer_t placers[SIM_PACKET_TYPES];
static uint32_t num_packets;
static const struct sim_port *logged_pair[2];	/* the last two of which one only is iWARP */

void sim_link_set_handler(enum sim_packet_type type, sim_packet_handler_t handler)
{
	handlers[type] = handler;
}

void sim_link_set_rejecter(enum sim_packet_type type, sim_packet_rejecter_t rejecter)
{
	rejecters[type] = rejecter;
}

void sim_link_set_placer(enum sim_packet_type type, sim_packet_placer_t placer)
{
	placers[type] = placer;
}

void sim_link_reject(const struct sim_packet *packet, uint16_t reason)
{
	if (rejecters[packet->type])
		rejecters[packet->type](packet, reason);
}

static int to_nobody(const struct sim_frame *frame, unsigned int slot)
{
	(void)frame;
	(void)slot;
	return 0;
}

static void nothing_owed(void)
{
}

bool sim_link_reads_many;
void (*sim_link_has_read)(void) = nothing_owed;
int (*sim_link_to_process)(const struct sim_frame *frame, unsigned int slot) = to_nobody;
int (*sim_link_to_machine)(const struct sim_frame *frame, unsigned int slot) = to_nobody;

void sim_link_deliver(const struct sim_packet *packet)
{
	if (!sim_port_carries(packet->to))
		return;
	sim_link_count_received(packet);
	if (sim_tapped())
		sim_tap_received(packet);
	if (handlers[packet->type])
		handlers[packet->type](packet);
}

void sim_link_tell(const struct sim_packet *packet)
{
	if (handlers[packet->type])
		handlers[packet->type](packet);
}

/* A tap is to see all of a packet. */
unsigned int sim_link_place(const struct sim_packet *packet, struct iovec to[static SIM_PLACE_PARTS])
{
	if (!placers[packet->type] || sim_tapped() || !sim_port_carries(packet->to))
		return 0;
	return placers[packet->type](packet, to);
}

/* Who looks on, or delays packets, has a copy of each. */
size_t sim_link_max(unsigned int slot)
{
	if (!sim_slot_is_remote(slot) || slot & SIM_SLOT_ASK || sim_tapped() || sim_shaping())
		return SIM_LINK_MAX_PACKET;
	return sim_remote->max_packet(slot);
}

bool sim_frame_read(const struct sim_frame *frame, size_t offset, void *to, size_t len)
{
	const struct iovec *part = frame->payload;
	char *at = to;
	size_t n;

	if (offset > sim_frame_len(frame) || len > sim_frame_len(frame) - offset)
		return false;
	if (offset < frame->header_len) {
		n = frame->header_len - offset < len ? frame->header_len - offset : len;
		memcpy(at, (const char *)frame->header + offset, n);
		at += n;
		len -= n;
		offset += n;
	}
	offset -= frame->header_len;
	for (; len; part++) {
		if (offset >= part->iov_len) {
			offset -= part->iov_len;
			continue;
		}
		n = part->iov_len - offset < len ? part->iov_len - offset : len;
		memcpy(at, (const char *)part->iov_base + offset, n);
		at += n;
		len -= n;
		offset = 0;
	}
	return true;
}

/* The next packet of this process. */
static inline struct sim_frame make_frame(struct sim_port *from, struct sim_port *to,
					  enum sim_packet_type type, const void *header,
					  size_t header_len, const struct iovec *payload,
					  unsigned int payload_parts, size_t payload_len)
{
	return (struct sim_frame){
		.from = from,
		.to = to,
		.type = type,
		.header = header,
		.header_len = header_len,
		.payload = payload,
		.payload_parts = payload_parts,
		.payload_len = payload_len,
		.number = (uint64_t)sim_self_slot() << 32 | ++num_packets,
	};
}

/* Do the parts have as many bytes as the caller says? */
static bool payload_suffices(const struct iovec *payload, unsigned int parts, size_t len)
{
	for (unsigned int i = 0; i < parts && len; i++)
		len -= payload[i].iov_len < len ? payload[i].iov_len : len;
	return !len;
}

/* The program gets only a REJ or RST, as if nobody listened there. */
static void tell_other_wire(const struct sim_port *from, const struct sim_port *to)
{
	const struct sim_port *pair[] = { from < to ? from : to, from < to ? to : from };

	bool here = sim_wire_of(from->device->rules) == SIM_WIRE_IWARP;
	bool there = sim_wire_of(to->device->rules) == SIM_WIRE_IWARP;

	if (here == there || !memcmp(logged_pair, pair, sizeof(logged_pair)))
		return;
	memcpy(logged_pair, pair, sizeof(logged_pair));
	sim_core->log(POLYCM_LOG_WARN, NULL, "node %s, device %s, is %s, and node %s, device %s, %s: "
		      "they cannot connect", from->device->node->name,
		      from->device->vdev.device.name, from->device->rules->name,
		      to->device->node->name, to->device->vdev.device.name, to->device->rules->name);
}

int sim_link_send(struct sim_port *from, struct sim_port *to, unsigned int slot,
		  enum sim_packet_type type, const void *header, size_t header_len,
		  const struct iovec *payload, unsigned int payload_parts, size_t payload_len)
{
	const struct sim_frame frame = make_frame(from, to, type, header, header_len, payload,
						  payload_parts, payload_len);

	if (header_len > SIM_LINK_MAX_PACKET || payload_len > sim_link_max(slot) - header_len)
		return -EMSGSIZE;
	if (!payload_suffices(payload, payload_parts, payload_len))
		return -EINVAL;
	sim_link_count_sent(&frame);
	if (sim_tapped() && sim_port_carries(from))
		sim_tap_sent(&frame, slot);
	if (!to || slot == SIM_NOBODY)
		return 0;
	if (__builtin_expect(sim_turns_here != NULL, 0))
		sim_turns_here->sent();
	if (type <= SIM_PACKET_STREAM && __builtin_expect(from->device->rules != to->device->rules, 0))
		tell_other_wire(from, to);
	if (sim_shaping())	/* or a port does not work */
		return sim_shape_send(&frame, slot);
	if (slot == sim_self_slot())
		return sim_local_send(&frame);
	return sim_link_leave(&frame, slot);
}

int sim_link_send_as(struct sim_port *from, struct sim_port *to, unsigned int from_slot,
		     enum sim_packet_type type, const void *bytes, size_t len)
{
	const struct sim_frame frame = make_frame(from, to, type, bytes, len, NULL, 0, 0);

	return sim_shape_send_as(&frame, from_slot);
}

void sim_link_note(struct sim_port *from, struct sim_port *to, unsigned int slot, const void *note,
		   size_t len)
{
	const struct sim_frame frame = {
		.from = from,
		.to = to,
		.type = SIM_PACKET_NOTE,
		.header = note,
		.header_len = len,
	};

	if (slot == sim_self_slot())
		return;
	/* Without memory the other end uses the state that it got before. */
	if (sim_shaping())
		(void)sim_shape_note(&frame, slot);
	else
		(void)sim_link_leave(&frame, slot);
}

void sim_link_inject(const struct sim_packet *packet)
{
	struct sim_packet sent = *packet;
	struct sim_frame frame;

	if (!sim_shaping()) {
		sim_link_deliver(packet);
		return;
	}
	frame = make_frame(packet->from, packet->to, packet->type, packet->data, packet->len, NULL,
			   0, 0);
	if (sim_tapped())
		sim_tap_sent(&frame, sim_self_slot());
	/* Taps saw it leave from this process. */
	sent.from_slot = sim_self_slot();
	sent.number = frame.number;
	(void)sim_shape_inject(&sent, &frame);
}

void sim_link_drop_all(void)
{
	sim_shape_drop_all();
	num_packets = 0;
	memset(logged_pair, 0, sizeof(logged_pair));
}
