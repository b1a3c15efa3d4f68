/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * watch/pcap/pcap_wire.c - the outer headers of packets and their checks: RoCE v2
 * (Ethernet, IP, UDP port 4791), InfiniBand (LRH, GRH), and TCP's below it.
 */
#include "config.h"

#include "providers/soft/fabric/gids.h"
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

/* The first address that is not link-local: programs and the CM use that one. */
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

/* A destination that nobody has gets a MAC made of its address. */
static uint8_t *put_mac(uint8_t *at, const struct sim_port *port, const uint8_t address[16])
{
	if (port)
		return put_bytes(at, port->mac, sizeof(port->mac));
	at = put16(at, 0x0200);
	return put_bytes(at, address + 12, 4);
}

static uint8_t *put_ethernet(uint8_t *at, const struct sim_wire_path *path)
{
	const union ibv_gid *src = &path->sgid, *dst = &path->dgid;

	if (dst->raw[0] == 0xff) {
		at = put16(at, 0x3333);		/* a group of IPv6 */
		at = put_bytes(at, dst->raw + 12, 4);
	} else if (is_v4(dst) && dst->raw[12] >> 4 == 0xe) {
		at = put16(at, 0x0100);		/* a group of IPv4 */
		at = put8(at, 0x5e);
		at = put8(at, dst->raw[13] & 0x7fu);
		at = put_bytes(at, dst->raw + 14, 2);
	} else {
		at = put_mac(at, path->to, dst->raw);
	}
	at = put_mac(at, path->from, src->raw);
	return put16(at, is_v4(src) ? ETHERTYPE_IPV4 : ETHERTYPE_IPV6);
}

/* A GRH has the same layout. */
static uint8_t *put_ipv6(uint8_t *at, const struct sim_wire_path *path, unsigned int next_header,
			 size_t len)
{
	at = put32(at, 6u << 28 | (uint32_t)path->traffic_class << 20 | path->flow_label);
	at = put16(at, (unsigned int)len);
	at = put8(at, next_header);
	at = put8(at, path->hop_limit);
	at = put_bytes(at, path->sgid.raw, 16);
	return put_bytes(at, path->dgid.raw, 16);
}

static uint8_t *put_ip(uint8_t *at, const struct sim_wire_path *path, unsigned int protocol,
		       size_t len)
{
	uint8_t *begin = at;

	if (!is_v4(&path->sgid))
		return put_ipv6(at, path, protocol, len);
	at = put8(at, 0x45);
	at = put8(at, path->traffic_class);
	at = put16(at, (unsigned int)(len + IPV4_SIZE));
	at = put16(at, 0);
	at = put16(at, DONT_FRAGMENT);
	at = put8(at, path->hop_limit);
	at = put8(at, protocol);
	at = put16(at, 0);
	at = put_bytes(at, path->sgid.raw + 12, 4);
	at = put_bytes(at, path->dgid.raw + 12, 4);
	put16(begin + 10, sim_inet_fold(sim_inet_sum(0, begin, IPV4_SIZE)));
	return at;
}

/* Of TCP or UDP, with its pseudo-header. */
static uint16_t checksum(const struct sim_wire_path *path, unsigned int protocol,
			 const uint8_t *payload, size_t len)
{
	size_t skip = is_v4(&path->sgid) ? 12 : 0;
	uint8_t rest[8] = { 0 };
	uint32_t sum;
	uint16_t folded;

	put32(rest, (uint32_t)len);
	put32(rest + 4, protocol);
	sum = sim_inet_sum(0, path->sgid.raw + skip, 16 - skip);
	sum = sim_inet_sum(sum, path->dgid.raw + skip, 16 - skip);
	sum = sim_inet_sum(sum, rest, sizeof(rest));
	folded = sim_inet_fold(sim_inet_sum(sum, payload, len));
	return folded || protocol == PROTO_TCP ? folded : 0xffff;
}

/* ------------------------------------------------------------------------
 * RoCE.
 */

/* What routers change: traffic class, flow label, hop limit. */
static void mask_ipv6(uint8_t *header)
{
	header[0] |= 0x0f;
	memset(header + 1, 0xff, 3);
	header[7] = 0xff;
}

/* IBTA vol. 1, 9.8: fields that change on the way count as ones, and so does the missing LRH. */
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
		mask_ipv6(head);
	}
	head[ip_len + 6] = head[ip_len + 7] = 0xff;	/* UDP's checksum */
	head[ip_len + UDP_SIZE + 4] = 0xff;		/* BTH: reserved, congestion */
	crc = sim_crc32(0, ones, sizeof(ones));
	crc = sim_crc32(crc, head, head_len);
	return sim_crc32(crc, ip + head_len, len - head_len);
}

/* Switches use it to spread flows over paths. */
static uint16_t source_port(const uint8_t *bth, uint32_t salt)
{
	return (uint16_t)(0xc000u | (sim_crc32(salt, bth + 5, 3) & 0x3fffu));
}

static void write_roce(const struct sim_wire_path *path, const uint8_t *packet, size_t len)
{
	uint8_t frame[SIM_PCAP_MAX_FRAME], *at, *ip_at, *udp;
	size_t udp_len = UDP_SIZE + len + ICRC_SIZE;

	ip_at = put_ethernet(frame, path);
	udp = at = put_ip(ip_at, path, PROTO_UDP, udp_len);
	at = put16(at, source_port(packet, path->flow_label));
	at = put16(at, ROCE_PORT);
	at = put16(at, (unsigned int)udp_len);
	at = put16(at, 0);
	at = put_bytes(at, packet, len);
	at = put_crc(at, icrc_of_ip(ip_at, (size_t)(udp - ip_at), (size_t)(at - ip_at)));
	put16(udp + 6, checksum(path, PROTO_UDP, udp, udp_len));
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
	if (global)
		mask_ipv6(head + LRH_SIZE);
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
	if (path->global)
		at = put_ipv6(at, path, NEXT_HEADER_IBA, len + ICRC_SIZE);
	at = put_bytes(at, packet, len);
	at = put_crc(at, icrc_of_lrh(frame, path->global, (size_t)(at - frame)));
	at = put16(at, __builtin_bswap16(sim_vcrc(frame, (size_t)(at - frame))));
	sim_pcap_write(SIM_PCAP_INFINIBAND, frame, (size_t)(at - frame));
}

uint8_t *sim_wire_put_parts(uint8_t *at, const struct iovec *data, unsigned int parts, size_t len)
{
	for (unsigned int i = 0; i < parts && len; i++) {
		size_t n = data[i].iov_len < len ? data[i].iov_len : len;

		at = put_bytes(at, data[i].iov_base, n);
		len -= n;
	}
	return at;
}

void sim_wire_write(const struct sim_wire_path *path, uint8_t *header, size_t header_len,
		    const struct iovec *data, unsigned int parts, size_t len)
{
	size_t padding = -len & 3, packet_len = header_len + len + padding;
	uint8_t packet[SIM_PCAP_MAX_FRAME - 128], *at;

	if (packet_len > sizeof(packet))
		return;
	header[1] = (uint8_t)(header[1] | padding << 4);
	at = put_bytes(packet, header, header_len);
	at = sim_wire_put_parts(at, data, parts, len);
	memset(at, 0, (size_t)(packet + packet_len - at));
	if (is_ib(path->from))
		write_ib(path, packet, packet_len);
	else
		write_roce(path, packet, packet_len);
}

/* ------------------------------------------------------------------------
 * TCP.
 */

void sim_wire_write_tcp(const struct sim_wire_path *path, uint8_t *segment, size_t len)
{
	uint8_t frame[SIM_PCAP_MAX_FRAME], *at;

	if (len + ETHERNET_SIZE + IPV6_SIZE > sizeof(frame))
		return;
	put16(segment + 16, 0);
	put16(segment + 16, checksum(path, PROTO_TCP, segment, len));
	at = put_ip(put_ethernet(frame, path), path, PROTO_TCP, len);
	at = put_bytes(at, segment, len);
	sim_pcap_write(SIM_PCAP_ETHERNET, frame, (size_t)(at - frame));
}
