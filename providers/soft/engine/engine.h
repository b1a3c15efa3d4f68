/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * engine/engine.h - the simulator's clock, event queue and randomness.
 *
 * Everything that happens is a timer that fires: one queue ordered by (time, sequence
 * number).  Virtual clock: time stands still until a thread waits, then jumps to the next
 * timer.  Real clock: CLOCK_MONOTONIC; a thread of ours, the NIC thread, fires what is due
 * and receives from other processes.
 *
 * One engine per process.  Its lock protects everything in the simulator except the consumer
 * side of completion queues.  Timer functions, packet handlers and CM code run with it held.
 * It ranks below the core's id lock and above the core's channel lock, so post_event() may
 * be called under it.
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
	bool looks;			/* only at what other processes did; set before it is armed */
	void (*fn)(struct sim_timer *timer);
	struct sim_timer *next;		/* of timers for which the heap has no memory (heap.c) */
};

enum sim_clock { SIM_CLOCK_REAL, SIM_CLOCK_VIRTUAL };

/* Start and stop the engine (the NIC thread with it, real clock only). */
int sim_engine_start(enum sim_clock clock, uint64_t seed);
void sim_engine_stop(void);
bool sim_is_virtual(void);
/*
 * Lock held: packets may come in from now on, so the NIC thread must run.  A negative errno,
 * with its reason, if it cannot be started: then the call that needs it fails, since its
 * events would never come.
 */
int sim_engine_need_thread(void);

void sim_lock(void);
void sim_unlock(void);
/* This thread holds the lock (a signal handler: or was just taking or releasing it). */
bool sim_has_lock(void);
/* For exit handlers, which may run inside a call that holds the lock.  false: not in so many ns. */
bool sim_lock_within(uint64_t ns);
/* Is this a child of fork() that has not taken the lock yet?  All is its parent's.  No lock needed. */
bool sim_is_inherited(void);

/* With the lock held, unless said otherwise. */
uint64_t sim_now(void);			/* any thread, no lock needed */
/*
 * The same for who only notes it, as a trace does.  Where several programs share one virtual time,
 * each look at a clock takes time; a run is to be the same with a trace and without.
 */
uint64_t sim_now_to_note(void);

void sim_timer_init(struct sim_timer *timer, void (*fn)(struct sim_timer *timer));
/* (Re)arm.  Deadlines in the past fire as soon as possible, in order of arming. */
void sim_timer_arm(struct sim_timer *timer, uint64_t deadline);
void sim_timer_disarm(struct sim_timer *timer);
/* Set new deadlines, none of them earlier; SIM_NEVER disarms.  Equal deadlines keep their order. */
void sim_timers_move(uint64_t (*deadline_of)(const struct sim_timer *timer, void *arg), void *arg);
static inline bool sim_timer_armed(const struct sim_timer *timer) { return timer->slot != 0; }

/*
 * Wait, inside an operation, until done(arg) or the deadline (SIM_NEVER: none).  Virtual: moves
 * time.  Real: releases the lock meanwhile; code that changes what done() reads calls
 * sim_wake().  0, -ETIMEDOUT, -EDEADLK (virtual: nothing is left that could happen), or the
 * error of sim_engine_need_thread().
 */
int sim_wait(bool (*done)(void *arg), void *arg, uint64_t deadline);
void sim_wake(void);

/*
 * Something waits for the program's next poll, or does not: hooks.settle() is called then, and
 * before the NIC thread or the program sleeps.
 */
void sim_owe(bool on);
/* Something changes, or ends: nothing waits any longer.  Lock held. */
void sim_settle(void);
/* A number for the last poll, if the program polls steadily; else 0. */
unsigned int sim_poll_turn(void);

/* Is the calling thread the program's only one?  Lock held. */
bool sim_is_only_thread(void);

/*
 * What the engine calls of the layers above; NULL: nothing.  Set with the lock held, or before
 * the engine starts.
 */
struct sim_engine_hooks {
	/* Deliver what came in from other processes (link/shm/shm.c).  Lock held. */
	void (*receive)(void);
	/* The program has polled, and steadily for a while.  Lock held. */
	void (*polled)(void);
	/* Packets may come in from now on (sim_engine_need_thread()).  A negative errno: they cannot. */
	int (*need)(void);
	/* The program polls: fetch what came from other machines, after sim_fetch_on().  Lock held. */
	void (*fetch)(void);
	/* Send what waits for the next poll (sim_owe()).  Lock held. */
	void (*settle)(void);
	/* Has the process in that slot not read all that we sent?  Lock held. */
	bool (*unread)(unsigned int slot);
	/* It polls no more, and waits.  Lock held. */
	void (*idle)(void);
	/*
	 * Real clock: timers are about to fire long after they were due.  Handle all that came from
	 * other machines meanwhile: it may be what they wait for.  Lock held.
	 */
	void (*catch_up)(void);
	/* Before a fork(), and after it in the parent.  Lock held. */
	void (*forking)(void), (*fork_done)(void);
	/* In the child of a fork(): at once, and when it first takes the lock. */
	void (*forked)(void), (*after_fork)(void);
	/* For the trace: a timer is "armed", "fired" or "ended".  Lock held. */
	void (*timer)(const struct sim_timer *timer, const char *action);
	/*
	 * While some timers stand still (world.c): returns when the timer fires in place of its
	 * deadline; SIM_NEVER: not now.  Lock held.
	 */
	uint64_t (*postpone)(const struct sim_timer *timer, uint64_t deadline);
};
extern struct sim_engine_hooks sim_engine_hooks;

/* --- Without the lock. --- */

/*
 * Real clock: fire what is due and receive what came in.  Cheap if there is nothing.  If another
 * thread holds the lock, yield the processor to it.
 */
void sim_progress(void);
/* Call hooks.fetch() at each poll of the program, or no more. */
void sim_fetch_on(bool on);
/* Real clock: a poll found so many things that were there already. */
void sim_polled(unsigned int found);
/* Virtual clock: move time by so much, firing all in between. */
int sim_advance(uint64_t ns);
/*
 * Virtual clock: move time until done(arg), called with the lock held; NULL: until nothing is
 * left that could happen.  -ETIMEDOUT: not within the limit; -EDEADLK: nothing is left, and
 * done() is still false.
 */
int sim_run(uint64_t limit, bool (*done)(void *arg), void *arg);
/* Members of struct polycm_clock. */
int sim_idle(void *ctx);
bool sim_clock_virtual(void *ctx);
int sim_clock_wait(void *ctx, const struct polycm_clock_wait *wait);
void sim_clock_spin(void *ctx);
uint64_t sim_clock_read(void *ctx, const void *frame);
/*
 * A poll of the program found nothing.  Virtual: many such polls in a row count as waiting; if
 * the program also reads clocks, it may wait for a time, so these waits are short.
 */
void sim_spin(void);

#endif
