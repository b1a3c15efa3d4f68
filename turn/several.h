/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * turn/several.h - recvmmsg() and sendmmsg() on a descriptor that may wait.  The kernel would wait
 * within them until there are all messages, or room for all.
 */
#ifndef TURN_SEVERAL_H
#define TURN_SEVERAL_H

#include <stdbool.h>

#include "trap.h"

/* recvmsg() or sendmsg(), which waits.  is_rest: 0 if the socket has failed, as the next call tells. */
typedef long turn_one_fn(const struct turn_call *call, int fd, bool is_rest);

/* Each message by a call of its own; their number. */
long turn_several_receive(const struct turn_call *call, turn_one_fn *receive);
long turn_several_send(const struct turn_call *call, turn_one_fn *send);

#endif
