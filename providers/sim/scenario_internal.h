/* SPDX-License-Identifier: BSD-2-Clause */
/* scenario_internal.h - shared by the scenario*.c files.  Engine lock held. */
#ifndef SIM_SCENARIO_INTERNAL_H
#define SIM_SCENARIO_INTERNAL_H

#include "providers/common/scenario_read.h"
#include "providers/soft/fabric/fabric.h"

/*
 * A node's `interfaces' without devices, and its `routes'; either may be NULL.
 * A node with a list of routes, even an empty one, has only those and the routes
 * to the networks of its addresses.
 */
int scenario_build_host(const struct scenario *scenario, struct sim_node *node,
			const config_setting_t *interfaces, const config_setting_t *routes);

/* The list `programs': everything in it, with the limits of `explore', which are read before. */
int scenario_check_programs(const struct scenario *scenario, const config_setting_t *list);

#endif
