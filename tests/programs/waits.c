/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * waits.c - a program as others write them, which knows nothing of polycm: a
 * server and a client in one event loop, or in a thread each.
 *
 *	waits poll|select|epoll|nested|busy	one loop, made in that way
 *	waits deadline				one that keeps its own time, by a clock
 *	waits spin				and never waits, but asks
 *	waits condition				and waits for another thread to tell
 *	waits threads				two loops in two threads
 *	waits never				a wait for what cannot come
 *
 * The server accepts 2 s after a request; the client stays for half an hour,
 * with a sign of life each minute, and disconnects.  At the end it says how long
 * that took by the clock.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <time.h>
#include <unistd.h>

#include <rdma/rdma_cma.h>

#define PORT 7471
#define MINUTE 60000	/* ms */

static const char *way;
static struct rdma_event_channel *server, *client;
static struct rdma_cm_id *listener, *passive, *active;
static pthread_mutex_t printing = PTHREAD_MUTEX_INITIALIZER;

static void need(int ok, const char *what)
{
	if (ok)
		return;
	perror(what);
	exit(1);
}

static void say(const char *who, const char *what)
{
	pthread_mutex_lock(&printing);
	printf("%s: %s\n", who, what);
	fflush(stdout);
	pthread_mutex_unlock(&printing);
}

static int epoll_set(const int *fds, int num)
{
	int set = epoll_create1(EPOLL_CLOEXEC);

	for (int i = 0; i < num; i++) {
		struct epoll_event event = { .events = EPOLLIN };

		need(!epoll_ctl(set, EPOLL_CTL_ADD, fds[i], &event), "epoll_ctl");
	}
	return set;
}

static int by_select(const int *fds, int num, int ms)
{
	struct timeval time = { .tv_sec = ms / 1000, .tv_usec = ms % 1000 * 1000 };
	fd_set set;
	int max = -1;

	FD_ZERO(&set);
	for (int i = 0; i < num; i++) {
		FD_SET(fds[i], &set);
		max = fds[i] > max ? fds[i] : max;
	}
	return select(max + 1, &set, NULL, NULL, ms < 0 ? NULL : &time);
}

/* Looks every 50 ms. */
static int busily(const int *fds, int num, int ms)
{
	const struct timespec moment = { .tv_nsec = 50000000 };

	for (; ms; ms -= ms > 0 ? 50 : 0) {
		if (by_select(fds, num, 0))
			return 1;
		nanosleep(&moment, NULL);
	}
	return 0;
}

static int64_t clock_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* As event loops do: wait for what is left, and look at the clock again. */
static int by_deadline(const int *fds, int num, int ms)
{
	int64_t deadline = clock_ns() + (int64_t)ms * 1000000, left;
	struct pollfd pfds[2];
	int n;

	for (int i = 0; i < num; i++)
		pfds[i] = (struct pollfd){ .fd = fds[i], .events = POLLIN };
	if (ms < 0)
		return poll(pfds, (nfds_t)num, -1);
	do {
		left = (deadline - clock_ns() + 999999) / 1000000;
		if (left <= 0)
			return 0;
		if (way[0] == 's')
			left = 0;
		n = poll(pfds, (nfds_t)num, (int)left);
	} while (!n);
	return n;
}

static pthread_mutex_t telling = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t told = PTHREAD_COND_INITIALIZER, handled = PTHREAD_COND_INITIALIZER;
static int ready, over;

static void *watch(void *unused)
{
	struct pollfd pfds[2] = {
		{ .fd = server->fd, .events = POLLIN },
		{ .fd = client->fd, .events = POLLIN },
	};

	(void)unused;
	pthread_mutex_lock(&telling);
	while (!over) {
		pthread_mutex_unlock(&telling);
		need(poll(pfds, 2, -1) > 0, "poll");
		pthread_mutex_lock(&telling);
		ready = 1;
		pthread_cond_signal(&told);
		while (ready && !over)
			pthread_cond_wait(&handled, &telling);
	}
	pthread_mutex_unlock(&telling);
	return NULL;
}

static int by_condition(int ms)
{
	struct timespec until;
	int err = 0, n;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += ms / 1000;
	pthread_mutex_lock(&telling);
	ready = 0;
	pthread_cond_signal(&handled);
	while (!ready && !err)
		err = ms < 0 ? pthread_cond_wait(&told, &telling) :
			       pthread_cond_timedwait(&told, &telling, &until);
	n = ready;
	pthread_mutex_unlock(&telling);
	need(!err || err == ETIMEDOUT, "pthread_cond_timedwait");
	return n;
}

/* 1: one of them is readable; 0: so many ms have passed. */
static int wait_for(const int *fds, int num, int ms)
{
	struct epoll_event event;
	struct pollfd pfds[2];
	int set, outer, n;

	if (!strcmp(way, "select"))
		return by_select(fds, num, ms);
	if (!strcmp(way, "busy"))
		return busily(fds, num, ms);
	if (!strcmp(way, "deadline") || !strcmp(way, "spin"))
		return by_deadline(fds, num, ms);
	if (!strcmp(way, "condition"))
		return by_condition(ms);
	if (!strcmp(way, "epoll") || !strcmp(way, "nested")) {
		set = epoll_set(fds, num);
		outer = epoll_set(&set, 1);
		n = epoll_wait(way[0] == 'n' ? outer : set, &event, 1, ms);
		close(outer);
		close(set);
		return n;
	}
	for (int i = 0; i < num; i++)
		pfds[i] = (struct pollfd){ .fd = fds[i], .events = POLLIN };
	return poll(pfds, (nfds_t)num, ms);
}

static void add_qp(struct rdma_cm_id *id)
{
	struct ibv_qp_init_attr attr = {
		.qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1 },
	};

	need(!rdma_create_qp(id, NULL, &attr), "rdma_create_qp");
}

/* What both ends do with an event; true at the end. */
static int handle(struct rdma_event_channel *channel, const char *who)
{
	struct rdma_conn_param param = { .responder_resources = 1, .initiator_depth = 1,
					 .retry_count = 7, .rnr_retry_count = 7 };
	struct rdma_cm_event *event;
	enum rdma_cm_event_type type;

	if (rdma_get_cm_event(channel, &event)) {
		need(errno == EAGAIN, "rdma_get_cm_event");
		return 0;
	}
	type = event->event;
	say(who, rdma_event_str(type));
	if (type == RDMA_CM_EVENT_CONNECT_REQUEST)
		passive = event->id;
	rdma_ack_cm_event(event);
	switch (type) {
	case RDMA_CM_EVENT_ADDR_RESOLVED:
		need(!rdma_resolve_route(active, 2000), "rdma_resolve_route");
		return 0;
	case RDMA_CM_EVENT_ROUTE_RESOLVED:
		add_qp(active);
		need(!rdma_connect(active, &param), "rdma_connect");
		return 0;
	case RDMA_CM_EVENT_CONNECT_REQUEST:
		sleep(1);
		usleep(1000000);
		add_qp(passive);
		need(!rdma_accept(passive, &param), "rdma_accept");
		return 0;
	case RDMA_CM_EVENT_ESTABLISHED:
		return 0;
	case RDMA_CM_EVENT_DISCONNECTED:
		need(!rdma_disconnect(channel == server ? passive : active) || errno == EINVAL,
		     "rdma_disconnect");
		return 1;
	default:
		return channel == client;
	}
}

static void nonblocking(int fd)
{
	need(!fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK), "fcntl");
}

static void begin(void)
{
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_port = htons(PORT) };

	at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	server = rdma_create_event_channel();
	client = rdma_create_event_channel();
	need(server && client, "rdma_create_event_channel");
	nonblocking(server->fd);
	nonblocking(client->fd);
	need(!rdma_create_id(server, &listener, NULL, RDMA_PS_TCP), "rdma_create_id");
	need(!rdma_bind_addr(listener, (struct sockaddr *)&at), "rdma_bind_addr");
	need(!rdma_listen(listener, 1), "rdma_listen");
	need(!rdma_create_id(client, &active, NULL, RDMA_PS_TCP), "rdma_create_id");
	need(!rdma_resolve_addr(active, NULL, (struct sockaddr *)&at, 2000), "rdma_resolve_addr");
}

static void end(void)
{
	if (active->qp)
		rdma_destroy_qp(active);
	rdma_destroy_id(active);
	if (passive) {
		rdma_destroy_qp(passive);
		rdma_destroy_id(passive);
	}
	rdma_destroy_id(listener);
	rdma_destroy_event_channel(client);
	rdma_destroy_event_channel(server);
}

/* Minutes without an event, and then half an hour is over. */
static int sign_of_life(int *minutes)
{
	say("client", "still there");
	if (++*minutes < 30)
		return 0;
	say("client", "goes");
	need(!rdma_disconnect(active), "rdma_disconnect");
	return 1;
}

static void one_loop(void)
{
	const int fds[2] = { server->fd, client->fd };
	int minutes = 0, ended = 0;

	while (ended < 2) {
		int n = wait_for(fds, 2, minutes < 30 ? MINUTE : -1);

		need(n >= 0, way);
		if (!n)
			sign_of_life(&minutes);
		ended += handle(server, "server");
		ended += handle(client, "client");
	}
}

static void told_loop(void)
{
	pthread_t thread;

	need(!pthread_create(&thread, NULL, watch, NULL), "pthread_create");
	one_loop();
	pthread_mutex_lock(&telling);
	over = 1;
	pthread_cond_signal(&handled);
	pthread_mutex_unlock(&telling);
	pthread_join(thread, NULL);
}

static void *serve(void *unused)
{
	(void)unused;
	do {
		need(wait_for(&server->fd, 1, -1) == 1, "server");
	} while (!handle(server, "server"));
	return NULL;
}

static void two_loops(void)
{
	pthread_t thread;
	int minutes = 0, n;

	need(!pthread_create(&thread, NULL, serve, NULL), "pthread_create");
	do {
		n = wait_for(&client->fd, 1, minutes < 30 ? MINUTE : -1);
		need(n >= 0, "client");
		if (!n)
			sign_of_life(&minutes);
	} while (!handle(client, "client"));
	pthread_join(thread, NULL);
}

int main(int argc, char **argv)
{
	int64_t began, took;

	way = argc > 1 ? argv[1] : "poll";
	begin();
	began = clock_ns();
	if (!strcmp(way, "never")) {
		while (wait_for(&client->fd, 1, -1) == 1)
			handle(client, "client");
		perror("poll");
	} else if (!strcmp(way, "threads")) {
		two_loops();
	} else if (!strcmp(way, "condition")) {
		told_loop();
	} else {
		one_loop();
	}
	took = clock_ns() - began;
	printf("took %d.%09d s\n", (int)(took / 1000000000), (int)(took % 1000000000));
	end();
	return 0;
}
