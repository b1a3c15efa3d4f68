/* SPDX-License-Identifier: BSD-2-Clause */
/* test_timers_real.c - a program's timers where real time goes by, too: no two runs are the same. */
#include <pthread.h>
#include <stdio.h>
#include <sys/wait.h>

#include "no_tsan.h"
#include "pair.h"
#include "timers.h"

/* Registered before all that polycm registers, so the last one called, with its locks held. */
static volatile bool raises;

static void in_fork(void)
{
	if (raises)
		raise(SIGUSR1);
}

static void set_in_handler(int number)
{
	handler(number);
	alarm(1000);
}

static void *set_timerfds(void *arg)
{
	const bool *stop = arg;
	int fd = timer_fd(TFD_NONBLOCK, DAY, 0);
	struct itimerspec time = every(DAY, 0);

	while (!__atomic_load_n(stop, __ATOMIC_RELAXED))
		timerfd_settime(fd, 0, &time, NULL);
	close(fd);
	return NULL;
}

static void fork_and_wait(void)
{
	pid_t child = fork();
	int status;

	if (!child)
		_exit(0);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

/* While another thread sets timers, and where a handler does that in the middle of it. */
static void timers_are_set_while_the_program_forks(void **state)
{
	struct sigaction action = { .sa_handler = set_in_handler };
	bool stop = false;
	struct pair pair;
	pthread_t thread;
	timer_t timer;

	(void)state;
	assert_int_equal(pthread_atfork(in_fork, in_fork, in_fork), 0);
	assert_int_equal(timer_create(CLOCK_MONOTONIC, NULL, &timer), 0);
	assert_int_equal(timer_delete(timer), 0);
	pair_open(&pair, ROCE, RDMA_PS_TCP);
	assert_int_equal(pthread_create(&thread, NULL, set_timerfds, &stop), 0);
	for (int i = 0; i < 100; i++)
		fork_and_wait();
	__atomic_store_n(&stop, true, __ATOMIC_RELAXED);
	assert_int_equal(pthread_join(thread, NULL), 0);

	signals = 0;
	assert_int_equal(sigaction(SIGUSR1, &action, NULL), 0);
	raises = true;
	fork_and_wait();
	raises = false;
	assert_in_range(signals, 1, 2);
	assert_in_range(alarm(0), 1, 1000);
	signal(SIGUSR1, SIG_DFL);
	pair_close(&pair);
}

/* What was set before virtual time began goes on in it, and in real time when that is over. */
static void timers_go_from_real_to_virtual_time_and_back(void **state)
{
	struct itimerspec left;
	struct pair pair;
	int fd;

	(void)state;
	fd = timer_fd(0, DAY, DAY);
	pair_open(&pair, ROCE, RDMA_PS_TCP);
	assert_int_equal(take(fd), 1);
	assert_in_range(pair_now(), DAY - 60 * S, DAY);
	virtual_sleep(DAY - 1);
	pair_close(&pair);
	assert_int_equal(timerfd_gettime(fd, &left), 0);
	assert_in_range(ns_of(left.it_value), 0, DAY);
	assert_int_equal(by_poll(fd, 30000), 1);
	assert_int_equal(take(fd), 1);
	close(fd);
}

/* In real time a signal comes as well, where nobody lets time move. */
static void a_program_that_computes_gets_its_signal(void **state)
{
	struct pair pair;

	(void)state;
	pair_open(&pair, ROCE, RDMA_PS_TCP);
	handle(SIGALRM, 0);
	assert_int_equal(ualarm(1000, 0), 0);
	/* ThreadSanitizer holds signals back until a call of the C library. */
	while (!signals)
		fflush(stdout);
	assert_int_equal(pair_now(), 0);
	/* It does not come again in virtual time. */
	virtual_sleep(DAY);
	assert_int_equal(signals, 1);
	signal(SIGALRM, SIG_DFL);
	pair_close(&pair);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		/* First: it is about who watches for fork() first. */
		cmocka_unit_test(timers_are_set_while_the_program_forks),
		cmocka_unit_test(timers_go_from_real_to_virtual_time_and_back),
		cmocka_unit_test(a_program_that_computes_gets_its_signal),
	};

	return cmocka_run_group_tests(tests, pair_group_setup, NULL);
}
