/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rsocket/repoll.c - repoll_create(), repoll_ctl(), repoll_wait(): epoll's calls for sets of
 * rsockets and plain descriptors.  Level triggered only.
 *
 * A thread waits with rpoll() for what was in the set when it began.  Whoever
 * changes the set wakes it up, so that it begins again.  What is closed is taken out
 * where that is noticed.
 */
#include "config.h"
#include "rsocket.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "core/base/alone.h"
#include "core/base/clock.h"
#include "core/base/export.h"
#include "core/base/rsockets.h"
#include "core/base/why.h"

#define NS_PER_MS	UINT64_C(1000000)
#define EVENTS		(EPOLLIN | EPOLLOUT | EPOLLPRI | EPOLLERR | EPOLLHUP | EPOLLRDHUP)

/* Readable once the set is not what its users began to wait for. */
struct change {
	int fd;
	unsigned int users;		/* threads, and the set while it is current */
};

struct member {
	int fd;
	uint64_t serial;		/* of the rsocket; 0: a plain descriptor */
	uint32_t events;
	epoll_data_t data;
};

struct set {
	struct rsocket rs;		/* first */
	struct member *members;
	size_t num, room;
	size_t first;			/* that is reported first, after more were ready than fitted */
	struct change *change;		/* NULL: nobody has waited since the last one */
};

static struct set *set_of(struct rsocket *rs)
{
	return (struct set *)rs;
}

static void put_change(struct change *change)
{
	if (!change || --change->users)
		return;
	close(change->fd);
	free(change);
}

static void changed(struct set *set)
{
	if (set->change)
		(void)eventfd_write(set->change->fd, 1);
	put_change(set->change);
	set->change = NULL;
}

static void set_release(struct rsocket *rs)
{
	changed(set_of(rs));
	free(set_of(rs)->members);
}

/* It is an rsocket only for rclose(). */
static const struct rsocket_ops set_ops = {
	.release = set_release,
};

static int create(void)
{
	struct rsocket *rs;
	int err;

	err = rsocket_create(RSOCKET_SET, &set_ops, sizeof(struct set), &rs);
	if (err)
		return err;
	err = rsocket_publish(rs);
	if (err)
		rsocket_discard(rs);
	return err ? err : rs->fd;
}

POLYCM_EXPORT int repoll_create(int flags)
{
	(void)flags;
	polycm_why_clear();
	return (int)rsocket_ret(__func__, create());
}

/* --- repoll_ctl() --- */

static void take_out(struct set *set, struct member *member)
{
	*member = set->members[--set->num];
}

/* Those whose number is another's now. */
static void take_out_replaced(struct set *set)
{
	for (size_t i = set->num; i-- > 0;)
		if (set->members[i].serial != rsocket_serial(set->members[i].fd))
			take_out(set, &set->members[i]);
}

static struct member *find(struct set *set, int fd)
{
	for (size_t i = 0; i < set->num; i++)
		if (set->members[i].fd == fd)
			return &set->members[i];
	return NULL;
}

static int add(struct set *set, int fd, const struct epoll_event *event)
{
	if (set->num == set->room) {
		size_t room = set->room ? 2 * set->room : 16;
		struct member *bigger = realloc(set->members, room * sizeof(*bigger));

		if (!bigger)
			return -ENOMEM;
		set->members = bigger;
		set->room = room;
	}
	set->members[set->num++] = (struct member){
		.fd = fd, .serial = rsocket_serial(fd), .events = event->events, .data = event->data,
	};
	return 0;
}

static int control(struct set *set, int op, int fd, const struct epoll_event *event)
{
	struct member *member;
	int err = 0;

	take_out_replaced(set);
	member = find(set, fd);
	if (fd < 0)
		return -EBADF;
	if (fd == set->rs.fd)
		return polycm_fail(-EINVAL, "a set is not in itself");
	if (op != EPOLL_CTL_DEL && !event)
		return -EFAULT;
	if (op != EPOLL_CTL_DEL && event->events & ~(uint32_t)EVENTS)
		return polycm_fail(-EINVAL, "events %#x: edges and one shot are not supported",
				   event->events);
	if (op == EPOLL_CTL_ADD && member)
		return -EEXIST;
	if (op != EPOLL_CTL_ADD && !member)
		return -ENOENT;
	switch (op) {
	case EPOLL_CTL_ADD:
		err = add(set, fd, event);
		break;
	case EPOLL_CTL_MOD:
		member->events = event->events;
		member->data = event->data;
		break;
	case EPOLL_CTL_DEL:
		take_out(set, member);
		break;
	default:
		return polycm_fail(-EINVAL, "operation %d", op);
	}
	if (!err)
		changed(set);
	return err;
}

static struct rsocket *enter(int fd, int *ret_err)
{
	return rsocket_enter_kinds(fd, 1u << RSOCKET_SET, ret_err);
}

POLYCM_EXPORT int repoll_ctl(int epfd, int op, int fd, struct epoll_event *event)
{
	struct rsocket *rs;
	int err;

	rs = enter(epfd, &err);
	if (rs) {
		err = control(set_of(rs), op, fd, event);
		rsocket_leave(rs);
	}
	return (int)rsocket_ret(__func__, err);
}

/* --- repoll_wait() --- */

/* The set as a thread waits for it. */
struct waiting {
	struct rsocket *rs;
	struct change *change;
	struct pollfd *fds;		/* of the members, then of the change */
	struct member *members;
	size_t num;
};

static int begin_change(struct set *set)
{
	struct change *change;

	/* Nobody else could change it. */
	if (set->change || polycm_alone())
		return 0;
	change = malloc(sizeof(*change));
	if (!change)
		return -ENOMEM;
	change->users = 1;
	change->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (change->fd < 0) {
		free(change);
		return -errno;
	}
	set->change = change;
	return 0;
}

static int begin(struct waiting *w)
{
	struct set *set = set_of(w->rs);
	int err;

	rsocket_lock(w->rs);
	take_out_replaced(set);
	err = begin_change(set);
	w->num = set->num;
	w->fds = calloc(w->num + 1, sizeof(*w->fds));
	w->members = calloc(w->num + 1, sizeof(*w->members));
	if (!w->fds || !w->members)
		err = -ENOMEM;
	for (size_t i = 0; !err && i < w->num; i++) {
		w->members[i] = set->members[i];
		w->fds[i].fd = set->members[i].fd;
		w->fds[i].events = (short)set->members[i].events;
	}
	w->change = err ? NULL : set->change;
	if (w->change)
		w->change->users++;
	if (!err)
		w->fds[w->num] = (struct pollfd){
			.fd = w->change ? w->change->fd : -1, .events = POLLIN,
		};
	rsocket_unlock(w->rs);
	return err;
}

/* Also of a thread that was cancelled. */
static void finish(void *arg)
{
	struct waiting *w = arg;

	rsocket_forbid_cancel();
	rsocket_lock(w->rs);
	put_change(w->change);
	rsocket_unlock(w->rs);
	rsocket_allow_cancel();
	free(w->fds);
	free(w->members);
	w->change = NULL;
	w->fds = NULL;
	w->members = NULL;
}

/* As epoll does. */
static void take_out_closed(const struct waiting *w)
{
	struct set *set = set_of(w->rs);
	struct member *member;

	for (size_t i = 0; i < w->num; i++) {
		if (!(w->fds[i].revents & POLLNVAL))
			continue;
		rsocket_lock(w->rs);
		member = find(set, w->members[i].fd);
		if (member && member->serial == w->members[i].serial)
			take_out(set, member);
		rsocket_unlock(w->rs);
	}
}

/* Not always the same ones, where more are ready than fit: the next call goes on behind the last. */
static int report(const struct waiting *w, struct epoll_event *events, int max)
{
	struct set *set = set_of(w->rs);
	size_t first;
	int num = 0;

	rsocket_lock(w->rs);
	first = set->first;
	for (size_t done = 0; done < w->num && num < max; done++) {
		size_t i = (first + done) % w->num;
		uint32_t found = (uint32_t)w->fds[i].revents &
				 (w->members[i].events | EPOLLERR | EPOLLHUP);

		if (!found)
			continue;
		events[num++] = (struct epoll_event){
			.events = found, .data = w->members[i].data,
		};
		set->first = num == max ? i + 1 : first;
	}
	rsocket_unlock(w->rs);
	return num;
}

/* One rpoll(): how many are reported, 0 and *ret_over for the time-out, 0 for another round. */
static int wait_once(struct rsocket *rs, struct epoll_event *events, int max, int timeout,
		     const sigset_t *mask, bool *ret_over)
{
	struct waiting w = { .rs = rs };
	int ret;

	ret = begin(&w);
	pthread_cleanup_push(finish, &w);
	if (!ret)
		ret = rsocket_poll_fds(w.fds, w.num + 1, timeout, mask);
	*ret_over = !ret;
	if (ret > 0) {
		take_out_closed(&w);
		ret = report(&w, events, max);
	}
	pthread_cleanup_pop(1);
	return ret;
}

static int wait_for(struct rsocket *rs, struct epoll_event *events, int max, int timeout,
		    const sigset_t *mask)
{
	uint64_t until = UINT64_MAX;
	bool over = false;
	int ret;

	if (max <= 0 || !events)
		return -EINVAL;
	if (timeout >= 0)
		until = polycm_now_ns() + (uint64_t)timeout * NS_PER_MS;
	do {
		ret = wait_once(rs, events, max, timeout ? rsocket_poll_timeout(until) : 0, mask, &over);
	} while (!ret && !over && timeout);
	return ret;
}

static void put(void *arg)
{
	rsocket_put(arg);
}

POLYCM_EXPORT int polycm_rsocket_epoll_pwait(int epfd, struct epoll_event *events, int maxevents,
					     int timeout, const sigset_t *mask)
{
	static const char call[] = "repoll_wait";
	struct rsocket *rs;
	int ret;

	rs = enter(epfd, &ret);
	if (!rs)
		return (int)rsocket_ret(call, ret);
	rsocket_unlock(rs);
	rsocket_allow_cancel();
	pthread_cleanup_push(put, rs);
	ret = wait_for(rs, events, maxevents, timeout, mask);
	pthread_cleanup_pop(1);
	return (int)rsocket_ret(call, ret);
}

POLYCM_EXPORT int repoll_wait(int epfd, struct epoll_event *events, int maxevents, int timeout)
{
	return polycm_rsocket_epoll_pwait(epfd, events, maxevents, timeout, NULL);
}
