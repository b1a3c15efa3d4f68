/* SPDX-License-Identifier: BSD-2-Clause */
/* shm/ring_name.h - the names of the files of rings: from whom to whom. */
#ifndef SIM_RING_NAME_H
#define SIM_RING_NAME_H

#include <stdbool.h>
#include <stdint.h>

#define SIM_RING_NAME_MAX 64u

struct sim_ring_name {
	unsigned int from, to;
	uint32_t from_generation, to_generation;
	bool unfinished;		/* not yet for its reader to see */
};

void sim_ring_name_format(const struct sim_ring_name *name, char text[SIM_RING_NAME_MAX]);

/* For sim_folder_clean(): is it a ring's name at all? */
bool sim_is_ring_name(const char *file, void *unused);
/*
 * Is it one that nobody but the process of this slot (an unsigned int) would
 * use?  Its rings to others stay for their readers, who delete them.
 */
bool sim_is_ring_of(const char *file, void *slot);

#endif
