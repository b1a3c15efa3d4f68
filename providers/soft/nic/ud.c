/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * nic/ud.c - unreliable datagrams.  A datagram is complete when it is sent;
 * the receiver silently drops what it cannot use.
 */
#include "config.h"

#include <arpa/inet.h>

#include "providers/soft/fabric/gids.h"
#include "providers/soft/fabric/groups.h"
#include "providers/soft/fabric/remote.h"
#include "providers/soft/link/count.h"
#include "mr.h"
#include "qp.h"
#include "rc_internal.h"
#include "refuse.h"
#include "rq.h"
#include "sq.h"
#include "ud_internal.h"

/* --- Sending. --- */

static bool is_v4_mapped(const union ibv_gid *gid)
{
	static const uint8_t prefix[12] = { [10] = 0xff, [11] = 0xff };

	return !memcmp(gid->raw, prefix, sizeof(prefix));
}

static struct ud_header header_of(const struct sim_qp *qp, const struct nic_swqe *wqe)
{
	struct ud_header h = {
		.dst_qpn = wqe->remote_qpn,
		.src_qpn = nic_qpn(qp),
		/* The high bit says: use the QP's own. */
		.qkey = wqe->rkey & 0x80000000u ? qp->attr.qkey : wqe->rkey,
		.imm = wqe->imm,
		.length = wqe->length,
	};
	const struct sim_gid *source;

	if (wqe->opcode == IBV_WR_SEND_WITH_IMM)
		h.flags |= UD_F_IMM;
	if (wqe->flags & IBV_SEND_SOLICITED)
		h.flags |= UD_F_SOLICITED;
	if (wqe->ud_global) {
		source = &qp->port->gids[wqe->ud_sgid_index];
		h.flags |= UD_F_GRH;
		if (source->type == IBV_GID_TYPE_ROCE_V2 && is_v4_mapped(&source->gid))
			h.flags |= UD_F_IPV4;
		h.sgid = source->gid;
		h.dgid = wqe->ud_dgid;
		h.tclass = wqe->ud_tclass;
		h.hop_limit = wqe->ud_hop_limit;
	}
	return h;
}

/* One packet for each process and port with members, where this kind of link leads. */
static void send_to_group(struct sim_qp *qp, const struct ud_header *h, const struct iovec *iov,
			  unsigned int parts)
{
	enum sim_wire wire = sim_wire_of(qp->port->device->rules);
	struct sim_port *port;
	uint32_t cursor = 0;
	unsigned int slot;

	if (!(h->flags & UD_F_GRH) || !sim_gid_is_group(&h->dgid))
		return;
	sim_link_count_to_group(qp->port, h->length);
	while ((port = sim_group_next(&h->dgid, &cursor, &slot)))
		if (sim_wire_of(port->device->rules) == wire)
			(void)sim_link_send(qp->port, port, slot, SIM_PACKET_UD, h, sizeof(*h), iov,
					    parts, h->length);
	if (sim_remote)
		sim_remote->send_to_group(qp->port, h, sizeof(*h), iov, parts, h->length);
}

static enum ibv_wc_status send_datagram(struct sim_qp *qp, struct nic_swqe *wqe)
{
	unsigned int slot = sim_slot_of_peer_qpn(wqe->ud_peer, wqe->remote_qpn);
	const struct ud_header h = header_of(qp, wqe);
	struct iovec iov[NIC_MAX_SGE];
	unsigned int parts;
	bool has_mac = wqe->ud_peer && sim_port_has_mac(wqe->ud_peer, wqe->ud_peer_mac);

	if (wqe->length > 128u << qp->port->active_mtu) {
		nic_set_reason("%u bytes are more than a datagram may have (%u, the MTU)", wqe->length,
			    128u << qp->port->active_mtu);
		return IBV_WC_LOC_LEN_ERR;
	}
	if (nic_swqe_resolve(qp, wqe, 0, wqe->length, iov, &parts))
		return IBV_WC_LOC_PROT_ERR;
	if (!nic_has_pkey(qp))
		return IBV_WC_SUCCESS;	/* it reaches nobody */
	if (wqe->remote_qpn == SIM_MULTICAST_QPN)
		send_to_group(qp, &h, iov, parts);
	else if (wqe->ud_peer && (slot != SIM_NOBODY || !has_mac))
		(void)sim_link_send(qp->port, wqe->ud_peer, has_mac ? slot : SIM_NOBODY,
				    SIM_PACKET_UD, &h, sizeof(h), iov, parts, wqe->length);
	return IBV_WC_SUCCESS;
}

/* A local error stops the send queue only: SQE, what is behind it is flushed. */
static void send_error(struct sim_qp *qp, enum ibv_wc_status status)
{
	nic_sq_complete(qp, status);
	nic_qp_set_state(qp, IBV_QPS_SQE);
	nic_sq_flush(qp);
}

void ud_transmit(struct sim_qp *qp)
{
	if (qp->state == IBV_QPS_SQE)
		nic_sq_flush(qp);
	while (qp->state == IBV_QPS_RTS && qp->sq_tail != qp->sq_head) {
		struct nic_swqe *wqe = nic_sq_at(qp, qp->sq_tail);

		enum ibv_wc_status status = nic_is_local(wqe) ? nic_mw_execute(qp, wqe) :
					    qp->type == IBV_QPT_UC ? uc_send(qp, wqe) :
								     send_datagram(qp, wqe);

		if (status == IBV_WC_SUCCESS)
			nic_sq_complete(qp, status);
		else
			send_error(qp, status);
	}
	if (qp->state == IBV_QPS_SQD)
		nic_sq_drained(qp);
}

/* --- Receiving. --- */

/*
 * The 40 bytes in front of the data: a GRH, or on RoCE v2 over IPv4 the IPv4
 * header in the last 20 of them.
 */
static void fill_grh(const struct ud_header *h, uint8_t grh[NIC_GRH_SIZE])
{
	uint16_t len = htons((uint16_t)(h->length + 32));	/* BTH, DETH, ICRC and padding */
	uint8_t hops = h->hop_limit ? h->hop_limit : 64;

	memset(grh, 0, NIC_GRH_SIZE);
	if (h->flags & UD_F_IPV4) {
		uint16_t total = htons((uint16_t)(h->length + 56));

		grh[20] = 0x45;
		grh[21] = h->tclass;
		memcpy(grh + 22, &total, 2);
		grh[26] = 0x40;		/* do not fragment */
		grh[28] = hops;
		grh[29] = 17;		/* UDP */
		memcpy(grh + 32, h->sgid.raw + 12, 4);
		memcpy(grh + 36, h->dgid.raw + 12, 4);
		return;
	}
	grh[0] = (uint8_t)(0x60 | h->tclass >> 4);
	grh[1] = (uint8_t)(h->tclass << 4);
	memcpy(grh + 4, &len, 2);
	grh[6] = 0x1b;			/* IBA transport follows */
	grh[7] = hops;
	memcpy(grh + 8, h->sgid.raw, 16);
	memcpy(grh + 24, h->dgid.raw, 16);
}

/* The receive request is too short: it stays for the next one, unless it was a shared queue's. */
static void too_long(struct sim_qp *qp, const struct ud_header *h, struct ibv_wc *wc)
{
	nic_debug("%s QP 0x%06x: a datagram of QP 0x%06x is dropped: its %u bytes and the "
		  "header are longer than the receive", qp->port->device->vdev.device.name,
		  nic_qpn(qp), h->src_qpn, h->length);
	if (!qp->pub.qp.srq)
		return;
	nic_set_reason("a datagram of QP 0x%06x: its %u bytes and the header are longer than the "
		       "receive", h->src_qpn, h->length);
	/* As rxe. */
	wc->status = IBV_WC_REM_INV_REQ_ERR;
	nic_rq_complete(qp, wc, true);
}

static void receive(struct sim_qp *qp, const struct sim_packet *packet, const struct ud_header *h)
{
	bool ib = qp->port->device->rules->link_layer == IBV_LINK_LAYER_INFINIBAND;
	uint32_t total = h->length + NIC_GRH_SIZE;
	uint8_t grh[NIC_GRH_SIZE];
	struct iovec from[2] = {
		{ .iov_base = grh, .iov_len = sizeof(grh) },
		{ .iov_base = (void *)(uintptr_t)(packet->data + sizeof(*h)), .iov_len = h->length },
	};
	struct ibv_wc wc = {
		.opcode = IBV_WC_RECV,
		.byte_len = total,
		.src_qp = h->src_qpn,
		.wc_flags = h->flags & UD_F_GRH ? IBV_WC_GRH : 0,
		.slid = ib ? packet->from->lid : 0,
	};
	const struct nic_rwqe *wqe = nic_rq_hold(qp);
	struct iovec to[NIC_MAX_SGE];
	unsigned int parts;
	int r;

	if (!wqe)
		return;
	r = nic_sge_resolve(qp, wqe->sge, wqe->num_sge, 0, total, IBV_ACCESS_LOCAL_WRITE, to, &parts);
	if (r == -EMSGSIZE) {
		too_long(qp, h, &wc);
		return;
	}
	if (r < 0) {
		wc.status = IBV_WC_LOC_PROT_ERR;
		nic_rq_complete(qp, &wc, true);
		nic_qp_error(qp, false);
		return;
	}
	fill_grh(h, grh);
	nic_copy(to, parts, from, 2, total);
	if (h->flags & UD_F_IMM) {
		wc.wc_flags |= IBV_WC_WITH_IMM;
		wc.imm_data = h->imm;
	}
	nic_rq_complete(qp, &wc, h->flags & UD_F_SOLICITED);
}

void ud_deliver(struct sim_qp *qp, const struct sim_packet *packet, const struct ud_header *h)
{
	if (qp->type != IBV_QPT_UD || qp->port != packet->to || qp->state < IBV_QPS_RTR ||
	    qp->state == IBV_QPS_ERR || !nic_has_pkey(qp))
		return;
	if (h->qkey != qp->attr.qkey) {
		nic_debug("%s QP 0x%06x: a datagram of QP 0x%06x is dropped: Q_Key 0x%x is not 0x%x",
			  qp->port->device->vdev.device.name, nic_qpn(qp), h->src_qpn, h->qkey,
			  qp->attr.qkey);
		return;
	}
	receive(qp, packet, h);
	nic_check_cqe_lost(qp);
}

void ud_receive(const struct sim_packet *packet)
{
	struct ud_header h;
	struct sim_qp *qp;

	if (packet->len < sizeof(h))
		return;
	memcpy(&h, packet->data, sizeof(h));
	if (h.length != packet->len - sizeof(h) || h.src_qpn > NIC_QPN_MASK)
		return;
	if (h.dst_qpn == SIM_MULTICAST_QPN) {
		if (h.flags & UD_F_GRH)
			nic_group_deliver(packet, &h);
		return;
	}
	qp = sim_qp_find(packet->to->device, h.dst_qpn);
	if (qp)
		ud_deliver(qp, packet, &h);
}
