/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * engine.h - the simulator's clock, event queue and randomness.
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

#define SIM_NEVER UINT64_MAX
#define SIM_MS(ms) ((uint64_t)(ms) * 1000000u)
#define SIM_US(us) ((uint64_t)(us) * 1000u)

struct sim_timer {
	uint64_t deadline;		/* ns of the engine's clock */
	uint64_t seq;			/* breaks ties: first armed, first fired */
	uint32_t slot;			/* place in the heap + 1; 0: not armed */
	void (*fn)(struct sim_timer *timer);
};

/* The host's services, set by the provider's query; never NULL afterwards. */
extern const struct polycm_core *sim_core;

/* err, with the reason in words for the log line of the call under way. */
#define sim_refuse(err, ...) (sim_core->why(__VA_ARGS__), (err))

enum sim_clock { SIM_CLOCK_REAL, SIM_CLOCK_VIRTUAL };

/* Start and stop the engine (the NIC thread with it, real clock only). */
int sim_engine_start(enum sim_clock clock, uint64_t seed);
void sim_engine_stop(void);
bool sim_is_virtual(void);
/* Lock held: from now on packets may come in unasked, so the NIC thread must run. */
void sim_engine_need_thread(void);

void sim_lock(void);
void sim_unlock(void);
/* For exit handlers, which may run inside a call that holds the lock: false after so much real time. */
bool sim_lock_within(uint64_t ns);

/* With the lock held, unless said otherwise. */
uint64_t sim_now(void);			/* any thread, no lock needed */
uint64_t sim_random(void);		/* 64 bits of the seeded generator */
uint32_t sim_random_below(uint32_t bound);

void sim_timer_init(struct sim_timer *timer, void (*fn)(struct sim_timer *timer));
/* (Re)arm.  Deadlines in the past fire as soon as possible, in order of arming. */
void sim_timer_arm(struct sim_timer *timer, uint64_t deadline);
void sim_timer_disarm(struct sim_timer *timer);
static inline bool sim_timer_armed(const struct sim_timer *timer) { return timer->slot != 0; }

/*
 * Wait, inside an operation, until done(arg) or the deadline (SIM_NEVER:
 * none).  Virtual: moves time.  Real: releases the lock meanwhile; whoever
 * changes what done() reads calls sim_wake().  0, -ETIMEDOUT, or -EDEADLK
 * (virtual: nothing is left that could happen).
 */
int sim_wait(bool (*done)(void *arg), void *arg, uint64_t deadline);
void sim_wake(void);

/*
 * Without the lock.  sim_progress(): real clock, fire what is due and receive
 * what came in, unless another thread is at it; cheap when there is nothing.
 * sim_advance(): virtual clock, move time by so much, firing all in between.
 * sim_idle(): polycm_clock.idle.
 */
void sim_progress(void);
int sim_advance(uint64_t ns);
int sim_idle(void *ctx);
/* A program polls in vain.  Virtual: after enough polls in a row this counts as waiting. */
void sim_spin(void);

#endif
