/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cm/cma_death.c - another process of the host died: its ids end as the kernel
 * ends them, since the host lives on.  What its CM would send follows from our
 * end of each connection; everything that it did send was read before.
 * Engine lock held.
 */
#include "config.h"

#include <string.h>

#include "../world.h"
#include "cma_internal.h"
#include "ibcm.h"
#include "iwcm.h"

static unsigned int peer_slot(const struct ibcm *cm)
{
	return cm->remote_id ? sim_slot_of_conn(cm->remote_id) : cm->request_slot;
}

static void put_rej(struct cm_msg *msg, enum cm_rej_reason reason, enum cm_which_message which)
{
	msg->attr_id = CM_REJ;
	msg->rej.reason = (uint16_t)reason;
	msg->rej.message_rejected = (uint8_t)which;
}

/* The peer gave up waiting for our answer, and says so with its CA's GUID. */
static void put_rej_timeout(const struct ibcm *cm, struct cm_msg *msg)
{
	const struct polycm_verbs_device *peer = &cm->peer->device->vdev;

	put_rej(msg, CM_REJ_TIMEOUT, CM_WHICH_REQ);
	msg->rej.info_length = sizeof(peer->node_guid);
	memcpy(msg->rej.ari, &peer->node_guid, sizeof(peer->node_guid));
}

/* What the peer's id sends as it is destroyed.  false: nothing. */
static bool last_words(const struct ibcm *cm, struct cm_msg *ret_msg)
{
	memset(ret_msg, 0, sizeof(*ret_msg));
	ret_msg->tid = cm->tid;
	/* First in all messages but SIDR's. */
	ret_msg->rtu.local_comm_id = cm->remote_id;
	ret_msg->rtu.remote_comm_id = cm->local_id;
	switch (cm->state) {
	case IBCM_REQ_SENT:
	case IBCM_MRA_REQ_RCVD:
		put_rej(ret_msg, CM_REJ_CONSUMER_DEFINED, CM_WHICH_REQ);
		return true;
	case IBCM_REQ_RCVD:
	case IBCM_MRA_REQ_SENT:
		put_rej_timeout(cm, ret_msg);
		return true;
	case IBCM_REP_SENT:
	case IBCM_MRA_REP_RCVD:
		put_rej(ret_msg, CM_REJ_CONSUMER_DEFINED, CM_WHICH_REP);
		return true;
	case IBCM_REP_RCVD:
	case IBCM_MRA_REP_SENT:
		put_rej(ret_msg, CM_REJ_CONSUMER_DEFINED, CM_WHICH_OTHER);
		return true;
	case IBCM_ESTABLISHED:
		ret_msg->attr_id = CM_DREQ;
		ret_msg->dreq.remote_qpn = cm->id->qp_num;
		return true;
	case IBCM_DREQ_SENT:
		ret_msg->attr_id = CM_DREP;
		return true;
	case IBCM_SIDR_REQ_SENT:
		memset(&ret_msg->sidr_rep, 0, sizeof(ret_msg->sidr_rep));
		ret_msg->attr_id = CM_SIDR_REP;
		ret_msg->sidr_rep.request_id = cm->local_id;
		ret_msg->sidr_rep.status = CM_SIDR_REJECT;
		return true;
	default:
		return false;
	}
}

void ibcm_peer_died(struct ibcm *cm)
{
	uint8_t mad[CM_MAD_SIZE];
	struct cm_msg msg;

	/* A host that is crashed or cut off has no last words. */
	if (!cm->peer || !sim_port_carries(cm->peer) || !last_words(cm, &msg))
		return;
	cm_encode(&msg, mad);
	sim_link_inject(&(struct sim_packet){
		.type = SIM_PACKET_MAD,
		.from = cm->peer,
		.to = cm->id->port,
		.from_slot = peer_slot(cm),
		.data = mad,
		.len = sizeof(mad),
	});
}

/* As the kernel of both knows at once what we only look at now and then. */
void cma_look_at_peer(const struct sim_id *id)
{
	if (id->engine == &sim_ibcm_engine && id->ib) {
		sim_link_look_at(peer_slot(id->ib));
		ibcm_table_prefetch(id->ib->remote_id);
	} else if (id->engine == &sim_iwcm_engine && id->iw && id->iw->stream == IW_STREAM_OPEN) {
		sim_link_look_at(sim_slot_of_conn(id->iw->peer_id));
	}
}

void cma_process_died(unsigned int slot)
{
	for (struct sim_id *id = cma_first_id(); id; id = id->next)
		if (id->engine == &sim_ibcm_engine && id->ib && cma_live(id) &&
		    peer_slot(id->ib) == slot)
			ibcm_peer_died(id->ib);
	iw_stream_process_died(slot);
}
