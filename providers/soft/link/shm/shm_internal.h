/* SPDX-License-Identifier: BSD-2-Clause */
/* link/shm/shm_internal.h - between shm.c, join.c and death.c.  Engine lock held. */
#ifndef SIM_SHM_INTERNAL_H
#define SIM_SHM_INTERNAL_H

#include "providers/soft/link/link_internal.h"
#include "peer.h"
#include "shm.h"

/* --- shm.c --- */

int sim_shm_send(const struct sim_frame *frame, unsigned int slot);
/* To make rings for which memory or descriptors were short. */
void sim_shm_stop_trying(void);

/* --- death.c --- */

/* There is another process to watch. */
void sim_death_watch(void);
void sim_death_watch_ends(void);

#endif
