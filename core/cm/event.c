/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cm/event.c - events on their way to the program: made of what a provider
 * posts, put on the queue of their id's channel, which owns them there
 * (chan->channel_lock), or dropped with their id.  What the program holds: cm/ack.c.
 */
#include "config.h"
#include "id_internal.h"

#include <errno.h>
#include <string.h>
#include <utlist.h>

#include "core/base/abi.h"
#include "core/base/clock.h"
#include "core/base/export.h"
#include "core/plugin/layers.h"
#include "core/plugin/op.h"

#define LAST_EVENT	RDMA_CM_EVENT_TIMEWAIT_EXIT

static const struct polycm_abi_struct event_struct =
	POLYCM_ABI_STRUCT("the event", struct polycm_event, why);

static size_t num_events;		/* atomic */
static bool newer_events;		/* the program has events of librdmacm 60; atomic */

static bool is_multicast(enum rdma_cm_event_type type)
{
	return type == RDMA_CM_EVENT_MULTICAST_JOIN || type == RDMA_CM_EVENT_MULTICAST_ERROR;
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
static inline __attribute__((always_inline)) struct polycm_ev *
ev_alloc(const struct polycm_event *event, struct polycm_id *owner)
{
	const void *data = event->is_ud ? event->param.ud.private_data
					: event->param.conn.private_data;
	uint8_t len = event->is_ud ? event->param.ud.private_data_len
				   : event->param.conn.private_data_len;
	struct polycm_ev *ev;

	if (!data || is_multicast(event->type))
		len = 0;
	ev = polycm_ev_block_get(len);
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
	(void)polycm_count_up(&num_events);
	return ev;
}

void polycm_ev_free(struct polycm_ev *ev)
{
	if (__builtin_expect(ev->timer != NULL, 0))
		polycm_timer_cancel(ev->timer);
	(void)polycm_count_down(&num_events);
	polycm_ev_block_put(ev);
}

enum polycm_question polycm_event_question(enum rdma_cm_event_type type)
{
	switch (type) {
	case RDMA_CM_EVENT_ADDR_RESOLVED:
	case RDMA_CM_EVENT_ADDR_ERROR:
		return POLYCM_ASKED_ADDR;
	case RDMA_CM_EVENT_ROUTE_RESOLVED:
	case RDMA_CM_EVENT_ROUTE_ERROR:
		return POLYCM_ASKED_ROUTE;
	default:
		return POLYCM_NO_QUESTION;
	}
}

/* Under the channel's lock.  id is target, or the shadow that speaks for it. */
static inline __attribute__((always_inline)) int
post_locked(struct polycm_channel *chan, struct polycm_id *target, const struct polycm_id *id,
	    struct polycm_ev *ev, uint64_t hold_ns, enum polycm_poster poster)
{
	enum polycm_question answers;

	if (target->closing || id->closing || !target->announced)
		return -ECANCELED;
	if ((target->asked.open || target->asked.given_up) && poster == POLYCM_BY_PROVIDER) {
		answers = polycm_event_question(ev->pub.event);
		if (answers && !polycm_answer_locked(target, answers))
			return -ETIMEDOUT;
	}

	switch (ev->pub.event) {
	case RDMA_CM_EVENT_CONNECT_REQUEST:
		if (ev->child->listener != target)
			return -EINVAL;
		if (target->pending >= target->backlog)
			return -ENOMEM;
		/* From now on it is the core's.  Of two threads that post it one does. */
		if (!polycm_live_remove(&polycm_live_children, ev->child))
			return -EINVAL;
		target->pending++;
		ev->child->announced = true;
		break;
	case RDMA_CM_EVENT_ADDR_RESOLVED:
		target->place = POLYCM_PLACED;
		break;
	case RDMA_CM_EVENT_ADDR_ERROR:
		if (target->place == POLYCM_RESOLVING)
			target->place = POLYCM_UNPLACED;
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

/* Of another version; why may be NULL. */
static __attribute__((cold)) bool size_is_bad(const struct polycm_module *module, uint32_t size,
					      char *why, size_t why_size)
{
	uint32_t minor = module ? module->desc.abi_minor : POLYCM_ABI_MINOR;

	return polycm_abi_check(&event_struct, size, minor, why, why_size);
}

static inline __attribute__((always_inline)) bool is_good(const struct polycm_module *module,
							  const struct polycm_event *event)
{
	if (!event || (event->size != sizeof(*event) && size_is_bad(module, event->size, NULL, 0)) ||
	    (unsigned int)event->type > LAST_EVENT)
		return false;
	if (event->type == RDMA_CM_EVENT_CONNECT_REQUEST)
		return event->child && polycm_live(&polycm_live_children, event->child);
	return !is_multicast(event->type) || event->group;
}

static __attribute__((cold, noinline)) void tell_bad(const struct polycm_module *module,
						     const struct polycm_event *event)
{
	static const char call[] = "post_event";
	char why[200];

	if (!event)
		polycm_misuse(module, call, "no event");
	else if (size_is_bad(module, event->size, why, sizeof(why)))
		polycm_misuse(module, call, "%s", why);
	else if (event->type == RDMA_CM_EVENT_CONNECT_REQUEST)
		polycm_misuse(module, call, "the child of a CONNECT_REQUEST must be one of "
			      "child_create() that was neither posted nor destroyed");
	else if (is_multicast(event->type))
		polycm_misuse(module, call, "a multicast event without the group of the join");
	else if ((int)event->type > LAST_EVENT && (int)event->type <= POLYCM_EVENT_INTERNAL)
		polycm_misuse(module, call, "event type %d answers a call that no operation stands "
			      "for: TIMEWAIT_EXIT is the last type there is", (int)event->type);
	else
		polycm_misuse(module, call, "%d is no type of event", (int)event->type);
}

inline __attribute__((always_inline)) const struct polycm_event *
polycm_event_checked(const struct polycm_module *module, const struct polycm_event *event,
		     struct polycm_event *copy)
{
	if (__builtin_expect(!is_good(module, event), 0)) {
		tell_bad(module, event);
		return NULL;
	}
	if (__builtin_expect(event->size == sizeof(*copy), 1))
		return event;
	polycm_abi_copy(copy, sizeof(*copy), event);
	return copy;
}

static __attribute__((cold, noinline)) void not_posted(const struct polycm_id *id,
						       struct polycm_ev *ev, int err)
{
	if (err == -EINVAL)
		polycm_misuse(id->module, "post_event", "the child of a CONNECT_REQUEST is another "
			      "listener's");
	if (err == -ETIMEDOUT)
		polycm_misuse(id->module, "post_event", "%s comes after the program was told that "
			      "there was no answer in time: it is dropped",
			      polycm_event_name(ev->pub.event));
	polycm_ev_free(ev);
}

int polycm_post(struct polycm_id *id, const struct polycm_event *event, uint64_t hold_ns,
		enum polycm_poster poster)
{
	struct polycm_id *target = id->master ? id->master : id;
	struct polycm_event copy;
	struct polycm_channel *chan;
	struct polycm_ev *ev;
	int err = -ECANCELED;

	event = polycm_event_checked(id->module, event, &copy);
	if (!event)
		return -EINVAL;
	ev = ev_alloc(event, target);
	if (!ev)
		return -ENOMEM;

	chan = polycm_channel_lock(target);
	if (chan)
		err = post_locked(chan, target, id, ev, hold_ns, poster);
	polycm_channel_unlock(chan);
	if (__builtin_expect(err, 0))
		not_posted(id, ev, err);
	else if (__builtin_expect(hold_ns > 0, 0))
		polycm_hold_start(ev, hold_ns);
	return err;
}

int polycm_post_event(struct polycm_id *id, const struct polycm_event *event)
{
	return polycm_has_layers() ? polycm_layers_post(id, event)
				   : polycm_post(id, event, 0, POLYCM_BY_PROVIDER);
}

int polycm_post_own(struct polycm_id *id, enum rdma_cm_event_type type, int status, uint64_t arg)
{
	const struct polycm_event event = { .size = sizeof(event), .type = type, .status = status };
	struct polycm_channel *chan;
	struct polycm_ev *ev;
	int err = -EINVAL;

	ev = ev_alloc(&event, id);
	if (!ev)
		return -ENOMEM;
	memcpy(&ev->pub.param, &arg, sizeof(arg));
	chan = polycm_channel_lock_held(id);
	if (chan->native)
		(void)polycm_fail(err, "Linux 6.12 has no command for it");
	else
		err = post_locked(chan, id, id, ev, 0, POLYCM_BY_CORE);
	polycm_channel_unlock(chan);
	if (err)
		polycm_ev_free(ev);
	else
		__atomic_store_n(&newer_events, true, __ATOMIC_RELAXED);
	return err;
}

static void post_removal(struct polycm_channel *chan, struct polycm_id *id, void *device)
{
	const struct polycm_event removal = {
		.size = sizeof(removal),
		.type = RDMA_CM_EVENT_DEVICE_REMOVAL,
	};
	struct polycm_ev *ev;

	/* An id that the program has not accepted gets no events, nor does one without a channel. */
	if (!chan || id->device != device || !id->accepted ||
	    polycm_module_is_kernel(id->device->module))
		return;
	ev = ev_alloc(&removal, id);
	if (ev && post_locked(chan, id, id, ev, 0, POLYCM_BY_CORE))
		polycm_ev_free(ev);
}

static void tell_ids(struct polycm_device *device)
{
	polycm_ids_walk(post_removal, device);
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

size_t polycm_events_live(void)
{
	return __atomic_load_n(&num_events, __ATOMIC_RELAXED);
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
		[POLYCM_EVENT_ADDRINFO_RESOLVED] = "RDMA_CM_EVENT_ADDRINFO_RESOLVED",
		[POLYCM_EVENT_ADDRINFO_ERROR] = "RDMA_CM_EVENT_ADDRINFO_ERROR",
	};

	unsigned int known = sizeof(names) / sizeof(names[0]);

	/* librdmacm before 60 does not know the newer events, and its programs never cause one. */
	if (!__atomic_load_n(&newer_events, __ATOMIC_RELAXED))
		known = POLYCM_EVENT_ADDRINFO_RESOLVED;
	return (unsigned int)event < known ? names[event] : "UNKNOWN EVENT";
}

const char *polycm_event_name(enum rdma_cm_event_type event)
{
	return (int)event == POLYCM_EVENT_USER ? "USER" :	/* librdmacm has no name for it */
	       rdma_event_str(event) + strlen("RDMA_CM_EVENT_");
}

__attribute__((constructor)) static void hear_of_removals(void)
{
	polycm_device_removed = tell_ids;
}
