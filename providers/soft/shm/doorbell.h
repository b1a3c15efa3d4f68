/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * shm/doorbell.h - how a process learns that another one sent something.  No lock is needed
 * unless a comment says so.  The calls are harmless on a private fabric, and while another
 * thread leaves a shared one.
 *
 * A program that polls its CQs fetches incoming packets, and its NIC thread relies on that
 * (SIM_RELIES) and need not be woken.  But the program may stop at any time, or poll its
 * memory, which nobody sees.  So the poller writes the time of its last poll into its slot,
 * and senders ring if that is long ago.  For mail that came just before the program stopped,
 * the sender rings later if it polls (sim_shm_remind()), and the NIC thread checks at
 * intervals (trust.h).
 *
 * A program that polls and gets everything from one process looks at that one's ring itself,
 * so that a packet costs the two only the cache lines that it is in.  For records that process
 * leaves no mail in the slot (`watches') as long as the program polls.
 */
#ifndef SIM_DOORBELL_H
#define SIM_DOORBELL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "segment.h"

bool sim_shm_pending(void);	/* has anything come in? */
/*
 * Engine lock held.  Look at the ring of the process in a slot, where the next record's length
 * will be; the memory stays readable for ever.  Then at no ring.
 */
void sim_doorbell_watch(unsigned int slot, const uint32_t *length);
void sim_doorbell_unwatch(void);
void sim_doorbell_forget(void);		/* the slot is left as it is: it is the parent's */
unsigned int sim_doorbell_watched(void);	/* its slot, or SIM_NOBODY */
/* Is there something from that process, in the slot or in a ring that is looked at? */
bool sim_doorbell_has_mail(unsigned int from);
/*
 * Engine lock held.  Does the process in the slot `to' look at our ring?  Then a record in it
 * needs no mail.
 */
bool sim_doorbell_is_watched(const struct sim_slot *slot, unsigned int to);
/* Wait until something has come in, or until then (CLOCK_MONOTONIC).  Senders need not ring. */
bool sim_shm_watch(uint64_t until);
/* A thread of the program polls: senders need not ring, if the NIC thread is quiet (below). */
void sim_shm_polled(uint64_t now);
/*
 * Ring for mail that we sent without a ring, because the receiver polled, and that is not read
 * although it no longer polls.
 */
void sim_shm_remind(uint64_t now);
/* Engine lock held.  The same for all that unread() says is not read, since we go to sleep. */
void sim_shm_remind_now(bool (*unread)(unsigned int slot));
uint64_t sim_shm_polled_at(void);
/* Something came in, and a thread that polls fetched it or not.  Sets how long senders wait. */
void sim_shm_learn(bool fetched);
/*
 * The NIC thread sleeps: prepare with the engine lock held, wait without it, awake with it.
 * The wait ends at the deadline, with a ring of our own after the preparation, or when a
 * packet comes in; quiet: only if no thread of the program polls then.
 */
uint32_t sim_shm_prepare_wait(bool quiet);
void sim_shm_wait(uint32_t ticket, uint64_t deadline);
bool sim_shm_awake(void);	/* a sender rang */

/* When the engine last read the clock, which it does for the timer of most packets. */
extern _Atomic uint64_t sim_doorbell_time;

static inline uint64_t sim_doorbell_lately(void)
{
	return atomic_load_explicit(&sim_doorbell_time, memory_order_relaxed);
}

/*
 * Did the program poll lately?  Times are of CLOCK_MONOTONIC.  A time in the future counts as
 * lately: `now' may be old, and a broken peer harms only its own mail.
 */
static inline bool sim_doorbell_polled(const struct sim_slot *slot, uint64_t now)
{
	uint64_t polled_at = atomic_load_explicit(&slot->polled_at, memory_order_relaxed);

	return (int64_t)(now - polled_at) <
	       (int64_t)atomic_load_explicit(&slot->patience, memory_order_relaxed);
}

/*
 * Engine lock held; the mail is in the slot `to', whose NIC thread relies on polls.  True:
 * its program polled lately, so we ring only later, if need be (sim_shm_remind()).
 */
bool sim_doorbell_can_wait(const struct sim_slot *slot, unsigned int to);

#endif
