/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * shm/doorbell.h - how a process learns that another one has something for it.
 * No lock, unless said otherwise; harmless on a private fabric, also while
 * another thread leaves a shared one.
 *
 * While a program polls its CQs it fetches what comes in, and its NIC thread
 * relies on that (SIM_RELIES): it need not be woken.  The program may go over
 * to something else at any time, though, or poll its memory, which nobody sees.
 * So the poller writes into its slot when it polled last, and senders ring
 * where that was long ago.  Mail that came just before it stopped is looked
 * after by the sender, if that polls (sim_shm_remind()), and by the NIC
 * thread, which looks now and again (trust.h).
 */
#ifndef SIM_DOORBELL_H
#define SIM_DOORBELL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "segment.h"

bool sim_shm_pending(void);	/* has anything come in? */
bool sim_shm_has_mail(unsigned int slot);	/* ... from that process? */
/* ... or will it, until then (CLOCK_MONOTONIC)?  Meanwhile nobody need ring. */
bool sim_shm_watch(uint64_t until);
/*
 * A thread of the program polls: senders need not ring, if the NIC thread is
 * quiet (below).  It also looks after mail that we sent to a process whose
 * program polled, too: where that has stopped and the mail is not read, it rings.
 * SIM_NEVER: wherever it is not read, since we go to sleep.
 */
void sim_shm_polled(uint64_t now);
void sim_shm_remind(uint64_t now);
uint64_t sim_shm_polled_at(void);
/* Something came in, fetched by a thread that polls or not.  Sets how long senders wait. */
void sim_shm_learn(bool fetched);
void sim_shm_ring_self(void);	/* wake our own NIC thread */
/*
 * The NIC thread sleeps: prepare with the lock held, wait without it, awake
 * with it again.  The wait ends with the deadline, a ring of our own since the
 * preparation and when a packet comes in; quiet: only if it comes while no thread
 * of the program polls.  One from just before it stopped is not noticed then.
 */
uint32_t sim_shm_prepare_wait(bool quiet);
void sim_shm_wait(uint32_t ticket, uint64_t deadline);
bool sim_shm_awake(void);	/* a sender rang */

/* When the engine last asked for the time: it does for the timer of most packets. */
extern _Atomic uint64_t sim_doorbell_time;

static inline uint64_t sim_doorbell_lately(void)
{
	return atomic_load_explicit(&sim_doorbell_time, memory_order_relaxed);
}

/*
 * Did the program poll lately?  Times are of CLOCK_MONOTONIC.  One to come, which
 * a `now' of some time ago makes of it, or a peer that spoils its own mail, is lately.
 */
static inline bool sim_doorbell_polled(const struct sim_slot *slot, uint64_t now)
{
	uint64_t polled_at = atomic_load_explicit(&slot->polled_at, memory_order_relaxed);

	return (int64_t)(now - polled_at) <
	       (int64_t)atomic_load_explicit(&slot->patience, memory_order_relaxed);
}

/*
 * Engine lock held, the mail is in the slot `to', whose NIC thread relies on
 * polls.  True: its program polled lately, so ringing can wait until we remind it.
 */
bool sim_doorbell_can_wait(const struct sim_slot *slot, unsigned int to);

#endif
