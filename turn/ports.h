/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * turn/ports.h - the ports and names that the kernel would choose at random are chosen here, so that
 * they repeat; and the address from which a program connects or sends is its own host's.
 */
#ifndef TURN_PORTS_H
#define TURN_PORTS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "trap.h"

long turn_bind(const struct turn_call *call);
long turn_listen(const struct turn_call *call);
/* The socket is connected to nothing any more; an address that it was bound to stays. */
long turn_disconnect(int fd);

/*
 * Before a datagram to that receiver, which gives the socket a port if it has none.  True: so that it
 * comes from this host, the socket is connected until turn_ports_after_send().
 */
bool turn_ports_before_send(int fd, const struct sockaddr *to, socklen_t len);
void turn_ports_after_send(int fd);

/* As IPv6 has it; false: it is no address of the Internet, or cannot be read. */
bool turn_ports_read(const struct sockaddr *given, socklen_t len, uint8_t ret[static 16]);

union turn_address;
/* A socket that will be connected to that address by another process has an address and a port. */
void turn_ports_before_carried(int fd, const struct sockaddr *given, socklen_t len,
			       union turn_address *ret_from, union turn_address *ret_to);

/* Where a connection comes from. */
struct turn_source {
	int fd;
	bool is_any;		/* the program has not bound it to an address */
	bool is_connected;	/* to an address of this host, for datagrams */
	uint32_t tries;		/* of ports that the kernel was given; 0: it was given none */
	uint32_t port;		/* the last one of these */
};

void turn_ports_before_connect(int fd, const struct sockaddr *to, socklen_t len,
			       struct turn_source *source);
/* After the call had that result: is it to be made again, with another port? */
bool turn_ports_try_next(struct turn_source *source, long result);
/* The socket has no address again, for other connections. */
void turn_ports_connect_failed(const struct turn_source *source);

#endif
