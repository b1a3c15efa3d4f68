/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cm/channel_fd.c - the descriptor of a channel and what stands behind it:
 * the providers' parts, which are opened when they are needed, and the queue
 * of events that it tells of.
 */
#include "config.h"
#include "id_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <utlist.h>

#include "core/plugin/kernel_client.h"
#include "core/plugin/op.h"
#include "ret.h"

static int call_open(struct polycm_channel_slot *slot)
{
	struct polycm_module *module = slot->module;
	int fd = -1;
	int err = POLYCM_OP(module, channel_open, module->ctx, slot->area, &fd);

	if (err == -EOPNOTSUPP)
		return 0;	/* needs nothing */
	if (err)
		return polycm_fail(err, "provider %s cannot open an event channel", module->name);
	slot->fd = fd;
	return 0;
}

/* A descriptor of the provider's in the channel's set: reading it must not wait. */
static int slot_watch(struct polycm_channel *chan, struct polycm_channel_slot *slot)
{
	struct epoll_event event = { .events = EPOLLIN, .data.ptr = slot };
	int flags, err;

	if (slot->fd < 0)
		return 0;
	flags = fcntl(slot->fd, F_GETFL);
	if (flags < 0 || fcntl(slot->fd, F_SETFL, flags | O_NONBLOCK) < 0 ||
	    epoll_ctl(chan->pub.fd, EPOLL_CTL_ADD, slot->fd, &event)) {
		err = -errno;
		slot->module->ops.channel_close(slot->area);
		slot->fd = -1;
		return err;
	}
	return 0;
}

static int open_native(struct polycm_channel *chan)
{
	struct polycm_channel_slot *slot = &chan->slots[0];
	int err = call_open(slot);

	if (err)
		return err;
	slot->open = true;
	chan->native = true;
	chan->wake_fd = -1;
	chan->pub.fd = slot->fd;
	polycm_kernel_channel_follow(slot->area, &chan->pub.fd);
	return 0;
}

static int open_set(struct polycm_channel *chan)
{
	struct epoll_event event = { .events = EPOLLIN };
	int err;

	chan->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (chan->wake_fd < 0)
		return -errno;
	chan->pub.fd = epoll_create1(EPOLL_CLOEXEC);
	if (chan->pub.fd < 0) {
		err = -errno;
		goto err_close_wake;
	}
	if (epoll_ctl(chan->pub.fd, EPOLL_CTL_ADD, chan->wake_fd, &event)) {
		err = -errno;
		goto err_close_set;
	}
	return 0;

err_close_set:
	close(chan->pub.fd);
err_close_wake:
	close(chan->wake_fd);
	return err;
}

int polycm_channel_open_fds(struct polycm_channel *chan)
{
	return polycm_registry_kernel_only() ? open_native(chan) : open_set(chan);
}

void polycm_channel_close_fds(struct polycm_channel *chan)
{
	for (unsigned int i = 0; i < chan->num_slots; i++)
		if (chan->slots[i].open)
			chan->slots[i].module->ops.channel_close(chan->slots[i].area);
	if (chan->native)
		return;
	close(chan->pub.fd);
	close(chan->wake_fd);
}

/* Under the channel's lock. */
static void wake_sleepers(struct polycm_channel *chan)
{
	(void)polycm_count_up(&chan->posts);
	if (chan->sleepers)
		(void)syscall(SYS_futex, &chan->posts, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}

/* Under slots_lock. */
static int open_slot(struct polycm_channel *chan, struct polycm_channel_slot *slot)
{
	int err = call_open(slot);

	if (!err)
		err = slot_watch(chan, slot);
	if (err)
		return err;
	__atomic_store_n(&slot->open, true, __ATOMIC_RELEASE);
	if (slot->fd < 0)
		return 0;
	polycm_latch_take(&chan->channel_lock);
	chan->num_pull++;
	/* Who waits has a descriptor to watch now. */
	wake_sleepers(chan);
	polycm_latch_give(&chan->channel_lock);
	return 0;
}

int polycm_channel_area(struct polycm_channel *chan, struct polycm_module *module, void **ret_area)
{
	struct polycm_channel_slot *slot = chan->slots, *end = slot + chan->num_slots;
	int err = 0;

	while (slot < end && slot->module != module->carrier)
		slot++;
	if (slot == end)
		return -ENODEV;
	*ret_area = slot->area;
	if (__atomic_load_n(&slot->open, __ATOMIC_ACQUIRE))
		return 0;
	pthread_mutex_lock(&chan->slots_lock);
	if (!slot->open)
		err = open_slot(chan, slot);
	pthread_mutex_unlock(&chan->slots_lock);
	return err;
}

/* The counter of wake_fd counts what was added since it was 0, so neither call can fail. */
static void set_readable(struct polycm_channel *chan, bool readable)
{
	uint64_t count = 1;
	ssize_t n;

	/* Not write() and read(), which a thread is cancelled in: it may hold the lock. */
	n = syscall(readable ? SYS_write : SYS_read, chan->wake_fd, &count, sizeof(count));
	(void)n;
	chan->readable = readable;
}

void polycm_channel_show(struct polycm_channel *chan)
{
	bool readable = chan->events != NULL;

	if (readable != chan->readable && !chan->native)
		set_readable(chan, readable);
}

void polycm_channel_push(struct polycm_channel *chan, struct polycm_ev *ev)
{
	DL_APPEND(chan->events, ev);
	/* An edge for epoll, as with the kernel's descriptor: a program may read one event for each. */
	if (!chan->taken_at_once && !chan->native)
		set_readable(chan, true);
	wake_sleepers(chan);
}

struct polycm_ev *polycm_channel_pop(struct polycm_channel *chan, struct polycm_ev *ev)
{
	if (!ev)
		ev = chan->events;
	if (!ev)
		return NULL;

	DL_DELETE(chan->events, ev);
	polycm_channel_show(chan);
	return ev;
}
