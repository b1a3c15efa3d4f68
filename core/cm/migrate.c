/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cm/migrate.c - ids that move to another channel, with what waits for them
 * and, where their provider can, with requests that nobody has retrieved.
 */
#include "config.h"
#include "id_internal.h"

#include <errno.h>
#include <string.h>
#include <utlist.h>

#include "core/base/export.h"
#include "core/base/log.h"
#include "core/plugin/op.h"
#include "ret.h"

/* Take a request's event out of the queue.  NULL: somebody is taking it. */
static struct polycm_ev *take_request(struct polycm_id *listener, struct polycm_id *child,
				      bool stranded)
{
	struct polycm_channel *chan = polycm_channel_lock(listener);
	struct polycm_ev *ev;

	DL_FOREACH(chan->events, ev)
		if (ev->child == child)
			break;
	if (ev) {
		(void)polycm_channel_pop(chan, ev);
	} else {
		ev = polycm_hold_take_locked(listener, child);
	}
	if (ev)
		listener->pending--;
	if (ev && stranded) {
		child->listener = NULL;
		child->stranded = true;
	}
	polycm_channel_unlock(chan);
	return ev;
}

/*
 * A request that cannot follow its listener ends with the channel that it is on: here, or,
 * stranded, when the program destroys that channel.  Since 5.11 Linux moves the events of a
 * listener but not the ids of requests, and nobody can take them any more.  false: somebody
 * is taking it.
 */
static bool lose_request(struct polycm_id *listener, struct polycm_id *child, bool stranded)
{
	struct polycm_ev *ev = take_request(listener, child, stranded);

	if (!ev)
		return false;
	polycm_log_id(POLYCM_LOG_WARN, child, stranded ?
		      "a connection request is lost, as the kernel loses it: its listener moves to "
		      "another channel before it was taken" :
		      "a connection request is refused: it cannot follow its listener to another "
		      "channel");
	if (!stranded)
		polycm_id_end_child(child);
	polycm_ev_free(ev);
	return true;
}

static int migrate_at_provider(struct polycm_id *id, struct polycm_channel *to)
{
	void *area;
	int err = polycm_channel_area(to, id->module, &area);

	return err ? err : POLYCM_OP(id->module, migrate, id->priv, area);
}

/* Requests that wait in the queue go with their listener, as a rule. */
static void migrate_requests(struct polycm_id *id, struct polycm_channel *to)
{
	struct polycm_channel *from;
	struct polycm_id *child;

	for (;;) {
		from = polycm_channel_lock(id);
		for (child = from->ids; child; child = child->next)
			if (child->listener == id && child->announced &&
			    child->pub.channel != &to->pub)
				break;
		polycm_channel_unlock(from);
		if (!child)
			return;
		if ((child->module->desc.flags & POLYCM_PROVIDER_LOSES_REQUESTS) &&
		    lose_request(id, child, true))
			continue;
		if (!migrate_at_provider(child, to) || !lose_request(id, child, false))
			child->pub.channel = &to->pub;
	}
}

/* An id without a provider, or with one that need not know, moves all the same. */
static int migrate_part(struct polycm_id *id, struct polycm_channel *to)
{
	int err = id->module ? migrate_at_provider(id, to) : 0;

	return err == -EOPNOTSUPP ? 0 : err;
}

/* Its listener may have moved before the request was posted, or while it was taken. */
int polycm_id_follow(struct polycm_id *id)
{
	struct polycm_channel *chan = id->chan;
	int err;

	if (id->pub.channel == &chan->pub)
		return 0;
	err = migrate_part(id, chan);
	if (!err)
		id->pub.channel = &chan->pub;
	return err;
}

/* It moved, but not all of the id could. */
static void go_back(struct polycm_id *id, struct polycm_channel *from)
{
	int err = migrate_part(id, from);

	if (err)
		polycm_log(POLYCM_LOG_ERROR, "provider %s: migrate(): an id cannot go back to its "
			   "channel and may report nothing more: %s", id->module->name,
			   strerror(-err));
}

/* Move the id and its shadows: all, or none. */
static int migrate_parts(struct polycm_id *id, struct polycm_channel *from,
			 struct polycm_channel *to)
{
	struct polycm_id *stuck, *shadow;
	int err = migrate_part(id, to);

	if (err)
		return err;
	for (stuck = id->shadows; stuck; stuck = stuck->next_shadow) {
		err = migrate_part(stuck, to);
		if (err)
			break;
	}
	if (!err)
		return 0;
	for (shadow = id->shadows; shadow != stuck; shadow = shadow->next_shadow)
		go_back(shadow, from);
	go_back(id, from);
	return err;
}

int polycm_id_migrate(struct polycm_id *id, struct polycm_channel *to)
{
	struct polycm_channel *from = id->chan, *private = NULL;
	int err;

	if (!to) {
		err = polycm_channel_create(true, &private);
		if (err)
			return err;
		to = private;
	}

	err = migrate_parts(id, from, to);
	if (err)
		goto err_destroy;
	migrate_requests(id, to);

	polycm_channel_move_id(id, to);
	id->pub.channel = &to->pub;
	if (id->rsocket.sync && from != to)
		polycm_channel_destroy(from);
	__atomic_store_n(&id->rsocket.sync, private != NULL, __ATOMIC_RELAXED);
	return 0;

err_destroy:
	if (private)
		polycm_channel_destroy(private);
	return err;
}

POLYCM_EXPORT int rdma_migrate_id(struct rdma_cm_id *id, struct rdma_event_channel *channel)
{
	struct polycm_channel *to = polycm_channel_of(channel);
	struct polycm_id *self = polycm_enter(id);
	int err;

	if (!self)
		return polycm_refused(__func__);
	if (channel && !to)
		err = polycm_fail(-EINVAL, "no channel of rdma_create_event_channel");
	else if (self->rsocket.sync && (!channel || to == self->chan))
		err = polycm_fail(-EINVAL, "the id is synchronous already");
	else
		err = polycm_ev_check_acks(self, NULL, __func__);
	if (!err && to != self->chan)
		err = polycm_id_migrate(self, to);
	if (!err)
		polycm_release_event(self);
	polycm_id_unlock(self);
	if (err ? polycm_leave_unlocked(self) : polycm_ev_wait_and_leave(self, NULL, __func__)) {
		self = NULL;
		err = polycm_fail(-EINVAL, "another thread destroys the id");
	}
	return polycm_ret(__func__, self, err);
}
