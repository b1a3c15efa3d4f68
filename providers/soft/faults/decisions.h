/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * faults/decisions.h - what the processes of a shared fabric have in common when a seed decides on
 * faults (polycm explore): so the n-th message of a node is the same as for a rule, whichever of the
 * node's processes sends it, and no two processes decide alike.
 */
#ifndef SIM_DECISIONS_H
#define SIM_DECISIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "providers/common/fault_names.h"

/* Decisions of one kind: their number, and random numbers of their own. */
struct sim_chooser {
	uint64_t state;
	unsigned int decided;
};

enum sim_decision { SIM_DECIDE_CM, SIM_DECIDE_DATA, SIM_DECIDE_NODE, SIM_DECISIONS };

#define SIM_COUNTED_NODES 64u	/* each process counts what others send for itself */

/* In the segment.  There is no lock: of the programs that are explored one thread runs at a time. */
struct sim_decisions_area {
	bool begun;
	struct sim_chooser choosers[SIM_DECISIONS];
	unsigned int counts[SIM_COUNTED_NODES][SIM_WHATS];
};

#endif
