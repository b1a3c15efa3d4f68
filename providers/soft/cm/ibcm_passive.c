/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cm/ibcm_passive.c - the passive side of a connection: REQ in, REP out, RTU in.
 *
 * Order of the checks of a REQ, as in the kernel: repeated (dropped, or an
 * MRA), stale (REJ 10), no such service (REJ 8), no path back (REJ 12 or 18),
 * then what the RDMA CM says about addresses and types (REJ 28).
 */
#include "config.h"

#include <errno.h>
#include <string.h>

#include "ibcm.h"

/* The program has the request but did not answer yet: ask the peer to wait. */
static void repeated_req(struct ibcm *cm)
{
	if (cm->state == IBCM_MRA_REQ_SENT)
		ibcm_send_mra(cm, CM_WHICH_REQ);
}

static bool owns_gid(const struct sim_port *port, const union ibv_gid *gid)
{
	unsigned int i;

	for (i = 0; i < port->num_gids; i++)
		if (!memcmp(&port->gids[i].gid, gid, sizeof(*gid)))
			return true;
	return false;
}

static bool owns_alternate(const struct sim_port *port, const struct cm_path *path)
{
	const struct sim_device *device = port->device;
	unsigned int i;

	if (!path->local_lid)
		return true;	/* there is no alternate path */
	for (i = 0; i < device->num_ports; i++)
		if (owns_gid(&device->ports[i], &path->remote_gid))
			return true;
	return false;
}

/* true: refused, for a path that does not lead here. */
static bool refuse_path(const struct sim_packet *packet, const struct cm_msg *msg)
{
	const struct cm_req *req = &msg->req;
	bool primary = owns_gid(packet->to, &req->primary.remote_gid);
	enum rdma_port_space ps;
	uint16_t port;

	if (primary && owns_alternate(packet->to, &req->alternate))
		return false;
	if (ibcm_service(req->service_id, &ps, &port) < 0 ||
	    !ibcm_service_exists(ibcm_node(packet), ps, port))
		return false;	/* checked before, with a reason of its own */
	if (primary)
		ibcm_issue_rej(packet, msg, CM_REJ_INVALID_ALT_GID, NULL, 0);
	else
		ibcm_issue_rej(packet, msg, CM_REJ_INVALID_GID, &packet->to->gids[0].gid,
			       packet->to->num_gids ? sizeof(union ibv_gid) : 0);
	return true;
}

static enum ibv_qp_type qp_type_of(const struct cm_req *req)
{
	switch (req->transport_service_type) {
	case CM_TRANSPORT_RC:
		return IBV_QPT_RC;
	case CM_TRANSPORT_UC:
		return IBV_QPT_UC;
	case CM_TRANSPORT_EXTENDED:
		if (req->extended_transport_type == CM_EXTENDED_TRANSPORT_XRC)
			return IBV_QPT_XRC_RECV;
		/* fall through */
	default:
		return (enum ibv_qp_type)0;	/* of no listener */
	}
}

static void take_path(struct ibcm *cm, const struct sim_packet *packet, const struct cm_req *req)
{
	const struct cm_path *path = &req->primary;
	struct sim_id *id = cm->id;

	id->sgid = path->remote_gid;
	id->dgid = path->local_gid;
	id->path_mtu = (enum ibv_mtu)req->path_mtu;
	/* The lifetime is not sent; the ACK time-out is one more. */
	id->packet_lifetime = path->local_ack_timeout;
	if (id->packet_lifetime)
		id->packet_lifetime--;
	cm->av_timeout = (uint8_t)(id->packet_lifetime + 1);
	cm->dlid = packet->from->lid;
	id->sl = path->sl;
	id->rate = path->packet_rate;
	id->traffic_class = path->traffic_class;
	id->hop_limit = path->hop_limit;
	id->flow_label = path->flow_label;
	id->path_given = true;
}

static void take_req(struct ibcm *cm, const struct cm_msg *msg)
{
	const struct cm_req *req = &msg->req;

	cm->tid = msg->tid;
	cm->remote_id = req->local_comm_id;
	cm->peer_state = IBCM_REQ_SENT;
	cm->remote_ca_guid = req->local_ca_guid;
	cm->remote_qpn = req->local_qpn;
	cm->timeout_ms = ibcm_exponent_to_ms(req->local_cm_response_timeout);
	cm->max_retries = req->max_cm_retries;
	cm->initiator_depth = req->responder_resources;
	cm->responder_resources = req->initiator_depth;
	cm->sq_psn = req->starting_psn;
	cm->retry_count = req->retry_count;
	cm->rnr_retry_count = req->rnr_retry_count;
}

static int post_request(struct sim_id *listener, struct sim_id *child, const struct cm_msg *msg)
{
	const struct cm_req *req = &msg->req;
	size_t header = ibcm_header_size(child);
	struct polycm_event event = {
		.size = sizeof(event),
		.type = RDMA_CM_EVENT_CONNECT_REQUEST,
		.param.conn = {
			.private_data = req->private_data + header,
			.private_data_len = ibcm_reported(child, POLYCM_MSG_CONNECT,
							  sizeof(req->private_data) - header),
			.responder_resources = req->initiator_depth,
			.initiator_depth = req->responder_resources,
			.flow_control = req->end_to_end_flow_control,
			.retry_count = req->retry_count,
			.rnr_retry_count = req->rnr_retry_count,
			.srq = req->srq,
			.qp_num = req->local_qpn,
		},
		.ece = { .vendor_id = req->vendor_id, .options = msg->attr_mod },
	};

	return cma_post_request(listener, child, &event);
}

/* A REQ that nothing is known about yet.  0, or what cma_request() and posting say. */
static int new_request(const struct sim_packet *packet, const struct cm_msg *msg)
{
	const struct cm_req *req = &msg->req;
	struct sim_id *listener;
	struct ibcm *cm;
	int ret;

	ret = ibcm_request(packet, &(struct ibcm_asked){
		.service_id = req->service_id, .qp_type = qp_type_of(req), .path = &req->primary,
		.data = req->private_data, .len = sizeof(req->private_data),
	}, &listener, &cm);
	if (ret < 0)
		return ret;
	take_req(cm, msg);
	take_path(cm, packet, req);
	ibcm_table_add(cm, IBCM_BY_REMOTE);
	ibcm_table_add(cm, IBCM_BY_QPN);
	ibcm_set_state(cm, IBCM_REQ_RCVD);
	ret = post_request(listener, cm->id, msg);
	if (ret < 0)
		return ret;	/* the child is gone, cm with it */
	/* The program answers in its own time: see repeated_req(). */
	ibcm_set_state(cm, IBCM_MRA_REQ_SENT);
	return 0;
}

void ibcm_recv_req(const struct sim_packet *packet, const struct cm_msg *msg)
{
	const struct cm_req *req = &msg->req;
	struct sim_node *node = ibcm_node(packet);
	struct ibcm *other;

	if (!req->local_comm_id)
		return;
	other = ibcm_find_remote(node, req->local_comm_id, req->local_ca_guid, false);
	if (other) {
		repeated_req(other);
		return;
	}
	other = ibcm_find_qpn(node, req->local_qpn, req->local_ca_guid);
	if (other) {
		ibcm_issue_rej(packet, msg, CM_REJ_STALE_CONN, NULL, 0);
		(void)ibcm_send_dreq(other);	/* only where it is established */
		return;
	}
	if (refuse_path(packet, msg))
		return;
	switch (new_request(packet, msg)) {
	case 0:
		break;
	case -ENOMEM:
		break;	/* no answer: the peer tries again, and may find room */
	case -ENOENT:
		ibcm_issue_rej(packet, msg, CM_REJ_INVALID_SERVICE_ID, NULL, 0);
		break;
	default:
		ibcm_issue_rej(packet, msg, CM_REJ_CONSUMER_DEFINED, NULL, 0);
		break;
	}
}

/* The QP of an XRC target travels in the field of the EE context. */
static void put_qpn(const struct sim_id *id, const struct polycm_conn_param *param,
		    struct cm_rep *rep)
{
	if (id->qp_type == IBV_QPT_XRC_RECV) {
		rep->local_eecn = id->qp_num;
		rep->srq = true;
	} else {
		rep->local_qpn = id->qp_num;
		rep->srq = param->srq;
	}
}

/* After an error the caller rejects, as the kernel's rdma_accept() does. */
int ibcm_accept(struct sim_id *id, const struct polycm_conn_param *param)
{
	const struct polycm_transport *rules = cma_rules(id);
	struct ibcm *cm = id->ib;
	struct cm_msg msg;
	struct cm_rep *rep = &msg.rep;
	size_t limit = ibcm_limit(id, POLYCM_MSG_ACCEPT, CM_REP_PRIVATE_SIZE);
	int ret;

	if (!cm)
		return cma_wrong_state(id);
	if (param->private_data_len > limit)
		return cma_too_long(id, param->private_data_len, limit);
	if (cm->state != IBCM_REQ_RCVD && cm->state != IBCM_MRA_REQ_SENT)
		return ibcm_wrong_state(cm);
	id->qp_num = param->qp_num & CMA_QPN_MASK;
	ibcm_init_msg(cm, &msg, CM_REP);
	msg.attr_mod = param->ece.options;
	put_qpn(id, param, rep);
	rep->vendor_id = param->ece.vendor_id;
	rep->starting_psn = id->starting_psn;
	rep->responder_resources = param->responder_resources;
	rep->initiator_depth = param->initiator_depth;
	rep->target_ack_delay = id->port->device->attr.local_ca_ack_delay;
	rep->end_to_end_flow_control = param->flow_control & 1;
	rep->rnr_retry_count = param->rnr_retry_count < rules->max_rnr_retry_count ?
			       param->rnr_retry_count : rules->max_rnr_retry_count;
	rep->local_ca_guid = ibcm_ca_guid(id);
	if (param->private_data)
		memcpy(rep->private_data, param->private_data, param->private_data_len);
	ret = ibcm_send_repeatedly(cm, &msg, 0);
	if (ret < 0)
		return ret;
	cm->initiator_depth = param->initiator_depth;
	cm->responder_resources = param->responder_resources;
	ibcm_set_state(cm, IBCM_REP_SENT);
	return 0;
}

static void established(struct ibcm *cm)
{
	ibcm_stop_repeating(cm);
	ibcm_set_state(cm, IBCM_ESTABLISHED);
	if (cm->id->state == CMA_CONNECT)
		(void)cma_post_simple(cm->id, RDMA_CM_EVENT_ESTABLISHED, 0);
}

void ibcm_recv_rtu(const struct sim_packet *packet, const struct cm_msg *msg)
{
	struct ibcm *cm = ibcm_find(packet, msg->rtu.remote_comm_id, msg->rtu.local_comm_id);

	if (!cm)
		return;
	ibcm_peer_sent(cm, CM_RTU);
	if (cm->state == IBCM_REP_SENT || cm->state == IBCM_MRA_REP_RCVD)
		established(cm);
}

int ibcm_notify(struct sim_id *id, enum ibv_event_type event)
{
	struct ibcm *cm = id->ib;

	if (!cm)
		return sim_refuse(-EINVAL, "the id has no connection");
	switch (event) {
	case IBV_EVENT_COMM_EST:
		if (cm->state == IBCM_ESTABLISHED)
			return sim_refuse(-EISCONN, "the connection is established already");
		if (cm->state != IBCM_REP_SENT && cm->state != IBCM_MRA_REP_RCVD)
			return ibcm_wrong_state(cm);
		established(cm);
		return 0;
	case IBV_EVENT_PATH_MIG:
		return cm->state == IBCM_ESTABLISHED ? 0 : ibcm_wrong_state(cm);
	default:
		return sim_refuse(-EINVAL, "event %d is neither COMM_EST nor PATH_MIG", (int)event);
	}
}
