/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * system_net.c - a member of a system, for system.sh: what it sees of the network.
 *
 *	ports			the ports that the kernel would choose
 *	serve			accepts one connection, says where it comes from, and ends with it
 *	connect ADDRESS		to that server
 *	answer			accepts one connection, and answers each question, until it ends
 *	ask ADDRESS		questions of two parts, each sent by itself
 *	late			accepts several connections when all are waiting
 *	early ADDRESS		those connections
 *	collect			takes all of many small messages before it answers
 *	burst ADDRESS		those messages, again and again
 *	refused ADDRESS		connections to nobody there and here, by one socket
 *	parts			writes three parts, one a second
 *	peek ADDRESS		looks at all of them before it takes any
 *	echo			sends datagrams back, and says where they come from, until one is empty
 *	datagrams ADDRESS	to that server, from sockets of all kinds
 *	errors ADDRESS...	that come back of datagrams to nobody there
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "member.h"

#define PORT "7471"
#define MANY 8		/* connections */
#define BURST 100	/* messages */

union any {
	struct sockaddr sa;
	struct sockaddr_in in;
	struct sockaddr_in6 in6;
	struct sockaddr_un un;
	struct sockaddr_storage room;
};

static unsigned int port_of(int fd)
{
	union any own;
	socklen_t len = sizeof(own);

	CHECK(!getsockname(fd, &own.sa, &len));
	return ntohs(own.sa.sa_family == AF_INET6 ? own.in6.sin6_port : own.in.sin_port);
}

static union any loopback(int family, in_port_t port)
{
	union any to = { .sa = { .sa_family = (sa_family_t)family } };

	if (family == AF_INET6) {
		to.in6.sin6_addr = in6addr_loopback;
		to.in6.sin6_port = htons(port);
	} else {
		to.in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
		to.in.sin_port = htons(port);
	}
	return to;
}

static socklen_t length(int family)
{
	return family == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);
}

static void ports_of_family(int family)
{
	int listener = socket(family, SOCK_STREAM, 0), bound = socket(family, SOCK_STREAM, 0);
	int client = socket(family, SOCK_STREAM, 0), later = socket(family, SOCK_STREAM, 0);
	int datagrams = socket(family, SOCK_DGRAM, 0), connected = socket(family, SOCK_DGRAM, 0);
	const int on = 1;
	union any to;

	CHECK(!listen(listener, 5));
	to = loopback(family, 0);
	CHECK(!bind(bound, &to.sa, length(family)));
	CHECK(!setsockopt(later, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &on, sizeof(on)));
	CHECK(!bind(later, &to.sa, length(family)) && !port_of(later));
	to = loopback(family, (in_port_t)port_of(listener));
	CHECK(!connect(client, &to.sa, length(family)) && !connect(later, &to.sa, length(family)));
	to = loopback(family, 9);
	CHECK(sendto(datagrams, "x", 1, 0, &to.sa, length(family)) == 1);
	CHECK(!connect(connected, &to.sa, length(family)));
	printf("%u %u %u %u %u %u\n", port_of(listener), port_of(bound), port_of(client), port_of(later),
	       port_of(datagrams), port_of(connected));
}

static void ports(void)
{
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);
	union any own = { .sa = { .sa_family = AF_UNIX } };
	socklen_t len = sizeof(own);

	ports_of_family(AF_INET);
	ports_of_family(AF_INET6);
	CHECK(!bind(fd, &own.sa, sizeof(sa_family_t)) && !getsockname(fd, &own.sa, &len));
	CHECK(len == offsetof(struct sockaddr_un, sun_path) + 6 && !own.un.sun_path[0]);
	printf("%.5s\n", own.un.sun_path + 1);
}

static int make_listener(int backlog)
{
	const int on = 1;
	int fd = socket(AF_INET6, SOCK_STREAM, 0);
	union any at = { .in6 = { .sin6_family = AF_INET6, .sin6_port = htons(atoi(PORT)) } };

	CHECK(!setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)));
	CHECK(!bind(fd, &at.sa, length(AF_INET6)) && !listen(fd, backlog));
	return fd;
}

static void serve(void)
{
	int listener = make_listener(1), fd;
	char host[INET6_ADDRSTRLEN], name[64], byte;
	union any peer;
	socklen_t len = sizeof(peer);

	fd = accept(listener, &peer.sa, &len);
	CHECK(fd >= 0 && !getnameinfo(&peer.sa, len, host, sizeof(host), NULL, 0, NI_NUMERICHOST));
	CHECK(!gethostname(name, sizeof(name)));
	printf("from %s to %s\n", host, name);
	CHECK(recv(fd, &byte, 1, 0) == 0);
}

static int connect_to(const char *host)
{
	const struct addrinfo hints = { .ai_socktype = SOCK_STREAM };
	struct addrinfo *to;
	int fd;

	CHECK(!getaddrinfo(host, PORT, &hints, &to));
	fd = socket(to->ai_family, SOCK_STREAM, 0);
	CHECK(fd >= 0 && !connect(fd, to->ai_addr, to->ai_addrlen));
	freeaddrinfo(to);
	return fd;
}

static void answer(void)
{
	int fd = accept(make_listener(1), NULL, NULL);
	char parts[2];

	CHECK(fd >= 0);
	while (recv(fd, parts, 1, 0) == 1)
		CHECK(recv(fd, parts + 1, 1, 0) == 1 && send(fd, parts, 2, 0) == 2);
}

static void ask(const char *host)
{
	int fd = connect_to(host);
	char parts[2];

	for (int i = 0; i < 100; i++)
		CHECK(send(fd, "a", 1, 0) == 1 && send(fd, "b", 1, 0) == 1 &&
		      recv(fd, parts, 2, MSG_WAITALL) == 2);
	close(fd);
}

/* More than the backlog has room for: the others are retried. */
static void late(void)
{
	int listener = make_listener(1), fd;

	sleep(3);
	for (int i = 0; i < MANY; i++) {
		fd = accept(listener, NULL, NULL);
		CHECK(fd >= 0 && send(fd, "x", 1, 0) == 1);
	}
}

static void early(const char *host)
{
	int fds[MANY];
	char byte;

	for (int i = 0; i < MANY; i++)
		fds[i] = connect_to(host);
	for (int i = 0; i < MANY; i++)
		CHECK(recv(fds[i], &byte, 1, 0) == 1);
}

static void collect(void)
{
	int fd = accept(make_listener(1), NULL, NULL);
	char bytes[BURST];

	CHECK(fd >= 0);
	while (recv(fd, bytes, BURST, MSG_WAITALL) == BURST)
		CHECK(send(fd, "x", 1, 0) == 1);
}

static void burst(const char *host)
{
	int fd = connect_to(host);
	char byte;

	for (int i = 0; i < 20; i++) {
		for (int n = 0; n < BURST; n++)
			CHECK(send(fd, "y", 1, 0) == 1);
		CHECK(recv(fd, &byte, 1, 0) == 1);
	}
	close(fd);
}

static void refused(const char *other)
{
	int fd = socket(AF_INET, SOCK_STREAM, 0), listener = socket(AF_INET, SOCK_STREAM, 0);
	union any to = loopback(AF_INET, 9), own;
	socklen_t len = sizeof(own);

	for (int i = 0; i < 8; i++) {
		to.in.sin_addr.s_addr = i % 2 ? inet_addr(other) : htonl(INADDR_LOOPBACK);
		CHECK(connect(fd, &to.sa, length(AF_INET)) < 0 && errno == ECONNREFUSED);
		CHECK(!getsockname(fd, &own.sa, &len) && own.in.sin_addr.s_addr == INADDR_ANY);
	}
	CHECK(!listen(listener, 1));
	to = loopback(AF_INET, (in_port_t)port_of(listener));
	CHECK(!connect(fd, &to.sa, length(AF_INET)) && accept(listener, NULL, NULL) >= 0);
	CHECK(!getsockname(fd, &own.sa, &len) && own.in.sin_addr.s_addr == htonl(INADDR_LOOPBACK));
	printf("%u\n", port_of(fd));
}

static void parts(void)
{
	int fd = accept(make_listener(1), NULL, NULL);
	char byte;

	CHECK(fd >= 0);
	for (int i = 0; i < 3; i++) {
		sleep(1);
		CHECK(send(fd, "abcdefghi" + 3 * i, 3, 0) == 3);
	}
	CHECK(recv(fd, &byte, 1, 0) == 1 && send(fd, "xyz", 3, 0) == 3);
}

static void peek(const char *host)
{
	int fd = connect_to(host);
	char bytes[16] = "";

	CHECK(recv(fd, bytes, 9, MSG_PEEK | MSG_WAITALL) == 9 && !strcmp(bytes, "abcdefghi"));
	CHECK(recv(fd, bytes, 9, MSG_WAITALL) == 9 && !strcmp(bytes, "abcdefghi"));
	CHECK(send(fd, "x", 1, 0) == 1);
	/* Until there will be no more. */
	CHECK(recv(fd, bytes, 9, MSG_PEEK | MSG_WAITALL) == 3);
	CHECK(recv(fd, bytes, 9, MSG_PEEK | MSG_WAITALL) == 3 && !memcmp(bytes, "xyz", 3));
}

/* From any address, so that it comes from an address of this host. */
static void echo(void)
{
	const union any at = { .in6 = { .sin6_family = AF_INET6, .sin6_port = htons(atoi(PORT)) } };
	int fd = socket(AF_INET6, SOCK_DGRAM, 0);
	char bytes[16], host[INET6_ADDRSTRLEN];
	socklen_t len = sizeof(at);
	union any from;
	ssize_t num;

	CHECK(!bind(fd, &at.sa, length(AF_INET6)));
	while ((num = recvfrom(fd, bytes, sizeof(bytes), 0, &from.sa, &len)) > 0) {
		CHECK(inet_ntop(AF_INET6, &from.in6.sin6_addr, host, sizeof(host)));
		printf("from %s %u\n", host, ntohs(from.in6.sin6_port));
		CHECK(sendto(fd, bytes, (size_t)num, 0, &from.sa, len) == num);
	}
}

static union any own_of(int fd)
{
	union any own;
	socklen_t len = sizeof(own);

	CHECK(!getsockname(fd, &own.sa, &len) && own.in.sin_family == AF_INET);
	return own;
}

static void gets_answer(int fd, const union any *to)
{
	char byte;
	union any from;
	socklen_t len = sizeof(from);

	CHECK(recvfrom(fd, &byte, 1, 0, &from.sa, &len) == 1 && byte == 'x');
	CHECK(from.in.sin_addr.s_addr == to->in.sin_addr.s_addr && from.in.sin_port == to->in.sin_port);
}

/* Not connected: in each way of sending. */
static void send_to(int fd, const union any *to)
{
	struct iovec part = { (void *)"x", 1 };
	struct mmsghdr message = { .msg_hdr = {
		.msg_name = (void *)to, .msg_namelen = length(AF_INET),
		.msg_iov = &part, .msg_iovlen = 1,
	} };

	CHECK(sendto(fd, "x", 1, 0, &to->sa, length(AF_INET)) == 1);
	gets_answer(fd, to);
	CHECK(sendmsg(fd, &message.msg_hdr, 0) == 1);
	gets_answer(fd, to);
	CHECK(sendmmsg(fd, &message, 1, MSG_DONTWAIT) == 1);
	gets_answer(fd, to);
	CHECK(own_of(fd).in.sin_addr.s_addr == INADDR_ANY);
}

static void send_connected(int fd, const union any *to)
{
	const struct sockaddr none = { .sa_family = AF_UNSPEC };
	const union any outside = { .in = { .sin_family = AF_INET, .sin_port = htons(9),
					    .sin_addr.s_addr = inet_addr("192.0.2.1") } };

	CHECK(!connect(fd, &to->sa, length(AF_INET)));
	CHECK(own_of(fd).in.sin_addr.s_addr != to->in.sin_addr.s_addr);
	CHECK(send(fd, "x", 1, 0) == 1);
	gets_answer(fd, to);
	CHECK(!connect(fd, &none, sizeof(none)));
	CHECK(own_of(fd).in.sin_addr.s_addr == INADDR_ANY);
	CHECK(connect(fd, &outside.sa, length(AF_INET)) < 0 && errno == ENETUNREACH);
	CHECK(own_of(fd).in.sin_addr.s_addr == INADDR_ANY);
}

static void datagrams(const char *host)
{
	int fd = socket(AF_INET, SOCK_DGRAM, 0), bound = socket(AF_INET, SOCK_DGRAM, 0);
	union any to = { .in = { .sin_family = AF_INET, .sin_port = htons(atoi(PORT)) } };
	const union any any = { .in = { .sin_family = AF_INET, .sin_port = htons(7400) } };

	to.in.sin_addr.s_addr = inet_addr(host);
	CHECK(!bind(bound, &any.sa, length(AF_INET)));
	send_to(fd, &to);
	send_connected(fd, &to);
	send_connected(bound, &to);
	send_to(bound, &to);
	CHECK(sendto(fd, "", 0, 0, &to.sa, length(AF_INET)) == 0);
}

static void errors(const char *host)
{
	union any to = { .in6 = { .sin6_family = AF_INET6, .sin6_port = htons(9) } };
	const bool is_ipv6 = inet_pton(AF_INET6, host, &to.in6.sin6_addr) == 1;
	struct msghdr message = { .msg_iov = NULL };
	const int on = 1;
	int fd;

	if (!is_ipv6)
		to.in = (struct sockaddr_in){ .sin_family = AF_INET, .sin_port = htons(9),
					      .sin_addr.s_addr = inet_addr(host) };
	fd = socket(to.sa.sa_family, SOCK_DGRAM, 0);
	CHECK(!setsockopt(fd, is_ipv6 ? IPPROTO_IPV6 : IPPROTO_IP, is_ipv6 ? IPV6_RECVERR : IP_RECVERR,
			  &on, sizeof(on)));
	CHECK(sendto(fd, "x", 1, 0, &to.sa, length(to.sa.sa_family)) == 1);
	CHECK(recvmsg(fd, &message, MSG_ERRQUEUE | MSG_DONTWAIT) >= 0);
}

int main(int argc, char **argv)
{
	if (argc == 2 && !strcmp(argv[1], "ports"))
		ports();
	else if (argc == 2 && !strcmp(argv[1], "serve"))
		serve();
	else if (argc == 3 && !strcmp(argv[1], "connect"))
		close(connect_to(argv[2]));
	else if (argc == 2 && !strcmp(argv[1], "answer"))
		answer();
	else if (argc == 3 && !strcmp(argv[1], "ask"))
		ask(argv[2]);
	else if (argc == 2 && !strcmp(argv[1], "late"))
		late();
	else if (argc == 3 && !strcmp(argv[1], "early"))
		early(argv[2]);
	else if (argc == 2 && !strcmp(argv[1], "collect"))
		collect();
	else if (argc == 3 && !strcmp(argv[1], "burst"))
		burst(argv[2]);
	else if (argc == 3 && !strcmp(argv[1], "refused"))
		refused(argv[2]);
	else if (argc == 2 && !strcmp(argv[1], "parts"))
		parts();
	else if (argc == 3 && !strcmp(argv[1], "peek"))
		peek(argv[2]);
	else if (argc == 2 && !strcmp(argv[1], "echo"))
		echo();
	else if (argc == 3 && !strcmp(argv[1], "datagrams"))
		datagrams(argv[2]);
	else if (argc >= 3 && !strcmp(argv[1], "errors"))
		for (char **host = argv + 2; *host; host++)
			errors(*host);
	else
		return 2;
	puts("ok");
	return 0;
}
