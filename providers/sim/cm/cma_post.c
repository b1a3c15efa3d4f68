/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cm/cma_post.c - what the engines report on its way to the program, and the
 * state of ids, both traced.  Engine lock held.
 */
#include "config.h"

#include <errno.h>

#include "../trace.h"
#include "cma_internal.h"

static const char *const state_names[] = {
	[CMA_IDLE] = "IDLE",
	[CMA_ADDR_QUERY] = "ADDR_QUERY",
	[CMA_ADDR_RESOLVED] = "ADDR_RESOLVED",
	[CMA_ROUTE_QUERY] = "ROUTE_QUERY",
	[CMA_ROUTE_RESOLVED] = "ROUTE_RESOLVED",
	[CMA_CONNECT] = "CONNECT",
	[CMA_DISCONNECT] = "DISCONNECT",
	[CMA_ADDR_BOUND] = "ADDR_BOUND",
	[CMA_LISTEN] = "LISTEN",
	[CMA_DEVICE_REMOVAL] = "DEVICE_REMOVAL",
	[CMA_DESTROYING] = "DESTROYING",
};

static const char *const event_names[] = {
	[RDMA_CM_EVENT_ADDR_RESOLVED] = "ADDR_RESOLVED",
	[RDMA_CM_EVENT_ADDR_ERROR] = "ADDR_ERROR",
	[RDMA_CM_EVENT_ROUTE_RESOLVED] = "ROUTE_RESOLVED",
	[RDMA_CM_EVENT_ROUTE_ERROR] = "ROUTE_ERROR",
	[RDMA_CM_EVENT_CONNECT_REQUEST] = "CONNECT_REQUEST",
	[RDMA_CM_EVENT_CONNECT_RESPONSE] = "CONNECT_RESPONSE",
	[RDMA_CM_EVENT_CONNECT_ERROR] = "CONNECT_ERROR",
	[RDMA_CM_EVENT_UNREACHABLE] = "UNREACHABLE",
	[RDMA_CM_EVENT_REJECTED] = "REJECTED",
	[RDMA_CM_EVENT_ESTABLISHED] = "ESTABLISHED",
	[RDMA_CM_EVENT_DISCONNECTED] = "DISCONNECTED",
	[RDMA_CM_EVENT_DEVICE_REMOVAL] = "DEVICE_REMOVAL",
	[RDMA_CM_EVENT_MULTICAST_JOIN] = "MULTICAST_JOIN",
	[RDMA_CM_EVENT_MULTICAST_ERROR] = "MULTICAST_ERROR",
	[RDMA_CM_EVENT_ADDR_CHANGE] = "ADDR_CHANGE",
	[RDMA_CM_EVENT_TIMEWAIT_EXIT] = "TIMEWAIT_EXIT",
};

void cma_set_state(struct sim_id *id, enum cma_state state)
{
	if (id->state == state)
		return;
	id->state = state;
	sim_trace("state", "\"id\":%u,\"state\":\"%s\"", id->number, state_names[state]);
}

int cma_wrong_state(const struct sim_id *id)
{
	return sim_refuse(-EINVAL, "not in state %s", state_names[id->state]);
}

int cma_too_long(const struct sim_id *id, size_t len, size_t limit)
{
	return sim_refuse(-EINVAL, "%zu bytes of private data where %s takes %zu", len,
			  cma_rules(id)->name, limit);
}

enum polycm_kind cma_kind(const struct sim_id *id)
{
	return id->qp_type == IBV_QPT_UD ? POLYCM_KIND_UD : POLYCM_KIND_RC;
}

int cma_post(struct sim_id *id, const struct polycm_event *event)
{
	if (!cma_live(id) || !id->accepted)
		return -ECANCELED;
	sim_trace("event", "\"id\":%u,\"event\":\"%s\",\"status\":%d", id->number,
		  event_names[event->type], event->status);
	sim_wake();		/* time goes on when it was looked at */
	return sim_core->post_event(id->id, event);
}

int cma_post_simple(struct sim_id *id, enum rdma_cm_event_type type, int status)
{
	struct polycm_event event = {
		.size = sizeof(event),
		.type = type,
		.status = status,
	};

	return cma_post(id, &event);
}

int cma_post_request(struct sim_id *listener, struct sim_id *child, struct polycm_event *event)
{
	int r;

	event->child = child->id;
	r = cma_live(listener) ? sim_core->post_event(listener->id, event) : -ECANCELED;
	if (r < 0) {
		child->engine->free(child);
		cma_drop(child);
		sim_core->child_destroy(child->id);
		return r;
	}
	sim_trace("event", "\"id\":%u,\"event\":\"CONNECT_REQUEST\",\"status\":%d,\"child\":%u",
		  listener->number, event->status, child->number);
	return 0;
}
