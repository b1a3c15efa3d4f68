/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * watch/trace_packet.c - packets as lines of the trace: the message's name, its sender
 * and receiver, and its most important members.
 */
#include "config.h"

#include <arpa/inet.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "providers/soft/cm/ibcm.h"
#include "providers/soft/cm/iwcm.h"
#include "providers/soft/trace/trace.h"
#include "providers/soft/wire/rc.h"
#include "providers/soft/wire/segment.h"
#include "providers/soft/wire/tcp.h"
#include "providers/soft/wire/ud.h"
#include "watch.h"

static const char *const segment_names[SEG_TYPES] = {
	[SEG_SYN] = "SYN",
	[SEG_SYN_ACK] = "SYN_ACK",
	[SEG_RST] = "RST",
	[SEG_DATA] = "DATA",
	[SEG_FIN] = "FIN",
};

static const char *const rc_names[RC_OPS] = {
	[RC_SEND] = "SEND",
	[RC_WRITE] = "WRITE",
	[RC_READ] = "READ",
	[RC_CMP_SWAP] = "ATOMIC",
	[RC_FETCH_ADD] = "ATOMIC",
	[RC_FLUSH] = "FLUSH",
	[RC_ATOMIC_WRITE] = "ATOMIC_WRITE",
	[RC_ACK] = "ACK",
	[RC_PROGRESS] = "ACK",
	[RC_READ_DATA] = "READ_REPLY",
	[RC_ATOMIC_DATA] = "ATOMIC_REPLY",
	[RC_NAK] = "NAK",
};

static const char *const nak_reasons[RC_SYNDROMES] = {
	[RC_NAK_SEQUENCE] = "sequence",
	[RC_NAK_INVALID_REQUEST] = "invalid request",
	[RC_NAK_REMOTE_ACCESS] = "remote access",
	[RC_NAK_REMOTE_OPERATION] = "remote operation",
	[RC_NAK_NO_REF] = "send the data",
};

static void begin(const char *kind, const struct sim_packet *packet, const char *message)
{
	sim_trace_begin(kind);
	sim_trace_number("packet", packet->number);
	sim_trace_text("from", packet->from->device->node->name);
	sim_trace_text("to", packet->to ? packet->to->device->node->name : "");
	sim_trace_text("message", message);
}

static void addresses(const union sim_sockaddr *src, const union sim_sockaddr *dst)
{
	trace_address(&sim_trace_current, "src", &src->sa);
	trace_address(&sim_trace_current, "dst", &dst->sa);
}

/* ------------------------------------------------------------------------
 * Messages of the InfiniBand CM.
 */

/* The wire does not say how much was sent: zeros at the end do not count. */
static void padded_data(const uint8_t *data, size_t len)
{
	while (len && !data[len - 1])
		len--;
	trace_private_data(&sim_trace_current, data, len);
}

/* The CMA header in front of the program's private data becomes members of its own. */
static void request_data(uint64_t service_id, const uint8_t *data, size_t len)
{
	struct cma_hdr_info info;

	if (cm_service_id_port_space(service_id) && !cma_hdr_decode(data, len, &info)) {
		info.dst.in.sin_port = htons(cm_service_id_port(service_id));
		addresses(&info.src, &info.dst);
		data += CMA_HDR_SIZE;
		len -= CMA_HDR_SIZE;
	}
	padded_data(data, len);
}

static void service(uint64_t service_id)
{
	char text[17];

	(void)snprintf(text, sizeof(text), "%016" PRIx64, service_id);
	sim_trace_text("service", text);
}

static void ece(uint32_t vendor_id, uint32_t options)
{
	if (!vendor_id && !options)
		return;
	sim_trace_number("ece_vendor", vendor_id);
	sim_trace_number("ece_options", options);
}

static void req(const struct cm_msg *msg)
{
	const struct cm_req *m = &msg->req;

	service(m->service_id);
	sim_trace_number("qpn", m->local_qpn);
	sim_trace_number("psn", m->starting_psn);
	sim_trace_number("responder_resources", m->responder_resources);
	sim_trace_number("initiator_depth", m->initiator_depth);
	sim_trace_number("retry", m->retry_count);
	sim_trace_number("rnr_retry", m->rnr_retry_count);
	ece(m->vendor_id, msg->attr_mod);
	request_data(m->service_id, m->private_data, sizeof(m->private_data));
}

static void rep(const struct cm_msg *msg)
{
	const struct cm_rep *m = &msg->rep;

	sim_trace_number("qpn", m->local_qpn);
	sim_trace_number("psn", m->starting_psn);
	sim_trace_number("responder_resources", m->responder_resources);
	sim_trace_number("initiator_depth", m->initiator_depth);
	sim_trace_number("rnr_retry", m->rnr_retry_count);
	sim_trace_number("ack_delay", m->target_ack_delay);
	ece(m->vendor_id, msg->attr_mod);
	padded_data(m->private_data, sizeof(m->private_data));
}

/* Of message_rejected and message_mraed. */
static const char *const which_message[] = { "REQ", "REP", "OTHER", "OTHER" };

static void rej(const struct cm_msg *msg)
{
	sim_trace_text("rejected", which_message[msg->rej.message_rejected & 3]);
	sim_trace_number("reason", msg->rej.reason);
	padded_data(msg->rej.private_data, sizeof(msg->rej.private_data));
}

static void mra(const struct cm_msg *msg)
{
	sim_trace_text("answers", which_message[msg->mra.message_mraed & 3]);
	sim_trace_number("service_timeout", msg->mra.service_timeout);
	padded_data(msg->mra.private_data, sizeof(msg->mra.private_data));
}

static void sidr_rep(const struct cm_msg *msg)
{
	const struct cm_sidr_rep *m = &msg->sidr_rep;

	sim_trace_number("status", m->status);
	sim_trace_number("qpn", m->qpn);
	sim_trace_number("qkey", m->qkey);
	ece(m->vendor_id, msg->attr_mod);
	padded_data(m->private_data, sizeof(m->private_data));
}

/* The most important members of a message, besides the communication ids. */
static void detail(const struct cm_msg *msg)
{
	switch (msg->attr_id) {
	case CM_REQ:
		req(msg);
		break;
	case CM_REP:
		rep(msg);
		break;
	case CM_MRA:
		mra(msg);
		break;
	case CM_REJ:
		rej(msg);
		break;
	case CM_RTU:
		padded_data(msg->rtu.private_data, sizeof(msg->rtu.private_data));
		break;
	case CM_DREQ:
		sim_trace_number("qpn", msg->dreq.remote_qpn);
		padded_data(msg->dreq.private_data, sizeof(msg->dreq.private_data));
		break;
	case CM_DREP:
		padded_data(msg->drep.private_data, sizeof(msg->drep.private_data));
		break;
	case CM_SIDR_REQ:
		service(msg->sidr_req.service_id);
		request_data(msg->sidr_req.service_id, msg->sidr_req.private_data,
			     sizeof(msg->sidr_req.private_data));
		break;
	case CM_SIDR_REP:
		sidr_rep(msg);
		break;
	default:
		break;
	}
}

/* The id on this side of a message, if there is one yet. */
static void id_of(const struct ibcm *cm, const struct sim_port *port)
{
	if (cm && cm->id->node == port->device->node)
		sim_trace_number("id", cm->id->number);
}

static void trace_mad(const char *kind, const struct sim_packet *packet)
{
	bool sent = !strcmp(kind, "send");
	uint32_t local, remote;
	struct cm_msg msg;

	if (cm_decode(packet->data, packet->len, &msg) < 0) {
		begin(kind, packet, "MAD");
		return;
	}
	cm_msg_ids(&msg, &local, &remote);
	begin(kind, packet, cm_msg_name(msg.attr_id));
	if (sent ? local : remote)
		id_of(ibcm_find_local(sent ? local : remote), sent ? packet->from : packet->to);
	sim_trace_number("local", local);
	sim_trace_number("remote", remote);
	detail(&msg);
}

/* ------------------------------------------------------------------------
 * The stream of an iWARP connection.
 */

static const char *frame_name(const struct mpa_frame *frame)
{
	if (frame->type == MPA_REQUEST)
		return "MPA_REQ";
	return frame->reject ? "MPA_REJ" : "MPA_REP";
}

static void trace_stream(const char *kind, const struct sim_packet *packet)
{
	bool sent = !strcmp(kind, "send"), is_frame = false;
	struct mpa_frame frame;
	struct segment segment;
	struct iwcm *cm;
	size_t used;

	if (iw_segment_parse(packet->data, packet->len, &segment) < 0) {
		begin(kind, packet, "SEGMENT");
		return;
	}
	if (segment.type == SEG_DATA)
		is_frame = !mpa_decode(segment.data, segment.len, &frame, &used);
	begin(kind, packet, is_frame ? frame_name(&frame) : segment_names[segment.type]);
	cm = iw_stream_find(sent ? segment.src_id : segment.dst_id);
	if (cm && cm->id)
		sim_trace_number("id", cm->id->number);
	sim_trace_number("local", segment.src_id);
	sim_trace_number("remote", segment.dst_id);
	if (segment.type == SEG_SYN)
		addresses(&segment.src, &segment.dst);
	if (is_frame) {
		sim_trace_number("qpn", segment.qpn);
		sim_trace_number("revision", frame.revision);
		if (frame.enhanced) {
			sim_trace_number("ird", frame.ird);
			sim_trace_number("ord", frame.ord);
		}
		if (frame.private_data_len) {
			sim_trace_number("private_data_len", frame.private_data_len);
			trace_bytes(&sim_trace_current, "private_data", frame.private_data,
				    frame.private_data_len);
		}
	}
}

/* ------------------------------------------------------------------------
 * Data.
 */

static void trace_rc(const char *kind, const struct sim_packet *packet)
{
	struct rc_header h;

	if (packet->len < sizeof(h)) {
		begin(kind, packet, "RC");
		return;
	}
	memcpy(&h, packet->data, sizeof(h));
	begin(kind, packet, h.op >= RC_OPS ? "RC" :
	      h.op == RC_NAK && h.syndrome == RC_NAK_RNR ? "RNR_NAK" : rc_names[h.op]);
	sim_trace_number("qpn", h.src_qpn);
	sim_trace_number("dst_qpn", h.dst_qpn);
	if (h.op < RC_ACK && h.xrc_srqn)
		sim_trace_number("srqn", h.xrc_srqn & ~RC_XRC);
	sim_trace_number("psn", h.psn);
	if (h.op < RC_ACK || h.op == RC_READ_DATA)
		sim_trace_number("len", h.length);
	if (h.offset)
		sim_trace_number("offset", h.offset);
	if (h.op < RC_ACK && h.flags & RC_F_IMM)
		sim_trace_number("imm", ntohl(h.imm));
	if (h.op == RC_NAK && h.syndrome == RC_NAK_RNR)
		sim_trace_number("rnr_timer", h.rnr_timer);
	else if (h.op == RC_NAK && h.syndrome < RC_SYNDROMES)
		sim_trace_text("reason", nak_reasons[h.syndrome]);
}

static void trace_ud(const char *kind, const struct sim_packet *packet)
{
	struct ud_header h;

	begin(kind, packet, "UD");
	if (packet->len >= sizeof(h)) {
		memcpy(&h, packet->data, sizeof(h));
		sim_trace_number("qpn", h.src_qpn);
		sim_trace_number("dst_qpn", h.dst_qpn);
		sim_trace_number("qkey", h.qkey);
		sim_trace_number("len", h.length);
		if (h.flags & UD_F_IMM)
			sim_trace_number("imm", ntohl(h.imm));
	}
}

static const char *const tcp_names[] = {
	[POLYCM_TCP_SYN] = "TCP_SYN",
	[POLYCM_TCP_SYN_ACK] = "TCP_SYN_ACK",
	[POLYCM_TCP_ACK] = "TCP_ACK",
	[POLYCM_TCP_DATA] = "TCP_DATA",
	[POLYCM_TCP_FIN] = "TCP_FIN",
	[POLYCM_TCP_RST] = "TCP_RST",
	[POLYCM_TCP_REFUSED] = "TCP_RST",
};

static void trace_tcp(const char *kind, const struct sim_packet *packet)
{
	struct tcp_header h = { .kind = POLYCM_TCP_GIVES_UP };

	if (packet->len >= sizeof(h))
		memcpy(&h, packet->data, sizeof(h));
	begin(kind, packet, h.kind < POLYCM_TCP_GIVES_UP ? tcp_names[h.kind] : "TCP");
	addresses(&h.src, &h.dst);
	if (h.kind == POLYCM_TCP_DATA)
		sim_trace_number("len", h.len);
}

void sim_trace_packet(const char *kind, const struct sim_packet *packet)
{
	static void (*const traces[SIM_PACKET_TYPES])(const char *, const struct sim_packet *) = {
		[SIM_PACKET_MAD] = trace_mad,
		[SIM_PACKET_STREAM] = trace_stream,
		[SIM_PACKET_RC] = trace_rc,
		[SIM_PACKET_UD] = trace_ud,
		[SIM_PACKET_TCP] = trace_tcp,
	};

	if (!traces[packet->type])
		return;
	traces[packet->type](kind, packet);
	sim_trace_end();
}
