/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * sockets/epoll.c - sets of epoll.
 *
 * A set stays the kernel's until an rsocket is added to it.  Then it also has a set of
 * repoll_create(), with its rsockets and, as one plain descriptor, with the kernel's
 * set.  So plain descriptors keep all that epoll can do.
 *
 * A thread that waits in the kernel's set would not learn of the first rsocket.  So where
 * another thread may add one, a set gets the second one before a thread sleeps.
 */
#undef _FORTIFY_SOURCE
#include "config.h"
#include "sockets.h"

#include <errno.h>
#include <pthread.h>
#include <time.h>

#include "single_thread.h"

static pthread_mutex_t adding = PTHREAD_MUTEX_INITIALIZER;
static char plain;	/* its address: the data of the kernel's set */

static int create_set(int epfd)
{
	struct epoll_event event = { .events = EPOLLIN, .data.ptr = &plain };
	int set, err;

	set = repoll_create(0);
	if (set < 0)
		return -1;
	if (!repoll_ctl(set, EPOLL_CTL_ADD, epfd, &event))
		return sockets_add_set(epfd, set) < 0 ? -1 : set;
	err = errno;
	rclose(set);
	errno = err;
	return -1;
}

static int set_of(int epfd)
{
	int set;

	pthread_mutex_lock(&adding);
	set = sockets_find(epfd, SOCKETS_SET);
	if (set < 0)
		set = create_set(epfd);
	pthread_mutex_unlock(&adding);
	return set;
}

POLYCM_EXPORT int epoll_ctl(int epfd, int op, int fd, struct epoll_event *event)
{
	int rs = sockets_find(fd, SOCKETS_RSOCKET), set;

	if (rs < 0)
		return sockets_next()->epoll_ctl(epfd, op, fd, event);
	set = set_of(epfd);
	return set < 0 ? -1 : repoll_ctl(set, op, rs, event);
}

/* In place of the event of the kernel's set those that it has. */
static int add_plain(int epfd, struct epoll_event *events, int num, int max)
{
	for (int i = 0; i < num; i++) {
		int more;

		if (events[i].data.ptr != &plain)
			continue;
		events[i] = events[--num];
		more = sockets_next()->epoll_wait(epfd, events + num, max - num, 0);
		return num + (more > 0 ? more : 0);
	}
	return num;
}

static int64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * INT64_C(1000) + now.tv_nsec / 1000000;
}

static int wait_behind(int epfd, int set, struct epoll_event *events, int max, int timeout,
		       const sigset_t *mask)
{
	int64_t until = timeout > 0 ? now_ms() + timeout : 0, left;
	int num;

	/* Another thread may take what the kernel's set had. */
	for (;;) {
		num = polycm_rsocket_epoll_pwait(set, events, max, timeout, mask);
		if (num <= 0)
			return num;
		num = add_plain(epfd, events, num, max);
		if (num || !timeout)
			return num;
		left = timeout > 0 ? until - now_ms() : timeout;
		timeout = timeout > 0 && left < 0 ? 0 : (int)left;
	}
}

/* The set to wait for; -1: the kernel's alone, or *ret_num says what is to be returned at once. */
static int set_to_wait_for(int epfd, struct epoll_event *events, int max, bool sleeps, int *ret_num)
{
	int set = sockets_find(epfd, SOCKETS_SET);

	*ret_num = 0;
	if (set >= 0 || !sleeps || !repoll_create || single_thread())
		return set;
	/* It may have something, or be no set. */
	*ret_num = sockets_next()->epoll_wait(epfd, events, max, 0);
	return *ret_num ? -1 : set_of(epfd);
}

POLYCM_EXPORT int epoll_pwait(int epfd, struct epoll_event *events, int max, int timeout,
			      const sigset_t *mask)
{
	int num, set = set_to_wait_for(epfd, events, max, timeout, &num);

	if (num)
		return num;
	return set < 0 ? sockets_next()->epoll_pwait(epfd, events, max, timeout, mask) :
			 wait_behind(epfd, set, events, max, timeout, mask);
}

POLYCM_EXPORT int epoll_wait(int epfd, struct epoll_event *events, int max, int timeout)
{
	int num, set = set_to_wait_for(epfd, events, max, timeout, &num);

	if (num)
		return num;
	return set < 0 ? sockets_next()->epoll_wait(epfd, events, max, timeout) :
			 wait_behind(epfd, set, events, max, timeout, NULL);
}

POLYCM_EXPORT int epoll_pwait2(int epfd, struct epoll_event *events, int max,
			       const struct timespec *timeout, const sigset_t *mask)
{
	int ms = sockets_milliseconds(timeout);
	int num, set = set_to_wait_for(epfd, events, max, ms, &num);

	if (num)
		return num;
	return set < 0 ? sockets_next()->epoll_pwait2(epfd, events, max, timeout, mask) :
			 wait_behind(epfd, set, events, max, ms, mask);
}
