/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cm/channel.c - the life of event channels: made, found behind a program's
 * pointer, and ended under ids that are still on them and threads that are
 * still inside.  Their descriptors and queues: cm/channel_fd.c; the ids on
 * them: cm/channel_ids.c.
 */
#include "config.h"
#include "id_internal.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <utlist.h>

#include "core/base/export.h"
#include "core/base/log.h"
#include "ret.h"

static size_t num_channels;		/* atomic */

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

int polycm_channel_create(bool private, struct polycm_channel **ret_chan)
{
	struct polycm_channel *chan = channel_alloc();
	int err;

	if (!chan)
		return -ENOMEM;
	polycm_forks_watch();
	chan->forks = polycm_forks;

	err = polycm_channel_open_fds(chan);
	if (err)
		goto err_free;
	err = polycm_live_add(&polycm_live_objects, chan);
	if (err)
		goto err_close;
	chan->private = private;
	pthread_mutex_init(&chan->pull_lock, NULL);
	pthread_mutex_init(&chan->slots_lock, NULL);

	polycm_channels_add(chan);
	__atomic_add_fetch(&num_channels, 1, __ATOMIC_RELAXED);
	*ret_chan = chan;
	return 0;

err_close:
	polycm_channel_close_fds(chan);
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

/*
 * An id that is on the channel, locked, so that nobody else ends it.  NULL: but
 * for those whose request was not posted yet, and which end with their
 * listener, there is none; they are on no channel now.
 */
static struct polycm_id *lock_one_on(struct polycm_channel *chan)
{
	struct polycm_id *id, *next_id;

	for (;;) {
		polycm_latch_take(&chan->channel_lock);
		for (id = chan->ids; id && id->listener; id = id->next)
			;
		/* An id's lock comes before its channel's, so there is no waiting for it here. */
		if (!id || polycm_latch_try(&id->id_lock))
			break;
		polycm_latch_give(&chan->channel_lock);
		sched_yield();
	}
	if (!id) {
		DL_FOREACH_SAFE(chan->ids, id, next_id) {
			DL_DELETE(chan->ids, id);
			__atomic_store_n(&id->chan, NULL, __ATOMIC_RELEASE);
		}
	}
	polycm_latch_give(&chan->channel_lock);
	return id;
}

/*
 * The program destroys the channel while ids are on it.  The kernel would end
 * the connections when the descriptor is closed; so do we, and the ids stay
 * what the program can still destroy.
 */
static void abandon_ids(struct polycm_channel *chan)
{
	struct polycm_id *id;
	unsigned int num = 0;

	while ((id = lock_one_on(chan))) {
		bool stranded = id->stranded;

		polycm_id_abandon(id);
		if (stranded)
			polycm_id_free(id);
		else
			num++;
	}
	if (num)
		polycm_log(POLYCM_LOG_WARN, "rdma_destroy_event_channel: %u ids are still on it; "
			   "their connections end here", num);
}

static void free_memory(struct polycm_channel *chan)
{
	if (!chan)
		return;
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
	static pthread_mutex_t kept_lock = PTHREAD_MUTEX_INITIALIZER;
	static struct polycm_channel *kept[KEPT_CHANNELS];
	static unsigned int oldest;

	pthread_mutex_lock(&kept_lock);
	free_memory(kept[oldest]);
	kept[oldest] = chan;
	oldest = (oldest + 1) % KEPT_CHANNELS;
	pthread_mutex_unlock(&kept_lock);
}

static void channel_free(struct polycm_channel *chan)
{
	polycm_channel_close_fds(chan);
	if (chan->private)
		free_memory(chan);
	else
		keep(chan);
}

void polycm_channel_destroy(struct polycm_channel *chan)
{
	bool in_use;

	polycm_channels_remove(chan);
	abandon_ids(chan);
	polycm_channels_wait_lookups();

	/* A thread that sleeps in rdma_get_cm_event() goes on sleeping. */
	polycm_latch_take(&chan->channel_lock);
	chan->destroyer = pthread_self();
	__atomic_store_n(&chan->gone, true, __ATOMIC_RELEASE);
	polycm_latch_give(&chan->channel_lock);
	in_use = __atomic_fetch_or(&chan->inside, POLYCM_CLOSED, __ATOMIC_ACQ_REL) > 0;
	if (in_use && !chan->private)
		polycm_log(POLYCM_LOG_WARN, "rdma_destroy_event_channel: another thread waits on this "
			   "channel in rdma_get_cm_event(), and nothing ends that any more: join it "
			   "first");

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
		(void)polycm_ret("rdma_destroy_event_channel", NULL,
				 polycm_fail(-EINVAL, "no channel of rdma_create_event_channel"));
}
