/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * wire/ud.h - datagrams on the link.  One to a group is a packet for each
 * process and port that has members; the receiver hands it to each of its QPs.
 *
 * Between processes of one host: host byte order.  Everything is checked.
 */
#ifndef SIM_NIC_UD_H
#define SIM_NIC_UD_H

#include <infiniband/verbs.h>
#include <stdint.h>

enum ud_flags {
	UD_F_IMM = 1 << 0,
	UD_F_SOLICITED = 1 << 1,
	UD_F_GRH = 1 << 2,		/* sgid and dgid */
	UD_F_IPV4 = 1 << 3,		/* they are IPv4 addresses, in an IPv4 header (RoCE v2) */
};

struct ud_header {
	uint32_t dst_qpn, src_qpn;	/* dst_qpn SIM_MULTICAST_QPN: dgid is a group */
	uint32_t qkey;
	uint32_t imm;
	uint32_t length;		/* of the payload, which follows */
	uint8_t flags;
	uint8_t tclass, hop_limit;	/* of the GRH or IPv4 header */
	uint8_t reserved;
	union ibv_gid sgid, dgid;
};

#endif
