/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * scenario.h - scenario files (polycm-scenario(5)): a fabric, its links and its
 * faults, in libconfig's syntax.
 *
 * An error in a file is one log line at level error, with the file's name, the
 * line and what was expected there.
 */
#ifndef SIM_SCENARIO_H
#define SIM_SCENARIO_H

#include "providers/soft/engine/engine.h"

/* What must be known before the engine starts. */
struct sim_scenario_head {
	bool has_seed, has_clock, has_nodes;
	uint64_t seed;
	enum sim_clock clock;
};

/* No lock.  -EINVAL: a syntax error, or one in these members; errors of open(2); -ENOMEM. */
int sim_scenario_peek(const char *path, struct sim_scenario_head *ret_head);

/*
 * Engine lock held.  Add the nodes, links and faults of the text, or without one of the file
 * of that name, to the fabric.  After an error the caller closes the fabric.
 */
int sim_scenario_build(const char *name, const char *text, size_t len);

#endif
