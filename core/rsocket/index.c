/* SPDX-License-Identifier: BSD-2-Clause */
/* rsocket/index.c - rsockets by their numbers, and their lifetime. */
#include "config.h"
#include "rsocket.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "core/base/why.h"

#define FIRST_SIZE 64u

static struct polycm_latch rsockets_lock;
static struct rsocket **table;		/* by descriptor, under the lock, and its size */
static size_t table_size;

/* A child of fork() may use what its only thread can: nobody there gives up the lock. */
static void before_fork(void)
{
	polycm_latch_take(&rsockets_lock);
}

static void after_fork(void)
{
	polycm_latch_give(&rsockets_lock);
}

static void watch_forks(void)
{
	(void)pthread_atfork(before_fork, after_fork, after_fork);
}

int rsocket_watch(struct rsocket *rs, int fd)
{
	struct epoll_event event = { .events = EPOLLIN };

	return epoll_ctl(rs->fd, EPOLL_CTL_ADD, fd, &event) ? -errno : 0;
}

int rsocket_create(enum rsocket_kind kind, const struct rsocket_ops *ops, size_t size,
		   struct rsocket **ret_rs)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	struct rsocket *rs = calloc(1, size);
	int err;

	/* Registered later, asked earlier: this lock comes before those of ids. */
	polycm_forks_watch();
	pthread_once(&once, watch_forks);
	if (!rs)
		return -ENOMEM;
	rs->kind = kind;
	rs->ops = ops;
	rs->forks = polycm_forks;
	rs->wake_fd = -1;
	rs->sizes = rsocket_settings()->sizes;
	rs->polling_ns = rsocket_settings()->polling_ns;
	rs->fd = epoll_create1(EPOLL_CLOEXEC);
	if (rs->fd < 0) {
		err = -errno;
		goto err_free;
	}
	*ret_rs = rs;
	return 0;

err_free:
	free(rs);
	return err;
}

void rsocket_discard(struct rsocket *rs)
{
	if (rs->ops->release)
		rs->ops->release(rs);
	if (rs->wake_fd >= 0)
		close(rs->wake_fd);
	close(rs->fd);
	free(rs);
}

/* Under the lock. */
static int grow(size_t needed)
{
	size_t size = table_size ? table_size : FIRST_SIZE;
	struct rsocket **bigger;

	while (size < needed)
		size *= 2;
	if (size == table_size)
		return 0;
	bigger = realloc(table, size * sizeof(*table));
	if (!bigger)
		return -ENOMEM;
	for (size_t i = table_size; i < size; i++)
		bigger[i] = NULL;
	table = bigger;
	table_size = size;
	return 0;
}

int rsocket_publish(struct rsocket *rs)
{
	static uint64_t last_serial;	/* under the lock */
	int err;

	polycm_latch_take(&rsockets_lock);
	err = grow((size_t)rs->fd + 1);
	if (!err) {
		rs->users = 1;
		rs->serial = ++last_serial;
		table[rs->fd] = rs;
	}
	polycm_latch_give(&rsockets_lock);
	return err;
}

/* Under the lock. */
static struct rsocket *find(int fd)
{
	return fd >= 0 && (size_t)fd < table_size ? table[fd] : NULL;
}

uint64_t rsocket_serial(int fd)
{
	const struct rsocket *rs;
	uint64_t serial;

	polycm_latch_take(&rsockets_lock);
	rs = find(fd);
	serial = rs ? rs->serial : 0;
	polycm_latch_give(&rsockets_lock);
	return serial;
}

struct rsocket *rsocket_get(int fd, int *ret_err)
{
	struct rsocket *rs;

	polycm_latch_take(&rsockets_lock);
	rs = find(fd);
	if (rs && rs->forks.before != polycm_forks.before) {
		*ret_err = -EACCES;
		rs = NULL;
	} else if (rs) {
		rs->users++;
	} else {
		*ret_err = -EBADF;
	}
	polycm_latch_give(&rsockets_lock);
	return rs;
}

void rsocket_put(struct rsocket *rs)
{
	bool last;

	polycm_latch_take(&rsockets_lock);
	last = !--rs->users;
	polycm_latch_give(&rsockets_lock);
	if (last)
		rsocket_discard(rs);
}

bool rsocket_unpublish(struct rsocket *rs)
{
	bool was_there;

	polycm_latch_take(&rsockets_lock);
	was_there = find(rs->fd) == rs;
	if (was_there)
		table[rs->fd] = NULL;
	polycm_latch_give(&rsockets_lock);
	return was_there;
}

int rsocket_forget(int fd)
{
	struct rsocket *rs;

	polycm_latch_take(&rsockets_lock);
	rs = find(fd);
	if (rs)
		table[fd] = NULL;
	polycm_latch_give(&rsockets_lock);
	return rs && !close(fd) ? 0 : -EBADF;
}
