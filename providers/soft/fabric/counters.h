/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fabric/counters.h - what ports count, for sysfs.  All processes of a shared fabric count
 * together, in the segment and without its lock.  Engine lock held.
 */
#ifndef SIM_COUNTERS_H
#define SIM_COUNTERS_H

#include "fabric.h"

/* For a port that was just added; for all, after fork() when the fabric was joined again. */
void sim_counters_init(struct sim_port *port);
void sim_counters_renew(void);
uint64_t sim_counter(const struct sim_port *port, enum sim_counter what);

/* Most processes write where no other does, and need no atomic addition, which takes longer. */
static inline void sim_count(const struct sim_port *port, enum sim_counter what, uint64_t by)
{
	_Atomic uint64_t *value = &port->counters->values[what];

	if (__builtin_expect(port->counters_shared, 0))
		atomic_fetch_add_explicit(value, by, memory_order_relaxed);
	else
		atomic_store_explicit(value, atomic_load_explicit(value, memory_order_relaxed) + by,
				      memory_order_relaxed);
}

/* Each process of a shared fabric applies the changes of ports. */
static inline void sim_count_link_down(struct sim_port *port)
{
	_Atomic uint64_t *value = &port->own_counters.values[SIM_LINK_DOWNED];

	atomic_store_explicit(value, atomic_load_explicit(value, memory_order_relaxed) + 1,
			      memory_order_relaxed);
}

#endif
