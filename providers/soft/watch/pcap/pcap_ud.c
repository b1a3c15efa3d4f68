/* SPDX-License-Identifier: BSD-2-Clause */
/* watch/pcap/pcap_ud.c - datagrams in the capture. */
#include "config.h"

#include "providers/soft/wire/ud.h"
#include "pcap_crc.h"
#include "pcap_internal.h"

enum {
	OP_UD_SEND = 0x64,
	OP_UD_SEND_IMM = 0x65,
};

#define SOLICITED 0x80u

/* A datagram to a group is a packet to each port with members, and one on the sender's wire. */
static bool is_repeated(const struct sim_packet *packet, const struct ud_header *h)
{
	static const struct sim_port *first;
	static uint64_t time;
	static uint32_t sum;
	uint32_t crc;

	if (!(h->flags & UD_F_GRH) || h->dgid.raw[0] != 0xff)
		return false;
	crc = sim_crc32(h->src_qpn, packet->data, packet->len);
	if (first && first != packet->to && time == sim_now_to_note() && sum == crc)
		return true;
	first = packet->to;
	time = sim_now_to_note();
	sum = crc;
	return false;
}

void sim_pcap_ud_sent(const struct sim_packet *packet)
{
	uint8_t header[SIM_TRANSPORT_MAX], *at;
	struct sim_wire_path path;
	uint32_t *psn;
	struct ud_header h;
	struct iovec data;

	if (packet->len < sizeof(h))
		return;
	memcpy(&h, packet->data, sizeof(h));
	psn = sim_pcap_qp_psn(packet->from, h.src_qpn);
	if (!psn || is_repeated(packet, &h))
		return;
	sim_wire_default_path(packet->from, packet->to, &path);
	if (h.flags & UD_F_GRH) {
		path.global = true;
		path.sgid = h.sgid;
		path.dgid = h.dgid;
		path.traffic_class = h.tclass;
		path.hop_limit = h.hop_limit ? h.hop_limit : path.hop_limit;
	}
	data.iov_base = (void *)(uintptr_t)(packet->data + sizeof(h));
	data.iov_len = packet->len - sizeof(h);
	at = sim_wire_bth(header, h.flags & UD_F_IMM ? OP_UD_SEND_IMM : OP_UD_SEND,
			  h.flags & UD_F_SOLICITED ? SOLICITED : 0, h.dst_qpn, false,
			  (*psn)++);
	at = put32(at, h.qkey);
	at = put32(at, h.src_qpn);
	if (h.flags & UD_F_IMM)
		at = put_bytes(at, &h.imm, sizeof(h.imm));
	sim_wire_write(&path, header, (size_t)(at - header), &data, 1, data.iov_len);
}
