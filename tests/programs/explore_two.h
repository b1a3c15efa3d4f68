/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * explore_two.h - what explore.c and explore_data.c share: a server and a client
 * in one thread.  Whoever includes it has take(), which answers a request.
 */
#ifndef EXPLORE_TWO_H
#define EXPLORE_TWO_H

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <rdma/rdma_cma.h>
#include <stdio.h>
#include <stdlib.h>

static struct rdma_event_channel *server, *client;
static struct rdma_cm_id *listener, *accepted;

/* The id is the callee's now. */
static void take(struct rdma_cm_id *id);

static void die(const char *what)
{
	perror(what);
	exit(3);
}

static struct sockaddr_in address(const char *text, uint16_t port)
{
	struct sockaddr_in in = { .sin_family = AF_INET, .sin_port = htons(port) };

	inet_pton(AF_INET, text, &in.sin_addr);
	return in;
}

static void two_begin(void)
{
	struct sockaddr_in at = address("10.0.0.1", 7471);

	server = rdma_create_event_channel();
	client = rdma_create_event_channel();
	if (!server || !client || rdma_create_id(server, &listener, NULL, RDMA_PS_TCP) ||
	    rdma_bind_addr(listener, (struct sockaddr *)&at) || rdma_listen(listener, 8))
		die("listen");
}

/* What was accepted is the caller's to end, before. */
static void two_end(void)
{
	rdma_destroy_id(listener);
	rdma_destroy_event_channel(server);
	rdma_destroy_event_channel(client);
}

static void serve(void)
{
	struct rdma_cm_event *event;
	struct rdma_cm_id *id;
	int type;

	if (rdma_get_cm_event(server, &event))
		die("server");
	type = event->event;
	id = event->id;
	rdma_ack_cm_event(event);
	if (type == RDMA_CM_EVENT_CONNECT_REQUEST)
		take(id);
}

/*
 * The client's next event, which is the caller's to acknowledge; meanwhile the
 * server serves.  NULL: none within so many ms, or (errno not 0) the wait failed.
 */
static struct rdma_cm_event *next_event(int timeout)
{
	struct pollfd fds[] = { { .fd = server->fd, .events = POLLIN },
				{ .fd = client->fd, .events = POLLIN } };
	struct rdma_cm_event *event;

	for (;;) {
		errno = 0;
		if (poll(fds, 2, timeout) <= 0)
			return NULL;
		if (fds[0].revents)
			serve();
		if (!fds[1].revents)
			continue;
		if (rdma_get_cm_event(client, &event))
			die("client");
		return event;
	}
}

#endif
