/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * carry_waits.c - what the loop waits for: ends of connections, and what it was told of.  Who is ready
 * is served in an order that is not the kernel's: connections as they began, and then the others.
 */
#include "config.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>

#include "carry.h"

#define MOST_OTHERS 8u

static unsigned int num_others;
static int watch_error;			/* the errno of what could not be waited for */

static int the_set(void)
{
	static int set = -1;

	if (set < 0)
		set = epoll_create1(EPOLL_CLOEXEC);
	return set;
}

bool carry_wait_for(int fd, unsigned int other)
{
	/* Above those of connections. */
	struct epoll_event event = { .events = EPOLLIN, .data.u64 = UINT64_MAX - other };

	num_others++;
	return !epoll_ctl(the_set(), EPOLL_CTL_ADD, fd, &event);
}

void carry_watch(struct carry_connection *connection, enum carry_end end)
{
	const short wanted = carry_events(connection, end), before = connection->watched[end];
	struct epoll_event event = {
		.events = (uint32_t)wanted,
		.data.u64 = (uint64_t)connection->number * CARRY_ENDS + end,
	};
	/* Who is not asked for anything would tell of its end again and again. */
	const int how = !before ? EPOLL_CTL_ADD : wanted ? EPOLL_CTL_MOD : EPOLL_CTL_DEL;

	if (wanted == before)
		return;
	if (epoll_ctl(the_set(), how, connection->sockets[end], &event))
		watch_error = errno;
	connection->watched[end] = wanted;
}

static int compare(const void *a, const void *b)
{
	const uint64_t first = ((const struct epoll_event *)a)->data.u64;
	const uint64_t second = ((const struct epoll_event *)b)->data.u64;

	return (first > second) - (first < second);
}

static void serve(const struct epoll_event *event)
{
	struct carry_connection *connection =
		carry_find((uint32_t)(event->data.u64 / CARRY_ENDS));
	const enum carry_end end = (enum carry_end)(event->data.u64 % CARRY_ENDS);

	/* What the other end was told may have closed it. */
	if (connection && connection->watched[end])
		carry_ready(connection, end, (short)event->events);
}

int carry_wait(int timeout_ms, unsigned int *ret_others)
{
	static struct epoll_event *events;
	static size_t size;
	size_t most;
	int num;

	carry_forget_ended();
	*ret_others = 0;
	if (watch_error)
		return -watch_error;
	most = CARRY_ENDS * carry_num_connections() + num_others + 1;
	if (most > size) {
		size = 2 * most;
		events = tool_realloc(events, size, sizeof(*events));
	}
	num = epoll_wait(the_set(), events, (int)size, timeout_ms);
	if (num < 0)
		return -errno;
	qsort(events, (size_t)num, sizeof(*events), compare);
	for (int i = 0; i < num; i++) {
		if (events[i].data.u64 > UINT64_MAX - MOST_OTHERS)
			*ret_others |= 1u << (UINT64_MAX - events[i].data.u64);
		else
			serve(&events[i]);
	}
	return num;
}
