/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * engine_virtual.c - the virtual clock: a thread that waits fires the next
 * timer, whatever it waits for, once no other thread of the program computes
 * any more.
 *
 * A thread that was told of a change (an event may have been posted to it) has
 * to look before time goes on.  Where several threads wait they take turns.
 */
#include "config.h"

#include <errno.h>

#include "engine_internal.h"
#include "heap.h"
#include "threads.h"

#define SPINS_TO_WAIT 16u	/* vain polls in a row that count as waiting */
/* Where several threads live in virtual time, in real time: */
#define LOOK_AGAIN SIM_MS(2)	/* between looks where nothing is left to happen */
#define YIELD SIM_US(100)	/* for a thread that computes to call us */
#define YIELD_MAX SIM_MS(250)	/* without a call: then time goes on without it */

/* A thread that waits has looked at everything up to this change. */
static __thread uint64_t looked_at;

void engine_virtual_tell(void)
{
	if (sim_engine.told != sim_engine.changes)
		engine_wake_waiters();
}

/* To the next timer, if it is not later than the limit. */
static bool step(uint64_t limit)
{
	struct sim_timer *timer = sim_heap_first();

	if (!timer || timer->deadline > limit)
		return false;
	if (timer->deadline > relaxed_load(&sim_engine.now))
		relaxed_store(&sim_engine.now, timer->deadline);
	engine_fire(timer);
	engine_virtual_tell();
	return true;
}

/* Threads that are about to take the lock. */
static bool called_for(void)
{
	return sim_engine.woken || relaxed_load(&sim_engine.contenders);
}

/*
 * Before time moves: let threads that compute go on until they wait too.  True:
 * they have had some time, and may have changed anything.  One that neither
 * calls us nor sleeps for long is not waited for.
 */
static bool yield_to_others(void)
{
	uint64_t now;

	/* A thread that computed a moment ago may sleep now because of us. */
	if (!called_for() && !sim_threads_compute() && !called_for()) {
		sim_engine.busy_since = 0;
		return false;
	}
	now = engine_monotonic();
	if (!sim_engine.busy_since || sim_engine.changes != sim_engine.busy_changes) {
		sim_engine.busy_changes = sim_engine.changes;
		sim_engine.busy_since = now;
	} else if (now - sim_engine.busy_since > YIELD_MAX) {
		sim_engine.busy_since = now;
		return false;
	}
	engine_wait_changed(now + YIELD);
	return true;
}

int engine_virtual_wait(bool (*done)(void *arg), void *arg, uint64_t deadline)
{
	while (!done(arg)) {
		if (yield_to_others() || step(deadline))
			continue;
		if (deadline == SIM_NEVER)
			return -EDEADLK;
		if (deadline > relaxed_load(&sim_engine.now))
			relaxed_store(&sim_engine.now, deadline);
		return -ETIMEDOUT;
	}
	return 0;
}

/* Did the thread, or did others, do something since it last looked at what it waits for? */
static bool must_look(void)
{
	return looked_at != sim_engine.changes && sim_threads_count() > 1;
}

int engine_virtual_idle(void)
{
	int ret = 1;

	sim_lock();
	if (!must_look() && !yield_to_others() && !step(SIM_NEVER)) {
		/* Another thread that still computes may yet do something. */
		if (sim_engine.waiters + 1 >= sim_threads_count() && !called_for())
			ret = -EDEADLK;
		else
			engine_wait_changed(engine_monotonic() + LOOK_AGAIN);
	}
	looked_at = sim_engine.changes;
	sim_unlock();
	return ret;
}

int sim_advance(uint64_t ns)
{
	uint64_t target;

	if (!sim_is_virtual())
		return -EINVAL;
	sim_lock();
	target = relaxed_load(&sim_engine.now) + ns;
	if (target < ns || target == SIM_NEVER)
		target = SIM_NEVER - 1;
	while (step(target))
		;
	if (target > relaxed_load(&sim_engine.now))
		relaxed_store(&sim_engine.now, target);
	sim_unlock();
	return 0;
}

void sim_spin(void)
{
	if (!sim_is_virtual()) {
		sim_progress();
		return;
	}
	if (atomic_fetch_add(&sim_engine.spins, 1) + 1 < SPINS_TO_WAIT)
		return;
	sim_lock();
	if (!yield_to_others() && !step(SIM_NEVER) && !sim_engine.stuck_told &&
	    sim_threads_count() == 1) {
		sim_engine.stuck_told = true;
		sim_core->log(POLYCM_LOG_WARN, NULL,
			      "the program polls, but nothing is left that could happen");
	}
	sim_unlock();
}
