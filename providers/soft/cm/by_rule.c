/* SPDX-License-Identifier: BSD-2-Clause */
/* cm/by_rule.c - see by_rule.h. */
#include "config.h"

#include <string.h>

#include "providers/soft/link/shape.h"
#include "providers/soft/wire/mpa.h"
#include "providers/soft/wire/segment.h"
#include "by_rule.h"
#include "ibcm.h"

void ibcm_reject_by_rule(const struct sim_packet *packet, uint16_t reason)
{
	struct cm_msg msg;

	if (!cm_decode(packet->data, packet->len, &msg))
		ibcm_issue_rej(packet, &msg, reason, NULL, 0);
}

/* The peer's words, without asking it: from its process, from its end of the stream. */
void iwcm_reject_by_rule(const struct sim_packet *packet, uint16_t reason)
{
	uint8_t bytes[SEG_HEADER + MPA_MAX_FRAME] = { SEG_DATA, SEG_VERSION };
	struct mpa_frame request, reply = { .type = MPA_REPLY, .reject = true };
	size_t used, len;

	(void)reason;
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
