/* SPDX-License-Identifier: BSD-2-Clause */
/* link/tap.c - gives taps each packet, in one piece. */
#include "config.h"

#include "providers/soft/shm/visit.h"
#include "providers/soft/wire/rc_short.h"
#include "link_internal.h"

struct sim_tap *sim_taps;

void sim_tap_add(struct sim_tap *tap)
{
	struct sim_tap **at = &sim_taps;

	while (*at && *at != tap)
		at = &(*at)->next;
	if (*at)
		return;
	tap->next = NULL;
	*at = tap;
	sim_visit_close(SIM_CLOSED_WATCHED, true);
}

/* Its `next' stays: the list may just be walked. */
void sim_tap_remove(struct sim_tap *tap)
{
	for (struct sim_tap **at = &sim_taps; *at; at = &(*at)->next) {
		if (*at == tap) {
			*at = tap->next;
			sim_visit_close(SIM_CLOSED_WATCHED, sim_taps != NULL);
			return;
		}
	}
}

void sim_tap_sent(const struct sim_frame *frame, unsigned int to_slot)
{
	static uint8_t bytes[SIM_LINK_MAX_PACKET];
	const struct sim_packet packet = {
		.type = frame->type,
		.from = frame->from,
		.to = frame->to,
		.from_slot = sim_self_slot(),
		.number = frame->number,
		.data = bytes,
		.len = sim_frame_len(frame),
	};

	sim_frame_copy(frame, bytes);
	for (struct sim_tap *tap = sim_taps; tap; tap = tap->next)
		tap->sent(&packet, to_slot);
}

/* It was sent before its sender saw that we look.  An acknowledgement that it carries is not shown. */
static bool in_full(const struct sim_packet *packet, struct sim_packet *ret_full)
{
	static struct {
		struct rc_header header;
		uint8_t payload[SIM_LINK_MAX_PACKET];
	} full;
	size_t len, payload;
	uint32_t acked;

	if (packet->type != SIM_PACKET_RC)
		return false;
	len = rc_read_header(packet->data, packet->len, &full.header, &acked);
	payload = packet->len - len;
	if (len != sizeof(struct rc_short) || payload > sizeof(full.payload))
		return false;
	memcpy(full.payload, packet->data + len, payload);
	*ret_full = *packet;
	ret_full->data = (const uint8_t *)&full;
	ret_full->len = sizeof(full.header) + payload;
	return true;
}

void sim_tap_received(const struct sim_packet *packet)
{
	struct sim_packet full;

	if (in_full(packet, &full))
		packet = &full;
	for (struct sim_tap *tap = sim_taps; tap; tap = tap->next)
		tap->received(packet);
}
