/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ibcm_send.c - CM messages on their way out, and their repetition.
 *
 * As in the kernel a message that wants an answer is sent up to 1 + retries
 * times with equal waits; the failure shows after the last of as many waits.
 * Only then does an id hold a copy of a message: idle connections need none.
 */
#include "config.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "../trace.h"
#include "ibcm.h"

#define MAX_SPARE 256u

struct ibcm_buffer {
	struct ibcm_buffer *next;	/* while spare */
	uint8_t mad[CM_MAD_SIZE];
};

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
	if (num_spare >= MAX_SPARE) {
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

/* Room for the members that a message has besides its ids. */
#define DETAIL 192

static void format_req(const struct cm_req *req, uint32_t ece_options, char detail[DETAIL])
{
	(void)snprintf(detail, DETAIL,
		       ",\"service\":\"%016" PRIx64 "\",\"qpn\":%u,\"psn\":%u,"
		       "\"responder_resources\":%u,\"initiator_depth\":%u,\"retry\":%u,\"rnr\":%u,"
		       "\"ece\":[%u,%u]",
		       req->service_id, req->local_qpn, req->starting_psn,
		       req->responder_resources, req->initiator_depth, req->retry_count,
		       req->rnr_retry_count, req->vendor_id, ece_options);
}

static void format_rep(const struct cm_rep *rep, uint32_t ece_options, char detail[DETAIL])
{
	(void)snprintf(detail, DETAIL,
		       ",\"qpn\":%u,\"psn\":%u,\"responder_resources\":%u,\"initiator_depth\":%u,"
		       "\"rnr\":%u,\"ack_delay\":%u,\"ece\":[%u,%u]",
		       rep->local_qpn, rep->starting_psn, rep->responder_resources,
		       rep->initiator_depth, rep->rnr_retry_count, rep->target_ack_delay,
		       rep->vendor_id, ece_options);
}

/* What matters of a message, besides the communication ids. */
static void format_detail(const struct cm_msg *msg, char detail[DETAIL])
{
	detail[0] = '\0';
	switch (msg->attr_id) {
	case CM_REQ:
		format_req(&msg->req, msg->attr_mod, detail);
		break;
	case CM_REP:
		format_rep(&msg->rep, msg->attr_mod, detail);
		break;
	case CM_MRA:
		(void)snprintf(detail, DETAIL, ",\"which\":%u,\"service_timeout\":%u",
			       msg->mra.message_mraed, msg->mra.service_timeout);
		break;
	case CM_REJ:
		(void)snprintf(detail, DETAIL, ",\"which\":%u,\"reason\":%u",
			       msg->rej.message_rejected, msg->rej.reason);
		break;
	case CM_DREQ:
		(void)snprintf(detail, DETAIL, ",\"qpn\":%u", msg->dreq.remote_qpn);
		break;
	case CM_SIDR_REQ:
		(void)snprintf(detail, DETAIL, ",\"service\":\"%016" PRIx64 "\"",
			       msg->sidr_req.service_id);
		break;
	case CM_SIDR_REP:
		(void)snprintf(detail, DETAIL, ",\"status\":%u,\"qpn\":%u,\"qkey\":%u",
			       msg->sidr_rep.status, msg->sidr_rep.qpn, msg->sidr_rep.qkey);
		break;
	default:
		break;
	}
}

/* All messages but these begin with the sender's and the receiver's id. */
static uint32_t remote_id_of(const struct cm_msg *msg)
{
	return msg->attr_id == CM_REQ || msg->attr_id == CM_SIDR_REQ ||
	       msg->attr_id == CM_SIDR_REP ? 0 : msg->rtu.remote_comm_id;
}

void ibcm_trace_msg(const char *kind, const struct sim_port *from, const struct sim_port *to,
		    const struct cm_msg *msg)
{
	char detail[DETAIL];

	if (!sim_trace_on)
		return;
	format_detail(msg, detail);
	sim_trace_line(kind,
		       "\"msg\":\"%s\",\"from\":\"%s\",\"to\":\"%s\",\"local\":%u,\"remote\":%u%s",
		       cm_msg_name(msg->attr_id), from->device->node->name,
		       to ? to->device->node->name : "", msg->rtu.local_comm_id,
		       remote_id_of(msg), detail);
}

/*
 * Which process of the peer's host: the one that made the peer's id.  A
 * request goes to who listens now; when nobody does any more it still goes
 * where it went before, since the request may be waiting there, and when
 * nobody ever did, to ourselves: we answer as the host's CM would.
 */
static unsigned int peer_slot(struct ibcm *cm)
{
	struct sim_id *listener;
	unsigned int slot;
	bool service;

	if (cm->remote_id)
		return sim_slot_of_conn(cm->remote_id);
	if (sim_find_listener(cm->peer->device->node, cm->id->ps, &cm->id->dst.sa, &slot,
			      &listener, &service))
		cm->request_slot = (uint16_t)slot;
	return cm->request_slot;
}

/* The wire tells nobody that it lost a message, so neither do we. */
static void transmit(struct ibcm *cm, const uint8_t *mad)
{
	if (cm->peer)
		(void)sim_link_send(cm->id->port, cm->peer, peer_slot(cm), SIM_PACKET_MAD, mad,
				    CM_MAD_SIZE, NULL, 0, 0);
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
	ibcm_trace_msg("send", cm->id->port, cm->peer, msg);
	transmit(cm, mad);
}

int ibcm_send_repeatedly(struct ibcm *cm, const struct cm_msg *msg, uint32_t wait_ms)
{
	if (!cm->repeating)
		cm->repeating = buffer_get();
	if (!cm->repeating)
		return -ENOMEM;
	cm_encode(msg, cm->repeating->mad);
	cm->wait_ms = wait_ms;
	cm->retries_left = cm->max_retries;
	ibcm_trace_msg("send", cm->id->port, cm->peer, msg);
	transmit(cm, cm->repeating->mad);
	sim_timer_arm(&cm->timer, sim_now() + SIM_MS(wait_ms));
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

static void trace_repetition(const struct ibcm *cm)
{
	struct cm_msg msg;

	if (sim_trace_on && !cm_decode(cm->repeating->mad, CM_MAD_SIZE, &msg))
		ibcm_trace_msg("send", cm->id->port, cm->peer, &msg);
}

bool ibcm_repeat(struct ibcm *cm)
{
	if (!cm->retries_left) {
		ibcm_stop_repeating(cm);
		return true;
	}
	cm->retries_left--;
	trace_repetition(cm);
	transmit(cm, cm->repeating->mad);
	sim_timer_arm(&cm->timer, sim_now() + SIM_MS(cm->wait_ms));
	return false;
}

void ibcm_answer(const struct sim_packet *packet, uint32_t conn_id, const struct cm_msg *msg)
{
	uint8_t mad[CM_MAD_SIZE];

	cm_encode(msg, mad);
	ibcm_trace_msg("send", packet->to, packet->from, msg);
	(void)sim_link_send(packet->to, packet->from, sim_slot_of_conn(conn_id), SIM_PACKET_MAD,
			    mad, CM_MAD_SIZE, NULL, 0, 0);
}
