/* SPDX-License-Identifier: BSD-2-Clause */
/* turn/path.h - the files that calls name, for the record of a run (record.h). */
#ifndef TURN_PATH_H
#define TURN_PATH_H

#include "trap.h"

/* The thread's call is in the record, if there is one: with the path that it names. */
void turn_path_record(const struct turn_call *call);

#endif
