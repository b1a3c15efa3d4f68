/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_timers.c - a program's timers under the virtual clock: timerfds in the
 * loops that others write, alarms and POSIX timers and waits for their signals.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/time.h>
#include <sys/resource.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "no_tsan.h"
#include "steps.h"
#include "timers.h"
#include "tests/nth/nth.h"

static uint64_t clock_ns(clockid_t clock)
{
	struct timespec now;

	assert_int_equal(clock_gettime(clock, &now), 0);
	return ns_of(now);
}

/* ------------------------------------------------------------------------
 * timerfds.
 */

static int epoll_on(int fd, uint32_t flags)
{
	struct epoll_event event = { .events = EPOLLIN | flags, .data.fd = fd };
	int set = epoll_create1(EPOLL_CLOEXEC);

	assert_in_range(set, 0, 1000);
	assert_int_equal(epoll_ctl(set, EPOLL_CTL_ADD, fd, &event), 0);
	return set;
}

static void by_blocking_read(int fd)
{
	(void)fd;
}

static void by_polling(int fd)
{
	assert_int_equal(by_poll(fd, -1), 1);
}

static void by_select(int fd)
{
	fd_set set;

	FD_ZERO(&set);
	FD_SET(fd, &set);
	assert_int_equal(select(fd + 1, &set, NULL, NULL, NULL), 1);
}

static void by_edges(int fd)
{
	struct epoll_event event;
	int set = epoll_on(fd, EPOLLET);

	assert_int_equal(epoll_wait(set, &event, 1, -1), 1);
	assert_int_equal(epoll_wait(set, &event, 1, 0), 0);
	close(set);
}

/* Looks every 5 s, as reactors do that never wait. */
static void by_looking(int fd)
{
	while (!by_poll(fd, 0))
		virtual_sleep(5 * S);
}

static const struct {
	const char *name;
	void (*wait)(int fd);
	uint64_t late;
} ways[] = {
	{ "read", by_blocking_read, 0 },
	{ "poll", by_polling, 0 },
	{ "select", by_select, 0 },
	{ "edge-triggered epoll", by_edges, 0 },
	{ "looking", by_looking, 5 * S },
};

static void timerfds_expire_in_virtual_time(void **state)
{
	struct pair pair;

	(void)state;
	pair_open(&pair, ROCE, RDMA_PS_TCP);
	for (size_t i = 0; i < ARRAY_LEN(ways); i++) {
		uint64_t began = pair_now();
		int fd;

		print_message("%s\n", ways[i].name);
		fd = timer_fd(0, DAY, 3600 * S);
		ways[i].wait(fd);
		assert_int_equal(take(fd), 1);
		assert_int_equal(pair_now() - began, DAY);
		ways[i].wait(fd);
		assert_int_equal(take(fd), 1);
		assert_int_equal(pair_now() - began, DAY + 3600 * S);
		/* Those that nobody took are counted. */
		virtual_sleep(5 * 3600 * S + 1);
		assert_int_equal(take(fd), 5);
		ways[i].wait(fd);
		assert_int_equal(take(fd), 1);
		assert_in_range(pair_now() - began, DAY + 7 * 3600 * S,
				DAY + 7 * 3600 * S + ways[i].late);
		close(fd);
	}
	pair_close(&pair);
}

/* In the order of their times, with events of connections in between. */
static void a_loop_of_timers_and_events(void **state)
{
	struct epoll_event event;
	struct pair pair;
	int timers[2], set;
	uint64_t began;

	(void)state;
	pair_open(&pair, ROCE, RDMA_PS_TCP);
	began = pair_now();
	timers[0] = timer_fd(TFD_NONBLOCK, 1, 0);
	timers[1] = timer_fd(TFD_NONBLOCK, 10 * S, 0);
	set = epoll_on(timers[0], 0);
	for (int i = 0; i < 2; i++) {
		int fd = i ? timers[1] : pair.client_channel->fd;

		event = (struct epoll_event){ .events = EPOLLIN, .data.fd = fd };
		assert_int_equal(epoll_ctl(set, EPOLL_CTL_ADD, fd, &event), 0);
	}
	assert_int_equal(rdma_resolve_addr(pair.client, NULL, step_sa(SERVER_ADDRESS, SERVER_PORT),
					   2000), 0);
	assert_int_equal(epoll_wait(set, &event, 1, -1), 1);
	assert_int_equal(event.data.fd, timers[0]);
	assert_int_equal(pair_now() - began, 1);
	assert_int_equal(take(timers[0]), 1);
	assert_int_equal(epoll_wait(set, &event, 1, -1), 1);
	assert_int_equal(event.data.fd, pair.client_channel->fd);
	assert_in_range(pair_now() - began, 2, S);
	pair_take(pair.client_channel, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
	assert_int_equal(epoll_wait(set, &event, 1, -1), 1);
	assert_int_equal(event.data.fd, timers[1]);
	assert_int_equal(pair_now() - began, 10 * S);
	assert_int_equal(take(timers[1]), 1);
	/* None of them is set any more: nothing can end this. */
	assert_errno(epoll_wait(set, &event, 1, -1), EDEADLK);
	close(set);
	close(timers[0]);
	close(timers[1]);
	pair_close(&pair);
}

static void absolute_times_are_of_the_clocks_shown(void **state)
{
	static const clockid_t clocks[] = { CLOCK_REALTIME, CLOCK_MONOTONIC, CLOCK_BOOTTIME };
	struct pair pair;

	(void)state;
	pair_open(&pair, ROCE, RDMA_PS_TCP);
	virtual_sleep(DAY);
	for (size_t i = 0; i < ARRAY_LEN(clocks); i++) {
		int fd = timerfd_create(clocks[i], TFD_CLOEXEC);
		struct itimerspec time = every(clock_ns(clocks[i]) + DAY, 0);

		assert_int_equal(timerfd_settime(fd, TFD_TIMER_ABSTIME, &time, NULL), 0);
		assert_int_equal(take(fd), 1);
		assert_int_equal(clock_ns(clocks[i]), ns_of(time.it_value));
		/* A past one at once. */
		time = every(clock_ns(clocks[i]) - S, 0);
		assert_int_equal(timerfd_settime(fd, TFD_TIMER_ABSTIME, &time, NULL), 0);
		assert_int_equal(by_poll(fd, 0), 1);
		close(fd);
	}
	pair_close(&pair);
}

/* Its clock cannot be asked for: set by another one, it would expire some other time. */
static void a_timer_of_an_unknown_clock_is_refused(void **state)
{
	struct rlimit limit, none;
	struct itimerspec time;
	struct pair pair;
	int fd;

	(void)state;
	pair_open(&pair, ROCE, RDMA_PS_TCP);
	virtual_sleep(DAY);
	fd = timerfd_create(CLOCK_REALTIME, TFD_CLOEXEC);
	time = every(clock_ns(CLOCK_REALTIME) + DAY, 0);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	none = limit;
	none.rlim_cur = 0;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	assert_errno(timerfd_settime(fd, TFD_TIMER_ABSTIME, &time, NULL), EMFILE);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
	assert_int_equal(timerfd_settime(fd, TFD_TIMER_ABSTIME, &time, NULL), 0);
	assert_int_equal(take(fd), 1);
	assert_int_equal(clock_ns(CLOCK_REALTIME), ns_of(time.it_value));
	close(fd);
	pair_close(&pair);
}

/* From one expiration to the next no memory is needed, also if the first one was due at once. */
static void intervals_need_no_memory(void **state)
{
	struct pair pair;

	(void)state;
	pair_open(&pair, ROCE, RDMA_PS_TCP);
	for (unsigned int past = 0; past < 2; past++) {
		int fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
		struct itimerspec time = every(clock_ns(CLOCK_MONOTONIC) + (past ? 0 : S), S);

		assert_int_equal(timerfd_settime(fd, TFD_TIMER_ABSTIME, &time, NULL), 0);
		nth_arm(NTH_ALLOC, 1, 0);
		for (unsigned int i = 0; i < 3; i++)
			assert_int_equal(take(fd), 1);
		(void)nth_disarm(NULL);
		assert_int_equal(take(fd), 1);
		close(fd);
	}
	pair_close(&pair);
}

static void what_is_left_is_virtual(void **state)
{
	struct itimerspec left, off = every(0, 0), time = every(5 * S, 0);
	struct pair pair;
	uint64_t num;
	int fd;

	(void)state;
	pair_open(&pair, ROCE, RDMA_PS_TCP);
	fd = timer_fd(TFD_NONBLOCK, 10 * S, 4 * S);
	assert_errno((int)read(fd, &num, sizeof(num)), EAGAIN);
	assert_errno((int)read(fd, &num, 7), EINVAL);
	virtual_sleep(3 * S);
	assert_int_equal(timerfd_gettime(fd, &left), 0);
	assert_int_equal(ns_of(left.it_value), 7 * S);
	assert_int_equal(ns_of(left.it_interval), 4 * S);
	virtual_sleep(8 * S);
	assert_int_equal(timerfd_gettime(fd, &left), 0);
	assert_int_equal(ns_of(left.it_value), 3 * S);
	/* Set anew, what had expired is forgotten. */
	assert_int_equal(timerfd_settime(fd, 0, &time, &left), 0);
	assert_int_equal(ns_of(left.it_value), 3 * S);
	assert_int_equal(by_poll(fd, 0), 0);
	assert_int_equal(timerfd_settime(fd, 0, &off, &left), 0);
	assert_int_equal(ns_of(left.it_value), 5 * S);
	assert_int_equal(ns_of(left.it_interval), 0);
	assert_int_equal(by_poll(fd, 60000), 0);
	assert_int_equal(timerfd_gettime(fd, &left), 0);
	assert_int_equal(ns_of(left.it_value), 0);
	close(fd);
	pair_close(&pair);
}

static void what_cannot_be_is_refused(void **state)
{
	const struct itimerspec *volatile nowhere = NULL;
	struct itimerspec bad = every(S, 0), good = bad;
	struct pair pair;
	int fd;

	(void)state;
	bad.it_value.tv_nsec = 1000000000;
	pair_open(&pair, ROCE, RDMA_PS_TCP);
	fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
	for (int flags = 0; flags <= TFD_TIMER_ABSTIME; flags += TFD_TIMER_ABSTIME) {
		assert_errno(timerfd_settime(fd, flags, nowhere, NULL), EFAULT);
		assert_errno(timerfd_settime(fd, flags, &bad, NULL), EINVAL);
		assert_errno(timerfd_settime(pair.client_channel->fd, flags, &good, NULL), EINVAL);
		assert_errno(timerfd_settime(-1, flags, &good, NULL), EBADF);
	}
	assert_errno(timerfd_settime(fd, 1 << 20, &good, NULL), EINVAL);
	close(fd);
	assert_int_equal(clock_nanosleep(CLOCK_MONOTONIC_RAW, 0, &good.it_value, NULL), EOPNOTSUPP);
	assert_int_equal(clock_nanosleep(CLOCK_MONOTONIC_COARSE, 0, &good.it_value, NULL),
			 EOPNOTSUPP);
	pair_close(&pair);
}

/* A duplicate keeps the timer when the descriptor goes, and a new one at its number is another. */
static void descriptors_come_and_go(void **state)
{
	struct pair pair;
	uint64_t began;
	int fd, copy;

	(void)state;
	pair_open(&pair, ROCE, RDMA_PS_TCP);
	began = pair_now();
	fd = timer_fd(0, 10 * S, S);
	copy = fcntl(fd, F_DUPFD_CLOEXEC, 100);
	close(fd);
	assert_int_equal(take(copy), 1);
	assert_int_equal(pair_now() - began, 10 * S);
	assert_int_equal(timer_fd(0, 60 * S, 0), fd);
	assert_int_equal(take(copy), 1);
	assert_int_equal(by_poll(fd, 0), 0);
	close(copy);
	assert_int_equal(by_poll(fd, 20000), 0);
	assert_int_equal(take(fd), 1);
	assert_int_equal(pair_now() - began, 70 * S);
	close(fd);
	/* Many that are closed while they are set. */
	for (int i = 0; i < 1000; i++)
		close(timer_fd(0, DAY, 0));
	pair_close(&pair);
}

/* Its timers are the parent's. */
static void children_leave_timerfds_alone(void **state)
{
	struct pair pair;
	int fd, status;
	pid_t child;

	(void)state;
	pair_open(&pair, ROCE, RDMA_PS_TCP);
	fd = timer_fd(TFD_NONBLOCK, DAY, 0);
	child = fork();
	if (!child)
		_exit(by_poll(fd, 1) != 0);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	assert_int_equal(by_poll(fd, -1), 1);
	assert_int_equal(take(fd), 1);
	assert_int_equal(pair_now(), DAY);
	close(fd);
	pair_close(&pair);
}

/* ------------------------------------------------------------------------
 * Signals.
 */

static timer_t posix;

static void set_alarm(unsigned int seconds)
{
	assert_int_equal(alarm(seconds), 0);
}

static void set_itimer(unsigned int seconds)
{
	struct itimerval time = { .it_value.tv_sec = seconds };

	assert_int_equal(setitimer(ITIMER_REAL, &time, NULL), 0);
}

static void set_posix(unsigned int seconds)
{
	struct itimerspec time = every(seconds * S, 0);

	assert_int_equal(timer_settime(posix, 0, &time, NULL), 0);
}

static void set_posix_absolute(unsigned int seconds)
{
	struct itimerspec time = every(clock_ns(CLOCK_MONOTONIC) + seconds * S, 0);

	assert_int_equal(timer_settime(posix, TIMER_ABSTIME, &time, NULL), 0);
}

static void (*const setters[])(unsigned int seconds) = {
	set_alarm, set_itimer, set_posix, set_posix_absolute,
};

static int in_poll(const struct pair *pair)
{
	return by_poll(pair->client_channel->fd, -1);
}

static int in_epoll(const struct pair *pair)
{
	struct epoll_event event;
	int set = epoll_on(pair->client_channel->fd, 0), r = epoll_wait(set, &event, 1, -1);
	int saved_errno = errno;

	close(set);
	errno = saved_errno;
	return r;
}

static int in_get_event(const struct pair *pair)
{
	struct rdma_cm_event *event;

	return rdma_get_cm_event(pair->client_channel, &event);
}

static int in_pause(const struct pair *pair)
{
	(void)pair;
	return pause();
}

static int in_sigsuspend(const struct pair *pair)
{
	sigset_t none;

	(void)pair;
	sigemptyset(&none);
	return sigsuspend(&none);
}

static int in_nanosleep(const struct pair *pair)
{
	struct timespec time = timespec_of(DAY);

	(void)pair;
	return nanosleep(&time, NULL);
}

static int (*const waits[])(const struct pair *pair) = {
	in_poll, in_epoll, in_get_event, in_pause, in_sigsuspend, in_nanosleep,
};

static void signals_come_in_virtual_time(void **state)
{
	struct pair pair;

	(void)state;
	pair_open(&pair, ROCE, RDMA_PS_TCP);
	assert_int_equal(timer_create(CLOCK_MONOTONIC, NULL, &posix), 0);
	for (size_t i = 0; i < ARRAY_LEN(setters); i++) {
		for (size_t j = 0; j < ARRAY_LEN(waits); j++) {
			uint64_t began = pair_now();

			handle(SIGALRM, 0);
			setters[i](3600);
			assert_errno(waits[j](&pair), EINTR);
			assert_int_equal(signals, 1);
			assert_int_equal(signalled_at - began, 3600 * S);
			assert_int_equal(pair_now() - began, 3600 * S);
		}
	}
	assert_int_equal(timer_delete(posix), 0);
	signal(SIGALRM, SIG_DFL);
	pair_close(&pair);
}

/* rdma_get_cm_event() goes on where the handler restarts calls, and then nothing is left. */
static void handlers_may_restart_calls(void **state)
{
	struct pair pair;

	(void)state;
	pair_open(&pair, ROCE, RDMA_PS_TCP);
	handle(SIGALRM, SA_RESTART);
	alarm(600);
	assert_errno(in_get_event(&pair), EDEADLK);
	assert_int_equal(signals, 1);
	assert_int_equal(signalled_at, 600 * S);
	signal(SIGALRM, SIG_DFL);
	pair_close(&pair);
}

/* As often as time goes by, a handler that sets the next one too. */
static void set_again(int number)
{
	handler(number);
	alarm(120);
}

static void alarms_go_on(void **state)
{
	struct sigaction action = { .sa_handler = set_again };
	struct itimerval time = { .it_value.tv_sec = 300, .it_interval.tv_sec = 120 }, left;
	struct pair pair;

	(void)state;
	pair_open(&pair, ROCE, RDMA_PS_TCP);
	handle(SIGALRM, 0);
	assert_int_equal(setitimer(ITIMER_REAL, &time, NULL), 0);
	for (unsigned int i = 0; i < 20; i++) {
		assert_errno(pause(), EINTR);
		assert_int_equal(signals, i + 1);
		assert_int_equal(pair_now(), (300 + i * 120) * S);
	}
	virtual_sleep(30 * S);
	assert_int_equal(getitimer(ITIMER_REAL, &left), 0);
	assert_int_equal(left.it_value.tv_sec * 1000000 + left.it_value.tv_usec, 90000000);
	assert_int_equal(alarm(0), 90);
	assert_int_equal(sigaction(SIGALRM, &action, NULL), 0);
	assert_int_equal(alarm(120), 0);
	for (unsigned int i = 0; i < 20; i++)
		assert_errno(by_poll(-1, -1), EINTR);
	assert_int_equal(signals, 40);
	assert_int_equal(pair_now(), (300 + 19 * 120 + 30 + 20 * 120) * S);
	assert_int_equal(alarm(0), 120);
	assert_int_equal(by_poll(-1, 60000), 0);
	assert_int_equal(signals, 40);
	signal(SIGALRM, SIG_DFL);
	pair_close(&pair);
}

static void signals_are_waited_for(void **state)
{
	struct timespec hour = timespec_of(3600 * S);
	siginfo_t info;
	struct pair pair;
	sigset_t set, before;
	uint64_t began;
	int number;

	(void)state;
	pair_open(&pair, ROCE, RDMA_PS_TCP);
	sigemptyset(&set);
	sigaddset(&set, SIGALRM);
	pthread_sigmask(SIG_BLOCK, &set, &before);
	began = pair_now();
	assert_errno(sigtimedwait(&set, NULL, &hour), EAGAIN);
	assert_int_equal(pair_now() - began, 3600 * S);
	alarm(60);
	assert_int_equal(sigtimedwait(&set, &info, &hour), SIGALRM);
	assert_int_equal(info.si_signo, SIGALRM);
	assert_int_equal(pair_now() - began, 3660 * S);
	alarm(60);
	assert_int_equal(sigwaitinfo(&set, &info), SIGALRM);
	alarm(60);
	assert_int_equal(sigwait(&set, &number), 0);
	assert_int_equal(number, SIGALRM);
	assert_int_equal(pair_now() - began, 3780 * S);
	/* One of another kind is handled meanwhile. */
	handle(SIGUSR1, 0);
	raise(SIGUSR1);
	assert_int_equal(signals, 1);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pair_close(&pair);
}

/* The time-outs of pselect() and its mask: the signal is let in there alone. */
static void masks_hold(void **state)
{
	struct timespec day = timespec_of(DAY), hour = timespec_of(3600 * S);
	sigset_t set, before, none;
	struct pair pair;
	fd_set fds;

	(void)state;
	pair_open(&pair, ROCE, RDMA_PS_TCP);
	handle(SIGALRM, 0);
	sigemptyset(&none);
	sigemptyset(&set);
	sigaddset(&set, SIGALRM);
	pthread_sigmask(SIG_BLOCK, &set, &before);
	alarm(600);
	FD_ZERO(&fds);
	FD_SET(pair.client_channel->fd, &fds);
	assert_int_equal(pselect(pair.client_channel->fd + 1, &fds, NULL, NULL, &hour, NULL), 0);
	assert_int_equal(signals, 0);
	FD_SET(pair.client_channel->fd, &fds);
	assert_errno(pselect(pair.client_channel->fd + 1, &fds, NULL, NULL, &day, &none), EINTR);
	assert_int_equal(signals, 1);
	assert_int_equal(pair_now(), 3600 * S);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	signal(SIGALRM, SIG_DFL);
	pair_close(&pair);
}

/* The signal says which timer it is of; other notifications than signals do not interrupt. */
static void posix_timers_keep_what_they_were_made_with(void **state)
{
	struct sigevent event = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGRTMIN,
				  .sigev_value.sival_int = 4711 };
	struct itimerspec time = every(420 * S, 180 * S), left;
	struct pair pair;
	siginfo_t info;
	sigset_t set, before;
	timer_t timer;

	(void)state;
	pair_open(&pair, ROCE, RDMA_PS_TCP);
	sigemptyset(&set);
	sigaddset(&set, SIGRTMIN);
	pthread_sigmask(SIG_BLOCK, &set, &before);
	assert_int_equal(timer_create(CLOCK_REALTIME, &event, &timer), 0);
	assert_int_equal(timer_settime(timer, 0, &time, NULL), 0);
	for (unsigned int i = 0; i < 5; i++) {
		assert_int_equal(sigwaitinfo(&set, &info), SIGRTMIN);
		assert_int_equal(info.si_code, SI_TIMER);
		assert_int_equal(info.si_value.sival_int, 4711);
		assert_int_equal(timer_getoverrun(timer), 0);
		assert_int_equal(pair_now(), (420 + i * 180) * S);
	}
	virtual_sleep(60 * S);
	assert_int_equal(timer_gettime(timer, &left), 0);
	assert_int_equal(ns_of(left.it_value), 120 * S);
	time = every(0, 0);
	assert_int_equal(timer_settime(timer, 0, &time, &left), 0);
	assert_int_equal(ns_of(left.it_value), 120 * S);
	assert_int_equal(ns_of(left.it_interval), 180 * S);
	assert_int_equal(timer_delete(timer), 0);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pair_close(&pair);
}

/* Longer than times can be counted: they do not come round again. */
static void what_is_too_far_never_comes(void **state)
{
	struct itimerspec time = { .it_value.tv_sec = 1, .it_interval.tv_sec = INT64_MAX / 4 }, left;
	struct pair pair;
	timer_t timer;
	uint64_t num;
	int fd;

	(void)state;
	pair_open(&pair, ROCE, RDMA_PS_TCP);
	fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	assert_int_equal(timerfd_settime(fd, 0, &time, NULL), 0);
	assert_int_equal(by_poll(fd, -1), 1);
	assert_int_equal(take(fd), 1);
	assert_errno((int)read(fd, &num, sizeof(num)), EAGAIN);
	assert_int_equal(timerfd_gettime(fd, &left), 0);
	assert_true(ns_of(left.it_value) > 1000 * DAY);
	close(fd);

	assert_int_equal(timer_create(CLOCK_MONOTONIC, NULL, &timer), 0);
	time = (struct itimerspec){ .it_value.tv_sec = INT64_MAX / 4 };
	assert_int_equal(timer_settime(timer, 0, &time, NULL), 0);
	assert_int_equal(timer_gettime(timer, &left), 0);
	assert_true(ns_of(left.it_value) > 1000 * DAY);
	assert_int_equal(timer_delete(timer), 0);
	pair_close(&pair);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(timerfds_expire_in_virtual_time),
		cmocka_unit_test(a_loop_of_timers_and_events),
		cmocka_unit_test(absolute_times_are_of_the_clocks_shown),
		cmocka_unit_test(a_timer_of_an_unknown_clock_is_refused),
		cmocka_unit_test(intervals_need_no_memory),
		cmocka_unit_test(what_is_left_is_virtual),
		cmocka_unit_test(what_cannot_be_is_refused),
		cmocka_unit_test(descriptors_come_and_go),
		cmocka_unit_test(children_leave_timerfds_alone),
		cmocka_unit_test(signals_come_in_virtual_time),
		cmocka_unit_test(handlers_may_restart_calls),
		cmocka_unit_test(alarms_go_on),
		cmocka_unit_test(signals_are_waited_for),
		cmocka_unit_test(masks_hold),
		cmocka_unit_test(posix_timers_keep_what_they_were_made_with),
		cmocka_unit_test(what_is_too_far_never_comes),
	};

	return cmocka_run_group_tests(tests, pair_group_setup, NULL);
}
