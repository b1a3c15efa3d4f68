/* SPDX-License-Identifier: BSD-2-Clause */
/* test_lock_order.c - the check of the order of locks, which builds with --enable-lock-order have. */
#ifndef LOCK_ORDER_CHECKED
#define LOCK_ORDER_CHECKED
#endif
#include "lock_order.h"
#include "config.h"

#include <sys/wait.h>

#include "tests/cmocka_all.h"

#include "capture.h"

static pthread_mutex_t engine_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t devices_lock = PTHREAD_MUTEX_INITIALIZER;
static struct { pthread_mutex_t id_lock; } one = { PTHREAD_MUTEX_INITIALIZER };
static struct { pthread_mutex_t id_lock; } other = { PTHREAD_MUTEX_INITIALIZER };

/* How the function ends a process of its own, and what it writes. */
static int end_of(void (*fn)(void), struct capture *capture)
{
	int status;
	pid_t pid;

	capture_begin(capture);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		fn();
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	(void)capture_end(capture);
	return status;
}

static void take_in_order(void)
{
	pthread_mutex_lock(&one.id_lock);
	pthread_mutex_lock(&other.id_lock);
	pthread_mutex_lock(&engine_lock);
	pthread_mutex_lock(&devices_lock);
	pthread_mutex_unlock(&engine_lock);
	pthread_mutex_unlock(&devices_lock);
	pthread_mutex_unlock(&one.id_lock);
	pthread_mutex_unlock(&other.id_lock);
	pthread_mutex_lock(&engine_lock);
}

static void lets_the_order_pass(void **state)
{
	static struct capture capture;

	(void)state;
	assert_int_equal(end_of(take_in_order, &capture), 0);
	assert_string_equal(capture.text, "");
}

static void note_an_unlisted_one(void)
{
	LOCK_ORDER_NOTE(unlisted);
	pthread_mutex_lock(&engine_lock);
}

static void ignores_locks_that_are_not_listed(void **state)
{
	static struct capture capture;

	(void)state;
	assert_int_equal(end_of(note_an_unlisted_one, &capture), 0);
}

static void take_in_reverse(void)
{
	pthread_mutex_lock(&devices_lock);
	pthread_mutex_lock(&engine_lock);
}

static void try_in_reverse(void)
{
	pthread_mutex_lock(&devices_lock);
	(void)pthread_mutex_trylock(&engine_lock);
}

static void take_twice(void)
{
	pthread_mutex_lock(&engine_lock);
	pthread_mutex_lock(&engine_lock);
}

static void finds(void (*fn)(void), const char *line)
{
	static struct capture capture;
	int status = end_of(fn, &capture);

	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
	assert_string_equal(capture.text, line);
}

static void finds_an_inversion(void **state)
{
	(void)state;
	finds(take_in_reverse, "lock order: a thread that holds devices_lock takes engine_lock\n");
	finds(try_in_reverse, "lock order: a thread that holds devices_lock takes engine_lock\n");
}

static void finds_a_lock_taken_twice(void **state)
{
	(void)state;
	finds(take_twice, "lock order: a thread that holds engine_lock takes engine_lock\n");
}

static void knows_locks_by_their_last_name(void **state)
{
	(void)state;
	assert_string_equal(lock_order_row(lock_order_rank("&chan->channel_lock"))->name,
			    "channel_lock");
	assert_string_equal(lock_order_row(lock_order_rank("&part[1].live_lock"))->name, "live_lock");
	assert_null(lock_order_row(lock_order_rank("&mutex"))->name);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lets_the_order_pass),
		cmocka_unit_test(ignores_locks_that_are_not_listed),
		cmocka_unit_test(finds_an_inversion),
		cmocka_unit_test(finds_a_lock_taken_twice),
		cmocka_unit_test(knows_locks_by_their_last_name),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
