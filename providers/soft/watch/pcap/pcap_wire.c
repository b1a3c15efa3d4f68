/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * watch/pcap/pcap_wire.c - the outer headers of packets and their checks: RoCE v2
 * (Ethernet, IP, UDP port 4791), InfiniBand (LRH, GRH), and TCP's below it.
 */
#include "config.h"

#include <endian.h>

#include "providers/soft/fabric/gids.h"
#include "providers/soft/wire/address.h"
#include "pcap_crc.h"
#include "pcap_internal.h"

#define ETHERTYPE_IPV4 0x0800u
#define ETHERTYPE_IPV6 0x86ddu
#define PROTO_TCP 6u
#define PROTO_UDP 17u
#define ROCE_PORT 4791u
#define NEXT_HEADER_IBA 0x1bu
#define LNH_LOCAL 2u
#define LNH_GLOBAL 3u
#define ETHERNET_SIZE 14u
#define IPV4_SIZE 20u
#define IPV6_SIZE 40u
#define GRH_SIZE 40u
#define LRH_SIZE 8u
#define UDP_SIZE 8u
#define ICRC_SIZE 4u
#define VCRC_SIZE 2u
#define DONT_FRAGMENT 0x4000u
#define DEFAULT_HOPS 64u

static bool is_ib(const struct sim_port *port)
{
	return port->device->rules->link_layer == IBV_LINK_LAYER_INFINIBAND;
}

static bool is_v4(const union ibv_gid *gid)
{
	static const uint8_t prefix[12] = { [10] = 0xff, [11] = 0xff };

	return !memcmp(gid->raw, prefix, sizeof(prefix));
}

/* Programs and the CM take the first address that is no link-local one. */
static union ibv_gid first_gid(const struct sim_port *port)
{
	static const uint8_t link_local[2] = { 0xfe, 0x80 };
	union ibv_gid gid = { 0 };

	if (!port)
		return gid;
	for (unsigned int i = 0; !is_ib(port) && i < port->num_gids; i++)
		if (sim_gid_is_set(&port->gids[i]) && port->gids[i].type == IBV_GID_TYPE_ROCE_V2 &&
		    memcmp(port->gids[i].gid.raw, link_local, sizeof(link_local)))
			return port->gids[i].gid;
	return port->gids[0].gid;
}

void sim_wire_default_path(const struct sim_port *from, const struct sim_port *to,
			   struct sim_wire_path *ret_path)
{
	*ret_path = (struct sim_wire_path){
		.from = from,
		.to = to,
		.sgid = first_gid(from),
		.dgid = first_gid(to),
		.global = !is_ib(from),
		.hop_limit = DEFAULT_HOPS,
	};
}

uint8_t *sim_wire_bth(uint8_t *header, uint8_t opcode, uint8_t flags, uint32_t dst_qpn, bool ack,
		      uint32_t psn)
{
	header = put8(header, opcode);
	header = put8(header, flags | 0x40u);	/* path migration: migrated, as Linux starts */
	header = put16(header, SIM_PKEY);
	header = put32(header, dst_qpn & 0xffffffu);
	return put32(header, (ack ? 0x80000000u : 0) | (psn & 0xffffffu));
}

/* ------------------------------------------------------------------------
 * Ethernet and IP.
 */

/* Of somebody who is not there we have the address only. */
static uint8_t *put_mac(uint8_t *at, const struct sim_port *port, const uint8_t address[16])
{
	if (port)
		return put_bytes(at, port->mac, sizeof(port->mac));
	at = put16(at, 0x0200);
	return put_bytes(at, address + 12, 4);
}

static uint8_t *put_ethernet(uint8_t *at, const struct sim_port *from, const struct sim_port *to,
			     const union ibv_gid *src, const union ibv_gid *dst)
{
	if (dst->raw[0] == 0xff) {
		at = put16(at, 0x3333);		/* a group of IPv6 */
		at = put_bytes(at, dst->raw + 12, 4);
	} else if (is_v4(dst) && dst->raw[12] >> 4 == 0xe) {
		at = put16(at, 0x0100);		/* a group of IPv4 */
		at = put8(at, 0x5e);
		at = put8(at, dst->raw[13] & 0x7fu);
		at = put_bytes(at, dst->raw + 14, 2);
	} else {
		at = put_mac(at, to, dst->raw);
	}
	at = put_mac(at, from, src->raw);
	return put16(at, is_v4(src) ? ETHERTYPE_IPV4 : ETHERTYPE_IPV6);
}

struct ip {
	const union ibv_gid *src, *dst;
	uint8_t protocol, traffic_class, hop_limit;
	uint32_t flow_label;
	size_t payload_len;
};

static uint8_t *put_ip(uint8_t *at, const struct ip *ip)
{
	uint8_t *begin = at;

	if (!is_v4(ip->src)) {
		at = put32(at, 6u << 28 | (uint32_t)ip->traffic_class << 20 | ip->flow_label);
		at = put16(at, (unsigned int)ip->payload_len);
		at = put8(at, ip->protocol);
		at = put8(at, ip->hop_limit);
		at = put_bytes(at, ip->src->raw, 16);
		return put_bytes(at, ip->dst->raw, 16);
	}
	at = put8(at, 0x45);
	at = put8(at, ip->traffic_class);
	at = put16(at, (unsigned int)(ip->payload_len + IPV4_SIZE));
	at = put16(at, 0);
	at = put16(at, DONT_FRAGMENT);
	at = put8(at, ip->hop_limit);
	at = put8(at, ip->protocol);
	at = put16(at, 0);
	at = put_bytes(at, ip->src->raw + 12, 4);
	at = put_bytes(at, ip->dst->raw + 12, 4);
	put16(begin + 10, sim_inet_fold(sim_inet_sum(0, begin, IPV4_SIZE)));
	return at;
}

/* Of TCP or UDP, over its pseudo-header too. */
static uint16_t checksum(const struct ip *ip, const uint8_t *payload)
{
	uint8_t rest[8] = { 0 };
	bool v4 = is_v4(ip->src);
	uint32_t sum;
	uint16_t folded;

	put32(rest, (uint32_t)ip->payload_len);
	put32(rest + 4, ip->protocol);
	sum = sim_inet_sum(0, ip->src->raw + (v4 ? 12 : 0), v4 ? 4 : 16);
	sum = sim_inet_sum(sum, ip->dst->raw + (v4 ? 12 : 0), v4 ? 4 : 16);
	sum = sim_inet_sum(sum, rest, sizeof(rest));
	folded = sim_inet_fold(sim_inet_sum(sum, payload, ip->payload_len));
	return folded || ip->protocol == PROTO_TCP ? folded : 0xffff;
}

/* ------------------------------------------------------------------------
 * RoCE.
 */

/* IBTA vol. 1, 9.8: over what stays the same on the way; an LRH would be all ones. */
static uint32_t icrc_of_ip(const uint8_t *ip, size_t ip_len, size_t len)
{
	static const uint8_t ones[LRH_SIZE] = { 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff };
	uint8_t head[IPV6_SIZE + UDP_SIZE + SIM_BTH_SIZE];
	size_t head_len = ip_len + UDP_SIZE + SIM_BTH_SIZE;
	uint32_t crc;

	memcpy(head, ip, head_len);
	if (ip_len == IPV4_SIZE) {
		head[1] = head[8] = 0xff;		/* type of service, time to live */
		head[10] = head[11] = 0xff;		/* checksum */
	} else {
		head[0] |= 0x0f;			/* traffic class, flow label */
		head[1] = head[2] = head[3] = 0xff;
		head[7] = 0xff;				/* hop limit */
	}
	head[ip_len + 6] = head[ip_len + 7] = 0xff;	/* UDP's checksum */
	head[ip_len + UDP_SIZE + 4] = 0xff;		/* BTH: reserved, congestion */
	crc = sim_crc32(0, ones, sizeof(ones));
	crc = sim_crc32(crc, head, head_len);
	return sim_crc32(crc, ip + head_len, len - head_len);
}

/* What switches spread flows by. */
static uint16_t source_port(const uint8_t *bth, uint32_t salt)
{
	return (uint16_t)(0xc000u | (sim_crc32(salt, bth + 5, 3) & 0x3fffu));
}

static uint8_t *put_crc(uint8_t *at, uint32_t crc)
{
	crc = htole32(crc);
	return put_bytes(at, &crc, sizeof(crc));
}

static void write_roce(const struct sim_wire_path *path, const uint8_t *packet, size_t len)
{
	uint8_t frame[SIM_PCAP_MAX_FRAME], *at, *ip_at, *udp;
	struct ip ip = {
		.src = &path->sgid,
		.dst = &path->dgid,
		.protocol = PROTO_UDP,
		.traffic_class = path->traffic_class,
		.hop_limit = path->hop_limit,
		.flow_label = path->flow_label,
		.payload_len = UDP_SIZE + len + ICRC_SIZE,
	};

	ip_at = put_ethernet(frame, path->from, path->to, ip.src, ip.dst);
	udp = at = put_ip(ip_at, &ip);
	at = put16(at, source_port(packet, path->flow_label));
	at = put16(at, ROCE_PORT);
	at = put16(at, (unsigned int)ip.payload_len);
	at = put16(at, 0);
	at = put_bytes(at, packet, len);
	at = put_crc(at, icrc_of_ip(ip_at, (size_t)(udp - ip_at), (size_t)(at - ip_at)));
	put16(udp + 6, checksum(&ip, udp));
	sim_pcap_write(SIM_PCAP_ETHERNET, frame, (size_t)(at - frame));
}

/* ------------------------------------------------------------------------
 * InfiniBand.
 */

static uint32_t icrc_of_lrh(const uint8_t *frame, bool global, size_t len)
{
	uint8_t head[LRH_SIZE + GRH_SIZE + SIM_BTH_SIZE];
	size_t bth = LRH_SIZE + (global ? GRH_SIZE : 0), head_len = bth + SIM_BTH_SIZE;

	memcpy(head, frame, head_len);
	head[0] |= 0xf0;				/* virtual lane */
	if (global) {
		head[LRH_SIZE] |= 0x0f;
		memset(head + LRH_SIZE + 1, 0xff, 3);
		head[LRH_SIZE + 7] = 0xff;
	}
	head[bth + 4] = 0xff;
	return sim_crc32(sim_crc32(0, head, head_len), frame + head_len, len - head_len);
}

static void write_ib(const struct sim_wire_path *path, const uint8_t *packet, size_t len)
{
	uint8_t frame[SIM_PCAP_MAX_FRAME], *at = frame;
	size_t words = (LRH_SIZE + (path->global ? GRH_SIZE : 0) + len + ICRC_SIZE) / 4;

	at = put8(at, 0);
	at = put8(at, (unsigned int)path->sl << 4 | (path->global ? LNH_GLOBAL : LNH_LOCAL));
	at = put16(at, path->dgid.raw[0] == 0xff ? 0xc000u | path->dgid.raw[15] :
		   path->to ? path->to->lid : 0);
	at = put16(at, (unsigned int)words);
	at = put16(at, path->from->lid);
	if (path->global) {
		at = put32(at, 6u << 28 | (uint32_t)path->traffic_class << 20 | path->flow_label);
		at = put16(at, (unsigned int)(len + ICRC_SIZE));
		at = put8(at, NEXT_HEADER_IBA);
		at = put8(at, path->hop_limit);
		at = put_bytes(at, path->sgid.raw, 16);
		at = put_bytes(at, path->dgid.raw, 16);
	}
	at = put_bytes(at, packet, len);
	at = put_crc(at, icrc_of_lrh(frame, path->global, (size_t)(at - frame)));
	at = put16(at, __builtin_bswap16(sim_vcrc(frame, (size_t)(at - frame))));
	sim_pcap_write(SIM_PCAP_INFINIBAND, frame, (size_t)(at - frame));
}

void sim_wire_write(const struct sim_wire_path *path, uint8_t *header, size_t header_len,
		    const struct iovec *data, unsigned int parts, size_t len)
{
	uint8_t packet[SIM_PCAP_MAX_FRAME - 128], *at = packet;
	size_t padding = -len & 3;

	if (header_len + len + padding > sizeof(packet))
		return;
	header[1] = (uint8_t)(header[1] | padding << 4);
	at = put_bytes(at, header, header_len);
	for (unsigned int i = 0; i < parts && len; i++) {
		size_t n = data[i].iov_len < len ? data[i].iov_len : len;

		at = put_bytes(at, data[i].iov_base, n);
		len -= n;
	}
	memset(at, 0, len + padding);
	at += len + padding;
	if (is_ib(path->from))
		write_ib(path, packet, (size_t)(at - packet));
	else
		write_roce(path, packet, (size_t)(at - packet));
}

/* ------------------------------------------------------------------------
 * TCP.
 */

void sim_wire_write_tcp(const struct sim_wire_tcp *path, uint8_t *segment, size_t len)
{
	uint8_t frame[SIM_PCAP_MAX_FRAME], *at;
	union ibv_gid src, dst;
	struct ip ip = {
		.src = &src,
		.dst = &dst,
		.protocol = PROTO_TCP,
		.traffic_class = path->traffic_class,
		.hop_limit = DEFAULT_HOPS,
		.payload_len = len,
	};

	if (len + ETHERNET_SIZE + IPV6_SIZE > sizeof(frame))
		return;
	sim_gid_of_address(path->src, &src);
	sim_gid_of_address(path->dst, &dst);
	put16(segment + 16, 0);
	put16(segment + 16, checksum(&ip, segment));
	at = put_ethernet(frame, path->from, path->to, &src, &dst);
	at = put_ip(at, &ip);
	at = put_bytes(at, segment, len);
	sim_pcap_write(SIM_PCAP_ETHERNET, frame, (size_t)(at - frame));
}
