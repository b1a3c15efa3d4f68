/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * provider.h - the simulator as a whole goes up and down: between provider.c
 * and control.c.  `setup' ranks above the engine's lock; nothing here is
 * called with either held, unless said otherwise.
 */
#ifndef SIM_PROVIDER_H
#define SIM_PROVIDER_H

#include <pthread.h>

#include "polycm/provider.h"

/* Guards whether and how the simulator is up, and the list of devices. */
extern pthread_mutex_t sim_setup_lock;

/* Setup lock held: engine, fabric, NIC and CM, with the fabric of the settings or an empty one. */
int sim_up_default(void);
int sim_up_private(uint64_t seed);
void sim_down(void);
bool sim_is_up(void);

/* Setup lock held: take back all devices, which closes what the core has open on them. */
void sim_remove_devices(void);

/* extension("sim", 1) (control.c) */
extern const struct polycm_sim_ops sim_control_ops;

#endif
