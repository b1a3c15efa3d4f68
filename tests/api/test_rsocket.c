/* SPDX-License-Identifier: BSD-2-Clause */
/* test_rsocket.c - connected rsockets: data, ends of directions, options, refused calls. */
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "rsockets.h"

#define MS UINT64_C(1000000)

static void connects_and_carries(void **state)
{
	(void)state;
	for (enum transport t = 0; t < NUM_TRANSPORTS; t++) {
		struct rsockets r;
		char buf[16];

		rsockets_connect(&r, t);
		assert_int_equal(rsend(r.client, "hello", 6, 0), 6);
		assert_int_equal(rsockets_poll(r.server, POLLIN, 1000), POLLIN);
		assert_int_equal(rrecv(r.server, buf, sizeof(buf), 0), 6);
		assert_string_equal(buf, "hello");
		assert_errno(rrecv(r.server, buf, sizeof(buf), 0), EAGAIN);
		assert_int_equal(rclose(r.client), 0);
		r.client = -1;
		assert_int_equal(rsockets_poll(r.server, POLLIN, 1000), POLLIN | POLLHUP);
		assert_int_equal(rrecv(r.server, buf, sizeof(buf), 0), 0);
		assert_errno(rsend(r.server, "x", 1, 0), ECONNRESET);
		rsockets_close(&r);
	}
}

/* --- sizes --- */

static const struct sizes {
	size_t len, piece;
	int send_buffer, receive_buffer, sends, receives, inline_data;	/* 0: as it is */
} sizes[] = {
	{ .len = 1, .piece = 1 },
	{ .len = 3000, .piece = 1 },
	{ .len = 100000, .piece = 1000 },
	{ .len = 1000000, .piece = 1000000 },
	{ .len = 1000000, .piece = 70001 },
	{ .len = 300000, .piece = 4097, .send_buffer = 1, .receive_buffer = 1 },
	{ .len = 300000, .piece = 100000, .send_buffer = 5001, .receive_buffer = 6001 },
	{ .len = 300000, .piece = 100000, .sends = 1, .receives = 1 },
	{ .len = 20000, .piece = 7, .sends = 16, .receives = 16 },
	{ .len = 50000, .piece = 20, .inline_data = -1 },
	{ .len = 50000, .piece = 300, .inline_data = 256 },
};

static void set(int fd, int level, int name, int value)
{
	if (value > 0)
		assert_int_equal(rsetsockopt(fd, level, name, &value, sizeof(value)), 0);
}

static void set_sizes(int fd, const struct sizes *s)
{
	int none = 0;

	set(fd, SOL_SOCKET, SO_SNDBUF, s->send_buffer);
	set(fd, SOL_SOCKET, SO_RCVBUF, s->receive_buffer);
	set(fd, SOL_RDMA, RDMA_SQSIZE, s->sends);
	set(fd, SOL_RDMA, RDMA_RQSIZE, s->receives);
	set(fd, SOL_RDMA, RDMA_INLINE, s->inline_data);
	if (s->inline_data < 0)
		assert_int_equal(rsetsockopt(fd, SOL_RDMA, RDMA_INLINE, &none, sizeof(none)), 0);
}

static void carries_all_sizes(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
		enum transport t = (enum transport)(i % NUM_TRANSPORTS);
		struct rsockets r;

		print_message("%zu bytes by %zu on %s\n", sizes[i].len, sizes[i].piece,
			      transport_name[t]);
		rsockets_open(&r, t);
		set_sizes(r.listener, &sizes[i]);
		set_sizes(r.client, &sizes[i]);
		rsockets_connect_opened(&r);
		rsockets_carry(&r, true, sizes[i].len, sizes[i].piece);
		rsockets_carry(&r, false, sizes[i].len, sizes[i].piece);
		rsockets_close(&r);
	}
}

/* One end that never reads stops the other, which goes on when it does. */
static void a_full_buffer_stops_the_sender(void **state)
{
	(void)state;
	for (enum transport t = 0; t < NUM_TRANSPORTS; t++) {
		static uint8_t buf[1 << 16];
		size_t sent = 0, received = 0;
		struct rsockets r;
		ssize_t num;

		rsockets_connect(&r, t);
		while (rsockets_poll(r.client, POLLOUT, 10)) {
			num = rsend(r.client, buf, sizeof(buf), 0);
			assert_true(num > 0);
			sent += (size_t)num;
			assert_int_equal(rsockets_poll(r.server, POLLIN, 10), POLLIN);
		}
		assert_errno(rsend(r.client, buf, 1, 0), EAGAIN);
		assert_true(sent >= 1 << 16);
		while (received < sent) {
			num = rrecv(r.server, buf, sizeof(buf), 0);
			assert_true(num > 0 || errno == EAGAIN);
			received += num > 0 ? (size_t)num : 0;
			(void)rsockets_poll(r.client, POLLOUT, 10);
		}
		assert_int_equal(rsockets_poll(r.client, POLLOUT, 10), POLLOUT);
		rsockets_close(&r);
	}
}

/* --- flags and vectors --- */

static void flags_of_receiving(void **state)
{
	struct rsockets r;
	char buf[16] = "";

	(void)state;
	rsockets_connect(&r, ROCE);
	assert_int_equal(rsend(r.client, "abcdef", 6, 0), 6);
	assert_int_equal(rsockets_poll(r.server, POLLIN, 1000), POLLIN);
	assert_int_equal(rrecv(r.server, buf, 4, MSG_PEEK), 4);
	assert_memory_equal(buf, "abcd", 4);
	assert_int_equal(rrecv(r.server, buf, 16, MSG_PEEK), 6);
	assert_int_equal(rrecv(r.server, buf, 2, 0), 2);
	assert_memory_equal(buf, "ab", 2);
	assert_int_equal(rsend(r.client, "ghij", 4, 0), 4);
	assert_int_equal(rfcntl(r.server, F_SETFL, 0), 0);
	assert_int_equal(rrecv(r.server, buf, 8, MSG_WAITALL), 8);
	assert_memory_equal(buf, "cdefghij", 8);
	assert_errno(rrecv(r.server, buf, 1, MSG_DONTWAIT), EAGAIN);
	/* One thread, which nobody can wake up. */
	assert_errno(rrecv(r.server, buf, 1, 0), EDEADLK);
	rsockets_close(&r);
}

static void vectors(void **state)
{
	char a[4] = "", b[16] = "", control[8], text[] = "abcdefg";
	struct iovec out[3] = { { text, 2 }, { text, 0 }, { text + 2, 5 } };
	struct iovec in[2] = { { a, 3 }, { b, sizeof(b) } };
	struct msghdr msg = { .msg_iov = in, .msg_iovlen = 2 };
	struct rsockets r;

	(void)state;
	rsockets_connect(&r, IB);
	assert_int_equal(rwritev(r.client, out, 3), 7);
	assert_int_equal(rsockets_poll(r.server, POLLIN, 1000), POLLIN);
	assert_int_equal(rreadv(r.server, in, 2), 7);
	assert_string_equal(a, "abc");
	assert_string_equal(b, "defg");
	assert_int_equal(rsendmsg(r.client, &(struct msghdr){ .msg_iov = out, .msg_iovlen = 3 }, 0), 7);
	assert_int_equal(rsockets_poll(r.server, POLLIN, 1000), POLLIN);
	assert_int_equal(rrecvmsg(r.server, &msg, 0), 7);
	msg.msg_control = control;
	msg.msg_controllen = sizeof(control);
	assert_int_equal(rwrite(r.client, "h", 1), 1);
	assert_int_equal(rsockets_poll(r.server, POLLIN, 1000), POLLIN);
	/* There never is any. */
	assert_int_equal(rrecvmsg(r.server, &msg, 0), 1);
	assert_int_equal(msg.msg_controllen, 0);
	msg.msg_controllen = sizeof(control);
	assert_errno(rsendmsg(r.server, &msg, 0), EOPNOTSUPP);
	assert_errno(rwritev(r.client, out, -1), EINVAL);
	assert_int_equal(rwrite(r.client, "", 0), 0);
	rsockets_close(&r);
}

/* --- the end --- */

static void each_direction_ends(void **state)
{
	(void)state;
	for (enum transport t = 0; t < NUM_TRANSPORTS; t++) {
		struct rsockets r;
		char buf[16];

		rsockets_connect(&r, t);
		assert_int_equal(rsend(r.client, "last", 4, 0), 4);
		assert_int_equal(rshutdown(r.client, SHUT_WR), 0);
		assert_errno(rsend(r.client, "x", 1, 0), EPIPE);
		assert_int_equal(rsockets_poll(r.server, POLLIN, 1000), POLLIN);
		assert_int_equal(rrecv(r.server, buf, sizeof(buf), 0), 4);
		assert_int_equal(rrecv(r.server, buf, sizeof(buf), 0), 0);
		/* The other one goes on. */
		rsockets_carry(&r, false, 100000, 5000);
		assert_int_equal(rshutdown(r.server, SHUT_WR), 0);
		assert_int_equal(rsockets_poll(r.client, POLLIN, 1000), POLLIN | POLLHUP);
		assert_int_equal(rrecv(r.client, buf, sizeof(buf), 0), 0);
		assert_int_equal(rshutdown(r.client, SHUT_RDWR), 0);
		rsockets_close(&r);
	}
}

static void shutdown_of_reading(void **state)
{
	struct rsockets r;
	char buf[4];

	(void)state;
	rsockets_connect(&r, ROCE);
	assert_int_equal(rshutdown(r.client, SHUT_RD), 0);
	assert_int_equal(rrecv(r.client, buf, sizeof(buf), 0), 0);
	rsockets_carry(&r, true, 1000, 100);
	assert_int_equal(rshutdown(r.client, SHUT_WR), 0);
	assert_int_equal(rsockets_poll(r.server, POLLIN, 1000), POLLIN | POLLHUP);
	assert_errno(rshutdown(r.client, 7), EINVAL);
	rsockets_close(&r);
}

/* What was sent before the end is there after it. */
static void data_before_the_end(void **state)
{
	(void)state;
	for (enum transport t = 0; t < NUM_TRANSPORTS; t++) {
		static uint8_t buf[50000];
		struct rsockets r;

		rsockets_connect(&r, t);
		assert_int_equal(rsend(r.client, buf, sizeof(buf), 0), sizeof(buf));
		assert_int_equal(rclose(r.client), 0);
		r.client = -1;
		assert_int_equal(polycm_sim_advance(1000 * MS), 0);
		assert_int_equal(rsockets_poll(r.server, POLLIN, 1000), POLLIN);
		assert_int_equal(rrecv(r.server, buf, sizeof(buf), 0), sizeof(buf));
		assert_int_equal(rrecv(r.server, buf, sizeof(buf), 0), 0);
		rsockets_close(&r);
	}
}

/* A listener that is closed takes those with it that nobody has accepted. */
static void closing_a_listener(void **state)
{
	struct rsockets r;

	(void)state;
	rsockets_open(&r, ROCE);
	assert_errno(rsockets_connect_client(&r), EINPROGRESS);
	assert_int_equal(rsockets_poll(r.client, POLLOUT, 100), 0);
	assert_int_equal(rsockets_poll(r.listener, POLLIN, 1000), POLLIN);
	assert_int_equal(rclose(r.listener), 0);
	r.listener = -1;
	assert_true(rsockets_poll(r.client, POLLIN, 10000));
	rsockets_close(&r);
}

/* iWARP's responder must not send before the initiator; that one does as soon as it is connected. */
static void the_initiator_sends_first(void **state)
{
	(void)state;
	for (int closes = 0; closes < 2; closes++) {
		struct rsockets r;

		rsockets_open(&r, IWARP);
		assert_errno(rsockets_connect_client(&r), EINPROGRESS);
		while (!rsockets_poll(r.listener, POLLIN, 1))
			assert_int_equal(rsockets_poll(r.client, POLLIN, 1), 0);
		r.server = raccept(r.listener, NULL, NULL);
		assert_true(r.server >= 0);
		assert_int_equal(rsockets_poll(r.server, POLLOUT, 1000), 0);
		assert_errno(rsend(r.server, "x", 1, 0), EAGAIN);
		if (closes) {
			assert_int_equal(rclose(r.server), 0);
			r.server = -1;
			assert_true(rsockets_poll(r.client, POLLIN, 1000) & (POLLHUP | POLLERR));
		} else {
			assert_int_equal(rsockets_poll(r.client, POLLOUT, 1000), POLLOUT);
			assert_int_equal(rsockets_poll(r.server, POLLOUT, 1000), POLLOUT);
		}
		rsockets_close(&r);
	}
}

/* --- calls at the wrong time --- */

static void wrong_states(void **state)
{
	struct sockaddr_in in = pair_address(SERVER_ADDRESS, 1), name;
	socklen_t len = sizeof(name);
	struct rsockets r;
	char buf[4];

	(void)state;
	rsockets_open(&r, ROCE);
	assert_errno(rsend(r.client, "x", 1, 0), ENOTCONN);
	assert_errno(rrecv(r.client, buf, 1, 0), ENOTCONN);
	assert_errno(rshutdown(r.client, SHUT_WR), ENOTCONN);
	assert_errno(rgetpeername(r.client, (struct sockaddr *)&name, &len), ENOTCONN);
	assert_errno(raccept(r.client, NULL, NULL), EINVAL);
	assert_errno(raccept(r.listener, NULL, NULL), EAGAIN);
	assert_errno(rconnect(r.listener, (struct sockaddr *)&in, sizeof(in)), EINVAL);
	assert_errno(rconnect(r.client, (struct sockaddr *)&in, 3), EINVAL);
	assert_errno(rbind(r.listener, (struct sockaddr *)&in, sizeof(in)), EINVAL);
	assert_errno(rsend(r.listener, "x", 1, 0), ENOTCONN);
	assert_int_equal(rsockets_poll(r.client, POLLIN | POLLOUT, 0), 0);
	assert_int_equal(rlisten(r.listener, 3), 0);
	rsockets_connect_opened(&r);
	assert_int_equal(rsockets_connect_client(&r), 0);
	assert_errno(rlisten(r.client, 3), EINVAL);
	assert_int_equal(rgetpeername(r.client, (struct sockaddr *)&name, &len), 0);
	assert_int_equal(len, sizeof(name));
	assert_int_equal(ntohs(name.sin_port), SERVER_PORT);
	len = 4;
	assert_int_equal(rgetsockname(r.server, (struct sockaddr *)&name, &len), 0);
	assert_int_equal(len, sizeof(name));
	rsockets_close(&r);
}

static void no_such_sockets(void **state)
{
	struct sockaddr_in in = pair_address(SERVER_ADDRESS, 1);
	const int bad[] = { -1, 0, 1000000 };
	socklen_t len = sizeof(in);
	char buf[4];

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		int fd = bad[i];

		assert_errno(rbind(fd, (struct sockaddr *)&in, len), EBADF);
		assert_errno(rlisten(fd, 1), EBADF);
		assert_errno(raccept(fd, NULL, NULL), EBADF);
		assert_errno(rconnect(fd, (struct sockaddr *)&in, len), EBADF);
		assert_errno(rshutdown(fd, SHUT_WR), EBADF);
		assert_errno(rclose(fd), EBADF);
		assert_errno(rrecv(fd, buf, 1, 0), EBADF);
		assert_errno(rrecvfrom(fd, buf, 1, 0, NULL, NULL), EBADF);
		assert_errno(rread(fd, buf, 1), EBADF);
		assert_errno(rsend(fd, buf, 1, 0), EBADF);
		assert_errno(rsendto(fd, buf, 1, 0, NULL, 0), EBADF);
		assert_errno(rwrite(fd, buf, 1), EBADF);
		assert_errno(rgetpeername(fd, (struct sockaddr *)&in, &len), EBADF);
		assert_errno(rgetsockname(fd, (struct sockaddr *)&in, &len), EBADF);
		assert_errno(rsetsockopt(fd, SOL_SOCKET, SO_SNDBUF, buf, 4), EBADF);
		assert_errno(rgetsockopt(fd, SOL_SOCKET, SO_SNDBUF, buf, &len), EBADF);
		assert_errno(rfcntl(fd, F_GETFL), EBADF);
		assert_errno(riomap(fd, buf, 4, 0, 0, -1), EBADF);
		assert_errno(riounmap(fd, buf, 4), EBADF);
		assert_errno((ssize_t)riowrite(fd, buf, 4, 0, 0), EBADF);
	}
	assert_errno(rsocket(AF_UNIX, SOCK_STREAM, 0), EOPNOTSUPP);
	assert_errno(rsocket(AF_INET, SOCK_RAW, 0), EOPNOTSUPP);
	assert_errno(rsocket(AF_INET, SOCK_STREAM, IPPROTO_UDP), EOPNOTSUPP);
	assert_errno(rsocket(AF_INET, SOCK_DGRAM, IPPROTO_TCP), EOPNOTSUPP);
}

/* --- options --- */

static const struct option {
	int level, name, value, expected;
} options[] = {
	{ SOL_SOCKET, SO_REUSEADDR, 1, 1 },
	{ SOL_SOCKET, SO_KEEPALIVE, 1, 1 },
	{ SOL_SOCKET, SO_KEEPALIVE, 0, 0 },
	{ SOL_SOCKET, SO_OOBINLINE, 5, 1 },
	{ SOL_SOCKET, SO_SNDBUF, 10000, 20000 },
	{ SOL_SOCKET, SO_RCVBUF, 1, 4096 },
	{ IPPROTO_TCP, TCP_NODELAY, 1, 1 },
	{ IPPROTO_TCP, TCP_NODELAY, 0, 0 },
	{ IPPROTO_TCP, TCP_KEEPIDLE, 77, 77 },
	{ IPPROTO_TCP, TCP_KEEPCNT, 9, 1 },
	{ IPPROTO_IP, IP_TOS, 16, 16 },
	{ SOL_RDMA, RDMA_SQSIZE, 100, 100 },
	{ SOL_RDMA, RDMA_RQSIZE, 1000000, 65534 },
	{ SOL_RDMA, RDMA_INLINE, 0, 0 },
	{ SOL_RDMA, RDMA_IOMAPSIZE, 128, 128 },
	{ SOL_RDMA, RDMA_IOMAPSIZE, 1000, 768 },
	{ SOL_RDMA, RDMA_IOMAPSIZE, 1000000, 32512 },
};

static int get(int fd, int level, int name)
{
	socklen_t len = sizeof(int);
	int value = -1;

	assert_int_equal(rgetsockopt(fd, level, name, &value, &len), 0);
	assert_int_equal(len, sizeof(value));
	return value;
}

static void options_are_kept(void **state)
{
	struct linger linger;
	struct tcp_info info;
	struct rsockets r;
	uint8_t path[256];
	socklen_t len;
	int value = 3;

	(void)state;
	rsockets_open(&r, IB);
	for (size_t i = 0; i < ARRAY_LEN(options); i++) {
		const struct option *o = &options[i];

		assert_int_equal(rsetsockopt(r.client, o->level, o->name, &o->value, sizeof(int)), 0);
		assert_int_equal(get(r.client, o->level, o->name), o->expected);
	}
	assert_int_equal(get(r.client, SOL_SOCKET, SO_TYPE), SOCK_STREAM);
	assert_int_equal(get(r.client, SOL_SOCKET, SO_ACCEPTCONN), 0);
	assert_int_equal(get(r.listener, SOL_SOCKET, SO_ACCEPTCONN), 1);
	len = sizeof(linger);
	assert_int_equal(rgetsockopt(r.client, SOL_SOCKET, SO_LINGER, &linger, &len), 0);
	assert_int_equal(linger.l_onoff, 1);
	assert_errno(rsetsockopt(r.client, SOL_SOCKET, 12345, &value, sizeof(value)), EOPNOTSUPP);
	assert_errno(rgetsockopt(r.client, IPPROTO_TCP, 12345, &value, &len), EOPNOTSUPP);
	assert_errno(rsetsockopt(r.client, IPPROTO_TCP, TCP_NODELAY, &value, 1), EINVAL);
	assert_errno(rsetsockopt(r.client, IPPROTO_TCP, TCP_KEEPIDLE, &(int){ 0 }, sizeof(int)), EINVAL);
	assert_errno(rfcntl(r.client, F_DUPFD, 0), EOPNOTSUPP);
	assert_int_equal(rfcntl(r.client, F_GETFL), O_RDWR | O_NONBLOCK);
	assert_int_equal(rfcntl(r.client, F_SETFD, FD_CLOEXEC), 0);
	assert_int_equal(rfcntl(r.client, F_GETFD), FD_CLOEXEC);
	rsockets_connect_opened(&r);
	assert_errno(rsetsockopt(r.client, SOL_RDMA, RDMA_SQSIZE, &value, sizeof(value)), EINVAL);
	assert_int_equal(get(r.client, IPPROTO_TCP, TCP_MAXSEG), 4096);
	len = sizeof(info);
	assert_int_equal(rgetsockopt(r.client, IPPROTO_TCP, TCP_INFO, &info, &len), 0);
	assert_int_equal(info.tcpi_state, TCP_ESTABLISHED);
	len = sizeof(path);
	assert_int_equal(rgetsockopt(r.client, SOL_RDMA, RDMA_ROUTE, path, &len), 0);
	assert_int_equal(len, sizeof(struct ibv_path_data));
	rsockets_close(&r);
}

/* The route of one connection is that of another, which then asks nobody. */
static void a_route_is_given(void **state)
{
	struct polycm_sim_fault *fault;
	unsigned int hits;
	struct rsockets r;
	uint8_t path[256];
	socklen_t len = sizeof(path);

	(void)state;
	rsockets_connect(&r, IB);
	assert_int_equal(rgetsockopt(r.client, SOL_RDMA, RDMA_ROUTE, path, &len), 0);
	assert_int_equal(rclose(r.client), 0);
	assert_int_equal(rclose(r.server), 0);
	r.server = -1;
	r.client = rsocket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
	assert_int_equal(rsetsockopt(r.client, SOL_RDMA, RDMA_ROUTE, path, len), 0);
	assert_int_equal(polycm_sim_fault_add(POLYCM_SIM_FAULT(.action = POLYCM_SIM_ANSWER_NEVER,
							       .message = "path"), &fault), 0);
	rsockets_connect_opened(&r);
	assert_int_equal(polycm_sim_fault_hits(fault, &hits), 0);
	assert_int_equal(hits, 0);
	rsockets_carry(&r, true, 10, 10);
	rsockets_close(&r);
}

/* --- fork() --- */

static int in_child(const struct rsockets *r)
{
	char buf[4];

	if (rrecv(r->client, buf, 1, 0) != -1 || errno != EACCES)
		return 1;
	if (rclose(r->client))
		return 2;
	return rclose(r->client) == -1 && errno == EBADF ? 0 : 3;
}

static void a_child_has_none_of_them(void **state)
{
	struct rsockets r;
	int status;
	pid_t pid;

	(void)state;
	rsockets_connect(&r, ROCE);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid)
		_exit(in_child(&r));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	rsockets_carry(&r, true, 1000, 100);
	rsockets_close(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(connects_and_carries),
		cmocka_unit_test(carries_all_sizes),
		cmocka_unit_test(a_full_buffer_stops_the_sender),
		cmocka_unit_test(flags_of_receiving),
		cmocka_unit_test(vectors),
		cmocka_unit_test(each_direction_ends),
		cmocka_unit_test(shutdown_of_reading),
		cmocka_unit_test(data_before_the_end),
		cmocka_unit_test(closing_a_listener),
		cmocka_unit_test(the_initiator_sends_first),
		cmocka_unit_test(wrong_states),
		cmocka_unit_test(no_such_sockets),
		cmocka_unit_test(options_are_kept),
		cmocka_unit_test(a_route_is_given),
		cmocka_unit_test(a_child_has_none_of_them),
	};

	return cmocka_run_group_tests(tests, pair_group_setup, NULL);
}
