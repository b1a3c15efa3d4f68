/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * engine/engine_virtual.c - the virtual clock: a thread that waits fires the next timer,
 * whatever it waits for, as soon as no other thread of the program computes.
 *
 * Before time moves, each thread that was woken for a change (perhaps an event for it)
 * checks what it waits for.  Threads that wait fire timers in turn.
 */
#include "config.h"

#include <errno.h>
#include <string.h>
#include <limits.h>

#include "engine_internal.h"
#include "heap.h"
#include "threads.h"

/* Real times, for programs with several threads: */
#define CHECK_AGAIN SIM_MS(2)	/* between checks when nothing is left to happen */
#define YIELD SIM_US(100)	/* for a thread that computes to call us */
#define YIELD_MAX SIM_MS(250)	/* of processor time without a call; then time moves without it */

/* The value of sim_engine.changes when this thread last checked what it waits for. */
static __thread __attribute__((tls_model("initial-exec"))) uint64_t checked_at;

/* Move time to the next timer and fire it, if it is not later than the limit. */
bool engine_step(uint64_t limit)
{
	struct sim_timer *timer = sim_heap_first();

	if (!timer || timer->deadline > limit)
		return false;
	engine_move_to(timer->deadline);
	engine_fire(timer);
	engine_virtual_tell();
	return true;
}

/*
 * Is a thread about to take the lock, or to check what it waits for?  It may sleep for a
 * moment when it asks the kernel with a time-out that has passed.
 */
static bool is_anybody_active(void)
{
	return sim_engine.woken || relaxed_load(&sim_engine.contenders) ||
	       relaxed_load(&sim_engine.lookers) > engine_looks;
}

/*
 * The processor time of the program, without the time that threads spent in this period to
 * check again: a thread that waits for a processor meanwhile has not computed for longer.
 */
static uint64_t time_of_others(void)
{
	static __thread __attribute__((tls_model("initial-exec"))) struct {
		uint64_t period, own;
	} last;
	uint64_t own = sim_time->real_ns(CLOCK_THREAD_CPUTIME_ID);

	if (last.period == sim_engine.busy_period)
		sim_engine.looking += own - last.own;
	last.period = sim_engine.busy_period;
	last.own = own;
	return sim_time->real_ns(CLOCK_PROCESS_CPUTIME_ID) - sim_engine.looking;
}

/* Moving time past threads that compute would give wrong results, unnoticed. */
static int refuse_to_move(int err)
{
	if (!sim_engine.blind_logged)
		sim_core->log(POLYCM_LOG_ERROR, NULL,
			      "virtual time stands still: %s shows whether other threads compute, and "
			      "cannot be read: %s. Mount /proc, raise the limit of open files, or use "
			      "one thread or POLYCM_SIM_CLOCK=real", sim_threads_folder, strerror(-err));
	sim_engine.blind_logged = true;
	return -ENOTSUP;
}

/* Do not wait for a thread that neither calls us nor sleeps for YIELD_MAX. */
int engine_yield(void)
{
	int compute = is_anybody_active() ? 1 : sim_threads_compute();
	uint64_t now;

	if (compute < 0)
		return refuse_to_move(compute);
	/* Once more: a thread that computed a moment ago may now sleep on our lock. */
	if (!compute && !is_anybody_active()) {
		sim_engine.busy_since = 0;
		return 0;
	}
	if (!sim_engine.busy_since || sim_engine.changes != sim_engine.busy_changes) {
		sim_engine.busy_period++;
		sim_engine.busy_changes = sim_engine.changes;
		sim_engine.busy_since = time_of_others();
	} else if ((now = time_of_others()) > sim_engine.busy_since + YIELD_MAX) {
		sim_engine.busy_since = now;
		return 0;
	}
	engine_wait_changed(engine_monotonic() + YIELD);
	return 1;
}

int engine_virtual_wait(bool (*done)(void *arg), void *arg, uint64_t deadline)
{
	while (!done(arg)) {
		int yielded = engine_yield();

		if (yielded < 0)
			return yielded;
		if (yielded || engine_step(deadline))
			continue;
		if (deadline == SIM_NEVER)
			return -EDEADLK;
		engine_move_to(deadline);
		return -ETIMEDOUT;
	}
	return 0;
}

/* Can only the calling thread, which holds the lock, still do anything? */
static bool nobody_acts(void)
{
	int threads = sim_threads_count();
	unsigned int others = threads > 0 ? (unsigned int)threads - 1 : UINT_MAX;

	/* These threads act in any case. */
	if (is_anybody_active() || sim_engine.passers)
		return false;
	return sim_engine.waiters >= others ||
	       sim_engine.waiters + sim_threads_parked(&sim_engine.engine_lock,
						       sizeof(sim_engine.engine_lock)) >= others;
}

/*
 * Let time pass for a waiting thread.  It returns
 *   1         the thread has to check again what it waits for
 *   -EDEADLK  no timer is left, and no other thread can act
 *   -EAGAIN   no timer is left, but another thread may still act
 *
 * checked: the value of sim_engine.changes when the thread last checked.
 * only_simulator: only the simulator can end the wait.  Then the thread waits here for
 * another thread to act, and -EAGAIN is never returned.
 * all_slept: NULL if only a counted change can end the wait.  Else other threads may have
 * ended it without one before they went to sleep.  So when all others sleep, this is set
 * and 1 is returned: the thread checks once more before time moves.
 */
static int pass(uint64_t checked, bool only_simulator, bool *all_slept)
{
	bool quiet = all_slept && *all_slept && !is_anybody_active();
	int yielded;

	if (all_slept)
		*all_slept = false;
	if (checked != sim_engine.changes && sim_threads_count() > 1)
		return 1;
	if (!quiet) {
		yielded = engine_yield();
		if (yielded)
			return yielded;
		if (all_slept && !single_thread()) {
			*all_slept = true;
			return 1;
		}
	}
	if (engine_step(SIM_NEVER))
		return 1;
	if (nobody_acts())
		return -EDEADLK;
	if (!only_simulator)
		return -EAGAIN;
	engine_wait_changed(engine_monotonic() + CHECK_AGAIN);
	return 1;
}

int engine_virtual_idle(void)
{
	int ret;

	sim_lock();
	ret = pass(checked_at, true, NULL);
	checked_at = sim_engine.changes;
	sim_unlock();
	return sim_time->time_moved() ? -EINTR : ret;
}

/* ------------------------------------------------------------------------
 * Waits of the program with a time-out.  It is a timer like any other, so that of several
 * threads the one with the earliest time-out continues first.
 *
 * In a child of fork() the timers of its parent's threads stay in the queue, so their
 * memory is never freed.
 */

struct sleeper {
	struct sim_timer timer;
	bool expired;
	struct sleeper *next;
};

static struct sleeper first_sleeper, *free_sleepers = &first_sleeper;

static void expire(struct sim_timer *timer)
{
	((struct sleeper *)timer)->expired = true;
}

static struct sleeper *begin(uint64_t deadline)
{
	struct sleeper *sleeper = free_sleepers;

	if (sleeper)
		free_sleepers = sleeper->next;
	else
		sleeper = sim_core->alloc(sizeof(*sleeper));
	if (!sleeper)
		return NULL;
	sim_timer_init(&sleeper->timer, expire);
	sleeper->expired = false;
	if (deadline != SIM_NEVER)
		sim_timer_arm(&sleeper->timer, deadline);
	return sleeper;
}

static void release(struct sleeper *sleeper)
{
	sim_timer_disarm(&sleeper->timer);
	sleeper->next = free_sleepers;
	free_sleepers = sleeper;
}

__thread __attribute__((tls_model("initial-exec"))) bool engine_looks;

static void begin_to_look(void)
{
	if (!engine_looks)
		atomic_fetch_add(&sim_engine.lookers, 1);
	engine_looks = true;
}

static void end_to_look(void)
{
	if (engine_looks)
		atomic_fetch_sub(&sim_engine.lookers, 1);
	engine_looks = false;
}

static bool look(const struct polycm_clock_wait *wait)
{
	bool found;

	begin_to_look();
	found = wait->look(wait->arg);
	end_to_look();
	return found;
}

/* Also runs when the thread is cancelled. */
static void end(void *arg)
{
	end_to_look();
	sim_lock();
	release(arg);
	sim_unlock();
}

/* The fabric may be destroyed while a thread waits, and its clock with it. */
static bool time_is_gone(const struct sleeper *sleeper, uint64_t deadline)
{
	return !sim_is_virtual() ||
	       (deadline != SIM_NEVER && !sleeper->expired && !sim_timer_armed(&sleeper->timer));
}

static int wait_for(struct sleeper *sleeper, const struct polycm_clock_wait *wait,
		    uint64_t checked)
{
	bool expired = false, all_slept = false;
	int ret = 1;

	while (ret > 0) {
		if (look(wait))
			return 0;
		if (expired)
			return -ETIMEDOUT;
		sim_lock();
		if (time_is_gone(sleeper, wait->deadline_ns))
			ret = -ENODEV;
		else if (!sleeper->expired)
			ret = pass(checked, wait->only_ours, &all_slept);
		checked = sim_engine.changes;
		expired = sleeper->expired;
		sim_unlock();
		(void)sim_time->time_moved();
	}
	return ret;
}

static int wait_and_end(struct sleeper *sleeper, const struct polycm_clock_wait *wait,
			uint64_t checked)
{
	int ret;

	pthread_cleanup_push(end, sleeper);
	ret = wait_for(sleeper, wait, checked);
	pthread_cleanup_pop(1);
	return ret;
}

int sim_clock_wait(void *ctx, const struct polycm_clock_wait *wait)
{
	struct sleeper *sleeper = NULL;
	uint64_t checked;

	(void)ctx;
	sim_lock();
	if (sim_is_virtual())
		sleeper = begin(wait->deadline_ns);
	checked = sim_engine.changes;
	sim_unlock();
	if (!sleeper)
		return sim_is_virtual() ? -ENOMEM : -ENODEV;
	return wait_and_end(sleeper, wait, checked);
}

/*
 * A child of fork() that has not used the simulator yet has no virtual time: the fabric is
 * its parent's.  Nor has a signal handler that interrupted the simulator: its waits are real.
 */
__attribute__((no_sanitize("thread"))) bool sim_clock_virtual(void *ctx)
{
	(void)ctx;
	return sim_is_virtual() && !relaxed_load(&sim_engine.forked) && !engine_inside;
}

void sim_clock_spin(void *ctx)
{
	(void)ctx;
	sim_spin();
}

/* The time after so many ns, or the last there is. */
static uint64_t time_after(uint64_t ns)
{
	uint64_t now = relaxed_load(&sim_engine.now);

	return ns < SIM_NEVER - 1 - now ? now + ns : SIM_NEVER - 1;
}

/*
 * Fire all timers up to `target', or until done().  1: done() is true; a negative errno is
 * engine_yield()'s.  Other threads may move time as well, so they are stopped there.
 */
static int run_until(uint64_t target, bool (*done)(void *arg), void *arg)
{
	bool others_move = target != SIM_NEVER - 1 && !single_thread();
	struct sleeper *stop = others_move ? begin(target) : NULL;
	int r;

	sim_engine.passers++;
	do {
		if (done && done(arg)) {
			r = 1;
			break;
		}
		r = stop && stop->expired ? 0 : engine_yield();
	} while (r > 0 || (!r && engine_step(target)));
	sim_engine.passers--;
	if (stop)
		release(stop);
	return r;
}

int engine_advance(uint64_t ns)
{
	uint64_t target = time_after(ns);
	int r = run_until(target, NULL, NULL);

	if (!r)
		engine_move_to(target);
	return r;
}

int sim_advance(uint64_t ns)
{
	int r;

	if (!sim_is_virtual())
		return -EINVAL;
	sim_lock();
	r = engine_advance(ns);
	sim_unlock();
	(void)sim_time->time_moved();
	return r;
}

int sim_run(uint64_t limit, bool (*done)(void *arg), void *arg)
{
	uint64_t target;
	int r;

	if (!sim_is_virtual())
		return -EINVAL;
	sim_lock();
	target = time_after(limit);
	r = run_until(target, done, arg);
	if (r > 0) {
		r = 0;
	} else if (!r && sim_heap_first()) {
		engine_move_to(target);
		r = -ETIMEDOUT;
	} else if (!r && done) {
		r = -EDEADLK;
	}
	sim_unlock();
	(void)sim_time->time_moved();
	return r;
}
