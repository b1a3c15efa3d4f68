/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * turn/tcp.c - see tcp.h.
 *
 * Linux keeps a small message back until those before it are acknowledged (Nagle's algorithm), and a
 * receiver that has nothing to send acknowledges up to 40 ms later.  That is real time: here nobody
 * could go on until then, or time would move first.  Buffers that the program does not set would
 * grow with what the kernel measures in real time.
 */
#include "config.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stddef.h>

#include "descriptors.h"
#include "hand.h"
#include "pointers.h"
#include "raw.h"
#include "reuse.h"
#include "tcp.h"

#define BUFFER_SIZE 212992	/* what Linux allows to everybody, if nobody has changed it */

bool turn_tcp_is(int fd)
{
	int protocol = 0;
	socklen_t len = sizeof(protocol);

	return !TURN_RAW(SYS_getsockopt, fd, SOL_SOCKET, SO_PROTOCOL, &protocol, &len) &&
	       protocol == IPPROTO_TCP;
}

static void set(long fd, int level, int option, int value)
{
	TURN_RAW(SYS_setsockopt, fd, level, option, &value, sizeof(value));
}

/* Those that it accepts have it from their listener. */
long turn_socket(const struct turn_call *call)
{
	long fd = turn_through(call);

	if (fd < 0 || !turn_tcp_is((int)fd))
		return fd;
	set(fd, IPPROTO_TCP, TCP_NODELAY, 1);
	set(fd, SOL_SOCKET, SO_SNDBUF, BUFFER_SIZE);
	set(fd, SOL_SOCKET, SO_RCVBUF, BUFFER_SIZE);
	return fd;
}

/* A close() that waits, in real time, until the peer has taken what was sent. */
static bool lingers(const struct turn_call *call)
{
	const struct linger *linger = (const struct linger *)call->arguments[3];

	return call->arguments[1] == SOL_SOCKET && call->arguments[2] == SO_LINGER &&
	       (int)call->arguments[4] >= (int)sizeof(*linger) &&
	       turn_can_read(linger, sizeof(*linger)) && linger->l_onoff && linger->l_linger &&
	       turn_tcp_is((int)call->arguments[0]);
}

/* Nothing is kept back for more, so there is no more to say. */
long turn_set_option(const struct turn_call *call)
{
	const bool keeps_back = call->arguments[1] == IPPROTO_TCP &&
		(call->arguments[2] == TCP_NODELAY || call->arguments[2] == TCP_CORK);
	const struct linger off = { .l_onoff = 0 };

	if (keeps_back && (int)call->arguments[4] >= (int)sizeof(int) &&
	    turn_tcp_is((int)call->arguments[0]))
		return turn_can_read((const void *)call->arguments[3], sizeof(int)) ? 0 : -EFAULT;
	turn_reuse_note_option(call);
	if (lingers(call))
		return TURN_RAW(SYS_setsockopt, call->arguments[0], SOL_SOCKET, SO_LINGER, &off,
				sizeof(off));
	return turn_done(turn_through(call));
}
