/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * turn/preempt.h - preemptions: places at which a thread that could go on is held up for a time,
 * as a busy machine holds it up.  Which ones is decided by a seed, or given, to repeat a run.
 *
 * Places are points: system calls that do more than ask or map memory, and locks that are taken.
 * Pure, like order.h.
 */
#ifndef TURN_PREEMPT_H
#define TURN_PREEMPT_H

#include "segment.h"

/* No preemption; part of turn_order_init(). */
void turn_preempt_init(struct turn_segment *segment);
/* What a seed chooses, anywhere in a run in which all threads together pass so many points. */
struct turn_choice {
	uint64_t seed;
	uint64_t points;
	uint32_t num;		/* at most TURN_MAX_CHOSEN */
	uint32_t program;	/* those that are not its are left out; TURN_NOBODY: all are in */
};

void turn_preempt_choose(struct turn_segment *segment, const struct turn_choice *choice);
/* Nobody is held up any more by that choice. */
void turn_preempt_end_choice(struct turn_segment *segment);
/* One that is given, before the run; false: there are too many. */
bool turn_preempt_give(struct turn_segment *segment, const struct turn_preemption *given);

/* A thread is new: which of those that are given is its first? */
void turn_preempt_begin(struct turn_segment *segment, struct turn_thread *thread);
/* So long it is held up here, in ns; it is noted in segment->preempted. */
uint64_t turn_preempt_take(struct turn_segment *segment, struct turn_thread *thread);

static inline bool turn_point_is_before(const struct turn_point *a, const struct turn_point *b)
{
	return a->call != b->call ? a->call < b->call : a->lock < b->lock;
}

/* At the next place that is given, or the first after it: fewer locks may be taken this time. */
static inline bool turn_preempt_here(const struct turn_segment *segment,
				     const struct turn_thread *thread)
{
	return segment->points == segment->preempt_at ||
	       !turn_point_is_before(&thread->point, &thread->preempt_at);
}

/* It passes a point; true: it is held up there, as turn_preempt_take() says. */
static inline bool turn_preempt_call(struct turn_segment *segment, struct turn_thread *thread,
				     uint32_t call)
{
	segment->points++;
	thread->point.call++;
	thread->point.lock = 0;
	thread->point_of = call;
	return turn_preempt_here(segment, thread);
}

static inline bool turn_preempt_lock(struct turn_segment *segment, struct turn_thread *thread,
				     uint32_t call)
{
	segment->points++;
	thread->point.lock++;
	thread->point_of = call;
	return turn_preempt_here(segment, thread);
}

#endif
