/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * nic/qp_state.c - states of queue pairs: reset, errors, streams of iWARP, and
 * what traces show of them.
 */
#include "config.h"

#include "providers/soft/fabric/remote.h"
#include "providers/soft/fabric/trace_lines.h"
#include "context.h"
#include "direct.h"
#include "qp.h"
#include "rc_internal.h"
#include "rq.h"
#include "sq.h"

static const char *const state_names[] = {
	[IBV_QPS_RESET] = "RESET",
	[IBV_QPS_INIT] = "INIT",
	[IBV_QPS_RTR] = "RTR",
	[IBV_QPS_RTS] = "RTS",
	[IBV_QPS_SQD] = "SQD",
	[IBV_QPS_SQE] = "SQE",
	[IBV_QPS_ERR] = "ERR",
};

const char *nic_qp_state_name(uint8_t state)
{
	return state_names[state];
}

void nic_qp_set_state(struct sim_qp *qp, uint8_t state)
{
	if (sim_tracing() && qp->state != state)
		sim_trace_state(qp->port->device->node, "qp", nic_qpn(qp), state_names[state],
				state_names[qp->state]);
	if (qp->state != state)
		nic_direct_withdraw(qp);
	qp->state = state;
}

void nic_describe_timer(const struct sim_timer *timer, struct sim_timer_text *ret_text)
{
	const struct sim_qp *qp = nic_container(timer, const struct sim_qp, timer);

	*ret_text = (struct sim_timer_text){
		.name = qp->rnr_wait ? "rnr" : "ack",
		.node = qp->port->device->node,
		.of = "qpn",
		.number = nic_qpn(qp),
	};
}

void nic_qp_reset(struct sim_qp *qp)
{
	rc_ack_end(qp);
	sim_timer_disarm(&qp->timer);
	nic_qp_set_state(qp, IBV_QPS_RESET);
	qp->peer = NULL;
	qp->attr.dest_qp_num = 0;
	qp->peer_entry = 0;
	qp->sq_head = qp->sq_high = qp->sq_next = qp->sq_tail = 0;
	qp->mark = qp->slow_since = qp->last_message = 0;
	qp->sq_psn = qp->tx_off = qp->rd_off = qp->inflight = 0;
	qp->rd_outstanding = 0;
	qp->rnr_wait = qp->went_back = qp->no_ref = qp->no_read_ref = false;
	qp->read_by_value = qp->read_dropped = false;
	qp->sqd_drained = qp->cqe_lost = qp->failure_logged = false;
	qp->rq.head = qp->rq.tail = 0;
	qp->rq_psn = qp->rx_off = 0;
	qp->nak_sent = qp->rx_held = qp->comm_est = qp->uc_dropping = false;
	for (unsigned int i = 0; i < qp->num_atomics; i++)
		qp->atomics[i].valid = false;
	qp->next_atomic = 0;
}

static void (*stream_closed_callback)(struct sim_id *owner, bool by_program);
static bool (*stream_connecting)(const struct sim_id *owner);

void sim_qp_stream_set_callbacks(void (*closed)(struct sim_id *owner, bool by_program),
				       bool (*connecting)(const struct sim_id *owner))
{
	stream_closed_callback = closed;
	stream_connecting = connecting;
}

bool nic_stream_connecting(const struct sim_qp *qp)
{
	return qp->owner && stream_connecting && stream_connecting(qp->owner);
}

void nic_stream_closed(struct sim_qp *qp, bool by_program)
{
	struct sim_id *owner = qp->owner;

	qp->owner = NULL;
	if (owner && stream_closed_callback)
		stream_closed_callback(owner, by_program);
}

void nic_qp_error(struct sim_qp *qp, bool by_program)
{
	rc_ack_now(qp);		/* before its stream ends */
	if (qp->state == IBV_QPS_RESET || qp->state == IBV_QPS_ERR) {
		nic_qp_set_state(qp, IBV_QPS_ERR);
		nic_stream_closed(qp, by_program);	/* one that is only being set up */
		return;
	}
	if (nic_qp_is_iwarp(qp) && qp->state == IBV_QPS_RTS)
		rc_stream_took(qp);
	nic_qp_set_state(qp, IBV_QPS_ERR);
	sim_timer_disarm(&qp->timer);
	qp->rnr_wait = false;
	nic_sq_flush(qp);
	nic_rq_flush(qp);
	/* XRC: it takes no receive of an SRQ of its domain any more. */
	if (qp->pub.qp.srq || qp->type == IBV_QPT_XRC_RECV)
		nic_async_qp(qp, IBV_EVENT_QP_LAST_WQE_REACHED);
	nic_stream_closed(qp, by_program);
}

void nic_qp_fatal(struct sim_qp *qp, enum ibv_event_type type)
{
	if (qp->state == IBV_QPS_ERR)
		return;
	nic_async_qp(qp, type);
	nic_qp_error(qp, false);
}

enum ibv_qp_state sim_qp_state(const struct sim_qp *qp)
{
	return (enum ibv_qp_state)qp->state;
}

int sim_qp_stream_connect(struct sim_qp *qp, struct sim_port *peer, uint32_t peer_qpn,
			  uint8_t responder_resources, uint8_t initiator_depth)
{
	const struct ibv_device_attr *limits = &qp->port->device->attr;

	if (qp->state != IBV_QPS_RESET && qp->state != IBV_QPS_INIT && qp->state != IBV_QPS_RTR)
		return -EINVAL;
	if (responder_resources > limits->max_qp_rd_atom ||
	    initiator_depth > limits->max_qp_init_rd_atom)
		return -EINVAL;
	qp->peer = peer;
	qp->attr.dest_qp_num = peer_qpn;
	qp->peer_entry = 0;
	qp->peer_slot = sim_slot_of_peer_qpn(peer, peer_qpn);
	qp->attr.max_dest_rd_atomic = responder_resources;
	qp->attr.max_rd_atomic = initiator_depth;
	/* The stream opens the QP to the peer; only the regions say to what. */
	qp->attr.qp_access_flags |= IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE;
	qp->sq_psn = 0 - qp->sq_next;
	qp->rq_psn = 0;
	qp->retries_left = NIC_TCP_RETRIES;
	qp->comm_est = true;
	nic_qp_set_state(qp, IBV_QPS_RTS);
	rc_transmit(qp);
	return 0;
}

void sim_qp_stream_error(struct sim_qp *qp)
{
	qp->owner = NULL;	/* the owner is the caller */
	nic_qp_error(qp, false);
}

void sim_qp_stream_set_owner(struct sim_qp *qp, struct sim_id *owner)
{
	qp->owner = owner;
}

struct sim_id *sim_qp_stream_owner(const struct sim_qp *qp)
{
	return qp->owner;
}
