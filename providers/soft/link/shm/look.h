/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * link/shm/look.h - at whose ring a program that polls looks itself (shm/doorbell.h): that of
 * the process from which all came lately.  Engine lock held.
 */
#ifndef SIM_LOOK_H
#define SIM_LOOK_H

#include "peer.h"

/* So many records of that process were read, up to where the next one will be. */
void sim_look_has_read(const struct sim_peer *peer, unsigned int slot, unsigned int records);
/* A thread of the program polls, and will again soon. */
void sim_look_polled(void);
/* Has that process not read all that we sent? */
bool sim_look_is_unread(unsigned int slot);

#endif
