/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * interpose/epoll.c - epoll_wait() and its variants.
 *
 * Taking an event from an edge-triggered or one-shot descriptor uses it up,
 * so events are only ever taken to be returned.
 */
#undef _FORTIFY_SOURCE	/* its inline functions have the names of ours */
#include "config.h"

#include "host.h"
#include "libc.h"
#include "wait.h"

#include <errno.h>

#include "core/base/export.h"

struct set_wait {
	struct polycm_wait wait;
	int set;
	struct epoll_event *events;
	int max;
};

/* Polling the set delivers signals, which taking events without waiting does not. */
static int ask(struct polycm_wait *wait, const struct timespec *limit, const sigset_t *mask)
{
	struct set_wait *self = (struct set_wait *)wait;
	struct pollfd set = { .fd = self->set, .events = POLLIN };
	int n = polycm_libc()->ppoll(&set, 1, limit, mask);

	if (n > 0)
		n = polycm_libc()->epoll_wait(self->set, self->events, self->max, 0);
	return n < 0 ? -errno : n;
}

static void waited(struct polycm_wait *wait, struct polycm_waited *all)
{
	polycm_waited_add(all, ((struct set_wait *)wait)->set);
}

/* The kernel refuses invalid arguments before anything else happens. */
static int virtual_epoll(const char *call, int set, struct epoll_event *events, int max,
			 uint64_t timeout_ns, const sigset_t *mask)
{
	struct set_wait self = {
		.wait = {
			.call = call,
			.timeout_ns = timeout_ns,
			.mask = mask,
			.ask = ask,
			.waited = waited,
		},
		.set = set,
		.events = events,
		.max = max,
	};
	int n = polycm_libc()->epoll_pwait(set, events, max, 0, mask);

	if (n)
		return n < 0 ? -errno : n;
	if (timeout_ns)
		return polycm_wait(&self.wait);
	polycm_wait_spin();
	return 0;
}

POLYCM_EXPORT int epoll_wait(int epfd, struct epoll_event *events, int maxevents, int timeout)
{
	int r = time_is_real() ? -ENODEV :
		virtual_epoll("epoll_wait", epfd, events, maxevents,
			      polycm_wait_milliseconds(timeout), NULL);

	return r == -ENODEV ? polycm_libc()->epoll_wait(epfd, events, maxevents, timeout) :
			      polycm_wait_return(r);
}

POLYCM_EXPORT int epoll_pwait(int epfd, struct epoll_event *events, int maxevents, int timeout,
			      const sigset_t *mask)
{
	int r = time_is_real() ? -ENODEV :
		virtual_epoll("epoll_pwait", epfd, events, maxevents,
			      polycm_wait_milliseconds(timeout), mask);

	return r == -ENODEV ? polycm_libc()->epoll_pwait(epfd, events, maxevents, timeout, mask) :
			      polycm_wait_return(r);
}

POLYCM_EXPORT int epoll_pwait2(int epfd, struct epoll_event *events, int maxevents,
			       const struct timespec *timeout, const sigset_t *mask)
{
	int r = polycm_wait_is_real(timeout) ? -ENODEV :
		virtual_epoll("epoll_pwait2", epfd, events, maxevents,
			      polycm_wait_timeout(timeout), mask);

	return r == -ENODEV ? polycm_libc()->epoll_pwait2(epfd, events, maxevents, timeout, mask) :
			      polycm_wait_return(r);
}
