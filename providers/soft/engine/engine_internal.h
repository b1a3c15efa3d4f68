/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * engine/engine_internal.h - the engine's state, for engine.c (lock, timers, start and
 * stop), engine_virtual.c and engine_real.c (the two clocks) alone.  Its lock
 * is held unless said otherwise.
 */
#ifndef SIM_ENGINE_INTERNAL_H
#define SIM_ENGINE_INTERNAL_H

#include <stdatomic.h>
#include <time.h>

#include "providers/soft/shm/trust.h"
#include "engine.h"

#define relaxed_load(object) atomic_load_explicit(object, memory_order_relaxed)
#define relaxed_store(object, value) \
	atomic_store_explicit(object, value, memory_order_relaxed)

struct sim_engine {
	pthread_mutex_t lock;
	pthread_cond_t changed;		/* CLOCK_MONOTONIC; sim_wait(), virtual sim_idle() */
	unsigned int waiters;		/* on changed */
	unsigned int woken;		/* of them, told to look but not yet on their way */
	unsigned int passers;		/* let time pass (virtual) by calls that end by themselves */
	unsigned int tellings;
	uint64_t changes, told;		/* counts what a thread that waits should look at */
	uint64_t busy_changes, busy_since;	/* others compute, without calls; 0: no */
	uint64_t busy_period, looking;		/* a number for that; processor time of who waits */
	bool running;
	bool alone;			/* held by the only thread, without the mutex */
	bool due;			/* a timer was armed for now (real) */
	bool thread_runs, stop;
	bool no_thread_told;		/* since one was last started */
	bool asleep;			/* the NIC thread, until sleep_until */
	bool stuck_told;
	bool blind_told;		/* that nobody can see what other threads do */
	int cancel_state;		/* of the thread that holds the lock */
	uint64_t sleep_until;
	uint64_t seq;
	pthread_t thread;
	/* Read without the lock. */
	atomic_bool is_virtual, is_real;	/* both false: not running */
	atomic_bool forked;
	atomic_bool hot;		/* the NIC thread relies on the program, which polls */
	atomic_uint_fast64_t now;	/* virtual */
	atomic_uint_fast64_t next;	/* earliest deadline */
	atomic_uint_fast64_t patience;
	atomic_uint spins;		/* vain polls in a row, and this: */
#define ENGINE_READING 0x80000000u	/* the program has read a clock of its own */
	atomic_uint polls;		/* in vain, since the last look at the clock */
	struct sim_poll_row row;
	atomic_uint contenders;		/* threads that wait for the lock */
	atomic_uint lookers;		/* that look for what they wait for (virtual) */
};

extern struct sim_engine sim_engine;

/*
 * This thread has the lock, or is about to take it, or has just released it: a
 * signal handler that interrupted it must not wait for the lock.
 */
extern __thread __attribute__((tls_model("initial-exec"))) volatile bool engine_inside;

/* This thread is one of the lookers; a signal handler may have interrupted it. */
extern __thread __attribute__((tls_model("initial-exec"))) bool engine_looks;

static inline void engine_enter(void)
{
	engine_inside = true;
	atomic_signal_fence(memory_order_seq_cst);
}

static inline void engine_left(void)
{
	atomic_signal_fence(memory_order_seq_cst);
	engine_inside = false;
}

/* The program's clocks may be ours. */
static inline uint64_t engine_monotonic(void)
{
	return sim_time->real_ns(CLOCK_MONOTONIC);
}

/* --- engine.c --- */

void engine_fire(struct sim_timer *timer);
/* Fire what is due now, at most so many, but not what that brings about. */
unsigned int engine_fire_due(unsigned int limit);
#define ENGINE_FIRE_MAX 256u	/* at a time, real clock */

/* Wait on `changed' until a time of CLOCK_MONOTONIC. */
void engine_wait_changed(uint64_t until);
void engine_wake_waiters(void);
/* No lock: a thread of the program that is cancelled must not take the lock with it. */
int engine_forbid_cancel(void);
void engine_allow_cancel(int state);	/* as it was before that */

/* --- engine_virtual.c --- */

int engine_virtual_wait(bool (*done)(void *arg), void *arg, uint64_t deadline);
int engine_virtual_idle(void);		/* no lock */
/*
 * Before time moves: let threads that compute go on until they wait too.  1:
 * they have had some time, and may have changed anything.  -ENOTSUP: nobody
 * knows whether they compute.
 */
int engine_yield(void);
/* To the next timer, if it is not later than the limit. */
bool engine_step(uint64_t limit);
/* So many ns on, firing all in between; an error is engine_yield()'s. */
int engine_advance(uint64_t ns);
/* No lock, after time may have moved.  true: a signal interrupts the program's call. */
bool engine_let_signals_come(void);
/* Whoever waits shall look at what has changed. */
static inline void engine_virtual_tell(void)
{
	if (sim_engine.told != sim_engine.changes)
		engine_wake_waiters();
}

/* --- engine_real.c --- */

int engine_real_wait(bool (*done)(void *arg), void *arg, uint64_t deadline);
int engine_real_idle(void);		/* no lock */
/* Before the lock is released: what is due now, and an earlier time to wake for. */
void engine_real_settle(void);
void engine_real_start(void);

#endif
