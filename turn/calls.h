/* SPDX-License-Identifier: BSD-2-Clause */
/* turn/calls.h - calls that a function of the C library makes without a trap. */
#ifndef TURN_CALLS_H
#define TURN_CALLS_H

#include <stdbool.h>

/*
 * This thread has the turn, and may make that call here, with that argument: it is counted.
 * Otherwise it is to be trapped, since it lets others go on first.
 */
bool turn_calls_quickly(long number, long first);

#endif
