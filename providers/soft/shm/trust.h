/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * shm/trust.h - how far the NIC thread relies on a program that polls: from when on, and how
 * long it sleeps before it checks.  Pure; times are ns of CLOCK_MONOTONIC.
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

/* The polls of a program, by any of its threads; of two at once, one may not be counted. */
struct sim_poll_row {
	atomic_uint length;	 /* polls that came without a gap */
	atomic_uint_fast64_t at; /* the newest */
};

/* Add so many polls until now.  True: they are steady enough to rely on. */
bool sim_poll_row_add(struct sim_poll_row *row, unsigned int polls, uint64_t now);
static inline void sim_poll_row_end(struct sim_poll_row *row)
{
	atomic_store_explicit(&row->length, 0, memory_order_relaxed);
}

/*
 * How long should senders wait for the program before they ring, now that it fetched
 * something, or did not and the NIC thread had to?  It is cheaper to wait for a program that
 * was preempted once than to wake two threads; not for one that also polls its memory.
 */
uint32_t sim_patience_learn(uint32_t patience, bool fetched);

struct sim_trust {
	uint64_t length; /* 0: none */
	uint64_t look_at;
};

/*
 * The NIC thread is awake, and the program last polled at polled_at; `missed': it did not fetch
 * something.  May the thread rely on it until trust->look_at?  False: it has stopped.
 */
bool sim_trust_go_on(struct sim_trust *trust, uint64_t now, uint64_t polled_at, bool missed);

#endif
