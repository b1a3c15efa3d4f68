/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * tcp.c - a server and clients over TCP, which tcp.sh starts on nodes of a scenario with tcp = true.
 * Lines have milliseconds since the program's begin.
 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "member.h"

#define PORT "5000"
#define BULK 1000000

static struct timespec begun;
static const char *host = "10.0.0.1";	/* of the server */
static int num_messages = 3;

static long ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (now.tv_sec - begun.tv_sec) * 1000 + (now.tv_nsec - begun.tv_nsec) / 1000000;
}

static const char *name(const struct sockaddr_storage *address, socklen_t len)
{
	static char text[4][100];
	static int at;
	char host[64], port[16];

	at = (at + 1) % 4;
	CHECK(!getnameinfo((const struct sockaddr *)address, len, host, sizeof(host), port,
			   sizeof(port), NI_NUMERICHOST | NI_NUMERICSERV));
	snprintf(text[at], sizeof(text[at]), "%s port %s", host, port);
	return text[at];
}

static const char *end_of(int fd, int (*get)(int, struct sockaddr *, socklen_t *))
{
	struct sockaddr_storage address;
	socklen_t len = sizeof(address);

	CHECK(!get(fd, (struct sockaddr *)&address, &len));
	return name(&address, len);
}

static int open_socket(struct addrinfo **ret)
{
	const struct addrinfo hints = { .ai_socktype = SOCK_STREAM };
	int fd;

	CHECK(!getaddrinfo(host, PORT, &hints, ret));
	fd = socket((*ret)->ai_family, SOCK_STREAM, 0);
	CHECK(fd >= 0);
	return fd;
}

/* Of connect(): 0 or an errno. */
static int begin(int *ret_fd)
{
	struct addrinfo *to;
	int fd = open_socket(&to), r;

	r = connect(fd, to->ai_addr, to->ai_addrlen) ? errno : 0;
	freeaddrinfo(to);
	*ret_fd = fd;
	return r;
}

static int connect_to_server(void)
{
	int fd, r = begin(&fd);

	printf("connect: %s, %ld ms\n", r ? strerror(r) : "done", ms());
	if (r)
		exit(0);
	return fd;
}

/* All of it back; false: the connection has an error. */
static int echo(int fd, size_t len)
{
	static char out[BULK], in[BULK];
	size_t sent = 0, got = 0;
	ssize_t num;

	memset(out, 'x', len);
	while (got < len) {
		if (sent < len) {
			num = send(fd, out + sent, len - sent, MSG_NOSIGNAL | MSG_DONTWAIT);
			if (num < 0 && errno != EAGAIN)
				return 0;
			sent += num > 0 ? (size_t)num : 0;
		}
		num = recv(fd, in + got, len - got, sent < len ? MSG_DONTWAIT : 0);
		if (!num)
			errno = ENODATA;
		if (!num || (num < 0 && errno != EAGAIN))
			return 0;
		got += num > 0 ? (size_t)num : 0;
	}
	return !memcmp(out, in, len);
}

static void serve_one(int fd)
{
	static char bytes[65536];
	ssize_t num, all = 0, done;

	while ((num = recv(fd, bytes, sizeof(bytes), 0)) > 0) {
		for (done = 0; done < num; done += all) {
			all = send(fd, bytes + done, (size_t)(num - done), MSG_NOSIGNAL);
			if (all < 0)
				break;
		}
	}
	printf("served: %s, %ld ms\n", num ? strerror(errno) : "to the end", ms());
	fflush(stdout);
	close(fd);
}

/* The i-th connection gets the i-th process. */
static _Noreturn void serve(int family, unsigned int late_s)
{
	const int on = 1;
	struct sockaddr_in6 any6 = { .sin6_family = AF_INET6, .sin6_port = htons(5000) };
	struct sockaddr_in any = { .sin_family = AF_INET, .sin_port = htons(5000) };
	struct sockaddr_storage peer;
	int listener = socket(family, SOCK_STREAM, 0), fd;
	socklen_t len;

	CHECK(listener >= 0);
	CHECK(!setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)));
	CHECK(!(family == AF_INET ? bind(listener, (struct sockaddr *)&any, sizeof(any)) :
		bind(listener, (struct sockaddr *)&any6, sizeof(any6))));
	CHECK(!listen(listener, 10));
	signal(SIGCHLD, SIG_IGN);
	sleep(late_s);
	for (;;) {
		len = sizeof(peer);
		fd = accept(listener, (struct sockaddr *)&peer, &len);
		CHECK(fd >= 0);
		printf("accept: %s, which is %s, at %s\n", name(&peer, len),
		       end_of(fd, getpeername), end_of(fd, getsockname));
		fflush(stdout);
		if (!fork()) {
			serve_one(fd);
			_exit(0);
		}
		close(fd);
	}
}

/* Small messages, with pauses. */
static void talk(void)
{
	int fd = connect_to_server();
	char byte;

	printf("at %s, to %s\n", end_of(fd, getsockname), end_of(fd, getpeername));
	for (int i = 0; i < num_messages; i++) {
		if (!echo(fd, 100)) {
			printf("message %d: %s, %ld ms\n", i, strerror(errno), ms());
			return;
		}
		printf("message %d: %ld ms\n", i, ms());
		usleep(100000);
	}
	CHECK(!shutdown(fd, SHUT_WR));
	CHECK(!recv(fd, &byte, sizeof(byte), 0));
	printf("end: %ld ms\n", ms());
}

static void bulk(void)
{
	int fd = connect_to_server();

	CHECK(echo(fd, BULK));
	printf("bulk: %ld ms\n", ms());
}

/* Until the socket is ready for that. */
static uint32_t await(int set, int timeout)
{
	struct epoll_event event = { .events = 0 };

	CHECK(epoll_wait(set, &event, 1, timeout) >= 0);
	return event.events;
}

/* As event loops do. */
static void loop(void)
{
	struct epoll_event event = { .events = EPOLLIN | EPOLLOUT | EPOLLET };
	struct addrinfo *to;
	int fd = open_socket(&to), set = epoll_create1(0), error;
	struct sockaddr_storage peer;
	socklen_t len = sizeof(error);

	CHECK(set >= 0 && !fcntl(fd, F_SETFL, O_NONBLOCK));
	CHECK(!epoll_ctl(set, EPOLL_CTL_ADD, fd, &event));
	await(set, 0);	/* Linux tells once that it is not connected */
	CHECK(connect(fd, to->ai_addr, to->ai_addrlen) && errno == EINPROGRESS);
	CHECK(!await(set, 0));
	CHECK(connect(fd, to->ai_addr, to->ai_addrlen) && errno == EALREADY);
	CHECK(!getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len) && !error);
	CHECK(send(fd, "a", 1, 0) < 0 && errno == EAGAIN);
	CHECK(read(fd, &error, 1) < 0 && errno == EAGAIN);
	len = sizeof(peer);
	CHECK(getpeername(fd, (struct sockaddr *)&peer, &len) && errno == ENOTCONN);
	CHECK(await(set, -1) & (EPOLLOUT | EPOLLHUP));
	len = sizeof(error);
	CHECK(!getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len));
	printf("loop: %s, %ld ms\n", error ? strerror(error) : "connected", ms());
	if (error) {
		CHECK(recv(fd, &error, 1, 0) < 0 || !errno);
		CHECK(connect(fd, to->ai_addr, to->ai_addrlen) && errno == EINPROGRESS);
		CHECK(await(set, -1) & EPOLLERR);
		CHECK(send(fd, "a", 1, MSG_NOSIGNAL) < 0 && errno == ECONNREFUSED);
		CHECK(connect(fd, to->ai_addr, to->ai_addrlen) && errno == EINPROGRESS);
		CHECK(await(set, -1) & EPOLLERR);
		CHECK(connect(fd, to->ai_addr, to->ai_addrlen) && errno == ECONNREFUSED);
		return;
	}
	CHECK(!connect(fd, to->ai_addr, to->ai_addrlen));
	CHECK(connect(fd, to->ai_addr, to->ai_addrlen) && errno == EISCONN);
	CHECK(send(fd, "a", 1, 0) == 1 && recv(fd, &error, 1, 0) < 0 && errno == EAGAIN);
	CHECK(await(set, -1) & EPOLLIN);
	printf("loop: answer, %ld ms\n", ms());
	freeaddrinfo(to);
}

static void note(int signal)
{
	(void)signal;
}

/* Signals and time-outs while it connects. */
static void interrupted(void)
{
	struct sigaction action = { .sa_handler = note };
	const struct itimerval soon = { .it_value = { .tv_usec = 5000 } };
	const struct timeval limit = { .tv_usec = 8000 };
	int fd, r;

	CHECK(!sigaction(SIGALRM, &action, NULL) && !setitimer(ITIMER_REAL, &soon, NULL));
	r = begin(&fd);
	printf("without SA_RESTART: %s, %ld ms\n", strerror(r), ms());
	action.sa_flags = SA_RESTART;
	CHECK(!sigaction(SIGALRM, &action, NULL) && !setitimer(ITIMER_REAL, &soon, NULL));
	r = begin(&fd);
	printf("with SA_RESTART: %s\n", strerror(r));
	CHECK(echo(fd, 100));
	{
		struct addrinfo *to;

		fd = open_socket(&to);
		CHECK(!setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit)));
		r = connect(fd, to->ai_addr, to->ai_addrlen) ? errno : 0;
		printf("with SO_SNDTIMEO: %s\n", strerror(r));
		CHECK(connect(fd, to->ai_addr, to->ai_addrlen) && errno == EALREADY);
		usleep(50000);
		CHECK(!connect(fd, to->ai_addr, to->ai_addrlen) && echo(fd, 100));
		freeaddrinfo(to);
	}
}

/* A message that fills all that there is, to who does not read and then goes with a RST. */
static void block(void)
{
	static char bytes[8 * BULK];
	int fd = connect_to_server();
	ssize_t num = send(fd, bytes, sizeof(bytes), MSG_NOSIGNAL);

	CHECK(num > 0 && num < (ssize_t)sizeof(bytes));
	CHECK(send(fd, bytes, sizeof(bytes), MSG_NOSIGNAL) < 0);
	printf("block: part of it, then %s\n", strerror(errno));
	CHECK(send(fd, bytes, 1, MSG_NOSIGNAL) < 0 && errno == EPIPE);
}

/* A long message to who has closed, of whom no RST has come yet. */
static void gone(void)
{
	static char bytes[150000];
	int fd = connect_to_server();

	usleep(100000);
	CHECK(send(fd, bytes, sizeof(bytes), 0) == sizeof(bytes));
	usleep(100000);
	CHECK(send(fd, bytes, sizeof(bytes), MSG_NOSIGNAL) < 0);
	printf("gone: %s\n", strerror(errno));
}

/* One connection, which is reset after a while, or closed at once. */
static void drop(int resets)
{
	const struct linger linger = { .l_onoff = resets };
	struct sockaddr_in any = { .sin_family = AF_INET, .sin_port = htons(5000) };
	int listener = socket(AF_INET, SOCK_STREAM, 0), fd;

	CHECK(!bind(listener, (struct sockaddr *)&any, sizeof(any)) && !listen(listener, 1));
	fd = accept(listener, NULL, NULL);
	CHECK(fd >= 0);
	if (resets)
		sleep(1);
	CHECK(!setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger)));
	close(fd);
	sleep(1000);
}

/* Its descriptors are closed by the kernel. */
static void die(void)
{
	int fd = connect_to_server();

	CHECK(echo(fd, 100));
	fflush(stdout);
	raise(SIGKILL);
}

/* What is not read is in the way of what is sent; when it is read, all goes on. */
static void fill(void)
{
	static char bytes[65536];
	int fd = connect_to_server();
	size_t sent = 0, got = 0;
	ssize_t num;

	CHECK(!fcntl(fd, F_SETFL, O_NONBLOCK));
	for (int quiet = 0; quiet < 100; usleep(1000)) {
		num = send(fd, bytes, sizeof(bytes), MSG_NOSIGNAL);
		quiet = num < 0 ? quiet + 1 : 0;
		sent += num > 0 ? (size_t)num : 0;
	}
	CHECK(sent > 500000 && sent < 5000000);
	CHECK(!shutdown(fd, SHUT_WR) && !fcntl(fd, F_SETFL, 0));
	while ((num = recv(fd, bytes, sizeof(bytes), 0)) > 0)
		got += (size_t)num;
	CHECK(!num && got == sent);
	puts("filled");
}

/* ------------------------------------------------------------------------
 * What few programs do.
 */

static struct sockaddr_storage server;
static socklen_t server_len;

static int open_for(int flags)
{
	struct addrinfo *to;
	int fd = open_socket(&to);

	server_len = to->ai_addrlen;
	memcpy(&server, to->ai_addr, to->ai_addrlen);
	freeaddrinfo(to);
	CHECK(!fcntl(fd, F_SETFL, flags));
	return fd;
}

static int connect_once(int fd)
{
	return connect(fd, (struct sockaddr *)&server, server_len) ? errno : 0;
}

static int error_of(int fd)
{
	socklen_t len = sizeof(int);
	int error;

	CHECK(!getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len) && len == sizeof(error));
	return error;
}

/* It connects after all. */
static void connect_again(int fd)
{
	struct pollfd poll_fd = { .fd = fd, .events = POLLOUT };

	CHECK(connect_once(fd) == EINPROGRESS && connect_once(fd) == EALREADY);
	CHECK(!poll(&poll_fd, 1, 0));
	CHECK(poll(&poll_fd, 1, -1) == 1 && poll_fd.revents == POLLOUT && !error_of(fd));
	CHECK(!fcntl(fd, F_SETFL, 0) && echo(fd, 100));
	close(fd);
}

static void *connect_and_wait(void *fd)
{
	return (void *)(intptr_t)connect_once(*(int *)fd);
}

/* connect() that the program itself ends, in each of the ways that there are. */
static void given_up(void)
{
	static const struct sockaddr none = { .sa_family = AF_UNSPEC };
	pthread_t thread;
	void *result;
	int fd;

	for (int how = SHUT_RD; how <= SHUT_RDWR; how++) {
		fd = open_for(O_NONBLOCK);
		CHECK(connect_once(fd) == EINPROGRESS && !shutdown(fd, how));
		CHECK(error_of(fd) == ECONNRESET && !error_of(fd));
		CHECK(shutdown(fd, how) && errno == ENOTCONN);
		connect_again(fd);
	}
	fd = open_for(O_NONBLOCK);
	CHECK(connect_once(fd) == EINPROGRESS && !connect(fd, &none, sizeof(none)));
	connect_again(fd);
	fd = open_for(O_NONBLOCK);
	CHECK(connect_once(fd) == EINPROGRESS && !shutdown(fd, SHUT_RDWR));
	connect_again(fd);
	for (int i = 0; i < 2; i++) {
		fd = open_for(0);
		CHECK(!pthread_create(&thread, NULL, connect_and_wait, &fd));
		usleep(5000);
		CHECK(!(i ? connect(fd, &none, sizeof(none)) : shutdown(fd, SHUT_RDWR)));
		CHECK(!pthread_join(thread, &result) && (intptr_t)result == ECONNRESET);
		close(fd);
	}
	/* The server hears of none of these. */
	for (int i = 0; i < 3; i++) {
		fd = open_for(O_NONBLOCK);
		CHECK(connect_once(fd) == EINPROGRESS);
		close(fd);
	}
	usleep(100000);
	puts("given up");
}

/* Little room for answers, and addresses that are no good. */
static void odd(void)
{
	static const socklen_t rooms[] = { 0, 1, 2, 3, 4, 8, 15, 16 };
	const struct sockaddr_in6 mapped = {
		.sin6_family = AF_INET6, .sin6_port = htons(5000),
		.sin6_addr = { .s6_addr = { [10] = 0xff, 0xff, 10, 0, 0, 1 } },
	};
	int fd = connect_to_server(), fd6 = socket(AF_INET6, SOCK_STREAM, 0);
	struct sockaddr_in whole;
	socklen_t len = sizeof(whole);
	unsigned char bytes[32], error[8];

	CHECK(!getpeername(fd, (struct sockaddr *)&whole, &len) && whole.sin_port == htons(5000));
	for (size_t i = 0; i < sizeof(rooms) / sizeof(rooms[0]); i++) {
		memset(bytes, 0xee, sizeof(bytes));
		len = rooms[i];
		CHECK(!getpeername(fd, (struct sockaddr *)bytes, &len) && len == sizeof(whole));
		CHECK(rooms[i] == 3 || !memcmp(bytes, &whole, rooms[i]));
		CHECK(bytes[rooms[i]] == 0xee && bytes[rooms[i] + 1] == 0xee);
	}
	CHECK(echo(fd, 100));
	fd = open_for(O_NONBLOCK);
	((struct sockaddr_in *)&server)->sin_port = htons(5001);
	CHECK(connect_once(fd) == EINPROGRESS);
	usleep(50000);
	memset(error, 0xee, sizeof(error));
	len = 1;
	CHECK(!getsockopt(fd, SOL_SOCKET, SO_ERROR, error, &len) && len == 1);
	CHECK(error[0] == ECONNREFUSED && error[1] == 0xee);
	fd = open_for(0);
	CHECK(connect(fd, (const struct sockaddr *)&mapped, sizeof(mapped)) && errno == EAFNOSUPPORT);
	CHECK(!connect_once(fd) && echo(fd, 100));
	open_for(0);
	CHECK(connect(fd6, (struct sockaddr *)&server, sizeof(mapped)) && errno == EAFNOSUPPORT);
	CHECK(connect(fd6, (struct sockaddr *)&server, server_len) && errno == EINVAL);
	CHECK(!connect(fd6, (const struct sockaddr *)&mapped, sizeof(mapped)) && echo(fd6, 100));
	puts("odd");
}

/* No descriptor is left for what connect() does besides. */
static void full(void)
{
	struct rlimit limit;
	int fd = open_for(0), refused = open_for(0), last = -1;

	CHECK(!getrlimit(RLIMIT_NOFILE, &limit));
	limit.rlim_cur = 50;
	CHECK(!setrlimit(RLIMIT_NOFILE, &limit));
	for (int more = dup(fd); more >= 0; more = dup(fd))
		last = more;
	CHECK(errno == EMFILE && last == 49);
	CHECK(!connect_once(fd) && echo(fd, 100));
	((struct sockaddr_in *)&server)->sin_port = htons(5001);
	CHECK(connect_once(refused) == ECONNREFUSED);
	CHECK(dup(fd) < 0 && errno == EMFILE);
	CHECK(!getrlimit(RLIMIT_NOFILE, &limit) && limit.rlim_cur == 50);
	puts("full");
}

/* Who polls sees a connection when all of it is there. */
static void many(void)
{
	enum { NUM = 300 };
	static struct pollfd all[NUM];
	int done = 0;

	for (int i = 0; i < NUM; i++) {
		all[i] = (struct pollfd){ .fd = open_for(O_NONBLOCK), .events = POLLOUT };
		CHECK(connect_once(all[i].fd) == EINPROGRESS);
	}
	while (done < NUM) {
		CHECK(poll(all, NUM, -1) > 0);
		for (int i = 0; i < NUM; i++) {
			if (!all[i].revents)
				continue;
			CHECK(all[i].revents == POLLOUT && !error_of(all[i].fd));
			CHECK(send(all[i].fd, "a", 1, 0) == 1);
			close(all[i].fd);
			all[i].fd = -1;
			done++;
		}
	}
	printf("many: %d\n", done);
	usleep(100000);
}

/* Away, before a server that is late accepts it. */
static void go(void)
{
	int fd = connect_to_server();

	printf("at %s\n", end_of(fd, getsockname));
	close(fd);
	sleep(5);
}

static void serve_at_once(void)
{
	serve(AF_INET, 0);
}

static void serve_late(void)
{
	serve(AF_INET, 2);
}

static void serve6(void)
{
	serve(AF_INET6, 0);
}

static void reset(void)
{
	drop(1);
}

static void close_at_once(void)
{
	drop(0);
}

int main(int argc, char **argv)
{
	static const struct member_case cases[] = {
		{ "serve", serve_at_once }, { "serve_late", serve_late }, { "serve6", serve6 },
		{ "talk", talk }, { "bulk", bulk }, { "loop", loop },
		{ "interrupted", interrupted }, { "die", die }, { "fill", fill },
		{ "block", block }, { "gone", gone }, { "reset", reset }, { "close", close_at_once },
		{ "given_up", given_up }, { "odd", odd }, { "full", full },
		{ "many", many }, { "go", go },
	};

	clock_gettime(CLOCK_MONOTONIC, &begun);
	setvbuf(stdout, NULL, _IOLBF, 0);
	host = argc > 2 ? argv[2] : host;
	num_messages = argc > 3 ? atoi(argv[3]) : num_messages;
	return member_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
