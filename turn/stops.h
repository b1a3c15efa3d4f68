/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * turn/stops.h - processes that signals stop, and that go on.  The kernel stops them, so it tells their
 * parents; but only when they have not the turn, and the turn goes on when they have stopped.
 */
#ifndef TURN_STOPS_H
#define TURN_STOPS_H

#include <stdbool.h>

#include "trap.h"

/* Those that stop a process which does not handle them, but for SIGSTOP. */
bool turn_stops_by(int signal);
/* Such a signal is there for this thread: stop, and come back with the turn.  False: it did not stop. */
bool turn_stops_now(int signal);
/* A call that sends SIGSTOP, or SIGCONT, to these members, one bit each. */
long turn_stops_send(const struct turn_call *call, uint64_t targets);
long turn_stops_continue(const struct turn_call *call, uint64_t targets);

/* prctl(), fcntl() and ioctl(): does the kernel send signals from now on? */
void turn_stops_note(const struct turn_call *call);

#endif
