/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_clocks.c - a program's own clocks under the virtual clock, and waits
 * until a time of theirs for what another thread does.
 */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <string.h>
#include <time.h>

#include "no_tsan.h"
#include "steps.h"

#define MS UINT64_C(1000000)
#define FOR_EVER UINT64_MAX
#define ROUNDS 20

static struct timespec *timespec_of(uint64_t ns, struct timespec *time)
{
	time->tv_sec = (time_t)(ns / 1000000000u);
	time->tv_nsec = (long)(ns % 1000000000u);
	return time;
}

static int by_poll(int fd, int ms)
{
	struct pollfd pfd = { .fd = fd, .events = POLLIN };

	return poll(&pfd, 1, ms);
}

static void virtual_sleep(uint64_t ns)
{
	struct timespec time;

	assert_int_equal(nanosleep(timespec_of(ns, &time), NULL), 0);
}

static uint64_t clock_ns(clockid_t clock)
{
	struct timespec now;

	assert_int_equal(clock_gettime(clock, &now), 0);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* From one fabric to the next, too, and they never go back. */
static void clocks_show_virtual_time(void **state)
{
	uint64_t before, began, last = 0;

	(void)state;
	for (int round = 0; round < 3; round++) {
		struct pair pair;

		assert_in_range(clock_ns(CLOCK_MONOTONIC), last, UINT64_MAX);
		pair_open(&pair, ROCE, RDMA_PS_TCP);
		assert_in_range(clock_ns(CLOCK_MONOTONIC), last, UINT64_MAX);
		began = pair_now();
		before = clock_ns(CLOCK_MONOTONIC);
		virtual_sleep(86400000 * MS + 1);
		assert_int_equal(clock_ns(CLOCK_MONOTONIC) - before, 86400000 * MS + 1);
		assert_int_equal(pair_now() - began, 86400000 * MS + 1);
		last = clock_ns(CLOCK_MONOTONIC);
		pair_close(&pair);
	}
}

/* Whether something is left that could happen or not, and at the same time in each run. */
static void loops_that_ask_for_the_time_end(void **state)
{
	static const struct {
		const char *what;
		bool polls, resolves;
	} loops[] = {
		{ "asks for nothing else", false, false },
		{ "asks for nothing else, and something comes", false, true },
		{ "polls", true, false },
		{ "polls, and something comes", true, true },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(loops); i++) {
		uint64_t ended = 0;

		print_message("%s\n", loops[i].what);
		for (int round = 0; round < 2; round++) {
			struct pair pair;
			uint64_t deadline, began;

			pair_open(&pair, ROCE, RDMA_PS_TCP);
			began = pair_now();
			deadline = clock_ns(CLOCK_REALTIME) + 1000 * MS;
			if (loops[i].resolves)
				assert_int_equal(rdma_resolve_addr(pair.client, NULL,
								   step_sa(SERVER_ADDRESS,
									   SERVER_PORT),
								   2000), 0);
			while (clock_ns(CLOCK_REALTIME) < deadline)
				if (loops[i].polls)
					by_poll(pair.client_channel->fd, 0);
			assert_in_range(pair_now() - began, 1000 * MS, 1010 * MS);
			if (round)
				assert_int_equal(pair_now() - began, ended);
			ended = pair_now() - began;
			if (loops[i].resolves)
				pair_take(pair.client_channel, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
			pair_close(&pair);
		}
	}
}

/* ------------------------------------------------------------------------
 * Waits for what another thread does.
 */

static struct {
	pthread_mutex_t mutex;
	pthread_cond_t cond;
	sem_t sem;
	bool happened;
} shared = { .mutex = PTHREAD_MUTEX_INITIALIZER, .cond = PTHREAD_COND_INITIALIZER };

static struct timespec clock_in(uint64_t ns)
{
	struct timespec time;

	return *timespec_of(clock_ns(CLOCK_REALTIME) + ns, &time);
}

static int by_condition(uint64_t ns)
{
	struct timespec until = clock_in(ns);
	int err = 0;

	pthread_mutex_lock(&shared.mutex);
	while (!shared.happened && !err)
		err = pthread_cond_timedwait(&shared.cond, &shared.mutex, &until);
	shared.happened = false;
	pthread_mutex_unlock(&shared.mutex);
	return err;
}

static void tell_by_condition(void)
{
	pthread_mutex_lock(&shared.mutex);
	shared.happened = true;
	pthread_cond_signal(&shared.cond);
	pthread_mutex_unlock(&shared.mutex);
}

static int by_semaphore(uint64_t ns)
{
	struct timespec until = clock_in(ns);

	return sem_timedwait(&shared.sem, &until) ? errno : 0;
}

static void tell_by_semaphore(void)
{
	sem_post(&shared.sem);
}

static int by_mutex(uint64_t ns)
{
	struct timespec until = clock_in(ns);
	int err = pthread_mutex_timedlock(&shared.mutex, &until);

	if (!err)
		pthread_mutex_unlock(&shared.mutex);
	return err;
}

static const struct {
	const char *name;
	int (*wait)(uint64_t ns);
	void (*tell)(void);
} meetings[] = {
	{ "condition", by_condition, tell_by_condition },
	{ "semaphore", by_semaphore, tell_by_semaphore },
};

struct waiter {
	pthread_t thread;
	uint64_t ns;
	uint64_t ended;
};

static void start(struct waiter *waiter, void *(*run)(void *arg))
{
	assert_int_equal(pthread_create(&waiter->thread, NULL, run, waiter), 0);
}

static void join(struct waiter *waiter)
{
	assert_int_equal(pthread_join(waiter->thread, NULL), 0);
}

struct teller {
	struct waiter waiter;
	size_t meeting;
};

static void *tell_later(void *arg)
{
	struct teller *self = arg;

	virtual_sleep(self->waiter.ns);
	self->waiter.ended = pair_now();
	meetings[self->meeting].tell();
	return NULL;
}

static void what_another_thread_does_ends_a_wait(void **state)
{
	struct pair pair;

	(void)state;
	assert_int_equal(sem_init(&shared.sem, 0, 0), 0);
	pair_open(&pair, ROCE, RDMA_PS_TCP);
	for (size_t m = 0; m < ARRAY_LEN(meetings); m++)
		for (int round = 0; round < ROUNDS; round++) {
			struct teller teller = { .waiter.ns = 2000 * MS, .meeting = m };
			uint64_t before = pair_now();

			assert_int_equal(pthread_create(&teller.waiter.thread, NULL, tell_later,
							&teller), 0);
			/* Too soon, and then in time. */
			assert_int_equal(meetings[m].wait(1500 * MS), ETIMEDOUT);
			assert_int_equal(pair_now(), before + 1500 * MS);
			assert_int_equal(meetings[m].wait(3600000 * MS), 0);
			join(&teller.waiter);
			assert_int_equal(pair_now(), before + 2000 * MS);
			assert_int_equal(teller.waiter.ended, before + 2000 * MS);
		}
	pair_close(&pair);
	sem_destroy(&shared.sem);
}

static void *hold_mutex(void *arg)
{
	struct waiter *self = arg;

	pthread_mutex_lock(&shared.mutex);
	virtual_sleep(self->ns);
	self->ended = pair_now();
	pthread_mutex_unlock(&shared.mutex);
	return NULL;
}

static void a_mutex_that_another_thread_holds(void **state)
{
	struct pair pair;

	(void)state;
	pair_open(&pair, ROCE, RDMA_PS_TCP);
	for (int round = 0; round < ROUNDS; round++) {
		struct waiter holder = { .ns = 2000 * MS };
		uint64_t before = pair_now();

		start(&holder, hold_mutex);
		while (pthread_mutex_trylock(&shared.mutex) != EBUSY) {
			pthread_mutex_unlock(&shared.mutex);
			sched_yield();
		}
		assert_int_equal(by_mutex(1500 * MS), ETIMEDOUT);
		assert_int_equal(pair_now(), before + 1500 * MS);
		assert_int_equal(by_mutex(3600000 * MS), 0);
		join(&holder);
		assert_int_equal(pair_now(), before + 2000 * MS);
	}
	pair_close(&pair);
}

static void unlock_shared(void *unused)
{
	(void)unused;
	pthread_mutex_unlock(&shared.mutex);
}

static void *wait_on_condition(void *arg)
{
	struct timespec until = clock_in(FOR_EVER / 4);
	int err = 0;

	pthread_mutex_lock(&shared.mutex);
	pthread_cleanup_push(unlock_shared, NULL);
	while (!err)
		err = pthread_cond_timedwait(&shared.cond, &shared.mutex, &until);
	pthread_cleanup_pop(1);
	return arg;
}

/* The mutex is there for who cleans up, and then free. */
static void conditions_can_be_cancelled(void **state)
{
	struct pair pair;
	void *result;

	(void)state;
	pair_open(&pair, ROCE, RDMA_PS_TCP);
	for (int round = 0; round < ROUNDS; round++) {
		struct waiter waiter = { .ns = 0 };

		start(&waiter, wait_on_condition);
		for (int i = 0; i < round * 10; i++)
			sched_yield();
		assert_int_equal(pthread_cancel(waiter.thread), 0);
		assert_int_equal(pthread_join(waiter.thread, &result), 0);
		assert_ptr_equal(result, PTHREAD_CANCELED);
		assert_int_equal(pthread_mutex_trylock(&shared.mutex), 0);
		pthread_mutex_unlock(&shared.mutex);
	}
	assert_errno(by_poll(pair.client_channel->fd, -1), EDEADLK);
	pair_close(&pair);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(clocks_show_virtual_time),
		cmocka_unit_test(loops_that_ask_for_the_time_end),
		cmocka_unit_test(what_another_thread_does_ends_a_wait),
		cmocka_unit_test(a_mutex_that_another_thread_holds),
		cmocka_unit_test(conditions_can_be_cancelled),
	};

	return cmocka_run_group_tests(tests, pair_group_setup, NULL);
}
