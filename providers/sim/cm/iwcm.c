/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cm/iwcm.c - the MPA engine: connects iWARP ids as kernel iwcm and its
 * software device siw do.  rdma_connect() waits for the stream, the rest comes
 * as events; there is no RTU, no TIMEWAIT and no half-closed stream; the
 * device moves the queue pair.  Engine lock held.
 */
#include "config.h"

#include <errno.h>

#include "../nic/nic.h"
#include "iwcm.h"

#define QPN_MASK 0xffffffu

/* It may have been destroyed; then its owner was told. */
static struct sim_qp *qp_of(const struct iwcm *cm)
{
	return sim_qp_find(cm->port->device, cm->qpn);
}

/* The queue pair has no connection any more; errored if its stream is gone. */
static void release_qp(struct iwcm *cm, bool error)
{
	struct sim_qp *qp = qp_of(cm);

	if (!qp)
		return;
	sim_qp_stream_set_owner(qp, NULL);
	if (error)
		sim_qp_stream_error(qp);
}

static void set_state(struct iwcm *cm, enum iwcm_state state)
{
	cm->state = state;
	if (state != IWCM_CONN_SENT)
		sim_wake();
}

static uint16_t least(uint16_t value, int limit)
{
	return limit >= 0 && limit < value ? (uint16_t)limit : value;
}

static size_t limit_of(const struct sim_id *id, enum polycm_msg msg)
{
	return cma_rules(id)->limit[POLYCM_KIND_RC][msg];
}

static void send_frame(struct iwcm *cm, const struct mpa_frame *frame)
{
	uint8_t buf[MPA_MAX_FRAME];
	size_t len;

	/* Lengths and revision were checked; a frame that cannot be is no stream. */
	if (mpa_encode(frame, buf, sizeof(buf), &len) < 0)
		iw_stream_close(cm);
	else
		iw_stream_send(cm, buf, len);
}

/* --- The active side. --- */

/* Kernel cma_iw_handler(): which event a CONNECT_REPLY of this status is. */
static enum rdma_cm_event_type reply_event(int status)
{
	switch (status) {
	case 0:
		return RDMA_CM_EVENT_ESTABLISHED;
	case -ECONNRESET:
	case -ECONNREFUSED:
		return RDMA_CM_EVENT_REJECTED;
	case -ETIMEDOUT:
		return RDMA_CM_EVENT_UNREACHABLE;
	default:
		return RDMA_CM_EVENT_CONNECT_ERROR;
	}
}

static void post_reply(struct sim_id *id, int status, const struct mpa_frame *reply)
{
	const struct iwcm *cm = id->iw;
	struct polycm_event event = {
		.size = sizeof(event),
		.type = reply_event(status),
		.status = status,
	};

	if (reply) {
		event.param.conn.private_data = reply->private_data;
		event.param.conn.private_data_len = (uint8_t)reply->private_data_len;
	}
	if (!status) {
		/* The other way round than on InfiniBand, as the kernel has it. */
		event.param.conn.initiator_depth = (uint8_t)cm->ird;
		event.param.conn.responder_resources = (uint8_t)cm->ord;
	}
	cma_post(id, &event);
}

/* The attempt is over. */
static void connect_failed(struct iwcm *cm, int status, const struct mpa_frame *reply)
{
	struct sim_id *id = cm->id;

	release_qp(cm, false);
	set_state(cm, IWCM_IDLE);
	post_reply(id, status, reply);
	iw_stream_close(cm);		/* last: the frame lies in its buffer */
}

static void reply_missing(struct sim_timer *timer)
{
	struct iwcm *cm = (struct iwcm *)((char *)timer - offsetof(struct iwcm, timer));

	connect_failed(cm, -ETIMEDOUT, NULL);
}

/* siw: the responder's depths are taken as they come, within the device's. */
static int take_depths(struct iwcm *cm, const struct mpa_frame *reply)
{
	const struct ibv_device_attr *attr = &cm->port->device->attr;

	if (!cm->enhanced)
		return 0;
	if (!reply->enhanced)
		return -ECONNRESET;
	if (reply->ord > cm->ird && reply->ord > (unsigned int)attr->max_qp_rd_atom)
		return -EINVAL;
	cm->ird = reply->ord;
	cm->ord = reply->ird;
	return 0;
}

static void got_reply(struct iwcm *cm, const struct mpa_frame *reply)
{
	struct sim_id *id = cm->id;
	struct sim_qp *qp = qp_of(cm);
	int r;

	sim_timer_disarm(&cm->timer);
	if (reply->reject) {
		connect_failed(cm, -ECONNRESET, reply);
		return;
	}
	if (reply->markers || reply->crc) {
		connect_failed(cm, -ECONNREFUSED, reply);
		return;
	}
	r = take_depths(cm, reply);
	if (!r && (!qp || sim_qp_state(qp) > IBV_QPS_RTR))
		r = -EINVAL;
	if (!r && sim_qp_stream_connect(qp, cm->peer, cm->peer_qpn, (uint8_t)cm->ird,
					(uint8_t)cm->ord) < 0)
		r = -EINVAL;
	if (r < 0) {
		connect_failed(cm, r, reply);
		return;
	}
	set_state(cm, IWCM_ESTABLISHED);
	post_reply(id, 0, reply);
	iw_stream_handshake_done(cm);
}

static size_t data_len(const struct polycm_conn_param *param)
{
	return param->private_data ? param->private_data_len : 0;
}

static int check_connect(const struct sim_id *id, const struct polycm_conn_param *param)
{
	const struct ibv_device_attr *attr = &id->port->device->attr;

	if (!sim_qp_find(id->port->device, id->qp_num) ||
	    data_len(param) > limit_of(id, POLYCM_MSG_CONNECT))
		return -EINVAL;
	if (param->responder_resources > attr->max_qp_rd_atom ||
	    param->initiator_depth > attr->max_qp_init_rd_atom)
		return -ENOMEM;
	return 0;
}

static void send_request(struct iwcm *cm, const struct polycm_conn_param *param)
{
	struct mpa_frame frame = {
		.type = MPA_REQUEST,
		.revision = cm->revision,
		.enhanced = cm->enhanced,
		.ird = cm->ird,
		.ord = cm->ord,
		.private_data_len = (uint16_t)data_len(param),
		.private_data = param->private_data,
	};

	send_frame(cm, &frame);
}

static int iwcm_connect(struct sim_id *id, const struct polycm_conn_param *param)
{
	const struct polycm_transport *rules = cma_rules(id);
	struct iwcm *cm;
	struct sim_qp *qp;
	int r;

	r = check_connect(id, param);
	if (r < 0)
		return r;
	cm = sim_core->alloc(sizeof(*cm));
	if (!cm)
		return -ENOMEM;
	cm->id = id;
	cm->qpn = id->qp_num;
	cm->revision = rules->mpa_revision;
	cm->enhanced = cm->revision >= MPA_REVISION_ENHANCED;
	cm->ird = param->responder_resources;
	cm->ord = param->initiator_depth;
	id->iw = cm;
	r = iw_stream_connect(cm);
	if (r < 0)
		goto err_connect;
	qp = qp_of(cm);
	if (!qp) {		/* destroyed meanwhile */
		r = -EINVAL;
		goto err_qp;
	}
	sim_qp_stream_set_owner(qp, id);
	set_state(cm, IWCM_CONN_SENT);
	sim_timer_init(&cm->timer, reply_missing);
	sim_timer_arm(&cm->timer, sim_now() + SIM_MS(rules->mpa_reply_timeout_ms));
	send_request(cm, param);
	return 0;

err_qp:
	iw_stream_close(cm);
err_connect:
	id->iw = NULL;
	iwcm_free(cm);
	return r;
}

/* --- The passive side. --- */

/* An answer with the reject flag, then the end of the stream. */
static void send_reject(struct iwcm *cm, const void *data, uint8_t len)
{
	struct mpa_frame frame = {
		.type = MPA_REPLY,
		.revision = cm->revision,
		.enhanced = cm->enhanced,
		.reject = true,
		.ird = cm->ird,
		.ord = cm->ord,
		.private_data_len = data ? len : 0,
		.private_data = data,
	};

	send_frame(cm, &frame);
	iw_stream_close(cm);
}

static void request_missing(struct sim_timer *timer)
{
	struct iwcm *cm = (struct iwcm *)((char *)timer - offsetof(struct iwcm, timer));

	iw_stream_close(cm);
	iwcm_free(cm);
}

void iwcm_opened(struct iwcm *cm)
{
	uint32_t wait = cm->port->device->rules->mpa_request_timeout_ms;

	sim_timer_init(&cm->timer, request_missing);
	sim_timer_arm(&cm->timer, sim_now() + SIM_MS(wait));
}

static int post_request(struct iwcm *cm, const struct mpa_frame *request)
{
	const struct ibv_device_attr *attr = &cm->port->device->attr;
	const struct iw_handshake *handshake = cm->handshake;
	struct sim_id *listener = NULL, *child;
	struct polycm_event event = {
		.size = sizeof(event),
		.type = RDMA_CM_EVENT_CONNECT_REQUEST,
	};
	unsigned int slot;
	int r;

	if (!iw_stream_find_listener(cm->port, &handshake->local, &slot, &listener) || !listener ||
	    listener->state != CMA_LISTEN)
		return -ECONNREFUSED;
	r = cma_child(listener, cm->port, &handshake->remote, &handshake->local, &child);
	if (r < 0)
		return r;
	if (request->enhanced) {
		cm->ord = least(request->ird, attr->max_qp_init_rd_atom);
		cm->ird = least(request->ord, attr->max_qp_rd_atom);
	}
	event.param.conn.initiator_depth = (uint8_t)cm->ord;
	event.param.conn.responder_resources = (uint8_t)cm->ird;
	event.param.conn.private_data = request->private_data;
	event.param.conn.private_data_len = (uint8_t)request->private_data_len;
	r = cma_post_request(listener, child, &event);
	if (r < 0)
		return r;
	cm->id = child;
	child->iw = cm;
	set_state(cm, IWCM_CONN_RECV);
	return 0;
}

static void got_request(struct iwcm *cm, const struct mpa_frame *request)
{
	sim_timer_disarm(&cm->timer);
	cm->revision = request->revision;
	cm->enhanced = request->enhanced;
	if (!request->markers && !request->crc && post_request(cm, request) == 0) {
		iw_stream_handshake_done(cm);
		return;
	}
	send_reject(cm, NULL, 0);
	iwcm_free(cm);
}

void iwcm_input(struct iwcm *cm)
{
	struct mpa_frame frame;
	size_t used;
	int r;

	r = mpa_decode(cm->handshake->bytes, cm->handshake->len, &frame, &used);
	if (r == -EAGAIN)
		return;
	if (!r && (used != cm->handshake->len ||
		   frame.type != (cm->passive ? MPA_REQUEST : MPA_REPLY) ||
		   frame.private_data_len > UINT8_MAX))
		r = -EPROTO;
	if (r < 0) {
		if (cm->passive) {
			iw_stream_close(cm);
			iwcm_free(cm);
		} else {
			connect_failed(cm, -EINVAL, NULL);
		}
		return;
	}
	if (cm->passive)
		got_request(cm, &frame);
	else
		got_reply(cm, &frame);
}

/* What siw checks before it answers; cm->ird and ord become the agreed ones. */
static int agree(struct iwcm *cm, const struct polycm_conn_param *param)
{
	const struct ibv_device_attr *attr = &cm->port->device->attr;
	uint16_t ird = param->responder_resources, ord = param->initiator_depth;

	if (ird > attr->max_qp_rd_atom || ord > attr->max_qp_init_rd_atom)
		return -EINVAL;
	if (data_len(param) > limit_of(cm->id, POLYCM_MSG_ACCEPT))
		return -EINVAL;
	if (cm->enhanced) {
		ord = ord > cm->ord ? cm->ord : ord;
		if (ird < cm->ird)
			ird = cm->ird;	/* the device can: it was lowered to that */
	}
	cm->ird = ird;
	cm->ord = ord;
	return 0;
}

static int answer(struct iwcm *cm, struct sim_qp *qp, const struct polycm_conn_param *param)
{
	struct mpa_frame frame = {
		.type = MPA_REPLY,
		.revision = cm->revision,
		.enhanced = cm->enhanced,
		.private_data_len = (uint16_t)data_len(param),
		.private_data = param->private_data,
	};
	int r;

	if (cm->stream != IW_STREAM_OPEN)
		return -ECONNRESET;
	if (sim_qp_state(qp) > IBV_QPS_RTR)
		return -EINVAL;
	r = agree(cm, param);
	if (r < 0)
		return r;
	r = sim_qp_stream_connect(qp, cm->peer, cm->peer_qpn, (uint8_t)cm->ird, (uint8_t)cm->ord);
	if (r < 0)
		return r;
	cm->qpn = cm->id->qp_num = param->qp_num & QPN_MASK;
	frame.ird = cm->ird;
	frame.ord = cm->ord;
	send_frame(cm, &frame);
	return 0;
}

static int iwcm_accept(struct sim_id *id, const struct polycm_conn_param *param)
{
	struct iwcm *cm = id->iw;
	struct polycm_event event = {
		.size = sizeof(event),
		.type = RDMA_CM_EVENT_ESTABLISHED,
	};
	struct sim_qp *qp;
	int r;

	if (!cm || cm->state != IWCM_CONN_RECV)
		return -EINVAL;
	qp = sim_qp_find(id->port->device, param->qp_num & QPN_MASK);
	if (!qp)
		return -EINVAL;		/* the request stays, and is rejected */
	r = answer(cm, qp, param);
	if (r < 0) {
		set_state(cm, IWCM_IDLE);
		iw_stream_close(cm);
		return r;
	}
	sim_qp_stream_set_owner(qp, id);
	set_state(cm, IWCM_ESTABLISHED);
	event.param.conn.initiator_depth = (uint8_t)cm->ird;
	event.param.conn.responder_resources = (uint8_t)cm->ord;
	cma_post(id, &event);
	return 0;
}

static int iwcm_reject(struct sim_id *id, const void *data, uint8_t len, uint8_t reason)
{
	struct iwcm *cm = id->iw;

	(void)reason;			/* MPA has one bit for it */
	if (cm->state != IWCM_CONN_RECV || (data && len > limit_of(id, POLYCM_MSG_REJECT)))
		return -EINVAL;
	set_state(cm, IWCM_IDLE);
	if (cm->stream != IW_STREAM_OPEN)
		return -ECONNRESET;
	send_reject(cm, data, len);
	return 0;
}

/* There is no RTU. */
static int iwcm_establish(struct sim_id *id)
{
	(void)id;
	return -EINVAL;
}

static int iwcm_notify(struct sim_id *id, enum ibv_event_type event)
{
	(void)id;
	(void)event;
	return 0;
}

/* --- The end of a connection. --- */

static void disconnected(struct iwcm *cm)
{
	set_state(cm, IWCM_IDLE);
	cma_post_simple(cm->id, RDMA_CM_EVENT_DISCONNECTED, 0);
}

void iwcm_closed(struct iwcm *cm)
{
	if (!cm->id) {
		iwcm_free(cm);
		return;
	}
	switch (cm->state) {
	case IWCM_CONN_SENT:
		connect_failed(cm, -ECONNRESET, NULL);
		break;
	case IWCM_ESTABLISHED:
		release_qp(cm, true);
		disconnected(cm);
		break;
	case IWCM_CONN_RECV:		/* accept and reject will find out */
	case IWCM_IDLE:
		break;
	}
}

void sim_iw_qp_closed(struct sim_id *id, bool by_program)
{
	struct iwcm *cm = id->iw;

	(void)by_program;		/* siw reports both alike */
	if (!cm)
		return;
	if (cm->state == IWCM_CONN_SENT) {
		connect_failed(cm, -EINVAL, NULL);
	} else if (cm->state == IWCM_ESTABLISHED) {
		iw_stream_close(cm);
		disconnected(cm);
	}
}

static bool not_connecting(void *arg)
{
	const struct iwcm *cm = arg;

	return cm->state != IWCM_CONN_SENT;
}

static void hang_up(struct iwcm *cm)
{
	release_qp(cm, true);
	iw_stream_close(cm);
}

static int iwcm_disconnect(struct sim_id *id)
{
	struct iwcm *cm = id->iw;

	/* The kernel waits for an attempt that is under way; its timer bounds that. */
	sim_wait(not_connecting, cm, SIM_NEVER);
	if (cm->state == IWCM_ESTABLISHED) {
		hang_up(cm);
		disconnected(cm);
	}
	return 0;
}

static void iwcm_close(struct sim_id *id)
{
	struct iwcm *cm = id->iw;

	if (cm->state == IWCM_CONN_RECV && cm->stream == IW_STREAM_OPEN) {
		send_reject(cm, NULL, 0);
	} else if (cm->state == IWCM_ESTABLISHED) {
		hang_up(cm);
	} else if (cm->state == IWCM_CONN_SENT) {
		return;			/* iwcm_stop() waits for the answer */
	}
	set_state(cm, IWCM_IDLE);
}

static void iwcm_stop(struct sim_id *id)
{
	struct iwcm *cm = id->iw;

	sim_wait(not_connecting, cm, SIM_NEVER);
	if (cm->state == IWCM_CONN_SENT)
		release_qp(cm, false);
	else if (cm->state == IWCM_ESTABLISHED)
		hang_up(cm);
	iw_stream_close(cm);
	set_state(cm, IWCM_IDLE);
}

void iwcm_free(struct iwcm *cm)
{
	sim_timer_disarm(&cm->timer);
	iw_stream_handshake_done(cm);
	sim_core->free(cm);
}

static void iwcm_free_id(struct sim_id *id)
{
	if (!id->iw)
		return;
	iw_stream_close(id->iw);
	iwcm_free(id->iw);
	id->iw = NULL;
}

/* Kernel iwcm: RTR asks for what INIT has, RTS for nothing. */
static int iwcm_init_qp_attr(struct sim_id *id, struct ibv_qp_attr *attr, int *ret_mask)
{
	int mask = IBV_QP_STATE | IBV_QP_ACCESS_FLAGS;

	attr->port_num = id->port->num;
	attr->qp_access_flags = 0;
	if (id->iw) {
		switch (attr->qp_state) {
		case IBV_QPS_INIT:
		case IBV_QPS_RTR:
			attr->qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;
			break;
		case IBV_QPS_RTS:
			mask = 0;
			break;
		default:
			return -EINVAL;
		}
	}
	*ret_mask = mask | IBV_QP_PORT;
	return 0;
}

const struct cm_engine sim_iwcm_engine = {
	.connect = iwcm_connect,
	.accept = iwcm_accept,
	.reject = iwcm_reject,
	.establish = iwcm_establish,
	.disconnect = iwcm_disconnect,
	.notify = iwcm_notify,
	.init_qp_attr = iwcm_init_qp_attr,
	.close = iwcm_close,
	.stop = iwcm_stop,
	.free = iwcm_free_id,
};
