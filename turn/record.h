/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * turn/record.h - what happens in a run is noted, for a comparison with another run (polycm run
 * --verify).  Pure, like order.h.
 */
#ifndef TURN_RECORD_H
#define TURN_RECORD_H

#include "segment.h"

/* A thread is given the turn, or makes a call that is in its slot. */
void turn_record(struct turn_segment *segment, enum turn_event_kind kind, uint32_t thread);
/* Its last call returns. */
void turn_record_result(struct turn_segment *segment, struct turn_thread *thread, int64_t result);

#endif
