/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cm/retrieve.c - rdma_get_cm_event(): the thread that retrieves an event applies
 * it to its id, and no thread does so earlier: it fills in verbs and paths, moves the
 * QP, sends the RTU, completes the new id of a request.
 *
 * The event is already charged to its id (design.md, section 10), so the id is not
 * freed.  But it may be closing; then its provider must not be called.
 */
#include "config.h"
#include "id_internal.h"

#include <errno.h>
#include <string.h>

#include "core/base/export.h"
#include "core/base/log.h"
#include "core/plugin/op.h"
#include "polycm/polycm.h"
#include "ret.h"
#include "status.h"

/* What librdmacm says in events that it makes an error of itself. */
#define LIBRARY_STATUS (-1)

static void turn(struct polycm_ev *ev, enum rdma_cm_event_type type, int err)
{
	polycm_log_id(POLYCM_LOG_DEBUG, ev->owner, "%s becomes %s: %s" POLYCM_WHY_FORMAT,
		      polycm_event_name(ev->pub.event), polycm_event_name(type), strerror(-err),
		      POLYCM_WHY);
	polycm_ev_set_type(ev, type);
	ev->pub.status = LIBRARY_STATUS;
	ev->why = NULL;
}

static void resolved(struct polycm_id *id, struct polycm_ev *ev)
{
	bool route = ev->pub.event == RDMA_CM_EVENT_ROUTE_RESOLVED;
	int err;

	if (id->closing)
		return;
	err = polycm_id_update(id, route);
	if (!err && !id->device)
		err = -ENODEV;
	if (err)
		turn(ev, route ? RDMA_CM_EVENT_ROUTE_ERROR : RDMA_CM_EVENT_ADDR_ERROR, err);
}

/* The REP is here.  Without a QP of ours the program answers it, with rdma_establish(). */
static void connect_response(struct polycm_id *id, struct polycm_ev *ev)
{
	int err = -ECANCELED;

	id->remote_ece = ev->ece;
	if (!id->pub.qp)
		return;

	if (!id->closing) {
		err = polycm_ece_response(id);
		if (!err)
			err = polycm_qp_connect(id, RDMA_MAX_RESP_RES, RDMA_MAX_INIT_DEPTH,
						&ev->pub.param.conn);
		if (!err)
			err = POLYCM_OP(id->module, establish, id->priv);
	}
	if (!err) {
		polycm_ev_set_type(ev, RDMA_CM_EVENT_ESTABLISHED);
		return;
	}
	(void)polycm_qp_error(id);
	__atomic_store_n(&id->connect_error, true, __ATOMIC_RELAXED);
	turn(ev, RDMA_CM_EVENT_CONNECT_ERROR, err);
}

static void rejected(struct polycm_id *id, struct polycm_ev *ev)
{
	(void)ev;
	(void)polycm_qp_error(id);
}

/* What the id of a request takes over from its listener. */
static bool inherit(struct polycm_id *listener, struct polycm_id *child)
{
	bool sync;

	polycm_id_lock(listener);
	child->pub.context = listener->pub.context;
	child->pub.ps = listener->pub.ps;
	child->pub.qp_type = listener->pub.qp_type;
	sync = listener->rsocket.sync;
	polycm_id_unlock(listener);
	return sync;
}

/* Under the child's lock, since another thread may be destroying the channel. */
static int complete_request(struct polycm_id *child, bool sync)
{
	int err;

	if (child->closing)
		return -ECANCELED;
	err = polycm_id_update(child, true);
	if (!err)
		err = sync ? polycm_id_migrate(child, NULL) : polycm_id_follow(child);
	return err;
}

/*
 * The id of a request becomes the program's.  Until then it is known to this
 * thread, to its provider and to who ends the channel.  false: it could not
 * be completed.
 */
static bool connect_request(struct polycm_id *listener, struct polycm_ev *ev)
{
	struct polycm_id *child = ev->child;
	bool sync = inherit(listener, child);
	int err;

	child->remote_ece = ev->ece;
	if (!ev->is_ud) {
		child->responder_resources = ev->pub.param.conn.responder_resources;
		child->initiator_depth = ev->pub.param.conn.initiator_depth;
	}

	polycm_id_lock(child);
	err = complete_request(child, sync);
	if (!err) {
		polycm_live_add_reserved(&polycm_live_objects, child);
		child->live_reserved = false;
	}
	polycm_id_unlock(child);
	if (err) {
		polycm_log_id(POLYCM_LOG_WARN, child, "a connection request is refused: %s"
			      POLYCM_WHY_FORMAT, strerror(-err), POLYCM_WHY);
		polycm_id_end_child(child);
		return false;
	}
	return true;
}

typedef void (*change_t)(struct polycm_id *id, struct polycm_ev *ev);

/* What it does to its id, under the id's lock, which another thread may have in a call; or NULL. */
static change_t change_of(const struct polycm_ev *ev)
{
	switch (ev->pub.event) {
	case RDMA_CM_EVENT_ADDR_RESOLVED:
		return resolved;
	case RDMA_CM_EVENT_ROUTE_RESOLVED:
		/* On TCP there are no path records to ask for. */
		return __atomic_load_n(&ev->owner->pathless, __ATOMIC_RELAXED) ? NULL : resolved;
	case RDMA_CM_EVENT_CONNECT_RESPONSE:
		return connect_response;
	case RDMA_CM_EVENT_REJECTED:
		return rejected;
	case RDMA_CM_EVENT_MULTICAST_JOIN:
		return polycm_group_joined;
	default:
		return NULL;
	}
}

/* Does it report the end of a connection whose failure the program knows already? */
static bool has_ended(const struct polycm_ev *ev)
{
	return (ev->pub.event == RDMA_CM_EVENT_REJECTED ||
		ev->pub.event == RDMA_CM_EVENT_DISCONNECTED) &&
	       __atomic_load_n(&ev->owner->connect_error, __ATOMIC_RELAXED);
}

/* Do what the event asks for.  false: the program does not get to see it. */
static bool process(struct polycm_ev *ev)
{
	bool is_request = ev->pub.event == RDMA_CM_EVENT_CONNECT_REQUEST, seen = true;
	change_t change = change_of(ev);
	bool timed = __atomic_load_n(&ev->owner->answer_timer, __ATOMIC_RELAXED) != NULL;
	bool alone = polycm_alone();
	int old = PTHREAD_CANCEL_ENABLE;

	if (has_ended(ev))
		return false;
	if (!is_request && !change && !timed)
		return true;

	/* Waiting is where a thread is cancelled, not with locks; alone, nobody cancels it. */
	if (!alone)
		pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &old);
	if (is_request) {
		seen = connect_request(ev->owner, ev);
	} else {
		polycm_id_lock(ev->owner);
		if (__builtin_expect(timed, 0))
			polycm_answer_seen(ev->owner);
		if (change)
			change(ev->owner, ev);
		polycm_id_unlock(ev->owner);
	}
	if (!alone)
		pthread_setcancelstate(old, NULL);
	return seen;
}

static bool is_bad(const struct rdma_cm_event *event)
{
	switch ((int)event->event) {
	case POLYCM_EVENT_USER:		/* the status is the program's */
		return false;
	case RDMA_CM_EVENT_ADDR_ERROR:
	case RDMA_CM_EVENT_ROUTE_ERROR:
	case RDMA_CM_EVENT_CONNECT_ERROR:
	case RDMA_CM_EVENT_UNREACHABLE:
	case RDMA_CM_EVENT_REJECTED:
	case RDMA_CM_EVENT_MULTICAST_ERROR:
		return true;
	default:
		return event->status != 0;
	}
}

/* One line for each event: bad ones with their status in words. */
static void log_event(const struct polycm_ev *ev)
{
	struct polycm_id *id = ev->child ? ev->child : ev->owner;
	const struct rdma_conn_param *conn = &ev->pub.param.conn;
	const struct polycm_transport *transport;
	const char *name;

	if (!polycm_log_enabled(POLYCM_LOG_WARN))
		return;
	name = polycm_event_name(ev->pub.event);
	if (is_bad(&ev->pub)) {
		polycm_id_lock(id);
		transport = polycm_id_transport(id);
		polycm_id_unlock(id);
		polycm_log_id(POLYCM_LOG_WARN, id, "%s: %s" POLYCM_WHY_FORMAT, name,
			      ev->why ? ev->why :
			      polycm_status_words(transport, ev->pub.event, ev->pub.status), POLYCM_WHY);
		return;
	}
	if (!polycm_log_enabled(POLYCM_LOG_INFO))
		return;

	switch (ev->pub.event) {
	case RDMA_CM_EVENT_CONNECT_REQUEST:
	case RDMA_CM_EVENT_CONNECT_RESPONSE:
	case RDMA_CM_EVENT_ESTABLISHED:
		if (ev->is_ud)
			polycm_log_id(POLYCM_LOG_INFO, id, "%s (QP %u, private data %u bytes)", name,
				      ev->pub.param.ud.qp_num, ev->pub.param.ud.private_data_len);
		else
			polycm_log_id(POLYCM_LOG_INFO, id, "%s (responder resources %u, initiator "
				      "depth %u, private data %u bytes)", name,
				      conn->responder_resources, conn->initiator_depth,
				      conn->private_data_len);
		break;
	default:
		polycm_log_id(POLYCM_LOG_INFO, id, "%s", name);
		break;
	}
}

int polycm_get_event(struct polycm_channel *chan, struct rdma_cm_event **ret_event)
{
	struct polycm_ev *ev;
	int err;

	for (;;) {
		err = polycm_channel_next(chan, &ev);
		if (err)
			return err;
		/* Reasons of earlier calls are not reasons of this event. */
		polycm_why_clear();
		if (process(ev))
			break;
		polycm_ev_ack(ev);
	}
	log_event(ev);
	*ret_event = &ev->pub;
	return 0;
}

int polycm_event_errno(const struct rdma_cm_event *event)
{
	int err = event->status < 0 ? event->status : -event->status;

	if (!err)
		return 0;
	if (event->event == RDMA_CM_EVENT_REJECTED)
		err = -ECONNREFUSED;
	return polycm_fail(err, "%s: %s", polycm_event_name(event->event),
			   polycm_status_str(event));
}

void polycm_release_event(struct polycm_id *id)
{
	struct rdma_cm_event *event = id->pub.event;

	id->pub.event = NULL;
	if (event)
		(void)polycm_ev_ack_pub(event);
}

__attribute__((noinline)) int polycm_complete(struct polycm_id *id)
{
	int err;

	if (!__atomic_load_n(&id->rsocket.sync, __ATOMIC_RELAXED))
		return 0;
	polycm_release_event(id);
	err = polycm_get_event(__atomic_load_n(&id->chan, __ATOMIC_ACQUIRE), &id->pub.event);
	if (err)
		return err;
	return polycm_event_errno(id->pub.event);
}

POLYCM_EXPORT int rdma_get_cm_event(struct rdma_event_channel *channel,
				    struct rdma_cm_event **event)
{
	struct polycm_channel *chan = polycm_channel_of(channel);
	int err;

	polycm_why_clear();
	if (!chan && polycm_channel_gone(channel))
		err = polycm_channel_sleep_on();
	else if (!chan || !event)
		err = polycm_fail(-EINVAL, chan ? "nowhere to put the event"
						: "no channel of rdma_create_event_channel");
	else
		err = polycm_get_event(chan, event);
	if (!err && (*event)->event == RDMA_CM_EVENT_CONNECT_REQUEST)
		polycm_id_made((struct polycm_id *)(void *)(*event)->id, "rdma_get_cm_event",
			       __builtin_return_address(0));

	/* No event, or a signal: nothing to log. */
	if (err == -EAGAIN || err == -EINTR) {
		errno = -err;
		return -1;
	}
	return polycm_ret("rdma_get_cm_event", NULL, err);
}
