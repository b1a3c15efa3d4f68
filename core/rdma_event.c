/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rdma_event.c - the life of an event: posted by a provider, charged to its
 * id when the program takes it, freed by the ack; or dropped with its id.
 *
 * An event on a queue is owned by the channel (chan->lock), one that the
 * program holds is counted by the id that it is charged to.  Who waits for
 * acks waits outside of the id, in one of a few places, so that an ack needs
 * neither the id's lock nor a channel that may be gone by then; it says that it
 * waits and looks at the count, an ack counts and looks whether somebody waits.
 */
#include "config.h"
#include "id_internal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <utlist.h>

#include "clock.h"
#include "export.h"
#include "layers.h"
#include "log.h"
#include "ret.h"
#include "wait/libc.h"

/* What no event can do without. */
#define MIN_EVENT	offsetof(struct polycm_event, ece)
#define END_OF(member) (offsetof(struct polycm_event, member) + sizeof(void *))
#define END_OF_CHILD	END_OF(child)
#define END_OF_GROUP	END_OF(group)
#define NUM_ACK_WAITS	16
#define NSEC_PER_SEC	UINT64_C(1000000000)

/* A wait for acks is told of after 1 s, 11 s, 111 s ... */
uint64_t polycm_ack_warning_ns = NSEC_PER_SEC;

static struct ack_wait {
	pthread_mutex_t mutex;
	pthread_cond_t acked;
	unsigned int waiters;		/* on acked; atomic */
} ack_waits[NUM_ACK_WAITS] = {
	[0 ... NUM_ACK_WAITS - 1] = { .mutex = PTHREAD_MUTEX_INITIALIZER },
};
static pthread_once_t acked_once = PTHREAD_ONCE_INIT;

static size_t num_events;		/* atomic */
static uint64_t num_charged;		/* ever; atomic */

static void init_acked(void)
{
	pthread_condattr_t attr;

	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	for (size_t i = 0; i < NUM_ACK_WAITS; i++)
		pthread_cond_init(&ack_waits[i].acked, &attr);
	pthread_condattr_destroy(&attr);
}

static struct ack_wait *ack_wait_of(const struct polycm_id *id)
{
	return &ack_waits[((uintptr_t)id >> 9) % NUM_ACK_WAITS];
}

/* What people wait for, so never the simulator's time. */
static uint64_t wall_ns(void)
{
	return polycm_real_ns(CLOCK_MONOTONIC_COARSE);
}

static bool is_multicast(enum rdma_cm_event_type type)
{
	return type == RDMA_CM_EVENT_MULTICAST_JOIN || type == RDMA_CM_EVENT_MULTICAST_ERROR;
}

/*
 * Blocks with room for whatever data, which a program with one thread gives
 * back and takes again without a look at the heap.  They stay in the set of
 * live events, as ones that nobody was given.
 */
static struct polycm_ev *spare;		/* linked by next */
static unsigned int num_spare;

static struct polycm_ev *get_block(uint8_t len)
{
	bool keepable = polycm_may_keep(0);
	struct polycm_ev *ev = spare;

	if (keepable && ev) {
		spare = ev->next;
		num_spare--;
		return ev;
	}
	ev = malloc(sizeof(*ev) + (keepable ? UINT8_MAX : len));
	if (ev) {
		ev->keepable = keepable;
		ev->listed = false;
	}
	return ev;
}

static void put_block(struct polycm_ev *ev)
{
	if (!ev->keepable || !polycm_may_keep(num_spare)) {
		if (ev->listed)
			(void)polycm_live_remove(&polycm_live_events, ev);
		free(ev);
		return;
	}
	ev->charge = 0;
	ev->why = NULL;
	ev->next = spare;
	spare = ev;
	num_spare++;
}

static void clear(struct polycm_ev *ev)
{
	ev->pub = (struct rdma_cm_event){ .id = NULL };
	ev->prev = ev->next = NULL;
	ev->child = NULL;
	ev->group = NULL;
	ev->held = ev->due = ev->armed = false;
	ev->timer = NULL;
	ev->charge = ev->since_ns = 0;
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
	ev = get_block(len);
	if (!ev)
		return NULL;
	clear(ev);
	ev->owner = owner;
	ev->ece = event->ece;
	ev->why = event->why;
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
	if (!ev->listed && polycm_live_add(&polycm_live_events, ev)) {
		put_block(ev);
		return NULL;
	}
	ev->listed = true;
	(void)polycm_count_up(&num_events);
	return ev;
}

void polycm_ev_free(struct polycm_ev *ev)
{
	if (__builtin_expect(ev->timer != NULL, 0))
		polycm_timer_cancel(ev->timer);
	(void)polycm_count_down(&num_events);
	put_block(ev);
}

/* Under the channel's lock.  id is target, or the shadow that speaks for it. */
static int post_locked(struct polycm_channel *chan, struct polycm_id *target,
		       const struct polycm_id *id, struct polycm_ev *ev, uint64_t hold_ns)
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
	if (polycm_has_layers() && polycm_hold_locked(target, ev, hold_ns))
		return 0;
	if (!polycm_wait_hand_over(ev))
		polycm_channel_push(chan, ev);
	return 0;
}

int polycm_event_check(const struct polycm_event *event)
{
	if (!event || event->size < MIN_EVENT || event->type < RDMA_CM_EVENT_ADDR_RESOLVED ||
	    event->type > RDMA_CM_EVENT_TIMEWAIT_EXIT)
		return -EINVAL;
	if (event->type == RDMA_CM_EVENT_CONNECT_REQUEST)
		return event->size >= END_OF_CHILD && event->child ? 0 : -EINVAL;
	if (is_multicast(event->type))
		return event->size >= END_OF_GROUP && event->group ? 0 : -EINVAL;
	return 0;
}

int polycm_post(struct polycm_id *id, const struct polycm_event *event, uint64_t hold_ns)
{
	struct polycm_id *target = id->master ? id->master : id;
	struct polycm_event copy;
	struct polycm_channel *chan;
	struct polycm_ev *ev;
	int err = polycm_event_check(event);

	if (err)
		return err;
	if (event->size < sizeof(copy)) {
		memset(&copy, 0, sizeof(copy));
		memcpy(&copy, event, event->size);
		event = &copy;
	}
	ev = ev_alloc(event, target);
	if (!ev)
		return -ENOMEM;

	err = -ECANCELED;
	chan = polycm_channel_lock(target);
	if (chan)
		err = post_locked(chan, target, id, ev, hold_ns);
	polycm_channel_unlock(chan);
	if (err)
		polycm_ev_free(ev);
	else if (__builtin_expect(hold_ns > 0, 0))
		polycm_hold_start(ev, hold_ns);
	return err;
}

int polycm_post_event(struct polycm_id *id, const struct polycm_event *event)
{
	return polycm_has_layers() ? polycm_layers_post(id, event) : polycm_post(id, event, 0);
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
	if (ev && post_locked(chan, id, id, ev, 0))
		polycm_ev_free(ev);
}

void polycm_ids_device_removed(struct polycm_device *device)
{
	polycm_channels_walk_ids(post_removal, device);
}

bool polycm_ev_waits(struct polycm_id *id)
{
	struct polycm_channel *chan = polycm_channel_lock(id);
	const struct polycm_ev *ev;
	bool waits = false;

	if (chan)
		DL_FOREACH(chan->events, ev)
			waits |= ev->owner == id;
	waits |= id->held != NULL;
	polycm_channel_unlock(chan);
	return waits;
}

void polycm_ev_charge(struct polycm_ev *ev)
{
	if (ev->child) {
		ev->owner->pending--;
		ev->child->listener = NULL;
	}
	ev->since_ns = wall_ns();
	__atomic_store_n(&ev->charge, polycm_count_up(&num_charged), __ATOMIC_RELEASE);
	(void)polycm_count_up(&ev->owner->unacked);
	if (ev->group)
		__atomic_add_fetch(&ev->group->unacked, 1, __ATOMIC_RELAXED);
}

/* The id, and the group before it, may be gone as soon as they have nothing that is not acked. */
static void uncharge(struct polycm_ev *ev)
{
	struct ack_wait *wait = ack_wait_of(ev->owner);
	bool last = false;

	if (ev->group)
		last = !__atomic_sub_fetch(&ev->group->unacked, 1, __ATOMIC_SEQ_CST);
	last |= !polycm_count_down(&ev->owner->unacked);
	if (!last || !__atomic_load_n(&wait->waiters, __ATOMIC_SEQ_CST))
		return;
	pthread_mutex_lock(&wait->mutex);
	pthread_cond_broadcast(&wait->acked);
	pthread_mutex_unlock(&wait->mutex);
}

void polycm_ev_ack(struct polycm_ev *ev)
{
	uncharge(ev);
	polycm_ev_free(ev);
}

static bool is_charged(const void *object)
{
	const struct polycm_ev *ev = object;

	return __atomic_load_n(&ev->charge, __ATOMIC_ACQUIRE);
}

int polycm_ev_ack_pub(struct rdma_cm_event *pub)
{
	struct polycm_ev *ev = (struct polycm_ev *)(void *)pub;

	/* A stale pointer may be that of an event which still waits in a queue, or of a spare block. */
	if (polycm_alone()) {
		if (!polycm_live(&polycm_live_events, ev) || !is_charged(ev))
			return -EINVAL;
	} else {
		/* Of several threads that ack it only one may follow the pointer. */
		if (!polycm_live_remove_if(&polycm_live_events, ev, is_charged))
			return -EINVAL;
		ev->listed = false;
	}
	uncharge(ev);
	polycm_ev_free(ev);
	return 0;
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
	if (polycm_has_layers())
		polycm_hold_drop_locked(id, group, &dropped);
	polycm_channel_unlock(chan);

	DL_FOREACH_SAFE(dropped, ev, next) {
		if (ev->child)
			polycm_id_end_child(ev->child);
		polycm_ev_free(ev);
	}
}

/* Those of an id that the program holds, the oldest first. */
struct held {
	const struct polycm_id *id;
	unsigned int num;
	struct held_event {
		enum rdma_cm_event_type type;
		uint64_t charge, since_ns;
	} events[8];
};

static void find_held(const void *object, void *arg)
{
	const struct polycm_ev *ev = object;
	uint64_t charge = __atomic_load_n(&ev->charge, __ATOMIC_ACQUIRE);
	const unsigned int max = sizeof(((struct held *)0)->events) / sizeof(struct held_event);
	struct held *held = arg;
	unsigned int i;

	if (ev->owner != held->id || !charge)
		return;
	for (i = 0; i < held->num && held->events[i].charge < charge; i++)
		;
	if (i == max)
		return;
	if (held->num < max)
		held->num++;
	memmove(&held->events[i + 1], &held->events[i],
		(held->num - i - 1) * sizeof(held->events[0]));
	/* Who retrieves it may just be making another one of it. */
	held->events[i] = (struct held_event){
		__atomic_load_n(&ev->pub.event, __ATOMIC_RELAXED), charge, ev->since_ns,
	};
}

static void describe_unacked(const struct polycm_id *id, char *buf, size_t size)
{
	struct held held = { .id = id };
	uint64_t now = wall_ns();
	size_t len = 0;

	polycm_live_walk(&polycm_live_events, find_held, &held);
	buf[0] = '\0';
	for (unsigned int i = 0; i < held.num && len < size; i++) {
		uint64_t ms = (now - held.events[i].since_ns) / 1000000;

		len += (size_t)snprintf(buf + len, size - len, "%s%s (%u.%u s ago)",
					len ? ", " : "", polycm_event_name(held.events[i].type),
					(unsigned int)(ms / 1000), (unsigned int)(ms % 1000 / 100));
	}
}

static bool is_acked(const struct polycm_id *id, const struct polycm_group *group)
{
	return !__atomic_load_n(group ? &group->unacked : &id->unacked, __ATOMIC_SEQ_CST);
}

static void end_wait(void *arg)
{
	struct ack_wait *wait = arg;

	__atomic_sub_fetch(&wait->waiters, 1, __ATOMIC_SEQ_CST);
	pthread_mutex_unlock(&wait->mutex);
}

/* Until it is acked, or the time has come: false.  A place to be cancelled in. */
static bool wait_until(struct ack_wait *wait, const struct polycm_id *id,
		       const struct polycm_group *group, uint64_t until_ns)
{
	bool acked;
	int err = 0;

	pthread_once(&acked_once, init_acked);
	pthread_mutex_lock(&wait->mutex);
	__atomic_add_fetch(&wait->waiters, 1, __ATOMIC_SEQ_CST);
	pthread_cleanup_push(end_wait, wait);
	while (!(acked = is_acked(id, group)) && err != ETIMEDOUT)
		err = polycm_cond_wait(&wait->acked, &wait->mutex, until_ns);
	pthread_cleanup_pop(1);
	return acked;
}

/* The program mostly hangs then, so this is told at every level. */
static void tell_wait(struct polycm_id *id, const struct polycm_group *group, const char *call)
{
	unsigned int unacked = __atomic_load_n(group ? &group->unacked : &id->unacked, __ATOMIC_RELAXED);
	char text[400];

	describe_unacked(id, text, sizeof(text));
	polycm_log_id(POLYCM_LOG_ERROR, id, "%s waits %sfor rdma_ack_cm_event of %u event%s: %s", call,
		      polycm_alone() ? "for ever, since there is no other thread, " : "", unacked,
		      unacked == 1 ? "" : "s", text);
}

void polycm_ev_wait_acked(struct polycm_id *id, const struct polycm_group *group, const char *call)
{
	uint64_t pause_ns = polycm_ack_warning_ns, until_ns;

	if (is_acked(id, group))
		return;
	if (polycm_alone())
		tell_wait(id, group, call);
	until_ns = polycm_real_ns(CLOCK_MONOTONIC);
	for (;; pause_ns *= 10) {
		until_ns += pause_ns;
		if (wait_until(ack_wait_of(id), id, group, until_ns))
			return;
		tell_wait(id, group, call);
	}
}

size_t polycm_events_live(void)
{
	return __atomic_load_n(&num_events, __ATOMIC_RELAXED);
}

POLYCM_EXPORT int rdma_ack_cm_event(struct rdma_cm_event *event)
{
	int err = polycm_ev_ack_pub(event);

	if (!err)
		return 0;
	polycm_why_clear();
	return polycm_ret("rdma_ack_cm_event", NULL,
			  polycm_fail(err, "no event of rdma_get_cm_event"));
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
