/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * link/count.c - see count.h.
 *
 * A packet here may stand for a whole message, whose data the receiver reads from the sender's
 * memory.  On a wire it is a packet for each MTU, and has headers.
 */
#include "config.h"

#include <string.h>

#include "count.h"
#include "providers/soft/fabric/counters.h"
#include "providers/soft/fabric/groups.h"
#include "providers/soft/fabric/world.h"
#include "providers/soft/wire/rc_short.h"
#include "providers/soft/wire/ud.h"

#define HEADER_WORDS 6u			/* LRH, BTH and ICRC, in words of 4 bytes */

static void count(const struct sim_port *port, enum sim_counter packets, enum sim_counter words,
		  uint64_t bytes)
{
	unsigned int shift = 7u + (unsigned int)port->active_mtu;
	uint64_t num = ((bytes - !!bytes) >> shift) + 1;

	sim_count(port, packets, num);
	sim_count(port, words, (bytes + 3) / 4 + num * HEADER_WORDS);
}

/* Bytes that the packet stands for. */
static uint64_t rc_bytes(const void *header, size_t len, size_t payload_len)
{
	struct rc_header h;
	uint32_t acked;
	size_t own = rc_read_header(header, len, &h, &acked);

	if (own && (h.flags & (RC_F_LOCAL | RC_F_REF) || h.placed))
		return h.length > h.offset ? h.length - h.offset : 0;
	return len - own + payload_len;
}

static bool is_to_group(const void *header, size_t len)
{
	uint32_t qpn;

	_Static_assert(offsetof(struct ud_header, dst_qpn) == 0, "it comes first");
	if (len < sizeof(qpn))
		return false;
	memcpy(&qpn, header, sizeof(qpn));
	return qpn == SIM_MULTICAST_QPN;
}

static uint64_t bytes_of(enum sim_packet_type type, const void *header, size_t len,
			 size_t payload_len)
{
	if (type == SIM_PACKET_RC)
		return rc_bytes(header, len, payload_len);
	if (type == SIM_PACKET_UD && len >= sizeof(struct ud_header))
		len -= sizeof(struct ud_header);
	return len + payload_len;
}

void sim_link_count_sent(const struct sim_frame *frame)
{
	/* It goes through the host, not the device. */
	if (frame->type == SIM_PACKET_TCP)
		return;
	if (!sim_port_carries(frame->from)) {
		sim_count(frame->from, SIM_NOT_SENT, 1);
		return;
	}
	if (frame->type == SIM_PACKET_UD && is_to_group(frame->header, frame->header_len))
		return;
	count(frame->from, SIM_SENT_PACKETS, SIM_SENT_WORDS,
	      bytes_of(frame->type, frame->header, frame->header_len, frame->payload_len));
}

void sim_link_count_received(const struct sim_packet *packet)
{
	if (packet->type == SIM_PACKET_TCP)
		return;
	if (packet->type == SIM_PACKET_UD && is_to_group(packet->data, packet->len))
		sim_count(packet->to, SIM_RECEIVED_FROM_GROUPS, 1);
	count(packet->to, SIM_RECEIVED_PACKETS, SIM_RECEIVED_WORDS,
	      bytes_of(packet->type, packet->data, packet->len, packet->placed));
}

void sim_link_count_to_group(const struct sim_port *from, uint32_t len)
{
	if (!sim_port_carries(from))
		return;
	sim_count(from, SIM_SENT_TO_GROUPS, 1);
	count(from, SIM_SENT_PACKETS, SIM_SENT_WORDS, len);
}

void sim_link_count_direct(const struct sim_port *from, const struct sim_port *to, uint64_t bytes,
			   bool read)
{
	uint64_t request = read ? 0 : bytes, answer = bytes - request;

	count(from, SIM_SENT_PACKETS, SIM_SENT_WORDS, request);
	count(to, SIM_RECEIVED_PACKETS, SIM_RECEIVED_WORDS, request);
	count(to, SIM_SENT_PACKETS, SIM_SENT_WORDS, answer);
	count(from, SIM_RECEIVED_PACKETS, SIM_RECEIVED_WORDS, answer);
}
