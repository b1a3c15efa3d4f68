/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * turn/points.h - where a thread of this process can be held up although it could go on
 * (preempt.h): before system calls that others see, and before it takes a lock of the C library.
 * Points begin with main().
 */
#ifndef TURN_POINTS_H
#define TURN_POINTS_H

#include "trap.h"

/*
 * No call of the kernel: who takes a lock makes it to be trapped, which lets it be held up as in any
 * other call.  Without a trap the kernel knows no such call.
 */
#define TURN_CALL_POINT 100000

enum turn_points_kind {
	/*
	 * Memory and files of the file system: other threads wait for nothing of it, and it is not
	 * counted.  So a run is the same with a trace and without.
	 */
	QUIET,
	COUNTED,
	POINT,
	UNLESS_FILE,	/* a point, or quiet */
};

enum turn_points_kind turn_points_kind_of(const struct turn_call *call);

/* A call that is a point is about to be made. */
void turn_points_pass(void);
/* TURN_CALL_POINT. */
long turn_points_lock(void);

#endif
