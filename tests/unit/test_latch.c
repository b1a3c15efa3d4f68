/* SPDX-License-Identifier: BSD-2-Clause */
/* test_latch.c - the lock of four bytes: alone, with threads about, with threads that wait for it. */
#include "config.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>

#include "tests/cmocka_all.h"

#include "core/base/latch.h"

#define NUM_THREADS 4u
#define NUM_ROUNDS 20000u

static struct polycm_latch latch;
static unsigned int counter;

static uint32_t word(void)
{
	return __atomic_load_n(&latch.word, __ATOMIC_RELAXED);
}

static void is_taken_and_given(void **state)
{
	(void)state;
	assert_int_equal(word(), POLYCM_LATCH_FREE);
	polycm_latch_take(&latch);
	assert_int_equal(word(), POLYCM_LATCH_TAKEN);
	polycm_latch_give(&latch);
	assert_int_equal(word(), POLYCM_LATCH_FREE);
}

static void *count(void *arg)
{
	(void)arg;
	for (unsigned int i = 0; i < NUM_ROUNDS; i++) {
		polycm_latch_take(&latch);
		counter++;
		polycm_latch_give(&latch);
	}
	return NULL;
}

static void lets_in_one_at_a_time(void **state)
{
	pthread_t threads[NUM_THREADS];

	(void)state;
	counter = 0;
	for (unsigned int i = 0; i < NUM_THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, count, NULL), 0);
	for (unsigned int i = 0; i < NUM_THREADS; i++)
		assert_int_equal(pthread_join(threads[i], NULL), 0);
	assert_int_equal(counter, NUM_THREADS * NUM_ROUNDS);
	assert_int_equal(word(), POLYCM_LATCH_FREE);
}

/* Counts once it has the latch; what its errno is afterwards. */
static void *wait_for_it(void *ret_errno)
{
	errno = ENOTTY;
	polycm_latch_take(&latch);
	counter++;
	polycm_latch_give(&latch);
	*(int *)ret_errno = errno;
	return NULL;
}

static void all_who_wait_get_it(void **state)
{
	pthread_t threads[NUM_THREADS];
	int errors[NUM_THREADS] = { 0 };

	(void)state;
	counter = 0;
	polycm_latch_take(&latch);
	for (unsigned int i = 0; i < NUM_THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, wait_for_it, &errors[i]), 0);
	while (word() != POLYCM_LATCH_WANTED)
		sched_yield();
	assert_int_equal(counter, 0);
	polycm_latch_give(&latch);
	for (unsigned int i = 0; i < NUM_THREADS; i++) {
		assert_int_equal(pthread_join(threads[i], NULL), 0);
		assert_int_equal(errors[i], ENOTTY);
	}
	assert_int_equal(counter, NUM_THREADS);
	assert_int_equal(word(), POLYCM_LATCH_FREE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(is_taken_and_given),
		cmocka_unit_test(lets_in_one_at_a_time),
		cmocka_unit_test(all_who_wait_get_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
