/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * turn/ports.h - the ports and names that the kernel would choose at random are chosen here, so that
 * they repeat; and the address from which a program connects is its own host's.
 */
#ifndef TURN_PORTS_H
#define TURN_PORTS_H

#include <sys/socket.h>

#include "trap.h"

long turn_bind(const struct turn_call *call);
long turn_listen(const struct turn_call *call);

/* Before a call that gives the socket a port if it has none: it connects, or sends to that address. */
void turn_ports_before_connect(int fd, const struct sockaddr *to, socklen_t len);
void turn_ports_before_send(int fd);

#endif
