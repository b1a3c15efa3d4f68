/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cm/ibcm_active.c - the active side of a connection: REQ out, REP in, RTU out.
 */
#include "config.h"

#include <errno.h>

#include "ibcm.h"

#define LID_PERMISSIVE 0xffffu

/* REQs name LIDs only where both ends are on one subnet. */
static void put_path(const struct ibcm *cm, struct cm_path *ret_path)
{
	const struct sim_id *id = cm->id;
	bool subnet_local = id->hop_limit <= 1;

	ret_path->local_lid = subnet_local ? id->port->lid : LID_PERMISSIVE;
	ret_path->remote_lid = subnet_local ? cm->dlid : LID_PERMISSIVE;
	ret_path->local_gid = id->sgid;
	ret_path->remote_gid = id->dgid;
	ret_path->flow_label = cma_flow_label(id);
	ret_path->packet_rate = id->rate;
	ret_path->traffic_class = id->traffic_class;
	ret_path->hop_limit = id->hop_limit;
	ret_path->sl = id->sl;
	ret_path->subnet_local = subnet_local;
	ret_path->local_ack_timeout = ibcm_ack_timeout(id, id->port->device->attr.local_ca_ack_delay,
						       id->packet_lifetime);
}

static void put_transport(enum ibv_qp_type qp_type, struct cm_req *req)
{
	switch (qp_type) {
	case IBV_QPT_UC:
		req->transport_service_type = CM_TRANSPORT_UC;
		break;
	case IBV_QPT_XRC_SEND:
		req->transport_service_type = CM_TRANSPORT_EXTENDED;
		req->extended_transport_type = CM_EXTENDED_TRANSPORT_XRC;
		break;
	default:
		req->transport_service_type = CM_TRANSPORT_RC;
		break;
	}
}

static uint8_t lower(uint8_t value, uint8_t max)
{
	return value < max ? value : max;
}

static void fill_req(const struct ibcm *cm, const struct polycm_conn_param *param,
		     struct cm_req *req)
{
	const struct sim_id *id = cm->id;
	const struct polycm_transport *rules = cma_rules(id);

	req->service_id = ibcm_service_id(id, &id->dst);
	req->local_ca_guid = ibcm_ca_guid(id);
	req->local_qpn = id->qp_num;
	req->initiator_depth = param->initiator_depth;
	req->remote_cm_response_timeout = rules->cm_response_timeout;
	req->local_cm_response_timeout = rules->cm_response_timeout;
	req->max_cm_retries = rules->max_cm_retries;
	put_transport(id->qp_type, req);
	req->end_to_end_flow_control = param->flow_control & 1;
	req->starting_psn = id->starting_psn;
	req->retry_count = cm->retry_count;
	req->pkey = SIM_PKEY;
	req->path_mtu = (uint8_t)id->path_mtu;
	req->vendor_id = param->ece.vendor_id;
	/* An XRC initiator never responds. */
	if (id->qp_type != IBV_QPT_XRC_SEND) {
		req->responder_resources = param->responder_resources;
		req->rnr_retry_count = lower(param->rnr_retry_count, rules->max_rnr_retry_count);
		req->srq = param->srq;
	}
	put_path(cm, &req->primary);
}

int ibcm_connect(struct sim_id *id, const struct polycm_conn_param *param)
{
	const struct polycm_transport *rules = cma_rules(id);
	struct cm_msg msg;
	struct ibcm *cm;

	if (id->ib)
		return sim_refuse(-EINVAL, "the id has had its attempt to connect");
	cm = ibcm_create(id);
	if (!cm)
		return -ENOMEM;
	ibcm_take_route(cm);
	cm->retry_count = lower(param->retry_count, rules->max_retry_count);
	cm->responder_resources = param->responder_resources;
	cm->initiator_depth = param->initiator_depth;
	cm->timeout_ms = 2 * ibcm_exponent_to_ms(id->packet_lifetime) +
			 ibcm_exponent_to_ms(rules->cm_response_timeout);

	ibcm_init_msg(cm, &msg, CM_REQ);
	msg.attr_mod = param->ece.options;
	fill_req(cm, param, &msg.req);
	return ibcm_send_request(cm, &msg, param);
}

/*
 * A repeated REP.  If the program has answered the first, the RTU was lost: send it
 * again.  If not, ask the peer to wait.
 */
static void repeated_rep(const struct sim_packet *packet, const struct cm_rep *rep)
{
	struct ibcm *cm = ibcm_find(packet, rep->remote_comm_id, rep->local_comm_id);

	if (!cm)
		return;
	if (cm->state == IBCM_ESTABLISHED)
		ibcm_send_plain(cm, CM_RTU);
	else if (cm->state == IBCM_MRA_REP_SENT)
		ibcm_send_mra(cm, CM_WHICH_REP);
}

/* The depths of the REP apply, not those of the REQ. */
static void take_rep(struct ibcm *cm, const struct cm_rep *rep)
{
	cm->initiator_depth = rep->responder_resources;
	cm->responder_resources = rep->initiator_depth;
	cm->sq_psn = rep->starting_psn;
	cm->rnr_retry_count = rep->rnr_retry_count;
	/* From now on the peer's delay counts, on top of twice the packet lifetime. */
	cm->av_timeout = ibcm_ack_timeout(cm->id, rep->target_ack_delay,
					  (uint8_t)(cm->av_timeout - 1));
}

static void post_response(struct ibcm *cm, const struct cm_msg *msg)
{
	const struct cm_rep *rep = &msg->rep;
	struct polycm_event event = {
		.size = sizeof(event),
		.type = RDMA_CM_EVENT_CONNECT_RESPONSE,
		.param.conn = {
			.private_data = rep->private_data,
			.private_data_len = ibcm_reported(cm->id, POLYCM_MSG_ACCEPT,
							  sizeof(rep->private_data)),
			.responder_resources = rep->initiator_depth,
			.initiator_depth = rep->responder_resources,
			.flow_control = rep->end_to_end_flow_control,
			.rnr_retry_count = rep->rnr_retry_count,
			.srq = rep->srq,
			.qp_num = cm->remote_qpn,
		},
		.ece = { .vendor_id = rep->vendor_id, .options = msg->attr_mod },
	};

	ibcm_post(cm, &event);
}

/* -EINVAL: the peer's QP has another connection with us; both end. */
static int claim_remote(struct ibcm *cm, const struct sim_packet *packet, const struct cm_msg *msg)
{
	const struct sim_node *node = cm->id->node;
	struct ibcm *stale;

	if (ibcm_find_remote(node, cm->remote_id, cm->remote_ca_guid, false))
		return -EINVAL;
	stale = ibcm_find_qpn(node, cm->remote_qpn, cm->remote_ca_guid);
	if (stale) {
		ibcm_issue_rej(packet, msg, CM_REJ_STALE_CONN, NULL, 0);
		(void)ibcm_send_dreq(stale);	/* only where it is established */
		return -EINVAL;
	}
	ibcm_table_add(cm, IBCM_BY_REMOTE);
	ibcm_table_add(cm, IBCM_BY_QPN);
	return 0;
}

void ibcm_recv_rep(const struct sim_packet *packet, const struct cm_msg *msg)
{
	const struct cm_rep *rep = &msg->rep;
	struct ibcm *cm;

	if (!rep->local_comm_id)
		return;
	cm = ibcm_find(packet, rep->remote_comm_id, 0);
	if (!cm) {
		repeated_rep(packet, rep);
		return;
	}
	if (cm->state != IBCM_REQ_SENT && cm->state != IBCM_MRA_REQ_RCVD)
		return;

	ibcm_peer_sent(cm, CM_REP);
	cm->remote_id = rep->local_comm_id;
	cm->remote_ca_guid = rep->local_ca_guid;
	cm->remote_qpn = cm->id->qp_type == IBV_QPT_XRC_SEND ? rep->local_eecn : rep->local_qpn;
	if (claim_remote(cm, packet, msg) < 0) {
		cm->remote_id = 0;
		return;
	}
	take_rep(cm, rep);
	ibcm_set_state(cm, IBCM_REP_RCVD);
	post_response(cm, msg);
	ibcm_stop_repeating(cm);
	/* The program answers in its own time: see repeated_rep(). */
	ibcm_set_state(cm, IBCM_MRA_REP_SENT);
}

int ibcm_establish(struct sim_id *id)
{
	struct ibcm *cm = id->ib;

	if (!cm)
		return sim_refuse(-EINVAL, "the id has no connection");
	if (cm->state == IBCM_SIDR_REQ_RCVD)
		return sidr_reply(cm, CM_SIDR_SUCCESS, NULL);
	if (cm->state != IBCM_REP_RCVD && cm->state != IBCM_MRA_REP_SENT)
		return ibcm_wrong_state(cm);
	ibcm_set_state(cm, IBCM_ESTABLISHED);
	ibcm_send_plain(cm, CM_RTU);
	return 0;
}
