/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * turn/carried.h - TCP connections between nodes that go over the simulated network, with its
 * latency, losses and cuts (turn_segment.carries_tcp).  A process of the run, the carrier, connects
 * to both ends and passes on what they send; here a program's connect() becomes a request to it.
 *
 * The socket stays as it is.  While its connection is not there yet it listens, so that it is ready
 * for nothing; then the carrier, which has a descriptor of it, connects it to itself.
 */
#ifndef TURN_CARRIED_H
#define TURN_CARRIED_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "trap.h"

union turn_address {
	struct sockaddr sa;
	struct sockaddr_in in;
	struct sockaddr_in6 in6;
};

/* To the carrier, with a descriptor of the socket; a datagram to its socket of that name. */
#define TURN_CARRIER "polycm-carrier"	/* in the abstract name space */
struct turn_connect_request {
	uint64_t cookie;		/* of the socket (SO_COOKIE) */
	uint32_t number;		/* of the connect(), which no other one has */
	union turn_address from, to;	/* of the family of the socket */
};

/* Is this process the carrier? */
bool turn_carried_is_carrier(void);
/* Is connect() to that address carried, or has it been before? */
bool turn_carried_is(int fd, const struct sockaddr *to, socklen_t len);
/* Such a connect(). */
long turn_carried_connect(const struct turn_call *call);
/* shutdown() of any socket; true: its connect() was given up, and that is all. */
bool turn_carried_shut_down(const struct turn_call *call);
/* getsockopt(), getpeername() and accept() of any socket. */
long turn_carried_get_option(const struct turn_call *call);
long turn_carried_get_peer(const struct turn_call *call);
long turn_carried_accept(const struct turn_call *call);
/*
 * Before data is sent or received on any descriptor: as long as it is a socket whose connection is
 * being made, the call waits, or fails.  0: it goes on; else its result.
 */
long turn_carried_before_data(const struct turn_call *call, bool may_not_wait);

/* What the result of a call on that socket means, if it is ECONNRESET or ECONNREFUSED. */
long turn_carried_error(int fd, long result);

#endif
