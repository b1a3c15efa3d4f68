/* SPDX-License-Identifier: BSD-2-Clause */
/* link/shm/death.h - between shm.c and death.c.  Engine lock held. */
#ifndef SIM_DEATH_H
#define SIM_DEATH_H

/* There is another process to watch. */
void sim_death_watch(void);
void sim_death_watch_ends(void);
/* The process is gone, and all that it had sent was read. */
void sim_death(unsigned int slot);

#endif
