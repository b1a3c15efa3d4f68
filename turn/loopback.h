/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * turn/loopback.h - what is sent over TCP is at the peer when the call returns.  Linux delivers on
 * loopback in the sender's call; but if it has worked for others for 2 ms, as on a busy machine,
 * it leaves the rest to a thread of its own (ksoftirqd), and it is there in some real time.
 */
#ifndef TURN_LOOPBACK_H
#define TURN_LOOPBACK_H

#include "trap.h"

/*
 * A call as it is, which does not wait.  If it sends or receives over TCP, or connects, all that this
 * causes has been delivered, too.
 */
long turn_now(const struct turn_call *call);
long turn_shutdown(const struct turn_call *call);
long turn_close(const struct turn_call *call);
/* The result of a call that may have closed sockets, or sent on them. */
long turn_after_close(long result);
/* What was sent before has arrived. */
void turn_loopback_settle(void);

#endif
