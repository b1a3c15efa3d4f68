/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * engine/engine.c - the engine's lock and timers, its start and stop, and fork().  Time passes
 * in engine_virtual.c and engine_real.c.
 */
#include "config.h"

#include <assert.h>
#include <errno.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "providers/soft/shm/doorbell.h"
#include "engine_internal.h"
#include "hand_over.h"
#include "heap.h"
#include "lock_order.h"
#include "threads.h"
#include "turns.h"

#define CANCEL_AS_IT_IS (-1)	/* no state of pthread_setcancelstate() */

__thread __attribute__((tls_model("initial-exec"))) volatile bool engine_inside;

struct sim_engine_hooks sim_engine_hooks;
struct sim_engine sim_engine = {
	.engine_lock = PTHREAD_MUTEX_INITIALIZER,
};

bool sim_is_virtual(void)
{
	return relaxed_load(&sim_engine.is_virtual);
}

uint64_t sim_now(void)
{
	uint64_t now;

	if (sim_is_virtual())
		return relaxed_load(&sim_engine.now);
	now = engine_monotonic();
	relaxed_store(&sim_doorbell_time, now);
	return now;
}

/* Where libpolycm-turn gives time: not a look at the clock, which would take time. */
uint64_t sim_now_to_note(void)
{
	const struct turn_tells *turns = sim_is_virtual() ? NULL : sim_turns();

	return turns ? turns->now() : sim_now();
}

/* ------------------------------------------------------------------------
 * Timers.
 */

static void timers_changed(void)
{
	sim_engine.changes++;
	if (relaxed_load(&sim_engine.is_real))
		relaxed_store(&sim_engine.next, sim_heap_deadline());
}

static inline void show(const struct sim_timer *timer, const char *action)
{
	if (__builtin_expect(sim_engine_hooks.timer != NULL, 0))
		sim_engine_hooks.timer(timer, action);
}

void sim_timer_init(struct sim_timer *timer, void (*fn)(struct sim_timer *timer))
{
	*timer = (struct sim_timer){ .fn = fn };
}

void sim_timer_arm(struct sim_timer *timer, uint64_t deadline)
{
	uint64_t now = sim_now();

	if (timer->slot)
		sim_heap_remove(timer);
	if (deadline <= now) {
		deadline = now;
		sim_engine.due = true;
	}
	if (__builtin_expect(sim_engine_hooks.postpone != NULL, 0)) {
		deadline = sim_engine_hooks.postpone(timer, deadline);
		if (deadline == SIM_NEVER) {
			timers_changed();
			return;
		}
	}
	timer->deadline = deadline;
	timer->seq = sim_engine.seq++;
	sim_heap_insert(timer);
	timers_changed();
	show(timer, "armed");
}

void sim_timers_move(uint64_t (*deadline_of)(const struct sim_timer *timer, void *arg), void *arg)
{
	sim_heap_move(deadline_of, arg);
	timers_changed();
}

void sim_timer_disarm(struct sim_timer *timer)
{
	if (!timer->slot)
		return;
	sim_heap_remove(timer);
	timers_changed();
	show(timer, "ended");
}

void engine_fire(struct sim_timer *timer)
{
	sim_heap_remove(timer);
	timers_changed();
	show(timer, "fired");
	timer->fn(timer);
}

unsigned int engine_fire_due_at(uint64_t now, unsigned int limit)
{
	unsigned int fired = 0;

	sim_engine.due = false;
	for (; fired < limit && sim_heap_deadline() <= now; fired++)
		engine_fire(sim_heap_first());
	return fired;
}

unsigned int engine_fire_due(unsigned int limit)
{
	return engine_fire_due_at(sim_now(), limit);
}

void engine_wake_waiters(void)
{
	sim_engine.woken_at = sim_engine.changes;
	if (!sim_engine.waiters)
		return;
	sim_engine.woken = sim_engine.waiters;
	sim_engine.wakings++;
	pthread_cond_broadcast(&sim_engine.changed);
}

void sim_wake(void)
{
	sim_engine.changes++;
	engine_wake_waiters();
}

/* ------------------------------------------------------------------------
 * The lock, and waiting without it.
 */

int engine_forbid_cancel(void)
{
	int state;

	/* No other thread could cancel it. */
	if (single_thread())
		return CANCEL_AS_IT_IS;
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	return state;
}

void engine_allow_cancel(int state)
{
	if (state != CANCEL_AS_IT_IS)
		pthread_setcancelstate(state, NULL);
}

static void take_lock(void)
{
	if (pthread_mutex_trylock(&sim_engine.engine_lock)) {
		atomic_fetch_add(&sim_engine.contenders, 1);
		pthread_mutex_lock(&sim_engine.engine_lock);
		atomic_fetch_sub(&sim_engine.contenders, 1);
	}
	take_over(&sim_engine.engine_lock);
}

static void locked(int cancel_state)
{
	sim_engine.cancel_state = cancel_state;
	relaxed_store(&sim_engine.spins, 0);
	if (__builtin_expect(relaxed_load(&sim_engine.forked), 0)) {
		relaxed_store(&sim_engine.forked, false);
		if (sim_is_virtual())
			(void)sim_time->show(true);
		if (sim_engine_hooks.after_fork)
			sim_engine_hooks.after_fork();
	}
}

/* Under the virtual clock no thread is started while the lock is held. */
static bool may_be_alone(void)
{
	return single_thread() && relaxed_load(&sim_engine.is_virtual);
}

static __attribute__((noinline)) void lock_slowly(void)
{
	int cancel_state;

	if (may_be_alone()) {
		LOCK_ORDER_TAKE(engine_lock);
		sim_engine.alone = true;
		locked(CANCEL_AS_IT_IS);
		return;
	}
	cancel_state = engine_forbid_cancel();
	take_lock();
	locked(cancel_state);
}

void sim_lock(void)
{
	assert(!sim_engine.alone);
	engine_enter();
	if (__builtin_expect(!may_be_alone() || relaxed_load(&sim_engine.forked), 0)) {
		lock_slowly();
		return;
	}
	LOCK_ORDER_TAKE(engine_lock);
	sim_engine.alone = true;
	relaxed_store(&sim_engine.spins, 0);
}

bool sim_has_lock(void)
{
	return engine_inside;
}

bool sim_lock_within(uint64_t ns)
{
	const struct timespec pause = { .tv_nsec = 1000000 };
	uint64_t until = engine_monotonic() + ns;
	int cancel_state;

	if (sim_engine.alone)
		return false;
	cancel_state = engine_forbid_cancel();
	engine_enter();
	while (pthread_mutex_trylock(&sim_engine.engine_lock)) {
		if (engine_monotonic() >= until) {
			engine_left();
			engine_allow_cancel(cancel_state);
			return false;
		}
		/* Not nanosleep(), which may be libpolycm-interpose's. */
		syscall(SYS_nanosleep, &pause, NULL);
	}
	take_over(&sim_engine.engine_lock);
	locked(cancel_state);
	return true;
}

bool sim_is_inherited(void)
{
	return relaxed_load(&sim_engine.forked);
}

static __attribute__((noinline)) void unlock_slowly(void)
{
	int cancel_state = sim_engine.cancel_state;

	if (__builtin_expect(relaxed_load(&sim_engine.is_virtual), 1))
		engine_virtual_tell();
	else
		engine_real_settle();
	hand_over(&sim_engine.engine_lock);
	pthread_mutex_unlock(&sim_engine.engine_lock);
	engine_left();
	engine_allow_cancel(cancel_state);
}

void sim_unlock(void)
{
	if (!sim_engine.alone) {
		unlock_slowly();
		return;
	}
	engine_virtual_tell();
	LOCK_ORDER_GIVE(engine_lock);
	sim_engine.alone = false;
	engine_left();
}

void engine_wait_changed(uint64_t until)
{
	unsigned int wakings = sim_engine.wakings;
	int cancel_state = sim_engine.cancel_state;

	if (sim_engine.alone) {
		LOCK_ORDER_GIVE(engine_lock);
		pthread_mutex_lock(&sim_engine.engine_lock);
		sim_engine.alone = false;
		cancel_state = CANCEL_AS_IT_IS;
	}
	sim_engine.waiters++;
	hand_over(&sim_engine.engine_lock);
	if (until == SIM_NEVER)
		pthread_cond_wait(&sim_engine.changed, &sim_engine.engine_lock);
	else
		sim_time->cond_wait(&sim_engine.changed, &sim_engine.engine_lock, until);
	take_over(&sim_engine.engine_lock);
	sim_engine.waiters--;
	if (wakings != sim_engine.wakings)
		sim_engine.woken--;
	sim_engine.cancel_state = cancel_state;
}

int sim_wait(bool (*done)(void *arg), void *arg, uint64_t deadline)
{
	return sim_is_virtual() ? engine_virtual_wait(done, arg, deadline)
				: engine_real_wait(done, arg, deadline);
}

int sim_idle(void *ctx)
{
	(void)ctx;
	if (sim_is_virtual())
		return engine_virtual_idle();
	return relaxed_load(&sim_engine.is_real) ? engine_real_idle() : 0;
}

/* ------------------------------------------------------------------------
 * Start and stop.
 */

static void init_changed(void)
{
	pthread_condattr_t attr;

	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&sim_engine.changed, &attr);
	pthread_condattr_destroy(&attr);
}

/* A child of fork() has no NIC thread and no place on the fabric. */
static void before_fork(void)
{
	pthread_mutex_lock(&sim_engine.engine_lock);
	if (sim_engine.running && sim_engine_hooks.forking)
		sim_engine_hooks.forking();
}

static void after_fork_parent(void)
{
	if (sim_engine.running && sim_engine_hooks.fork_done)
		sim_engine_hooks.fork_done();
	pthread_mutex_unlock(&sim_engine.engine_lock);
}

static void after_fork_child(void)
{
	pthread_mutex_init(&sim_engine.engine_lock, NULL);
	init_changed();
	sim_engine.waiters = sim_engine.woken = sim_engine.passers = 0;
	relaxed_store(&sim_engine.contenders, 0);
	relaxed_store(&sim_engine.lookers, engine_looks);
	sim_engine.busy_since = sim_engine.looking = 0;	/* processor time begins anew */
	sim_engine.thread_runs = sim_engine.asleep = false;
	if (sim_engine.running && sim_engine_hooks.forked)
		sim_engine_hooks.forked();
	if (sim_is_virtual())
		(void)sim_time->show(false);
	relaxed_store(&sim_engine.forked, sim_engine.running);
}

static void init_once(void)
{
	init_changed();
	pthread_atfork(before_fork, after_fork_parent, after_fork_child);
}

int sim_engine_start(enum sim_clock clock, uint64_t seed)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	int ret = -EBUSY;

	pthread_once(&once, init_once);
	pthread_mutex_lock(&sim_engine.engine_lock);
	if (sim_engine.running)
		goto out;
	ret = sim_heap_open();
	if (ret < 0)
		goto out;
	sim_random_seed(seed);
	sim_engine.seq = sim_engine.busy_since = 0;
	sim_engine.due = sim_engine.stop = sim_engine.stuck_logged = false;
	relaxed_store(&sim_engine.now, 0);
	relaxed_store(&sim_engine.next, SIM_NEVER);
	relaxed_store(&sim_engine.spins, 0);
	engine_real_start();
	relaxed_store(&sim_engine.is_virtual, clock == SIM_CLOCK_VIRTUAL);
	relaxed_store(&sim_engine.is_real, clock == SIM_CLOCK_REAL);
	sim_engine.running = true;
out:
	pthread_mutex_unlock(&sim_engine.engine_lock);
	return ret;
}

void sim_engine_stop(void)
{
	pthread_mutex_lock(&sim_engine.engine_lock);
	if (!sim_engine.running) {
		pthread_mutex_unlock(&sim_engine.engine_lock);
		return;
	}
	relaxed_store(&sim_engine.is_real, false);
	sim_engine.stop = true;
	sim_segment_ring(sim_segment_self());
	if (sim_engine.thread_runs) {
		pthread_mutex_unlock(&sim_engine.engine_lock);
		pthread_join(sim_engine.thread, NULL);
		pthread_mutex_lock(&sim_engine.engine_lock);
		sim_engine.thread_runs = false;
	}
	sim_heap_close();
	relaxed_store(&sim_engine.is_virtual, false);
	sim_engine.running = false;
	pthread_mutex_unlock(&sim_engine.engine_lock);
}
