/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * engine/engine_virtual.c - the virtual clock: a thread that waits fires the next
 * timer, whatever it waits for, once no other thread of the program computes
 * any more.
 *
 * A thread that was told of a change (an event may have been posted to it) has
 * to look before time goes on.  Where several threads wait they take turns.
 */
#include "config.h"

#include <errno.h>
#include <string.h>
#include <limits.h>

#include "engine_internal.h"
#include "heap.h"
#include "threads.h"

/* Where several threads live in virtual time, in real time: */
#define LOOK_AGAIN SIM_MS(2)	/* between looks where nothing is left to happen */
#define YIELD SIM_US(100)	/* for a thread that computes to call us */
#define YIELD_MAX SIM_MS(250)	/* of processor time without a call: then time goes on without it */

/* A thread that waits has looked at everything up to this change. */
static __thread __attribute__((tls_model("initial-exec"))) uint64_t looked_at;

/* To the next timer, if it is not later than the limit. */
bool engine_step(uint64_t limit)
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

/*
 * Threads that are about to take the lock, or look for what they wait for: who
 * asks the kernel for something until a time that has passed sleeps for a moment.
 */
static bool called_for(void)
{
	return sim_engine.woken || relaxed_load(&sim_engine.contenders) ||
	       relaxed_load(&sim_engine.lookers) > engine_looks;
}

/*
 * The processor time of the program but for what threads took to look again in
 * this period: one that has to wait for a processor while others look computes
 * no longer than else.
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

/* Time that ran past threads would be wrong without a word. */
static int refuse_to_move(int err)
{
	if (!sim_engine.blind_told)
		sim_core->log(POLYCM_LOG_ERROR, NULL,
			      "virtual time stands still: %s shows whether other threads compute, and "
			      "cannot be read: %s. Mount /proc, raise the limit of open files, or use "
			      "one thread or POLYCM_SIM_CLOCK=real", sim_threads_folder, strerror(-err));
	sim_engine.blind_told = true;
	return -ENOTSUP;
}

/*
 * Before time moves: let threads that compute go on until they wait too.  1:
 * they have had some time, and may have changed anything.  One that neither
 * calls us nor sleeps for long is not waited for.  -ENOTSUP: nobody knows
 * whether they compute.
 */
int engine_yield(void)
{
	int compute = called_for() ? 1 : sim_threads_compute();
	uint64_t now;

	if (compute < 0)
		return refuse_to_move(compute);
	/* A thread that computed a moment ago may sleep now because of us. */
	if (!compute && !called_for()) {
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
		if (deadline > relaxed_load(&sim_engine.now))
			relaxed_store(&sim_engine.now, deadline);
		return -ETIMEDOUT;
	}
	return 0;
}

/* Nobody but the thread that asks, which holds the lock, can still do anything. */
static bool nobody_acts(void)
{
	int threads = sim_threads_count();
	unsigned int others = threads > 0 ? (unsigned int)threads - 1 : UINT_MAX;

	/* Of those who wait, these go on whatever happens. */
	if (called_for() || sim_engine.passers)
		return false;
	return sim_engine.waiters >= others ||
	       sim_engine.waiters + sim_threads_parked(&sim_engine.lock,
						       sizeof(sim_engine.lock)) >= others;
}

/*
 * A thread that has looked at everything up to the change `seen' waits: 1: look
 * again.  Nothing is left that could happen: -EDEADLK, or -EAGAIN where another
 * thread may yet do something, which one that only waits for what happens here
 * (only_ours) waits for at once.
 *
 * What others did before they slept may be what it waits for, so it looks once
 * more when it finds that they all sleep (ret_quiet).  NULL: what it waits for
 * counts as a change.
 */
static int pass(uint64_t seen, bool only_ours, bool *ret_quiet)
{
	bool quiet = ret_quiet && *ret_quiet && !called_for();
	int yielded;

	if (ret_quiet)
		*ret_quiet = false;
	if (seen != sim_engine.changes && sim_threads_count() > 1)
		return 1;
	if (!quiet) {
		yielded = engine_yield();
		if (yielded)
			return yielded;
		if (ret_quiet && !single_thread()) {
			*ret_quiet = true;
			return 1;
		}
	}
	if (engine_step(SIM_NEVER))
		return 1;
	if (nobody_acts())
		return -EDEADLK;
	if (!only_ours)
		return -EAGAIN;
	engine_wait_changed(engine_monotonic() + LOOK_AGAIN);
	return 1;
}

/* Without the lock, after time may have moved.  true: a signal interrupts the program's call. */
bool engine_let_signals_come(void)
{
	return sim_time->time_moved();
}

int engine_virtual_idle(void)
{
	int ret;

	sim_lock();
	ret = pass(looked_at, true, NULL);
	looked_at = sim_engine.changes;
	sim_unlock();
	return engine_let_signals_come() ? -EINTR : ret;
}

/* ------------------------------------------------------------------------
 * Waits of the program's with a time-out of their own, which is a timer like
 * any other, so that of several threads the one that waits least goes first.
 *
 * After a fork() the timers of threads that are no more stay in the queue:
 * their memory is kept for ever.
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

/* Also where the thread is cancelled. */
static void end(void *arg)
{
	end_to_look();
	sim_lock();
	release(arg);
	sim_unlock();
}

/* The fabric, and time with it, may go while a thread waits. */
static bool time_is_gone(const struct sleeper *sleeper, uint64_t deadline)
{
	return !sim_is_virtual() ||
	       (deadline != SIM_NEVER && !sleeper->expired && !sim_timer_armed(&sleeper->timer));
}

static int wait_for(struct sleeper *sleeper, const struct polycm_clock_wait *wait, uint64_t seen)
{
	bool expired = false, quiet = false;
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
			ret = pass(seen, wait->only_ours, &quiet);
		seen = sim_engine.changes;
		expired = sleeper->expired;
		sim_unlock();
		(void)engine_let_signals_come();
	}
	return ret;
}

static int wait_and_end(struct sleeper *sleeper, const struct polycm_clock_wait *wait,
			uint64_t seen)
{
	int ret;

	pthread_cleanup_push(end, sleeper);
	ret = wait_for(sleeper, wait, seen);
	pthread_cleanup_pop(1);
	return ret;
}

int sim_clock_wait(void *ctx, const struct polycm_clock_wait *wait)
{
	struct sleeper *sleeper = NULL;
	uint64_t seen;

	(void)ctx;
	sim_lock();
	if (sim_is_virtual())
		sleeper = begin(wait->deadline_ns);
	seen = sim_engine.changes;
	sim_unlock();
	if (!sleeper)
		return sim_is_virtual() ? -ENOMEM : -ENODEV;
	return wait_and_end(sleeper, wait, seen);
}

/*
 * A child of fork() has its parent's fabric, until it uses it, only to look at.
 * A signal handler may wait as well, also one that interrupted us: really then.
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

/* Other threads may wait for longer, and stop there as well. */
int engine_advance(uint64_t ns)
{
	uint64_t target = relaxed_load(&sim_engine.now) + ns;
	struct sleeper *stop;
	int yielded;

	if (target < ns || target == SIM_NEVER)
		target = SIM_NEVER - 1;
	stop = single_thread() ? NULL : begin(target);
	sim_engine.passers++;
	do
		yielded = stop && stop->expired ? 0 : engine_yield();
	while (yielded > 0 || (!yielded && engine_step(target)));
	sim_engine.passers--;
	if (stop)
		release(stop);
	if (!yielded && target > relaxed_load(&sim_engine.now))
		relaxed_store(&sim_engine.now, target);
	return yielded;
}

int sim_advance(uint64_t ns)
{
	int r;

	if (!sim_is_virtual())
		return -EINVAL;
	sim_lock();
	r = engine_advance(ns);
	sim_unlock();
	(void)engine_let_signals_come();
	return r;
}

int sim_run(uint64_t limit, bool (*done)(void *arg), void *arg)
{
	struct sleeper *stop = NULL;
	uint64_t target;
	int r;

	if (!sim_is_virtual())
		return -EINVAL;
	sim_lock();
	target = relaxed_load(&sim_engine.now);
	target = limit < SIM_NEVER - 1 - target ? target + limit : SIM_NEVER - 1;
	/* As in engine_advance(). */
	if (target != SIM_NEVER - 1 && !single_thread())
		stop = begin(target);
	sim_engine.passers++;
	for (;;) {
		if (done && done(arg)) {
			r = 0;
			break;
		}
		r = stop && stop->expired ? 0 : engine_yield();
		if (r < 0)
			break;
		if (r || engine_step(target))
			continue;
		if (stop)
			sim_timer_disarm(&stop->timer);
		if (sim_heap_first()) {
			/* Others may have moved it further meanwhile. */
			if (target > relaxed_load(&sim_engine.now))
				relaxed_store(&sim_engine.now, target);
			r = -ETIMEDOUT;
		} else {
			r = done ? -EDEADLK : 0;
		}
		break;
	}
	sim_engine.passers--;
	if (stop)
		release(stop);
	sim_unlock();
	(void)engine_let_signals_come();
	return r;
}
