/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * watch/pcap/pcap_qp.c - data of queue pairs of InfiniBand's transport in the capture.
 *
 * On the simulator's links a message is one packet, or few, with one sequence
 * number.  Here it is what it is on a wire: packets of the path's MTU, each
 * with its PSN.  For each direction of a connection a list says at which PSN a
 * message begins.  The data is taken out of the program's memory, which is
 * where a NIC takes it from.
 */
#include "config.h"

#include "providers/soft/nic/rc_internal.h"
#include "pcap_internal.h"

enum {
	OP_SEND = 0x00,			/* first, middle, last, last with immediate, only, ... */
	OP_WRITE = 0x06,
	OP_READ = 0x0c,
	OP_READ_FIRST = 0x0d,
	OP_READ_MIDDLE = 0x0e,
	OP_READ_LAST = 0x0f,
	OP_READ_ONLY = 0x10,
	OP_ACK = 0x11,
	OP_ATOMIC_ACK = 0x12,
	OP_CMP_SWAP = 0x13,
	OP_FETCH_ADD = 0x14,
	OP_SEND_LAST_INV = 0x16,
	OP_SEND_ONLY_INV = 0x17,
	OP_FLUSH = 0x1c,
	OP_ATOMIC_WRITE = 0x1d,
	OP_UC = 0x20,			/* and those of RC */
	OP_XRC = 0xa0,			/* the same */
};
enum { FIRST, MIDDLE, LAST, LAST_IMM, ONLY, ONLY_IMM };

#define SOLICITED 0x80u
#define NO_CREDITS 0x1fu		/* AETH: there is no end-to-end flow control */
#define AETH_RNR 0x20u
#define AETH_NAK 0x60u
#define NUM_STARTS 4096u

/* Messages of one direction, by the simulator's sequence number. */
struct direction {
	bool known;
	uint32_t first_psn;		/* the simulator's: it counts messages */
	uint32_t next_psn, next_wire;	/* of the message after the newest */
	uint32_t count;
	struct start {
		uint32_t psn, wire;
	} starts[NUM_STARTS];
};

struct capture_qp {
	struct sim_pcap_kept kept;	/* by port and QP number */
	struct direction sent, received;
	struct sim_pcap_read reads[SIM_PCAP_READS];
};

static struct capture_qp *get(const struct sim_port *port, uint32_t qpn)
{
	uint64_t key = (uint64_t)port->fabric_index << 32 | qpn;
	struct capture_qp *qp = sim_pcap_find(SIM_PCAP_QPS, key);

	return qp ? qp : sim_pcap_keep(SIM_PCAP_QPS, key, sizeof(*qp));
}

uint32_t *sim_pcap_qp_psn(const struct sim_port *port, uint32_t qpn)
{
	struct capture_qp *qp = get(port, qpn);

	return qp ? &qp->sent.next_wire : NULL;
}

static uint32_t mtu_of(const struct sim_qp *qp)
{
	return 128u << (qp->attr.path_mtu ? qp->attr.path_mtu : qp->port->active_mtu);
}

static uint32_t packets_of(uint32_t length, uint32_t mtu)
{
	return length ? (length + mtu - 1) / mtu : 1;
}

/* ------------------------------------------------------------------------
 * PSNs.
 */

static bool is_after(uint32_t psn, uint32_t other)
{
	return rc_ahead(psn, other) > 0;
}

/* The next message of a direction takes so many packets; one that is known already does nothing. */
static void enter(struct direction *d, uint32_t psn, uint32_t packets)
{
	if (!d->known) {
		d->known = true;
		d->first_psn = d->next_psn = d->next_wire = psn;
	}
	if (psn != d->next_psn)
		return;
	d->starts[d->count++ % NUM_STARTS] = (struct start){ psn, d->next_wire };
	d->next_psn = (psn + 1) & NIC_PSN_MASK;
	d->next_wire = (d->next_wire + packets) & NIC_PSN_MASK;
}

static uint32_t wire_psn(const struct direction *d, uint32_t psn)
{
	if (!d->known || !is_after(d->next_psn, psn))
		return d->known ? (d->next_wire + psn - d->next_psn) & NIC_PSN_MASK : psn;
	for (uint32_t i = d->count; i && i + NUM_STARTS > d->count; i--)
		if (d->starts[(i - 1) % NUM_STARTS].psn == psn)
			return d->starts[(i - 1) % NUM_STARTS].wire;
	return psn;
}

/* ------------------------------------------------------------------------
 * Packets.
 */

static void path_of(const struct sim_qp *qp, const struct sim_packet *packet,
		    struct sim_wire_path *ret_path)
{
	const struct ibv_ah_attr *ah = &qp->attr.ah_attr;

	sim_wire_default_path(packet->from, packet->to, ret_path);
	ret_path->sl = ah->sl;
	ret_path->global = ret_path->global || ah->is_global;
	if (!ah->is_global)
		return;
	if (ah->grh.sgid_index < qp->port->num_gids)
		ret_path->sgid = qp->port->gids[ah->grh.sgid_index].gid;
	ret_path->dgid = ah->grh.dgid;
	ret_path->traffic_class = ah->grh.traffic_class;
	ret_path->flow_label = ah->grh.flow_label & 0xfffffu;
	if (ah->grh.hop_limit)
		ret_path->hop_limit = ah->grh.hop_limit;
}

/* XRC: the XRCETH follows the BTH of each request. */
static uint8_t *request_bth(uint8_t *at, const struct rc_header *h, unsigned int op, uint8_t flags,
			    bool ack, uint32_t psn)
{
	at = sim_wire_bth(at, (uint8_t)(h->xrc_srqn ? op + OP_XRC : op), flags, h->dst_qpn, ack, psn);
	return h->xrc_srqn ? put32(at, h->xrc_srqn & 0xffffffu) : at;
}

static uint8_t *put_reth(uint8_t *at, const struct rc_header *h, uint32_t length)
{
	at = put64(at, h->length ? sim_pcap_address(h->rkey, h->remote_addr) : 0);
	at = put32(at, h->rkey);
	return put32(at, length);
}

/* A packet of the simulator that becomes packets of the wire. */
struct stream {
	struct sim_pcap_rc rc;
	struct sim_wire_path path;
	uint32_t psn;			/* of its first packet */
	uint32_t msn;			/* answers: messages done with this one */
	uint32_t mtu;
};

/* --- Requests. --- */

static uint8_t *request_header(const struct stream *s, uint32_t index, bool last, uint8_t *at)
{
	bool imm = last && s->rc.h.flags & RC_F_IMM, first = !index;
	bool inv = last && s->rc.h.flags & RC_F_INVALIDATE, uc = s->rc.h.flags & RC_F_UNRELIABLE;
	unsigned int op = s->rc.h.op == RC_SEND ? OP_SEND : OP_WRITE;

	op += first && last ? (imm ? ONLY_IMM : ONLY) : first ? FIRST :
	      last ? (imm ? LAST_IMM : LAST) : MIDDLE;
	if (inv)
		op = first ? OP_SEND_ONLY_INV : OP_SEND_LAST_INV;
	if (uc)
		op += OP_UC;
	at = request_bth(at, &s->rc.h, op, last && s->rc.h.flags & RC_F_SOLICITED ? SOLICITED : 0,
			 last && !uc, s->psn + index);
	if (s->rc.h.op == RC_WRITE && first)
		at = put_reth(at, &s->rc.h, s->rc.h.length);
	if (inv)
		at = put32(at, s->rc.h.rkey);
	return imm ? put_bytes(at, &s->rc.h.imm, sizeof(s->rc.h.imm)) : at;
}

static void send_read(const struct stream *s)
{
	uint8_t header[SIM_TRANSPORT_MAX], *at;
	uint32_t done = s->rc.h.offset / s->mtu;	/* it goes on: ask for what is not here yet */
	struct rc_header h = s->rc.h;

	h.remote_addr += (uint64_t)done * s->mtu;
	at = request_bth(header, &h, OP_READ, 0, true, s->psn + done);
	at = put_reth(at, &h, h.length - done * s->mtu);
	sim_wire_write(&s->path, header, (size_t)(at - header), NULL, 0, 0);
}

static void send_atomic(const struct stream *s)
{
	bool swap = s->rc.h.op == RC_CMP_SWAP;
	uint8_t header[SIM_TRANSPORT_MAX], *at;

	at = request_bth(header, &s->rc.h, swap ? OP_CMP_SWAP : OP_FETCH_ADD, 0, true, s->psn);
	at = put64(at, sim_pcap_address(s->rc.h.rkey, s->rc.h.remote_addr));
	at = put32(at, s->rc.h.rkey);
	at = put64(at, swap ? s->rc.h.swap : s->rc.h.compare_add);
	at = put64(at, swap ? s->rc.h.compare_add : 0);
	sim_wire_write(&s->path, header, (size_t)(at - header), NULL, 0, 0);
}

/* Placement and level are a header of their own, before the RETH. */
static void send_flush(const struct stream *s)
{
	const struct rc_header *h = &s->rc.h;
	uint8_t header[SIM_TRANSPORT_MAX], *at;

	at = request_bth(header, h, OP_FLUSH, 0, true, s->psn);
	at = put32(at, (uint32_t)(h->swap & 0xf) | (uint32_t)(h->swap >> RC_FLUSH_LEVEL & 3) << 4);
	at = put64(at, sim_pcap_address(h->rkey, h->remote_addr));
	at = put32(at, h->rkey);
	at = put32(at, (uint32_t)h->compare_add);
	sim_wire_write(&s->path, header, (size_t)(at - header), NULL, 0, 0);
}

static void send_atomic_write(const struct stream *s)
{
	const struct rc_header *h = &s->rc.h;
	uint8_t header[SIM_TRANSPORT_MAX], *at;

	at = request_bth(header, h, OP_ATOMIC_WRITE, 0, true, s->psn);
	at = put64(at, sim_pcap_address(h->rkey, h->remote_addr));
	at = put32(at, h->rkey);
	at = put32(at, sizeof(h->compare_add));
	at = put_bytes(at, &h->compare_add, sizeof(h->compare_add));
	sim_wire_write(&s->path, header, (size_t)(at - header), NULL, 0, 0);
}

/* --- Answers. --- */

static uint8_t *put_aeth(uint8_t *at, const struct stream *s, unsigned int syndrome)
{
	return put32(at, syndrome << 24 | (s->msn & 0xffffffu));
}

/* rc.qp is one end of the connection, whoever sent the packet. */
static uint8_t answer_op(const struct stream *s, unsigned int op)
{
	uint8_t type = s->rc.qp->type;

	return (uint8_t)(type == IBV_QPT_XRC_SEND || type == IBV_QPT_XRC_RECV ? op + OP_XRC : op);
}

static uint8_t *reply_header(const struct stream *s, uint32_t index, bool last, uint8_t *at)
{
	bool first = !index;
	unsigned int op = first && last ? OP_READ_ONLY : first ? OP_READ_FIRST :
			  last ? OP_READ_LAST : OP_READ_MIDDLE;

	at = sim_wire_bth(at, answer_op(s, op), 0, s->rc.h.dst_qpn, false, s->psn + index);
	return op == OP_READ_MIDDLE ? at : put_aeth(at, s, NO_CREDITS);
}

/* The packet with a piece of a message, or of the answer to a read. */
static void put_packet(const void *arg, uint32_t index, const struct iovec *data,
		       unsigned int parts, uint32_t len)
{
	const struct stream *s = arg;
	bool last = index + 1 == packets_of(s->rc.h.length, s->mtu);
	uint8_t header[SIM_TRANSPORT_MAX], *at;

	at = (s->rc.h.op == RC_READ_DATA ? reply_header : request_header)(s, index, last, header);
	sim_wire_write(&s->path, header, (size_t)(at - header), data, parts, len);
}

static void send_request(const struct stream *s)
{
	if (s->rc.h.op == RC_SEND || s->rc.h.op == RC_WRITE)
		sim_pcap_rc_write(&s->rc, s->mtu, put_packet, s);
	else if (s->rc.h.op == RC_READ)
		send_read(s);
	else if (s->rc.h.op == RC_FLUSH)
		send_flush(s);
	else if (s->rc.h.op == RC_ATOMIC_WRITE)
		send_atomic_write(s);
	else
		send_atomic(s);
}

static unsigned int syndrome_of(const struct rc_header *h)
{
	switch (h->syndrome) {
	case RC_NAK_RNR:
		return AETH_RNR | (h->rnr_timer & 0x1fu);
	case RC_NAK_INVALID_REQUEST:
		return AETH_NAK | 1;
	case RC_NAK_REMOTE_ACCESS:
		return AETH_NAK | 2;
	case RC_NAK_REMOTE_OPERATION:
		return AETH_NAK | 3;
	default:
		return AETH_NAK;
	}
}

/* Of ACK and PROGRESS it is the last packet's PSN. */
static uint32_t acknowledged(const struct stream *s, const struct capture_qp *shown)
{
	const struct direction *d = &shown->received;

	if (s->rc.h.op == RC_PROGRESS)
		return wire_psn(d, s->rc.h.psn) + s->rc.h.offset / s->mtu - 1;
	return wire_psn(d, s->rc.h.psn + 1) - 1;
}

static void send_answer(struct stream *s, struct capture_qp *shown)
{
	const struct rc_header *h = &s->rc.h;
	uint8_t header[SIM_TRANSPORT_MAX], *at;

	switch (h->op) {
	case RC_READ_DATA:
		sim_pcap_rc_write(&s->rc, s->mtu, put_packet, s);
		return;
	case RC_ATOMIC_DATA:
		at = sim_wire_bth(header, answer_op(s, OP_ATOMIC_ACK), 0, h->dst_qpn, false, s->psn);
		at = put_aeth(at, s, NO_CREDITS);
		at = put64(at, h->compare_add);
		break;
	case RC_NAK:
		if (h->syndrome == RC_NAK_NO_REF)
			return;		/* between simulators: no wire has such a thing */
		at = sim_wire_bth(header, answer_op(s, OP_ACK), 0, h->dst_qpn, false, s->psn);
		s->msn--;
		at = put_aeth(at, s, syndrome_of(h));
		break;
	default:
		at = sim_wire_bth(header, answer_op(s, OP_ACK), 0, h->dst_qpn, false,
				  acknowledged(s, shown));
		at = put_aeth(at, s, NO_CREDITS);
		break;
	}
	sim_wire_write(&s->path, header, (size_t)(at - header), NULL, 0, 0);
}

/* Our QP's way to the sender is the sender's way to us. */
static void turn(struct sim_wire_path *path, const struct sim_packet *packet)
{
	struct sim_wire_path default_path;
	union ibv_gid gid = path->sgid;

	path->sgid = path->dgid;
	path->dgid = gid;
	if (path->global)
		return;
	sim_wire_default_path(packet->from, packet->to, &default_path);
	path->sgid = default_path.sgid;
	path->dgid = default_path.dgid;
}

/* How many packets of the wire a request takes, or the answer to it. */
static uint32_t packets_of_request(const struct rc_header *h, uint32_t mtu)
{
	return h->op == RC_CMP_SWAP || h->op == RC_FETCH_ADD ? 1 : packets_of(h->length, mtu);
}

void sim_pcap_qp_sent(const struct sim_packet *packet)
{
	struct capture_qp *shown;
	const struct rc_header *h;
	struct stream s;

	if (!sim_pcap_rc_parse(packet, &s.rc))
		return;
	h = &s.rc.h;
	shown = get(packet->from, h->src_qpn);
	if (!s.rc.qp || !shown || h->op >= RC_OPS)
		return;
	s.rc.reads = shown->reads;
	s.mtu = mtu_of(s.rc.qp);
	path_of(s.rc.qp, packet, &s.path);
	if (s.rc.foreign)
		turn(&s.path, packet);
	if (h->op < RC_ACK) {
		enter(&shown->sent, h->psn, packets_of_request(h, s.mtu));
		s.psn = wire_psn(&shown->sent, h->psn);
		send_request(&s);
	} else {
		s.psn = wire_psn(&shown->received, h->psn);
		s.msn = h->psn - shown->received.first_psn + 1;
		send_answer(&s, shown);
	}
}

/* What the answers need to know. */
void sim_pcap_qp_received(const struct sim_packet *packet)
{
	struct capture_qp *shown;
	struct rc_header h;
	struct sim_qp *qp;

	if (packet->len < sizeof(h))
		return;
	memcpy(&h, packet->data, sizeof(h));
	qp = sim_qp_find(packet->to->device, h.dst_qpn);
	if (!qp)	/* the receiver's is in another process */
		qp = sim_qp_find(packet->from->device, h.src_qpn);
	if (h.op >= RC_ACK || !qp)
		return;
	shown = get(packet->to, h.dst_qpn);
	if (!shown)
		return;
	enter(&shown->received, h.psn, packets_of_request(&h, mtu_of(qp)));
	if (h.op == RC_READ)
		shown->reads[h.psn % SIM_PCAP_READS] =
			(struct sim_pcap_read){ h.psn, h.rkey, h.remote_addr };
}
