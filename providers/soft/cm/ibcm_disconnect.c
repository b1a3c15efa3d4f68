/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cm/ibcm_disconnect.c - the end of a connection: DREQ, DREP, TIMEWAIT, and what
 * destroying an id means in each state.
 *
 * A DREQ that comes in is answered by nobody but the program: a DREP goes out
 * when it disconnects or destroys the id.
 */
#include "config.h"

#include <errno.h>
#include <string.h>

#include "ibcm.h"

void ibcm_init_dreq(struct ibcm *cm, struct cm_msg *ret_msg)
{
	cm->tid = ibcm_new_tid(cm);
	ibcm_init_msg(cm, ret_msg, CM_DREQ);
	ret_msg->dreq.remote_qpn = cm->remote_qpn;
}

int ibcm_send_dreq(struct ibcm *cm)
{
	struct cm_msg msg;

	if (cm->state != IBCM_ESTABLISHED)
		return -EINVAL;
	ibcm_init_dreq(cm, &msg);
	(void)ibcm_send_repeatedly(cm, &msg, 0);	/* a DREQ never fails */
	ibcm_set_state(cm, IBCM_DREQ_SENT);
	return 0;
}

/* Nothing to do in the state that it is in is no error. */
int ibcm_disconnect(struct sim_id *id)
{
	struct ibcm *cm = id->ib;

	if (cm->state == IBCM_DREQ_RCVD) {
		ibcm_enter_timewait(cm);
		ibcm_send_plain(cm, CM_DREP);
		return 0;
	}
	(void)ibcm_send_dreq(cm);
	return 0;
}

/* The peer's end of a connection that is gone here: let it go there too. */
static void answer_unknown_dreq(const struct sim_packet *packet, const struct cm_msg *msg)
{
	struct cm_msg drep;

	memset(&drep, 0, sizeof(drep));
	drep.attr_id = CM_DREP;
	drep.tid = msg->tid;
	drep.drep.local_comm_id = msg->dreq.remote_comm_id;
	drep.drep.remote_comm_id = msg->dreq.local_comm_id;
	ibcm_answer(packet, drep.drep.remote_comm_id, &drep);
}

void ibcm_recv_dreq(const struct sim_packet *packet, const struct cm_msg *msg)
{
	const struct cm_dreq *dreq = &msg->dreq;
	struct ibcm *cm = ibcm_find(packet, dreq->remote_comm_id, dreq->local_comm_id);

	if (!cm) {
		answer_unknown_dreq(packet, msg);
		return;
	}
	if (cm->id->qp_num != dreq->remote_qpn)
		return;
	switch (cm->state) {
	case IBCM_ESTABLISHED:
	case IBCM_REP_SENT:		/* the RTU was lost */
	case IBCM_MRA_REP_RCVD:
	case IBCM_DREQ_SENT:		/* both at once */
		break;
	case IBCM_TIMEWAIT:
		cm->tid = msg->tid;
		cm->id->peer_mac = packet->from->mac_number;	/* the answer is to who asks */
		ibcm_send_plain(cm, CM_DREP);
		return;
	default:
		return;
	}
	ibcm_stop_repeating(cm);
	cm->tid = msg->tid;
	ibcm_set_state(cm, IBCM_DREQ_RCVD);
	ibcm_post_disconnected(cm, 0);
}

void ibcm_recv_drep(const struct sim_packet *packet, const struct cm_msg *msg)
{
	struct ibcm *cm = ibcm_find(packet, msg->drep.remote_comm_id, msg->drep.local_comm_id);

	if (!cm || (cm->state != IBCM_DREQ_SENT && cm->state != IBCM_DREQ_RCVD))
		return;
	ibcm_enter_timewait(cm);
	ibcm_post_disconnected(cm, 0);
}

/* One DREQ and no waiting: the program wants to be rid of the connection. */
static void close_established(struct ibcm *cm)
{
	struct cm_msg msg;

	if (cm->id->qp_type == IBV_QPT_XRC_RECV)
		return;
	ibcm_init_dreq(cm, &msg);
	ibcm_send(cm, &msg);
}

void ibcm_close(struct sim_id *id)
{
	struct ibcm *cm = id->ib;

	switch (cm->state) {
	case IBCM_SIDR_REQ_RCVD:
		(void)sidr_reply(cm, CM_SIDR_REJECT, NULL);
		break;
	case IBCM_REQ_SENT:
	case IBCM_MRA_REQ_RCVD:
		(void)ibcm_send_rej(cm, CM_REJ_TIMEOUT, &id->port->device->vdev.node_guid,
				    sizeof(id->port->device->vdev.node_guid), NULL, 0);
		break;
	case IBCM_REQ_RCVD:
	case IBCM_MRA_REQ_SENT:
	case IBCM_REP_SENT:
	case IBCM_MRA_REP_RCVD:
	case IBCM_REP_RCVD:
	case IBCM_MRA_REP_SENT:
		(void)ibcm_send_rej(cm, CM_REJ_CONSUMER_DEFINED, NULL, 0, NULL, 0);
		break;
	case IBCM_ESTABLISHED:
		close_established(cm);
		break;
	case IBCM_DREQ_RCVD:
		ibcm_send_plain(cm, CM_DREP);
		break;
	default:
		break;
	}
	ibcm_set_state(cm, IBCM_IDLE);
}
