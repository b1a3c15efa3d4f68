/* SPDX-License-Identifier: BSD-2-Clause */
/* cm/left.c - see cm/left.h. */
#include "config.h"
#include "id_internal.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/addr.h"
#include "left.h"

void polycm_left_add(struct polycm_left_list *list, const struct polycm_left *left)
{
	struct polycm_left *items = list->items;

	if (list->num == list->room) {
		list->room = list->room ? 2 * list->room : 16;
		items = realloc(items, list->room * sizeof(*items));
		if (!items) {
			list->room = list->num;
			list->failed = true;
			return;
		}
		list->items = items;
	}
	items[list->num++] = *left;
}

/* Its channel, or the list of those without one, is locked. */
static bool is_owned(const struct polycm_id *id, const struct polycm_module *owner)
{
	const struct polycm_module *module = id->device ? id->device->module : id->module;

	return !owner || !module || module == owner;
}

/* ------------------------------------------------------------------------
 * Counting and describing.
 */

struct walk {
	const struct polycm_module *owner;
	struct polycm_left_counts counts;
	struct polycm_left_list *list;	/* NULL: count only */
};

static void describe(const struct polycm_id *id, char *text, size_t size)
{
	char src[POLYCM_ADDR_TEXT], dst[POLYCM_ADDR_TEXT];
	const char *call = __atomic_load_n(&id->made_by, __ATOMIC_RELAXED);
	bool request = call && !strncmp(call, "rdma_get_", 9);

	polycm_addr_text(&id->pub.route.addr.src_addr, src);
	polycm_addr_text(&id->pub.route.addr.dst_addr, dst);
	if (id->listener || id->stranded)
		(void)snprintf(text, size, "CONNECT_REQUEST that nobody has retrieved");
	else if (request)
		(void)snprintf(text, size, "CONNECT_REQUEST from %s to %s", dst, src);
	else if (id->backlog)
		(void)snprintf(text, size, "listens on %s", src);
	else if (id->pub.route.addr.dst_addr.sa_family &&
		 !polycm_addr_wildcard(&id->pub.route.addr.dst_addr))
		(void)snprintf(text, size, "to %s from %s", dst, src);
	else if (id->pub.route.addr.src_addr.sa_family)
		(void)snprintf(text, size, "bound to %s", src);
	else
		(void)snprintf(text, size, "without an address");
}

/* chan: NULL where it is destroyed. */
static void look_at_id(struct polycm_channel *chan, struct polycm_id *id, void *arg)
{
	struct polycm_left left = { .kind = "rdma_cm_id", .handle = &id->pub };
	struct walk *walk = arg;
	size_t len;

	if (!is_owned(id, walk->owner) || (chan && polycm_channel_inherited(chan)))
		return;
	walk->counts.ids++;
	walk->counts.orphans += !chan;
	walk->counts.events += __atomic_load_n(&id->unacked, __ATOMIC_RELAXED);
	if (!walk->list)
		return;
	left.made_by = __atomic_load_n(&id->made_by, __ATOMIC_RELAXED);
	left.made_at = __atomic_load_n(&id->made_at, __ATOMIC_RELAXED);
	describe(id, left.text, sizeof(left.text));
	len = strlen(left.text);
	if (!chan)
		(void)snprintf(left.text + len, sizeof(left.text) - len,
			       ", its channel is destroyed");
	polycm_left_add(walk->list, &left);
}

static void look_at_channel(const struct polycm_channel *chan, void *arg)
{
	struct polycm_left left = { .kind = "event channel", .handle = &chan->pub };
	struct walk *walk = arg;

	if (chan->private || polycm_channel_inherited(chan))
		return;
	walk->counts.channels++;
	if (!walk->list)
		return;
	(void)snprintf(left.text, sizeof(left.text), "on descriptor %d", chan->pub.fd);
	polycm_left_add(walk->list, &left);
}

/* Events are listed as those of the ids that the list has so far. */
static void look_at_event(const void *object, void *arg)
{
	const struct polycm_ev *ev = object;
	struct polycm_left left = { .kind = "event", .handle = &ev->pub };
	struct polycm_left_list *list = arg;

	if (!__atomic_load_n(&ev->charge, __ATOMIC_ACQUIRE))
		return;
	for (size_t i = 0; i < list->num; i++) {
		if (list->items[i].handle != &ev->owner->pub)
			continue;
		(void)snprintf(left.text, sizeof(left.text), "%s of the id: %.120s",
			       polycm_event_name(__atomic_load_n(&ev->pub.event, __ATOMIC_RELAXED)),
			       list->items[i].text);
		polycm_left_add(list, &left);
		return;
	}
}

void polycm_left_count(const struct polycm_module *owner, struct polycm_left_counts *ret_counts)
{
	struct walk walk = { .owner = owner };

	polycm_ids_walk(look_at_id, &walk);
	polycm_channels_walk(look_at_channel, &walk);
	*ret_counts = walk.counts;
}

void polycm_left_collect(const struct polycm_module *owner, struct polycm_left_list *list)
{
	struct walk walk = { .owner = owner, .list = list };

	polycm_ids_walk(look_at_id, &walk);
	polycm_live_walk(&polycm_live_events, look_at_event, list);
	polycm_channels_walk(look_at_channel, &walk);
}

/* ------------------------------------------------------------------------
 * Ending.
 */

struct search {
	const struct polycm_module *owner;
	struct polycm_id *id;
	struct polycm_channel *chan;
};

/* Requests that nobody has retrieved end with their listener, or with their channel. */
static void find_id(struct polycm_channel *chan, struct polycm_id *id, void *arg)
{
	struct search *search = arg;

	if (!search->id && !id->listener && !id->stranded && is_owned(id, search->owner) &&
	    !(chan && polycm_channel_inherited(chan)))
		search->id = id;
}

/* One that ids of other providers are on stays. */
static void find_channel(const struct polycm_channel *chan, void *arg)
{
	struct search *search = arg;
	const struct polycm_id *id;

	if (search->chan || chan->private || polycm_channel_inherited(chan) ||
	    __atomic_load_n(&chan->ending, __ATOMIC_ACQUIRE))
		return;
	for (id = chan->ids; id && id->stranded && is_owned(id, search->owner); id = id->next)
		;
	if (!id)
		search->chan = (struct polycm_channel *)(uintptr_t)chan;
}

static struct polycm_id *next_id(const struct polycm_module *owner)
{
	struct search search = { .owner = owner };

	polycm_ids_walk(find_id, &search);
	return search.id;
}

static struct polycm_channel *next_channel(const struct polycm_module *owner)
{
	struct search search = { .owner = owner };

	polycm_channels_walk(find_channel, &search);
	return search.chan;
}

static void end_id(struct polycm_id *id)
{
	polycm_ev_ack_all(id);
	/* A thread that waits for these acks in rdma_destroy_id() ends it. */
	if (polycm_id_take(id))
		sched_yield();
	else
		polycm_id_destroy(id);
}

void polycm_left_end(const struct polycm_module *owner)
{
	struct polycm_channel *chan;
	struct polycm_id *id;

	while ((id = next_id(owner)))
		end_id(id);
	while ((chan = next_channel(owner)))
		if (!__atomic_exchange_n(&chan->ending, true, __ATOMIC_ACQ_REL))
			polycm_channel_destroy(chan);
}
