/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * provider.h - the simulator as a whole goes up and down (up.c): for provider.c
 * and control.c.  `setup' ranks above the engine's lock; nothing here is
 * called with either held, unless said otherwise.
 */
#ifndef SIM_PROVIDER_H
#define SIM_PROVIDER_H

#include <pthread.h>

#include "polycm/provider.h"
#include "polycm/sim.h"

/* Guards whether and how the simulator is up, and the list of devices. */
extern pthread_mutex_t sim_setup_lock;

/* Setup lock held: engine, fabric, NIC and CM, with the fabric of the settings or an empty one. */
int sim_up_default(void);
int sim_up_private(uint64_t seed);
/* One of a test's, with all that a scenario file says. */
int sim_up_scenario(const char *path);
/* -EBUSY: the program has something left on it, what in words. */
int sim_down(char *ret_why, size_t why_size);
/* It does not ask; the core has ended all ids. */
void sim_down_forced(void);
bool sim_is_up(void);
/* Whatever is left. */
void sim_take_down(void);

void sim_count_live(struct polycm_sim_counts *ret_counts);

/* extension("sim", 1) (control.c) */
extern const struct polycm_sim_ops sim_control_ops;

#endif
