/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * host/plugin.h - the operations of a provider that is a software host: what the core asks of it,
 * and the clock that it gives to the core.
 */
#ifndef SIM_PLUGIN_H
#define SIM_PLUGIN_H

#include "polycm/provider.h"

/*
 * For the plugin's query function: keep the core, and fill in the operations.
 * start_by_settings(): sim_start_by_settings() as the plugin's settings say, with the setup lock
 * held.  -EOPNOTSUPP, logged: the core is of another kind.
 */
int sim_plugin_query(const struct polycm_core *core, int (*start_by_settings)(void),
		     struct polycm_ops *ret_ops);

/* Set at start-up or NULL: the process ends; send what waits.  Engine lock held. */
extern void (*sim_plugin_flush)(void);

#endif
