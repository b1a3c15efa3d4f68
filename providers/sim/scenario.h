/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * scenario.h - scenario files (polycm-scenario(5)): a fabric, its links and
 * what goes wrong on it, in libconfig's syntax.
 *
 * Errors of a file are one line at error level, with the file's name, the line
 * and what was expected there.
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

/* No lock.  -EINVAL: the file is wrong as a whole or in these; -ENOENT and the like; -ENOMEM. */
int sim_scenario_peek(const char *path, struct sim_scenario_head *ret_head);

/*
 * Engine lock held.  Makes the file's nodes on an empty fabric; one without
 * nodes is for the fabric that is there.  Then its links and faults.  After an
 * error the fabric is to be closed.
 */
int sim_scenario_build(const char *path);

/* The same for text in memory that is not trusted; name stands for the path in errors. */
int sim_scenario_build_text(const char *name, const char *text, size_t len);

#endif
