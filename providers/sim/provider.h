/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * provider.h - starting and stopping the simulator (up.c), for provider.c and
 * control.c.  The setup lock is taken before the engine's.  Callers hold
 * neither, unless a comment says otherwise.
 */
#ifndef SIM_PROVIDER_H
#define SIM_PROVIDER_H

#include <pthread.h>

#include "polycm/provider.h"
#include "polycm/sim.h"
#include "scenario.h"

/* Protects the state of the simulator (running or not, with which fabric) and the device list. */
extern pthread_mutex_t sim_setup_lock;

/* Setup lock held for all.  Start with the fabric of the settings, or with an empty one. */
int sim_up_default(void);
int sim_up_private(uint64_t seed);
/* Start with a test's fabric, as a scenario file with this head describes it. */
int sim_up_scenario(const char *path, const struct sim_scenario_head *of);
/* Stop.  -EBUSY: the program has objects left on the fabric, which *ret_why lists. */
int sim_down(char *ret_why, size_t why_size);
/* Stop, whatever is left; the core has destroyed all ids. */
void sim_down_forced(void);
bool sim_is_up(void);
/*
 * A program that only reads sysfs keeps real time, and truncates no trace or capture.  When it
 * uses the simulator: sim_up_use(), which does nothing unless this begins.
 */
int sim_up_use(void);
bool sim_only_looked_at(void);	/* no lock needed */
/* Stop, whatever is left, also after a start that failed; devices are not taken back. */
void sim_take_down(void);

void sim_count_live(struct polycm_sim_counts *ret_counts);

/* extension("sim", 1) (control.c) */
extern const struct polycm_sim_ops sim_control_ops;

#endif
