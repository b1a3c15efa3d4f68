/* SPDX-License-Identifier: BSD-2-Clause */
/* link/pace.c - see pace.h. */
#include "config.h"

#include <stddef.h>

#include "pace.h"

_Atomic uint64_t *sim_pace_find(struct sim_pace_area *area, uint32_t from, uint32_t to)
{
	uint64_t nodes = ((uint64_t)from + 1) << 32 | ((uint64_t)to + 1), found;
	uint32_t first = (uint32_t)((nodes ^ nodes >> 29) % SIM_PACES);

	for (uint32_t i = 0; i < SIM_PACES; i++) {
		uint32_t place = (first + i) % SIM_PACES;

		found = 0;
		if (atomic_load(&area->of[place].nodes) == nodes ||
		    atomic_compare_exchange_strong(&area->of[place].nodes, &found, nodes) ||
		    found == nodes)
			return &area->of[place].free_at;
	}
	return NULL;
}
