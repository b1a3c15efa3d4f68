/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * link/doorbell.h - how a process learns that another one has something for it.
 * No lock, unless said otherwise; harmless on a private fabric, also while
 * another thread leaves a shared one.
 */
#ifndef SIM_DOORBELL_H
#define SIM_DOORBELL_H

#include <stdbool.h>
#include <stdint.h>

bool sim_shm_pending(void);	/* has anything come in? */
bool sim_shm_has_mail(unsigned int slot);	/* ... from that process? */
/* ... or will it, until then (CLOCK_MONOTONIC)?  Meanwhile nobody need ring. */
bool sim_shm_watch(uint64_t until);
void sim_shm_ring_self(void);	/* wake our own NIC thread */
/*
 * The NIC thread sleeps: prepare with the lock held, wait without it, awake
 * with it again.  The wait ends with the deadline, a ring of our own since the
 * preparation and, unless quiet, when a packet comes in.
 */
uint32_t sim_shm_prepare_wait(bool quiet);
void sim_shm_wait(uint32_t ticket, uint64_t deadline);
void sim_shm_awake(void);

#endif
