/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cm/iwcm_active.c - the active side of an iWARP connection: rdma_connect()
 * waits for the stream and sends the MPA request; the reply, or that there is
 * none, is an event.  Engine lock held.
 */
#include "config.h"

#include <errno.h>

#include "providers/soft/nic/nic.h"
#include "providers/soft/wire/address.h"
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

/* Report how the attempt ended, with the private data of the answer. */
static void report(struct iwcm *cm, int status, const struct mpa_frame *reply)
{
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
	(void)cma_post(cm->id, &event);
	if (status)
		iw_stream_close(cm);	/* last: the frame lies in its buffer */
	else
		iw_stream_handshake_done(cm);
}

void iwcm_connect_failed(struct iwcm *cm, int status, const struct mpa_frame *reply)
{
	iwcm_release_qp(cm, true);	/* siw: also one that was never connected */
	iwcm_set_state(cm, IWCM_IDLE);
	report(cm, status, reply);
}

void iwcm_reply_missing(struct sim_timer *timer)
{
	struct iwcm *cm = sim_container(timer, struct iwcm, timer);

	iwcm_connect_failed(cm, -ETIMEDOUT, NULL);
}

/* Enhanced set-up has it, and the device wants it. */
static bool asks_for_rtr(const struct iwcm *cm)
{
	return cm->enhanced && cma_rules(cm->id)->flags & POLYCM_T_PEER_TO_PEER;
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
		iwcm_connect_failed(cm, cma_rules(id)->consumer_reject_status, reply);
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
	if (asks_for_rtr(cm) && iwcm_choose_rtr(reply))
		r = iwcm_send_rtr(cm, iwcm_choose_rtr(reply));
	if (r < 0) {
		iwcm_connect_failed(cm, r, reply);
		return;
	}
	iwcm_set_state(cm, IWCM_ESTABLISHED);
	report(cm, 0, reply);
}

/* One socket for a listening address, and for a connection one pair of addresses. */
static int check_socket(const struct sim_id *id)
{
	const struct sim_id *twin;

	if (sim_socket_taken(id->node, &id->src))
		return sim_refuse(-EADDRINUSE, "a listener of another port space has this TCP port");
	twin = sim_port_twin(id->node, id->bound_ps, &id->src);
	if (twin && twin->iw && sim_addr_equal(&twin->dst.sa, &id->dst.sa) &&
	    sim_addr_port(&twin->dst.sa) == sim_addr_port(&id->dst.sa))
		return sim_refuse(-EADDRNOTAVAIL, "an id of another port space has this TCP connection");
	return 0;
}

static int check_connect(const struct sim_id *id, const struct polycm_conn_param *param)
{
	const struct ibv_device_attr *attr = &id->port->device->attr;
	size_t len = iwcm_data_len(param), limit = iwcm_limit(id, POLYCM_MSG_CONNECT);

	if (!sim_qp_find(id->port->device, id->qp_num))
		return sim_refuse(-EINVAL, "iWARP connects queue pairs, and there is no QP %u",
				  id->qp_num);
	if (len > limit && !iwcm_wraps(id, len))
		return cma_too_long(id, len, limit);
	if (param->responder_resources > attr->max_qp_rd_atom ||
	    param->initiator_depth > attr->max_qp_init_rd_atom)
		return iwcm_too_deep(-ENOMEM, id->port->device, param);
	return check_socket(id);
}

static struct mpa_frame make_request(const struct iwcm *cm, const struct polycm_conn_param *param)
{
	return (struct mpa_frame){
		.type = MPA_REQUEST,
		.revision = cm->revision,
		.enhanced = cm->enhanced,
		.ird = cm->ird,
		.ord = cm->ord,
		.peer_to_peer = asks_for_rtr(cm),
		.rtr_rdma_write = asks_for_rtr(cm),
		.rtr_rdma_read = asks_for_rtr(cm),
		.private_data_len = (uint16_t)iwcm_data_len(param),
		.private_data = param->private_data,
	};
}

static int send_request(struct iwcm *cm, const struct polycm_conn_param *param)
{
	struct mpa_frame frame = make_request(cm, param);

	if (frame.private_data_len > iwcm_limit(cm->id, POLYCM_MSG_CONNECT))
		return iwcm_send_overlong(cm, &frame);
	return iwcm_send_frame(cm, &frame);
}

static void start_reply_timer(struct iwcm *cm)
{
	sim_timer_init(&cm->timer, iwcm_reply_missing);
	sim_timer_arm(&cm->timer, sim_now() + SIM_MS(cma_rules(cm->id)->mpa_reply_timeout_ms));
}

static void take_qp(struct iwcm *cm, struct sim_qp *qp)
{
	if (!sim_qp_stream_owner(qp))
		sim_qp_stream_set_owner(qp, cm->id);
	iwcm_set_state(cm, IWCM_CONN_SENT);
}

/* siw: the program waits until the stream is open, or fails to open. */
static int connect_waiting(struct iwcm *cm, const struct polycm_conn_param *param)
{
	struct sim_qp *qp;
	int r;

	r = iw_stream_connect(cm);
	if (r < 0)
		return r;
	qp = iwcm_qp(cm);
	if (!qp) {
		iw_stream_close(cm);
		return sim_refuse(-EINVAL, "the queue pair was destroyed meanwhile");
	}
	take_qp(cm, qp);
	start_reply_timer(cm);
	r = send_request(cm, param);
	if (r < 0) {
		iwcm_release_qp(cm, false);
		iwcm_set_state(cm, IWCM_IDLE);
		iw_stream_close(cm);
	}
	return r;
}

/* Hardware: how that ends is an event. */
static int connect_later(struct iwcm *cm, const struct polycm_conn_param *param)
{
	struct mpa_frame frame = make_request(cm, param);
	int r;

	if (iwcm_data_len(param) > iwcm_limit(cm->id, POLYCM_MSG_CONNECT))
		return cma_too_long(cm->id, iwcm_data_len(param),
				    iwcm_limit(cm->id, POLYCM_MSG_CONNECT));
	r = iw_stream_start(cm);
	if (r < 0)
		return r;
	/* Cannot fail: lengths and revision were checked. */
	r = mpa_encode(&frame, cm->handshake->bytes, sizeof(cm->handshake->bytes),
		       &cm->handshake->len);
	if (r < 0)
		iw_stream_close(cm);
	else
		take_qp(cm, iwcm_qp(cm));	/* there: check_connect() */
	return r;
}

void iwcm_active_opened(struct iwcm *cm)
{
	int r;

	start_reply_timer(cm);
	r = iw_send(cm, SEG_DATA, cm->handshake->bytes, cm->handshake->len);
	cm->handshake->len = 0;
	if (r < 0)
		iwcm_connect_failed(cm, r, NULL);
}

void iwcm_open_failed(struct iwcm *cm)
{
	int status = cm->error == -ECONNREFUSED ? cma_rules(cm->id)->refused_status : cm->error;

	iwcm_connect_failed(cm, status, NULL);
}

int iwcm_connect(struct sim_id *id, const struct polycm_conn_param *param)
{
	const struct polycm_transport *rules = cma_rules(id);
	struct iwcm *cm;
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
	sim_timer_init(&cm->timer, iwcm_reply_missing);
	/* The RTR may be a read. */
	if (asks_for_rtr(cm) && !cm->ord)
		cm->ord = 1;
	if (rules->flags & POLYCM_T_CONNECT_BLOCKS)
		r = connect_waiting(cm, param);
	else
		r = connect_later(cm, param);
	if (r < 0) {
		id->iw = NULL;
		iwcm_free(cm);
	}
	return r;
}
