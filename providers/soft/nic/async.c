/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * nic/async.c - asynchronous events of a context: queue, descriptor,
 * acknowledgements.  Destroying an object forgets its unread events and waits
 * for those that were read to be acknowledged.
 */
#include "config.h"

#include <stdlib.h>
#include <time.h>

#include "providers/soft/engine/turns.h"
#include "context.h"
#include "qp.h"
#include "refuse.h"
#include "single_thread.h"
#include "verbs.h"

/* NULL: there is no memory for another one of the same kind. */
static struct nic_async *free_one(struct nic_async *own)
{
	struct nic_async *async;

	if (!own->queued)
		return own;
	async = malloc(sizeof(*async));
	if (async)
		async->allocated = true;
	return async;
}

static void release(struct nic_async *async)
{
	nic_list_del(&async->node);
	async->queued = false;
	if (async->allocated)
		free(async);
}

/* `own' is the object's for this kind of event. */
static void post(struct ibv_context *ctx, struct nic_async *own,
		 const struct ibv_async_event *event, const void *element, uint32_t *reported)
{
	struct sim_context *context = nic_context(ctx);
	struct nic_async *async;

	if (context->closed)	/* and its objects live on in another context of its file */
		return;
	async = free_one(own);
	if (!async) {
		nic_log(POLYCM_LOG_WARN, "%s: no memory for another asynchronous event of type %d: the "
			"program reads the one before it, which it has not read yet, in its place",
			ctx->device->name, (int)event->event_type);
		return;
	}
	async->queued = true;
	async->event = *event;
	async->element = element;
	async->reported = reported;
	nic_list_add(&context->events, &async->node);
	nic_notify_set(&context->notify, true);
}

void nic_async_cq(struct sim_cq *cq, enum ibv_event_type type)
{
	struct ibv_async_event event = { .element.cq = &cq->pub.cq, .event_type = type };

	post(cq->pub.cq.context, &cq->full, &event, cq, &cq->async_reported);
}

/* Which of an object's own events is for a type. */
static const uint8_t own_index[] = {
	[IBV_EVENT_COMM_EST] = NIC_QP_ESTABLISHED,
	[IBV_EVENT_SQ_DRAINED] = NIC_QP_DRAINED,
	[IBV_EVENT_QP_LAST_WQE_REACHED] = NIC_QP_LAST_WQE,
	[IBV_EVENT_PORT_ACTIVE] = NIC_PORT_ACTIVE,
	[IBV_EVENT_PORT_ERR] = NIC_PORT_ERR,
	[IBV_EVENT_GID_CHANGE] = NIC_PORT_OTHER,
};

void nic_async_qp(struct sim_qp *qp, enum ibv_event_type type)
{
	struct sim_qp *handle;

	nic_list_each(handle, &qp->handles, in_handles) {
		struct ibv_async_event event = {
			.element.qp = &handle->pub.qp, .event_type = type,
		};

		post(handle->pub.qp.context, &handle->async[own_index[type]], &event, handle,
		     &handle->async_reported);
	}
}

void nic_async_srq(struct sim_srq *srq, enum ibv_event_type type)
{
	struct ibv_async_event event = { .element.srq = &srq->pub, .event_type = type };

	post(srq->pub.context, &srq->limit_reached, &event, srq, &srq->async_reported);
}

static void post_to_context(struct sim_context *context, const struct ibv_async_event *event)
{
	static uint32_t reported;	/* without an object: acknowledgements are not awaited */
	unsigned int port = (unsigned int)event->element.port_num - 1;

	post(&context->verbs.context, event->event_type == IBV_EVENT_DEVICE_FATAL ? &context->removed :
	     &context->port_events[port][own_index[event->event_type]], event, NULL, &reported);
}

void sim_nic_port_event(struct sim_port *port, enum ibv_event_type type)
{
	const struct ibv_async_event event = { .element.port_num = port->num, .event_type = type };
	struct sim_context *context;

	nic_list_each(context, &nic_contexts, node)
		if (context->device == port->device)
			post_to_context(context, &event);
}

static void fail_all_qps(const struct sim_context *context)
{
	const struct nic_list *all = &context->objects[NIC_QP];

	for (struct nic_list *node = all->next, *next; node != all; node = next) {
		next = node->next;
		nic_qp_error(nic_container(node, struct sim_qp, node)->real, false);
	}
}

void sim_nic_device_removed(struct sim_device *device)
{
	const struct ibv_async_event event = { .event_type = IBV_EVENT_DEVICE_FATAL };
	struct sim_context *context;

	nic_list_each(context, &nic_contexts, node) {
		if (context->device != device)
			continue;
		fail_all_qps(context);
		post_to_context(context, &event);
	}
}

void nic_async_forget(struct sim_context *context, const void *element)
{
	struct nic_list *node = context->events.next;

	while (node != &context->events) {
		struct nic_async *async = nic_container(node, struct nic_async, node);

		node = node->next;
		if (!element || async->element == element)
			release(async);
	}
	nic_notify_set(&context->notify, !nic_list_empty(&context->events));
}

static bool take(struct nic_notify *notify, void *ret_event)
{
	struct sim_context *context = nic_container(notify, struct sim_context, notify);
	struct nic_async *async;

	if (nic_list_empty(&context->events))
		return false;
	async = nic_container(context->events.next, struct nic_async, node);
	++*async->reported;
	*(struct ibv_async_event *)ret_event = async->event;
	release(async);
	nic_notify_set(&context->notify, !nic_list_empty(&context->events));
	return true;
}

int sim_get_async_event(struct ibv_context *context, struct ibv_async_event *event)
{
	return nic_notify_get(&nic_context(context)->notify, "ibv_get_async_event",
			      TURN_FOR_ASYNC_EVENT, take, event);
}

static void acknowledge(pthread_mutex_t *mutex, pthread_cond_t *cond, uint32_t *completed)
{
	pthread_mutex_lock(mutex);
	++*completed;
	pthread_cond_signal(cond);
	pthread_mutex_unlock(mutex);
}

void sim_ack_async_event(struct ibv_async_event *event)
{
	struct ibv_cq *cq = event->element.cq;
	struct ibv_qp *qp = event->element.qp;
	struct ibv_srq *srq = event->element.srq;

	switch (event->event_type) {
	case IBV_EVENT_CQ_ERR:
		acknowledge(&cq->mutex, &cq->cond, &cq->async_events_completed);
		break;
	case IBV_EVENT_QP_FATAL:
	case IBV_EVENT_QP_REQ_ERR:
	case IBV_EVENT_QP_ACCESS_ERR:
	case IBV_EVENT_COMM_EST:
	case IBV_EVENT_SQ_DRAINED:
	case IBV_EVENT_PATH_MIG:
	case IBV_EVENT_PATH_MIG_ERR:
	case IBV_EVENT_QP_LAST_WQE_REACHED:
		acknowledge(&qp->mutex, &qp->cond, &qp->events_completed);
		break;
	case IBV_EVENT_SRQ_ERR:
	case IBV_EVENT_SRQ_LIMIT_REACHED:
		acknowledge(&srq->mutex, &srq->cond, &srq->events_completed);
		break;
	default:
		break;
	}
}

bool nic_acks_never_come(const struct nic_acks *acks)
{
	/* Nobody can be at the count then. */
	if (!single_thread() || !sim_is_virtual() || *acks->completed == *acks->reported)
		return false;
	nic_log(POLYCM_LOG_ERROR,
		"destroying %s %u waits for what can never happen: the program has read %u of its "
		"events but acknowledged %u, and there is no other thread", acks->what, acks->number,
		*acks->reported, *acks->completed);
	return true;
}

void nic_await_acks(const struct nic_acks *acks)
{
	uint64_t warn_at = sim_time->real_ns(CLOCK_REALTIME) + SIM_MS(1000);
	bool warned = false;

	pthread_mutex_lock(acks->mutex);
	sim_waits_for(TURN_FOR_ACK);
	while (*acks->completed != *acks->reported) {
		if (warned) {
			pthread_cond_wait(acks->cond, acks->mutex);
		} else if (sim_time->cond_wait(acks->cond, acks->mutex, warn_at) == ETIMEDOUT) {
			warned = true;
			nic_log(POLYCM_LOG_WARN,
				"destroying %s %u waits: the program has read %u of its events "
				"but acknowledged %u", acks->what, acks->number, *acks->reported,
				*acks->completed);
		}
	}
	sim_waits_for(TURN_FOR_ANY);
	pthread_mutex_unlock(acks->mutex);
}
