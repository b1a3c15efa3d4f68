/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rdma_event.c - the life of an event: posted by a provider, charged to its
 * id when the program takes it, freed by the ack; or dropped with its id.
 *
 * An event on a queue is owned by the channel (chan->lock), one that the
 * program holds is on the unacked list of the id that it is charged to.  That
 * list has its lock outside of the id, one of a few, so that an ack needs
 * neither the id's lock nor a channel that may be gone by then.
 */
#include "config.h"
#include "id_internal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <utlist.h>

#include "export.h"
#include "log.h"
#include "ret.h"

/* What no event can do without. */
#define MIN_EVENT	offsetof(struct polycm_event, ece)
#define NUM_ACK_LOCKS	16
#define NSEC_PER_SEC	UINT64_C(1000000000)

/* A wait for acks is told of after 1 s, 11 s, 111 s ... */
uint64_t polycm_ack_warning_ns = NSEC_PER_SEC;

static struct ack_lock {
	pthread_mutex_t mutex;
	pthread_cond_t acked;
} ack_locks[NUM_ACK_LOCKS];
static pthread_once_t ack_locks_once = PTHREAD_ONCE_INIT;

static size_t num_events;		/* atomic */

static void init_ack_locks(void)
{
	pthread_condattr_t attr;

	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	for (size_t i = 0; i < NUM_ACK_LOCKS; i++) {
		pthread_mutex_init(&ack_locks[i].mutex, NULL);
		pthread_cond_init(&ack_locks[i].acked, &attr);
	}
	pthread_condattr_destroy(&attr);
}

static struct ack_lock *ack_lock_of(const struct polycm_id *id)
{
	pthread_once(&ack_locks_once, init_ack_locks);
	return &ack_locks[((uintptr_t)id >> 9) % NUM_ACK_LOCKS];
}

/* What people wait for, so never the simulator's time. */
static uint64_t wall_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
	return (uint64_t)now.tv_sec * NSEC_PER_SEC + (uint64_t)now.tv_nsec;
}

static bool is_multicast(enum rdma_cm_event_type type)
{
	return type == RDMA_CM_EVENT_MULTICAST_JOIN || type == RDMA_CM_EVENT_MULTICAST_ERROR;
}

/* Copy the event; only a header that is the provider's is trusted to be in it. */
static struct polycm_ev *ev_alloc(const struct polycm_event *event, struct polycm_id *owner)
{
	const void *data = event->is_ud ? event->param.ud.private_data
					: event->param.conn.private_data;
	uint8_t len = event->is_ud ? event->param.ud.private_data_len
				   : event->param.conn.private_data_len;
	struct polycm_ev *ev;

	if (!data || is_multicast(event->type))
		len = 0;
	ev = calloc(1, sizeof(*ev) + len);
	if (!ev)
		return NULL;
	if (polycm_live_add(ev)) {
		free(ev);
		return NULL;
	}

	ev->owner = owner;
	ev->ece = event->ece;
	ev->is_ud = event->is_ud;
	ev->pub.id = &owner->pub;
	ev->pub.event = event->type;
	ev->pub.status = event->status;
	if (len)
		memcpy(ev->data, data, len);
	if (event->is_ud) {
		ev->pub.param.ud = event->param.ud;
		ev->pub.param.ud.private_data = len ? ev->data : NULL;
		ev->pub.param.ud.private_data_len = len;
	} else {
		ev->pub.param.conn = event->param.conn;
		ev->pub.param.conn.private_data = len ? ev->data : NULL;
		ev->pub.param.conn.private_data_len = len;
	}
	if (is_multicast(event->type)) {
		ev->is_ud = true;
		ev->group = event->group;
		ev->pub.param.ud.private_data = ev->group->context;
	}
	if (event->type == RDMA_CM_EVENT_CONNECT_REQUEST) {
		ev->child = event->child;
		ev->pub.id = &event->child->pub;
		ev->pub.listen_id = &owner->pub;
	}
	__atomic_add_fetch(&num_events, 1, __ATOMIC_RELAXED);
	return ev;
}

void polycm_ev_free(struct polycm_ev *ev)
{
	__atomic_sub_fetch(&num_events, 1, __ATOMIC_RELAXED);
	polycm_live_remove(ev);
	free(ev);
}

/* Under the channel's lock.  id is target, or the shadow that speaks for it. */
static int post_locked(struct polycm_channel *chan, struct polycm_id *target,
		       const struct polycm_id *id, struct polycm_ev *ev)
{
	if (target->closing || id->closing || !target->announced)
		return -ECANCELED;

	switch (ev->pub.event) {
	case RDMA_CM_EVENT_CONNECT_REQUEST:
		if (ev->child->listener != target || ev->child->announced)
			return -EINVAL;
		if (target->pending >= target->backlog)
			return -ENOMEM;
		target->pending++;
		ev->child->announced = true;
		break;
	case RDMA_CM_EVENT_ADDR_RESOLVED:
		target->place = POLYCM_PLACED;
		break;
	case RDMA_CM_EVENT_ADDR_ERROR:
		if (target->place == POLYCM_RESOLVING)
			target->place = POLYCM_ROAMING;
		break;
	default:
		break;
	}
	if (!polycm_wait_hand_over(ev))
		polycm_channel_push(chan, ev);
	return 0;
}

int polycm_post_event(struct polycm_id *id, const struct polycm_event *event)
{
	struct polycm_id *target = id->master ? id->master : id;
	struct polycm_event copy;
	struct polycm_channel *chan;
	struct polycm_ev *ev;
	int err = -ECANCELED;

	if (!event || event->size < MIN_EVENT)
		return -EINVAL;
	memset(&copy, 0, sizeof(copy));
	memcpy(&copy, event, event->size < sizeof(copy) ? event->size : sizeof(copy));
	if (copy.type < RDMA_CM_EVENT_ADDR_RESOLVED || copy.type > RDMA_CM_EVENT_TIMEWAIT_EXIT ||
	    (copy.type == RDMA_CM_EVENT_CONNECT_REQUEST && !copy.child) ||
	    (is_multicast(copy.type) && !copy.group))
		return -EINVAL;

	ev = ev_alloc(&copy, target);
	if (!ev)
		return -ENOMEM;

	chan = polycm_channel_lock(target);
	if (chan)
		err = post_locked(chan, target, id, ev);
	polycm_channel_unlock(chan);
	if (err)
		polycm_ev_free(ev);
	return err;
}

static void post_removal(struct polycm_channel *chan, struct polycm_id *id, void *device)
{
	const struct polycm_event removal = {
		.size = sizeof(removal),
		.type = RDMA_CM_EVENT_DEVICE_REMOVAL,
	};
	struct polycm_ev *ev;

	/* An id that the program has not accepted gets no events. */
	if (id->device != device || !id->accepted || polycm_module_is_kernel(id->device->module))
		return;
	ev = ev_alloc(&removal, id);
	if (ev && post_locked(chan, id, id, ev))
		polycm_ev_free(ev);
}

void polycm_ids_device_removed(struct polycm_device *device)
{
	polycm_channels_walk_ids(post_removal, device);
}

struct polycm_ev *polycm_ev_of(struct rdma_cm_event *pub)
{
	struct polycm_ev *ev = (struct polycm_ev *)(void *)pub;

	return polycm_live(ev) ? ev : NULL;
}

void polycm_ev_charge(struct polycm_ev *ev)
{
	struct ack_lock *lock = ack_lock_of(ev->owner);

	if (ev->child) {
		ev->owner->pending--;
		ev->child->listener = NULL;
	}
	ev->since_ns = wall_ns();

	pthread_mutex_lock(&lock->mutex);
	DL_APPEND(ev->owner->unacked, ev);
	if (ev->group)
		ev->group->unacked++;
	pthread_mutex_unlock(&lock->mutex);
}

void polycm_ev_ack(struct polycm_ev *ev)
{
	struct ack_lock *lock = ack_lock_of(ev->owner);

	pthread_mutex_lock(&lock->mutex);
	DL_DELETE(ev->owner->unacked, ev);
	if (ev->group)
		ev->group->unacked--;
	pthread_cond_broadcast(&lock->acked);
	pthread_mutex_unlock(&lock->mutex);
	polycm_ev_free(ev);
}

void polycm_ev_drop(struct polycm_id *id, const struct polycm_group *group)
{
	struct polycm_channel *chan = polycm_channel_lock(id);
	struct polycm_ev *ev, *next, *dropped = NULL;

	if (!chan)
		return;
	DL_FOREACH_SAFE(chan->events, ev, next) {
		if (ev->owner != id || (group && ev->group != group))
			continue;
		(void)polycm_channel_pop(chan, ev);
		DL_APPEND(dropped, ev);
		if (ev->child)
			id->pending--;
	}
	polycm_channel_unlock(chan);

	DL_FOREACH_SAFE(dropped, ev, next) {
		if (ev->child)
			polycm_id_end_child(ev->child);
		polycm_ev_free(ev);
	}
}

/* Under the ack lock. */
static void describe_unacked(const struct polycm_id *id, char *buf, size_t size)
{
	uint64_t now = wall_ns();
	const struct polycm_ev *ev;
	size_t len = 0;

	buf[0] = '\0';
	DL_FOREACH(id->unacked, ev) {
		uint64_t ms = (now - ev->since_ns) / 1000000;

		len += (size_t)snprintf(buf + len, size - len, "%s%s (%u.%u s ago)",
					len ? ", " : "", polycm_event_name(ev->pub.event),
					(unsigned int)(ms / 1000), (unsigned int)(ms % 1000 / 100));
		if (len >= size)
			break;
	}
}

static bool is_acked(const struct polycm_id *id, const struct polycm_group *group)
{
	return group ? !group->unacked : !id->unacked;
}

void polycm_ev_wait_acked(struct polycm_id *id, const struct polycm_group *group, const char *call)
{
	struct ack_lock *lock = ack_lock_of(id);
	uint64_t pause_ns = polycm_ack_warning_ns;
	struct timespec until;
	char text[400];

	pthread_mutex_lock(&lock->mutex);
	if (!is_acked(id, group))
		clock_gettime(CLOCK_MONOTONIC, &until);
	while (!is_acked(id, group)) {
		uint64_t ns = (uint64_t)until.tv_nsec + pause_ns;
		int err = 0;

		until.tv_sec += (time_t)(ns / NSEC_PER_SEC);
		until.tv_nsec = (long)(ns % NSEC_PER_SEC);
		while (!is_acked(id, group) && err != ETIMEDOUT)
			err = pthread_cond_timedwait(&lock->acked, &lock->mutex, &until);
		if (is_acked(id, group))
			break;

		describe_unacked(id, text, sizeof(text));
		pthread_mutex_unlock(&lock->mutex);
		polycm_log_id(POLYCM_LOG_WARN, id, "%s waits for rdma_ack_cm_event of: %s", call,
			      text);
		pthread_mutex_lock(&lock->mutex);
		pause_ns *= 10;
	}
	pthread_mutex_unlock(&lock->mutex);
}

size_t polycm_events_live(void)
{
	return __atomic_load_n(&num_events, __ATOMIC_RELAXED);
}

POLYCM_EXPORT int rdma_ack_cm_event(struct rdma_cm_event *event)
{
	struct polycm_ev *ev = polycm_ev_of(event);

	if (!ev) {
		polycm_why_clear();
		return polycm_ret("rdma_ack_cm_event", NULL,
				  polycm_fail(-EINVAL, "no event of rdma_get_cm_event"));
	}
	polycm_ev_ack(ev);
	return 0;
}

POLYCM_EXPORT const char *rdma_event_str(enum rdma_cm_event_type event)
{
	static const char *const names[] = {
		[RDMA_CM_EVENT_ADDR_RESOLVED] = "RDMA_CM_EVENT_ADDR_RESOLVED",
		[RDMA_CM_EVENT_ADDR_ERROR] = "RDMA_CM_EVENT_ADDR_ERROR",
		[RDMA_CM_EVENT_ROUTE_RESOLVED] = "RDMA_CM_EVENT_ROUTE_RESOLVED",
		[RDMA_CM_EVENT_ROUTE_ERROR] = "RDMA_CM_EVENT_ROUTE_ERROR",
		[RDMA_CM_EVENT_CONNECT_REQUEST] = "RDMA_CM_EVENT_CONNECT_REQUEST",
		[RDMA_CM_EVENT_CONNECT_RESPONSE] = "RDMA_CM_EVENT_CONNECT_RESPONSE",
		[RDMA_CM_EVENT_CONNECT_ERROR] = "RDMA_CM_EVENT_CONNECT_ERROR",
		[RDMA_CM_EVENT_UNREACHABLE] = "RDMA_CM_EVENT_UNREACHABLE",
		[RDMA_CM_EVENT_REJECTED] = "RDMA_CM_EVENT_REJECTED",
		[RDMA_CM_EVENT_ESTABLISHED] = "RDMA_CM_EVENT_ESTABLISHED",
		[RDMA_CM_EVENT_DISCONNECTED] = "RDMA_CM_EVENT_DISCONNECTED",
		[RDMA_CM_EVENT_DEVICE_REMOVAL] = "RDMA_CM_EVENT_DEVICE_REMOVAL",
		[RDMA_CM_EVENT_MULTICAST_JOIN] = "RDMA_CM_EVENT_MULTICAST_JOIN",
		[RDMA_CM_EVENT_MULTICAST_ERROR] = "RDMA_CM_EVENT_MULTICAST_ERROR",
		[RDMA_CM_EVENT_ADDR_CHANGE] = "RDMA_CM_EVENT_ADDR_CHANGE",
		[RDMA_CM_EVENT_TIMEWAIT_EXIT] = "RDMA_CM_EVENT_TIMEWAIT_EXIT",
	};

	if ((unsigned int)event >= sizeof(names) / sizeof(names[0]))
		return "UNKNOWN EVENT";
	return names[event];
}

const char *polycm_event_name(enum rdma_cm_event_type event)
{
	return rdma_event_str(event) + strlen("RDMA_CM_EVENT_");
}
