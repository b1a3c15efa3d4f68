/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cm/ibcm_send.c - CM messages on their way out, and their repetition.
 *
 * As in the kernel, a message that needs an answer is sent up to 1 + retries
 * times with equal waits, and fails after the last wait.  An id holds a copy of
 * a message only meanwhile, so idle connections need no memory for it.
 */
#include "config.h"

#include <errno.h>
#include <string.h>

#include "providers/soft/fabric/remote.h"
#include "providers/soft/link/shm/shm.h"
#include "providers/soft/wire/address.h"
#include "ibcm.h"

/* None where a sanitizer is to find what is used after its end. */
#ifdef POLYCM_SANITIZED
#define MAX_SPARE 0u
#else
#define MAX_SPARE 256u
#endif

struct ibcm_buffer {
	struct ibcm_buffer *next;	/* while spare */
	uint8_t mad[CM_MAD_SIZE];
};

/* Of any DREQ that found no memory: the end of a connection must not need it. */
static struct ibcm_buffer shared_by_dreqs;

static struct ibcm_buffer *spare;
static unsigned int num_spare;

static struct ibcm_buffer *buffer_get(void)
{
	struct ibcm_buffer *buffer = spare;

	if (!buffer)
		return sim_core->alloc(sizeof(*buffer));
	spare = buffer->next;
	num_spare--;
	return buffer;
}

static void buffer_put(struct ibcm_buffer *buffer)
{
	if (buffer == &shared_by_dreqs)
		return;
	if (num_spare == MAX_SPARE) {
		sim_core->free(buffer);
		return;
	}
	buffer->next = spare;
	spare = buffer;
	num_spare++;
}

void ibcm_send_free(void)
{
	struct ibcm_buffer *buffer;

	while ((buffer = spare)) {
		spare = buffer->next;
		sim_core->free(buffer);
	}
	num_spare = 0;
}

/*
 * The process of the peer's host to send to: the one that made the peer's id.  If it
 * has died, any process answers as the host's CM would.  A request goes to the process
 * that listens now; if none does, to where it went last, since it may wait there; if
 * that has died or there is none, to ourselves.
 */
static unsigned int peer_slot(struct ibcm *cm)
{
	struct sim_node *node = cm->peer->device->node;
	enum rdma_port_space ps = ibcm_dst_port_space(cm->id);
	unsigned int slot;

	if (cm->remote_id)
		return sim_link_answers_for(sim_slot_of_peer_conn(cm->peer, cm->remote_id));
	if (sim_find_service(node, ps, &cm->id->dst.sa, &slot)) {
		if (slot != cm->request_slot)
			sim_link_meet(slot);
		cm->request_slot = slot;
	} else if (node->remote) {
		cm->request_slot = sim_self_slot();
	} else {
		sim_fabric_log_no_listener(cm->id->id, node,
					   sim_port_taken(node, ps, sim_addr_port(&cm->id->dst.sa)));
	}
	return sim_link_answers_for(cm->request_slot);
}

/* A lost message is no error: a wire reports none. */
static void transmit(struct ibcm *cm, const uint8_t *mad)
{
	unsigned int slot = SIM_NOBODY;

	if (cm->peer && sim_port_has_mac(cm->peer, cm->id->peer_mac))
		slot = peer_slot(cm);
	(void)sim_link_send(cm->id->port, cm->peer, slot, SIM_PACKET_MAD, mad, CM_MAD_SIZE, NULL, 0,
			    0);
}

uint64_t ibcm_new_tid(const struct ibcm *cm)
{
	return (uint64_t)(cm->id->port->fabric_index + 1) << 32 | cm->local_id;
}

void ibcm_init_msg(const struct ibcm *cm, struct cm_msg *ret_msg, enum cm_attr_id attr_id)
{
	memset(ret_msg, 0, sizeof(*ret_msg));
	ret_msg->attr_id = (uint16_t)attr_id;
	ret_msg->tid = cm->tid;
	if (attr_id == CM_REQ) {
		ret_msg->req.local_comm_id = cm->local_id;
	} else if (attr_id != CM_SIDR_REQ && attr_id != CM_SIDR_REP) {
		/* The same place in all others. */
		ret_msg->rtu.local_comm_id = cm->local_id;
		ret_msg->rtu.remote_comm_id = cm->remote_id;
	}
}

void ibcm_send(struct ibcm *cm, const struct cm_msg *msg)
{
	uint8_t mad[CM_MAD_SIZE];

	cm_encode(msg, mad);
	transmit(cm, mad);
}

void ibcm_send_plain(struct ibcm *cm, enum cm_attr_id attr_id)
{
	struct cm_msg msg;

	ibcm_init_msg(cm, &msg, attr_id);
	ibcm_send(cm, &msg);
}

int ibcm_send_repeatedly(struct ibcm *cm, const struct cm_msg *msg, uint64_t delay)
{
	if (!cm->repeating)
		cm->repeating = buffer_get();
	if (!cm->repeating && msg->attr_id == CM_DREQ)
		cm->repeating = &shared_by_dreqs;
	if (!cm->repeating)
		return -ENOMEM;
	cm_encode(msg, cm->repeating->mad);
	cm->retries_left = cm->max_retries;
	cm->wait_ms = cm->timeout_ms;
	if (delay) {
		/* The timer sends it, as it sends repetitions. */
		cm->retries_left++;
		sim_timer_arm(&cm->timer, sim_now() + delay);
	} else {
		transmit(cm, cm->repeating->mad);
		sim_timer_arm(&cm->timer, sim_now() + SIM_MS(cm->wait_ms));
	}
	return 0;
}

void ibcm_stop_repeating(struct ibcm *cm)
{
	if (!cm->repeating)
		return;
	sim_timer_disarm(&cm->timer);
	buffer_put(cm->repeating);
	cm->repeating = NULL;
}

void ibcm_stretch_wait(struct ibcm *cm, uint32_t wait_ms)
{
	cm->wait_ms = wait_ms;
	sim_timer_arm(&cm->timer, sim_now() + SIM_MS(wait_ms));
}

bool ibcm_repeat(struct ibcm *cm)
{
	struct cm_msg dreq;

	if (!cm->retries_left) {
		ibcm_stop_repeating(cm);
		return true;
	}
	cm->retries_left--;
	if (cm->repeating == &shared_by_dreqs) {
		ibcm_init_dreq(cm, &dreq);
		cm_encode(&dreq, cm->repeating->mad);
	}
	transmit(cm, cm->repeating->mad);
	sim_timer_arm(&cm->timer, sim_now() + SIM_MS(cm->wait_ms));
	return false;
}

void ibcm_answer(const struct sim_packet *packet, uint32_t conn_id, const struct cm_msg *msg)
{
	uint8_t mad[CM_MAD_SIZE];

	cm_encode(msg, mad);
	(void)sim_link_send(packet->to, packet->from,
			    sim_slot_of_peer_conn(packet->from, conn_id), SIM_PACKET_MAD,
			    mad, CM_MAD_SIZE, NULL, 0, 0);
}
