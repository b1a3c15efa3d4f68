/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * engine/engine_internal.h - the engine's state, for engine.c (lock, timers, start and stop),
 * engine_virtual.c, engine_spin.c and engine_real.c (the two clocks) only.  The engine's lock
 * is held unless a comment says otherwise.
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
	pthread_mutex_t engine_lock;
	pthread_cond_t changed;		/* CLOCK_MONOTONIC; sim_wait(), virtual sim_idle() */
	unsigned int waiters;		/* on changed */
	unsigned int woken;		/* of them: woken, not yet running */
	unsigned int passers;		/* threads in calls that move time and end by themselves */
	unsigned int wakings;		/* how often the waiters were woken */
	uint64_t changes;		/* counts what waiters have to check */
	uint64_t woken_at;		/* `changes' when they were last woken */
	uint64_t busy_changes, busy_since;	/* others compute, without calls; 0: no */
	uint64_t busy_period, looking;		/* a number for that; processor time of the waiters */
	bool running;
	bool alone;			/* held by the only thread, without the mutex */
	bool due;			/* a timer was armed for now (real) */
	bool thread_runs, stop;
	bool no_thread_logged;		/* logged since one was last started */
	bool asleep;			/* the NIC thread, until sleep_until */
	bool stuck_logged;
	bool blind_logged;		/* logged that the states of other threads cannot be read */
	int cancel_state;		/* of the thread that holds the lock */
	uint64_t sleep_until;
	uint64_t seq;
	pthread_t thread;
	/* Read without the lock. */
	atomic_bool is_virtual, is_real;	/* both false: not running */
	atomic_bool forked;
	atomic_bool hot;		/* the NIC thread relies on the program, which polls */
	atomic_bool owes;		/* polls call hooks.settle() */
	atomic_uint turn;		/* changes with each poll that looks for something; even */
	atomic_bool fetches;		/* polls call hooks.fetch() */
	atomic_uint_fast64_t now;	/* virtual */
	atomic_uint_fast64_t next;	/* earliest deadline */
	atomic_uint_fast64_t patience;
	atomic_uint spins;		/* unsuccessful polls in a row (virtual), and this: */
#define ENGINE_READING 0x80000000u	/* the program has read a clock */
	atomic_uint polls;		/* of the program (real); at times the clock is read, too */
	struct sim_poll_row row;
	atomic_uint contenders;		/* threads that wait for the lock */
	atomic_uint lookers;		/* threads that check what they wait for (virtual) */
};

extern struct sim_engine sim_engine;

/*
 * This thread holds the lock, is about to take it, or has just released it: a signal handler
 * must not wait for the lock then.
 */
extern __thread __attribute__((tls_model("initial-exec"))) volatile bool engine_inside;

/* This thread is one of the lookers.  A signal handler may interrupt it. */
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

/* The system's time: the program's clock_gettime() may be virtual. */
static inline uint64_t engine_monotonic(void)
{
	return sim_time->real_ns(CLOCK_MONOTONIC);
}

/* --- engine.c --- */

void engine_fire(struct sim_timer *timer);
/* Fire what is due now, up to `limit' timers; not what is armed meanwhile and due later. */
unsigned int engine_fire_due(unsigned int limit);
unsigned int engine_fire_due_at(uint64_t now, unsigned int limit);
#define ENGINE_FIRE_MAX 256u	/* at a time, real clock */

/* Wait on `changed' until a time of CLOCK_MONOTONIC. */
void engine_wait_changed(uint64_t until);
void engine_wake_waiters(void);
/* No lock: a thread that is cancelled must not keep the lock. */
int engine_forbid_cancel(void);
void engine_allow_cancel(int state);	/* what engine_forbid_cancel() returned */

/* --- engine_virtual.c --- */

int engine_virtual_wait(bool (*done)(void *arg), void *arg, uint64_t deadline);
int engine_virtual_idle(void);		/* no lock */
/*
 * Before time moves: wait for threads that compute.  1: they had some time, and may have
 * changed anything.  0: all wait.  -ENOTSUP: it is not known whether they compute.
 */
int engine_yield(void);
/* To the next timer, if it is not later than the limit. */
bool engine_step(uint64_t limit);
/* Move time by so many ns, firing all in between; an error is engine_yield()'s. */
int engine_advance(uint64_t ns);
static inline void engine_move_to(uint64_t time)
{
	if (time > relaxed_load(&sim_engine.now))
		relaxed_store(&sim_engine.now, time);
}

/* Wake the threads that wait if anything has changed. */
static inline void engine_virtual_tell(void)
{
	if (sim_engine.woken_at != sim_engine.changes)
		engine_wake_waiters();
}

/* --- engine_real.c --- */

int engine_real_wait(bool (*done)(void *arg), void *arg, uint64_t deadline);
int engine_real_idle(void);		/* no lock */
/* Before the lock is released: fire what is due, and wake the NIC thread for an earlier timer. */
void engine_real_settle(void);
void engine_real_start(void);

#endif
