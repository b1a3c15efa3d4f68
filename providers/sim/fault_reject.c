/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fault_reject.c - the answer that a rule gives in the receiver's place: a REJ
 * to a REQ or REP, a reply with the reject flag to an MPA request.
 */
#include "config.h"

#include <string.h>

#include "cm/ibcm.h"
#include "cm/mpa.h"
#include "cm/segment.h"
#include "link/shape.h"

static void reject_mad(const struct sim_packet *packet, uint16_t reason)
{
	struct cm_msg msg;

	if (!cm_decode(packet->data, packet->len, &msg))
		ibcm_issue_rej(packet, &msg, reason, NULL, 0);
}

/* The peer's words, without asking it: from its process, from its end of the stream. */
static void reject_mpa(const struct sim_packet *packet)
{
	uint8_t bytes[SEG_HEADER + MPA_MAX_FRAME] = { SEG_DATA, SEG_VERSION };
	struct mpa_frame request, reply = { .type = MPA_REPLY, .reject = true };
	size_t used, len;

	if (packet->len < SEG_HEADER ||
	    mpa_decode(packet->data + SEG_HEADER, packet->len - SEG_HEADER, &request, &used) < 0)
		return;
	reply.revision = request.revision;
	reply.crc = request.crc;
	if (mpa_encode(&reply, bytes + SEG_HEADER, MPA_MAX_FRAME, &len) < 0)
		return;
	memcpy(bytes + SEG_DST_ID, packet->data + SEG_SRC_ID, 4);
	memcpy(bytes + SEG_SRC_ID, packet->data + SEG_DST_ID, 4);
	(void)sim_link_send_as(packet->to, packet->from, packet->from_slot, SIM_PACKET_STREAM,
			       bytes, SEG_HEADER + len);
}

void sim_fault_reject(const struct sim_packet *packet, uint16_t reason)
{
	if (packet->type == SIM_PACKET_MAD)
		reject_mad(packet, reason);
	else if (packet->type == SIM_PACKET_STREAM)
		reject_mpa(packet);
}
