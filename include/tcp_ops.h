/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * tcp_ops.h - how TCP connections of programs go over the simulated network: the table that
 * polycm_provider_extension("sim", POLYCM_TCP_EXTENSION, 1) returns.  Who carries a connection
 * (polycm carry) keeps its data, and is told when each segment arrives.  Not installed.
 */
#ifndef TCP_OPS_H
#define TCP_OPS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#define POLYCM_TCP_EXTENSION "polycm.tcp"

enum polycm_tcp_kind {
	POLYCM_TCP_SYN,
	POLYCM_TCP_SYN_ACK,
	POLYCM_TCP_ACK,		/* that ends the opening; data does so, too, and does not wait for it */
	POLYCM_TCP_DATA,
	POLYCM_TCP_FIN,
	POLYCM_TCP_RST,
	POLYCM_TCP_REFUSED,	/* the RST that answers a SYN: if it is lost, the SYN is repeated */
	POLYCM_TCP_GIVES_UP,	/* not sent, but told: no repetition of a segment has arrived */
};

struct polycm_tcp_segment {
	uint32_t connection;	/* a number that only it has */
	bool to_server;		/* from the end that connects */
	enum polycm_tcp_kind kind;
	uint32_t len;		/* of data, in bytes */
};

struct polycm_tcp_ops {
	uint32_t size;
	/*
	 * Once, when the simulator runs.  A segment has arrived: called on a thread of the simulator,
	 * which has locks; it must not call back.  0 or a negative errno.
	 */
	int (*open)(void (*arrived)(const struct polycm_tcp_segment *segment));
	/*
	 * Segments of one direction arrive in order, and all do until its sender gives up, but for a
	 * RST, which may be lost.  Ends are addresses of nodes.  -EADDRNOTAVAIL: one is not; -EINVAL:
	 * that kind is not sent; -ENOMEM.
	 */
	int (*send)(const struct polycm_tcp_segment *segment, const struct sockaddr *from,
		    const struct sockaddr *to);
};

#endif
