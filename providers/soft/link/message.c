/* SPDX-License-Identifier: BSD-2-Clause */
/* link/message.c - the kind of message that a packet is; a broken one is of an unknown kind. */
#include "config.h"

#include <string.h>

#include "providers/soft/wire/mad.h"
#include "providers/soft/wire/mpa.h"
#include "providers/soft/wire/rc.h"
#include "providers/soft/wire/segment.h"
#include "providers/soft/wire/tcp.h"
#include "shape_internal.h"

#define MAD_ATTR_ID 16u

static enum sim_what mad_kind(const struct sim_frame *frame)
{
	static const enum sim_what kinds[] = {
		SIM_MSG_REQ, SIM_MSG_MRA, SIM_MSG_REJ, SIM_MSG_REP, SIM_MSG_RTU, SIM_MSG_DREQ,
		SIM_MSG_DREP, SIM_MSG_SIDR_REQ, SIM_MSG_SIDR_REP,
	};
	uint8_t attr[2];
	unsigned int id;

	if (!sim_frame_read(frame, MAD_ATTR_ID, attr, sizeof(attr)))
		return SIM_MSG_OTHER_MAD;
	id = (unsigned int)attr[0] << 8 | attr[1];
	if (id < CM_REQ || id - CM_REQ >= sizeof(kinds) / sizeof(kinds[0]))
		return SIM_MSG_OTHER_MAD;
	return kinds[id - CM_REQ];
}

static enum sim_what mpa_kind(const struct sim_frame *frame)
{
	uint8_t frame_start[MPA_OFF_FLAGS + 1];

	if (!sim_frame_read(frame, SEG_HEADER, frame_start, sizeof(frame_start)))
		return SIM_MSG_OTHER_STREAM;
	if (!memcmp(frame_start, "MPA ID Req Frame", MPA_KEY_SIZE))
		return SIM_MSG_MPA_REQ;
	if (!memcmp(frame_start, "MPA ID Rep Frame", MPA_KEY_SIZE))
		return frame_start[MPA_OFF_FLAGS] & MPA_FLAG_REJECT ? SIM_MSG_MPA_REJ : SIM_MSG_MPA_REP;
	return SIM_MSG_OTHER_STREAM;
}

static enum sim_what segment_kind(const struct sim_frame *frame)
{
	uint8_t type;

	if (!sim_frame_read(frame, 0, &type, sizeof(type)))
		return SIM_MSG_OTHER_STREAM;
	switch (type) {
	case SEG_DATA:
		return mpa_kind(frame);
	case SEG_FIN:
		return SIM_MSG_FIN;
	case SEG_RST:
		return SIM_MSG_RST;
	default:
		return SIM_MSG_OTHER_STREAM;
	}
}

static enum sim_what rc_kind(const struct rc_header *h)
{
	switch (h->op) {
	case RC_SEND:
		return SIM_MSG_SEND;
	case RC_WRITE:
	case RC_ATOMIC_WRITE:
		return SIM_MSG_WRITE;
	case RC_READ:
		return SIM_MSG_READ;
	case RC_CMP_SWAP:
	case RC_FETCH_ADD:
		return SIM_MSG_ATOMIC;
	case RC_ACK:
	case RC_PROGRESS:
		return SIM_MSG_ACK;
	case RC_READ_DATA:
	case RC_ATOMIC_DATA:
		return SIM_MSG_READ_REPLY;
	case RC_NAK:
		return h->syndrome == RC_NAK_RNR ? SIM_MSG_RNR_NAK : SIM_MSG_NAK;
	default:
		return SIM_MSG_OTHER_DATA;
	}
}

/* Data that the receiver reads from our memory occupies the wire as well. */
static void look_at_rc(const struct sim_frame *frame, struct sim_message *message)
{
	struct rc_header h;

	message->what = SIM_MSG_OTHER_DATA;
	if (!sim_frame_read(frame, 0, &h, sizeof(h)))
		return;
	message->what = rc_kind(&h);
	if (h.flags & (RC_F_LOCAL | RC_F_REF) && h.length > h.offset)
		message->wire_length += h.length - h.offset;
}

static void look_at_tcp(const struct sim_frame *frame, struct sim_message *message)
{
	static const enum sim_what kinds[] = {
		[POLYCM_TCP_SYN] = SIM_MSG_TCP_SYN,
		[POLYCM_TCP_SYN_ACK] = SIM_MSG_TCP_SYN_ACK,
		[POLYCM_TCP_ACK] = SIM_MSG_TCP_ACK,
		[POLYCM_TCP_DATA] = SIM_MSG_TCP_DATA,
		[POLYCM_TCP_FIN] = SIM_MSG_TCP_FIN,
		[POLYCM_TCP_RST] = SIM_MSG_TCP_RST,
		[POLYCM_TCP_REFUSED] = SIM_MSG_TCP_RST,
	};
	struct tcp_header h;

	message->what = SIM_MSG_OTHER_DATA;
	if (!sim_frame_read(frame, 0, &h, sizeof(h)) ||
	    h.kind >= sizeof(kinds) / sizeof(kinds[0]))
		return;
	message->what = kinds[h.kind];
	/* The checksum is over its headers, too. */
	message->length = TCP_HEADERS_LEN + h.len;
	message->wire_length = message->length;
}

void sim_message_of(const struct sim_frame *frame, struct sim_message *ret_message)
{
	size_t length = sim_frame_len(frame);

	*ret_message = (struct sim_message){ .length = (uint32_t)length, .wire_length = length };
	switch (frame->type) {
	case SIM_PACKET_MAD:
		ret_message->what = mad_kind(frame);
		break;
	case SIM_PACKET_STREAM:
		ret_message->what = segment_kind(frame);
		ret_message->start = length < SEG_HEADER ? (uint32_t)length : SEG_HEADER;
		ret_message->length -= ret_message->start;
		break;
	case SIM_PACKET_RC:
		look_at_rc(frame, ret_message);
		break;
	case SIM_PACKET_TCP:
		look_at_tcp(frame, ret_message);
		break;
	default:
		ret_message->what = frame->type == SIM_PACKET_UD ? SIM_MSG_UD : SIM_MSG_OTHER_DATA;
		break;
	}
}
