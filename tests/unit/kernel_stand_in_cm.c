/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * kernel_stand_in_cm.c - connections among the stand-in's ids: what their
 * messages would do on both ends, done at once.
 */
#include "kernel_stand_in_internal.h"

#define REJ_NO_SERVICE	8
#define REJ_CONSUMER	28
#define REJ_TIMEOUT	4
#define SIDR_UNSUPPORTED 1
#define SIDR_REJECT	2

#define IS_IWARP(id) (si_kind(id) == STAND_IN_IWARP)

/* Room for private data: RC or UD, with IP addresses or AF_IB. */
enum message { CONNECT, ACCEPT, REJECT };

static uint8_t room(const struct si_id *id, enum message message)
{
	static const uint8_t rooms[2][2][3] = {
		{ { 56, 196, 148 }, { 92, 196, 148 } },
		{ { 180, 136, 136 }, { 216, 136, 136 } },
	};

	return rooms[id->qp_type == IBV_QPT_UD][id->src.ss_family == AF_IB][message];
}

/* As the receiver sees it: on InfiniBand and RoCE always the whole room. */
static void put_data(const struct si_id *to, enum message message, const uint8_t *data,
		     uint8_t len, uint8_t *ret_data, uint8_t *ret_len)
{
	if (len)
		memcpy(ret_data, data, len);
	*ret_len = IS_IWARP(to) ? len : room(to, message);
}

/* What this end asked for, from the other end's point of view. */
static void put_conn(const struct si_id *to, enum message message,
		     const struct rdma_ucm_conn_param *from, struct rdma_ucm_conn_param *conn)
{
	conn->responder_resources = from->initiator_depth;
	conn->initiator_depth = from->responder_resources;
	put_data(to, message, from->private_data, from->private_data_len, conn->private_data,
		 &conn->private_data_len);
	if (IS_IWARP(to))
		return;
	conn->flow_control = from->flow_control & 1;
	conn->retry_count = message == CONNECT ? from->retry_count & 7 : 0;
	conn->rnr_retry_count = from->rnr_retry_count & 7;
	conn->srq = from->srq;
	conn->qp_num = from->qp_num;
}

/* The event for an end whose program has named it, or NULL. */
static struct si_event *event_for(struct si_id *id, enum rdma_cm_event_type type, int status)
{
	if (!id || id->state != STAND_IN_CONNECT || !id->uid || id->removed)
		return NULL;
	return si_event_new(id, type, status);
}

static void tell(struct si_id *id, enum rdma_cm_event_type type, int status)
{
	struct si_event *event = event_for(id, type, status);

	if (event)
		si_event_queue(event);
}

/* ------------------------------------------------------------------------
 * Listening.
 */

int si_listen(struct si_id *id, int backlog)
{
	const struct sockaddr_in any = { .sin_family = AF_INET };
	int r;

	if (id->state == STAND_IN_IDLE) {
		r = si_bind(id, &any);
		if (r)
			return r;
	}
	if (id->state != STAND_IN_ADDR_BOUND)
		return -EINVAL;
	id->backlog = backlog <= 0 || backlog > SI_BACKLOG ? SI_BACKLOG : (unsigned int)backlog;
	id->state = STAND_IN_LISTEN;
	return 0;
}

static bool listens_for(const struct si_id *listener, const struct sockaddr_storage *dst)
{
	if (si_addr_any(&listener->src))
		return listener->src.ss_family == dst->ss_family ||
		       (listener->src.ss_family == AF_INET6 && dst->ss_family == AF_INET &&
			!listener->afonly);
	return si_addr_same(&listener->src, dst);
}

/* NULL: nobody; *ret_reason then says how the REQ is answered. */
static struct si_id *find_listener(const struct si_id *id, int *ret_reason)
{
	*ret_reason = REJ_NO_SERVICE;
	for (size_t i = 0; i < SI_MAX_IDS; i++) {
		struct si_id *other = &si_ids[i];

		if (!other->used || other->state != STAND_IN_LISTEN || other->ps != id->ps ||
		    other->qp_type != id->qp_type ||
		    si_addr_port(&other->src) != si_addr_port(&id->dst))
			continue;
		if (listens_for(other, &id->dst))
			return other;
		*ret_reason = REJ_CONSUMER;
	}
	return NULL;
}

static struct si_id *make_child(struct si_id *listener, struct si_id *from,
				struct si_device *device, uint8_t port)
{
	struct si_id *child = si_id_alloc(listener->file, 0, listener->ps, listener->qp_type);

	if (!child)
		return NULL;
	child->child = true;
	child->state = STAND_IN_CONNECT;
	child->cm = child->qp_type == IBV_QPT_UD ? CM_SIDR_RCVD : CM_REQ_RCVD;
	child->src = from->dst;
	child->dst = from->src;
	si_place(child, device, port);
	si_find_remote(child);
	child->num_paths = device->port[port - 1].kind != STAND_IN_IWARP && child->qp_type != IBV_QPT_UD;
	child->theirs = from->own;
	child->peer = from;
	from->peer = child;
	return child;
}

static int request(struct si_id *listener, struct si_id *from, struct si_device *device,
		   uint8_t port)
{
	struct si_id *child;
	struct si_event *event;

	if (!listener->backlog) {
		stand_in.dropped_requests++;
		return 0;
	}
	child = make_child(listener, from, device, port);
	if (!child)
		return -ENOMEM;
	listener->backlog--;
	event = si_event_new(listener, RDMA_CM_EVENT_CONNECT_REQUEST, 0);
	event->child = child;
	event->resp.id = child->id;
	if (child->qp_type == IBV_QPT_UD)
		put_data(child, CONNECT, from->own.private_data, from->own.private_data_len,
			 event->resp.param.ud.private_data, &event->resp.param.ud.private_data_len);
	else
		put_conn(child, CONNECT, &from->own, &event->resp.param.conn);
	event->resp.ece = from->own_ece;
	si_event_queue(event);
	return 0;
}

/* ------------------------------------------------------------------------
 * Connecting.
 */

static void rejected(struct si_id *id, int reason, const uint8_t *data, uint8_t len)
{
	struct si_event *event;

	if (id && id->qp_type == IBV_QPT_UD)
		event = event_for(id, RDMA_CM_EVENT_UNREACHABLE, reason);
	else
		event = event_for(id, RDMA_CM_EVENT_REJECTED, reason);
	if (event && id->qp_type == IBV_QPT_UD)
		put_data(id, REJECT, data, len, event->resp.param.ud.private_data,
			 &event->resp.param.ud.private_data_len);
	else if (event)
		put_data(id, REJECT, data, len, event->resp.param.conn.private_data,
			 &event->resp.param.conn.private_data_len);
	if (event)
		si_event_queue(event);
	if (id)
		id->cm = CM_IDLE;
}

/* The refusal of a consumer, in the numbers of the transport. */
static int refusal(const struct si_id *id, int reason)
{
	if (id->qp_type == IBV_QPT_UD)
		return SIDR_REJECT;
	return IS_IWARP(id) ? -ECONNREFUSED : reason;
}

static int unserved(struct si_id *id, int reason)
{
	if (IS_IWARP(id)) {
		id->state = STAND_IN_ROUTE_RESOLVED;
		id->cm = CM_IDLE;
		return -ECONNREFUSED;
	}
	if (id->qp_type == IBV_QPT_UD)
		reason = reason == REJ_NO_SERVICE ? SIDR_UNSUPPORTED : SIDR_REJECT;
	rejected(id, reason, NULL, 0);
	return 0;
}

int si_connect(struct si_id *id, const struct rdma_ucm_connect *cmd)
{
	struct si_device *device = id->device;
	uint8_t port = id->port_num;
	struct si_id *listener;
	int reason;

	if (id->state != STAND_IN_ROUTE_RESOLVED)
		return -EINVAL;
	if (!IS_IWARP(id) && cmd->conn_param.private_data_len > room(id, CONNECT))
		return -EINVAL;
	if (IS_IWARP(id) && (id->qp_type == IBV_QPT_UD || !cmd->conn_param.qp_num))
		return -EINVAL;
	id->own = cmd->conn_param;
	id->own_ece = cmd->ece;
	id->state = STAND_IN_CONNECT;
	id->cm = id->qp_type == IBV_QPT_UD ? CM_SIDR_SENT : CM_REQ_SENT;

	/* Other hosts say nothing. */
	if (!si_addr_any(&id->dst) && !si_find_port(&id->dst, &device, &port))
		return 0;
	listener = find_listener(id, &reason);
	if (!listener)
		return unserved(id, reason);
	return request(listener, id, device, port);
}

/* ------------------------------------------------------------------------
 * Answering.
 */

static void established(struct si_id *id, struct si_id *peer)
{
	struct si_event *event = event_for(id, RDMA_CM_EVENT_ESTABLISHED, 0);

	id->cm = CM_ESTABLISHED;
	if (!event)
		return;
	if (peer)
		put_conn(id, ACCEPT, &peer->own, &event->resp.param.conn);
	si_event_queue(event);
}

static void accept_sidr(struct si_id *id)
{
	struct si_id *peer = id->peer;
	struct si_event *event = event_for(peer, RDMA_CM_EVENT_ESTABLISHED, 0);
	struct rdma_ucm_ud_param *ud;

	id->cm = CM_IDLE;
	if (!peer)
		return;
	peer->cm = CM_IDLE;
	if (!event)
		return;
	ud = &event->resp.param.ud;
	ud->qp_num = id->own.qp_num;
	ud->qkey = SI_QKEY;
	ud->ah_attr.dlid = peer->dlid;
	ud->ah_attr.port_num = peer->port_num;
	put_data(peer, ACCEPT, id->own.private_data, id->own.private_data_len, ud->private_data,
		 &ud->private_data_len);
	event->resp.ece = id->own_ece;
	si_event_queue(event);
}

static void accept_req(struct si_id *id)
{
	struct si_id *peer = id->peer;
	struct si_event *event;

	if (peer)
		peer->theirs = id->own;
	if (IS_IWARP(id)) {
		established(id, NULL);
		if (peer)
			established(peer, id);
		return;
	}
	id->cm = CM_REP_SENT;
	if (!peer || peer->cm != CM_REQ_SENT)
		return;
	peer->cm = CM_REP_RCVD;
	event = event_for(peer, RDMA_CM_EVENT_CONNECT_RESPONSE, 0);
	if (!event)
		return;
	put_conn(peer, ACCEPT, &id->own, &event->resp.param.conn);
	event->resp.ece = id->own_ece;
	si_event_queue(event);
}

/* An accept that fails takes the request with it. */
static int refuse(struct si_id *id)
{
	if (id->cm == CM_REQ_RCVD || id->cm == CM_SIDR_RCVD || id->cm == CM_REP_SENT ||
	    id->cm == CM_REP_RCVD) {
		if (id->peer)
			rejected(id->peer, refusal(id, REJ_CONSUMER), NULL, 0);
		id->cm = CM_IDLE;
	}
	return -EINVAL;
}

int si_accept(struct si_id *id, const struct rdma_ucm_accept *cmd)
{
	if (id->state != STAND_IN_CONNECT ||
	    (id->cm != CM_REQ_RCVD && id->cm != CM_SIDR_RCVD))
		return refuse(id);
	if (!IS_IWARP(id) && cmd->conn_param.private_data_len > room(id, ACCEPT))
		return refuse(id);
	id->uid = cmd->uid;
	id->own = cmd->conn_param;
	id->own_ece = cmd->ece;
	if (id->cm == CM_SIDR_RCVD)
		accept_sidr(id);
	else
		accept_req(id);
	return 0;
}

int si_establish(struct si_id *id)
{
	if (id->state != STAND_IN_CONNECT || id->cm != CM_REP_RCVD)
		return refuse(id);
	id->cm = CM_ESTABLISHED;
	if (id->peer && id->peer->cm == CM_REP_SENT)
		established(id->peer, NULL);
	return 0;
}

int si_reject(struct si_id *id, const struct rdma_ucm_reject *cmd)
{
	const int reason = cmd->reason ? cmd->reason : REJ_CONSUMER;

	if (id->cm != CM_REQ_RCVD && id->cm != CM_REP_RCVD && id->cm != CM_SIDR_RCVD)
		return -EINVAL;
	if (!IS_IWARP(id) && cmd->private_data_len > room(id, REJECT))
		return -EINVAL;
	rejected(id->peer, refusal(id, reason), cmd->private_data, cmd->private_data_len);
	id->cm = CM_IDLE;
	return 0;
}

/* ------------------------------------------------------------------------
 * Ending.
 */

static void disconnected(struct si_id *id, enum si_cm cm)
{
	tell(id, RDMA_CM_EVENT_DISCONNECTED, 0);
	if (id->state == STAND_IN_CONNECT && !IS_IWARP(id))
		id->state = STAND_IN_DISCONNECT;
	id->cm = cm;
}

/* The DREP: an end that is gone is answered for by its host. */
static void send_drep(struct si_id *id)
{
	id->cm = CM_TIMEWAIT;
	if (id->peer && id->peer->cm == CM_DREQ_SENT)
		disconnected(id->peer, CM_TIMEWAIT);
}

static void send_dreq(struct si_id *id)
{
	struct si_id *peer = id->peer;

	id->cm = CM_DREQ_SENT;
	if (!peer || peer->cm == CM_TIMEWAIT || peer->cm == CM_IDLE)
		disconnected(id, CM_TIMEWAIT);
	else if (peer->cm == CM_ESTABLISHED || peer->cm == CM_REP_SENT)
		disconnected(peer, CM_DREQ_RCVD);
}

int si_disconnect(struct si_id *id)
{
	if (id->state != STAND_IN_CONNECT && id->state != STAND_IN_DISCONNECT)
		return -EINVAL;
	if (IS_IWARP(id)) {
		if (id->cm != CM_ESTABLISHED)
			return 0;
		disconnected(id, CM_IDLE);
		if (id->peer && id->peer->cm == CM_ESTABLISHED)
			disconnected(id->peer, CM_IDLE);
		return 0;
	}
	if (id->cm == CM_ESTABLISHED)
		send_dreq(id);
	else if (id->cm == CM_DREQ_RCVD)
		send_drep(id);
	return 0;
}

int si_notify(struct si_id *id, uint32_t event)
{
	if (id->state != STAND_IN_CONNECT)
		return -EINVAL;
	if (IS_IWARP(id))
		return 0;
	if (event != IBV_EVENT_COMM_EST)
		return -EINVAL;
	if (id->cm == CM_ESTABLISHED)
		return -EISCONN;
	if (id->cm != CM_REP_SENT)
		return -EINVAL;
	established(id, NULL);
	return 0;
}

void si_cm_destroy(struct si_id *id)
{
	struct si_id *peer = id->peer;

	if (!peer || peer->peer != id)
		return;
	switch (id->cm) {
	case CM_REQ_SENT:
	case CM_SIDR_SENT:
		rejected(peer, REJ_TIMEOUT, NULL, 0);
		break;
	case CM_REQ_RCVD:
	case CM_SIDR_RCVD:
	case CM_REP_SENT:
	case CM_REP_RCVD:
		rejected(peer, refusal(id, REJ_CONSUMER), NULL, 0);
		break;
	case CM_ESTABLISHED:
		if (IS_IWARP(id))
			disconnected(peer, CM_IDLE);
		else if (peer->cm == CM_ESTABLISHED)
			disconnected(peer, CM_DREQ_RCVD);
		break;
	case CM_DREQ_RCVD:
		send_drep(id);
		break;
	default:
		break;
	}
}
