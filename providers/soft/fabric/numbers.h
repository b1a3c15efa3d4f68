/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fabric/numbers.h - who owns which QP numbers.  The table is private memory or part
 * of the shared segment, then under the segment's lock; all zero is empty.
 */
#ifndef SIM_NUMBERS_H
#define SIM_NUMBERS_H

#include "providers/soft/shm/segment.h"
#include "fabric.h"

#define SIM_QPN_BITS 24u
#define SIM_QPN_BLOCK 256u
#define SIM_QPN_BLOCKS ((1u << SIM_QPN_BITS) / SIM_QPN_BLOCK)

struct sim_qpn_area {
	uint32_t last;			/* the block that was given out last */
	uint16_t num[SIM_MAX_SLOTS];	/* blocks of a slot, or more */
	uint16_t owner[SIM_QPN_BLOCKS];	/* slot + 1; 0: nobody.  Read without a lock. */
};

/* Use the shared segment's table if we are on a shared fabric, else one of our own. */
int sim_numbers_open(void);
void sim_numbers_close(void);
/*
 * Where nobody has had a number yet, begin at any: other machines may still know those that were
 * given out here before, when the last process had ended.
 */
void sim_numbers_scatter(void);

void sim_qpn_drop_slot(void *table, unsigned int slot);

#endif
