/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_waits.c - a program's own waits under the virtual clock: for events and
 * completions through their descriptors, with time-outs, in several threads.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "no_tsan.h"
#include "steps.h"
#include "transfer.h"

#define MS UINT64_C(1000000)
#define FOR_EVER UINT64_MAX
#define ROUNDS 20

/* ------------------------------------------------------------------------
 * Ways to wait until a descriptor is readable.
 */

static int ms_of(uint64_t ns)
{
	return ns == FOR_EVER ? -1 : (int)(ns / MS);
}

static struct timespec *timespec_of(uint64_t ns, struct timespec *time)
{
	time->tv_sec = (time_t)(ns / 1000000000u);
	time->tv_nsec = (long)(ns % 1000000000u);
	return ns == FOR_EVER ? NULL : time;
}

static int by_poll(int fd, uint64_t ns)
{
	struct pollfd pfd = { .fd = fd, .events = POLLIN };

	return poll(&pfd, 1, ms_of(ns));
}

static int by_ppoll(int fd, uint64_t ns)
{
	struct pollfd pfd = { .fd = fd, .events = POLLIN };
	struct timespec time;

	return ppoll(&pfd, 1, timespec_of(ns, &time), NULL);
}

static int by_select(int fd, uint64_t ns)
{
	struct timeval time = {
		.tv_sec = (time_t)(ns / 1000000000u),
		.tv_usec = (suseconds_t)(ns % 1000000000u / 1000u),
	};
	fd_set set;

	FD_ZERO(&set);
	FD_SET(fd, &set);
	return select(fd + 1, &set, NULL, NULL, ns == FOR_EVER ? NULL : &time);
}

static int by_pselect(int fd, uint64_t ns)
{
	struct timespec time;
	fd_set set;

	FD_ZERO(&set);
	FD_SET(fd, &set);
	return pselect(fd + 1, &set, NULL, NULL, timespec_of(ns, &time), NULL);
}

static int new_set(int fd, uint32_t flags)
{
	struct epoll_event event = { .events = EPOLLIN | flags, .data.fd = fd };
	int set = epoll_create1(EPOLL_CLOEXEC);

	assert_in_range(set, 0, 1000);
	assert_int_equal(epoll_ctl(set, EPOLL_CTL_ADD, fd, &event), 0);
	return set;
}

static int by_epoll_wait(int fd, uint64_t ns)
{
	struct epoll_event event;
	int set = new_set(fd, 0), n = epoll_wait(set, &event, 1, ms_of(ns)), saved = errno;

	close(set);
	errno = saved;
	return n;
}

static int by_epoll_pwait(int fd, uint64_t ns)
{
	struct epoll_event event;
	int set = new_set(fd, EPOLLET), n = epoll_pwait(set, &event, 1, ms_of(ns), NULL);
	int saved = errno;

	close(set);
	errno = saved;
	return n;
}

static int by_epoll_pwait2(int fd, uint64_t ns)
{
	struct epoll_event event;
	struct timespec time;
	int set = new_set(fd, EPOLLONESHOT);
	int n = epoll_pwait2(set, &event, 1, timespec_of(ns, &time), NULL), saved = errno;

	close(set);
	errno = saved;
	return n;
}

/* A set in a set, and that polled. */
static int by_nested_sets(int fd, uint64_t ns)
{
	int inner = new_set(fd, 0), outer = new_set(inner, 0), n = by_poll(outer, ns);
	int saved = errno;

	close(inner);
	close(outer);
	errno = saved;
	return n;
}

static const struct {
	const char *name;
	int (*wait)(int fd, uint64_t ns);
} ways[] = {
	{ "poll", by_poll },
	{ "ppoll", by_ppoll },
	{ "select", by_select },
	{ "pselect", by_pselect },
	{ "epoll_wait", by_epoll_wait },
	{ "epoll_pwait", by_epoll_pwait },
	{ "epoll_pwait2", by_epoll_pwait2 },
	{ "nested sets", by_nested_sets },
};

#define each_way(w) for (size_t w = 0; w < ARRAY_LEN(ways) && print_way(w); w++)

static bool print_way(size_t way)
{
	print_message("%s\n", ways[way].name);
	return true;
}

static void virtual_sleep(uint64_t ns)
{
	struct timespec time;

	assert_int_equal(nanosleep(timespec_of(ns, &time), NULL), 0);
}

/* ------------------------------------------------------------------------
 * One thread.
 */

static void events_end_a_wait(void **state)
{
	(void)state;
	each_way(w) {
		struct pair pair;
		uint64_t before;
		int fd;

		pair_open(&pair, (enum transport)(w % NUM_TRANSPORTS), RDMA_PS_TCP);
		fd = pair.client_channel->fd;
		before = pair_now();
		assert_int_equal(rdma_resolve_addr(pair.client, NULL,
						   step_sa(SERVER_ADDRESS, SERVER_PORT), 2000), 0);
		assert_int_equal(ways[w].wait(fd, w % 2 ? FOR_EVER : 3600000 * MS), 1);
		assert_in_range(pair_now() - before, 0, 1000 * MS);
		before = pair_now();
		assert_int_equal(ways[w].wait(fd, 0), 1);
		pair_take(pair.client_channel, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
		assert_int_equal(ways[w].wait(fd, 0), 0);
		assert_int_equal(pair_now(), before);
		pair_close(&pair);
	}
}

static void time_outs_are_virtual(void **state)
{
	static const uint64_t times[] = { 0, 5 * MS, 1500 * MS, 86400000 * MS };

	(void)state;
	each_way(w) {
		struct pair pair;
		uint64_t before;

		pair_open(&pair, ROCE, RDMA_PS_TCP);
		for (size_t i = 0; i < ARRAY_LEN(times); i++) {
			before = pair_now();
			errno = 4711;
			assert_int_equal(ways[w].wait(pair.client_channel->fd, times[i]), 0);
			assert_int_equal(errno, 4711);
			assert_int_equal(pair_now(), before + times[i]);
		}
		assert_errno(ways[w].wait(pair.client_channel->fd, FOR_EVER), EDEADLK);
		pair_close(&pair);
	}
}

/* A wait shows what rdma_get_cm_event() shows, at the same time. */
static void long_time_outs_of_protocols_take_no_real_time(void **state)
{
	uint64_t expected = 0;

	(void)state;
	for (size_t w = 0; w <= ARRAY_LEN(ways); w++) {
		struct rdma_conn_param param = pair_param(NULL, 0);
		struct pair pair;

		pair_open_resolved(&pair, ROCE);
		rdma_ack_cm_event(pair_request(&pair, &param));
		if (w) {
			assert_int_equal(ways[w - 1].wait(pair.client_channel->fd, 900000 * MS), 0);
			assert_int_equal(ways[w - 1].wait(pair.client_channel->fd, FOR_EVER), 1);
			assert_int_equal(pair_now(), expected);
		}
		pair_take(pair.client_channel, RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT);
		if (w)
			assert_int_equal(pair_now(), expected);
		expected = pair_now();
		assert_in_range(expected, 990000 * MS, 1000000 * MS);
		pair_close(&pair);
	}
}

static void completions_end_a_wait(void **state)
{
	(void)state;
	each_way(w) {
		struct ibv_comp_channel *channel;
		struct ibv_cq *cq;
		struct transfer x;
		void *context;
		uint64_t before;

		transfer_open(&x, (enum transport)(w % NUM_TRANSPORTS), NULL);
		channel = x.server.id->recv_cq_channel;
		transfer_recv(&x.server, 1, 0, 10);
		assert_int_equal(ibv_req_notify_cq(x.server.id->recv_cq, 0), 0);
		assert_errno(ways[w].wait(channel->fd, FOR_EVER), EDEADLK);
		before = pair_now();
		transfer_send(&x.client, 1, 0, 10);
		assert_int_equal(ways[w].wait(channel->fd, FOR_EVER), 1);
		assert_in_range(pair_now() - before, 1, 1000 * MS);
		assert_int_equal(ibv_get_cq_event(channel, &cq, &context), 0);
		ibv_ack_cq_events(cq, 1);
		assert_int_equal(ways[w].wait(channel->fd, 7 * MS), 0);
		assert_errno(ways[w].wait(x.server.id->verbs->async_fd, FOR_EVER), EDEADLK);
		transfer_close(&x);
	}
}

static void sleeping_moves_time(void **state)
{
	struct timespec until, time = { .tv_sec = 3, .tv_nsec = 4 };
	struct rdma_cm_event *event;
	struct pair pair;
	uint64_t before;

	(void)state;
	pair_open(&pair, IB, RDMA_PS_TCP);
	assert_int_equal(rdma_resolve_addr(pair.client, NULL, step_sa(SERVER_ADDRESS, SERVER_PORT),
					   2000), 0);
	before = pair_now();
	assert_int_equal(nanosleep(&time, NULL), 0);
	assert_int_equal(usleep(1000), 0);
	assert_int_equal(sleep(86400), 0);
	assert_int_equal(clock_nanosleep(CLOCK_MONOTONIC, 0, &time, NULL), 0);
	assert_int_equal(pair_now(), before + 86406001 * MS + 8);
	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += 3600;
	assert_int_equal(clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL), 0);
	assert_int_equal(pair_now(), before + 90006001 * MS + 8);
	/* What was due meanwhile has happened. */
	before = pair_now();
	assert_int_equal(rdma_get_cm_event(pair.client_channel, &event), 0);
	assert_int_equal(event->event, RDMA_CM_EVENT_ADDR_RESOLVED);
	assert_int_equal(rdma_ack_cm_event(event), 0);
	assert_int_equal(pair_now(), before);
	pair_close(&pair);
}

/* Looking again and again counts as waiting, in whichever way. */
static void looking_in_vain_moves_time(void **state)
{
	struct rdma_cm_event *event;
	struct pair pair;
	unsigned int looks;
	int flags;

	(void)state;
	each_way(w) {
		pair_open(&pair, ROCE, RDMA_PS_TCP);
		assert_int_equal(rdma_resolve_addr(pair.client, NULL,
						   step_sa(SERVER_ADDRESS, SERVER_PORT), 2000), 0);
		for (looks = 0; !ways[w].wait(pair.client_channel->fd, 0); looks++)
			assert_in_range(looks, 0, 10000);
		pair_take(pair.client_channel, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
		flags = fcntl(pair.client_channel->fd, F_GETFL);
		assert_int_equal(fcntl(pair.client_channel->fd, F_SETFL, flags | O_NONBLOCK), 0);
		assert_int_equal(rdma_resolve_route(pair.client, 2000), 0);
		for (looks = 0; rdma_get_cm_event(pair.client_channel, &event); looks++)
			assert_in_range(looks, 0, 10000);
		assert_int_equal(event->event, RDMA_CM_EVENT_ROUTE_RESOLVED);
		assert_int_equal(rdma_ack_cm_event(event), 0);
		pair_close(&pair);
	}
}

/* ------------------------------------------------------------------------
 * Signals.
 */

static atomic_int signals;

static void count_signal(int number)
{
	(void)number;
	signals++;
}

static void handle_signal(void)
{
	struct sigaction action = { .sa_handler = count_signal };

	assert_int_equal(sigaction(SIGUSR1, &action, NULL), 0);
	signals = 0;
}

/* A signal that is held back is let in by the mask of the call, and by no other. */
static void masks_hold(void **state)
{
	struct timespec time = { .tv_sec = 1 };
	sigset_t blocked, open, pending;
	struct pollfd pfd = { .events = POLLIN };
	struct epoll_event event;
	struct pair pair;
	uint64_t before;
	int set;

	(void)state;
	handle_signal();
	sigemptyset(&open);
	sigemptyset(&blocked);
	sigaddset(&blocked, SIGUSR1);
	assert_int_equal(sigprocmask(SIG_BLOCK, &blocked, NULL), 0);
	pair_open(&pair, ROCE, RDMA_PS_TCP);
	pfd.fd = pair.client_channel->fd;
	set = new_set(pfd.fd, 0);

	for (int i = 0; i < 3; i++) {
		raise(SIGUSR1);
		before = pair_now();
		assert_int_equal(poll(&pfd, 1, 1000), 0);
		assert_int_equal(ppoll(&pfd, 1, &time, &blocked), 0);
		assert_int_equal(nanosleep(&time, NULL), 0);
		assert_int_equal(signals, i);
		assert_int_equal(pair_now(), before + 3000 * MS);
		if (i == 0)
			assert_errno(ppoll(&pfd, 1, &time, &open), EINTR);
		else if (i == 1)
			assert_errno(epoll_pwait(set, &event, 1, -1, &open), EINTR);
		else
			assert_errno(pselect(0, NULL, NULL, NULL, &time, &open), EINTR);
		assert_int_equal(signals, i + 1);
		assert_int_equal(pair_now(), before + 3000 * MS);
		assert_int_equal(sigpending(&pending), 0);
		assert_int_equal(sigismember(&pending, SIGUSR1), 0);
	}
	close(set);
	pair_close(&pair);
	assert_int_equal(sigprocmask(SIG_UNBLOCK, &blocked, NULL), 0);
}

/* ------------------------------------------------------------------------
 * Several threads.
 */

struct waiter {
	pthread_t thread;
	struct pair *pair;
	int fd, other_fd;
	uint64_t ns;
	int result, error;
	uint64_t ended;
};

static void *wait_for_time(void *arg)
{
	struct waiter *self = arg;

	self->result = by_poll(self->fd, self->ns);
	self->error = errno;
	self->ended = pair_now();
	return NULL;
}

static void start(struct waiter *waiter, void *(*run)(void *arg))
{
	assert_int_equal(pthread_create(&waiter->thread, NULL, run, waiter), 0);
}

static void join(struct waiter *waiter)
{
	assert_int_equal(pthread_join(waiter->thread, NULL), 0);
}

/* However many wait, each for as long as it said. */
static void who_waits_least_goes_first(void **state)
{
	static const uint64_t times[] = { 30 * MS, 10 * MS, 50 * MS, 20 * MS };
	struct waiter waiters[ARRAY_LEN(times)];
	struct pair pair;
	uint64_t before;

	(void)state;
	pair_open(&pair, ROCE, RDMA_PS_TCP);
	for (int round = 0; round < ROUNDS; round++) {
		before = pair_now();
		for (size_t i = 0; i < ARRAY_LEN(times); i++) {
			waiters[i] = (struct waiter){ .fd = pair.client_channel->fd,
						      .ns = times[i] };
			start(&waiters[i], wait_for_time);
		}
		for (size_t i = 0; i < ARRAY_LEN(times); i++) {
			join(&waiters[i]);
			assert_int_equal(waiters[i].result, 0);
			assert_int_equal(waiters[i].ended, before + times[i]);
		}
		assert_int_equal(pair_now(), before + 50 * MS);
	}
	pair_close(&pair);
}

static void *write_later(void *arg)
{
	struct waiter *self = arg;

	virtual_sleep(self->ns);
	self->ended = pair_now();
	self->result = (int)write(self->fd, "x", 1);
	return NULL;
}

/* What another thread does ends a wait at the virtual time at which it is done. */
static void a_pipe_that_another_thread_writes(void **state)
{
	struct pair pair;
	int ends[2];

	(void)state;
	pair_open(&pair, ROCE, RDMA_PS_TCP);
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	for (int round = 0; round < ROUNDS; round++) {
		struct waiter writer = { .fd = ends[1], .ns = 2000 * MS };
		struct pollfd fds[2] = {
			{ .fd = pair.client_channel->fd, .events = POLLIN },
			{ .fd = ends[0], .events = POLLIN },
		};
		char letter;

		start(&writer, write_later);
		assert_int_equal(poll(fds, 2, round % 2 ? -1 : 1000000), 1);
		assert_int_equal(fds[1].revents, POLLIN);
		assert_int_equal(read(ends[0], &letter, 1), 1);
		join(&writer);
		assert_int_equal(writer.result, 1);
		assert_int_equal(pair_now(), writer.ended);
	}
	close(ends[0]);
	close(ends[1]);
	pair_close(&pair);
}

static void *serve(void *arg)
{
	struct waiter *self = arg;
	struct rdma_conn_param param = pair_param(NULL, 0);
	struct pair *pair = self->pair;
	struct rdma_cm_event *event;

	if (by_epoll_wait(pair->server_channel->fd, FOR_EVER) != 1 ||
	    rdma_get_cm_event(pair->server_channel, &event))
		return NULL;
	pair->server = event->id;
	rdma_ack_cm_event(event);
	pair_server_qp(pair);
	virtual_sleep(3 * MS);
	if (rdma_accept(pair->server, &param) || by_poll(pair->server_channel->fd, FOR_EVER) != 1 ||
	    rdma_get_cm_event(pair->server_channel, &event))
		return NULL;
	self->ended = pair_now();
	self->result = event->event == RDMA_CM_EVENT_ESTABLISHED;
	rdma_ack_cm_event(event);
	return NULL;
}

/* Two threads, one for each end: the same times in each run. */
static void client_and_server_in_threads(void **state)
{
	uint64_t established = 0, accepted = 0;

	(void)state;
	for (int round = 0; round < ROUNDS; round++) {
		struct rdma_conn_param param = pair_param(NULL, 0);
		struct pair pair;
		struct waiter server = { .pair = &pair };

		pair_open(&pair, ROCE, RDMA_PS_TCP);
		start(&server, serve);
		pair_resolve(&pair);
		pair_client_qp(&pair);
		assert_int_equal(rdma_connect(pair.client, &param), 0);
		assert_int_equal(by_select(pair.client_channel->fd, FOR_EVER), 1);
		if (round)
			assert_int_equal(pair_now(), established);
		established = pair_now();
		pair_take(pair.client_channel, RDMA_CM_EVENT_ESTABLISHED, 0);
		join(&server);
		assert_int_equal(server.result, 1);
		if (round)
			assert_int_equal(server.ended, accepted);
		accepted = server.ended;
		pair_close(&pair);
	}
	assert_in_range(established, 3 * MS, 1000 * MS);
}

/* Threads that wait for each other wait for ever. */
static void threads_in_a_deadlock(void **state)
{
	struct waiter waiter;
	struct pair pair;

	(void)state;
	pair_open(&pair, ROCE, RDMA_PS_TCP);
	for (int round = 0; round < ROUNDS; round++) {
		waiter = (struct waiter){ .fd = pair.client_channel->fd, .ns = FOR_EVER };
		start(&waiter, wait_for_time);
		join(&waiter);
		assert_int_equal(waiter.result, -1);
		assert_int_equal(waiter.error, EDEADLK);
	}
	pair_close(&pair);
}

static void *wait_for_both(void *arg)
{
	struct waiter *self = arg;
	struct pollfd fds[2] = {
		{ .fd = self->fd, .events = POLLIN },
		{ .fd = self->other_fd, .events = POLLIN },
	};

	self->result = poll(fds, 2, -1);
	self->error = errno;
	return NULL;
}

/* A descriptor of the program's own is waited for in real time; a signal ends that. */
static void signals_end_a_real_wait(void **state)
{
	struct waiter waiter;
	struct pair pair;
	int ends[2];

	(void)state;
	handle_signal();
	pair_open(&pair, ROCE, RDMA_PS_TCP);
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	waiter = (struct waiter){ .fd = pair.client_channel->fd, .other_fd = ends[0] };
	start(&waiter, wait_for_both);
	while (!signals) {
		assert_int_equal(pthread_kill(waiter.thread, SIGUSR1), 0);
		sched_yield();
	}
	/* It may have come before the wait began. */
	while (pthread_tryjoin_np(waiter.thread, NULL))
		pthread_kill(waiter.thread, SIGUSR1);
	assert_int_equal(waiter.result, -1);
	assert_int_equal(waiter.error, EINTR);
	close(ends[0]);
	close(ends[1]);
	pair_close(&pair);
}

static void waits_can_be_cancelled(void **state)
{
	struct pair pair;
	void *result;
	int ends[2];

	(void)state;
	pair_open(&pair, ROCE, RDMA_PS_TCP);
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	for (int round = 0; round < ROUNDS; round++) {
		struct waiter waiter = { .fd = pair.client_channel->fd, .other_fd = ends[0] };

		start(&waiter, wait_for_both);
		for (int i = 0; i < round * 10; i++)
			sched_yield();
		assert_int_equal(pthread_cancel(waiter.thread), 0);
		assert_int_equal(pthread_join(waiter.thread, &result), 0);
		assert_ptr_equal(result, PTHREAD_CANCELED);
	}
	/* None of them left a lock or a time-out behind. */
	assert_errno(by_poll(pair.client_channel->fd, FOR_EVER), EDEADLK);
	close(ends[0]);
	close(ends[1]);
	pair_close(&pair);
}

/* ------------------------------------------------------------------------
 * A child of fork() that does not use polycm has real time of its own.
 */

static void children_leave_the_parents_time_alone(void **state)
{
	struct timespec moment = { .tv_nsec = 1000 };
	struct pair pair;
	uint64_t before;
	time_t shown;
	int status;
	pid_t child;

	(void)state;
	pair_open(&pair, ROCE, RDMA_PS_TCP);
	virtual_sleep(86400000 * MS);
	assert_int_equal(rdma_resolve_addr(pair.client, NULL, step_sa(SERVER_ADDRESS, SERVER_PORT),
					   2000), 0);
	before = pair_now();
	shown = time(NULL);
	child = fork();
	assert_int_not_equal(child, -1);
	if (!child)
		_exit(nanosleep(&moment, NULL) || poll(NULL, 0, 1) || usleep(1) ||
		      pair_now() != before || time(NULL) < shown || time(NULL) > shown + 600);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	assert_int_equal(by_poll(pair.client_channel->fd, 0), 0);
	assert_int_equal(pair_now(), before);
	pair_take(pair.client_channel, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
	pair_close(&pair);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(events_end_a_wait),
		cmocka_unit_test(time_outs_are_virtual),
		cmocka_unit_test(long_time_outs_of_protocols_take_no_real_time),
		cmocka_unit_test(completions_end_a_wait),
		cmocka_unit_test(sleeping_moves_time),
		cmocka_unit_test(looking_in_vain_moves_time),
		cmocka_unit_test(masks_hold),
		cmocka_unit_test(who_waits_least_goes_first),
		cmocka_unit_test(a_pipe_that_another_thread_writes),
		cmocka_unit_test(client_and_server_in_threads),
		cmocka_unit_test(threads_in_a_deadlock),
		cmocka_unit_test(signals_end_a_real_wait),
		cmocka_unit_test(waits_can_be_cancelled),
		cmocka_unit_test(children_leave_the_parents_time_alone),
	};

	return cmocka_run_group_tests(tests, pair_group_setup, NULL);
}
