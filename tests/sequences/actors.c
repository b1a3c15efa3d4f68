/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * actors.c - owns the ids of a sequence and what has become of them, as their
 * events tell.  Each has a channel of its own, so that the order of events
 * does not depend on whose thread in the kernel is quicker.
 */
#include <poll.h>

#include "sequence.h"

/* What is on its way at about the same time is there then. */
enum { TOGETHER_MS = 60 };

struct actor actors[MAX_ACTORS];

void actors_begin(void)
{
	unsigned int i;

	for (i = 0; i < MAX_ACTORS; i++) {
		snprintf(actors[i].name, sizeof(actors[i].name), "%c", (int)('a' + i));
		actors[i].events = make_channel(actors[i].name);
	}
}

struct actor *actor_of(const struct rdma_cm_id *id)
{
	unsigned int i;

	for (i = 0; i < MAX_ACTORS; i++) {
		if (actors[i].id && (actors[i].id == id || actors[i].peer == id))
			return &actors[i];
	}
	return NULL;
}

/* A request is the only one on its way: of him who connects. */
static void request_came(struct actor *listener, const struct rdma_cm_event *event)
{
	unsigned int i;

	for (i = 0; i < MAX_ACTORS; i++) {
		if (actors[i].id && actors[i].state == ASKED && !actors[i].peer) {
			actors[i].peer = event->id;
			actors[i].at = listener;
			return;
		}
	}
}

static void follow(struct actor *listener, const struct rdma_cm_event *event)
{
	struct actor *actor = actor_of(event->id);

	if (event->event == RDMA_CM_EVENT_CONNECT_REQUEST) {
		request_came(listener, event);
		return;
	}
	if (!actor || event->id != actor->id)
		return;
	switch (event->event) {
	case RDMA_CM_EVENT_ADDR_RESOLVED:
		actor->state = FOUND;
		break;
	case RDMA_CM_EVENT_ROUTE_RESOLVED:
		actor->state = ROUTED;
		break;
	case RDMA_CM_EVENT_ESTABLISHED:
		actor->state = CONNECTED;
		break;
	case RDMA_CM_EVENT_ADDR_ERROR:
	case RDMA_CM_EVENT_ROUTE_ERROR:
		break;
	default:
		actor->state = OVER;
	}
}

static bool readable(const struct actor *actor)
{
	struct pollfd poll_fd = { .fd = actor->events->fd, .events = POLLIN };

	return poll(&poll_fd, 1, 0) > 0;
}

static bool any_readable(void)
{
	unsigned int i;

	for (i = 0; i < MAX_ACTORS; i++) {
		if (readable(&actors[i]))
			return true;
	}
	return false;
}

/* Something is there within so long. */
static bool comes_within(unsigned int ms)
{
	unsigned int step = virtual_time() ? 1 : 10;

	for (; !any_readable(); ms -= step) {
		if (ms < step)
			return false;
		pass_ms(step);
	}
	return true;
}

/* Those that are there, one of each channel, in the order of the channels. */
static void take_round(void)
{
	struct rdma_cm_event *event;
	unsigned int i;

	pass_ms(TOGETHER_MS);
	for (i = 0; i < MAX_ACTORS; i++) {
		event = readable(&actors[i]) ? next_within(actors[i].events, 0) : NULL;
		if (event)
			follow(&actors[i], event);
	}
}

void take_until_quiet(unsigned int ms)
{
	while (comes_within(ms))
		take_round();
}

void take_first(void)
{
	if (!comes_within(patience_ms()))
		say("nothing comes");
	else
		take_round();
}

void take_one(struct rdma_event_channel *events)
{
	struct rdma_cm_event *event = next(events);
	unsigned int i;

	for (i = 0; event && i < MAX_ACTORS; i++) {
		if (actors[i].events == events)
			follow(&actors[i], event);
	}
}
