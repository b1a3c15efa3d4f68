/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cm/iwcm_active.c - the active side of an iWARP connection: rdma_connect()
 * waits for the stream and sends the MPA request; the reply, or that there is
 * none, is an event.  Engine lock held.
 */
#include "config.h"

#include <errno.h>

#include "../nic/nic.h"
#include "iwcm.h"

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
void iwcm_connect_failed(struct iwcm *cm, int status, const struct mpa_frame *reply)
{
	struct sim_id *id = cm->id;

	iwcm_release_qp(cm, true);	/* siw: also one that was never connected */
	iwcm_set_state(cm, IWCM_IDLE);
	post_reply(id, status, reply);
	iw_stream_close(cm);		/* last: the frame lies in its buffer */
}

static void reply_missing(struct sim_timer *timer)
{
	struct iwcm *cm = (struct iwcm *)((char *)timer - offsetof(struct iwcm, timer));

	iwcm_connect_failed(cm, -ETIMEDOUT, NULL);
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

void iwcm_got_reply(struct iwcm *cm, const struct mpa_frame *reply)
{
	struct sim_id *id = cm->id;
	struct sim_qp *qp = iwcm_qp(cm);
	int r;

	sim_timer_disarm(&cm->timer);
	if (reply->reject) {
		iwcm_connect_failed(cm, -ECONNRESET, reply);
		return;
	}
	if (reply->markers || reply->crc) {
		iwcm_connect_failed(cm, -ECONNREFUSED, reply);
		return;
	}
	r = take_depths(cm, reply);
	if (!r && (!qp || sim_qp_stream_owner(qp) != id || sim_qp_state(qp) > IBV_QPS_RTR))
		r = -EINVAL;
	if (!r && sim_qp_stream_connect(qp, cm->peer, cm->peer_qpn, (uint8_t)cm->ird,
					(uint8_t)cm->ord) < 0)
		r = -EINVAL;
	if (r < 0) {
		iwcm_connect_failed(cm, r, reply);
		return;
	}
	iwcm_set_state(cm, IWCM_ESTABLISHED);
	post_reply(id, 0, reply);
	iw_stream_handshake_done(cm);
}

/* siw counts what it sends in 8 bits, its control words included, and does not look. */
static bool wraps(const struct sim_id *id, size_t len)
{
	return cma_rules(id)->mpa_revision >= MPA_REVISION_ENHANCED &&
	       len + MPA_CONTROL_SIZE > UINT8_MAX;
}

static int check_connect(const struct sim_id *id, const struct polycm_conn_param *param)
{
	const struct ibv_device_attr *attr = &id->port->device->attr;
	size_t len = iwcm_data_len(param), limit = iwcm_limit(id, POLYCM_MSG_CONNECT);

	if (!sim_qp_find(id->port->device, id->qp_num))
		return sim_refuse(-EINVAL, "iWARP connects queue pairs, and there is no QP %u",
				  id->qp_num);
	if (len > limit && !wraps(id, len))
		return cma_too_long(id, len, limit);
	if (param->responder_resources > attr->max_qp_rd_atom ||
	    param->initiator_depth > attr->max_qp_init_rd_atom)
		return -ENOMEM;
	return 0;
}

/*
 * The length of too much data begins at 0 again: the peer finds more than a
 * request in what comes, and hangs up.
 */
static void send_overlong(struct iwcm *cm, struct mpa_frame *frame)
{
	uint8_t buf[MPA_MAX_FRAME] = { 0 };
	size_t len = MPA_HEADER_SIZE + MPA_CONTROL_SIZE + frame->private_data_len, used;

	sim_core->log(POLYCM_LOG_WARN, cm->id->id, "%u bytes of private data where %s takes %zu: "
		      "the peer will find no request", frame->private_data_len,
		      cma_rules(cm->id)->name, iwcm_limit(cm->id, POLYCM_MSG_CONNECT));
	frame->enhanced = false;
	frame->private_data_len = (uint8_t)(frame->private_data_len + MPA_CONTROL_SIZE);
	if (mpa_encode(frame, buf, sizeof(buf), &used) < 0 || used >= len)
		iw_stream_close(cm);
	else
		iw_stream_send(cm, buf, len);
}

static void send_request(struct iwcm *cm, const struct polycm_conn_param *param)
{
	struct mpa_frame frame = {
		.type = MPA_REQUEST,
		.revision = cm->revision,
		.enhanced = cm->enhanced,
		.ird = cm->ird,
		.ord = cm->ord,
		.private_data_len = (uint16_t)iwcm_data_len(param),
		.private_data = param->private_data,
	};

	if (frame.private_data_len > iwcm_limit(cm->id, POLYCM_MSG_CONNECT))
		send_overlong(cm, &frame);
	else
		iwcm_send_frame(cm, &frame);
}

int iwcm_connect(struct sim_id *id, const struct polycm_conn_param *param)
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
	qp = iwcm_qp(cm);
	if (!qp) {		/* destroyed meanwhile */
		r = -EINVAL;
		goto err_qp;
	}
	if (!sim_qp_stream_owner(qp))
		sim_qp_stream_set_owner(qp, id);
	iwcm_set_state(cm, IWCM_CONN_SENT);
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
