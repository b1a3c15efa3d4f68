/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Timers on the core's own thread, and a clock that a provider installs.  No
 * test depends on how long anything takes: a timer that waits holds the thread
 * up while others become due.
 */
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/cmocka_all.h"

#include "core/base/clock.h"

#define FAR_AWAY UINT64_MAX

static sem_t entered, go;

static void wait_for(sem_t *semaphore)
{
	while (sem_wait(semaphore))
		assert_int_equal(errno, EINTR);
}

static void hold_up(void *arg)
{
	int *done = arg;

	sem_post(&entered);
	wait_for(&go);
	if (done)
		*done = 1;
}

/* The thread is busy until somebody posts `go'. */
static struct polycm_timer *occupy(int *done)
{
	struct polycm_timer *timer;

	assert_int_equal(polycm_timer_start(0, hold_up, done, &timer), 0);
	wait_for(&entered);
	return timer;
}

#define NUM 300

struct shot {
	struct polycm_timer *timer;
	uint64_t deadline;
	unsigned int number;
};

static struct shot shots[NUM];
static unsigned int fired[NUM], num_fired;

static void fire(void *arg)
{
	fired[num_fired++] = ((struct shot *)arg)->number;
}

static void last(void *arg)
{
	sem_post(arg);
}

static int by_deadline(const void *a, const void *b)
{
	const struct shot *one = a, *other = b;

	if (one->deadline != other->deadline)
		return one->deadline < other->deadline ? -1 : 1;
	return one->number < other->number ? -1 : 1;
}

/* Equal deadlines, cancelled ones in between: all over the heap. */
static void timers_fire_in_order(void **state)
{
	struct polycm_timer *holder = occupy(NULL), *end;
	uint64_t now = polycm_now_ns();
	uint32_t random = 1;
	unsigned int kept = 0;

	(void)state;
	num_fired = 0;
	for (unsigned int i = 0; i < NUM; i++) {
		random = random * 1664525 + 1013904223;
		shots[i].number = i;
		shots[i].deadline = (random >> 16) % 100;
		assert_int_equal(polycm_timer_start(shots[i].deadline, fire, &shots[i],
						    &shots[i].timer), 0);
	}
	for (unsigned int i = 0; i < NUM; i += 3) {
		polycm_timer_cancel(shots[i].timer);
		shots[i].timer = NULL;
	}
	assert_int_equal(polycm_timer_start(now, last, &entered, &end), 0);
	sem_post(&go);
	wait_for(&entered);

	polycm_timer_cancel(end);
	polycm_timer_cancel(holder);
	for (unsigned int i = 0; i < NUM; i++)
		polycm_timer_cancel(shots[i].timer);
	qsort(shots, NUM, sizeof(shots[0]), by_deadline);
	for (unsigned int i = 0; i < NUM; i++)
		if (shots[i].timer)
			assert_int_equal(fired[kept++], shots[i].number);
	assert_int_equal(num_fired, kept);
	assert_int_equal(kept, NUM - NUM / 3);
}

static void never(void *arg)
{
	(void)arg;
	abort();
}

static void cancelled_timers_do_not_fire(void **state)
{
	struct polycm_timer *holder = occupy(NULL), *due, *later, *end;

	(void)state;
	assert_int_equal(polycm_timer_start(FAR_AWAY, never, NULL, &later), 0);
	assert_int_equal(polycm_timer_start(0, never, NULL, &due), 0);
	assert_int_equal(polycm_timer_start(1, last, &entered, &end), 0);
	polycm_timer_cancel(due);
	polycm_timer_cancel(later);
	sem_post(&go);
	wait_for(&entered);
	polycm_timer_cancel(end);
	polycm_timer_cancel(holder);
	polycm_timer_cancel(NULL);
}

static void *let_go(void *unused)
{
	(void)unused;
	sem_post(&go);
	return NULL;
}

static void cancelling_waits_for_the_function(void **state)
{
	struct polycm_timer *timer;
	pthread_t thread;
	int done = 0;

	(void)state;
	timer = occupy(&done);
	assert_int_equal(pthread_create(&thread, NULL, let_go, NULL), 0);
	polycm_timer_cancel(timer);
	assert_int_equal(done, 1);
	pthread_join(thread, NULL);
}

static void look_at_signals(void *arg)
{
	sigset_t *blocked = arg;

	pthread_sigmask(SIG_SETMASK, NULL, blocked);
	sem_post(&entered);
}

static void the_thread_blocks_signals(void **state)
{
	struct polycm_timer *timer;
	sigset_t blocked;

	(void)state;
	assert_int_equal(polycm_timer_start(0, look_at_signals, &blocked, &timer), 0);
	wait_for(&entered);
	polycm_timer_cancel(timer);
	assert_true(sigismember(&blocked, SIGINT));
	assert_true(sigismember(&blocked, SIGALRM));
	assert_true(sigismember(&blocked, SIGCHLD));
	assert_false(sigismember(&blocked, SIGSEGV));
	assert_false(sigismember(&blocked, SIGBUS));
	pthread_sigmask(SIG_SETMASK, NULL, &blocked);
	assert_false(sigismember(&blocked, SIGINT));
}

/* ThreadSanitizer does not let a child of fork() have threads. */
#ifndef __SANITIZE_THREAD__
static void timers_of_a_child_fire(void **state)
{
	struct polycm_timer *inherited, *timer;
	pid_t child;
	int status;
	sem_t end;

	(void)state;
	assert_int_equal(polycm_timer_start(FAR_AWAY, never, NULL, &inherited), 0);
	assert_int_equal(sem_init(&end, 0, 0), 0);
	child = fork();
	assert_true(child >= 0);
	if (!child) {
		if (polycm_timer_start(0, last, &end, &timer))
			_exit(1);
		wait_for(&end);
		polycm_timer_cancel(timer);
		polycm_timer_cancel(inherited);
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	assert_int_equal(polycm_timer_start(0, last, &end, &timer), 0);
	wait_for(&end);
	polycm_timer_cancel(timer);
	polycm_timer_cancel(inherited);
	sem_destroy(&end);
}
#endif

static struct {
	struct polycm_timer *timer;
	unsigned int fired;
} repeated;

static void fire_again(void *unused)
{
	(void)unused;
	if (++repeated.fired < 3)
		assert_int_equal(polycm_timer_again(repeated.timer, repeated.fired == 2), 0);
	else
		sem_post(&entered);
}

static void a_timer_sets_itself_again(void **state)
{
	(void)state;
	memset(&repeated, 0, sizeof(repeated));
	assert_int_equal(polycm_timer_start(0, fire_again, NULL, &repeated.timer), 0);
	wait_for(&entered);
	polycm_timer_cancel(repeated.timer);
	assert_int_equal(repeated.fired, 3);
}

static void hold_up_again(void *arg)
{
	hold_up(arg);
	assert_int_equal(polycm_timer_again(repeated.timer, FAR_AWAY), 0);
}

static void cancelling_ends_a_timer_that_sets_itself(void **state)
{
	pthread_t thread;
	int done = 0;

	(void)state;
	assert_int_equal(polycm_timer_start(0, hold_up_again, &done, &repeated.timer), 0);
	wait_for(&entered);
	assert_int_equal(pthread_create(&thread, NULL, let_go, NULL), 0);
	polycm_timer_cancel(repeated.timer);
	assert_int_equal(done, 1);
	pthread_join(thread, NULL);
}

static void a_deadline_ahead_is_waited_for(void **state)
{
	uint64_t deadline = polycm_now_ns() + 2000000;
	struct polycm_timer *timer;

	(void)state;
	assert_int_equal(polycm_timer_start(deadline, last, &entered, &timer), 0);
	wait_for(&entered);
	assert_true(polycm_now_ns() >= deadline);
	polycm_timer_cancel(timer);
}

/* ------------------------------------------------------------------------
 * An installed clock.
 */

static struct {
	uint64_t now;
	uint64_t deadline;
	void (*fn)(void *arg);
	void *arg;
	struct polycm_timer *cancelled;
	int idle;
	int start_result;
} theirs;

static uint64_t their_now(void *ctx)
{
	assert_ptr_equal(ctx, &theirs);
	return theirs.now;
}

static int their_start(void *ctx, uint64_t deadline_ns, void (*fn)(void *arg), void *arg,
		       struct polycm_timer **ret_timer)
{
	assert_ptr_equal(ctx, &theirs);
	theirs.deadline = deadline_ns;
	theirs.fn = fn;
	theirs.arg = arg;
	*ret_timer = (struct polycm_timer *)&theirs.deadline;
	return theirs.start_result;
}

static void their_cancel(void *ctx, struct polycm_timer *timer)
{
	assert_ptr_equal(ctx, &theirs);
	theirs.cancelled = timer;
}

static int their_idle(void *ctx)
{
	assert_ptr_equal(ctx, &theirs);
	return theirs.idle;
}

static uint64_t other_now(void *ctx)
{
	(void)ctx;
	return 0;
}

static struct polycm_clock their_clock(void)
{
	return (struct polycm_clock){
		.size = sizeof(struct polycm_clock),
		.now_ns = their_now,
		.timer_start = their_start,
		.timer_cancel = their_cancel,
		.idle = their_idle,
	};
}

static void incomplete_clocks_are_refused(void **state)
{
	struct polycm_clock clock = their_clock();

	(void)state;
	assert_int_equal(polycm_clock_install(NULL, &theirs), -EINVAL);
	clock.size = offsetof(struct polycm_clock, timer_cancel);
	assert_int_equal(polycm_clock_install(&clock, &theirs), -EINVAL);
	clock = their_clock();
	clock.now_ns = NULL;
	assert_int_equal(polycm_clock_install(&clock, &theirs), -EINVAL);
	clock = their_clock();
	clock.timer_start = NULL;
	assert_int_equal(polycm_clock_install(&clock, &theirs), -EINVAL);
	clock = their_clock();
	clock.timer_cancel = NULL;
	assert_int_equal(polycm_clock_install(&clock, &theirs), -EINVAL);
	assert_int_equal(polycm_clock_idle(), 0);
}

static void an_installed_clock_owns_time(void **state)
{
	struct polycm_clock clock = their_clock(), other = their_clock();
	struct polycm_timer *before, *timer;

	(void)state;
	assert_int_equal(polycm_timer_start(FAR_AWAY, never, NULL, &before), 0);
	assert_int_equal(polycm_clock_install(&clock, &theirs), 0);
	assert_int_equal(polycm_clock_install(&clock, &theirs), 0);
	assert_int_equal(polycm_clock_install(&clock, &clock), -EBUSY);
	other.now_ns = other_now;
	assert_int_equal(polycm_clock_install(&other, &theirs), -EBUSY);

	theirs.now = 4711;
	assert_int_equal(polycm_now_ns(), 4711);
	theirs.idle = -EDEADLK;
	assert_int_equal(polycm_clock_idle(), -EDEADLK);

	assert_int_equal(polycm_timer_start(5000, last, &entered, &timer), 0);
	assert_int_equal(theirs.deadline, 5000);
	theirs.fn(theirs.arg);
	wait_for(&entered);
	polycm_timer_cancel(timer);
	assert_ptr_equal(theirs.cancelled, &theirs.deadline);

	theirs.start_result = -ENOMEM;
	assert_int_equal(polycm_timer_start(6000, last, &entered, &timer), -ENOMEM);
	assert_null(timer);

	/* One of the time before is still the thread's. */
	theirs.cancelled = NULL;
	polycm_timer_cancel(before);
	assert_null(theirs.cancelled);
}

static int setup(void **state)
{
	(void)state;
	return sem_init(&entered, 0, 0) || sem_init(&go, 0, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(timers_fire_in_order),
		cmocka_unit_test(cancelled_timers_do_not_fire),
		cmocka_unit_test(cancelling_waits_for_the_function),
		cmocka_unit_test(a_timer_sets_itself_again),
		cmocka_unit_test(cancelling_ends_a_timer_that_sets_itself),
		cmocka_unit_test(the_thread_blocks_signals),
#ifndef __SANITIZE_THREAD__
		cmocka_unit_test(timers_of_a_child_fire),
#endif
		cmocka_unit_test(a_deadline_ahead_is_waited_for),
		cmocka_unit_test(incomplete_clocks_are_refused),
		cmocka_unit_test(an_installed_clock_owns_time),
	};

	return cmocka_run_group_tests(tests, setup, NULL);
}
