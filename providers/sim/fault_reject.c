/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fault_reject.c - the answer that a rule gives in the receiver's place: a REJ
 * to a REQ or REP, a reply with the reject flag to an MPA request, a NAK to data,
 * by which the work request completes with an error.
 */
#include "config.h"

#include <string.h>

#include "providers/sim/cm/ibcm.h"
#include "providers/sim/cm/mpa.h"
#include "providers/sim/cm/segment.h"
#include "providers/sim/link/shape.h"
#include "providers/sim/nic/rc.h"

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

/* The reason is the code in a NAK (IBTA vol. 1, 9.7.5.2.1); no sequence error. */
static void reject_data(const struct sim_packet *packet, uint16_t reason)
{
	static const uint8_t syndromes[] = {
		RC_NAK_REMOTE_OPERATION, RC_NAK_INVALID_REQUEST, RC_NAK_REMOTE_ACCESS,
		RC_NAK_REMOTE_OPERATION,
	};
	struct rc_header request, nak = { .op = RC_NAK };

	if (packet->len < sizeof(request))
		return;
	memcpy(&request, packet->data, sizeof(request));
	nak.dst_qpn = request.src_qpn;
	nak.src_qpn = request.dst_qpn;
	nak.psn = request.psn;
	nak.syndrome = syndromes[reason < sizeof(syndromes) ? reason : 0];
	(void)sim_link_send_as(packet->to, packet->from, packet->from_slot, SIM_PACKET_RC, &nak,
			       sizeof(nak));
}

void sim_fault_reject(const struct sim_packet *packet, uint16_t reason)
{
	if (packet->type == SIM_PACKET_MAD)
		reject_mad(packet, reason);
	else if (packet->type == SIM_PACKET_STREAM)
		reject_mpa(packet);
	else if (packet->type == SIM_PACKET_RC)
		reject_data(packet, reason);
}
