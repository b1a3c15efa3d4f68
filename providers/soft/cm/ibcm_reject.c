/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cm/ibcm_reject.c - REJ and MRA: what answers a message that is not taken, and
 * what asks for more time, in either direction.
 */
#include "config.h"

#include <endian.h>
#include <string.h>

#include "ibcm.h"

void ibcm_set_which(enum ibcm_state state, struct cm_rej *rej)
{
	switch (state) {
	case IBCM_REQ_RCVD:
		rej->local_comm_id = 0;	/* the peer never saw it */
		rej->message_rejected = CM_WHICH_REQ;
		break;
	case IBCM_MRA_REQ_SENT:
		rej->message_rejected = CM_WHICH_REQ;
		break;
	case IBCM_REP_RCVD:
	case IBCM_MRA_REP_SENT:
		rej->message_rejected = CM_WHICH_REP;
		break;
	default:
		rej->message_rejected = CM_WHICH_OTHER;
		break;
	}
}

static void put_rej(struct cm_rej *rej, uint16_t reason, const void *ari, uint8_t ari_len,
		    const void *data, uint8_t len)
{
	rej->reason = reason;
	rej->info_length = ari_len;
	if (ari_len)
		memcpy(rej->ari, ari, ari_len);
	if (data)
		memcpy(rej->private_data, data, len);
}

int ibcm_send_rej(struct ibcm *cm, uint16_t reason, const void *ari, uint8_t ari_len,
		  const void *data, uint8_t len)
{
	struct cm_msg msg;

	ibcm_init_msg(cm, &msg, CM_REJ);
	ibcm_set_which((enum ibcm_state)cm->state, &msg.rej);
	put_rej(&msg.rej, reason, ari, ari_len, data, len);
	switch (cm->state) {
	case IBCM_REQ_SENT:
	case IBCM_MRA_REQ_RCVD:
		/*
		 * Like the kernel we let the REQ be repeated: only destroying the
		 * id ends that.  The peer cannot tell which id this REJ is for.
		 */
	case IBCM_REQ_RCVD:
	case IBCM_MRA_REQ_SENT:
	case IBCM_REP_RCVD:
	case IBCM_MRA_REP_SENT:
		ibcm_leave(cm, IBCM_IDLE);
		break;
	case IBCM_REP_SENT:
	case IBCM_MRA_REP_RCVD:
		/* Neither does that end the repetition of the REP. */
		ibcm_leave(cm, IBCM_TIMEWAIT);
		break;
	default:
		return ibcm_wrong_state(cm);
	}
	ibcm_send(cm, &msg);
	return 0;
}

int ibcm_reject(struct sim_id *id, const void *data, uint8_t len, uint8_t reason)
{
	struct polycm_conn_param param = {
		.size = sizeof(param),
		.private_data = data,
		.private_data_len = data ? len : 0,
	};
	bool ud = id->qp_type == IBV_QPT_UD;
	struct ibcm *cm = id->ib;
	size_t limit;

	if (!cm)
		return cma_wrong_state(id);
	limit = ibcm_limit(id, POLYCM_MSG_REJECT,
			   ud ? CM_SIDR_REP_PRIVATE_SIZE : CM_REJ_PRIVATE_SIZE);
	if (param.private_data_len > limit)
		return cma_too_long(id, param.private_data_len, limit);
	if (ud)
		return sidr_reply(cm, CM_SIDR_REJECT, &param);
	return ibcm_send_rej(cm, reason, NULL, 0, data, param.private_data_len);
}

void ibcm_issue_rej(const struct sim_packet *packet, const struct cm_msg *msg, uint16_t reason,
		    const void *ari, uint8_t ari_len)
{
	struct cm_msg answer;

	memset(&answer, 0, sizeof(answer));
	answer.attr_id = CM_REJ;
	answer.tid = msg->tid;
	answer.rej.remote_comm_id = msg->rtu.local_comm_id;	/* first in all messages */
	if (msg->attr_id == CM_REP) {
		answer.rej.local_comm_id = msg->rep.remote_comm_id;
		answer.rej.message_rejected = CM_WHICH_REP;
	} else {
		answer.rej.message_rejected = CM_WHICH_REQ;
	}
	put_rej(&answer.rej, reason, ari, ari_len, NULL, 0);
	ibcm_answer(packet, answer.rej.remote_comm_id, &answer);
}

void ibcm_reject_by_rule(const struct sim_packet *packet, uint16_t reason)
{
	struct cm_msg msg;

	if (!cm_decode(packet->data, packet->len, &msg))
		ibcm_issue_rej(packet, &msg, reason, NULL, 0);
}

/*
 * A peer that gave up waiting may know our id not yet: it names itself by its
 * CA's GUID in the additional information.
 */
static struct ibcm *find_rejected(const struct sim_packet *packet, const struct cm_rej *rej)
{
	uint64_t guid;

	if (rej->reason == CM_REJ_TIMEOUT) {
		memcpy(&guid, rej->ari, sizeof(guid));
		return ibcm_find_remote(ibcm_node(packet), rej->local_comm_id, be64toh(guid),
					false);
	}
	return ibcm_find(packet, rej->remote_comm_id,
			 rej->message_rejected == CM_WHICH_REQ ? 0 : rej->local_comm_id);
}

static void post_rejected(struct ibcm *cm, const struct cm_rej *rej)
{
	struct polycm_event event = {
		.size = sizeof(event),
		.type = RDMA_CM_EVENT_REJECTED,
		.status = rej->reason,
		.param.conn = {
			.private_data = rej->private_data,
			.private_data_len = ibcm_reported(cm->id, POLYCM_MSG_REJECT,
							  sizeof(rej->private_data)),
		},
	};

	ibcm_post(cm, &event);
}

void ibcm_recv_rej(const struct sim_packet *packet, const struct cm_msg *msg)
{
	const struct cm_rej *rej = &msg->rej;
	struct ibcm *cm = find_rejected(packet, rej);
	bool idle = false;

	if (!cm)
		return;
	switch (cm->state) {
	case IBCM_REQ_SENT:
	case IBCM_MRA_REQ_RCVD:
	case IBCM_REQ_RCVD:
	case IBCM_MRA_REQ_SENT:
	case IBCM_REP_SENT:
	case IBCM_MRA_REP_RCVD:
		idle = rej->reason != CM_REJ_STALE_CONN;
		break;
	case IBCM_REP_RCVD:
	case IBCM_MRA_REP_SENT:
	case IBCM_ESTABLISHED:
	case IBCM_DREQ_SENT:
		break;
	default:
		return;
	}
	post_rejected(cm, rej);
	if (idle) {
		ibcm_stop_repeating(cm);
		ibcm_leave(cm, IBCM_IDLE);
	} else {
		ibcm_enter_timewait(cm);
	}
}

/* --- MRA. --- */

void ibcm_send_mra(struct ibcm *cm, enum cm_which_message which)
{
	struct cm_msg msg;

	ibcm_init_msg(cm, &msg, CM_MRA);
	msg.mra.message_mraed = (uint8_t)which;
	msg.mra.service_timeout = cma_rules(cm->id)->mra_service_timeout;
	ibcm_send(cm, &msg);
}

void ibcm_recv_mra(const struct sim_packet *packet, const struct cm_msg *msg)
{
	const struct cm_mra *mra = &msg->mra;
	bool of_req = mra->message_mraed == CM_WHICH_REQ;
	struct ibcm *cm;

	cm = ibcm_find(packet, mra->remote_comm_id, of_req ? 0 : mra->local_comm_id);
	if (!cm)
		return;
	/* The first one only: later ones find the wait stretched already. */
	if (cm->state == IBCM_REQ_SENT && of_req)
		ibcm_set_state(cm, IBCM_MRA_REQ_RCVD);
	else if (cm->state == IBCM_REP_SENT && mra->message_mraed == CM_WHICH_REP)
		ibcm_set_state(cm, IBCM_MRA_REP_RCVD);
	else
		return;
	ibcm_stretch_wait(cm, ibcm_exponent_to_ms(mra->service_timeout) +
			      ibcm_exponent_to_ms(cm->av_timeout));
}
