/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * preempt.c - a member of a system (tests/programs/preempt.sh) whose threads only take locks: a place
 * at which they can be held up.  With the name of a case; prints ok.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "member.h"

static pthread_mutex_t first = PTHREAD_MUTEX_INITIALIZER, second = PTHREAD_MUTEX_INITIALIZER;

/* In the other order than lock_orders(), and without a system call between the two. */
static void *second_first(void *arg)
{
	CHECK(!pthread_mutex_lock(&second) && !pthread_mutex_lock(&first));
	CHECK(!pthread_mutex_unlock(&first) && !pthread_mutex_unlock(&second));
	return arg;
}

/* A deadlock if one of the threads is held up between its two locks. */
static void lock_orders(void)
{
	pthread_t thread;

	CHECK(!pthread_create(&thread, NULL, second_first, NULL));
	CHECK(!pthread_mutex_lock(&first) && !pthread_mutex_lock(&second));
	CHECK(!pthread_mutex_unlock(&second) && !pthread_mutex_unlock(&first));
	CHECK(!pthread_join(thread, NULL));
}

static pthread_spinlock_t spin;

static void *spin_too(void *arg)
{
	CHECK(!pthread_spin_lock(&spin) && !pthread_spin_unlock(&spin));
	return arg;
}

/* Who has it sleeps; who wants it has no call to make. */
static void spins(void)
{
	pthread_t thread;

	CHECK(!pthread_spin_init(&spin, PTHREAD_PROCESS_PRIVATE) && !pthread_spin_lock(&spin));
	CHECK(!pthread_create(&thread, NULL, spin_too, NULL));
	usleep(1000);
	CHECK(!pthread_spin_unlock(&spin) && !pthread_join(thread, NULL));
}

static int is_set;

static void *locked(void *arg)
{
	usleep(1000);
	CHECK(!pthread_mutex_lock(&first));
	is_set = 1;
	CHECK(!pthread_mutex_unlock(&first));
	return arg;
}

/* A loop that calls nobody but takes a lock. */
static void locks(void)
{
	pthread_t thread;
	int done = 0;

	CHECK(!pthread_create(&thread, NULL, locked, NULL));
	while (!done) {
		CHECK(!pthread_mutex_lock(&first));
		done = is_set;
		CHECK(!pthread_mutex_unlock(&first));
	}
	CHECK(!pthread_join(thread, NULL));
}

static const struct member_case cases[] = {
	{ "lock_orders", lock_orders }, { "spins", spins }, { "locks", locks },
};

int main(int argc, char **argv)
{
	return member_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
