/* SPDX-License-Identifier: BSD-2-Clause */
/* fabric/counters.c - see counters.h. */
#include "config.h"

#include "counters.h"

/* NULL: the process counts alone. */
static struct sim_counters_area *area_of(const struct sim_port *port)
{
	if (!sim_segment_joined() || port->fabric_index >= SIM_COUNTED_PORTS)
		return NULL;
	return sim_segment_area(SIM_AREA_COUNTERS);
}

/* Has the process ended that took a row?  Then it writes no more.  Anything may stand there. */
static bool is_over(uint64_t owner)
{
	unsigned int number = (unsigned int)(owner & UINT32_MAX) - 1;
	const struct sim_slot *slot;

	if (number >= SIM_MAX_SLOTS)
		return true;
	slot = sim_segment_peer(number);
	return atomic_load(&slot->state) != SIM_SLOT_LIVE ||
	       atomic_load(&slot->generation) != owner >> 32;
}

/* A row of ours, or the last one, which is for all. */
static unsigned int take_row(struct sim_counters_area *area)
{
	uint64_t self = (uint64_t)atomic_load(&sim_segment_self()->generation) << 32 |
			(sim_segment_slot() + 1);

	for (unsigned int i = 0; i < SIM_COUNTER_ROWS; i++) {
		uint64_t owner = atomic_load(&area->owner[i]);

		if (owner == self)
			return i;
		if ((!owner || is_over(owner)) &&
		    atomic_compare_exchange_strong(&area->owner[i], &owner, self))
			return i;
	}
	return SIM_COUNTER_ROWS;
}

void sim_counters_init(struct sim_port *port)
{
	struct sim_counters_area *area = area_of(port);
	unsigned int row = area ? take_row(area) : 0;

	port->counters = area ? &area->of[row][port->fabric_index].counters : &port->own_counters;
	port->counters_shared = row == SIM_COUNTER_ROWS;
}

void sim_counters_renew(void)
{
	struct sim_port *port;

	for (uint32_t i = 0; (port = sim_port_by_index(i)); i++)
		sim_counters_init(port);
}

uint64_t sim_counter(const struct sim_port *port, enum sim_counter what)
{
	const struct sim_counters_area *area = area_of(port);
	uint64_t sum = 0;

	if (!area || what == SIM_LINK_DOWNED)
		return atomic_load_explicit(&port->own_counters.values[what], memory_order_relaxed);
	for (unsigned int i = 0; i <= SIM_COUNTER_ROWS; i++)
		sum += atomic_load_explicit(&area->of[i][port->fabric_index].counters.values[what],
					    memory_order_relaxed);
	return sum;
}
