/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * bench/tcp.c - the yardstick of bench/hosts.sh: what a plain TCP socket does on the same network.
 *
 *	tcp serve PORT
 *	tcp ask ADDRESS PORT [--sleep]
 *
 * Prints the one-way time of 128 bytes (as many as a short RDMA message with its headers has), in
 * microseconds, and the rate of a stream in pieces of 1 MiB, in MiB/s.  Both ends poll, unless
 * --sleep is given.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define SHORT 128
#define TRIPS 5000
#define PIECE (1u << 20)
#define PIECES 600u

static char piece[PIECE];
static int socket_flags;		/* MSG_DONTWAIT: poll */

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static void receive(int fd, size_t len)
{
	while (len) {
		ssize_t got = recv(fd, piece, len, socket_flags);

		if (got > 0)
			len -= (size_t)got;
		else if (!got || (errno != EAGAIN && errno != EINTR))
			exit(1);
	}
}

static void give(int fd, size_t len)
{
	while (len) {
		ssize_t sent = send(fd, piece, len, MSG_NOSIGNAL);

		if (sent <= 0)
			exit(1);
		len -= (size_t)sent;
	}
}

static void serve(int fd)
{
	char how;

	if (read(fd, &how, 1) != 1)
		exit(1);
	socket_flags = how == 'p' ? MSG_DONTWAIT : 0;
	for (int i = 0; i < TRIPS; i++) {
		receive(fd, SHORT);
		give(fd, SHORT);
	}
	receive(fd, (size_t)PIECE * PIECES);
	give(fd, 1);
}

static void ask(int fd, bool sleeps)
{
	double began;

	if (write(fd, sleeps ? "s" : "p", 1) != 1)
		exit(1);
	socket_flags = sleeps ? 0 : MSG_DONTWAIT;
	began = now();
	for (int i = 0; i < TRIPS; i++) {
		give(fd, SHORT);
		receive(fd, SHORT);
	}
	printf("%.2f ", (now() - began) / TRIPS / 2);
	began = now();
	for (unsigned int i = 0; i < PIECES; i++)
		give(fd, PIECE);
	receive(fd, 1);
	printf("%.0f\n", PIECES / ((now() - began) / 1e6));	/* pieces are MiB */
}

int main(int argc, char **argv)
{
	bool serves = argc == 3 && !strcmp(argv[1], "serve");
	struct sockaddr_in addr = { .sin_family = AF_INET };
	int fd, one = 1;

	if (!serves && (argc < 4 || strcmp(argv[1], "ask"))) {
		fprintf(stderr, "usage: tcp serve PORT; tcp ask ADDRESS PORT [--sleep]\n");
		return 2;
	}
	addr.sin_port = htons((uint16_t)atoi(argv[serves ? 2 : 3]));
	if (!serves && inet_pton(AF_INET, argv[2], &addr.sin_addr) != 1)
		return 2;
	fd = socket(AF_INET, SOCK_STREAM, 0);
	(void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (serves) {
		if (bind(fd, (struct sockaddr *)&addr, sizeof(addr)) || listen(fd, 1))
			return perror("tcp"), 1;
		puts("listening");
		fflush(stdout);
		fd = accept(fd, NULL, NULL);
	} else if (connect(fd, (struct sockaddr *)&addr, sizeof(addr))) {
		return perror("tcp"), 1;
	}
	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	if (serves)
		serve(fd);
	else
		ask(fd, argc > 4);
	return 0;
}
