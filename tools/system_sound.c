/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * system_sound.c - members write the segment, and a program that is wrong may write anywhere: its
 * numbers are places of the launcher's memory, and processes that it ends or traces.
 */
#include "config.h"

#include "system.h"

bool system_is_sound(const struct turn_segment *segment)
{
	const uint32_t num_members = segment->num_members, num_threads = segment->num_threads;
	uint32_t outside = 0;

	if (num_members > TURN_MAX_MEMBERS || num_threads > TURN_MAX_THREADS ||
	    (segment->owner != TURN_NOBODY && segment->owner >= num_threads) ||
	    segment->becoming > num_members || segment->becoming_thread >= TURN_MAX_THREADS ||
	    segment->traced_thread >= TURN_MAX_THREADS || segment->traced_pid < 0 ||
	    segment->traced_pid == 1 ||
	    segment->ended > num_members || segment->turns == TURN_NEVER ||
	    (num_members < 64 && (segment->victims | segment->stopping | segment->continuing) >>
					 num_members) ||
	    segment->num_preempted > TURN_MAX_PREEMPTIONS)
		return false;
	for (uint32_t i = 0; i < num_members; i++) {
		if (segment->members[i].life > TURN_ENDED ||
		    segment->members[i].pid < 0 || segment->members[i].pid == 1 ||
		    (segment->members[i].parent != TURN_NOBODY &&
		     segment->members[i].parent >= num_members))
			return false;
		outside += segment->members[i].life == TURN_OUTSIDE;
	}
	if (segment->outside != outside)
		return false;
	for (uint32_t i = 0; i < num_threads; i++)
		if (segment->threads[i].member >= num_members)
			return false;
	return true;
}
