/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * tests/api/rsockets.h - a server's and a client's rsockets in one thread, on two nodes of
 * a private fabric under the virtual clock.  All are non-blocking: rpoll() moves time.
 */
#ifndef TESTS_API_RSOCKETS_H
#define TESTS_API_RSOCKETS_H

#include <poll.h>

#include <rdma/rsocket.h>

#include "pair.h"

struct rsockets {
	struct polycm_sim_node *server_node, *client_node;
	unsigned int descriptors;	/* before it was opened */
	int listener, server, client;	/* -1: none, or the test closed it */
};

/* The fabric, a listener and a client, both as options of the caller may change them. */
void rsockets_open(struct rsockets *r, enum transport transport);
/* What the client says of its way to the listener: 0 or -1 with errno. */
int rsockets_connect_client(struct rsockets *r);
/* rconnect(), then both until they are connected. */
void rsockets_connect_opened(struct rsockets *r);
void rsockets_connect(struct rsockets *r, enum transport transport);
/* Closes what is left; fails the test unless nothing of it remains. */
void rsockets_close(struct rsockets *r);

/* How many are open. */
unsigned int rsockets_descriptors(void);
/* rpoll() of one: its events. */
short rsockets_poll(int fd, short events, int timeout_ms);
/* len bytes of a pattern, sent and received in such pieces, and checked. */
void rsockets_carry(struct rsockets *r, bool from_client, size_t len, size_t piece);

#endif
