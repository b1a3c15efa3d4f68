/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cm/hold.c - events that a layer has delayed.
 *
 * Such an event counts as posted, but waits in the list of its id
 * (chan->channel_lock) instead of the channel's queue.  Later events of the same id
 * wait behind it.  When its delay is over and it is the first, it goes into the
 * queue, with those behind it whose delay is over, too.  Events for the id of a
 * request wait until the request itself is in the queue.
 */
#include "config.h"
#include "id_internal.h"

#include <utlist.h>

#include "core/base/clock.h"
#include "core/base/log.h"

/* Queue all events whose delay is over.  Channel's lock held. */
static void flush(struct polycm_channel *chan, struct polycm_id *id)
{
	struct polycm_ev *ev;

	while ((ev = id->held) && ev->due && ev->armed && !id->request_held) {
		struct polycm_id *child = ev->child;

		DL_DELETE(id->held, ev);
		ev->held = false;
		polycm_channel_push(chan, ev);
		if (!child)
			continue;
		child->request_held = false;
		flush(chan, child);
	}
}

/* The timer's function.  It may free the event. */
static void release(void *arg)
{
	struct polycm_ev *ev = arg;
	struct polycm_channel *chan = polycm_channel_lock(ev->owner);

	if (chan && ev->held) {
		ev->due = true;
		flush(chan, ev->owner);
	}
	polycm_channel_unlock(chan);
}

bool polycm_hold_locked(struct polycm_id *id, struct polycm_ev *ev, uint64_t hold_ns)
{
	if (!hold_ns && !id->held && !id->request_held)
		return false;
	ev->held = true;
	ev->due = ev->armed = !hold_ns;
	if (ev->child)
		ev->child->request_held = true;
	DL_APPEND(id->held, ev);
	return true;
}

void polycm_hold_start(struct polycm_ev *ev, uint64_t hold_ns)
{
	uint64_t deadline, now = polycm_now_ns();
	struct polycm_timer *timer = NULL;
	struct polycm_channel *chan;
	bool dropped;

	if (__builtin_add_overflow(now, hold_ns, &deadline))
		deadline = UINT64_MAX;
	/* Not under the channel's lock: the lock of an installed clock comes before it. */
	if (polycm_timer_start(deadline, release, ev, &timer)) {
		polycm_log(POLYCM_LOG_WARN, "no memory for a timer: a delayed event comes at once");
		ev->due = true;
	}
	chan = polycm_channel_lock(ev->owner);
	ev->timer = timer;
	ev->armed = true;
	dropped = !ev->held;
	if (chan)
		flush(chan, ev->owner);
	polycm_channel_unlock(chan);
	if (dropped)
		polycm_ev_free(ev);
}

void polycm_hold_drop_locked(struct polycm_id *id, const struct polycm_group *group,
			     struct polycm_ev **dropped)
{
	struct polycm_ev *ev, *next;

	DL_FOREACH_SAFE(id->held, ev, next) {
		if (group && ev->group != group)
			continue;
		DL_DELETE(id->held, ev);
		ev->held = false;
		if (ev->child)
			id->pending--;
		/* Without a timer yet: the thread that starts it sees that the event was dropped. */
		if (ev->armed)
			DL_APPEND(*dropped, ev);
	}
}

struct polycm_ev *polycm_hold_take_locked(struct polycm_id *listener, const struct polycm_id *child)
{
	struct polycm_ev *ev;

	DL_FOREACH(listener->held, ev)
		if (ev->child == child && ev->armed)
			break;
	if (!ev)
		return NULL;
	DL_DELETE(listener->held, ev);
	ev->held = false;
	return ev;
}
