/* SPDX-License-Identifier: BSD-2-Clause */
/* cm/iwcm_segment.c - the segments of a stream that go out on the link. */
#include "config.h"

#include <string.h>

#include "providers/soft/fabric/remote.h"
#include "providers/soft/link/shape.h"
#include "iwcm.h"

static int send_segment(struct sim_port *from, struct sim_port *to, unsigned int slot,
			const struct segment *segment)
{
	struct iovec payload = { .iov_base = (void *)(uintptr_t)segment->data,
				 .iov_len = segment->len };
	uint8_t header[SEG_SYN_LEN];
	size_t header_len = iw_segment_header(segment, header);

	return sim_link_send(from, to, slot, SIM_PACKET_STREAM, header, header_len, &payload,
			     segment->len ? 1 : 0, segment->len);
}

void iw_send_syn(const struct iwcm *cm, struct sim_port *to, unsigned int slot)
{
	struct segment segment = {
		.type = SEG_SYN,
		.src_id = cm->local_id,
		.qpn = cm->qpn,
		.src = cm->id->src,
		.dst = cm->id->dst,
	};

	(void)send_segment(cm->port, to, slot, &segment);
}

void iw_send_rst(const struct sim_packet *packet, const struct segment *to)
{
	struct segment segment = {
		.type = SEG_RST,
		.dst_id = to->src_id,
		.src_id = to->dst_id,
	};

	(void)send_segment(packet->to, packet->from, packet->from_slot, &segment);
}

int iw_send(const struct iwcm *cm, enum segment_type type, const uint8_t *data, size_t len)
{
	struct segment segment = {
		.type = type,
		.dst_id = cm->peer_id,
		.src_id = cm->local_id,
		.qpn = cm->qpn,
		.data = data,
		.len = len,
	};

	return send_segment(cm->port, cm->peer, sim_slot_of_peer_conn(cm->peer, cm->peer_id), &segment);
}

/* Sent as if by the receiver: from its process, and on its side of the stream. */
void iw_reject_by_rule(const struct sim_packet *packet, uint16_t reason)
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
