/* SPDX-License-Identifier: BSD-2-Clause */
/* turn/refuse.h - a TCP socket that could not connect, as the kernel leaves it. */
#ifndef TURN_REFUSE_H
#define TURN_REFUSE_H

/*
 * The socket, which is bound and not connected, gets an error of the kernel's (ECONNREFUSED), so
 * that poll() sees one that has failed: it is connected to where nobody listens.
 */
void turn_refuse(int fd);

#endif
