/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * turn/settle.h - until Linux has delivered on loopback what it has put off (loopback.h).
 *
 * All members and the launcher share a processor, whose packets on loopback are in one queue.  So a
 * datagram to oneself arrives behind all that was sent before it.
 */
#ifndef TURN_SETTLE_H
#define TURN_SETTLE_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>

#include "spare.h"

/* Data causes an acknowledgement, and that more data; they are at most so deep. */
#define TURN_SETTLE_ROUNDS 4u
#define TURN_SETTLE_LONGEST_NS UINT64_C(2000000000)	/* of real time, if nothing arrives at all */

static inline uint64_t turn_settle_now(turn_ask_fn *ask)
{
	struct timespec now = { 0 };

	ask(SYS_clock_gettime, CLOCK_MONOTONIC, (long)&now, 0, 0, 0, 0);
	return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

/* False: it does not arrive.  *ret_waited: it was not there at once. */
static inline bool turn_settle_round(turn_ask_fn *ask, long fd, const struct sockaddr_in *own,
				     bool *ret_waited)
{
	uint64_t end = 0;
	char byte = 0;

	if (ask(SYS_sendto, fd, (long)&byte, 1, 0, (long)own, sizeof(*own)) != 1)
		return false;
	while (ask(SYS_recvfrom, fd, (long)&byte, 1, MSG_DONTWAIT, 0, 0) != 1) {
		end = end ? end : turn_settle_now(ask) + TURN_SETTLE_LONGEST_NS;
		if (turn_settle_now(ask) >= end)
			return false;
		ask(SYS_sched_yield, 0, 0, 0, 0, 0, 0);
	}
	*ret_waited = end != 0;
	return true;
}

static inline void turn_settle_by(turn_ask_fn *ask)
{
	struct sockaddr_in own = {
		.sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) },
	};
	const long fd = turn_spare_socket(ask, AF_INET, SOCK_DGRAM | SOCK_CLOEXEC);
	socklen_t len = sizeof(own);
	bool waited = true;

	if (fd < 0)
		return;
	if (!ask(SYS_bind, fd, (long)&own, sizeof(own), 0, 0, 0) &&
	    !ask(SYS_getsockname, fd, (long)&own, (long)&len, 0, 0, 0))
		for (unsigned int i = 0; waited && i < TURN_SETTLE_ROUNDS; i++)
			if (!turn_settle_round(ask, fd, &own, &waited))
				break;
	ask(SYS_close, fd, 0, 0, 0, 0, 0);
}

#endif
