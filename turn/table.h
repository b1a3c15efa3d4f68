/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * turn/table.h - which function serves each system call: whether it waits, changes what others see,
 * asks for the time or for random numbers, or goes to the kernel as it is.
 */
#ifndef TURN_TABLE_H
#define TURN_TABLE_H

#include "trap.h"

/* By its number; one that is not known goes to the kernel, and may change anything. */
long turn_table_call(const struct turn_call *call);

#endif
