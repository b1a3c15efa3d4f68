/* SPDX-License-Identifier: BSD-2-Clause */
/* link/link.c - which way a packet goes, and who gets it.  Engine lock held. */
#include "config.h"

#include <errno.h>
#include <string.h>

#include "link_internal.h"

static sim_packet_handler_t handlers[SIM_PACKET_TYPES];

void sim_link_set_handler(enum sim_packet_type type, sim_packet_handler_t handler)
{
	handlers[type] = handler;
}

void sim_link_deliver(const struct sim_packet *packet)
{
	if (handlers[packet->type])
		handlers[packet->type](packet);
}

void sim_frame_copy(const struct sim_frame *frame, void *to)
{
	size_t left = frame->payload_len, part;
	char *at = to;

	if (frame->header_len)
		memcpy(at, frame->header, frame->header_len);
	at += frame->header_len;
	for (unsigned int i = 0; left; i++) {
		part = frame->payload[i].iov_len < left ? frame->payload[i].iov_len : left;
		if (part)
			memcpy(at, frame->payload[i].iov_base, part);
		at += part;
		left -= part;
	}
}

/* Do the parts hold as many bytes as the caller says? */
static bool payload_suffices(const struct iovec *payload, unsigned int parts, size_t len)
{
	for (unsigned int i = 0; i < parts && len; i++)
		len -= payload[i].iov_len < len ? payload[i].iov_len : len;
	return !len;
}

int sim_link_send(struct sim_port *from, struct sim_port *to, unsigned int slot,
		  enum sim_packet_type type, const void *header, size_t header_len,
		  const struct iovec *payload, unsigned int payload_parts, size_t payload_len)
{
	const struct sim_frame frame = {
		.from = from,
		.to = to,
		.type = type,
		.header = header,
		.header_len = header_len,
		.payload = payload,
		.payload_parts = payload_parts,
		.payload_len = payload_len,
	};

	if (header_len > SIM_LINK_MAX_PACKET || payload_len > SIM_LINK_MAX_PACKET - header_len)
		return -EMSGSIZE;
	if (!payload_suffices(payload, payload_parts, payload_len))
		return -EINVAL;
	if (slot == sim_self_slot())
		return sim_local_send(&frame);
	return sim_shm_send(&frame, slot);
}

void sim_link_drop_all(void)
{
	sim_local_drop_all();
}
