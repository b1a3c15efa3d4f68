/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cm/sidr.c - service id resolution, which is how a UD id "connects": SIDR_REQ
 * asks for the QP behind a service, SIDR_REP gives its number and Q_Key.
 *
 * The passive side forgets a request once it answered, so a repeated SIDR_REQ
 * is a new one then, as in the kernel.
 */
#include "config.h"

#include <errno.h>
#include <string.h>

#include "ibcm.h"

void sidr_set_default_qkey(struct ibcm *cm)
{
	if (cm->qkey)
		return;
	switch (cm->id->ps) {
	case RDMA_PS_UDP:
	case RDMA_PS_IB:
		cm->qkey = RDMA_UDP_QKEY;
		break;
	case RDMA_PS_IPOIB:
		cm->qkey = CMA_IPOIB_QKEY;
		break;
	default:
		break;
	}
}

/* 0 means none, and a Q_Key once set stays. */
static int set_qkey(struct ibcm *cm, uint32_t qkey)
{
	if (!qkey || (cm->qkey && cm->qkey != qkey))
		return -EINVAL;
	cm->qkey = qkey;
	return 0;
}

int sidr_connect(struct sim_id *id, const struct polycm_conn_param *param)
{
	struct cm_msg msg;
	struct ibcm *cm = id->ib ? id->ib : ibcm_create(id);

	if (!cm)
		return -ENOMEM;
	ibcm_take_route(cm);
	cm->timeout_ms = ibcm_exponent_to_ms(cma_rules(id)->cm_response_timeout);
	ibcm_init_msg(cm, &msg, CM_SIDR_REQ);
	msg.sidr_req.request_id = cm->local_id;
	msg.sidr_req.pkey = SIM_PKEY;
	msg.sidr_req.service_id = ibcm_service_id(id, &id->dst);
	return ibcm_send_request(cm, &msg, param);
}

static void post_reply(struct ibcm *cm, const struct cm_msg *msg)
{
	const struct cm_sidr_rep *rep = &msg->sidr_rep;
	struct polycm_event event = {
		.size = sizeof(event),
		.is_ud = true,
		.param.ud = {
			.private_data = rep->private_data,
			.private_data_len = ibcm_reported(cm->id, POLYCM_MSG_ACCEPT,
							  sizeof(rep->private_data)),
		},
		.ece = { .vendor_id = rep->vendor_id, .options = msg->attr_mod },
	};

	if (rep->status != CM_SIDR_SUCCESS) {
		event.type = RDMA_CM_EVENT_UNREACHABLE;
		event.status = rep->status;
	} else if (set_qkey(cm, rep->qkey) < 0) {
		event.type = RDMA_CM_EVENT_ADDR_ERROR;
		event.status = -EINVAL;
	} else {
		event.type = RDMA_CM_EVENT_ESTABLISHED;
		ibcm_fill_ah(cm, &event.param.ud.ah_attr);
		event.param.ud.qp_num = rep->qpn;
		event.param.ud.qkey = rep->qkey;
	}
	ibcm_post(cm, &event);
}

void sidr_recv_rep(const struct sim_packet *packet, const struct cm_msg *msg)
{
	struct ibcm *cm = ibcm_find(packet, msg->sidr_rep.request_id, 0);

	if (!cm || cm->state != IBCM_SIDR_REQ_SENT)
		return;
	post_reply(cm, msg);
	ibcm_stop_repeating(cm);
	ibcm_set_state(cm, IBCM_IDLE);
}

/* --- The passive side. --- */

static void init_rep(struct cm_msg *ret_msg, uint64_t tid, uint32_t request_id,
		     uint64_t service_id, uint8_t status)
{
	memset(ret_msg, 0, sizeof(*ret_msg));
	ret_msg->attr_id = CM_SIDR_REP;
	ret_msg->tid = tid;
	ret_msg->sidr_rep.request_id = request_id;
	ret_msg->sidr_rep.status = status;
	ret_msg->sidr_rep.service_id = service_id;
}

int sidr_reply(struct ibcm *cm, uint8_t status, const struct polycm_conn_param *param)
{
	const struct sim_id *id = cm->id;
	struct cm_msg msg;

	if (cm->state != IBCM_SIDR_REQ_RCVD)
		return ibcm_wrong_state(cm);
	init_rep(&msg, cm->tid, cm->remote_id, ibcm_service_id(id, &id->src), status);
	if (status == CM_SIDR_SUCCESS) {
		sidr_set_default_qkey(cm);
		msg.sidr_rep.qkey = cm->qkey;
		if (param) {
			msg.sidr_rep.qpn = param->qp_num & CMA_QPN_MASK;
			msg.sidr_rep.vendor_id = param->ece.vendor_id;
			msg.attr_mod = param->ece.options;
		}
	}
	if (param && param->private_data)
		memcpy(msg.sidr_rep.private_data, param->private_data, param->private_data_len);
	ibcm_leave(cm, IBCM_IDLE);
	ibcm_send(cm, &msg);
	return 0;
}

int sidr_accept(struct sim_id *id, const struct polycm_conn_param *param)
{
	size_t limit = ibcm_limit(id, POLYCM_MSG_ACCEPT, CM_SIDR_REP_PRIVATE_SIZE);
	struct ibcm *cm = id->ib;

	if (!cm)
		return cma_wrong_state(id);
	if (param->qkey && set_qkey(cm, param->qkey) < 0)
		return sim_refuse(-EINVAL, "another Q_Key than the id has");
	if (param->private_data_len > limit)
		return cma_too_long(id, param->private_data_len, limit);
	return sidr_reply(cm, CM_SIDR_SUCCESS, param);
}

static int post_request(struct sim_id *listener, struct sim_id *child,
			const struct cm_sidr_req *req)
{
	size_t header = ibcm_header_size(child);
	struct polycm_event event = {
		.size = sizeof(event),
		.type = RDMA_CM_EVENT_CONNECT_REQUEST,
		.is_ud = true,
		.param.ud = {
			.private_data = req->private_data + header,
			.private_data_len = ibcm_reported(child, POLYCM_MSG_CONNECT,
							  sizeof(req->private_data) - header),
		},
	};

	return cma_post_request(listener, child, &event);
}

static uint64_t sender_lid(const struct sim_packet *packet)
{
	return packet->from->lid;	/* 0 on Ethernet */
}

static int new_request(const struct sim_packet *packet, const struct cm_msg *msg)
{
	const struct cm_sidr_req *req = &msg->sidr_req;
	struct sim_id *listener;
	struct ibcm *cm;
	int ret;

	ret = ibcm_request(packet, &(struct ibcm_asked){
		.service_id = req->service_id, .qp_type = IBV_QPT_UD,
		.data = req->private_data, .len = sizeof(req->private_data),
	}, &listener, &cm);
	if (ret < 0)
		return ret;
	cm->tid = msg->tid;
	cm->remote_id = req->request_id;
	cm->remote_ca_guid = sender_lid(packet);
	ibcm_table_add(cm, IBCM_BY_REMOTE);
	ibcm_set_state(cm, IBCM_SIDR_REQ_RCVD);
	return post_request(listener, cm->id, req);
}

static void refuse(const struct sim_packet *packet, const struct cm_msg *msg, uint8_t status)
{
	struct cm_msg rep;

	init_rep(&rep, msg->tid, msg->sidr_req.request_id, msg->sidr_req.service_id, status);
	ibcm_answer(packet, msg->sidr_req.request_id, &rep);
}

void sidr_recv_req(const struct sim_packet *packet, const struct cm_msg *msg)
{
	const struct cm_sidr_req *req = &msg->sidr_req;
	int ret;

	if (!req->request_id ||
	    ibcm_find_remote(ibcm_node(packet), req->request_id, sender_lid(packet), true))
		return;
	ret = new_request(packet, msg);
	if (ret == -ENOENT)
		refuse(packet, msg, CM_SIDR_UNSUPPORTED);
	else if (ret < 0)
		refuse(packet, msg, CM_SIDR_REJECT);
}
