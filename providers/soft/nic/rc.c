/* SPDX-License-Identifier: BSD-2-Clause */
/* nic/rc.c - packets of connected QPs: to the link, from the link, and their data. */
#include "config.h"

#include "providers/soft/fabric/counters.h"
#include "providers/soft/fabric/remote.h"
#include "providers/soft/link/shape.h"
#include "providers/soft/link/shm/shm.h"
#include "providers/soft/shm/visit.h"
#include "providers/soft/wire/rc_short.h"
#include "context.h"
#include "mr.h"
#include "qp.h"
#include "rc_internal.h"
#include "refuse.h"
#include "sq.h"

void nic_copy(const struct iovec *to, unsigned int to_parts, const struct iovec *from,
	      unsigned int from_parts, size_t len)
{
	size_t to_off = 0, from_off = 0;

	while (len && to_parts && from_parts) {
		size_t n = len;

		if (n > to->iov_len - to_off)
			n = to->iov_len - to_off;
		if (n > from->iov_len - from_off)
			n = from->iov_len - from_off;
		/* Source and destination may overlap. */
		if (n)
			memmove((char *)to->iov_base + to_off, (char *)from->iov_base + from_off, n);
		len -= n;
		to_off += n;
		from_off += n;
		if (to_off == to->iov_len) {
			to++;
			to_parts--;
			to_off = 0;
		}
		if (from_off == from->iov_len) {
			from++;
			from_parts--;
			from_off = 0;
		}
	}
}

/*
 * Looked up once: the number has no owner when that process has ended, but its
 * last answers may still arrive.
 */
unsigned int rc_peer_slot(struct sim_qp *qp)
{
	if (!sim_slot_is_known(qp->peer_slot))
		qp->peer_slot = sim_slot_of_peer_qpn(qp->peer, qp->attr.dest_qp_num);
	return qp->peer_slot;
}

uint32_t rc_fragment(struct sim_qp *qp)
{
	/* Else it goes to nobody (rc_send()). */
	if (!qp->peer || !sim_port_has_mac(qp->peer, qp->peer_mac))
		return RC_FRAGMENT;
	return (uint32_t)(sim_link_max(rc_peer_slot(qp)) - sizeof(struct rc_header));
}

/* Who looks at packets, loses some, or is on another machine gets all of a header. */
static bool takes_short(unsigned int slot)
{
	return slot < SIM_MAX_SLOTS && slot != sim_self_slot() && !sim_tapped() && !sim_shaping() &&
	       !sim_slot_is_tapped(slot);
}

void rc_send(struct sim_qp *qp, struct rc_header *header, const struct iovec *payload,
	     unsigned int parts, size_t len)
{
	unsigned int slot = rc_peer_slot(qp);
	struct rc_short in_short;
	int r;

	if (!qp->peer || slot == SIM_NOBODY || !nic_has_pkey(qp))
		return;
	header->dst_qpn = qp->attr.dest_qp_num;
	header->src_qpn = nic_qpn(qp);
	if (!sim_port_has_mac(qp->peer, qp->peer_mac))
		slot = SIM_NOBODY;
	if (takes_short(slot) && rc_shorten(header, &in_short)) {
		if (header->op < RC_ACK)
			in_short.acked = rc_ack_with(qp);
		r = sim_link_send(qp->port, qp->peer, slot, SIM_PACKET_RC, &in_short,
				  sizeof(in_short), payload, parts, len);
		if (in_short.acked && r >= 0)
			rc_ack_sent(qp);
	} else {
		r = sim_link_send(qp->port, qp->peer, slot, SIM_PACKET_RC, header, sizeof(*header),
				  payload, parts, len);
	}
	if (r < 0) {
		sim_count(qp->port, SIM_SEND_ERRORS, 1);
		nic_log(POLYCM_LOG_WARN, "%s QP 0x%06x: a packet is lost: %s",
			qp->port->device->vdev.device.name, nic_qpn(qp), strerror(-r));
	}
}

/* The memory of the sending QP, which is in this process, that the packet stands for. */
static int local_source(const struct rc_packet *p, struct sim_qp *qp, uint32_t n,
			struct iovec from[static NIC_MAX_SGE], unsigned int *ret_parts)
{
	struct sim_qp *sender = sim_qp_find(p->packet->from->device, p->h.src_qpn);
	struct nic_swqe *wqe;
	const char *why;
	uint32_t index;

	if (!sender || sender->type == IBV_QPT_UC || sender->type == IBV_QPT_UD ||
	    p->packet->from_slot != sim_self_slot())
		return -EAGAIN;
	if (p->h.op == RC_READ_DATA) {
		wqe = rc_open_request(qp, p->h.psn, &index);
		if (!wqe)
			return -EAGAIN;
		from[0].iov_base = nic_remote_resolve(sender, wqe->rkey, wqe->remote_addr, wqe->length,
						      IBV_ACCESS_REMOTE_READ, &why);
		if (!from[0].iov_base)
			return -EAGAIN;
		from[0].iov_base = (char *)from[0].iov_base + p->h.offset;
		from[0].iov_len = n;
		*ret_parts = 1;
		return 0;
	}
	wqe = rc_open_request(sender, p->h.psn, &index);
	if (!wqe || wqe->length != n || nic_is_read(wqe) ||
	    nic_swqe_resolve(sender, wqe, 0, n, from, ret_parts))
		return -EAGAIN;
	return 0;
}

static int remote_source(const struct rc_packet *p, uint32_t n,
			 struct iovec from[static NIC_MAX_SGE])
{
	uint64_t left = n;

	if (!p->h.parts || p->h.parts > NIC_MAX_SGE || p->len != p->h.parts * sizeof(struct rc_part))
		return -EINVAL;
	for (unsigned int i = 0; i < p->h.parts; i++) {
		struct rc_part part;

		memcpy(&part, p->data + i * sizeof(part), sizeof(part));
		if (!part.len || part.len > left)
			return -EINVAL;
		left -= part.len;
		from[i].iov_base = (void *)(uintptr_t)part.addr;
		from[i].iov_len = part.len;
	}
	return left ? -EINVAL : 0;
}

int rc_fetch(struct sim_qp *qp, const struct rc_packet *p, const struct iovec *to,
	     unsigned int to_parts, uint32_t n)
{
	struct iovec from[NIC_MAX_SGE];
	unsigned int parts = 0;
	int r;

	if (!n || !p->data || rc_is_placed(&p->h))
		return 0;
	if (p->h.flags & RC_F_REF) {
		r = remote_source(p, n, from);
		if (r < 0)
			return r;
		/* That may take long, and its sender's requests have time-outs. */
		rc_ack_all();
		return sim_link_pull(p->packet->from_slot, from, p->h.parts, to, to_parts, n);
	}
	if (p->h.flags & RC_F_LOCAL) {
		r = local_source(p, qp, n, from, &parts);
		if (r < 0)
			return r;
	} else {
		from[0].iov_base = (void *)(uintptr_t)p->data;
		from[0].iov_len = n;
		parts = 1;
	}
	nic_copy(to, to_parts, from, parts, n);
	return 0;
}

void *rc_memory(const struct sim_qp *qp, const struct rc_header *h, uint32_t length,
		unsigned int access, const char **ret_why)
{
	*ret_why = "the QP does not allow it";
	if ((qp->attr.qp_access_flags & access) != access)
		return NULL;
	return nic_remote_resolve(qp, h->rkey, h->remote_addr, length, access, ret_why);
}

int rc_target(struct sim_qp *qp, const struct rc_header *h, uint32_t n, struct rc_target *to)
{
	const struct nic_rwqe *wqe = NULL;
	char *memory;

	if (rc_receives(h)) {
		wqe = nic_rq_hold(qp);
		if (!wqe)
			return -ENOBUFS;
	}
	if (h->op == RC_SEND && nic_rwqe_room(wqe) < h->length)
		return -EMSGSIZE;
	if (h->op == RC_SEND)
		return nic_sge_resolve(qp, wqe->sge, wqe->num_sge, h->offset, n,
				       IBV_ACCESS_LOCAL_WRITE, to->iov, &to->parts);
	to->parts = 0;
	/* A write of no bytes needs no key: IBTA vol. 1, 9.7.4.1.5. */
	if (!h->length)
		return 0;
	memory = rc_memory(qp, h, h->length, IBV_ACCESS_REMOTE_WRITE, &to->why);
	if (!memory)
		return -EPERM;
	to->iov[0] = (struct iovec) { .iov_base = memory + h->offset, .iov_len = n };
	to->parts = 1;
	return 0;
}

/* Requests of XRC name an SRQ, and go one way only. */
static bool is_xrc(const struct sim_qp *qp, const struct rc_header *h)
{
	if (h->flags & RC_F_UNRELIABLE)
		return false;
	if (qp->type == IBV_QPT_XRC_RECV)
		return h->op < RC_ACK && h->xrc_srqn;
	return qp->type == IBV_QPT_XRC_SEND && h->op >= RC_ACK;
}

static bool is_ours(struct sim_qp *qp, const struct rc_packet *p)
{
	uint8_t type = p->h.flags & RC_F_UNRELIABLE ? IBV_QPT_UC : IBV_QPT_RC;

	return qp && (qp->type == type ? !p->h.xrc_srqn : is_xrc(qp, &p->h)) &&
	       qp->port == p->packet->to && nic_has_pkey(qp) &&
	       qp->peer == p->packet->from && qp->attr.dest_qp_num == p->h.src_qpn &&
	       rc_peer_slot(qp) == p->packet->from_slot;
}

void nic_check_cqe_lost(struct sim_qp *qp)
{
	if (qp->cqe_lost)
		nic_qp_fatal(qp, IBV_EVENT_QP_FATAL);
}

/* Before the program says that the connection is there, the peer's first request does. */
static void first_request(struct sim_qp *qp)
{
	if (qp->comm_est)
		return;
	qp->comm_est = true;
	if (qp->state == IBV_QPS_RTR)
		nic_async_qp(qp, IBV_EVENT_COMM_EST);
}

/* false: it is none. */
static bool take_apart(const struct sim_packet *packet, struct rc_packet *p)
{
	size_t len = rc_read_header(packet->data, packet->len, &p->h, &p->acked);

	if (!len)
		return false;
	p->packet = packet;
	p->data = packet->placed ? NULL : packet->data + len;
	p->len = (uint32_t)(packet->placed ? packet->placed : packet->len - len);
	return p->h.op < RC_OPS && p->h.psn <= NIC_PSN_MASK;
}

unsigned int rc_place(const struct sim_packet *packet, struct iovec to[static SIM_PLACE_PARTS])
{
	struct rc_packet p;
	struct sim_qp *qp;

	_Static_assert(SIM_PLACE_PARTS >= NIC_MAX_SGE, "a request's parts");
	if (!take_apart(packet, &p))
		return 0;
	qp = sim_qp_find(packet->to->device, p.h.dst_qpn);
	if (!is_ours(qp, &p) || !rc_receives_now(qp) || qp->type != IBV_QPT_RC ||
	    p.h.flags & (RC_F_LOCAL | RC_F_REF))
		return 0;
	return p.h.op < RC_ACK ? rc_place_request(qp, &p, to) : rc_place_response(qp, &p, to);
}

/* It came with a request.  false: the QP does not receive any more. */
static bool take_ack(struct sim_qp *qp, const struct rc_packet *p)
{
	const struct rc_packet ack = {
		.h = { .op = RC_ACK, .psn = p->acked & NIC_PSN_MASK },
		.packet = p->packet,
	};

	if (qp->type == IBV_QPT_RC && qp->state != IBV_QPS_RTR)
		rc_handle_response(qp, &ack);
	return rc_receives_now(qp);
}

void rc_receive(const struct sim_packet *packet)
{
	struct sim_qp *qp;
	struct rc_packet p;

	if (!take_apart(packet, &p))
		return;
	qp = sim_qp_find(packet->to->device, p.h.dst_qpn);
	if (!is_ours(qp, &p)) {
		nic_debug("%s: a packet from QP 0x%06x to QP 0x%06x is dropped: no such connection",
			  packet->to->device->vdev.device.name, p.h.src_qpn, p.h.dst_qpn);
		return;
	}
	if (!rc_receives_now(qp))
		return;
	if (p.acked && !take_ack(qp, &p))
		return;
	if (p.h.op < RC_ACK)
		first_request(qp);
	if (qp->type == IBV_QPT_UC)
		uc_handle_request(qp, &p);
	else if (p.h.op < RC_ACK)
		rc_handle_request(qp, &p);
	else if (qp->state != IBV_QPS_RTR)
		rc_handle_response(qp, &p);
	nic_check_cqe_lost(qp);
}

/* The reason is a NAK code (IBTA vol. 1, 9.7.5.2.1), but not that of a sequence error. */
void rc_reject_by_rule(const struct sim_packet *packet, uint16_t reason)
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
