/* SPDX-License-Identifier: BSD-2-Clause */
/* effects/effects_internal.h - between the files of effects/.  Engine lock held. */
#ifndef SIM_EFFECTS_INTERNAL_H
#define SIM_EFFECTS_INTERNAL_H

#include "effects.h"
#include "providers/soft/fabric/fabric.h"

/* Find the node of that name.  An error names the setting `at'. */
int effects_node(const struct scenario *scenario, const config_setting_t *at, const char *name,
		 struct sim_node **ret_node);

#endif
