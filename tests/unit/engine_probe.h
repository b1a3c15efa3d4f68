/* SPDX-License-Identifier: BSD-2-Clause */
/* engine_probe.h - set-up of the tests of the engine, and timers that write their names down. */
#ifndef TESTS_UNIT_ENGINE_PROBE_H
#define TESTS_UNIT_ENGINE_PROBE_H

#include "providers/soft/engine/engine.h"
#include "sim_fake.h"
#include "tests/cmocka_all.h"

int start_virtual(void **state);
int start_real(void **state);
int stop(void **state);

#define VIRTUAL(test) cmocka_unit_test_setup_teardown(test, start_virtual, stop)
#define REAL(test) cmocka_unit_test_setup_teardown(test, start_real, stop)

struct probe {
	struct sim_timer timer;
	char name;
	uint64_t at;			/* when it fired */
	struct probe *arms;		/* when it fires, for now */
};

/* The names of those that fired, in order. */
extern char fired[64];
extern unsigned int num_fired;

/* For all tests: some end with timers armed, which the engine touches when it stops. */
extern struct probe probes[5], probe;

/* They are named a, b, c ... */
void init_probes(struct probe *first, unsigned int num);
void arm(struct probe *one, uint64_t deadline);

/* For sim_wait(): is the unsigned int not 0? */
bool is_true(void *arg);

#endif
