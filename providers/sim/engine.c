/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * engine.c - the simulator's lock, clock and timers, and who moves time on.
 *
 * Virtual clock: a thread that waits fires the next timer, whatever it waits
 * for, once no other thread of the program computes any more.  Real clock:
 * timers that are due when they are armed fire when the thread that armed them
 * releases the lock, as a softirq would; all others, and packets from other
 * processes, are the NIC thread's or a poller's.
 *
 * The NIC thread sleeps on the doorbell of our slot.  While a program polls
 * ("hot") senders need not ring it: the thread then only looks now and again
 * whether the polling goes on.
 */
#include "config.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <time.h>
#include <unistd.h>

#include "engine.h"
#include "fabric.h"
#include "heap.h"
#include "link/link.h"
#include "random.h"
#include "threads.h"
#include "trace.h"

#define SPINS_TO_WAIT 16u	/* vain polls in a row that count as waiting (virtual) */
#define POLLS_TO_HOT 64u	/* polls in a row after which we rely on the poller (real) */
#define POLLS_PER_LOOK 16u	/* a poller reads the clock every so often only */
#define TIMERS_PER_UNLOCK 256u
#define HOT_MIN SIM_US(50)	/* how long the NIC thread trusts a poller */
#define HOT_MAX SIM_MS(1)
#define PATIENCE_MIN SIM_US(2)	/* how long a thread looks before it sleeps (real) */
#define PATIENCE_MAX SIM_US(50)
/* Where several threads live in virtual time, in real time: */
#define LOOK_AGAIN SIM_MS(2)	/* between looks where nothing is left to happen */
#define YIELD SIM_US(100)	/* for a thread that computes to call us */
#define YIELD_MAX SIM_MS(250)	/* without a call: then time goes on without it */

const struct polycm_core *sim_core;

/* A thread that waits has looked at everything up to this change. */
static __thread uint64_t looked_at;

static struct {
	pthread_mutex_t lock;
	pthread_cond_t changed;		/* CLOCK_MONOTONIC; sim_wait(), virtual sim_idle() */
	unsigned int waiters;		/* on changed */
	unsigned int woken;		/* of them, told to look but not yet on their way */
	unsigned int tellings;
	uint64_t changes, told;		/* counts what a thread that waits should look at */
	uint64_t busy_changes, busy_since;	/* others compute, without calls; 0: no */
	bool running;
	bool due;			/* a timer was armed for now (real) */
	bool thread_runs, stop;
	bool asleep;			/* the NIC thread, until sleep_until */
	bool stuck_told;
	int cancel_state;		/* of the thread that holds the lock */
	uint64_t sleep_until;
	uint64_t seq;
	pthread_t thread;
	/* Read without the lock. */
	atomic_bool is_virtual, is_real;	/* both false: not running */
	atomic_bool forked;
	atomic_bool hot;
	atomic_uint_fast64_t now;	/* virtual */
	atomic_uint_fast64_t next;	/* earliest deadline */
	atomic_uint_fast64_t patience;
	atomic_uint spins, polls;
	atomic_uint contenders;		/* threads that wait for the lock */
} engine = {
	.lock = PTHREAD_MUTEX_INITIALIZER,
};

#define relaxed_load(object) atomic_load_explicit(object, memory_order_relaxed)
#define relaxed_store(object, value) atomic_store_explicit(object, value, memory_order_relaxed)

static uint64_t monotonic(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

bool sim_is_virtual(void)
{
	return relaxed_load(&engine.is_virtual);
}

uint64_t sim_now(void)
{
	return sim_is_virtual() ? relaxed_load(&engine.now) : monotonic();
}

/* ------------------------------------------------------------------------
 * Timers.
 */

static void timers_changed(void)
{
	engine.changes++;
	relaxed_store(&engine.next, sim_heap_deadline());
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
		engine.due = true;
	}
	timer->deadline = deadline;
	timer->seq = engine.seq++;
	sim_heap_insert(timer);
	timers_changed();
}

void sim_timer_disarm(struct sim_timer *timer)
{
	if (!timer->slot)
		return;
	sim_heap_remove(timer);
	timers_changed();
}

static void fire(struct sim_timer *timer)
{
	sim_heap_remove(timer);
	timers_changed();
	timer->fn(timer);
}

/* Real clock: fire what is due now, but not what that brings about. */
static unsigned int fire_due(unsigned int limit)
{
	uint64_t now = sim_now();
	unsigned int fired = 0;

	engine.due = false;
	for (; fired < limit && sim_heap_deadline() <= now; fired++)
		fire(sim_heap_first());
	return fired;
}

static void wake_waiters(void)
{
	engine.told = engine.changes;
	if (!engine.waiters)
		return;
	engine.woken = engine.waiters;
	engine.tellings++;
	pthread_cond_broadcast(&engine.changed);
}

void sim_wake(void)
{
	engine.changes++;
	wake_waiters();
}

/* Virtual clock: whoever waits shall look at what has changed. */
static void tell(void)
{
	if (engine.told != engine.changes)
		wake_waiters();
}

/* Virtual clock: to the next timer, if it is not later than the limit. */
static bool step(uint64_t limit)
{
	struct sim_timer *timer = sim_heap_first();

	if (!timer || timer->deadline > limit)
		return false;
	if (timer->deadline > relaxed_load(&engine.now))
		relaxed_store(&engine.now, timer->deadline);
	fire(timer);
	tell();
	return true;
}

/* ------------------------------------------------------------------------
 * The lock, and what is done before it is released.
 */

static void settle(void)
{
	unsigned int budget = TIMERS_PER_UNLOCK;

	if (!relaxed_load(&engine.is_real))
		return;
	while (engine.due && budget)
		budget -= fire_due(budget);
	if (sim_heap_deadline() == SIM_NEVER)
		return;
	if (!engine.thread_runs)
		sim_engine_need_thread();
	if (engine.asleep && sim_heap_deadline() < engine.sleep_until) {
		engine.sleep_until = sim_heap_deadline();
		sim_shm_ring_self();
	}
}

/* A thread of the program that is cancelled must not take the lock with it. */
static int forbid_cancel(void)
{
	int state;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	return state;
}

static void take_lock(void)
{
	if (!pthread_mutex_trylock(&engine.lock))
		return;
	atomic_fetch_add(&engine.contenders, 1);
	pthread_mutex_lock(&engine.lock);
	atomic_fetch_sub(&engine.contenders, 1);
}

static void locked(int cancel_state)
{
	engine.cancel_state = cancel_state;
	relaxed_store(&engine.spins, 0);
	if (__builtin_expect(relaxed_load(&engine.forked), 0)) {
		relaxed_store(&engine.forked, false);
		sim_fabric_after_fork();
	}
}

void sim_lock(void)
{
	int cancel_state = forbid_cancel();

	take_lock();
	locked(cancel_state);
}

bool sim_lock_within(uint64_t ns)
{
	const struct timespec pause = { .tv_nsec = 1000000 };
	uint64_t until = monotonic() + ns;
	int cancel_state = forbid_cancel();

	while (pthread_mutex_trylock(&engine.lock)) {
		if (monotonic() >= until) {
			pthread_setcancelstate(cancel_state, NULL);
			return false;
		}
		nanosleep(&pause, NULL);
	}
	locked(cancel_state);
	return true;
}

void sim_unlock(void)
{
	int cancel_state = engine.cancel_state;

	settle();
	if (sim_is_virtual())
		tell();
	pthread_mutex_unlock(&engine.lock);
	pthread_setcancelstate(cancel_state, NULL);
}

/* Wait on engine.changed until a time of CLOCK_MONOTONIC. */
static void wait_changed(uint64_t until)
{
	struct timespec ts = {
		.tv_sec = (time_t)(until / 1000000000u),
		.tv_nsec = (long)(until % 1000000000u),
	};
	unsigned int tellings = engine.tellings;
	int cancel_state = engine.cancel_state;

	engine.waiters++;
	if (until == SIM_NEVER)
		pthread_cond_wait(&engine.changed, &engine.lock);
	else
		pthread_cond_timedwait(&engine.changed, &engine.lock, &ts);
	engine.waiters--;
	if (tellings != engine.tellings)
		engine.woken--;
	engine.cancel_state = cancel_state;
}

/* Threads that are about to take the lock. */
static bool called_for(void)
{
	return engine.woken || relaxed_load(&engine.contenders);
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
		engine.busy_since = 0;
		return false;
	}
	now = monotonic();
	if (!engine.busy_since || engine.changes != engine.busy_changes) {
		engine.busy_changes = engine.changes;
		engine.busy_since = now;
	} else if (now - engine.busy_since > YIELD_MAX) {
		engine.busy_since = now;
		return false;
	}
	wait_changed(now + YIELD);
	return true;
}

static int wait_virtual(bool (*done)(void *arg), void *arg, uint64_t deadline)
{
	while (!done(arg)) {
		if (yield_to_others() || step(deadline))
			continue;
		if (deadline == SIM_NEVER)
			return -EDEADLK;
		if (deadline > relaxed_load(&engine.now))
			relaxed_store(&engine.now, deadline);
		return -ETIMEDOUT;
	}
	return 0;
}

int sim_wait(bool (*done)(void *arg), void *arg, uint64_t deadline)
{
	if (sim_is_virtual())
		return wait_virtual(done, arg, deadline);

	for (;;) {
		sim_engine_need_thread();
		settle();
		if (done(arg))
			return 0;
		if (deadline != SIM_NEVER && deadline <= monotonic())
			return -ETIMEDOUT;
		wait_changed(deadline);
	}
}

/* ------------------------------------------------------------------------
 * Programs that wait or poll.
 */

/* Did the thread, or did others, do something since it last looked at what it waits for? */
static bool must_look(void)
{
	return looked_at != engine.changes && sim_threads_count() > 1;
}

static int idle_virtual(void)
{
	int ret = 1;

	sim_lock();
	if (!must_look() && !yield_to_others() && !step(SIM_NEVER)) {
		/* Another thread that still computes may yet do something. */
		if (engine.waiters + 1 >= sim_threads_count() && !called_for())
			ret = -EDEADLK;
		else
			wait_changed(monotonic() + LOOK_AGAIN);
	}
	looked_at = engine.changes;
	sim_unlock();
	return ret;
}

/*
 * Look for mail a little longer before the thread sleeps, since waking it costs
 * more than that; the longer, the more often it came in time.
 */
static bool watch(void)
{
	uint64_t patience = relaxed_load(&engine.patience);
	bool came = sim_shm_watch(monotonic() + patience);

	if (came && patience < PATIENCE_MAX)
		relaxed_store(&engine.patience, patience * 2);
	else if (!came && patience > PATIENCE_MIN)
		relaxed_store(&engine.patience, patience / 2);
	return came;
}

int sim_idle(void *ctx)
{
	bool came;

	(void)ctx;
	if (sim_is_virtual())
		return idle_virtual();
	if (!relaxed_load(&engine.is_real))
		return 0;

	came = watch();
	/* The poller stops: from now on senders must ring. */
	relaxed_store(&engine.polls, 0);
	if (!came && relaxed_load(&engine.hot)) {
		relaxed_store(&engine.hot, false);
		sim_shm_ring_self();
	}
	sim_lock();
	sim_shm_receive();
	sim_engine_need_thread();
	sim_unlock();
	return came;
}

void sim_progress(void)
{
	unsigned int polls;
	int cancel_state;

	if (!relaxed_load(&engine.is_real))
		return;
	polls = relaxed_load(&engine.polls) + 1;
	relaxed_store(&engine.polls, polls);
	if (!sim_shm_pending() && (polls % POLLS_PER_LOOK ||
				   relaxed_load(&engine.next) > monotonic())) {
		if (polls >= POLLS_TO_HOT && !relaxed_load(&engine.hot)) {
			relaxed_store(&engine.hot, true);
			sim_shm_ring_self();
		}
		return;
	}
	cancel_state = forbid_cancel();
	if (pthread_mutex_trylock(&engine.lock)) {
		pthread_setcancelstate(cancel_state, NULL);
		return;
	}
	engine.cancel_state = cancel_state;
	fire_due(TIMERS_PER_UNLOCK);
	sim_shm_receive();
	sim_unlock();
}

void sim_spin(void)
{
	if (!sim_is_virtual()) {
		sim_progress();
		return;
	}
	if (atomic_fetch_add_explicit(&engine.spins, 1, memory_order_relaxed) + 1 < SPINS_TO_WAIT)
		return;
	sim_lock();
	if (!yield_to_others() && !step(SIM_NEVER) && !engine.stuck_told &&
	    sim_threads_count() == 1) {
		engine.stuck_told = true;
		sim_core->log(POLYCM_LOG_WARN, NULL,
			      "the program polls, but nothing is left that could happen");
	}
	sim_unlock();
}

int sim_advance(uint64_t ns)
{
	uint64_t target;

	if (!sim_is_virtual())
		return -EINVAL;
	sim_lock();
	target = relaxed_load(&engine.now) + ns;
	if (target < ns || target == SIM_NEVER)
		target = SIM_NEVER - 1;
	while (step(target))
		;
	if (target > relaxed_load(&engine.now))
		relaxed_store(&engine.now, target);
	sim_unlock();
	return 0;
}

/* ------------------------------------------------------------------------
 * The NIC thread (real clock).
 */

static void nic_sleep(bool quiet, uint64_t trust)
{
	uint64_t deadline = sim_heap_deadline(), now = monotonic();
	uint32_t ticket = sim_shm_prepare_wait(quiet);

	if (quiet && deadline > now + trust)
		deadline = now + trust;
	engine.asleep = true;
	engine.sleep_until = deadline;
	pthread_mutex_unlock(&engine.lock);
	sim_shm_wait(ticket, deadline);
	pthread_mutex_lock(&engine.lock);
	engine.asleep = false;
	sim_shm_awake();
}

static void *nic_thread(void *arg)
{
	uint64_t trust = HOT_MIN;
	unsigned int polls = 0;

	(void)arg;
	pthread_mutex_lock(&engine.lock);
	while (!engine.stop) {
		bool quiet = relaxed_load(&engine.hot);

		if (quiet && relaxed_load(&engine.polls) == polls) {
			relaxed_store(&engine.hot, false);
			quiet = false;
		}
		polls = relaxed_load(&engine.polls);
		if (!quiet)
			trust = HOT_MIN;
		else if (trust < HOT_MAX)
			trust *= 2;

		fire_due(TIMERS_PER_UNLOCK);
		sim_shm_receive();
		if (!engine.due)
			nic_sleep(quiet, trust);
	}
	pthread_mutex_unlock(&engine.lock);
	return NULL;
}

void sim_engine_need_thread(void)
{
	sigset_t all, old;
	int error;

	if (engine.thread_runs || !relaxed_load(&engine.is_real))
		return;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	error = pthread_create(&engine.thread, NULL, nic_thread, NULL);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (error) {
		sim_core->log(POLYCM_LOG_ERROR, NULL,
			      "the simulator cannot start its thread: error %d", error);
		return;
	}
	pthread_setname_np(engine.thread, "polycm-nic");
	engine.thread_runs = true;
}

/* ------------------------------------------------------------------------
 * Start and stop.
 */

static void init_changed(void)
{
	pthread_condattr_t attr;

	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&engine.changed, &attr);
	pthread_condattr_destroy(&attr);
}

/* A child of fork() has no NIC thread and no place on the fabric. */
static void before_fork(void)
{
	pthread_mutex_lock(&engine.lock);
	sim_trace_flush();	/* or the child would write it once more */
}

static void after_fork_parent(void)
{
	pthread_mutex_unlock(&engine.lock);
}

static void after_fork_child(void)
{
	pthread_mutex_init(&engine.lock, NULL);
	init_changed();
	engine.waiters = engine.woken = 0;
	engine.thread_runs = engine.asleep = false;
	if (engine.running)
		sim_shm_after_fork();
	relaxed_store(&engine.forked, engine.running);
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
	pthread_mutex_lock(&engine.lock);
	if (engine.running)
		goto out;
	ret = sim_heap_open();
	if (ret < 0)
		goto out;
	sim_random_seed(seed);
	engine.seq = engine.busy_since = 0;
	engine.due = engine.stop = engine.stuck_told = false;
	relaxed_store(&engine.now, 0);
	relaxed_store(&engine.next, SIM_NEVER);
	relaxed_store(&engine.spins, 0);
	relaxed_store(&engine.polls, 0);
	relaxed_store(&engine.hot, false);
	relaxed_store(&engine.patience, PATIENCE_MAX / 4);
	relaxed_store(&engine.is_virtual, clock == SIM_CLOCK_VIRTUAL);
	relaxed_store(&engine.is_real, clock == SIM_CLOCK_REAL);
	engine.running = true;
out:
	pthread_mutex_unlock(&engine.lock);
	return ret;
}

void sim_engine_stop(void)
{
	pthread_mutex_lock(&engine.lock);
	if (!engine.running) {
		pthread_mutex_unlock(&engine.lock);
		return;
	}
	relaxed_store(&engine.is_real, false);
	engine.stop = true;
	sim_shm_ring_self();
	if (engine.thread_runs) {
		pthread_mutex_unlock(&engine.lock);
		pthread_join(engine.thread, NULL);
		pthread_mutex_lock(&engine.lock);
		engine.thread_runs = false;
	}
	sim_heap_close();
	relaxed_store(&engine.is_virtual, false);
	engine.running = false;
	pthread_mutex_unlock(&engine.lock);
}
