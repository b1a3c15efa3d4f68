/* SPDX-License-Identifier: BSD-2-Clause */
/* scene_events.c - owns events: waiting for them, showing and acknowledging them. */
#include <fcntl.h>

#include "scene_internal.h"

static struct rdma_cm_event *unacked[64];
static unsigned int num_unacked;

/* --- Showing. --- */

static const char *status_text(int status)
{
	static char text[24];

	/* -1 is the library's own, no errno. */
	if (status < -1 && strerrorname_np(-status))
		snprintf(text, sizeof(text), "-%s", errno_text(-status));
	else
		snprintf(text, sizeof(text), "%d", status);
	return text;
}

static const char *qp_num_text(uint32_t qp_num)
{
	static char text[16];

	if (!qp_num)
		return "0";
	if (qp_num == 0xffffff)
		return "0xffffff"; /* of multicast */
	if (own_number(qp_num) < 0)
		return knows_qp(qp_num) ? "known" : "other";
	snprintf(text, sizeof(text), "own%d", own_number(qp_num));
	return text;
}

/* A depth that is all that the device has is "max", because that number is the device's. */
static const char *depth_text(const struct rdma_cm_id *id, uint8_t depth, char *text, size_t size)
{
	struct ibv_device_attr attr;

	if (depth > 15 && id->verbs && !ibv_query_device(id->verbs, &attr) &&
	    depth == attr.max_qp_rd_atom)
		return "max";
	snprintf(text, size, "%u", depth);
	return text;
}

static void add_data(char *line, size_t size, const void *data, uint8_t len)
{
	size_t used = strlen(line);

	if (len || data)
		snprintf(line + used, size - used, ", data %u bytes %s", len,
			 data ? bytes_text(data, len) : "NULL");
}

static void add_conn(char *line, size_t size, const struct rdma_cm_event *event)
{
	const struct rdma_conn_param *conn = &event->param.conn;
	char resources[8], depth[8];
	size_t used;

	add_data(line, size, conn->private_data, conn->private_data_len);
	if (!conn->responder_resources && !conn->initiator_depth && !conn->flow_control &&
	    !conn->retry_count && !conn->rnr_retry_count && !conn->srq && !conn->qp_num)
		return;
	used = strlen(line);
	snprintf(line + used, size - used, ", rr %s id %s fc %u retry %u rnr %u srq %u qpn %s",
		 depth_text(event->id, conn->responder_resources, resources, sizeof(resources)),
		 depth_text(event->id, conn->initiator_depth, depth, sizeof(depth)),
		 conn->flow_control, conn->retry_count, conn->rnr_retry_count, conn->srq,
		 qp_num_text(conn->qp_num));
}

static void add_ud(char *line, size_t size, const struct rdma_cm_event *event)
{
	const struct rdma_ud_param *ud = &event->param.ud;
	const struct ibv_ah_attr *ah = &ud->ah_attr;
	bool multicast = event->event == RDMA_CM_EVENT_MULTICAST_JOIN ||
			 event->event == RDMA_CM_EVENT_MULTICAST_ERROR;
	size_t used;

	if (!multicast)
		add_data(line, size, ud->private_data, ud->private_data_len);
	used = strlen(line);
	if (ud->qp_num || ud->qkey)
		snprintf(line + used, size - used, ", qpn %s qkey 0x%x", qp_num_text(ud->qp_num),
			 ud->qkey);
	used = strlen(line);
	if (ah->is_global || ah->port_num)
		snprintf(line + used, size - used, ", ah global %u dgid %s hop %u tc %u sl %u port %s",
			 ah->is_global, gid_text(&ah->grh.dgid), ah->grh.hop_limit,
			 ah->grh.traffic_class, ah->sl, ah->port_num ? "yes" : "no");
}

/* RDMA_PS_UDP and its like: the other arm of the union. */
static bool has_ud(const struct rdma_cm_event *event)
{
	return event->event == RDMA_CM_EVENT_MULTICAST_JOIN ||
	       event->event == RDMA_CM_EVENT_MULTICAST_ERROR ||
	       (event->id && event->id->qp_type == IBV_QPT_UD);
}

void show_event(struct rdma_event_channel *events, const struct rdma_cm_event *event)
{
	char line[2048];
	const char *who = event->event == RDMA_CM_EVENT_CONNECT_REQUEST ? id_name(event->listen_id)
									: id_name(event->id);

	snprintf(line, sizeof(line), "%s: %s%s%s, status %s",
		 knows_id(event->id) || event->listen_id ? who : channel_name(events),
		 rdma_event_str(event->event) + strlen("RDMA_CM_EVENT_"),
		 event->event == RDMA_CM_EVENT_CONNECT_REQUEST ? " " : "",
		 event->event == RDMA_CM_EVENT_CONNECT_REQUEST ? id_name(event->id) : "",
		 status_text(event->status));
	if (event->listen_id && event->event != RDMA_CM_EVENT_CONNECT_REQUEST)
		snprintf(line + strlen(line), sizeof(line) - strlen(line), ", listen_id %s",
			 id_name(event->listen_id));
	if (has_ud(event))
		add_ud(line, sizeof(line), event);
	else
		add_conn(line, sizeof(line), event);
	say("%s", line);
}

/* --- Waiting. --- */

static void set_blocking(struct rdma_event_channel *events, bool blocking)
{
	int flags = fcntl(events->fd, F_GETFL);

	fcntl(events->fd, F_SETFL, blocking ? flags & ~O_NONBLOCK : flags | O_NONBLOCK);
}

/* Without blocking: the library swallows some events, and would wait for another then. */
static int get_now(struct rdma_event_channel *events, struct rdma_cm_event **ret_event)
{
	int result, error;

	set_blocking(events, false);
	result = rdma_get_cm_event(events, ret_event);
	error = errno;
	set_blocking(events, true);
	errno = error;
	return result;
}

static int get_within(struct rdma_event_channel *events, unsigned int ms,
		      struct rdma_cm_event **ret_event)
{
	uint64_t start = now_ms(), lapse = 0;

	while (lapse <= ms && ready_within(events, ms - (unsigned int)lapse)) {
		if (!get_now(events, ret_event))
			return 0;
		if (errno != EAGAIN)
			return -1;
		lapse = now_ms() - start;
	}
	errno = EAGAIN;
	return -1;
}

/*
 * Over iWARP the kernel tells from one work queue that a stream has ended, or has not come about,
 * and moves the QP to ERR from another: what a scenario then sees of the QP, and can do with it,
 * would depend on who is quicker.
 */
static void qp_leaves(const struct rdma_cm_id *id, enum ibv_qp_state state)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	unsigned int ms;

	if (!id->qp || id->verbs->device->transport_type != IBV_TRANSPORT_IWARP)
		return;
	for (ms = 0; ms < 5000; ms++) {
		if (ibv_query_qp(id->qp, &attr, IBV_QP_STATE, &init) || attr.qp_state != state)
			return;
		pass_ms(1);
	}
}

void stream_ended(const struct rdma_cm_id *id)
{
	qp_leaves(id, IBV_QPS_RTS);
}

void answer_withdrawn(struct rdma_cm_id *id)
{
	struct ibv_qp_attr attr;
	unsigned int ms;
	int mask;

	if (id->verbs->device->transport_type != IBV_TRANSPORT_IB)
		return;
	for (ms = 0; ms < 5000; ms++) {
		attr.qp_state = IBV_QPS_RTR;
		if (rdma_init_qp_attr(id, &attr, &mask))
			return;
		pass_ms(1);
	}
}

static void let_qp_follow(const struct rdma_cm_event *event)
{
	if (event->event == RDMA_CM_EVENT_DISCONNECTED)
		qp_leaves(event->id, IBV_QPS_RTS);
	else if (event->event == RDMA_CM_EVENT_CONNECT_ERROR ||
		 event->event == RDMA_CM_EVENT_UNREACHABLE || event->event == RDMA_CM_EVENT_REJECTED)
		qp_leaves(event->id, IBV_QPS_INIT);
}

/* NULL with EAGAIN: nothing comes. */
static struct rdma_cm_event *wait_for(struct rdma_event_channel *events, unsigned int ms)
{
	struct rdma_cm_event *event;
	int result;

	/* Virtual time goes to where something happens only if the call blocks. */
	if (virtual_time() && ms == patience_ms())
		result = rdma_get_cm_event(events, &event);
	else
		result = get_within(events, ms, &event);
	if (result) {
		if (errno == EDEADLK && virtual_time())
			errno = EAGAIN;
		if (errno != EAGAIN)
			say("%s: rdma_get_cm_event = -1 %s", channel_name(events),
			    errno_text(errno));
		return NULL;
	}
	if (event->event == RDMA_CM_EVENT_CONNECT_REQUEST) {
		child = event->id;
		name_child(child);
	}
	show_event(events, event);
	settle();
	let_qp_follow(event);
	return event;
}

struct rdma_cm_event *next_unacked(struct rdma_event_channel *events)
{
	struct rdma_cm_event *event = wait_for(events, patience_ms());

	if (event && num_unacked < ARRAY_LEN(unacked))
		unacked[num_unacked++] = event;
	if (!event && errno == EAGAIN)
		say("%s: nothing comes", channel_name(events));
	return event;
}

void ack(struct rdma_cm_event *event)
{
	unsigned int i;

	for (i = 0; i < num_unacked; i++) {
		if (unacked[i] == event) {
			unacked[i] = unacked[--num_unacked];
			break;
		}
	}
	if (rdma_ack_cm_event(event))
		end_failed("rdma_ack_cm_event");
}

void unacked_are_acked(void)
{
	while (num_unacked)
		rdma_ack_cm_event(unacked[--num_unacked]);
}

/* A copy that outlives the ack, which comes with it. */
static struct rdma_cm_event *copy_and_ack(struct rdma_event_channel *events,
					  struct rdma_cm_event *event)
{
	static _Thread_local struct {
		struct rdma_cm_event event;
		uint8_t data[256];
	} copies[2];
	size_t which = events == client_events;

	/* Of either arm of the union: both begin with the data. */
	copies[which].event = *event;
	if (event->event != RDMA_CM_EVENT_MULTICAST_JOIN &&
	    event->event != RDMA_CM_EVENT_MULTICAST_ERROR && event->param.conn.private_data) {
		memcpy(copies[which].data, event->param.conn.private_data,
		       event->param.conn.private_data_len);
		copies[which].event.param.conn.private_data = copies[which].data;
	}
	if (rdma_ack_cm_event(event))
		end_failed("rdma_ack_cm_event");
	return &copies[which].event;
}

struct rdma_cm_event *next(struct rdma_event_channel *events)
{
	return next_within(events, patience_ms());
}

struct rdma_cm_event *next_within(struct rdma_event_channel *events, unsigned int ms)
{
	struct rdma_cm_event *event = wait_for(events, ms);

	if (event)
		return copy_and_ack(events, event);
	if (errno == EAGAIN)
		say("%s: nothing comes", channel_name(events));
	return NULL;
}

struct rdma_cm_event *expect_type(struct rdma_event_channel *events, enum rdma_cm_event_type type)
{
	struct rdma_cm_event *event = next(events);
	char what[64];

	if (event && event->event == type)
		return event;
	snprintf(what, sizeof(what), "no %s", rdma_event_str(type));
	errno = event ? abs(event->status) : ETIMEDOUT;
	end_failed(what);
}

void rest(struct rdma_event_channel *events)
{
	struct rdma_cm_event *event;
	bool any = false;

	/* Longer than RoCE's timewait of half a second. */
	while ((event = wait_for(events, rest_ms()))) {
		copy_and_ack(events, event);
		any = true;
	}
	if (errno == EAGAIN)
		say("%s: nothing%s", channel_name(events), any ? " more" : "");
}
