/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cm/iwcm.c - the MPA engine: connects iWARP ids as kernel iwcm and its
 * software device siw do.  rdma_connect() waits for the stream, the rest comes
 * as events; there is no RTU, no TIMEWAIT and no half-closed stream; the
 * device moves the queue pair.  Here: frames, the end of a connection, and the
 * engine's table.  Engine lock held.
 */
#include "config.h"

#include <errno.h>

#include "providers/soft/nic/nic.h"
#include "iwcm.h"

struct sim_qp *iwcm_qp(const struct iwcm *cm)
{
	return sim_qp_find(cm->port->device, cm->qpn);
}

void iwcm_release_qp(struct iwcm *cm, bool error)
{
	struct sim_qp *qp = iwcm_qp(cm);

	/* A program may have named it for several ids: it is the first one's. */
	if (!qp || sim_qp_stream_owner(qp) != cm->id)
		return;
	sim_qp_stream_set_owner(qp, NULL);
	if (error)
		sim_qp_stream_error(qp);
}

void iwcm_set_state(struct iwcm *cm, enum iwcm_state state)
{
	cm->state = state;
	if (state != IWCM_CONN_SENT)
		sim_wake();
}

int iwcm_too_deep(int err, const struct sim_device *device, const struct polycm_conn_param *param)
{
	return sim_refuse(err, "responder resources %u, initiator depth %u: %s has %d and %d",
			  param->responder_resources, param->initiator_depth,
			  device->vdev.device.name, device->attr.max_qp_rd_atom,
			  device->attr.max_qp_init_rd_atom);
}

size_t iwcm_limit(const struct sim_id *id, enum polycm_msg msg)
{
	return cma_rules(id)->limit[POLYCM_KIND_RC][msg];
}

int iwcm_send_frame(struct iwcm *cm, const struct mpa_frame *frame)
{
	uint8_t buf[MPA_MAX_FRAME];
	size_t len;

	/* Cannot fail: lengths and revision were checked. */
	if (mpa_encode(frame, buf, sizeof(buf), &len) < 0) {
		iw_stream_close(cm);
		return 0;
	}
	return iw_send(cm, SEG_DATA, buf, len);
}

size_t iwcm_data_len(const struct polycm_conn_param *param)
{
	return param->private_data ? param->private_data_len : 0;
}

/* siw counts what it sends in 8 bits, its control words included, and does not check. */
bool iwcm_wraps(const struct sim_id *id, size_t len)
{
	return cma_rules(id)->mpa_revision >= MPA_REVISION_ENHANCED &&
	       len + MPA_CONTROL_SIZE > UINT8_MAX;
}

/*
 * The length of too much data wraps to a small one: the peer finds more than a frame,
 * and closes the stream.
 */
int iwcm_send_overlong(struct iwcm *cm, struct mpa_frame *frame)
{
	uint8_t buf[MPA_MAX_FRAME] = { 0 };
	size_t len = MPA_HEADER_SIZE + MPA_CONTROL_SIZE + frame->private_data_len, used;
	bool request = frame->type == MPA_REQUEST;

	sim_core->log(POLYCM_LOG_WARN, cm->id->id, "%u bytes of private data where %s takes %zu: "
		      "the peer will find no %s", frame->private_data_len, cma_rules(cm->id)->name,
		      iwcm_limit(cm->id, request ? POLYCM_MSG_CONNECT : POLYCM_MSG_REJECT),
		      request ? "request" : "answer");
	frame->enhanced = false;
	frame->private_data_len = (uint8_t)(frame->private_data_len + MPA_CONTROL_SIZE);
	if (mpa_encode(frame, buf, sizeof(buf), &used) < 0 || used >= len) {
		iw_stream_close(cm);
		return 0;
	}
	return iw_send(cm, SEG_DATA, buf, len);
}

void iwcm_input(struct iwcm *cm)
{
	struct mpa_frame frame;
	size_t used;
	int r;

	r = mpa_decode(cm->handshake->bytes, cm->handshake->len, &frame, &used);
	if (r == -EAGAIN)
		return;
	if (!cm->passive && cm->state != IWCM_CONN_SENT) {
		iw_stream_close(cm);	/* no request was sent: iwcm_connect() notices */
		return;
	}
	if (!r && (used != cm->handshake->len ||
		   frame.type != (cm->passive ? MPA_REQUEST : MPA_REPLY) ||
		   frame.private_data_len > UINT8_MAX))
		r = -EPROTO;
	if (r < 0) {
		if (cm->passive) {
			iw_stream_close(cm);
			iwcm_free(cm);
		} else {
			iwcm_connect_failed(cm, -EINVAL, NULL);
		}
		return;
	}
	if (cm->passive)
		iwcm_got_request(cm, &frame);
	else
		iwcm_got_reply(cm, &frame);
}

/* There is no RTU. */
static int iwcm_establish(struct sim_id *id)
{
	(void)id;
	return sim_refuse(-EINVAL, "iWARP has no rdma_establish");
}

static int iwcm_notify(struct sim_id *id, enum ibv_event_type event)
{
	(void)id;
	(void)event;
	return 0;
}

/* --- The end of a connection. --- */

static bool is_connected(const struct iwcm *cm)
{
	return cm->state == IWCM_ACCEPTED || cm->state == IWCM_ESTABLISHED;
}

static void disconnected(struct iwcm *cm)
{
	iwcm_set_state(cm, IWCM_IDLE);
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
		iwcm_connect_failed(cm, -ECONNRESET, NULL);
		break;
	case IWCM_ACCEPTED:
	case IWCM_ESTABLISHED:
		iwcm_release_qp(cm, true);
		disconnected(cm);
		break;
	case IWCM_CONN_RECV:		/* accept and reject notice */
	case IWCM_IDLE:
		break;
	}
}

bool sim_iw_qp_connecting(const struct sim_id *id)
{
	return id->iw && id->iw->state == IWCM_CONN_SENT;
}

void sim_iw_qp_closed(struct sim_id *id, bool by_program)
{
	struct iwcm *cm = id->iw;

	if (!cm)
		return;
	if (cm->state == IWCM_CONN_SENT) {
		/* siw checks a QP that the program moved only when the answer comes. */
		if (!by_program)
			iwcm_connect_failed(cm, -EINVAL, NULL);
		else if (iwcm_qp(cm))
			sim_qp_stream_set_owner(iwcm_qp(cm), id);
	} else if (is_connected(cm)) {
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
	iwcm_release_qp(cm, true);
	iw_stream_close(cm);
}

static int iwcm_disconnect(struct sim_id *id)
{
	struct iwcm *cm = id->iw;

	/* The kernel waits for an attempt that is under way; its timer bounds that. */
	if (cm->state == IWCM_CONN_SENT)
		sim_core->log(POLYCM_LOG_WARN, NULL,
			      "rdma_disconnect of id %u waits until the attempt to connect is over, as "
			      "the kernel's iWARP does: for seconds, if nobody answers", id->number);
	sim_wait(not_connecting, cm, SIM_NEVER);
	if (is_connected(cm)) {
		hang_up(cm);
		disconnected(cm);
	}
	return 0;
}

static void iwcm_close(struct sim_id *id)
{
	struct iwcm *cm = id->iw;

	if (cm->state == IWCM_CONN_RECV && cm->stream == IW_STREAM_OPEN) {
		iwcm_send_reject(cm, NULL, 0);
	} else if (is_connected(cm)) {
		hang_up(cm);
	} else if (cm->state == IWCM_CONN_SENT) {
		return;			/* iwcm_stop() waits for the answer */
	}
	iwcm_set_state(cm, IWCM_IDLE);
}

static void iwcm_stop(struct sim_id *id)
{
	struct iwcm *cm = id->iw;

	sim_wait(not_connecting, cm, SIM_NEVER);
	if (cm->state == IWCM_CONN_SENT)
		iwcm_release_qp(cm, false);
	else if (is_connected(cm))
		hang_up(cm);
	iw_stream_close(cm);
	iwcm_set_state(cm, IWCM_IDLE);
}

void iwcm_free(struct iwcm *cm)
{
	iw_stream_handshake_done(cm);
	if (iw_stream_keeps(cm))
		return;
	sim_timer_disarm(&cm->timer);
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
			return sim_refuse(-EINVAL, "state %d is none of INIT, RTR and RTS",
					  (int)attr->qp_state);
		}
	}
	*ret_mask = mask | IBV_QP_PORT;
	return 0;
}

static void inspect(const struct sim_id *id, const struct polycm_report *to)
{
	if (id->iw)
		to->put(to, "SYNs sent", "%u", id->iw->syns);
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
	.inspect = inspect,
};
