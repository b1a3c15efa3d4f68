/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * link/block.h - memory for packets that wait, with a reserve for when the system has none:
 * nothing repeats a segment of a stream, and a lost message costs a time-out.  Engine lock
 * held.
 */
#ifndef SIM_BLOCK_H
#define SIM_BLOCK_H

#include "link.h"

#define SIM_BLOCK_SIZE 1024u		/* of a reserved one: a message of the CM and its record */
#define SIM_BLOCKS 64u

/* For a packet of that type; NULL: no memory.  The data path, which repeats, has half the reserve. */
void *sim_block_get(size_t size, enum sim_packet_type type);
void sim_block_put(void *block);

#endif
