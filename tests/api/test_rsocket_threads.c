/* SPDX-License-Identifier: BSD-2-Clause */
/* test_rsocket_threads.c - several threads on one rsocket. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "rsockets.h"

int repoll_create(int flags);
int repoll_ctl(int epfd, int op, int fd, struct epoll_event *event);
int repoll_wait(int epfd, struct epoll_event *events, int maxevents, int timeout);

#define BYTES 2000000

static uint8_t byte_of(size_t i)
{
	return (uint8_t)(i * 13 + i / 256);
}

/* How many bytes are as they were sent. */
static void *receive_all(void *arg)
{
	uint8_t *buf = malloc(BYTES);
	intptr_t num = rrecv(*(int *)arg, buf, BYTES, MSG_WAITALL);

	for (intptr_t i = 0; i < num; i++)
		if (buf[i] != byte_of((size_t)i))
			num = i;
	free(buf);
	return (void *)num;
}

static void *send_all(void *arg)
{
	uint8_t *buf = malloc(BYTES);
	intptr_t num;

	for (size_t i = 0; i < BYTES; i++)
		buf[i] = byte_of(i);
	num = rsend(*(int *)arg, buf, BYTES, 0);
	free(buf);
	return (void *)num;
}

/* Each end sends and receives at once: four threads, two to an rsocket. */
static void both_directions_at_once(void **state)
{
	(void)state;
	for (enum transport t = 0; t < NUM_TRANSPORTS; t++) {
		pthread_t threads[4];
		struct rsockets r;
		void *num;

		rsockets_connect(&r, t);
		assert_int_equal(rfcntl(r.client, F_SETFL, 0), 0);
		assert_int_equal(rfcntl(r.server, F_SETFL, 0), 0);
		assert_int_equal(pthread_create(&threads[0], NULL, receive_all, &r.client), 0);
		assert_int_equal(pthread_create(&threads[1], NULL, receive_all, &r.server), 0);
		assert_int_equal(pthread_create(&threads[2], NULL, send_all, &r.client), 0);
		assert_int_equal(pthread_create(&threads[3], NULL, send_all, &r.server), 0);
		for (size_t i = 0; i < ARRAY_LEN(threads); i++) {
			assert_int_equal(pthread_join(threads[i], &num), 0);
			assert_int_equal((intptr_t)num, BYTES);
		}
		rsockets_close(&r);
	}
}

static void *poll_for_input(void *arg)
{
	struct pollfd pfd = { .fd = *(int *)arg, .events = POLLIN };
	int num = rpoll(&pfd, 1, -1);

	return (void *)(intptr_t)(num == 1 ? pfd.revents : num);
}

/* One of them reads what woke all of them up. */
static void several_wait_for_the_same(void **state)
{
	pthread_t threads[8];
	struct rsockets r;
	void *events;

	(void)state;
	rsockets_connect(&r, ROCE);
	for (size_t i = 0; i < ARRAY_LEN(threads); i++)
		assert_int_equal(pthread_create(&threads[i], NULL, poll_for_input, &r.server), 0);
	assert_int_equal(usleep(1000), 0);
	assert_int_equal(rsend(r.client, "x", 1, 0), 1);
	for (size_t i = 0; i < ARRAY_LEN(threads); i++) {
		assert_int_equal(pthread_join(threads[i], &events), 0);
		assert_int_equal((intptr_t)events, POLLIN);
	}
	rsockets_close(&r);
}

static void *receive_one(void *arg)
{
	char byte;

	return (void *)(intptr_t)(rrecv(*(int *)arg, &byte, 1, 0) < 0 ? errno : 0);
}

static void *accept_one(void *arg)
{
	return (void *)(intptr_t)(raccept(*(int *)arg, NULL, NULL) < 0 ? errno : 0);
}

/* Calls that wait end when another thread closes, or ends reading. */
static void closed_meanwhile(void **state)
{
	pthread_t receiver, acceptor, poller;
	struct rsockets r;
	void *error;

	(void)state;
	rsockets_connect(&r, ROCE);
	assert_int_equal(rfcntl(r.server, F_SETFL, 0), 0);
	assert_int_equal(rfcntl(r.listener, F_SETFL, 0), 0);
	assert_int_equal(pthread_create(&receiver, NULL, receive_one, &r.server), 0);
	assert_int_equal(pthread_create(&acceptor, NULL, accept_one, &r.listener), 0);
	assert_int_equal(pthread_create(&poller, NULL, poll_for_input, &r.listener), 0);
	assert_int_equal(usleep(1000), 0);
	assert_int_equal(rshutdown(r.server, SHUT_RD), 0);
	assert_int_equal(pthread_join(receiver, &error), 0);
	assert_int_equal((intptr_t)error, 0);
	assert_int_equal(rclose(r.listener), 0);
	r.listener = -1;
	assert_int_equal(pthread_join(acceptor, &error), 0);
	assert_int_equal((intptr_t)error, EBADF);
	assert_int_equal(pthread_join(poller, &error), 0);
	assert_int_equal((intptr_t)error, POLLNVAL);
	rsockets_close(&r);
}

/* Nothing stays locked or counted behind a thread that was cancelled in its wait. */
static void cancelled_meanwhile(void **state)
{
	pthread_t receiver, poller;
	struct rsockets r;
	void *ret;

	(void)state;
	rsockets_connect(&r, ROCE);
	assert_int_equal(rfcntl(r.server, F_SETFL, 0), 0);
	assert_int_equal(pthread_create(&receiver, NULL, receive_one, &r.server), 0);
	assert_int_equal(pthread_create(&poller, NULL, poll_for_input, &r.server), 0);
	assert_int_equal(usleep(1000), 0);
	assert_int_equal(pthread_cancel(receiver), 0);
	assert_int_equal(pthread_cancel(poller), 0);
	assert_int_equal(pthread_join(receiver, &ret), 0);
	assert_ptr_equal(ret, PTHREAD_CANCELED);
	assert_int_equal(pthread_join(poller, &ret), 0);
	assert_ptr_equal(ret, PTHREAD_CANCELED);
	rsockets_carry(&r, true, 10000, 1000);
	rsockets_close(&r);
}


static void *wait_for_set(void *arg)
{
	struct epoll_event found;

	return (void *)(intptr_t)repoll_wait(*(int *)arg, &found, 1, -1);
}

/* A thread waits for what was in the set; then something comes to it. */
static void a_set_changes(void **state)
{
	struct epoll_event event = { .events = EPOLLOUT };
	struct rsockets r;
	pthread_t waiter;
	void *num;
	int set;

	(void)state;
	rsockets_connect(&r, ROCE);
	set = repoll_create(0);
	assert_int_equal(pthread_create(&waiter, NULL, wait_for_set, &set), 0);
	assert_int_equal(usleep(1000), 0);
	assert_int_equal(repoll_ctl(set, EPOLL_CTL_ADD, r.client, &event), 0);
	assert_int_equal(pthread_join(waiter, &num), 0);
	assert_int_equal((intptr_t)num, 1);
	assert_int_equal(rclose(set), 0);
	rsockets_close(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(both_directions_at_once),
		cmocka_unit_test(several_wait_for_the_same),
		cmocka_unit_test(closed_meanwhile),
		cmocka_unit_test(cancelled_meanwhile),
		cmocka_unit_test(a_set_changes),
	};

	return cmocka_run_group_tests(tests, pair_group_setup, NULL);
}
