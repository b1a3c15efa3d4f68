/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rsocket/poll.c - rpoll() and rselect(): rsockets and plain descriptors together.
 *
 * First all are asked without waiting.  Then the thread counts itself in at each
 * rsocket, sleeps in poll() on their sets and the plain descriptors, and counts
 * itself out.
 */
#include "config.h"
#include "rsocket.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/select.h>
#include <sys/time.h>

#include "core/base/clock.h"
#include "core/base/export.h"
#include "core/base/rsockets.h"
#include "core/base/why.h"

#define ON_STACK	16
#define NS_PER_MS	INT64_C(1000000)

struct polled {
	struct pollfd *fds;		/* the program's */
	nfds_t num;
	const sigset_t *mask;		/* while the thread sleeps; NULL: its own */
	struct rsocket **sockets;	/* NULL: a plain descriptor */
	struct pollfd *own;		/* what the thread sleeps on */
	nfds_t entered;			/* of the first so many it counts as a sleeper */
	struct rsocket *few[ON_STACK];
	struct pollfd few_fds[ON_STACK];
};

static int prepare(struct polled *p)
{
	p->sockets = p->few;
	p->own = p->few_fds;
	p->entered = 0;
	if (p->num > ON_STACK) {
		p->sockets = calloc(p->num, sizeof(*p->sockets));
		p->own = calloc(p->num, sizeof(*p->own));
		if (!p->sockets || !p->own) {
			free(p->sockets);
			free(p->own);
			return -ENOMEM;
		}
	}
	for (nfds_t i = 0; i < p->num; i++) {
		int err;

		p->sockets[i] = rsocket_get(p->fds[i].fd, &err);
		if (p->sockets[i] && p->sockets[i]->kind == RSOCKET_SET) {
			rsocket_put(p->sockets[i]);
			p->sockets[i] = NULL;
		}
		p->own[i] = p->fds[i];
		if (p->sockets[i])
			p->own[i].events = POLLIN;
		p->own[i].revents = 0;
	}
	return 0;
}

/* Count out at those that were entered. */
static void wake_up(struct polled *p)
{
	while (p->entered) {
		struct rsocket *rs = p->sockets[--p->entered];

		if (!rs)
			continue;
		rsocket_lock(rs);
		rsocket_wake_up(rs, p->own[p->entered].revents);
		rsocket_unlock(rs);
	}
}

/* Also of a thread that was cancelled. */
static void finish(void *arg)
{
	struct polled *p = arg;

	wake_up(p);
	for (nfds_t i = 0; i < p->num; i++)
		if (p->sockets[i])
			rsocket_put(p->sockets[i]);
	if (p->sockets != p->few) {
		free(p->sockets);
		free(p->own);
	}
}

/* Those that have something; plain ones by what own[] says of them. */
static int check(struct polled *p, bool fruitless)
{
	int num = 0;

	for (nfds_t i = 0; i < p->num; i++) {
		struct rsocket *rs = p->sockets[i];

		if (rs) {
			rsocket_lock(rs);
			rs->ops->advance(rs);
			p->fds[i].revents = rs->closed ? POLLNVAL :
					    rs->ops->events(rs, p->fds[i].events);
			if (!p->fds[i].revents && fruitless && rsocket_should_collect(rs))
				rs->ops->collect(rs);
			rsocket_unlock(rs);
		} else {
			p->fds[i].revents = p->own[i].revents;
		}
		num += !!p->fds[i].revents;
	}
	return num;
}

static int sleep_in_poll(struct polled *p, int timeout)
{
	struct timespec limit = {
		.tv_sec = timeout / 1000,
		.tv_nsec = timeout % 1000 * NS_PER_MS,
	};

	if (!p->mask)
		return poll(p->own, p->num, timeout);
	return ppoll(p->own, p->num, timeout < 0 ? NULL : &limit, p->mask);
}

/* Ask the plain ones, without waiting.  With a mask a signal may come, too. */
static int check_plain(struct polled *p)
{
	bool any = p->mask;

	for (nfds_t i = 0; i < p->num; i++) {
		any |= !p->sockets[i] && p->fds[i].fd >= 0;
		p->own[i].fd = p->sockets[i] ? -1 : p->fds[i].fd;
		p->own[i].revents = 0;
	}
	return any && sleep_in_poll(p, 0) < 0 ? -errno : 0;
}

/* Count in at all.  false: one of them wants to be asked again first. */
static bool fall_asleep(struct polled *p, uint64_t *due_ns)
{
	while (p->entered < p->num) {
		nfds_t i = p->entered;
		struct rsocket *rs = p->sockets[i];
		bool asleep = true;

		p->own[i].fd = p->fds[i].fd;
		p->own[i].revents = 0;
		if (rs) {
			uint64_t due;

			rsocket_lock(rs);
			due = rs->ops->due_ns(rs);
			if (due < *due_ns)
				*due_ns = due;
			asleep = rsocket_fall_asleep(rs);
			rsocket_unlock(rs);
		}
		if (!asleep)
			return false;
		p->entered++;
	}
	return true;
}

/* 0: look again, but for -ETIMEDOUT or another errno. */
static int sleep_once(struct polled *p, struct rsocket_patience *patience)
{
	uint64_t due_ns = patience->until_ns;
	int err = 0;

	if (rsocket_may_spin(patience, rsocket_settings()->polling_ns))
		return check_plain(p);
	if (fall_asleep(p, &due_ns)) {
		int timeout = rsocket_poll_timeout(due_ns);

		rsocket_allow_cancel();
		if (sleep_in_poll(p, timeout) < 0)
			err = -errno;
		rsocket_forbid_cancel();
		wake_up(p);
		return err;
	}
	wake_up(p);
	return check_plain(p);
}

static int poll_all(struct polled *p, int timeout)
{
	struct rsocket_patience patience = RSOCKET_FOR_EVER;
	int num, err;

	err = check_plain(p);
	if (err)
		return err;
	if (timeout > 0)
		patience.until_ns = polycm_now_ns() + (uint64_t)(timeout * NS_PER_MS);
	for (;;) {
		num = check(p, !timeout);
		if (num || !timeout)
			return num;
		if (timeout > 0 && polycm_now_ns() >= patience.until_ns)
			return 0;
		err = sleep_once(p, &patience);
		if (err)
			return err;
	}
}

int rsocket_poll_fds(struct pollfd *fds, nfds_t num, int timeout, const sigset_t *mask)
{
	struct polled polled = { .fds = fds, .num = num, .mask = mask };
	int ret;

	rsocket_forbid_cancel();
	ret = prepare(&polled);
	if (!ret) {
		pthread_cleanup_push(finish, &polled);
		ret = poll_all(&polled, timeout);
		pthread_cleanup_pop(1);
	}
	rsocket_allow_cancel();
	return ret;
}

POLYCM_EXPORT int rpoll(struct pollfd *fds, nfds_t nfds, int timeout)
{
	polycm_why_clear();
	return (int)rsocket_ret(__func__, rsocket_poll_fds(fds, nfds, timeout, NULL));
}

POLYCM_EXPORT int polycm_rsocket_ppoll(struct pollfd *fds, nfds_t nfds, int timeout,
				       const sigset_t *mask)
{
	polycm_why_clear();
	return (int)rsocket_ret("ppoll", rsocket_poll_fds(fds, nfds, timeout, mask));
}

/* --- rselect() --- */

static nfds_t from_sets(int nfds, fd_set *sets[3], struct pollfd *fds)
{
	static const short events[3] = { POLLIN, POLLOUT, POLLPRI };
	nfds_t num = 0;

	for (int fd = 0; fd < nfds; fd++) {
		short wanted = 0;

		for (int i = 0; i < 3; i++)
			if (sets[i] && FD_ISSET(fd, sets[i]))
				wanted |= events[i];
		if (wanted)
			fds[num++] = (struct pollfd){ .fd = fd, .events = wanted };
	}
	return num;
}

static int to_sets(const struct pollfd *fds, nfds_t num, fd_set *sets[3])
{
	static const short events[3] = {
		POLLIN | POLLHUP | POLLERR, POLLOUT | POLLERR, POLLPRI,
	};
	int count = 0;

	for (int i = 0; i < 3; i++)
		if (sets[i])
			FD_ZERO(sets[i]);
	for (nfds_t at = 0; at < num; at++) {
		if (fds[at].revents & POLLNVAL)
			return -EBADF;
		for (int i = 0; i < 3; i++) {
			short wanted = i == 0 ? POLLIN : i == 1 ? POLLOUT : POLLPRI;

			if (!(fds[at].events & wanted) || !(fds[at].revents & events[i]))
				continue;
			FD_SET(fds[at].fd, sets[i]);
			count++;
		}
	}
	return count;
}

static int timeout_of(const struct timespec *timeout)
{
	int64_t ms;

	if (!timeout)
		return -1;
	if (timeout->tv_sec < 0 || timeout->tv_nsec < 0 || timeout->tv_nsec >= 1000 * NS_PER_MS)
		return -EINVAL;
	if (timeout->tv_sec > INT32_MAX / 1000 - 1)
		return INT32_MAX;
	ms = timeout->tv_sec * INT64_C(1000) + (timeout->tv_nsec + NS_PER_MS - 1) / NS_PER_MS;
	return (int)ms;
}

static int select_fds(int nfds, fd_set *sets[3], const struct timespec *timeout, const sigset_t *mask)
{
	int ret, ms = timeout_of(timeout);
	struct pollfd *fds;
	nfds_t num;

	if (nfds < 0 || nfds > FD_SETSIZE || ms == -EINVAL)
		return -EINVAL;
	fds = calloc((size_t)nfds + 1, sizeof(*fds));
	if (!fds)
		return -ENOMEM;
	num = from_sets(nfds, sets, fds);
	pthread_cleanup_push(free, fds);
	ret = rsocket_poll_fds(fds, num, ms, mask);
	if (ret >= 0)
		ret = to_sets(fds, num, sets);
	pthread_cleanup_pop(1);
	return ret;
}

POLYCM_EXPORT int rselect(int nfds, fd_set *readfds, fd_set *writefds, fd_set *exceptfds,
			  struct timeval *timeout)
{
	fd_set *sets[3] = { readfds, writefds, exceptfds };
	struct timespec limit;

	polycm_why_clear();
	if (timeout)
		TIMEVAL_TO_TIMESPEC(timeout, &limit);
	return (int)rsocket_ret(__func__, select_fds(nfds, sets, timeout ? &limit : NULL, NULL));
}

POLYCM_EXPORT int polycm_rsocket_pselect(int nfds, fd_set *sets[3], const struct timespec *timeout,
					 const sigset_t *mask)
{
	polycm_why_clear();
	return (int)rsocket_ret("pselect", select_fds(nfds, sets, timeout, mask));
}
