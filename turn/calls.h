/* SPDX-License-Identifier: BSD-2-Clause */
/* turn/calls.h - calls that a function of the C library makes without a trap. */
#ifndef TURN_CALLS_H
#define TURN_CALLS_H

#include <stdbool.h>
#include <stdint.h>
#include <ucontext.h>

/*
 * This thread has the turn, and may make that call here, with that argument: it is counted.
 * Otherwise it is to be trapped, since it lets others go on first.
 */
bool turn_calls_quickly(long number, long first);
/* The same of a call that is not counted. */
bool turn_calls_quietly(long number);
/* This thread has written to a file: what it asked for before was for that. */
void turn_calls_wrote(void);
/* A look at the time that is no call: others may go on first.  Virtual time. */
uint64_t turn_calls_look(const ucontext_t *context);

#endif
