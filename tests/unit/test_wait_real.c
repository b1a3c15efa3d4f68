/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The calls that programs wait in, where time is real: each goes to the C
 * library with the arguments that it was given.
 */
#include "config.h"

#include <string.h>
#include <unistd.h>

#include "core/base/clock.h"
#include "tests/cmocka_all.h"
#include "interpose/libc.h"
#include "interpose/shown.h"
#include "interpose/wait.h"

static struct polycm_libc real_libc;
static unsigned int passed_on;
static bool is_virtual;

static struct pollfd one;
static fd_set readable;
static struct epoll_event events[2];

static int pass_poll(struct pollfd *fds, nfds_t nfds, int timeout)
{
	passed_on += fds == &one && nfds == 1 && timeout == 8;
	return 42;
}

static int pass_ppoll(struct pollfd *fds, nfds_t nfds, const struct timespec *timeout,
		      const sigset_t *mask)
{
	passed_on += fds == &one && nfds == 1 && timeout && mask;
	return 42;
}

static int pass_poll_chk(struct pollfd *fds, nfds_t nfds, int timeout, size_t size)
{
	passed_on += fds == &one && nfds == 1 && timeout == 8 && size == 9;
	return 42;
}

static int pass_ppoll_chk(struct pollfd *fds, nfds_t nfds, const struct timespec *timeout,
			  const sigset_t *mask, size_t size)
{
	passed_on += fds == &one && nfds == 1 && timeout && mask && size == 9;
	return 42;
}

static int pass_select(int nfds, fd_set *in, fd_set *out, fd_set *other, struct timeval *timeout)
{
	passed_on += nfds == 7 && in == &readable && !out && !other && timeout;
	return 42;
}

static int pass_pselect(int nfds, fd_set *in, fd_set *out, fd_set *other,
			const struct timespec *timeout, const sigset_t *mask)
{
	passed_on += nfds == 7 && in == &readable && !out && !other && timeout && mask;
	return 42;
}

static int pass_epoll_wait(int set, struct epoll_event *ready, int max, int timeout)
{
	passed_on += set == 7 && ready == events && max == 2 && timeout == 8;
	return 42;
}

static int pass_epoll_pwait(int set, struct epoll_event *ready, int max, int timeout,
			    const sigset_t *mask)
{
	passed_on += set == 7 && ready == events && max == 2 && timeout == 8 && mask;
	return 42;
}

static int pass_epoll_pwait2(int set, struct epoll_event *ready, int max,
			     const struct timespec *timeout, const sigset_t *mask)
{
	passed_on += set == 7 && ready == events && max == 2 && timeout && mask;
	return 42;
}

static int pass_nanosleep(const struct timespec *time, struct timespec *left)
{
	passed_on += time && left;
	return 42;
}

static int pass_clock_nanosleep(clockid_t clock, int flags, const struct timespec *time,
				struct timespec *left)
{
	passed_on += clock == CLOCK_MONOTONIC && flags == 0 && time && left;
	return 42;
}

static int pass_usleep(useconds_t us)
{
	passed_on += us == 7;
	return 42;
}

static unsigned int pass_sleep(unsigned int seconds)
{
	passed_on += seconds == 7;
	return 42;
}

static pthread_cond_t cond;
static pthread_mutex_t mutex;
static pthread_rwlock_t rwlock;
static cnd_t cnd;
static mtx_t mtx;
static sem_t sem;
static char text[8];

static int pass_clock_gettime(clockid_t clock, struct timespec *time)
{
	passed_on += clock == CLOCK_MONOTONIC && time;
	return 42;
}

static int pass_gettimeofday(struct timeval *time, void *zone)
{
	passed_on += time && !zone;
	return 42;
}

static time_t pass_time(time_t *time)
{
	passed_on += time != NULL;
	return 42;
}

static int pass_timespec_get(struct timespec *time, int base)
{
	passed_on += time && base == TIME_UTC;
	return 42;
}

static int pass_cond_timedwait(pthread_cond_t *on, pthread_mutex_t *in, const struct timespec *until)
{
	passed_on += on == &cond && in == &mutex && until;
	return 42;
}

static int pass_cond_clockwait(pthread_cond_t *on, pthread_mutex_t *in, clockid_t clock,
			       const struct timespec *until)
{
	passed_on += on == &cond && in == &mutex && clock == CLOCK_MONOTONIC && until;
	return 42;
}

static int pass_cond_signal(pthread_cond_t *on)
{
	passed_on += on == &cond;
	return 42;
}

static int pass_cnd_timedwait(cnd_t *on, mtx_t *in, const struct timespec *until)
{
	passed_on += on == &cnd && in == &mtx && until;
	return 42;
}

static int pass_cnd_signal(cnd_t *on)
{
	passed_on += on == &cnd;
	return 42;
}

static int pass_sem_timedwait(sem_t *on, const struct timespec *until)
{
	passed_on += on == &sem && until;
	return 0;
}

static int pass_sem_clockwait(sem_t *on, clockid_t clock, const struct timespec *until)
{
	passed_on += on == &sem && clock == CLOCK_MONOTONIC && until;
	return 0;
}

static int pass_mutex_timedlock(pthread_mutex_t *on, const struct timespec *until)
{
	passed_on += on == &mutex && until;
	return 42;
}

static int pass_mutex_clocklock(pthread_mutex_t *on, clockid_t clock, const struct timespec *until)
{
	passed_on += on == &mutex && clock == CLOCK_MONOTONIC && until;
	return 42;
}

static int pass_mtx_timedlock(mtx_t *on, const struct timespec *until)
{
	passed_on += on == &mtx && until;
	return thrd_timedout;
}

static int pass_rwlock_timedlock(pthread_rwlock_t *on, const struct timespec *until)
{
	passed_on += on == &rwlock && until;
	return 42;
}

static int pass_rwlock_clocklock(pthread_rwlock_t *on, clockid_t clock, const struct timespec *until)
{
	passed_on += on == &rwlock && clock == CLOCK_MONOTONIC && until;
	return 42;
}

static int pass_mq_timedsend(mqd_t queue, const char *message, size_t len, unsigned int priority,
			     const struct timespec *until)
{
	passed_on += queue == 7 && message && len == 4 && priority == 3 && until;
	return 0;
}

static ssize_t pass_mq_timedreceive(mqd_t queue, char *message, size_t len, unsigned int *priority,
				    const struct timespec *until)
{
	passed_on += queue == 7 && message == text && len == sizeof(text) && !priority && until;
	return 42;
}

static int pass_timerfd_settime(int fd, int flags, const struct itimerspec *time,
				struct itimerspec *old)
{
	passed_on += fd == 7 && flags == TFD_TIMER_ABSTIME && time->it_value.tv_sec == 1 && !old;
	return 42;
}

/* Beside a variable of that name. */
static time_t time_of_day(time_t *seconds)
{
	return time(seconds);
}

static void pass_all_on(void)
{
	polycm_libc_found.poll = pass_poll;
	polycm_libc_found.ppoll = pass_ppoll;
	polycm_libc_found.__poll_chk = pass_poll_chk;
	polycm_libc_found.__ppoll_chk = pass_ppoll_chk;
	polycm_libc_found.select = pass_select;
	polycm_libc_found.pselect = pass_pselect;
	polycm_libc_found.epoll_wait = pass_epoll_wait;
	polycm_libc_found.epoll_pwait = pass_epoll_pwait;
	polycm_libc_found.epoll_pwait2 = pass_epoll_pwait2;
	polycm_libc_found.nanosleep = pass_nanosleep;
	polycm_libc_found.clock_nanosleep = pass_clock_nanosleep;
	polycm_libc_found.thrd_sleep = pass_nanosleep;
	polycm_libc_found.usleep = pass_usleep;
	polycm_libc_found.sleep = pass_sleep;
	polycm_libc_found.clock_gettime = pass_clock_gettime;
	polycm_libc_found.gettimeofday = pass_gettimeofday;
	polycm_libc_found.time = pass_time;
	polycm_libc_found.timespec_get = pass_timespec_get;
	polycm_libc_found.pthread_cond_timedwait = pass_cond_timedwait;
	polycm_libc_found.pthread_cond_clockwait = pass_cond_clockwait;
	polycm_libc_found.pthread_cond_signal = pass_cond_signal;
	polycm_libc_found.pthread_cond_broadcast = pass_cond_signal;
	polycm_libc_found.cnd_timedwait = pass_cnd_timedwait;
	polycm_libc_found.cnd_signal = pass_cnd_signal;
	polycm_libc_found.cnd_broadcast = pass_cnd_signal;
	polycm_libc_found.sem_timedwait = pass_sem_timedwait;
	polycm_libc_found.sem_clockwait = pass_sem_clockwait;
	polycm_libc_found.pthread_mutex_timedlock = pass_mutex_timedlock;
	polycm_libc_found.pthread_mutex_clocklock = pass_mutex_clocklock;
	polycm_libc_found.mtx_timedlock = pass_mtx_timedlock;
	polycm_libc_found.pthread_rwlock_timedrdlock = pass_rwlock_timedlock;
	polycm_libc_found.pthread_rwlock_timedwrlock = pass_rwlock_timedlock;
	polycm_libc_found.pthread_rwlock_clockrdlock = pass_rwlock_clocklock;
	polycm_libc_found.pthread_rwlock_clockwrlock = pass_rwlock_clocklock;
	polycm_libc_found.mq_timedsend = pass_mq_timedsend;
	polycm_libc_found.mq_timedreceive = pass_mq_timedreceive;
	polycm_libc_found.timerfd_settime = pass_timerfd_settime;
}

static void each_call_is_the_c_librarys(void)
{
	struct timespec time = { .tv_sec = 1 }, left;
	struct timeval timeval = { .tv_sec = 1 };
	struct itimerspec timer = { .it_value = { .tv_sec = 1 } };
	time_t seconds;
	struct polycm_libc before = polycm_libc_found;
	unsigned int n = 0;
	sigset_t mask;

	passed_on = 0;
	sigemptyset(&mask);
	pass_all_on();
#define PASSED_AS(call, result) \
	do { \
		assert_int_equal((call), result); \
		assert_int_equal(passed_on, ++n); \
	} while (0)
#define PASSED(call) PASSED_AS(call, 42)
	PASSED(poll(&one, 1, 8));
	PASSED(ppoll(&one, 1, &time, &mask));
	PASSED(__poll_chk(&one, 1, 8, 9));
	PASSED(__ppoll_chk(&one, 1, &time, &mask, 9));
	PASSED(select(7, &readable, NULL, NULL, &timeval));
	PASSED(pselect(7, &readable, NULL, NULL, &time, &mask));
	PASSED(epoll_wait(7, events, 2, 8));
	PASSED(epoll_pwait(7, events, 2, 8, &mask));
	PASSED(epoll_pwait2(7, events, 2, &time, &mask));
	PASSED(nanosleep(&time, &left));
	PASSED(clock_nanosleep(CLOCK_MONOTONIC, 0, &time, &left));
	PASSED(thrd_sleep(&time, &left));
	PASSED(usleep(7));
	PASSED(sleep(7));
	PASSED(clock_gettime(CLOCK_MONOTONIC, &left));
	PASSED(gettimeofday(&timeval, NULL));
	PASSED(time_of_day(&seconds));
	PASSED(timespec_get(&left, TIME_UTC));
	PASSED(polycm_cond_timedwait(&cond, &mutex, &time));
	PASSED(pthread_cond_clockwait(&cond, &mutex, CLOCK_MONOTONIC, &time));
	PASSED(polycm_cond_signal(&cond));
	PASSED(polycm_cond_broadcast(&cond));
	PASSED(cnd_timedwait(&cnd, &mtx, &time));
	PASSED(cnd_signal(&cnd));
	PASSED(cnd_broadcast(&cnd));
	PASSED_AS(sem_timedwait(&sem, &time), 0);
	PASSED_AS(sem_clockwait(&sem, CLOCK_MONOTONIC, &time), 0);
	PASSED(pthread_mutex_timedlock(&mutex, &time));
	PASSED(pthread_mutex_clocklock(&mutex, CLOCK_MONOTONIC, &time));
	PASSED_AS(mtx_timedlock(&mtx, &time), thrd_timedout);
	PASSED(pthread_rwlock_timedrdlock(&rwlock, &time));
	PASSED(pthread_rwlock_timedwrlock(&rwlock, &time));
	PASSED(pthread_rwlock_clockrdlock(&rwlock, CLOCK_MONOTONIC, &time));
	PASSED(pthread_rwlock_clockwrlock(&rwlock, CLOCK_MONOTONIC, &time));
	PASSED_AS(mq_timedsend(7, "text", 4, 3, &time), 0);
	PASSED(mq_timedreceive(7, text, sizeof(text), NULL, &time));
	PASSED(timerfd_settime(7, TFD_TIMER_ABSTIME, &timer, NULL));
	polycm_libc_found = before;
}

/* The first read of all notes that there was one, and is the C library's like any other. */
static void the_first_look_at_a_clock_is_the_c_librarys(void **state)
{
	struct polycm_libc before = polycm_libc_found;
	struct timeval timeval;
	struct timespec time;
	unsigned int n = 0;
	time_t seconds;

	(void)state;
	passed_on = 0;
	pass_all_on();
	polycm_shown_state = POLYCM_SHOWN_UNREAD;
	PASSED(clock_gettime(CLOCK_MONOTONIC, &time));
	polycm_shown_state = POLYCM_SHOWN_UNREAD;
	PASSED(gettimeofday(&timeval, NULL));
	polycm_shown_state = POLYCM_SHOWN_UNREAD;
	PASSED(time_of_day(&seconds));
	assert_int_equal(polycm_shown_state, POLYCM_SHOWN_REAL);
	polycm_libc_found = before;
}

/* Before any clock is installed. */
static void without_a_clock(void **state)
{
	(void)state;
	each_call_is_the_c_librarys();
	polycm_clock_spin();
}

/* ------------------------------------------------------------------------
 * A clock that is never asked for more than whether it is virtual.
 */

static uint64_t clock_now(void *ctx)
{
	(void)ctx;
	return 0;
}

static int clock_timer_start(void *ctx, uint64_t deadline_ns, void (*fn)(void *arg), void *arg,
			     struct polycm_timer **ret_timer)
{
	(void)ctx, (void)deadline_ns, (void)fn, (void)arg, (void)ret_timer;
	return -1;
}

static void clock_timer_cancel(void *ctx, struct polycm_timer *timer)
{
	(void)ctx, (void)timer;
}

static bool clock_is_virtual(void *ctx)
{
	(void)ctx;
	return is_virtual;
}

static int clock_wait(void *ctx, const struct polycm_clock_wait *wait)
{
	(void)ctx, (void)wait;
	fail_msg("the clock is asked to wait");
	return 0;
}

static void clock_spin(void *ctx)
{
	(void)ctx;
	fail_msg("the clock is told of a vain look");
}

/* One without owns_fd, so the others do not count either. */
static void with_half_a_clock(void **state)
{
	static const struct polycm_clock half = {
		.size = sizeof(half),
		.now_ns = clock_now,
		.timer_start = clock_timer_start,
		.timer_cancel = clock_timer_cancel,
		.is_virtual = clock_is_virtual,
		.wait = clock_wait,
		.spin = clock_spin,
	};

	(void)state;
	assert_int_equal(polycm_clock_install(&half, NULL), 0);
	for (int i = 0; i < 2; i++) {
		is_virtual = i;
		assert_false(polycm_clock_virtual());
		each_call_is_the_c_librarys();
		polycm_clock_spin();
	}
}

static void the_calls_found_are_the_c_librarys(void **state)
{
	(void)state;
	assert_non_null(real_libc.poll);
	assert_non_null(real_libc.epoll_pwait2);
	assert_ptr_not_equal(real_libc.poll, poll);
	assert_ptr_not_equal(real_libc.nanosleep, nanosleep);
	assert_ptr_not_equal(real_libc.sleep, sleep);
	/* Found anew they are the same. */
	memset(&polycm_libc_found, 0, sizeof(polycm_libc_found));
	assert_memory_equal(polycm_libc(), &real_libc, sizeof(real_libc));
}

static int start(void **state)
{
	(void)state;
	real_libc = *polycm_libc();
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_calls_found_are_the_c_librarys),
		cmocka_unit_test(the_first_look_at_a_clock_is_the_c_librarys),
		cmocka_unit_test(without_a_clock),
		cmocka_unit_test(with_half_a_clock),
	};

	return cmocka_run_group_tests(tests, start, NULL);
}
