/* SPDX-License-Identifier: BSD-2-Clause */
/* turn/ask_time.h - calls that ask for the time, or how much of it was used. */
#ifndef TURN_ASK_TIME_H
#define TURN_ASK_TIME_H

#include "trap.h"

/* clock_gettime(), gettimeofday(), time(), times() or getrusage(). */
long turn_ask_time(const struct turn_call *call);

#endif
