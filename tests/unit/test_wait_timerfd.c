/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * read() of a timerfd in a signal handler, which may have interrupted whoever
 * allocates memory or holds the lock of the program's timers: it does neither.
 */
#include "config.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "tests/cmocka_all.h"

#include "core/base/clock.h"
#include "interpose/shown.h"
#include "interpose/timers.h"

#define MS UINT64_C(1000000)

/* ------------------------------------------------------------------------
 * What the C library allocates, counted while a handler runs.
 */

static volatile sig_atomic_t in_handler, allocations;

/* Sanitizers have allocators of their own. */
#ifndef POLYCM_SANITIZED
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t num, size_t size);
void *__libc_realloc(void *memory, size_t size);
void __libc_free(void *memory);

void *malloc(size_t size)
{
	allocations += in_handler;
	return __libc_malloc(size);
}

void *calloc(size_t num, size_t size)
{
	allocations += in_handler;
	return __libc_calloc(num, size);
}

void *realloc(void *memory, size_t size)
{
	allocations += in_handler;
	return __libc_realloc(memory, size);
}

void free(void *memory)
{
	allocations += in_handler;
	__libc_free(memory);
}
#endif

/* ------------------------------------------------------------------------
 * A virtual clock with timers.
 */

struct polycm_timer {
	struct polycm_timer *next;
	uint64_t deadline;
	void (*fn)(void *arg);
	void *arg;
};

static uint64_t now;
static struct polycm_timer *queue;
static unsigned int given, spins;

static uint64_t clock_now(void *ctx)
{
	(void)ctx;
	return now;
}

static int start(void *ctx, uint64_t deadline, void (*fn)(void *arg), void *arg,
		 struct polycm_timer **ret_timer)
{
	struct polycm_timer *timer = calloc(1, sizeof(*timer)), **at = &queue;

	(void)ctx;
	*timer = (struct polycm_timer){ .deadline = deadline, .fn = fn, .arg = arg };
	while (*at && (*at)->deadline <= deadline)
		at = &(*at)->next;
	timer->next = *at;
	*at = timer;
	given++;
	*ret_timer = timer;
	return 0;
}

static void take_out(struct polycm_timer *timer)
{
	struct polycm_timer **at = &queue;

	while (*at && *at != timer)
		at = &(*at)->next;
	if (*at)
		*at = timer->next;
}

static void cancel(void *ctx, struct polycm_timer *timer)
{
	(void)ctx;
	take_out(timer);
	free(timer);
	given--;
}

/* Time moves to the next timer that is not later. */
static bool step(uint64_t until)
{
	struct polycm_timer *timer = queue;

	if (!timer || timer->deadline > until)
		return false;
	take_out(timer);
	if (timer->deadline > now)
		now = timer->deadline;
	timer->fn(timer->arg);
	return true;
}

static bool is_virtual(void *ctx)
{
	(void)ctx;
	return true;
}

static int clock_wait(void *ctx, const struct polycm_clock_wait *wait)
{
	(void)ctx;
	while (!wait->look(wait->arg))
		if (!step(wait->deadline_ns))
			return wait->deadline_ns == UINT64_MAX ? -EDEADLK : -ETIMEDOUT;
	return 0;
}

static void spin(void *ctx)
{
	(void)ctx;
	spins++;
}

static bool owns_fd(void *ctx, int fd, char *text, size_t size)
{
	(void)ctx, (void)fd, (void)text, (void)size;
	return false;
}

static const struct polycm_clock virtual = {
	.size = sizeof(virtual),
	.now_ns = clock_now,
	.timer_start = start,
	.timer_cancel = cancel,
	.is_virtual = is_virtual,
	.wait = clock_wait,
	.spin = spin,
	.owns_fd = owns_fd,
};

static void pass_ms(unsigned int ms)
{
	uint64_t until = now + ms * MS;

	while (step(until))
		;
	now = until;
}

/* ------------------------------------------------------------------------
 * The handler.
 */

static int timer_fd = -1;
static struct {
	ssize_t size;
	uint64_t num;
	int error, ready;
} got;

static void handle(int number)
{
	struct pollfd pfd = { .fd = timer_fd, .events = POLLIN };

	(void)number;
	in_handler = 1;
	errno = 0;
	got.num = 0;
	got.size = read(timer_fd, &got.num, sizeof(got.num));
	got.error = errno;
	got.ready = poll(&pfd, 1, 0);
	in_handler = 0;
}

static void read_in_handler(void)
{
	allocations = 0;
	assert_int_equal(raise(SIGUSR1), 0);
	assert_int_equal(allocations, 0);
}

static void set(unsigned int ms, unsigned int interval_ms)
{
	const struct itimerspec time = {
		.it_value.tv_nsec = (long)(ms * MS), .it_interval.tv_nsec = (long)(interval_ms * MS),
	};

	assert_int_equal(timerfd_settime(timer_fd, 0, &time, NULL), 0);
}

static bool is_readable(void)
{
	struct pollfd pfd = { .fd = timer_fd, .events = POLLIN };

	return poll(&pfd, 1, 0) == 1;
}

static int begin(void **state)
{
	struct sigaction action = { .sa_handler = handle };

	(void)state;
	if (polycm_clock_install(&virtual, NULL) || sigaction(SIGUSR1, &action, NULL))
		return -1;
	polycm_shown_switch(true);
	spins = 0;
	timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK);
	return timer_fd < 0;
}

static int finish(void **state)
{
	static const struct itimerspec off;

	(void)state;
	assert_int_equal(timerfd_settime(timer_fd, 0, &off, NULL), 0);
	close(timer_fd);
	assert_int_equal(given, 0);
	return 0;
}

static void it_allocates_nothing(void **state)
{
	struct itimerspec left;

	(void)state;
	set(10, 0);
	pass_ms(35);
	assert_true(is_readable());
	read_in_handler();
	assert_int_equal(got.size, 8);
	assert_int_equal(got.num, 1);
	assert_false(is_readable());
	assert_int_equal(timerfd_gettime(timer_fd, &left), 0);
	assert_int_equal(left.it_value.tv_sec | left.it_value.tv_nsec, 0);
	assert_int_equal(given, 0);
}

/* It goes on when time is to move: where it would have been. */
static void intervals_go_on(void **state)
{
	struct pollfd pfd = { .fd = timer_fd, .events = POLLIN };
	struct itimerspec left;
	uint64_t begun = now, num;

	(void)state;
	set(10, 10);
	pass_ms(35);
	read_in_handler();
	assert_int_equal(got.num, 3);
	assert_false(is_readable());
	assert_int_equal(timerfd_gettime(timer_fd, &left), 0);
	assert_int_equal(left.it_value.tv_nsec, 5 * MS);

	/* Again and again, in and out of handlers. */
	for (unsigned int i = 4; i < 8; i++) {
		assert_int_equal(poll(&pfd, 1, -1), 1);
		assert_int_equal(now - begun, i * 10 * MS);
		if (i % 2) {
			assert_int_equal(read(timer_fd, &num, sizeof(num)), 8);
		} else {
			read_in_handler();
			num = got.num;
		}
		assert_int_equal(num, 1);
	}
	/* It goes on late where time was moved by others. */
	now += 25 * MS;
	assert_int_equal(poll(&pfd, 1, -1), 1);
	read_in_handler();
	assert_int_equal(got.num, 2);
}

/* In vain: no look of a handler's lets time move. */
static void vain_reads_do_not_move_time(void **state)
{
	uint64_t num;

	(void)state;
	set(10, 0);
	for (unsigned int i = 0; i < 100; i++) {
		read_in_handler();
		assert_int_equal(got.size, -1);
		assert_int_equal(got.error, EAGAIN);
		assert_int_equal(got.ready, 0);
	}
	assert_int_equal(spins, 0);
	assert_int_equal(read(timer_fd, &num, sizeof(num)), -1);
	assert_int_equal(errno, EAGAIN);
	assert_int_equal(spins, 1);
}

static sem_t held, done;

static void *hold_lock(void *unused)
{
	struct polycm_held timers;

	(void)unused;
	polycm_timers_lock(&timers);
	sem_post(&held);
	while (sem_wait(&done))
		;
	polycm_timers_unlock(&timers);
	return NULL;
}

/* Another thread may hold it, and wait for memory that the handler interrupted. */
static void it_takes_no_lock(void **state)
{
	const struct itimerval limit = { .it_value.tv_sec = 20 }, off = { .it_value.tv_sec = 0 };
	pthread_t thread;

	(void)state;
	set(10, 10);
	pass_ms(25);
	assert_int_equal(sem_init(&held, 0, 0), 0);
	assert_int_equal(sem_init(&done, 0, 0), 0);
	assert_int_equal(pthread_create(&thread, NULL, hold_lock, NULL), 0);
	while (sem_wait(&held))
		;
	/* In real time: else it would hang. */
	assert_int_equal(syscall(SYS_setitimer, ITIMER_REAL, &limit, NULL), 0);
	read_in_handler();
	assert_int_equal(syscall(SYS_setitimer, ITIMER_REAL, &off, NULL), 0);
	sem_post(&done);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_equal(got.num, 2);
	sem_destroy(&held);
	sem_destroy(&done);
}

/* More than a block of them, closed and made again. */
static void many_timers(void **state)
{
	enum { NUM = 60 };
	const struct itimerspec time = { .it_value.tv_nsec = (long)MS };
	int fds[NUM];
	uint64_t num;

	(void)state;
	for (unsigned int round = 0; round < 3; round++) {
		for (unsigned int i = 0; i < NUM; i++) {
			fds[i] = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK);
			assert_true(fds[i] >= 0);
			assert_int_equal(timerfd_settime(fds[i], 0, &time, NULL), 0);
		}
		pass_ms(1);
		for (unsigned int i = 0; i < NUM; i++) {
			assert_int_equal(read(fds[i], &num, sizeof(num)), 8);
			assert_int_equal(num, 1);
			close(fds[i]);
		}
	}
	polycm_timerfds_go_on();
	assert_int_equal(given, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(it_allocates_nothing, begin, finish),
		cmocka_unit_test_setup_teardown(intervals_go_on, begin, finish),
		cmocka_unit_test_setup_teardown(vain_reads_do_not_move_time, begin, finish),
		cmocka_unit_test_setup_teardown(it_takes_no_lock, begin, finish),
		cmocka_unit_test_setup_teardown(many_timers, begin, finish),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
