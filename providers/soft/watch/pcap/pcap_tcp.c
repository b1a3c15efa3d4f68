/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * watch/pcap/pcap_tcp.c - the opening and closing of iWARP's TCP connections and their
 * MPA frames.  What the simulator's stream has no segment for - the ACKs - is
 * written when the segment that it answers comes in.
 */
#include "config.h"

#include "providers/soft/fabric/gids.h"
#include "providers/soft/wire/segment.h"
#include "pcap_crc.h"
#include "pcap_tcp.h"

enum { TCP_FIN = 0x01, TCP_SYN = 0x02, TCP_RST = 0x04, TCP_PSH = 0x08, TCP_ACK = 0x10 };

#define TCP_HEADER 20u
#define SYN_OPTIONS 8u
#define WINDOW_SCALE 14u
#define MTU 1500u
#define MSS_V4 (MTU - 40u)
#define MSS_V6 (MTU - 60u)
#define MAX_SYNS 4096u			/* that wait for an answer */

/* Which end has a QP. */
struct qp_end {
	struct sim_pcap_kept kept;	/* by qp_key() */
	uint32_t local_id;
};

/* A SYN that came in: who asks, until we answer. */
struct tcp_syn {
	struct sim_pcap_kept kept;	/* by the asker's id */
	union sim_sockaddr src, dst;
};

static uint32_t first_seq(uint32_t id)
{
	return id ? sim_crc32c(0, &id, sizeof(id)) : 0;
}

static unsigned int mss(const struct tcp_end *end)
{
	return end->src.sa.sa_family == AF_INET ? MSS_V4 : MSS_V6;
}

/* An FPDU: 2 bytes of length, the ULPDU, padding to 4 bytes, 4 of CRC. */
size_t tcp_max_ulpdu(const struct tcp_end *end)
{
	return (mss(end) & ~3u) - 6u;
}

/* ------------------------------------------------------------------------
 * The ends.
 */

struct tcp_end *tcp_end_of_id(uint32_t local_id)
{
	return sim_pcap_find(SIM_PCAP_ENDS, local_id);
}

static uint64_t qp_key(const struct sim_port *port, uint32_t qpn)
{
	return ((uint64_t)port->fabric_index + 1) << 32 | qpn;
}

struct tcp_end *tcp_end_of_qp(const struct sim_port *port, uint32_t qpn)
{
	uint64_t key = qp_key(port, qpn);
	const struct qp_end *of = sim_pcap_find(SIM_PCAP_QP_ENDS, key);
	struct tcp_end *end = of ? tcp_end_of_id(of->local_id) : NULL;

	return end && end->qp_key == key ? end : NULL;
}

static struct tcp_end *add(uint32_t local_id, uint32_t peer_id, const struct sim_packet *packet,
			   const union sim_sockaddr *src, const union sim_sockaddr *dst)
{
	struct tcp_end *end = tcp_end_of_id(local_id);

	if (end)
		sim_pcap_drop(SIM_PCAP_ENDS, end);	/* the number is used again */
	end = sim_pcap_keep(SIM_PCAP_ENDS, local_id, sizeof(*end));
	if (!end)
		return NULL;
	end->local_id = local_id;
	end->peer_id = peer_id;
	end->from = packet->from;
	end->to = packet->to;
	end->src = *src;
	end->dst = *dst;
	end->send_next = first_seq(local_id) + 1;
	end->receive_next = peer_id ? first_seq(peer_id) + 1 : 0;
	return end;
}

static void set_qp(struct tcp_end *end, uint32_t qpn)
{
	struct tcp_end *other;
	struct qp_end *of;
	uint64_t key;

	if (end->qp_key || !qpn)
		return;
	other = tcp_end_of_qp(end->from, qpn);
	if (other)
		other->qp_key = 0;
	key = qp_key(end->from, qpn);
	of = sim_pcap_find(SIM_PCAP_QP_ENDS, key);
	if (!of)
		of = sim_pcap_keep(SIM_PCAP_QP_ENDS, key, sizeof(*of));
	if (!of)
		return;
	of->local_id = end->local_id;
	end->qp_key = key;
}

/* ------------------------------------------------------------------------
 * Segments.
 */

static void write_segment(const struct tcp_end *end, unsigned int flags, uint32_t seq,
			  const void *data, size_t len)
{
	uint8_t segment[TCP_HEADER + SYN_OPTIONS + MTU], *at = segment;
	struct sim_wire_path path;

	sim_wire_default_path(end->from, end->to, &path);
	sim_gid_of_address(&end->src, &path.sgid);
	sim_gid_of_address(&end->dst, &path.dgid);
	at = put16(at, sim_addr_port(&end->src.sa));
	at = put16(at, sim_addr_port(&end->dst.sa));
	at = put32(at, seq);
	at = put32(at, flags & TCP_ACK ? end->receive_next : 0);
	at = put8(at, (TCP_HEADER + (flags & TCP_SYN ? SYN_OPTIONS : 0)) / 4 << 4);
	at = put8(at, flags);
	at = put16(at, flags & TCP_RST ? 0 : 0xffff);
	at = put32(at, 0);	/* checksum, no urgent data */
	if (flags & TCP_SYN) {
		at = put32(at, 2u << 24 | 4u << 16 | mss(end));
		at = put32(at, 1u << 24 | 3u << 16 | 3u << 8 | WINDOW_SCALE);
	}
	at = put_bytes(at, data, len);
	sim_wire_write_tcp(&path, segment, (size_t)(at - segment));
}

void tcp_send(const struct tcp_end *end, uint32_t seq, const void *data, size_t len)
{
	const uint8_t *at = data;

	while (len) {
		size_t n = len < mss(end) ? len : mss(end);

		write_segment(end, TCP_ACK | (n == len ? TCP_PSH : 0), seq, at, n);
		seq += (uint32_t)n;
		at += n;
		len -= n;
	}
}

void tcp_send_ack(const struct tcp_end *end)
{
	write_segment(end, TCP_ACK, end->send_next, "", 0);
}

struct tcp_record *tcp_new_record(struct tcp_end *end, uint64_t number, uint32_t len)
{
	struct tcp_record *record = &end->records[end->num_records++ % TCP_RECORDS];

	*record = (struct tcp_record){ .number = number, .start = end->send_next, .len = len };
	end->send_next += len;
	return record;
}

/* In another process we cannot look at what it has sent, and nothing is lost on the way. */
void tcp_received(struct tcp_end *end, uint64_t number)
{
	struct tcp_end *peer = tcp_end_of_id(end->peer_id);
	uint32_t num, i;

	if (!peer)
		return;
	num = peer->num_records < TCP_RECORDS ? peer->num_records : TCP_RECORDS;
	for (i = 0; i < num; i++)
		if (peer->records[i].number == number)
			peer->records[i].arrived = true;
	/* What has come in behind a gap counts once that is filled. */
	for (i = 0; i < num; i++) {
		const struct tcp_record *record = &peer->records[(peer->num_records - num + i) %
								 TCP_RECORDS];

		if (record->arrived && record->start == end->receive_next)
			end->receive_next += record->len;
	}
}

/* ------------------------------------------------------------------------
 * The simulator's stream.
 */

static void send_syn(const struct sim_packet *packet, const struct segment *segment)
{
	struct tcp_end *end = add(segment->src_id, 0, packet, &segment->src, &segment->dst);

	if (end)
		write_segment(end, TCP_SYN, first_seq(end->local_id), "", 0);
}

static void send_syn_ack(const struct sim_packet *packet, const struct segment *segment)
{
	struct tcp_syn *syn = sim_pcap_find(SIM_PCAP_SYNS, segment->dst_id);
	struct tcp_end *end;

	if (!syn)
		return;
	end = add(segment->src_id, segment->dst_id, packet, &syn->dst, &syn->src);
	sim_pcap_drop(SIM_PCAP_SYNS, syn);
	if (end)
		write_segment(end, TCP_SYN | TCP_ACK, first_seq(end->local_id), "", 0);
}

/* On a connection, or instead of one. */
static void send_rst(const struct sim_packet *packet, const struct segment *segment)
{
	struct tcp_syn *syn = sim_pcap_find(SIM_PCAP_SYNS, segment->dst_id);
	struct tcp_end *end = tcp_end_of_id(segment->src_id);

	if (end) {
		write_segment(end, TCP_RST | TCP_ACK, end->send_next, "", 0);
		return;
	}
	if (!syn)
		return;
	end = add(0, segment->dst_id, packet, &syn->dst, &syn->src);
	if (!end)
		return;
	write_segment(end, TCP_RST | TCP_ACK, 0, "", 0);
	sim_pcap_drop(SIM_PCAP_ENDS, end);
	sim_pcap_drop(SIM_PCAP_SYNS, syn);
}

static void send_data(const struct sim_packet *packet, const struct segment *segment)
{
	struct tcp_end *end = tcp_end_of_id(segment->src_id);
	const struct tcp_record *record;

	if (!end)
		return;
	set_qp(end, segment->qpn);
	record = tcp_new_record(end, packet->number, (uint32_t)segment->len);
	tcp_send(end, record->start, segment->data, segment->len);
}

static void send_fin(struct tcp_end *end)
{
	if (!end || end->fin_sent)
		return;
	end->fin_sent = true;
	write_segment(end, TCP_FIN | TCP_ACK, end->send_next, "", 0);
	end->send_next++;
}

void sim_pcap_stream_sent(const struct sim_packet *packet)
{
	struct segment segment;

	if (iw_segment_parse(packet->data, packet->len, &segment) < 0)
		return;
	switch (segment.type) {
	case SEG_SYN:
		send_syn(packet, &segment);
		break;
	case SEG_SYN_ACK:
		send_syn_ack(packet, &segment);
		break;
	case SEG_RST:
		send_rst(packet, &segment);
		break;
	case SEG_DATA:
		send_data(packet, &segment);
		break;
	case SEG_FIN:
		send_fin(tcp_end_of_id(segment.src_id));
		break;
	default:
		break;
	}
}

static void receive_syn(const struct segment *segment)
{
	struct tcp_syn *syn = sim_pcap_find(SIM_PCAP_SYNS, segment->src_id);

	if (syn || sim_pcap_num(SIM_PCAP_SYNS) >= MAX_SYNS)
		return;
	syn = sim_pcap_keep(SIM_PCAP_SYNS, segment->src_id, sizeof(*syn));
	if (!syn)
		return;
	syn->src = segment->src;
	syn->dst = segment->dst;
}

/* Both directions end together: what answers a FIN has one, too. */
static void receive_fin(struct tcp_end *end)
{
	if (end->fin_received)
		return;
	end->fin_received = true;
	end->receive_next++;
	if (end->fin_sent)
		tcp_send_ack(end);
	else
		send_fin(end);
}

void sim_pcap_stream_received(const struct sim_packet *packet)
{
	struct segment segment;
	struct tcp_end *end;

	if (iw_segment_parse(packet->data, packet->len, &segment) < 0)
		return;
	if (segment.type == SEG_SYN) {
		receive_syn(&segment);
		return;
	}
	end = tcp_end_of_id(segment.dst_id);
	if (!end)
		return;
	if (segment.type == SEG_SYN_ACK && !end->peer_id) {
		end->peer_id = segment.src_id;
		end->receive_next = first_seq(segment.src_id) + 1;
		tcp_send_ack(end);
	} else if (segment.type == SEG_DATA) {
		if (tcp_end_of_id(end->peer_id))
			tcp_received(end, packet->number);
		else
			end->receive_next += (uint32_t)segment.len;
		tcp_send_ack(end);
	} else if (segment.type == SEG_FIN) {
		receive_fin(end);
	}
}
