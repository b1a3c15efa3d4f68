/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * wire/tcp.h - what stands for a segment of a TCP connection between programs (SIM_PACKET_TCP).
 * Their data stays with who carries the connection (include/tcp_ops.h); links and faults
 * decide when the segment arrives.
 *
 * Between ports of one process: host byte order.
 */
#ifndef SIM_TCP_WIRE_H
#define SIM_TCP_WIRE_H

#include <stdint.h>

#include "include/tcp_ops.h"
#include "address.h"

struct tcp_header {
	uint32_t kind;		/* enum polycm_tcp_kind */
	uint32_t connection;
	uint32_t to_server;	/* 0 or 1 */
	uint32_t len;		/* of its data */
	union sim_sockaddr src, dst;
};

/* Without the data: Ethernet, IP and TCP. */
#define TCP_HEADERS_LEN 66u

#endif
