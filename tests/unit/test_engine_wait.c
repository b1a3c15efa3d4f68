/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The engine's part of waits that are none of polycm's calls, and who of
 * several threads prevents that a wait counts as a deadlock.
 */
#include "config.h"

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "providers/soft/engine/engine.h"
#include "providers/soft/engine/threads.h"
#include "sim_fake.h"
#include "tests/cmocka_all.h"

static struct sim_timer probe, other;
static unsigned int fired, looks, look_until;
static uint64_t last_fired;

static void fire(struct sim_timer *timer)
{
	(void)timer;
	fired++;
	last_fired = sim_now();
}

static bool look(void *arg)
{
	(void)arg;
	return ++looks >= look_until;
}

static void arm(struct sim_timer *timer, uint64_t deadline)
{
	sim_lock();
	sim_timer_init(timer, fire);
	sim_timer_arm(timer, deadline);
	sim_unlock();
}

static int start_virtual(void **state)
{
	(void)state;
	sim_fake_init();
	fired = looks = 0;
	look_until = UINT32_MAX;
	return sim_engine_start(SIM_CLOCK_VIRTUAL, 1);
}

static int stop(void **state)
{
	(void)state;
	sim_engine_stop();
	return 0;
}

static int wait_until(uint64_t deadline, bool only_ours)
{
	const struct polycm_clock_wait wait = {
		.size = sizeof(wait),
		.deadline_ns = deadline,
		.look = look,
		.only_ours = only_ours,
	};

	return sim_clock_wait(NULL, &wait);
}

/* After each thing that happens the kernel is asked once. */
static void waits_end_by_looks_and_by_deadlines(void **state)
{
	static const struct {
		uint64_t timers[2], deadline;
		unsigned int look_until;
		int ret;
		uint64_t now;
		unsigned int fired, looks;
	} cases[] = {
		{ { 10, 20 }, SIM_NEVER, 1, 0, 0, 0, 1 },
		{ { 10, 20 }, SIM_NEVER, 2, 0, 10, 1, 2 },
		{ { 10, 20 }, SIM_NEVER, 3, 0, 20, 2, 3 },
		{ { 10, 20 }, SIM_NEVER, 4, -EDEADLK, 20, 2, 3 },
		{ { 10, 20 }, 15, 4, -ETIMEDOUT, 15, 1, 3 },
		{ { 10, 20 }, 15, 3, 0, 15, 1, 3 },
		{ { 10, 20 }, 10, 9, -ETIMEDOUT, 10, 1, 3 },	/* what was armed first is first */
		{ { 10, 20 }, 0, 9, -ETIMEDOUT, 0, 0, 2 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		print_message("case %zu\n", i);
		stop(state);
		assert_int_equal(start_virtual(state), 0);
		arm(&probe, cases[i].timers[0]);
		arm(&other, cases[i].timers[1]);
		look_until = cases[i].look_until;
		assert_int_equal(wait_until(cases[i].deadline, false), cases[i].ret);
		assert_int_equal(sim_now(), cases[i].now);
		assert_int_equal(fired, cases[i].fired);
		assert_int_equal(looks, cases[i].looks);
	}
}

/* The time-out of a wait that has ended is none. */
static void waits_leave_nothing_behind(void **state)
{
	(void)state;
	for (int i = 0; i < 3; i++) {
		look_until = looks + 1;
		assert_int_equal(wait_until(1000, false), 0);
	}
	look_until = UINT32_MAX;
	assert_int_equal(wait_until(SIM_NEVER, true), -EDEADLK);
	assert_int_equal(sim_now(), 0);
}

static unsigned int virtual_inside;

static void ask_inside(struct sim_timer *timer)
{
	(void)timer;
	fired++;
	virtual_inside += sim_clock_virtual(NULL);
}

/* A signal handler that interrupts the engine at its work waits really, not for the engine. */
static void what_interrupts_the_engine_has_real_time(void **state)
{
	(void)state;
	arm(&probe, 10);
	probe.fn = ask_inside;
	virtual_inside = 0;
	assert_true(sim_clock_virtual(NULL));
	assert_int_equal(sim_advance(10), 0);
	assert_int_equal(fired, 1);
	assert_int_equal(virtual_inside, 0);
	assert_true(sim_clock_virtual(NULL));
	assert_true(sim_lock_within(0));
	assert_false(sim_clock_virtual(NULL));
	sim_unlock();
	assert_true(sim_clock_virtual(NULL));
}

/* ------------------------------------------------------------------------
 * Programs that ask for the time, again and again.
 */

/* Places on a stack: one that was called by the other is below it. */
#define OUTER ((const void *)(uintptr_t)0x7000)
#define INNER ((const void *)(uintptr_t)0x6000)

static void time_stands_still_for_some_reads(void **state)
{
	(void)state;
	arm(&probe, 1);
	for (int round = 0; round < 3; round++) {
		for (int i = 0; i < 64; i++)
			assert_int_equal(sim_clock_read(NULL, OUTER), 0);
		/* A call of the simulator's ends the row. */
		sim_lock();
		sim_unlock();
	}
	assert_int_equal(fired, 0);
}

/* Each takes a microsecond, and what is due meanwhile happens at its time. */
static void a_loop_that_reads_ends(void **state)
{
	static const struct {
		uint64_t until, late;
		unsigned int reads;
	} cases[] = {
		{ SIM_US(1), 0, 70 },
		{ SIM_US(100), SIM_US(2), 200 },
		{ SIM_MS(10), SIM_US(160), 10300 },
		{ SIM_MS(3000), SIM_MS(1), 3001100 },
	};
	unsigned int reads;

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		stop(state);
		assert_int_equal(start_virtual(state), 0);
		arm(&probe, cases[i].until / 2);
		arm(&other, cases[i].until - 1);
		for (reads = 1; sim_clock_read(NULL, OUTER) < cases[i].until; reads++)
			if (fired == 1)
				assert_int_equal(last_fired, cases[i].until / 2);
		assert_int_equal(fired, 2);
		assert_int_equal(last_fired, cases[i].until - 1);
		assert_in_range(sim_now(), cases[i].until, cases[i].until + cases[i].late);
		assert_in_range(reads, 64, cases[i].reads);
	}
}

/* The outermost place counts; one that is further in may be a signal's handler. */
static void reads_further_in_move_nothing(void **state)
{
	unsigned int reads;

	(void)state;
	sim_clock_read(NULL, OUTER);
	for (int i = 0; i < 1000; i++)
		assert_int_equal(sim_clock_read(NULL, INNER), 0);
	/* A loop that reads in several places ends no less. */
	for (reads = 1; sim_clock_read(NULL, OUTER) < SIM_MS(1); reads++)
		sim_clock_read(NULL, INNER);
	assert_in_range(reads, 64, 1200);
	/* And so does one further in, to which a program has gone for good. */
	for (reads = 1; sim_clock_read(NULL, INNER) < SIM_MS(2); reads++)
		;
	assert_in_range(reads, 1000, 2300);
}

/* Who polls for a time has not missed it by far, and is there for what happens. */
static void polling_for_a_time_ends(void **state)
{
	static const uint64_t times[] = { SIM_MS(1), SIM_MS(1000), SIM_MS(3600000) };
	unsigned int polls;

	for (size_t i = 0; i < ARRAY_SIZE(times); i++) {
		stop(state);
		assert_int_equal(start_virtual(state), 0);
		arm(&probe, times[i] - 1);
		arm(&other, times[i] * 1000);
		for (polls = 0; sim_clock_read(NULL, OUTER) < times[i]; polls++)
			sim_spin();
		assert_int_equal(fired, 1);
		assert_int_equal(last_fired, times[i] - 1);
		assert_in_range(sim_now(), times[i], times[i] + times[i] / 125);
		assert_in_range(sim_now(), times[i], times[i] + SIM_MS(20));
		assert_in_range(polls, 100, times[i] / SIM_MS(20) * 16 + 100000);
	}
	/* Polls that find something do not count, but reads do. */
	for (polls = 0; sim_clock_read(NULL, OUTER) < times[2] + SIM_MS(30); polls++)
		assert_in_range(polls, 0, 100000);
	/* Without a look at a clock it is for what happens. */
	sim_lock();
	sim_unlock();
	for (polls = 0; fired < 2; polls++)
		sim_spin();
	assert_int_equal(polls, 16);
	assert_int_equal(sim_now(), times[2] * 1000);
}

/* A signal handler that interrupts the engine sees the time, and leaves it as it is. */
static void reads_inside_the_engine_move_nothing(void **state)
{
	(void)state;
	arm(&probe, 1);
	assert_true(sim_lock_within(0));
	for (int i = 0; i < 10000; i++)
		assert_int_equal(sim_clock_read(NULL, OUTER), 0);
	sim_unlock();
	assert_int_equal(fired, 0);
}

static bool stop_engine(void *arg)
{
	sim_engine_stop();
	if (arg)
		assert_int_equal(sim_engine_start(SIM_CLOCK_VIRTUAL, 1), 0);
	return false;
}

/* A test drops its fabric, and may make another one, while a thread waits. */
static void time_may_go(void **state)
{
	struct polycm_clock_wait wait = {
		.size = sizeof(wait),
		.deadline_ns = 1000,
		.look = stop_engine,
	};

	assert_int_equal(sim_clock_wait(NULL, &wait), -ENODEV);
	assert_int_equal(sim_clock_wait(NULL, &wait), -ENODEV);
	assert_int_equal(start_virtual(state), 0);
	wait.arg = &wait;
	assert_int_equal(sim_clock_wait(NULL, &wait), -ENODEV);
	assert_true(sim_clock_virtual(NULL));
}

/* ------------------------------------------------------------------------
 * Other threads.
 */

static pthread_barrier_t barrier;
static int gate[2];

/* Who reads a pipe may be let go by anybody, so as far as the engine knows it may still act. */
static void *late_armer(void *arg)
{
	char letter;

	assert_int_equal(read(gate[0], &letter, 1), 1);
	arm(arg, 1000);
	pthread_barrier_wait(&barrier);
	return NULL;
}

static void a_thread_that_may_act_prevents_deadlock(void **state)
{
	pthread_t thread;

	(void)state;
	assert_int_equal(pipe(gate), 0);
	assert_int_equal(pthread_barrier_init(&barrier, NULL, 2), 0);
	assert_int_equal(pthread_create(&thread, NULL, late_armer, &probe), 0);
	for (int i = 0; i < 3; i++)
		assert_int_equal(sim_idle(NULL), 1);	/* nothing happened, but look again */
	assert_int_equal(wait_until(SIM_NEVER, false), -EAGAIN);
	assert_int_equal(sim_now(), 0);
	assert_int_equal(write(gate[1], "x", 1), 1);
	while (!fired)
		assert_int_equal(sim_idle(NULL), 1);
	assert_int_equal(sim_now(), 1000);
	pthread_barrier_wait(&barrier);
	pthread_join(thread, NULL);
	pthread_barrier_destroy(&barrier);
	close(gate[0]);
	close(gate[1]);
	assert_int_equal(sim_idle(NULL), -EDEADLK);
}

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static bool go_on;

static void *pass_barrier(void *arg)
{
	(void)arg;
	pthread_barrier_wait(&barrier);
	return NULL;
}

static void *pass_condition(void *arg)
{
	(void)arg;
	pthread_mutex_lock(&mutex);
	while (!go_on)
		pthread_cond_wait(&cond, &mutex);
	pthread_mutex_unlock(&mutex);
	return NULL;
}

static void *pass_join(void *arg)
{
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, pass_condition, arg), 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
	return NULL;
}

static int until_deadlock(void)
{
	int ret = 1;

	/* A thread may not be where it waits yet. */
	for (int i = 0; ret > 0 || ret == -EAGAIN; i++) {
		assert_in_range(i, 0, 100000);
		ret = i % 2 ? sim_idle(NULL) : wait_until(SIM_NEVER, i % 3);
	}
	return ret;
}

/* Those that only a thread of the program can wake are as if they were not there. */
static void threads_that_wait_for_threads_do_not(void **state)
{
	pthread_t threads[3];

	(void)state;
	go_on = false;
	assert_int_equal(pthread_barrier_init(&barrier, NULL, 2), 0);
	assert_int_equal(pthread_create(&threads[0], NULL, pass_barrier, NULL), 0);
	assert_int_equal(pthread_create(&threads[1], NULL, pass_condition, NULL), 0);
	assert_int_equal(pthread_create(&threads[2], NULL, pass_join, NULL), 0);
	assert_int_equal(until_deadlock(), -EDEADLK);
	assert_int_equal(sim_now(), 0);
	pthread_barrier_wait(&barrier);
	pthread_mutex_lock(&mutex);
	go_on = true;
	pthread_cond_broadcast(&cond);
	pthread_mutex_unlock(&mutex);
	for (size_t i = 0; i < ARRAY_SIZE(threads); i++)
		pthread_join(threads[i], NULL);
	pthread_barrier_destroy(&barrier);
}

static int idle_result;

static void *idle_until_it_fires(void *unused)
{
	bool over = false;
	int ret = 1;

	while (!over && ret > 0) {
		ret = sim_idle(NULL);
		sim_lock();
		over = fired;
		sim_unlock();
	}
	idle_result = ret;
	return unused;
}

/* Moving time ends by itself: whoever does so may act afterwards. */
static void a_thread_that_moves_time_prevents_deadlock(void **state)
{
	pthread_t thread;

	(void)state;
	assert_int_equal(pthread_create(&thread, NULL, idle_until_it_fires, NULL), 0);
	for (int i = 0; i < 100; i++)
		assert_int_equal(sim_advance(10), 0);
	assert_int_equal(sim_now(), 1000);
	/* What comes later the other thread leaves alone until we let it. */
	arm(&probe, 2000);
	for (uint64_t i = 1; i <= 99; i++) {
		assert_int_equal(sim_advance(10), 0);
		assert_int_equal(sim_now(), 1000 + 10 * i);
	}
	assert_int_equal(sim_advance(10), 0);
	pthread_join(thread, NULL);
	assert_int_equal(fired, 1);
	assert_int_equal(idle_result, 1);
}

static uint64_t seen_late;

static void *wait_long(void *deadline)
{
	(void)wait_until(*(const uint64_t *)deadline, false);
	__atomic_store_n(&seen_late, sim_now(), __ATOMIC_SEQ_CST);
	return NULL;
}

static void *compute(void *unused)
{
	for (volatile unsigned int i = 0; i < 1000000; i++)
		;
	return unused;
}

/* Another thread may move time further than a run's limit while the run waits for a third one. */
static void time_never_goes_back(void **state)
{
	pthread_t threads[2];
	uint64_t deadline;

	(void)state;
	arm(&probe, SIM_NEVER - 1);
	for (int i = 0; i < 20; i++) {
		deadline = sim_now() + SIM_MS(1);
		assert_int_equal(pthread_create(&threads[0], NULL, wait_long, &deadline), 0);
		assert_int_equal(pthread_create(&threads[1], NULL, compute, NULL), 0);
		assert_int_equal(sim_run(10, NULL, NULL), -ETIMEDOUT);
		assert_in_range(sim_now(), __atomic_load_n(&seen_late, __ATOMIC_SEQ_CST), SIM_NEVER);
		assert_int_equal(sim_advance(SIM_MS(1)), 0);
		pthread_join(threads[0], NULL);
		pthread_join(threads[1], NULL);
		assert_in_range(sim_now(), seen_late, SIM_NEVER);
	}
}

static sem_t ended;
static bool ended_meanwhile;

/* Sleeps for a moment, as asking for what has timed out does, unless the other's wait ends. */
static bool look_slowly(void *time)
{
	struct timespec until;

	if (sim_now() < *(const uint64_t *)time)
		return false;
	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_nsec += (long)SIM_MS(20);
	if (until.tv_nsec >= (long)SIM_MS(1000)) {
		until.tv_sec++;
		until.tv_nsec -= (long)SIM_MS(1000);
	}
	ended_meanwhile = !sem_clockwait(&ended, CLOCK_MONOTONIC, &until);
	return false;
}

static void *wait_for_later(void *deadline)
{
	(void)wait_until(*(const uint64_t *)deadline, false);
	sem_post(&ended);
	return NULL;
}

static void time_stands_still_while_a_wait_looks(void **state)
{
	uint64_t soon = 1000, later = 2000;
	const struct polycm_clock_wait wait = {
		.size = sizeof(wait),
		.deadline_ns = soon,
		.look = look_slowly,
		.arg = &soon,
	};
	pthread_t thread;

	(void)state;
	assert_int_equal(sem_init(&ended, 0, 0), 0);
	assert_int_equal(pthread_create(&thread, NULL, wait_for_later, &later), 0);
	assert_int_equal(sim_clock_wait(NULL, &wait), -ETIMEDOUT);
	assert_false(ended_meanwhile);
	assert_int_equal(sim_now(), soon);
	pthread_join(thread, NULL);
	assert_int_equal(sim_now(), later);
	sem_destroy(&ended);
}

static void *wait_for_main(void *arg)
{
	sem_wait(arg);
	return NULL;
}

static void one_thread_needs_no_look(void **state)
{
	(void)state;
	sim_threads_folder = "/nowhere";
	assert_int_equal(wait_until(1000, true), -ETIMEDOUT);
	sim_threads_folder = "/proc/self/task";
	assert_int_equal(sim_now(), 1000);
}

/* Whom the system does not show, time would run past. */
static void unseen_threads_stop_time(void **state)
{
	struct rlimit before;
	pthread_t thread;
	sem_t end;

	(void)state;
	assert_int_equal(sem_init(&end, 0, 0), 0);
	assert_int_equal(pthread_create(&thread, NULL, wait_for_main, &end), 0);
	sim_threads_folder = "/nowhere";
	assert_int_equal(wait_until(2000, true), -ENOTSUP);
	assert_int_equal(sim_advance(1000), -ENOTSUP);
	assert_int_equal(sim_run(1000, NULL, NULL), -ENOTSUP);
	assert_int_equal(sim_now(), 0);
	sim_threads_folder = "/proc/self/task";
	assert_int_equal(wait_until(2000, true), -ETIMEDOUT);

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &(struct rlimit){ 0, before.rlim_max }), 0);
	assert_int_equal(wait_until(3000, true), -ENOTSUP);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	assert_int_equal(sim_now(), 2000);
	assert_int_equal(wait_until(3000, true), -ETIMEDOUT);

	sem_post(&end);
	pthread_join(thread, NULL);
	sem_destroy(&end);
}

#define VIRTUAL(test) cmocka_unit_test_setup_teardown(test, start_virtual, stop)

int main(void)
{
	const struct CMUnitTest tests[] = {
		/* First: the process has one thread until then. */
		VIRTUAL(one_thread_needs_no_look),
		VIRTUAL(waits_end_by_looks_and_by_deadlines),
		VIRTUAL(waits_leave_nothing_behind),
		VIRTUAL(what_interrupts_the_engine_has_real_time),
		VIRTUAL(time_stands_still_for_some_reads),
		VIRTUAL(a_loop_that_reads_ends),
		VIRTUAL(reads_further_in_move_nothing),
		VIRTUAL(polling_for_a_time_ends),
		VIRTUAL(reads_inside_the_engine_move_nothing),
		VIRTUAL(time_may_go),
		VIRTUAL(a_thread_that_may_act_prevents_deadlock),
		VIRTUAL(threads_that_wait_for_threads_do_not),
		VIRTUAL(a_thread_that_moves_time_prevents_deadlock),
		VIRTUAL(time_never_goes_back),
		VIRTUAL(time_stands_still_while_a_wait_looks),
		VIRTUAL(unseen_threads_stop_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
