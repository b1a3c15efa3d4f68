/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cm/iwcm_passive.c - the passive side of an iWARP connection: the MPA request
 * becomes an id for the listener's program, whose answer is the reply.  Engine
 * lock held.
 */
#include "config.h"

#include <errno.h>

#include "providers/soft/nic/nic.h"
#include "iwcm.h"

static uint16_t least(uint16_t value, int limit)
{
	return limit >= 0 && limit < value ? (uint16_t)limit : value;
}

void iwcm_send_reject(struct iwcm *cm, const void *data, uint8_t len)
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

	/* If there is no memory for it, the end of the stream says the same. */
	if (frame.private_data_len > cm->port->device->rules->limit[POLYCM_KIND_RC][POLYCM_MSG_REJECT])
		(void)iwcm_send_overlong(cm, &frame);
	else
		(void)iwcm_send_frame(cm, &frame);
	iw_stream_close(cm);
}

void iwcm_request_missing(struct sim_timer *timer)
{
	struct iwcm *cm = sim_container(timer, struct iwcm, timer);

	iw_stream_close(cm);
	iwcm_free(cm);
}

void iwcm_opened(struct iwcm *cm)
{
	uint32_t wait = cm->port->device->rules->mpa_request_timeout_ms;

	sim_timer_init(&cm->timer, iwcm_request_missing);
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

	if (!sim_find_socket(cm->port->device->node, &handshake->local.sa, &slot, &listener) ||
	    !listener || listener->state != CMA_LISTEN)
		return -ECONNREFUSED;
	/* A wildcard of IPv6 takes streams of IPv4, and siw refuses their requests. */
	if (listener->src.sa.sa_family != handshake->local.sa.sa_family) {
		sim_core->log(POLYCM_LOG_WARN, listener->id,
			      "a request over IPv4 is refused: iWARP takes none on the IPv6 wildcard");
		return -ECONNREFUSED;
	}
	r = cma_child(listener, cm->port, &handshake->remote, &handshake->local, &child);
	if (r < 0)
		return r;
	if (request->enhanced) {
		cm->rtr = (uint8_t)iwcm_choose_rtr(request);
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
	iwcm_set_state(cm, IWCM_CONN_RECV);
	return 0;
}

void iwcm_got_request(struct iwcm *cm, const struct mpa_frame *request)
{
	sim_timer_disarm(&cm->timer);
	cm->revision = request->revision;
	cm->enhanced = request->enhanced;
	if (!request->markers && !request->crc && post_request(cm, request) == 0) {
		iw_stream_handshake_done(cm);
		return;
	}
	iwcm_send_reject(cm, NULL, 0);
	iwcm_free(cm);
}

/* What siw checks before it answers; cm->ird and ord become the agreed ones. */
static int agree(struct iwcm *cm, const struct polycm_conn_param *param)
{
	const struct ibv_device_attr *attr = &cm->port->device->attr;
	uint16_t ird = param->responder_resources, ord = param->initiator_depth;
	size_t limit = iwcm_limit(cm->id, POLYCM_MSG_ACCEPT);

	if (ird > attr->max_qp_rd_atom || ord > attr->max_qp_init_rd_atom)
		return iwcm_too_deep(-EINVAL, cm->port->device, param);
	if (iwcm_data_len(param) > limit)
		return cma_too_long(cm->id, iwcm_data_len(param), limit);
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
		.private_data_len = (uint16_t)iwcm_data_len(param),
		.private_data = param->private_data,
	};
	int r;

	if (cm->stream != IW_STREAM_OPEN)
		return sim_refuse(-ECONNRESET, "the peer has closed its stream");
	if (sim_qp_stream_owner(qp) || sim_qp_state(qp) > IBV_QPS_RTR)
		return sim_refuse(-EINVAL, "the QP is connected, being connected or in error");
	r = agree(cm, param);
	if (r < 0)
		return r;
	r = sim_qp_stream_connect(qp, cm->peer, cm->peer_qpn, (uint8_t)cm->ird, (uint8_t)cm->ord);
	if (r < 0)
		return r;
	cm->qpn = cm->id->qp_num = param->qp_num & CMA_QPN_MASK;
	frame.ird = cm->ird;
	frame.ord = cm->ord;
	iwcm_put_rtr(&frame, (enum iwcm_rtr)cm->rtr);
	r = iwcm_send_frame(cm, &frame);
	if (r < 0)
		sim_qp_stream_error(qp);
	return r;
}

void iwcm_established(struct iwcm *cm)
{
	const struct polycm_event event = {
		.size = sizeof(event),
		.type = RDMA_CM_EVENT_ESTABLISHED,
		.param.conn = {
			.initiator_depth = (uint8_t)cm->ird,
			.responder_resources = (uint8_t)cm->ord,
		},
	};

	iwcm_set_state(cm, IWCM_ESTABLISHED);
	(void)cma_post(cm->id, &event);
}

int iwcm_accept(struct sim_id *id, const struct polycm_conn_param *param)
{
	struct iwcm *cm = id->iw;
	struct sim_qp *qp;
	int r;

	if (!cm || cm->state != IWCM_CONN_RECV)
		return sim_refuse(-EINVAL, "no request waits on this id");
	qp = sim_qp_find(id->port->device, param->qp_num & CMA_QPN_MASK);
	if (!qp)
		/* The request stays, and is rejected. */
		return sim_refuse(-EINVAL, "iWARP connects queue pairs, and there is no QP %u",
				  param->qp_num & CMA_QPN_MASK);
	r = answer(cm, qp, param);
	if (r < 0) {
		iwcm_set_state(cm, IWCM_IDLE);
		iw_stream_close(cm);
		return r;
	}
	sim_qp_stream_set_owner(qp, id);
	if (cm->rtr)
		iwcm_set_state(cm, IWCM_ACCEPTED);
	else
		iwcm_established(cm);
	return 0;
}

int iwcm_reject(struct sim_id *id, const void *data, uint8_t len, uint8_t reason)
{
	struct iwcm *cm = id->iw;

	(void)reason;			/* MPA has one bit for it */
	if (cm->state != IWCM_CONN_RECV)
		return sim_refuse(-EINVAL, "no request waits on this id");
	if (data && len > iwcm_limit(id, POLYCM_MSG_REJECT) && !iwcm_wraps(id, len))
		return cma_too_long(id, len, iwcm_limit(id, POLYCM_MSG_REJECT));
	iwcm_set_state(cm, IWCM_IDLE);
	if (cm->stream != IW_STREAM_OPEN)
		return sim_refuse(-ECONNRESET, "the peer has closed its stream");
	iwcm_send_reject(cm, data, len);
	return 0;
}
