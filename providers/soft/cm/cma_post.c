/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cm/cma_post.c - posts events to the core and changes the states of ids; both
 * are traced.  Engine lock held.
 */
#include "config.h"

#include <errno.h>
#include <string.h>

#include "providers/common/events.h"
#include "providers/soft/fabric/trace_lines.h"
#include "cma_internal.h"

#define NAME(name) #name,
static const char *const state_names[] = { CMA_STATES(NAME) };
static const char *const event_names[] = { EVENT_TYPES(EVENT_NAME) };

void cma_set_state(struct sim_id *id, enum cma_state state)
{
	if (id->state == state)
		return;
	if (sim_tracing())
		sim_trace_state(id->node, "id", id->number, state_names[state],
				state_names[id->state]);
	id->state = state;
}

void cma_inspect(const struct sim_id *id, const struct polycm_report *to)
{
	to->put(to, "number in traces", "%u", id->number);
	to->put(to, "node", "%s", id->node ? id->node->name : "none yet");
	to->put(to, "state", "%s", state_names[id->state]);
	to->put(to, "events without memory", "%u", id->num_late);
	if (id->engine)
		id->engine->inspect(id, to);
}

int cma_wrong_state(const struct sim_id *id)
{
	if (id->state == CMA_DEVICE_REMOVAL)
		return sim_refuse(-ENXIO, "the device is gone: the id can only be destroyed");
	return sim_refuse(-EINVAL, "the id is in state %s", state_names[id->state]);
}

int cma_too_long(const struct sim_id *id, size_t len, size_t limit)
{
	return sim_refuse(-EINVAL, "%zu bytes of private data where %s takes %zu", len,
			  cma_rules(id)->name, limit);
}

enum polycm_kind cma_kind(const struct sim_id *id)
{
	if (cma_is_af_ib(id))
		return id->qp_type == IBV_QPT_UD ? POLYCM_KIND_UD_AF_IB : POLYCM_KIND_RC_AF_IB;
	return id->qp_type == IBV_QPT_UD ? POLYCM_KIND_UD : POLYCM_KIND_RC;
}

static void trace_event(const struct sim_id *id, const struct polycm_event *event,
			const struct sim_id *child)
{
	bool ud = (child ? child : id)->qp_type == IBV_QPT_UD;
	uint8_t len = ud ? event->param.ud.private_data_len : event->param.conn.private_data_len;
	const void *data = ud ? event->param.ud.private_data : event->param.conn.private_data;

	sim_trace_begin("event");
	sim_trace_text("node", id->node->name);
	sim_trace_number("id", id->number);
	sim_trace_text("event", event_names[event->type]);
	sim_trace_status("status", event->status);
	if (child)
		sim_trace_number("child", child->number);
	trace_private_data(&sim_trace_current, data, len);
	sim_trace_end();
}

/* An event without memory is traced when it is posted later, if it is. */
static int post_traced(const struct sim_id *id, const struct polycm_event *event)
{
	int r = sim_core->post_event(id->id, event);

	if (r != -ENOMEM && sim_tracing())
		trace_event(id, event, NULL);
	return r;
}

/* A resolution may use the timer already: late events then go before its own. */
static void try_again(struct sim_id *id)
{
	if (!sim_timer_armed(&id->timer))
		sim_timer_arm(&id->timer, sim_now() + CMA_AGAIN);
}

void cma_post_late(struct sim_id *id)
{
	unsigned int done;

	for (done = 0; done < id->num_late; done++) {
		const struct polycm_event event = {
			.size = sizeof(event),
			.type = (enum rdma_cm_event_type)id->late[done].type,
			.status = id->late[done].status,
			.param.conn = {
				.initiator_depth = id->late[done].initiator_depth,
				.responder_resources = id->late[done].responder_resources,
			},
			.why = id->late[done].has_why ? id->late_why : NULL,
		};

		if (post_traced(id, &event) == -ENOMEM)
			break;
		sim_wake();
	}
	if (done) {
		id->num_late = (uint8_t)(id->num_late - done);
		memmove(id->late, id->late + done, id->num_late * sizeof(id->late[0]));
	}
	if (id->num_late)
		try_again(id);
}

/* false: no room, which takes more events than an id can have. */
static bool keep_for_later(struct sim_id *id, const struct polycm_event *event)
{
	if (id->num_late == CMA_MAX_LATE)
		return false;
	if (event->why)
		id->late_why = event->why;
	id->late[id->num_late++] = (struct cma_late){
		.status = (int16_t)event->status,
		.type = (uint8_t)event->type,
		.initiator_depth = event->param.conn.initiator_depth,
		.responder_resources = event->param.conn.responder_resources,
		.has_why = event->why != NULL,
	};
	try_again(id);
	return true;
}

int cma_post(struct sim_id *id, const struct polycm_event *event)
{
	if (!cma_live(id) || !id->accepted)
		return -ECANCELED;
	if (__builtin_expect(id->num_late != 0, 0)) {
		cma_post_late(id);
		if (id->num_late)
			return -ENOMEM;	/* events keep their order */
	}
	sim_wake();		/* who waits checks before time moves */
	return post_traced(id, event);
}

static int post_or_keep(struct sim_id *id, const struct polycm_event *event)
{
	int r = cma_post(id, event);

	return r == -ENOMEM && keep_for_later(id, event) ? 0 : r;
}

int cma_post_established(struct sim_id *id, uint8_t initiator_depth, uint8_t responder_resources)
{
	const struct polycm_event event = {
		.size = sizeof(event),
		.type = RDMA_CM_EVENT_ESTABLISHED,
		.param.conn = {
			.initiator_depth = initiator_depth,
			.responder_resources = responder_resources,
		},
	};

	return post_or_keep(id, &event);
}

int cma_post_why(struct sim_id *id, enum rdma_cm_event_type type, int status, const char *why)
{
	const struct polycm_event event = {
		.size = sizeof(event),
		.type = type,
		.status = status,
		.why = why,
	};

	return post_or_keep(id, &event);
}

int cma_post_simple(struct sim_id *id, enum rdma_cm_event_type type, int status)
{
	return cma_post_why(id, type, status, NULL);
}

int cma_post_request(struct sim_id *listener, struct sim_id *child, struct polycm_event *event)
{
	int r;

	event->child = child->id;
	if (!cma_live(listener))
		r = -ECANCELED;
	else if (sim_fault_backlog_full(child->port->device->node))
		r = -ENOMEM;
	else
		r = sim_core->post_event(listener->id, event);
	if (r < 0) {
		child->engine->free(child);
		cma_drop(child);
		sim_core->child_destroy(child->id);
		return r;
	}
	if (sim_tracing())
		trace_event(listener, event, child);
	return 0;
}
