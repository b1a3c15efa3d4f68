/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * turn/tcp.c - see tcp.h.
 *
 * Linux keeps a small message back until those before it are acknowledged (Nagle's algorithm), and a
 * receiver that has nothing to send acknowledges up to 40 ms later.  That is real time: here nobody
 * could go on until then, or time would move first.
 */
#include "config.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stddef.h>

#include "descriptors.h"
#include "hand.h"
#include "raw.h"
#include "tcp.h"

static bool is_tcp(int fd)
{
	int protocol = 0;
	socklen_t len = sizeof(protocol);

	return !TURN_RAW(SYS_getsockopt, fd, SOL_SOCKET, SO_PROTOCOL, &protocol, &len) &&
	       protocol == IPPROTO_TCP;
}

/* Those that it accepts have it from their listener. */
long turn_socket(const struct turn_call *call)
{
	const int on = 1;
	long fd = turn_through(call);

	if (fd >= 0 && is_tcp((int)fd))
		TURN_RAW(SYS_setsockopt, fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	return fd;
}

/* Nothing is kept back for more, so there is no more to say. */
long turn_set_option(const struct turn_call *call)
{
	const bool keeps_back = call->arguments[1] == IPPROTO_TCP &&
		(call->arguments[2] == TCP_NODELAY || call->arguments[2] == TCP_CORK);

	if (keeps_back && call->arguments[4] >= (long)sizeof(int) && is_tcp((int)call->arguments[0]))
		return 0;
	return turn_done(turn_through(call));
}
