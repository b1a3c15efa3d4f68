/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * wait_fake.h - a kernel and a virtual clock for the tests of the program's own
 * waits.  Nobody really waits: the kernel counts how often it was asked, and
 * for how long; the clock has a number of steps left to take.
 */
#ifndef TESTS_UNIT_WAIT_FAKE_H
#define TESTS_UNIT_WAIT_FAKE_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "tests/cmocka_all.h"
#include "interpose/libc.h"

#define MS UINT64_C(1000000)
#define STEP (10 * MS)		/* between two things that happen */
#define OURS 600		/* descriptors that the clock owns begin here */
#define NEVER UINT32_MAX

struct scene {
	/* The clock. */
	bool is_virtual;
	uint64_t now;
	unsigned int steps;		/* things left to happen */
	int end[3];			/* what wait() returns after that, one by one; the last stays */
	unsigned int ends, spins;
	bool raises;			/* SIGUSR1, with the first step */
	void (*happens)(void);		/* with the third step, by another thread as it were */
	unsigned int reads;		/* by the program, of its clocks */
	const void *frame;		/* of the last */
	/* The kernel. */
	unsigned int ready_after;	/* so many questions it answers with 0, and then ... */
	int answer;			/* ... with so many descriptors, or a negative errno */
	unsigned int asked, at_once, slices, for_ever, passed_on;
	bool has_mask;
	sigset_t mask;
};

extern struct scene scene;
extern struct polycm_libc real_libc;

/* A new scene in virtual time. */
void begin(unsigned int ready_after, int answer, unsigned int steps);
/* cmocka's, for each test: the fakes are there, and the C library again. */
int fakes_install(void **state);
int fakes_remove(void **state);
/* Counts in signals. */
void handle_signal(void);
extern volatile sig_atomic_t signals;

#define VIRTUAL(test) cmocka_unit_test_setup_teardown(test, fakes_install, fakes_remove)

#endif
