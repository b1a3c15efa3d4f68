/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rdma_channel.c - event channels: the descriptor that programs poll, the
 * queue behind it, and which ids are on it.
 *
 * chan->lock is a leaf.  An id may move to another
 * channel at any time, so the channel of an id is only found with
 * polycm_channel_lock(); lookup_lock keeps a channel in memory for those that
 * are between reading the pointer and holding chan->lock.
 */
#include "config.h"
#include "id_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <utlist.h>

#include "export.h"
#include "log.h"
#include "ret.h"

static pthread_mutex_t channels_lock = PTHREAD_MUTEX_INITIALIZER;
static struct polycm_channel *channels;
static size_t num_channels;		/* atomic */
static unsigned int forks;		/* that lie between the first process and this one */
static unsigned int children;		/* that this process has had by fork() */
static pthread_once_t forks_once = PTHREAD_ONCE_INIT;
/* Never read-locked twice by a thread, and destroying a channel must not starve. */
static pthread_rwlock_t lookup_lock = PTHREAD_RWLOCK_WRITER_NONRECURSIVE_INITIALIZER_NP;

int polycm_start(void)
{
	int err = polycm_registry_get();

	if (!err && !polycm_device_count()) {
		polycm_registry_enumerate();
		if (!polycm_device_count())
			err = -ENODEV;
	}
	if (err)
		polycm_no_device_hint();
	return err;
}

static struct polycm_channel *channel_alloc(void)
{
	struct polycm_module *const *modules;
	size_t num = polycm_registry_carriers(&modules);
	size_t area_size = polycm_registry_channel_size();
	size_t size = sizeof(struct polycm_channel) + num * area_size +
		      num * sizeof(struct polycm_channel_slot);
	struct polycm_channel *chan;

	chan = polycm_block_alloc(size);
	if (!chan)
		return NULL;

	chan->num_slots = (unsigned int)num;
	chan->slots = (struct polycm_channel_slot *)(void *)(chan->areas + num * area_size);
	for (size_t i = 0; i < num; i++) {
		chan->slots[i].module = modules[i];
		chan->slots[i].area = chan->areas + i * area_size;
		chan->slots[i].fd = -1;
	}
	return chan;
}

/* Call the provider; nobody else touches the slot while it is OPENING. */
static int slot_open(struct polycm_channel_slot *slot)
{
	struct polycm_module *module = slot->module;
	int fd = -1;
	int err = module->ops.channel_open(module->ctx, slot->area, &fd);

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
	int err = slot_open(slot);

	if (err)
		return err;
	slot->state = POLYCM_SLOT_OPEN;
	chan->native = true;
	chan->wake_fd = -1;
	chan->pub.fd = slot->fd;
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

static void close_fds(struct polycm_channel *chan)
{
	for (unsigned int i = 0; i < chan->num_slots; i++)
		if (chan->slots[i].state == POLYCM_SLOT_OPEN)
			chan->slots[i].module->ops.channel_close(chan->slots[i].area);
	if (chan->native)
		return;
	close(chan->pub.fd);
	close(chan->wake_fd);
}

static void count_fork(void)
{
	forks++;
}

static void count_child(void)
{
	children++;
}

static void watch_forks(void)
{
	(void)pthread_atfork(NULL, count_child, count_fork);
}

bool polycm_channel_has_children(const struct polycm_channel *chan)
{
	return chan->children != children;
}

bool polycm_channel_inherited(const struct polycm_channel *chan)
{
	return chan->forks != forks;
}

bool polycm_id_inherited(struct polycm_id *id)
{
	struct polycm_channel *chan;
	bool inherited;

	if (__builtin_expect(!forks, 1))
		return false;
	chan = polycm_channel_lock(id);
	inherited = chan && polycm_channel_inherited(chan);
	polycm_channel_unlock(chan);
	return inherited;
}

int polycm_channel_create(bool private, struct polycm_channel **ret_chan)
{
	struct polycm_channel *chan = channel_alloc();
	int err;

	if (!chan)
		return -ENOMEM;
	pthread_once(&forks_once, watch_forks);
	chan->forks = forks;
	chan->children = children;

	err = polycm_registry_kernel_only() ? open_native(chan) : open_set(chan);
	if (err)
		goto err_free;
	err = polycm_live_add(&polycm_live_objects, chan);
	if (err)
		goto err_close;
	chan->private = private;
	pthread_mutex_init(&chan->pull_lock, NULL);
	pthread_mutex_init(&chan->slots_lock, NULL);
	pthread_cond_init(&chan->slot_opened, NULL);

	pthread_mutex_lock(&channels_lock);
	DL_APPEND(channels, chan);
	pthread_mutex_unlock(&channels_lock);
	__atomic_add_fetch(&num_channels, 1, __ATOMIC_RELAXED);
	*ret_chan = chan;
	return 0;

err_close:
	close_fds(chan);
err_free:
	free(chan);
	return err;
}

struct polycm_channel *polycm_channel_of(struct rdma_event_channel *pub)
{
	struct polycm_channel *chan = (struct polycm_channel *)(void *)pub;

	if (!polycm_live(&polycm_live_objects, chan))
		return NULL;
	return __atomic_load_n(&chan->gone, __ATOMIC_ACQUIRE) ? NULL : chan;
}

bool polycm_channel_gone(const struct rdma_event_channel *pub)
{
	const struct polycm_channel *chan = (const struct polycm_channel *)(const void *)pub;

	return polycm_live(&polycm_live_objects, chan) &&
	       __atomic_load_n(&chan->gone, __ATOMIC_ACQUIRE) &&
	       !pthread_equal(chan->destroyer, pthread_self());
}

/* Under the channel's lock. */
static void wake_sleepers(struct polycm_channel *chan)
{
	(void)polycm_count_up(&chan->posts);
	if (chan->sleepers)
		(void)syscall(SYS_futex, &chan->posts, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}

int polycm_channel_area(struct polycm_channel *chan, struct polycm_module *module, void **ret_area)
{
	struct polycm_channel_slot *slot = NULL;
	int err = 0;

	for (unsigned int i = 0; i < chan->num_slots; i++)
		if (chan->slots[i].module == module->carrier)
			slot = &chan->slots[i];
	if (!slot)
		return -ENODEV;

	*ret_area = slot->area;
	if (__atomic_load_n(&slot->state, __ATOMIC_ACQUIRE) == POLYCM_SLOT_OPEN)
		return 0;
	pthread_mutex_lock(&chan->slots_lock);
	while (slot->state == POLYCM_SLOT_OPENING)
		pthread_cond_wait(&chan->slot_opened, &chan->slots_lock);
	if (slot->state == POLYCM_SLOT_CLOSED) {
		__atomic_store_n(&slot->state, POLYCM_SLOT_OPENING, __ATOMIC_RELAXED);
		pthread_mutex_unlock(&chan->slots_lock);
		err = slot_open(slot);
		if (!err)
			err = slot_watch(chan, slot);
		pthread_mutex_lock(&chan->slots_lock);
		__atomic_store_n(&slot->state, err ? POLYCM_SLOT_CLOSED : POLYCM_SLOT_OPEN,
				 __ATOMIC_RELEASE);
		if (!err && slot->fd >= 0) {
			polycm_channel_take_lock(chan);
			chan->num_pull++;
			/* Who waits has a descriptor to watch now. */
			wake_sleepers(chan);
			polycm_channel_give_lock(chan);
		}
		pthread_cond_broadcast(&chan->slot_opened);
	}
	pthread_mutex_unlock(&chan->slots_lock);
	return err;
}

/* The channel, if the id is on it; this thread knows that it stays. */
static bool lock_if_on(struct polycm_channel *chan, struct polycm_id *id)
{
	if (__atomic_load_n(&id->chan, __ATOMIC_ACQUIRE) != chan)
		return false;
	polycm_channel_take_lock(chan);
	if (__atomic_load_n(&id->chan, __ATOMIC_ACQUIRE) == chan)
		return true;
	polycm_channel_give_lock(chan);
	return false;
}

struct polycm_channel *polycm_channel_lock_shared(struct polycm_id *id)
{
	struct polycm_channel *chan = polycm_wait_channel();

	/* A thread that fetches events for it keeps it. */
	if (chan && lock_if_on(chan, id))
		return chan;

	pthread_rwlock_rdlock(&lookup_lock);
	for (;;) {
		chan = __atomic_load_n(&id->chan, __ATOMIC_ACQUIRE);
		if (!chan)
			break;
		polycm_channel_take_lock(chan);
		if (chan == __atomic_load_n(&id->chan, __ATOMIC_ACQUIRE))
			break;
		polycm_channel_give_lock(chan);
	}
	pthread_rwlock_unlock(&lookup_lock);
	return chan;
}

struct polycm_channel *polycm_channel_lock_shared_held(struct polycm_id *id)
{
	struct polycm_channel *chan = __atomic_load_n(&id->chan, __ATOMIC_ACQUIRE);

	/* Ending a channel waits for the id's lock, but not for that of an id which nobody has seen. */
	if (chan && !id->listener && lock_if_on(chan, id))
		return chan;
	return polycm_channel_lock_shared(id);
}

void polycm_channel_add_id_locked(struct polycm_channel *chan, struct polycm_id *id)
{
	DL_APPEND(chan->ids, id);
	__atomic_store_n(&id->chan, chan, __ATOMIC_RELEASE);
}

void polycm_channel_add_id(struct polycm_channel *chan, struct polycm_id *id)
{
	polycm_channel_take_lock(chan);
	polycm_channel_add_id_locked(chan, id);
	polycm_channel_give_lock(chan);
}

void polycm_channel_remove_id_locked(struct polycm_channel *chan, struct polycm_id *id)
{
	DL_DELETE(chan->ids, id);
	__atomic_store_n(&id->chan, NULL, __ATOMIC_RELEASE);
}

void polycm_channel_remove_id(struct polycm_id *id)
{
	struct polycm_channel *chan = polycm_channel_lock(id);

	if (!chan)
		return;
	polycm_channel_remove_id_locked(chan, id);
	polycm_channel_give_lock(chan);
}

/* The counter of wake_fd goes 0, 1, 0, so neither call can fail. */
void polycm_channel_show(struct polycm_channel *chan)
{
	bool readable = chan->events != NULL;
	uint64_t count = 1;
	ssize_t n;

	if (readable == chan->readable || chan->native)
		return;
	/* Not write() and read(), which a thread is cancelled in: it may hold the lock. */
	n = syscall(readable ? SYS_write : SYS_read, chan->wake_fd, &count, sizeof(count));
	(void)n;
	chan->readable = readable;
}

void polycm_channel_push(struct polycm_channel *chan, struct polycm_ev *ev)
{
	DL_APPEND(chan->events, ev);
	if (!polycm_wait_takes(chan))
		polycm_channel_show(chan);
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

static void lock_two(struct polycm_channel *a, struct polycm_channel *b)
{
	bool a_first = (uintptr_t)a < (uintptr_t)b;

	polycm_channel_take_lock(a_first ? a : b);
	polycm_channel_take_lock(a_first ? b : a);
}

void polycm_channel_move_id(struct polycm_id *id, struct polycm_channel *to)
{
	struct polycm_channel *from = __atomic_load_n(&id->chan, __ATOMIC_ACQUIRE);
	struct polycm_id *other, *next_id;
	struct polycm_ev *ev, *next_ev;

	if (from == to || !from)
		return;

	pthread_mutex_lock(&channels_lock);
	lock_two(from, to);

	DL_FOREACH_SAFE(from->events, ev, next_ev) {
		if (ev->owner == id || ev->owner->listener == id)
			polycm_channel_push(to, polycm_channel_pop(from, ev));
	}
	DL_FOREACH_SAFE(from->ids, other, next_id) {
		if (other != id && other->listener != id)
			continue;
		DL_DELETE(from->ids, other);
		DL_APPEND(to->ids, other);
		__atomic_store_n(&other->chan, to, __ATOMIC_RELEASE);
	}

	polycm_channel_give_lock(to);
	polycm_channel_give_lock(from);
	pthread_mutex_unlock(&channels_lock);
}

void polycm_channels_walk_ids(void (*fn)(struct polycm_channel *chan, struct polycm_id *id,
					 void *arg), void *arg)
{
	struct polycm_channel *chan;
	struct polycm_id *id;

	pthread_mutex_lock(&channels_lock);
	DL_FOREACH(channels, chan) {
		polycm_channel_take_lock(chan);
		DL_FOREACH(chan->ids, id)
			fn(chan, id, arg);
		polycm_channel_give_lock(chan);
	}
	pthread_mutex_unlock(&channels_lock);
}

void polycm_channel_describe_ids_locked(const struct polycm_channel *chan, char *text, size_t size)
{
	const struct polycm_id *id;
	char one[160];
	size_t len = 0;

	snprintf(text, size, "no id is on the channel");
	DL_FOREACH(chan->ids, id) {
		polycm_id_describe_locked(id, one, sizeof(one));
		len += (size_t)snprintf(text + len, size - len, "%s%s%s", len ? "; " : "", one,
					id->backlog ? " (listens, and nobody asks)" : "");
		if (len >= size)
			break;
	}
}

bool polycm_channel_describe_fd(int fd, char *text, size_t size, bool *ret_fetched)
{
	struct polycm_channel *chan;
	size_t len;

	pthread_mutex_lock(&channels_lock);
	DL_FOREACH(channels, chan) {
		if (chan->pub.fd == fd)
			break;
	}
	if (chan) {
		polycm_channel_take_lock(chan);
		len = (size_t)snprintf(text, size, "event channel on descriptor %d: ", fd);
		if (len < size)
			polycm_channel_describe_ids_locked(chan, text + len, size - len);
		*ret_fetched = chan->native || chan->num_pull;
		polycm_channel_give_lock(chan);
	}
	pthread_mutex_unlock(&channels_lock);
	return chan != NULL;
}

/*
 * The program destroys the channel while ids are on it.  The kernel would end
 * the connections when the descriptor is closed; so do we, and the ids stay
 * what the program can still destroy.
 */
static void abandon_ids(struct polycm_channel *chan)
{
	struct polycm_id *id, *next_id;
	unsigned int num = 0;

	for (;;) {
		polycm_channel_take_lock(chan);
		/* Those whose request was not posted yet end with their listener. */
		for (id = chan->ids; id && id->listener; id = id->next)
			;
		if (!id) {
			DL_FOREACH_SAFE(chan->ids, id, next_id) {
				DL_DELETE(chan->ids, id);
				__atomic_store_n(&id->chan, NULL, __ATOMIC_RELEASE);
			}
		}
		polycm_channel_give_lock(chan);
		if (!id)
			break;
		if (id->stranded) {
			polycm_id_end_child(id);
			continue;
		}
		num++;
		polycm_id_abandon(id);
	}
	if (num)
		polycm_log(POLYCM_LOG_WARN, "rdma_destroy_event_channel: %u ids are still on it; "
			   "their connections end here", num);
}

static void free_memory(struct polycm_channel *chan)
{
	if (!chan)
		return;
	pthread_cond_destroy(&chan->slot_opened);
	pthread_mutex_destroy(&chan->pull_lock);
	pthread_mutex_destroy(&chan->slots_lock);
	polycm_live_remove(&polycm_live_objects, chan);
	free(chan);
}

/*
 * The memory of channels that programs destroyed is kept for a while, the
 * locks in it too: a thread of theirs may be on its way into
 * rdma_get_cm_event(), as rping's is.
 */
#define KEPT_CHANNELS 8

static void keep(struct polycm_channel *chan)
{
	static struct polycm_channel *kept[KEPT_CHANNELS];
	static unsigned int oldest;

	pthread_mutex_lock(&channels_lock);
	free_memory(kept[oldest]);
	kept[oldest] = chan;
	oldest = (oldest + 1) % KEPT_CHANNELS;
	pthread_mutex_unlock(&channels_lock);
}

static void channel_free(struct polycm_channel *chan)
{
	close_fds(chan);
	if (chan->private)
		free_memory(chan);
	else
		keep(chan);
}

void polycm_channel_destroy(struct polycm_channel *chan)
{
	bool in_use;

	pthread_mutex_lock(&channels_lock);
	DL_DELETE(channels, chan);
	pthread_mutex_unlock(&channels_lock);

	abandon_ids(chan);

	/* Wait for those that read a pointer to it from an id that has left. */
	pthread_rwlock_wrlock(&lookup_lock);
	pthread_rwlock_unlock(&lookup_lock);

	/* A thread that sleeps in rdma_get_cm_event() goes on sleeping. */
	polycm_channel_take_lock(chan);
	chan->destroyer = pthread_self();
	__atomic_store_n(&chan->gone, true, __ATOMIC_RELEASE);
	polycm_channel_give_lock(chan);
	in_use = __atomic_fetch_or(&chan->inside, POLYCM_CLOSED, __ATOMIC_ACQ_REL) > 0;

	__atomic_sub_fetch(&num_channels, 1, __ATOMIC_RELAXED);
	if (!in_use)
		channel_free(chan);
}

bool polycm_channel_enter(struct polycm_channel *chan)
{
	uint32_t inside = __atomic_load_n(&chan->inside, __ATOMIC_RELAXED);

	do {
		if (inside & POLYCM_CLOSED)
			return false;
		if (polycm_alone()) {
			chan->inside = inside + 1;
			return true;
		}
	} while (!__atomic_compare_exchange_n(&chan->inside, &inside, inside + 1, true,
					      __ATOMIC_ACQUIRE, __ATOMIC_RELAXED));
	return true;
}

bool polycm_channel_leave(struct polycm_channel *chan)
{
	uint32_t left = polycm_count_down(&chan->inside);

	if (left == POLYCM_CLOSED)
		channel_free(chan);
	return left & POLYCM_CLOSED;
}

size_t polycm_channels_live(void)
{
	return __atomic_load_n(&num_channels, __ATOMIC_RELAXED);
}

POLYCM_EXPORT struct rdma_event_channel *rdma_create_event_channel(void)
{
	struct polycm_channel *chan;
	int err;

	polycm_why_clear();
	err = polycm_start();
	if (!err)
		err = polycm_channel_create(false, &chan);
	if (polycm_ret("rdma_create_event_channel", NULL, err))
		return NULL;
	return &chan->pub;
}

POLYCM_EXPORT void rdma_destroy_event_channel(struct rdma_event_channel *channel)
{
	struct polycm_channel *chan = polycm_channel_of(channel);

	polycm_why_clear();
	/* Of several threads one destroys it. */
	if (chan && !__atomic_exchange_n(&chan->ending, true, __ATOMIC_ACQ_REL))
		polycm_channel_destroy(chan);
	else
		(void)polycm_ret("rdma_destroy_event_channel", NULL, -EINVAL);
}
