/* SPDX-License-Identifier: BSD-2-Clause */
/* test_live.c - the set of live addresses against a plain array of flags. */
#include "config.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "tests/cmocka_all.h"

#include "core/base/live.h"

#define NUM 4096u

static char objects[NUM][64];

static void knows_what_was_added(void **state)
{
	(void)state;
	assert_false(polycm_live(&polycm_live_objects, NULL));
	assert_false(polycm_live(&polycm_live_objects, objects[0]));
	assert_false(polycm_live_remove(&polycm_live_objects, objects[0]));
	assert_false(polycm_live_remove(&polycm_live_objects, NULL));
	assert_int_equal(polycm_live_add(&polycm_live_objects, objects[0]), 0);
	assert_true(polycm_live(&polycm_live_objects, objects[0]));
	assert_false(polycm_live(&polycm_live_objects, objects[0] + 1));
	assert_false(polycm_live(&polycm_live_objects, objects[1]));
	polycm_live_remove(&polycm_live_objects, objects[1]);
	assert_true(polycm_live(&polycm_live_objects, objects[0]));
	assert_true(polycm_live_remove(&polycm_live_objects, objects[0]));
	assert_false(polycm_live(&polycm_live_objects, objects[0]));
}

/* A fixed walk that fills, empties and refills, so that probe chains form and break. */
static void agrees_with_an_array_of_flags(void **state)
{
	bool in[NUM] = { false };
	uint32_t walk = 1;

	(void)state;
	for (unsigned int step = 0; step < 60000; step++) {
		unsigned int i;

		walk = walk * 1664525u + 1013904223u;
		i = (walk >> 12) % (step / 15000 % 2 ? NUM / 8 : NUM);
		if (in[i])
			polycm_live_remove(&polycm_live_objects, objects[i]);
		else
			assert_int_equal(polycm_live_add(&polycm_live_objects, objects[i]), 0);
		in[i] = !in[i];
		if (step % 4000 == 0)
			for (unsigned int k = 0; k < NUM; k++)
				assert_int_equal(polycm_live(&polycm_live_objects, objects[k]), in[k]);
	}
	for (unsigned int k = 0; k < NUM; k++) {
		assert_int_equal(polycm_live(&polycm_live_objects, objects[k]), in[k]);
		polycm_live_remove(&polycm_live_objects, objects[k]);
		assert_false(polycm_live(&polycm_live_objects, objects[k]));
	}
}

static atomic_bool done;

/* Objects of odd number come, go and move others up; those divisible by 4 stay, the rest never come. */
static void *change(void *arg)
{
	(void)arg;
	for (unsigned int round = 0; round < 60; round++) {
		for (unsigned int i = 1; i < NUM; i += 2)
			if (polycm_live_add(&polycm_live_objects, objects[i]))
				abort();
		for (unsigned int i = 1; i < NUM; i += 2)
			polycm_live_remove(&polycm_live_objects, objects[i]);
	}
	atomic_store(&done, true);
	return NULL;
}

static void is_right_while_others_change_it(void **state)
{
	unsigned int wrong = 0;
	pthread_t thread;

	(void)state;
	for (unsigned int i = 0; i < NUM; i += 4)
		assert_int_equal(polycm_live_add(&polycm_live_objects, objects[i]), 0);
	assert_int_equal(pthread_create(&thread, NULL, change, NULL), 0);
	while (!atomic_load(&done))
		for (unsigned int i = 0; i < NUM; i += 2)
			wrong += polycm_live(&polycm_live_objects, objects[i]) != (i % 4 == 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_equal(wrong, 0);
	for (unsigned int i = 0; i < NUM; i += 4)
		polycm_live_remove(&polycm_live_objects, objects[i]);
}

static unsigned int value, wrong;

static void *come_and_go(void *arg)
{
	(void)arg;
	for (unsigned int round = 0; round < 20000; round++) {
		value = 1;
		if (polycm_live_add(&polycm_live_objects, &value))
			abort();
		if (!polycm_live_remove(&polycm_live_objects, &value))
			abort();
		/* As if its memory were another's now. */
		value = 2;
	}
	atomic_store(&done, true);
	return NULL;
}

static bool is_odd(const void *object)
{
	return *(const unsigned int *)object == 1;
}

static bool is_even(const void *object)
{
	wrong += *(const unsigned int *)object != 1;
	return false;
}

/* Who asks about an object finds it as it is, and keeps it until it has the answer. */
static void objects_stay_while_they_are_asked_about(void **state)
{
	pthread_t thread;

	(void)state;
	value = 1;
	assert_false(polycm_live_ask(&polycm_live_objects, &value, is_odd));
	assert_false(polycm_live_ask(&polycm_live_objects, NULL, is_odd));
	assert_int_equal(polycm_live_add(&polycm_live_objects, &value), 0);
	assert_true(polycm_live_ask(&polycm_live_objects, &value, is_odd));
	assert_false(polycm_live_remove_if(&polycm_live_objects, &value, is_even));
	assert_true(polycm_live(&polycm_live_objects, &value));
	assert_true(polycm_live_remove_if(&polycm_live_objects, &value, is_odd));
	assert_false(polycm_live_remove_if(&polycm_live_objects, &value, is_odd));

	atomic_store(&done, false);
	assert_int_equal(pthread_create(&thread, NULL, come_and_go, NULL), 0);
	while (!atomic_load(&done)) {
		(void)polycm_live_ask(&polycm_live_objects, &value, is_even);
		(void)polycm_live_remove_if(&polycm_live_objects, &value, is_even);
	}
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_equal(wrong, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(knows_what_was_added),
		cmocka_unit_test(agrees_with_an_array_of_flags),
		cmocka_unit_test(is_right_while_others_change_it),
		cmocka_unit_test(objects_stay_while_they_are_asked_about),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
