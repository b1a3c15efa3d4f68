/* SPDX-License-Identifier: BSD-2-Clause */
/* wire/packet.h - the kinds of packets on links, and how long they may be. */
#ifndef SIM_PACKET_H
#define SIM_PACKET_H

enum sim_packet_type {
	SIM_PACKET_MAD,		/* 256 bytes */
	SIM_PACKET_STREAM,	/* TCP segments of the iWARP engine */
	SIM_PACKET_RC,		/* data path of connected QPs */
	SIM_PACKET_UD,
	SIM_PACKET_TCP,		/* TCP connections of programs: see wire/tcp.h */
	SIM_PACKET_NOTE,	/* off the wire: see sim_link_note() */
	SIM_PACKET_TYPES,
	SIM_PACKET_LEFT = 0x80	/* in rings between processes only: see link/left.h */
};

#define SIM_LINK_MAX_PACKET 16384u	/* header and payload, on any link */
/*
 * On links that take more: sim_link_max().  With the headers of a frame of TCP (ofi/frame.h) it is
 * 180 segments of Ethernet: nothing is left over that would be a segment, and cost as much.
 */
#define SIM_LINK_MAX_LONG 260616u

#endif
