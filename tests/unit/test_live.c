/* SPDX-License-Identifier: BSD-2-Clause */
/* test_live.c - the set of live addresses against a plain array of flags. */
#include "config.h"

#include "tests/cmocka_all.h"

#include "live.h"

#define NUM 4096u

static char objects[NUM][64];

static void knows_what_was_added(void **state)
{
	(void)state;
	assert_false(polycm_live(NULL));
	assert_false(polycm_live(objects[0]));
	polycm_live_remove(objects[0]);
	assert_int_equal(polycm_live_add(objects[0]), 0);
	assert_true(polycm_live(objects[0]));
	assert_false(polycm_live(objects[0] + 1));
	assert_false(polycm_live(objects[1]));
	polycm_live_remove(objects[1]);
	assert_true(polycm_live(objects[0]));
	polycm_live_remove(objects[0]);
	assert_false(polycm_live(objects[0]));
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
			polycm_live_remove(objects[i]);
		else
			assert_int_equal(polycm_live_add(objects[i]), 0);
		in[i] = !in[i];
		if (step % 4000 == 0)
			for (unsigned int k = 0; k < NUM; k++)
				assert_int_equal(polycm_live(objects[k]), in[k]);
	}
	for (unsigned int k = 0; k < NUM; k++) {
		assert_int_equal(polycm_live(objects[k]), in[k]);
		polycm_live_remove(objects[k]);
		assert_false(polycm_live(objects[k]));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(knows_what_was_added),
		cmocka_unit_test(agrees_with_an_array_of_flags),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
