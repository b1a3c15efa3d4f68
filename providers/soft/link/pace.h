/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * link/pace.h - when the link from one node to another is free again.  All processes of the
 * fabric share its bandwidth, so this is in the segment, without its lock.
 */
#ifndef SIM_PACE_H
#define SIM_PACE_H

#include <stdatomic.h>
#include <stdint.h>

#define SIM_PACES 1024u			/* directions; of more than that each process counts its own */

struct sim_pace_area {
	struct {
		_Atomic uint64_t nodes;	/* from and to; 0: free */
		_Atomic uint64_t free_at;
	} of[SIM_PACES];
};

/* NULL: no place is left. */
_Atomic uint64_t *sim_pace_find(struct sim_pace_area *area, uint32_t from, uint32_t to);

#endif
