/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cm/cma_death.c - ends connections to a process that died, as its host's kernel
 * would: the simulated host lives on.  The state of an id of the dead process says
 * which message the kernel would send for it.  So each process sends the states of
 * its ids to its peers, after its other messages.  When the death is noticed, all of
 * them have been read.  Engine lock held.
 */
#include "config.h"

#include <endian.h>
#include <string.h>

#include "providers/soft/fabric/remote.h"
#include "providers/soft/fabric/world.h"
#include "providers/soft/link/shm/shm.h"
#include "providers/soft/wire/note.h"
#include "cma_internal.h"
#include "ibcm.h"
#include "iwcm.h"

static unsigned int peer_slot(const struct ibcm *cm)
{
	return cm->remote_id ? sim_slot_of_peer_conn(cm->peer, cm->remote_id) : cm->request_slot;
}

/*
 * Several states make a host send the same message for a process that died.  This
 * returns one state for all of them; TIMEWAIT: nothing is sent.  REQ_RCVD is among
 * the latter, as it lasts only while the request is posted.
 */
static enum ibcm_state ends_like(enum ibcm_state state)
{
	switch (state) {
	case IBCM_MRA_REQ_RCVD:
		return IBCM_REQ_SENT;
	case IBCM_MRA_REP_RCVD:
		return IBCM_REP_SENT;
	case IBCM_MRA_REP_SENT:
		return IBCM_REP_RCVD;
	case IBCM_IDLE:
	case IBCM_REQ_RCVD:
	case IBCM_DREQ_SENT:
	case IBCM_SIDR_REQ_SENT:
		return IBCM_TIMEWAIT;
	default:
		return state;
	}
}

void ibcm_send_note(const struct ibcm *cm, enum ibcm_state before)
{
	enum ibcm_state state = ends_like((enum ibcm_state)cm->state);
	struct cm_note note = {
		.local_id = cm->local_id,
		.remote_id = cm->remote_id,
		.state = (uint8_t)state,
	};

	/* The receiver of a REQ knows that it was sent. */
	if (peer_slot(cm) == sim_self_slot() || state == ends_like(before) || !cm->peer ||
	    (state == IBCM_REQ_SENT && before == IBCM_IDLE))
		return;
	sim_link_note(cm->id->port, cm->peer, peer_slot(cm), &note, CM_NOTE_SIZE);
}

/* Find our id of the sender's connection.  The sender may not know our id yet. */
static struct ibcm *find_noted(const struct sim_packet *packet, const struct cm_note *note)
{
	uint64_t guid = be64toh(packet->from->device->vdev.node_guid);
	struct ibcm *cm;

	if (!note->remote_id)
		return ibcm_find_remote(ibcm_node(packet), note->local_id, guid, false);
	cm = ibcm_find_local(note->remote_id);
	return cm && (!cm->remote_id || cm->remote_id == note->local_id) ? cm : NULL;
}

void ibcm_recv_note(const struct sim_packet *packet)
{
	struct cm_note note;
	struct ibcm *cm;

	if (packet->len != CM_NOTE_SIZE)
		return;
	memcpy(&note, packet->data, CM_NOTE_SIZE);
	if (note.state > IBCM_SIDR_REQ_RCVD ||
	    sim_slot_of_peer_conn(packet->from, note.local_id) != packet->from_slot)
		return;
	cm = find_noted(packet, &note);
	/* Which process of another machine has the request, that machine's CM found out. */
	if (cm && !cm->remote_id && cm->peer == packet->from && sim_slot_is_remote(packet->from_slot))
		cm->request_slot = packet->from_slot;
	if (cm && peer_slot(cm) == packet->from_slot)
		cm->peer_state = (uint8_t)ends_like((enum ibcm_state)note.state);
}

void ibcm_peer_sent(struct ibcm *cm, enum cm_attr_id attr_id)
{
	switch (cm->peer_state) {
	case IBCM_IDLE:
	case IBCM_MRA_REQ_SENT:
		if (attr_id == CM_REP)
			cm->peer_state = IBCM_REP_SENT;
		break;
	case IBCM_REQ_SENT:
	case IBCM_REP_RCVD:
		if (attr_id == CM_RTU)
			cm->peer_state = IBCM_ESTABLISHED;
		break;
	default:
		break;	/* a later state is known already */
	}
}

/* The message that ibcm_close() would send for the peer's id; false: none that our id accepts. */
static bool final_message(const struct ibcm *cm, struct cm_msg *ret_msg)
{
	const struct polycm_verbs_device *device = &cm->peer->device->vdev;
	enum ibcm_state state = (enum ibcm_state)cm->peer_state;

	memset(ret_msg, 0, sizeof(*ret_msg));
	ret_msg->tid = cm->tid;
	ret_msg->attr_id = CM_REJ;
	/* All messages except those of SIDR begin with these two. */
	ret_msg->rtu.local_comm_id = cm->remote_id;
	ret_msg->rtu.remote_comm_id = cm->local_id;
	switch (state) {
	case IBCM_REQ_SENT:
		ibcm_set_which(state, &ret_msg->rej);
		ret_msg->rej.remote_comm_id = 0;
		ret_msg->rej.reason = CM_REJ_TIMEOUT;
		ret_msg->rej.info_length = sizeof(device->node_guid);
		memcpy(ret_msg->rej.ari, &device->node_guid, sizeof(device->node_guid));
		return true;
	case IBCM_MRA_REQ_SENT:
		ibcm_set_which(state, &ret_msg->rej);
		ret_msg->rej.reason = CM_REJ_CONSUMER_DEFINED;
		return true;
	case IBCM_REP_SENT:
	case IBCM_REP_RCVD:
		ibcm_set_which(state, &ret_msg->rej);
		ret_msg->rej.reason = CM_REJ_CONSUMER_DEFINED;
		return cm->remote_id;
	case IBCM_ESTABLISHED:
		ret_msg->attr_id = CM_DREQ;
		ret_msg->dreq.remote_qpn = cm->id->qp_num;
		return true;
	case IBCM_DREQ_RCVD:
		ret_msg->attr_id = CM_DREP;
		return true;
	case IBCM_SIDR_REQ_RCVD:
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

	/* A host that crashed or is cut off sends nothing. */
	if (!cm->peer || !sim_port_carries(cm->peer) || !final_message(cm, &msg))
		return;
	cm->peer_state = IBCM_TIMEWAIT;
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

/* A kernel knows at once that a process died; the simulator checks from time to time. */
void cma_check_peer(const struct sim_id *id)
{
	if (id->engine == &sim_ibcm_engine && id->ib) {
		sim_link_look_at(peer_slot(id->ib));
		ibcm_table_prefetch(id->ib->remote_id);
	} else if (id->engine == &sim_iwcm_engine && id->iw && id->iw->stream == IW_STREAM_OPEN) {
		sim_link_look_at(sim_slot_of_peer_conn(id->iw->peer, id->iw->peer_id));
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
