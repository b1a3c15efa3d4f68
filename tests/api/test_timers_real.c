/* SPDX-License-Identifier: BSD-2-Clause */
/* test_timers_real.c - a program's timers where real time goes by, too: no two runs are the same. */
#include "tests/api/no_tsan.h"
#include "tests/api/pair.h"
#include "tests/api/timers.h"

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
	while (!signals)
		;
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
		cmocka_unit_test(timers_go_from_real_to_virtual_time_and_back),
		cmocka_unit_test(a_program_that_computes_gets_its_signal),
	};

	return cmocka_run_group_tests(tests, pair_group_setup, NULL);
}
