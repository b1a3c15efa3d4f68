/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * kernel/event.c - translates the kernel's events into the core's.  Runs in the thread
 * that fetched them, without the id's lock.
 */
#include "config.h"
#include "internal.h"

#include "core/base/addr.h"

#define LAST_EVENT RDMA_CM_EVENT_TIMEWAIT_EXIT

static bool is_multicast(uint32_t type)
{
	return type == RDMA_CM_EVENT_MULTICAST_JOIN || type == RDMA_CM_EVENT_MULTICAST_ERROR;
}

static void decode_conn(struct polycm_event *event, const struct rdma_ucm_conn_param *from)
{
	struct rdma_conn_param *to = &event->param.conn;

	to->private_data = from->private_data_len ? from->private_data : NULL;
	to->private_data_len = from->private_data_len;
	to->responder_resources = from->responder_resources;
	to->initiator_depth = from->initiator_depth;
	to->flow_control = from->flow_control;
	to->retry_count = from->retry_count;
	to->rnr_retry_count = from->rnr_retry_count;
	to->srq = from->srq;
	to->qp_num = from->qp_num;
}

static void decode_ud(struct polycm_event *event, const struct rdma_ucm_ud_param *from)
{
	struct rdma_ud_param *to = &event->param.ud;

	to->private_data = from->private_data_len ? from->private_data : NULL;
	to->private_data_len = from->private_data_len;
	ibv_copy_ah_attr_from_kern(&to->ah_attr, &from->ah_attr);
	to->qp_num = from->qp_num;
	to->qkey = from->qkey;
}

static void decode(const struct kernel_id *id, const struct rdma_ucm_event_resp *resp,
		   struct polycm_event *event)
{
	polycm_clear(event, sizeof(*event));
	event->size = sizeof(*event);
	event->type = (enum rdma_cm_event_type)resp->event;
	event->status = (int)resp->status;
	event->is_ud = id->qp_type == IBV_QPT_UD || is_multicast(resp->event);
	if (event->is_ud)
		decode_ud(event, &resp->param.ud);
	else
		decode_conn(event, &resp->param.conn);
	event->ece.vendor_id = resp->ece.vendor_id;
	event->ece.options = resp->ece.attr_mod;
}

/*
 * The kernel resolved to a device.  If no selected provider claims it, the program gets the error
 * for an address without a device.
 */
static void addr_resolved(const struct kernel_channel *chan, struct kernel_id *id,
			  struct polycm_event *event)
{
	char where[KERNEL_WHERE_TEXT], text[POLYCM_ADDR_TEXT];
	struct kernel_seen seen;

	if (kernel_ask_ahead(id, kernel_fd(chan), &seen, where) && where[0]) {
		polycm_log_id(POLYCM_LOG_WARN, id->core, "the address of the source, %s, is on %s",
			      polycm_addr_text((struct sockaddr *)&seen.src, text), where);
		event->type = RDMA_CM_EVENT_ADDR_ERROR;
		event->status = -ENODEV;
		kernel_id_strand(id);
	}
}

/*
 * Finds the device of a request; one that no selected provider claims is refused.
 * When a listener moves to another channel, Linux 6.12 moves its events but not the ids
 * of requests: those requests are lost, as with librdmacm.
 */
static int find_request(const struct kernel_channel *chan, struct kernel_id *child)
{
	char where[KERNEL_WHERE_TEXT];
	struct kernel_seen seen;
	int r;

	r = kernel_ask_ahead(child, kernel_fd(chan), &seen, where);
	if (r && where[0])
		polycm_log_id(POLYCM_LOG_INFO, child->core, "a connection request is refused: it "
			      "arrived on %s", where);
	else if (r)
		polycm_log_id(POLYCM_LOG_WARN, child->core, "a connection request is lost: %s",
			      strerror(-r));
	return r;
}

/* The event is the listener's, the id in it is the new one. */
static void request(struct kernel_channel *chan, const struct kernel_id *listener, uint32_t number,
		    struct polycm_event *event)
{
	struct kernel_id *child;
	void *priv;
	int r;

	r = polycm_core_table.child_create(listener->core, &event->child, &priv);
	if (r) {
		/* The listener is closing, or there is no memory. */
		(void)kernel_number_destroy(kernel_fd(chan), number);
		return;
	}
	child = priv;
	r = kernel_id_adopt(child, event->child, chan, number, listener);
	if (!r)
		r = find_request(chan, child);
	if (!r)
		r = polycm_core_table.post_event(listener->core, event);
	if (!r)
		return;
	kernel_id_discard(child);
	polycm_core_table.child_destroy(event->child);
}

static void post(struct kernel_id *id, const struct polycm_event *event)
{
	int r = polycm_core_table.post_event(id->core, event);

	if (r && r != -ECANCELED)
		polycm_log_id(POLYCM_LOG_ERROR, id->core, "an event of the kernel's is lost: %s",
			      strerror(-r));
}

static void deliver(struct kernel_channel *chan, struct kernel_handle *handle,
		    const struct rdma_ucm_event_resp *resp)
{
	struct kernel_id *id = (struct kernel_id *)(handle->whole ? handle->whole : handle);
	struct polycm_event event;

	decode(id, resp, &event);
	switch (event.type) {
	case RDMA_CM_EVENT_CONNECT_REQUEST:
		request(chan, id, resp->id, &event);
		return;
	case RDMA_CM_EVENT_MULTICAST_JOIN:
	case RDMA_CM_EVENT_MULTICAST_ERROR:
		event.group = atomic_load(&((struct kernel_group *)handle)->core);
		if (!event.group)
			return;
		break;
	case RDMA_CM_EVENT_ADDR_RESOLVED:
		addr_resolved(chan, id, &event);
		break;
	case RDMA_CM_EVENT_ROUTE_RESOLVED:
		atomic_store(&id->routed, true);
		kernel_answer_drop(id);
		break;
	default:
		break;
	}
	post(id, &event);
}

void kernel_event_deliver(struct kernel_channel *chan, const struct rdma_ucm_event_resp *resp)
{
	struct kernel_handle *handle = kernel_handle_get(resp->uid);

	if (handle && resp->event <= LAST_EVENT &&
	    is_multicast(resp->event) == (handle->whole != NULL)) {
		deliver(chan, handle, resp);
	} else {
		polycm_log(POLYCM_LOG_WARN, "event %u of the kernel's RDMA CM for %s is dropped",
			   resp->event, handle ? "an id that cannot get it" : "an unknown id");
		if (resp->event == RDMA_CM_EVENT_CONNECT_REQUEST)
			(void)kernel_number_destroy(kernel_fd(chan), resp->id);
	}
	if (handle)
		kernel_handle_put(handle);
}
