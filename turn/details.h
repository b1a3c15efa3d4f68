/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * turn/details.h - what the record of a run (record.h) has of a thread's last call besides numbers, if
 * there is a record and the call is in it.
 */
#ifndef TURN_DETAILS_H
#define TURN_DETAILS_H

#include "trap.h"

/* The file that it names. */
void turn_details_path(const struct turn_call *call);
/* A number of what it has read. */
void turn_details_data(const struct turn_call *call, long result);

#endif
