/* SPDX-License-Identifier: BSD-2-Clause */
/* scenario_internal.h - between scenario.c and the reader of its faults.  Engine lock held. */
#ifndef SIM_SCENARIO_INTERNAL_H
#define SIM_SCENARIO_INTERNAL_H

#include "providers/common/scenario_read.h"
#include "providers/soft/fabric/fabric.h"

/* The node that a setting names; at says where, as in "from = \"a\"". */
int scenario_node(const struct scenario *scenario, const config_setting_t *at, const char *name,
		  struct sim_node **ret_node);
/*
 * A node's `interfaces' without devices, and its `routes'; either may be NULL.
 * A node with routes, though it be an empty list, has no other ones but to the
 * networks of its addresses.
 */
int scenario_build_interfaces(const struct scenario *scenario, struct sim_node *node,
			      const config_setting_t *interfaces);
int scenario_build_routes(const struct scenario *scenario, struct sim_node *node,
			  const config_setting_t *routes);
/* One group of `faults'. */
int scenario_add_fault(const struct scenario *scenario, const config_setting_t *group);

#endif
