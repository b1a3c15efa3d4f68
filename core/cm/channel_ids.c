/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cm/channel_ids.c - all channels, and which ids are on which.
 *
 * An id may move to another channel at any time, so the channel of an id is
 * only found with polycm_channel_lock(); lookup_lock keeps a channel in memory
 * for those that are between reading the pointer and holding chan->channel_lock.
 */
#include "config.h"
#include "id_internal.h"

#include <stdio.h>
#include <utlist.h>

#include "core/base/log.h"

static pthread_mutex_t channels_lock = PTHREAD_MUTEX_INITIALIZER;
static struct polycm_channel *channels;
static struct polycm_id *orphans;	/* under channels_lock */
/* Never read-locked twice by a thread, and destroying a channel must not starve. */
static pthread_rwlock_t lookup_lock = PTHREAD_RWLOCK_WRITER_NONRECURSIVE_INITIALIZER_NP;

void polycm_channels_add(struct polycm_channel *chan)
{
	pthread_mutex_lock(&channels_lock);
	DL_APPEND(channels, chan);
	pthread_mutex_unlock(&channels_lock);
}

void polycm_channels_remove(struct polycm_channel *chan)
{
	pthread_mutex_lock(&channels_lock);
	DL_DELETE(channels, chan);
	pthread_mutex_unlock(&channels_lock);
}

void polycm_channels_wait_lookups(void)
{
	pthread_rwlock_wrlock(&lookup_lock);
	pthread_rwlock_unlock(&lookup_lock);
}

/* The channel, if the id is on it; this thread knows that it stays. */
static bool lock_if_on(struct polycm_channel *chan, struct polycm_id *id)
{
	if (__atomic_load_n(&id->chan, __ATOMIC_ACQUIRE) != chan)
		return false;
	polycm_latch_take(&chan->channel_lock);
	if (__atomic_load_n(&id->chan, __ATOMIC_ACQUIRE) == chan)
		return true;
	polycm_latch_give(&chan->channel_lock);
	return false;
}

struct polycm_channel *polycm_channel_lock_shared(struct polycm_id *id)
{
	struct polycm_channel *chan = polycm_wait_channel();

	/* A thread that fetches events for it keeps it. */
	if (chan && lock_if_on(chan, id))
		return chan;

	pthread_rwlock_rdlock(&lookup_lock);
	do {
		chan = __atomic_load_n(&id->chan, __ATOMIC_ACQUIRE);
	} while (chan && !lock_if_on(chan, id));
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
	polycm_latch_take(&chan->channel_lock);
	polycm_channel_add_id_locked(chan, id);
	polycm_latch_give(&chan->channel_lock);
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
	polycm_latch_give(&chan->channel_lock);
}

static void lock_two(struct polycm_channel *a, struct polycm_channel *b)
{
	bool a_first = (uintptr_t)a < (uintptr_t)b;

	polycm_latch_take(a_first ? &a->channel_lock : &b->channel_lock);
	polycm_latch_take(a_first ? &b->channel_lock : &a->channel_lock);
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
		polycm_channel_add_id_locked(to, other);
	}

	polycm_latch_give(&to->channel_lock);
	polycm_latch_give(&from->channel_lock);
	pthread_mutex_unlock(&channels_lock);
}

void polycm_ids_walk(void (*fn)(struct polycm_channel *chan, struct polycm_id *id, void *arg),
		     void *arg)
{
	struct polycm_channel *chan;
	struct polycm_id *id;

	pthread_mutex_lock(&channels_lock);
	DL_FOREACH(channels, chan) {
		polycm_latch_take(&chan->channel_lock);
		DL_FOREACH(chan->ids, id)
			fn(chan, id, arg);
		polycm_latch_give(&chan->channel_lock);
	}
	DL_FOREACH(orphans, id)
		fn(NULL, id, arg);
	pthread_mutex_unlock(&channels_lock);
}

void polycm_channels_walk(void (*fn)(const struct polycm_channel *chan, void *arg), void *arg)
{
	struct polycm_channel *chan;

	pthread_mutex_lock(&channels_lock);
	DL_FOREACH(channels, chan) {
		polycm_latch_take(&chan->channel_lock);
		fn(chan, arg);
		polycm_latch_give(&chan->channel_lock);
	}
	pthread_mutex_unlock(&channels_lock);
}

void polycm_orphan_add(struct polycm_id *id)
{
	pthread_mutex_lock(&channels_lock);
	DL_APPEND(orphans, id);
	id->orphan = true;
	pthread_mutex_unlock(&channels_lock);
}

void polycm_orphan_remove(struct polycm_id *id)
{
	if (!id->orphan)
		return;
	pthread_mutex_lock(&channels_lock);
	DL_DELETE(orphans, id);
	id->orphan = false;
	pthread_mutex_unlock(&channels_lock);
}

void polycm_channel_describe_ids_locked(const struct polycm_channel *chan, char *text, size_t size)
{
	const struct polycm_id *id;
	char one[160];
	size_t len = 0;

	snprintf(text, size, "no id is on the channel");
	DL_FOREACH(chan->ids, id) {
		if (id->device || id->pub.route.addr.src_addr.sa_family)
			polycm_id_describe_locked(id, one, sizeof(one));
		else
			snprintf(one, sizeof(one), "an id without an address");
		len += (size_t)snprintf(text + len, size - len, "%s%s%s", len ? "; " : "", one,
					id->backlog ? " (listens, and nobody asks)" : "");
		if (len >= size)
			break;
	}
}

bool polycm_channel_stuck_logged_locked(struct polycm_channel *chan)
{
	bool logged = chan->stuck_logged &&
		    chan->stuck_posts == __atomic_load_n(&chan->posts, __ATOMIC_RELAXED);

	chan->stuck_logged = false;
	return logged;
}

void polycm_channels_tell_stuck(const struct polycm_channel *but)
{
	struct polycm_channel *chan;
	char text[512];

	pthread_mutex_lock(&channels_lock);
	DL_FOREACH(channels, chan) {
		if (chan == but ||
		    !(__atomic_load_n(&chan->inside, __ATOMIC_ACQUIRE) & ~POLYCM_CLOSED))
			continue;
		polycm_latch_take(&chan->channel_lock);
		polycm_channel_describe_ids_locked(chan, text, sizeof(text));
		chan->stuck_logged = true;
		chan->stuck_posts = __atomic_load_n(&chan->posts, __ATOMIC_RELAXED);
		polycm_latch_give(&chan->channel_lock);
		polycm_log(POLYCM_LOG_ERROR, POLYCM_STUCK, text);
	}
	pthread_mutex_unlock(&channels_lock);
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
		polycm_latch_take(&chan->channel_lock);
		len = (size_t)snprintf(text, size, "event channel on descriptor %d: ", fd);
		if (len < size)
			polycm_channel_describe_ids_locked(chan, text + len, size - len);
		*ret_fetched = chan->native || chan->num_pull;
		polycm_latch_give(&chan->channel_lock);
	}
	pthread_mutex_unlock(&channels_lock);
	return chan != NULL;
}
