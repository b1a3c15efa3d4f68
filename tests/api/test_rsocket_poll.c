/* SPDX-License-Identifier: BSD-2-Clause */
/* test_rsocket_poll.c - rpoll(), rselect() and repoll_*(), also with plain descriptors. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/time.h>
#include <unistd.h>

#include "rsockets.h"

#define MS UINT64_C(1000000)

int repoll_create(int flags);
int repoll_ctl(int epfd, int op, int fd, struct epoll_event *event);
int repoll_wait(int epfd, struct epoll_event *events, int maxevents, int timeout);

/* Both ends of a pipe beside a connection. */
struct beside {
	struct rsockets r;
	int in, out;
};

static void open_beside(struct beside *b, enum transport t)
{
	int fds[2];

	rsockets_connect(&b->r, t);
	assert_int_equal(pipe(fds), 0);
	b->in = fds[0];
	b->out = fds[1];
}

static void close_beside(struct beside *b)
{
	close(b->in);
	close(b->out);
	rsockets_close(&b->r);
}

static void polls_both(void **state)
{
	struct pollfd fds[4];
	struct beside b;
	uint64_t before;
	char byte;

	(void)state;
	open_beside(&b, ROCE);
	fds[0] = (struct pollfd){ .fd = b.r.server, .events = POLLIN };
	fds[1] = (struct pollfd){ .fd = b.in, .events = POLLIN };
	fds[2] = (struct pollfd){ .fd = -1, .events = POLLIN };
	fds[3] = (struct pollfd){ .fd = b.out, .events = POLLOUT };
	assert_int_equal(rpoll(fds, 4, -1), 1);
	assert_int_equal(fds[3].revents, POLLOUT);
	before = pair_now();
	assert_int_equal(rpoll(fds, 3, 250), 0);
	assert_in_range(pair_now() - before, 250 * MS, 251 * MS);
	assert_int_equal(write(b.out, "x", 1), 1);
	assert_int_equal(rpoll(fds, 3, 1000), 1);
	assert_int_equal(fds[1].revents, POLLIN);
	assert_int_equal(fds[0].revents, 0);
	assert_int_equal(rsend(b.r.client, "y", 1, 0), 1);
	assert_int_equal(read(b.in, &byte, 1), 1);
	assert_int_equal(rpoll(fds, 3, 1000), 1);
	assert_int_equal(fds[0].revents, POLLIN);
	assert_int_equal(write(b.out, "x", 1), 1);
	assert_int_equal(rpoll(fds, 3, 0), 2);
	assert_int_equal(rpoll(NULL, 0, 10), 0);
	close_beside(&b);
}

/* More than what is on the stack. */
static void polls_many(void **state)
{
	struct pollfd fds[40];
	struct beside b;

	(void)state;
	open_beside(&b, IWARP);
	for (size_t i = 0; i < ARRAY_LEN(fds); i++)
		fds[i] = (struct pollfd){ .fd = i % 2 ? b.in : b.r.server, .events = POLLIN };
	assert_int_equal(rpoll(fds, ARRAY_LEN(fds), 10), 0);
	assert_int_equal(rsend(b.r.client, "y", 1, 0), 1);
	assert_int_equal(rpoll(fds, ARRAY_LEN(fds), 1000), ARRAY_LEN(fds) / 2);
	close_beside(&b);
}

static void selects(void **state)
{
	struct timeval soon = { .tv_usec = 5000 };
	fd_set in, out, other;
	struct beside b;
	int most;

	(void)state;
	open_beside(&b, IB);
	most = (b.r.server > b.out ? b.r.server : b.out) + 1;
	FD_ZERO(&in);
	FD_ZERO(&out);
	FD_ZERO(&other);
	FD_SET(b.r.server, &in);
	FD_SET(b.in, &in);
	FD_SET(b.r.server, &other);
	assert_int_equal(rselect(most, &in, NULL, &other, &soon), 0);
	assert_false(FD_ISSET(b.r.server, &in) || FD_ISSET(b.in, &in) || FD_ISSET(b.r.server, &other));
	assert_int_equal(rsend(b.r.client, "y", 1, 0), 1);
	FD_SET(b.r.server, &in);
	FD_SET(b.in, &in);
	FD_SET(b.out, &out);
	assert_int_equal(rselect(most, &in, &out, NULL, NULL), 1);
	assert_true(FD_ISSET(b.out, &out));
	FD_ZERO(&in);
	FD_SET(b.r.server, &in);
	assert_int_equal(rselect(most, &in, NULL, NULL, NULL), 1);
	assert_true(FD_ISSET(b.r.server, &in));
	FD_ZERO(&in);
	FD_SET(1000, &in);
	assert_errno(rselect(1001, &in, NULL, NULL, &soon), EBADF);
	assert_errno(rselect(-1, NULL, NULL, NULL, NULL), EINVAL);
	close_beside(&b);
}

static void sets_of_descriptors(void **state)
{
	struct epoll_event event = { .events = EPOLLIN, .data.u64 = 11 }, found[4];
	struct beside b;
	int set;

	(void)state;
	open_beside(&b, ROCE);
	set = repoll_create(0);
	assert_true(set >= 0);
	assert_int_equal(repoll_ctl(set, EPOLL_CTL_ADD, b.r.server, &event), 0);
	assert_errno(repoll_ctl(set, EPOLL_CTL_ADD, b.r.server, &event), EEXIST);
	event.data.u64 = 22;
	assert_int_equal(repoll_ctl(set, EPOLL_CTL_ADD, b.in, &event), 0);
	assert_int_equal(repoll_wait(set, found, 4, 10), 0);
	assert_int_equal(rsend(b.r.client, "y", 1, 0), 1);
	assert_int_equal(repoll_wait(set, found, 4, -1), 1);
	assert_int_equal(found[0].data.u64, 11);
	assert_int_equal(found[0].events, EPOLLIN);
	assert_int_equal(write(b.out, "x", 1), 1);
	assert_int_equal(repoll_wait(set, found, 4, 0), 2);
	assert_int_equal(repoll_wait(set, found, 1, 0), 1);
	event.events = EPOLLOUT;
	assert_int_equal(repoll_ctl(set, EPOLL_CTL_MOD, b.r.server, &event), 0);
	assert_int_equal(repoll_ctl(set, EPOLL_CTL_DEL, b.in, NULL), 0);
	assert_int_equal(repoll_wait(set, found, 4, 0), 1);
	assert_int_equal(found[0].events, EPOLLOUT);
	assert_errno(repoll_ctl(set, EPOLL_CTL_DEL, b.in, NULL), ENOENT);
	assert_errno(repoll_ctl(set, EPOLL_CTL_ADD, set, &event), EINVAL);
	assert_errno(repoll_ctl(set, 77, b.r.server, &event), EINVAL);
	event.events = EPOLLIN | EPOLLET;
	assert_errno(repoll_ctl(set, EPOLL_CTL_ADD, b.in, &event), EINVAL);
	assert_errno(repoll_ctl(b.r.server, EPOLL_CTL_ADD, b.in, &event), ENOTSOCK);
	assert_errno(repoll_wait(set, found, 0, 0), EINVAL);
	assert_errno(rsend(set, "x", 1, 0), ENOTSOCK);
	assert_errno(rlisten(set, 1), ENOTSOCK);
	assert_errno(rsetsockopt(set, SOL_SOCKET, SO_SNDBUF, found, 4), ENOTSOCK);
	assert_int_equal(rsockets_poll(set, POLLIN, 1), 0);
	assert_int_equal(rclose(set), 0);
	assert_errno(repoll_wait(set, found, 4, 0), EBADF);
	close_beside(&b);
}

/* What is closed is in no set any more, though nobody has taken it out. */
static void closed_ones_leave_sets(void **state)
{
	struct epoll_event event = { .events = EPOLLIN, .data.u64 = 11 }, found[4];
	struct beside b;
	int set, number;

	(void)state;
	open_beside(&b, ROCE);
	set = repoll_create(0);
	assert_true(set >= 0);
	assert_int_equal(repoll_ctl(set, EPOLL_CTL_ADD, b.r.server, &event), 0);
	assert_int_equal(repoll_ctl(set, EPOLL_CTL_ADD, b.in, &event), 0);
	assert_int_equal(rclose(b.r.server), 0);
	assert_int_equal(close(b.in), 0);
	assert_int_equal(repoll_wait(set, found, 4, 10), 0);
	assert_errno(repoll_ctl(set, EPOLL_CTL_DEL, b.in, NULL), ENOENT);
	b.in = -1;
	/* Closed, and its number is another's at once. */
	number = rsocket(AF_INET, SOCK_STREAM, 0);
	assert_int_equal(repoll_ctl(set, EPOLL_CTL_ADD, number, &event), 0);
	assert_int_equal(rclose(number), 0);
	assert_int_equal(rsocket(AF_INET, SOCK_STREAM, 0), number);
	assert_errno(repoll_ctl(set, EPOLL_CTL_MOD, number, &event), ENOENT);
	assert_int_equal(repoll_ctl(set, EPOLL_CTL_ADD, number, &event), 0);
	assert_int_equal(rclose(number), 0);
	assert_int_equal(rclose(set), 0);
	b.r.server = -1;
	close_beside(&b);
}

static ssize_t receives(struct rsockets *r, char *buf, size_t size)
{
	return rrecv(r->server, buf, size, 0);
}

static ssize_t sends(struct rsockets *r, char *buf, size_t size)
{
	return rsend(r->client, buf, size, 0);
}

static ssize_t accepts(struct rsockets *r, char *buf, size_t size)
{
	(void)buf;
	(void)size;
	return raccept(r->listener, NULL, NULL);
}

static ssize_t connects(struct rsockets *r, char *buf, size_t size)
{
	struct sockaddr_in to = pair_address("10.0.0.99", SERVER_PORT);

	(void)buf;
	(void)size;
	assert_int_equal(rclose(r->client), 0);
	r->client = rsocket(AF_INET, SOCK_STREAM, 0);
	assert_int_equal(rsetsockopt(r->client, SOL_SOCKET, SO_SNDTIMEO,
				     &(struct timeval){ .tv_usec = 250000 }, sizeof(struct timeval)), 0);
	return rconnect(r->client, (struct sockaddr *)&to, sizeof(to));
}

static ssize_t receives_datagram(struct rsockets *r, char *buf, size_t size)
{
	assert_int_equal(rclose(r->client), 0);
	r->client = rsocket(AF_INET, SOCK_DGRAM, 0);
	assert_int_equal(rsetsockopt(r->client, SOL_SOCKET, SO_RCVTIMEO,
				     &(struct timeval){ .tv_usec = 250000 }, sizeof(struct timeval)), 0);
	return rrecv(r->client, buf, size, 0);
}

static void waits_end_in_time(void **state)
{
	static const struct {
		ssize_t (*call)(struct rsockets *r, char *buf, size_t size);
		int name, err;
	} calls[] = {
		{ receives, SO_RCVTIMEO, EAGAIN },
		{ sends, SO_SNDTIMEO, EAGAIN },
		{ accepts, SO_RCVTIMEO, EAGAIN },
		{ connects, SO_SNDTIMEO, EINPROGRESS },
		{ receives_datagram, SO_RCVTIMEO, EAGAIN },
	};
	static char buf[1 << 20];

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(calls); i++) {
		struct timeval time = { .tv_usec = 250000 }, read;
		socklen_t len = sizeof(read);
		struct rsockets r;
		uint64_t before;

		rsockets_connect(&r, ROCE);
		for (int at = 0; at < 3; at++) {
			int fd = (int[]){ r.listener, r.client, r.server }[at];

			assert_int_equal(rfcntl(fd, F_SETFL, 0), 0);
			assert_int_equal(rsetsockopt(fd, SOL_SOCKET, calls[i].name, &time,
						     sizeof(time)), 0);
			assert_int_equal(rgetsockopt(fd, SOL_SOCKET, calls[i].name, &read, &len), 0);
			assert_memory_equal(&read, &time, sizeof(time));
		}
		/* What there is room for. */
		if (calls[i].call == sends)
			assert_true(rsend(r.client, buf, sizeof(buf), 0) > 0);
		before = pair_now();
		assert_errno(calls[i].call(&r, buf, sizeof(buf)), calls[i].err);
		assert_in_range(pair_now() - before, 250 * MS, 252 * MS);
		time.tv_usec = 1000000;
		assert_errno(rsetsockopt(r.server, SOL_SOCKET, calls[i].name, &time,
					 sizeof(time)), EDOM);
		assert_errno(rsetsockopt(r.server, SOL_SOCKET, calls[i].name, &time, 4), EINVAL);
		rsockets_close(&r);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(polls_both),
		cmocka_unit_test(polls_many),
		cmocka_unit_test(selects),
		cmocka_unit_test(sets_of_descriptors),
		cmocka_unit_test(closed_ones_leave_sets),
		cmocka_unit_test(waits_end_in_time),
	};

	return cmocka_run_group_tests(tests, pair_group_setup, NULL);
}
