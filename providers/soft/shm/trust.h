/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * shm/trust.h - how far the NIC thread relies on a program that polls: from when on,
 * and how long it sleeps before it looks for itself.  Arithmetic; times are ns of
 * CLOCK_MONOTONIC.
 */
#ifndef SIM_TRUST_H
#define SIM_TRUST_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define SIM_TRUST_POLLS	 64u	/* polls in a row after which we rely on the poller */
#define SIM_TRUST_GAP	 5000u	/* ns from poll to poll, on average, that breaks a row */
#define SIM_TRUST_MIN	 50000u /* ns between two looks of the NIC thread */
#define SIM_TRUST_MAX	 1000000u
#define SIM_TRUST_END	 10000000u /* ns without a poll that end it: longer than most are preempted */
#define SIM_PATIENCE_MIN 5000u /* ns since the last poll after which a sender rings */
#define SIM_PATIENCE_MAX 1000000u

/* The polls of a program, by any of its threads: what two of them do at once may be forgotten. */
struct sim_poll_row {
	atomic_uint length;	 /* polls that came without a gap */
	atomic_uint_fast64_t at; /* the newest */
};

/* Another `polls' until now.  True: one can rely on them. */
bool sim_poll_row_add(struct sim_poll_row *row, unsigned int polls, uint64_t now);
static inline void sim_poll_row_end(struct sim_poll_row *row)
{
	atomic_store_explicit(&row->length, 0, memory_order_relaxed);
}

/*
 * How long senders should wait for the program before they ring, after something
 * was fetched by it, or was not and the NIC thread had to.  A program that polls
 * and is preempted for once is worth waiting for: that costs less than to wake
 * two threads.  One that polls its memory half of the time is not.
 */
uint32_t sim_patience_learn(uint32_t patience, bool fetched);

struct sim_trust {
	uint64_t length; /* 0: none */
	uint64_t look_at;
};

/*
 * The NIC thread is awake, the program polled last at polled_at and `missed' says
 * that something came in which it did not fetch.  May it rely on the program
 * until trust->look_at?  False: it has stopped.
 */
bool sim_trust_go_on(struct sim_trust *trust, uint64_t now, uint64_t polled_at, bool missed);

#endif
