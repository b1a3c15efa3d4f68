/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * turn/terminals.h - pseudo terminals.  What is written to one, the kernel handles a moment later, by a
 * thread of its own: what is typed comes back as an echo, or sends a signal.  Here it has done so when
 * the call returns.
 */
#ifndef TURN_TERMINALS_H
#define TURN_TERMINALS_H

#include "trap.h"

/* A member opened something, or made a call of ioctl(): it may be a terminal. */
void turn_terminals_opened(int fd);
void turn_terminals_control(const struct turn_call *call, long result);
/* Something was written. */
void turn_terminals_settle(int fd);
/*
 * So much was read of a terminal's other end, or of something else: what comes behind it, as far as
 * there is room.  All that was written is there, and not what the kernel has got to.  The sum.
 */
long turn_terminals_read_rest(const struct turn_call *call, long len);
/* Before somebody looks at a set of epoll: what is on its way to terminals in it is there. */
void turn_terminals_settle_set(int epoll);

#endif
