/* SPDX-License-Identifier: BSD-2-Clause */
/* turn/sleep.h - calls that do nothing for a while: nanosleep(), clock_nanosleep(), sched_yield(). */
#ifndef TURN_SLEEP_H
#define TURN_SLEEP_H

#include "trap.h"

long turn_sleep(const struct turn_call *call);
long turn_sleep_on_clock(const struct turn_call *call);
long turn_yield(const struct turn_call *call);

#endif
