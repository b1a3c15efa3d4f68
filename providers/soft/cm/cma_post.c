/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cm/cma_post.c - posts events to the core and changes the states of ids; both
 * are traced.  Engine lock held.
 */
#include "config.h"

#include <errno.h>

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

int cma_post(struct sim_id *id, const struct polycm_event *event)
{
	int r;

	if (!cma_live(id) || !id->accepted)
		return -ECANCELED;
	sim_wake();		/* who waits checks before time moves */
	r = sim_core->post_event(id->id, event);
	if (__builtin_expect(r == -ENOMEM, 0))
		sim_core->log(POLYCM_LOG_ERROR, id->id, "no memory for %s: the event is lost",
			      event_names[event->type]);
	else if (sim_tracing())
		trace_event(id, event, NULL);
	return r;
}

int cma_post_why(struct sim_id *id, enum rdma_cm_event_type type, int status, const char *why)
{
	const struct polycm_event event = {
		.size = sizeof(event),
		.type = type,
		.status = status,
		.why = why,
	};

	return cma_post(id, &event);
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
