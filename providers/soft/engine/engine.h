/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * engine/engine.h - the simulator's clock, event queue and randomness.
 *
 * Everything that happens is a timer that fires: one queue ordered by (time,
 * sequence number).  Virtual clock: time stands still until somebody waits,
 * then jumps to the next timer.  Real clock: CLOCK_MONOTONIC, a thread of
 * ours (the "NIC thread") fires what is due and receives from other processes.
 *
 * One engine per process.  Its lock protects everything in the simulator
 * except the consumer side of completion queues.  Timer functions, packet
 * handlers and CM code run with it held; it ranks below the core's id lock
 * and above the core's channel lock, so post_event() may be called under it.
 */
#ifndef SIM_ENGINE_H
#define SIM_ENGINE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "polycm/provider.h"
#include "providers/common/random.h"
#include "providers/soft/base/base.h"

struct sim_timer {
	uint64_t deadline;		/* ns of the engine's clock */
	uint64_t seq;			/* breaks ties: first armed, first fired */
	uint32_t slot;			/* place in the heap + 1; 0: not armed */
	void (*fn)(struct sim_timer *timer);
	struct sim_timer *next;		/* of those that the heap has no memory for (heap.c) */
};

enum sim_clock { SIM_CLOCK_REAL, SIM_CLOCK_VIRTUAL };

/* Start and stop the engine (the NIC thread with it, real clock only). */
int sim_engine_start(enum sim_clock clock, uint64_t seed);
void sim_engine_stop(void);
bool sim_is_virtual(void);
/*
 * Lock held: from now on packets may come in unasked, so the NIC thread must
 * run.  0, or a negative errno with words if it cannot be started: the call
 * that needs it fails, since its events would never come.
 */
int sim_engine_need_thread(void);

void sim_lock(void);
void sim_unlock(void);
/* This thread holds the lock (a signal handler: or was just taking or releasing it). */
bool sim_has_lock(void);
/* For exit handlers, which may run inside a call that holds the lock: false after so much real time. */
bool sim_lock_within(uint64_t ns);
/* A child of fork() that has not taken the lock yet: all there is is its parent's.  No lock needed. */
bool sim_is_inherited(void);

/* With the lock held, unless said otherwise. */
uint64_t sim_now(void);			/* any thread, no lock needed */

void sim_timer_init(struct sim_timer *timer, void (*fn)(struct sim_timer *timer));
/* (Re)arm.  Deadlines in the past fire as soon as possible, in order of arming. */
void sim_timer_arm(struct sim_timer *timer, uint64_t deadline);
void sim_timer_disarm(struct sim_timer *timer);
/*
 * Give the armed timers other deadlines, none of them earlier; SIM_NEVER
 * disarms.  Timers of the same deadline keep their order.
 */
void sim_timers_move(uint64_t (*deadline_of)(const struct sim_timer *timer, void *arg), void *arg);
static inline bool sim_timer_armed(const struct sim_timer *timer) { return timer->slot != 0; }

/*
 * Wait, inside an operation, until done(arg) or the deadline (SIM_NEVER:
 * none).  Virtual: moves time.  Real: releases the lock meanwhile; whoever
 * changes what done() reads calls sim_wake().  0, -ETIMEDOUT, -EDEADLK
 * (virtual: nothing is left that could happen), or why there is no NIC thread.
 */
int sim_wait(bool (*done)(void *arg), void *arg, uint64_t deadline);
void sim_wake(void);

/*
 * What the engine asks of those that stand on it; NULL: nothing.  Set with the
 * lock held, or before the engine starts.
 */
struct sim_engine_hooks {
	/* Deliver what came in from other processes (link/shm/shm.c).  Lock held. */
	void (*receive)(void);
	/* Around fork(): before it with the lock held; in the child at once, and at its first lock. */
	void (*before_fork)(void), (*forked)(void), (*after_fork)(void);
	/* A timer is "armed", "fired" or "ended", while somebody looks (trace.c).  Lock held. */
	void (*timer)(const struct sim_timer *timer, const char *action);
	/*
	 * While some timers stand still (world.c): when this one fires, whose deadline is
	 * that; SIM_NEVER: it does not.  Lock held.
	 */
	uint64_t (*postpone)(const struct sim_timer *timer, uint64_t deadline);
};
extern struct sim_engine_hooks sim_engine_hooks;

/*
 * Without the lock.  sim_progress(): real clock, fire what is due and receive
 * what came in, unless another thread is at it, which gets the processor then; cheap
 * when there is nothing.
 * sim_advance(): virtual clock, move time by so much, firing all in between.
 * sim_idle(): polycm_clock.idle.
 */
void sim_progress(void);
/* Real clock: a poll found so many things that were there already. */
void sim_polled(unsigned int found);
int sim_advance(uint64_t ns);
/*
 * Virtual clock: until done(arg), which is asked with the lock held, or with
 * NULL until nothing is left that could happen: 0.  -ETIMEDOUT: not so soon;
 * -EDEADLK: nothing is left, and not done.
 */
int sim_run(uint64_t limit, bool (*done)(void *arg), void *arg);
int sim_idle(void *ctx);
/* polycm_clock's: waits of the program's that are none of our calls. */
bool sim_clock_virtual(void *ctx);
int sim_clock_wait(void *ctx, const struct polycm_clock_wait *wait);
void sim_clock_spin(void *ctx);
uint64_t sim_clock_read(void *ctx, const void *frame);
/*
 * A program polls in vain.  Virtual: after enough polls in a row this counts as
 * waiting; if it also reads clocks it may wait for a time, so a short wait.
 */
void sim_spin(void);

#endif
