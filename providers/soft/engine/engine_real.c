/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * engine/engine_real.c - the real clock.  Timers that are due when they are armed fire when the
 * thread that armed them releases the lock, as a softirq would.  The NIC thread, or a thread
 * that polls, fires the others and receives packets from other processes.
 *
 * The NIC thread sleeps on the doorbell of our slot.  While the program polls ("hot") senders
 * need not ring (shm/doorbell.h), and the thread only checks at intervals whether the program
 * still polls (trust.h).
 */
#include "config.h"

#include <errno.h>
#include <sched.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "providers/soft/shm/doorbell.h"
#include "engine_internal.h"
#include "hand_over.h"
#include "heap.h"
#include "held_signals.h"
#include "threads.h"
#include "turns.h"

#define POLLS_PER_LOOK 16u	/* polls for each time that the clock is read */
#define LATE SIM_MS(20)		/* a timer that fires so late */
#define POLLS_PER_YIELD 256u	/* its peer may wait for the processor that polls */
#define MAX_SKIPPED 31u		/* yields after which one is tried again where nobody waits */
#define YIELDED SIM_US(2)	/* a yield that takes longer has let somebody run */
#define NIC_SLICE SIM_US(100)	/* the shortest that Linux has */
#define PATIENCE_MIN SIM_US(2)	/* how long a thread spins before it sleeps */
#define PATIENCE_MAX SIM_US(50)

void sim_settle(void)
{
	if (sim_engine_hooks.settle)
		sim_engine_hooks.settle();
}

static void settle(void)
{
	if (relaxed_load(&sim_engine.owes))
		sim_settle();
}

static void receive(void)
{
	if (sim_engine_hooks.receive)
		sim_engine_hooks.receive();
}

/* The process was stopped, or had no processor: what came meanwhile comes before its time-out. */
static void fire_due(void)
{
	uint64_t now = sim_now();

	if (now > LATE && sim_heap_deadline() < now - LATE) {
		receive();
		if (sim_engine_hooks.catch_up)
			sim_engine_hooks.catch_up();
	}
	engine_fire_due_at(now, ENGINE_FIRE_MAX);
}

bool sim_is_only_thread(void)
{
	int own = sim_engine.thread_runs ? 1 : 0;

	return !(own && pthread_equal(pthread_self(), sim_engine.thread)) &&
	       sim_threads_count() == 1 + own;
}

void engine_real_start(void)
{
	sim_turns_find();
	relaxed_store(&sim_engine.polls, 0);
	sim_poll_row_end(&sim_engine.row);
	relaxed_store(&sim_engine.hot, false);
	relaxed_store(&sim_engine.patience, PATIENCE_MAX / 4);
}

/* A timer is armed, so no call can fail: log the error. */
static void start_or_log(void)
{
	int r = sim_engine_need_thread();

	if (r < 0 && !sim_engine.no_thread_logged) {
		sim_engine.no_thread_logged = true;
		sim_core->log(POLYCM_LOG_ERROR, NULL,
			      "the simulator cannot start its thread: %s; no event comes until it "
			      "can: raise the limit on threads or memory", strerror(-r));
	}
}

void engine_real_settle(void)
{
	unsigned int budget = ENGINE_FIRE_MAX;

	if (!relaxed_load(&sim_engine.is_real))
		return;
	while (sim_engine.due && budget)
		budget -= engine_fire_due(budget);
	if (sim_heap_deadline() == SIM_NEVER)
		return;
	if (!sim_engine.thread_runs)
		start_or_log();
	if (sim_engine.asleep && sim_heap_deadline() < sim_engine.sleep_until) {
		sim_engine.sleep_until = sim_heap_deadline();
		sim_segment_ring(sim_segment_self());
	}
}

int engine_real_wait(bool (*done)(void *arg), void *arg, uint64_t deadline)
{
	int r;

	for (;;) {
		r = sim_engine_need_thread();
		engine_real_settle();
		if (done(arg))
			return 0;
		if (r < 0)
			return r;
		if (deadline != SIM_NEVER && deadline <= engine_monotonic())
			return -ETIMEDOUT;
		engine_wait_changed(deadline);
	}
}

/* ------------------------------------------------------------------------
 * Programs that wait or poll.
 */

/*
 * Spin for mail before the thread sleeps, since waking it costs more; the longer, the more
 * often mail came in time.
 */
static bool watch(void)
{
	uint64_t patience = relaxed_load(&sim_engine.patience);
	bool came = sim_shm_watch(engine_monotonic() + patience);

	if (came && patience < PATIENCE_MAX)
		relaxed_store(&sim_engine.patience, patience * 2);
	else if (!came && patience > PATIENCE_MIN)
		relaxed_store(&sim_engine.patience, patience / 2);
	return came;
}

int engine_real_idle(void)
{
	bool came;
	int r;

	if (relaxed_load(&sim_engine.owes)) {
		sim_lock();
		settle();
		sim_unlock();
	}
	came = watch();
	/* The poller stops: from now on senders must ring. */
	sim_poll_row_end(&sim_engine.row);
	if (!came && relaxed_load(&sim_engine.hot)) {
		relaxed_store(&sim_engine.hot, false);
		sim_segment_ring(sim_segment_self());
	}
	sim_lock();
	receive();
	if (!came && sim_engine_hooks.unread)
		sim_shm_remind_now(sim_engine_hooks.unread);
	if (sim_engine_hooks.idle)
		sim_engine_hooks.idle();
	r = sim_engine_need_thread();
	sim_unlock();
	return r < 0 && !came ? r : came;
}

/* So many polls until now. */
static void note_polls(unsigned int polls, uint64_t now)
{
	bool steady = sim_poll_row_add(&sim_engine.row, polls, now);

	if (!steady && !relaxed_load(&sim_engine.hot))
		return;
	sim_shm_polled(now);
	if (relaxed_load(&sim_engine.hot))
		return;
	relaxed_store(&sim_engine.hot, true);
	sim_segment_ring(sim_segment_self());
}

/* So many polls found nothing since the last call.  True: a timer is due. */
static bool look(unsigned int polls)
{
	uint64_t now = sim_now();

	note_polls(polls, now);
	sim_shm_remind(now);
	return relaxed_load(&sim_engine.next) <= now;
}

void sim_polled(unsigned int found)
{
	unsigned int polls;

	if (!relaxed_load(&sim_engine.is_real))
		return;
	polls = relaxed_load(&sim_engine.polls);
	relaxed_store(&sim_engine.polls, polls + found);
	if (polls % POLLS_PER_LOOK + found >= POLLS_PER_LOOK)
		note_polls(found < POLLS_PER_LOOK ? POLLS_PER_LOOK : found, sim_now());
}

void sim_owe(bool on)
{
	if (relaxed_load(&sim_engine.owes) != on)
		relaxed_store(&sim_engine.owes, on);
}

unsigned int sim_poll_turn(void)
{
	return relaxed_load(&sim_engine.hot) ? relaxed_load(&sim_engine.turn) | 1u : 0;
}

void sim_fetch_on(bool on)
{
	relaxed_store(&sim_engine.fetches, on);
}

/* Where nobody waits for the processor, a yield costs as much as a message. */
static void yield(void)
{
	static atomic_uint skip, skipped;
	uint64_t began;

	if (relaxed_load(&skipped) < relaxed_load(&skip)) {
		relaxed_store(&skipped, relaxed_load(&skipped) + 1);
		return;
	}
	relaxed_store(&skipped, 0);
	began = sim_now();
	sched_yield();
	if (sim_now() - began > YIELDED)
		relaxed_store(&skip, 0);
	else if (relaxed_load(&skip) < MAX_SKIPPED)
		relaxed_store(&skip, relaxed_load(&skip) * 2 + 1);
}

void sim_progress(void)
{
	unsigned int polls;
	int cancel_state;
	bool due;

	if (!relaxed_load(&sim_engine.is_real))
		return;
	polls = relaxed_load(&sim_engine.polls) + 1;
	relaxed_store(&sim_engine.polls, polls);
	due = polls % POLLS_PER_LOOK == 0 && look(POLLS_PER_LOOK);
	relaxed_store(&sim_engine.turn, relaxed_load(&sim_engine.turn) + 2);
	if (!due && !sim_shm_pending() && !relaxed_load(&sim_engine.fetches) &&
	    !relaxed_load(&sim_engine.owes)) {
		if (polls % POLLS_PER_YIELD == 0)
			yield();
		return;
	}
	cancel_state = engine_forbid_cancel();
	engine_enter();
	if (pthread_mutex_trylock(&sim_engine.engine_lock)) {
		engine_left();
		engine_allow_cancel(cancel_state);
		/* The holder does the work that we poll for, and may wait for our processor. */
		sched_yield();
		return;
	}
	take_over(&sim_engine.engine_lock);
	sim_engine.cancel_state = cancel_state;
	settle();
	if (sim_shm_pending())
		sim_shm_learn(true);
	fire_due();
	receive();
	if (relaxed_load(&sim_engine.fetches))
		sim_engine_hooks.fetch();
	/* That may have taken long, and has read the clock. */
	if (relaxed_load(&sim_engine.hot)) {
		sim_shm_polled(sim_doorbell_lately());
		if (sim_engine_hooks.polled)
			sim_engine_hooks.polled();
	}
	sim_unlock();
}

/* ------------------------------------------------------------------------
 * The NIC thread.
 */

/* True: a sender rang. */
static bool nic_sleep(bool quiet, uint64_t look_at)
{
	uint64_t deadline = sim_heap_deadline();
	uint32_t ticket = sim_shm_prepare_wait(quiet);
	const bool looks = quiet ? sim_heap_only_looks() && !sim_shm_pending() :
				   deadline != SIM_NEVER && sim_heap_only_looks();
	const struct turn_tells *turns = looks ? sim_turns() : NULL;

	if (quiet && deadline > look_at)
		deadline = look_at;
	sim_engine.asleep = true;
	sim_engine.sleep_until = deadline;
	hand_over(&sim_engine.engine_lock);
	pthread_mutex_unlock(&sim_engine.engine_lock);
	if (turns)
		turns->next_wait_looks();
	sim_shm_wait(ticket, deadline);
	pthread_mutex_lock(&sim_engine.engine_lock);
	take_over(&sim_engine.engine_lock);
	sim_engine.asleep = false;
	return sim_shm_awake();
}

/* struct sched_attr, which not every C library has. */
struct scheduling {
	uint32_t size, policy;
	uint64_t flags;
	int32_t nice;
	uint32_t priority;
	uint64_t runtime, deadline, period;
};

/*
 * A thread with short slices (Linux 6.12) preempts threads that spin when it is woken, and does
 * not wait for the end of their slices.  It gets no more processor time.  Older kernels
 * ignore it.
 */
static void take_turns_early(void)
{
	struct scheduling how = { .size = sizeof(how) };
	pid_t self = gettid();

	if (syscall(SYS_sched_getattr, self, &how, sizeof(how), 0) || how.policy != SCHED_OTHER)
		return;
	how.size = sizeof(how);
	how.runtime = NIC_SLICE;
	(void)syscall(SYS_sched_setattr, self, &how, 0);
}

/* May the NIC thread leave what comes in to a program that polls? */
static bool relies(struct sim_trust *trust, bool rung)
{
	uint64_t now = sim_now(), polled_at = sim_shm_polled_at();
	bool missed = trust->length && sim_shm_pending() &&
		      (rung || (int64_t)(now - polled_at) > (int64_t)SIM_TRUST_MIN);

	if (missed)
		sim_shm_learn(false);
	if (relaxed_load(&sim_engine.hot) && sim_trust_go_on(trust, now, polled_at, missed))
		return true;
	if (trust->length) {
		relaxed_store(&sim_engine.hot, false);
		sim_poll_row_end(&sim_engine.row);
	}
	trust->length = 0;
	return false;
}

static void *nic_thread(void *arg)
{
	const struct turn_tells *turns = sim_turns();
	struct sim_trust trust = { 0 };
	bool rung = false;

	(void)arg;
	/* Another thread would do it through /proc, whose entries cost time when the process ends. */
	pthread_setname_np(pthread_self(), "polycm-nic");
	if (turns)
		turns->serves();
	take_turns_early();
	engine_enter();		/* it calls the core only with the lock held */
	pthread_mutex_lock(&sim_engine.engine_lock);
	take_over(&sim_engine.engine_lock);
	while (!sim_engine.stop) {
		bool quiet = relies(&trust, rung);

		fire_due();
		receive();
		settle();
		rung = !sim_engine.due && nic_sleep(quiet, trust.look_at);
	}
	pthread_mutex_unlock(&sim_engine.engine_lock);
	return NULL;
}

int sim_engine_need_thread(void)
{
	sigset_t old;
	int error;

	if (!relaxed_load(&sim_engine.is_real))
		return 0;
	if (__builtin_expect(sim_engine_hooks.need != NULL, 0)) {
		error = sim_engine_hooks.need();
		if (error < 0)
			return error;
	}
	if (sim_engine.thread_runs)
		return 0;
	hold_signals(&old);
	error = pthread_create(&sim_engine.thread, NULL, nic_thread, NULL);
	release_signals(&old);
	if (error)
		return sim_refuse(-error, "the simulator cannot start its thread: raise the limit on "
					  "threads or memory");
	sim_engine.thread_runs = true;
	sim_engine.no_thread_logged = false;
	return 0;
}
