/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * turn/reuse.h - sockets that share a port (SO_REUSEPORT).  The kernel chooses among them by a number
 * that each network has for itself; here the sender's port decides, which is the same in each run.
 */
#ifndef TURN_REUSE_H
#define TURN_REUSE_H

#include "trap.h"

/* After bind() or listen(): it may be one more of such a group. */
void turn_reuse_join(int fd);
/* Before setsockopt(): the program may choose by itself. */
void turn_reuse_note_option(const struct turn_call *call);

#endif
