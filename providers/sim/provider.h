/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * provider.h - starting the simulator (up.c), for provider.c and control.c.  host/start.h stops it.
 */
#ifndef SIM_PROVIDER_H
#define SIM_PROVIDER_H

#include "include/tcp_ops.h"
#include "providers/soft/host/start.h"
#include "scenario.h"

/* Setup lock held for all.  Start with the fabric of the settings, or with an empty one. */
int sim_up_default(void);
int sim_up_private(uint64_t seed);
/* Start with a test's fabric, as a scenario file with this head describes it. */
int sim_up_scenario(const char *path, const struct sim_scenario_head *of);

/* extension("sim", 1) (control.c) */
extern const struct polycm_sim_ops sim_control_ops;
/* POLYCM_TCP_EXTENSION (tcp.c) */
extern const struct polycm_tcp_ops sim_tcp_ops;

#endif
