/* SPDX-License-Identifier: BSD-2-Clause */
/* Children of a program whose other threads make and end ids at that moment. */
#include "config.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "pair.h"

static bool making;

static void *make_ids(void *channel)
{
	struct rdma_cm_id *id;

	while (__atomic_load_n(&making, __ATOMIC_ACQUIRE))
		if (!rdma_create_id(channel, &id, NULL, RDMA_PS_TCP))
			rdma_destroy_id(id);
	return NULL;
}

/* A child that hangs is ended by its alarm. */
static _Noreturn void make_own(void)
{
	struct rdma_event_channel *channel;
	struct rdma_cm_id *id;

	alarm(20);
	channel = rdma_create_event_channel();
	if (!channel || rdma_create_id(channel, &id, NULL, RDMA_PS_TCP))
		_exit(1);
	_exit(rdma_destroy_id(id) != 0);
}

/* What a thread of the parent holds at that moment nobody gives back in the child. */
static void children_make_ids_of_their_own(void **state)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	pthread_t makers[2];
	int status = 0;
	pid_t child;

	(void)state;
	assert_non_null(channel);
#ifdef POLYCM_SANITIZED
	/* A sanitizer's allocator takes no locks for fork(): a child may hang in malloc(). */
	skip();
#endif
	__atomic_store_n(&making, true, __ATOMIC_RELEASE);
	for (int i = 0; i < 2; i++)
		assert_int_equal(pthread_create(&makers[i], NULL, make_ids, channel), 0);
	for (int i = 0; i < 300 && !status; i++) {
		child = fork();
		assert_true(child >= 0);
		if (!child)
			make_own();
		assert_int_equal(waitpid(child, &status, 0), child);
	}
	__atomic_store_n(&making, false, __ATOMIC_RELEASE);
	for (int i = 0; i < 2; i++)
		assert_int_equal(pthread_join(makers[i], NULL), 0);
	rdma_destroy_event_channel(channel);
	assert_int_equal(status, 0);
}

static int setup(void **state)
{
	return pair_group_setup(state) || setenv("POLYCM_SIM_CLOCK", "virtual", 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(children_make_ids_of_their_own),
	};

	return cmocka_run_group_tests(tests, setup, NULL);
}
