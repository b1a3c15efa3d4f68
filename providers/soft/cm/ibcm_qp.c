/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cm/ibcm_qp.c - the attributes that bring a queue pair along with its
 * connection, as rdma_init_qp_attr() gives them.
 */
#include "config.h"

#include <errno.h>
#include <string.h>

#include "providers/soft/nic/nic.h"
#include "ibcm.h"

uint8_t ibcm_ack_timeout(const struct sim_id *id, uint8_t ack_delay, uint8_t packet_lifetime)
{
	const struct polycm_transport *rules = cma_rules(id);

	return rules->ack_timeout ? rules->ack_timeout(ack_delay, packet_lifetime)
				  : (uint8_t)(packet_lifetime + 1);
}

/* The entry of that GID which RoCE v2 uses, where there are several. */
static uint8_t gid_index(const struct sim_port *port, const union ibv_gid *gid)
{
	unsigned int i, found = 0;
	bool any = false;

	for (i = 0; i < port->num_gids; i++) {
		if (memcmp(&port->gids[i].gid, gid, sizeof(*gid)))
			continue;
		if (!any || port->gids[i].type > port->gids[found].type)
			found = i;
		any = true;
	}
	return (uint8_t)found;
}

void ibcm_fill_ah(const struct ibcm *cm, struct ibv_ah_attr *ret_ah)
{
	const struct sim_id *id = cm->id;
	bool subnet = cma_rules(id)->link_layer == IBV_LINK_LAYER_INFINIBAND;

	memset(ret_ah, 0, sizeof(*ret_ah));
	ret_ah->port_num = id->port->num;
	ret_ah->sl = id->sl;
	ret_ah->static_rate = id->rate;
	if (subnet)
		ret_ah->dlid = cm->dlid;
	if (subnet && id->hop_limit <= 1)
		return;
	ret_ah->is_global = 1;
	ret_ah->grh.dgid = id->dgid;
	ret_ah->grh.sgid_index = gid_index(id->port, &id->sgid);
	ret_ah->grh.flow_label = cma_flow_label(id);
	ret_ah->grh.hop_limit = id->hop_limit;
	ret_ah->grh.traffic_class = id->traffic_class;
}

/* Before there is a connection, and always for UD: whatever state is asked for. */
static int init_unconnected(struct sim_id *id, struct ibv_qp_attr *attr, int *ret_mask)
{
	attr->pkey_index = 0;
	attr->port_num = id->port->num;
	*ret_mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT;
	if (id->qp_type != IBV_QPT_UD) {
		*ret_mask |= IBV_QP_ACCESS_FLAGS;
		return 0;
	}
	if (!id->ib)
		id->ib = ibcm_create(id);
	if (!id->ib)
		return -ENOMEM;
	sidr_set_default_qkey(id->ib);
	attr->qkey = id->ib->qkey;
	*ret_mask |= IBV_QP_QKEY;
	return 0;
}

static void init_init(const struct ibcm *cm, struct ibv_qp_attr *attr, int *ret_mask)
{
	*ret_mask = IBV_QP_STATE | IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX | IBV_QP_PORT;
	attr->pkey_index = 0;
	attr->port_num = cm->id->port->num;
	attr->qp_access_flags = IBV_ACCESS_REMOTE_WRITE;
	if (!cm->responder_resources)
		return;
	attr->qp_access_flags |= IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
	/* Flushes come with them where a device has these: Linux's own RoCE device does. */
	if (cma_rules(cm->id)->link_layer != IBV_LINK_LAYER_INFINIBAND)
		attr->qp_access_flags |= SIM_ACCESS_FLUSH;
}

static void init_rtr(const struct ibcm *cm, struct ibv_qp_attr *attr, int *ret_mask)
{
	const struct sim_id *id = cm->id;

	*ret_mask = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
	ibcm_fill_ah(cm, &attr->ah_attr);
	attr->path_mtu = id->path_mtu;
	attr->dest_qp_num = cm->remote_qpn;
	attr->rq_psn = id->starting_psn;
	if (id->qp_type == IBV_QPT_RC || id->qp_type == IBV_QPT_XRC_RECV) {
		*ret_mask |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
		attr->max_dest_rd_atomic = cm->responder_resources;
		attr->min_rnr_timer = cma_rules(id)->min_rnr_timer;
	}
}

static void init_rts(const struct ibcm *cm, struct ibv_qp_attr *attr, int *ret_mask)
{
	enum ibv_qp_type qp_type = cm->id->qp_type;

	*ret_mask = IBV_QP_STATE | IBV_QP_SQ_PSN;
	attr->sq_psn = cm->sq_psn;
	if (qp_type == IBV_QPT_RC || qp_type == IBV_QPT_XRC_SEND) {
		*ret_mask |= IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
		attr->retry_cnt = cm->retry_count;
		attr->rnr_retry = cm->rnr_retry_count;
		attr->max_rd_atomic = cm->initiator_depth;
	}
	if (qp_type == IBV_QPT_RC || qp_type == IBV_QPT_XRC_SEND || qp_type == IBV_QPT_XRC_RECV) {
		*ret_mask |= IBV_QP_TIMEOUT;
		attr->timeout = cm->av_timeout;
	}
}

/* Once the peer's QP is known. */
static bool knows_peer(const struct ibcm *cm)
{
	switch (cm->state) {
	case IBCM_REQ_RCVD:
	case IBCM_MRA_REQ_SENT:
	case IBCM_REP_RCVD:
	case IBCM_MRA_REP_SENT:
	case IBCM_REP_SENT:
	case IBCM_MRA_REP_RCVD:
	case IBCM_ESTABLISHED:
		return true;
	default:
		return false;
	}
}

static int init_connected(const struct ibcm *cm, struct ibv_qp_attr *attr, int *ret_mask)
{
	bool asking = cm->state == IBCM_REQ_SENT || cm->state == IBCM_MRA_REQ_RCVD;

	if (!knows_peer(cm) && !(asking && attr->qp_state == IBV_QPS_INIT))
		return sim_refuse(-EINVAL, "the peer's queue pair is not known");
	switch (attr->qp_state) {
	case IBV_QPS_INIT:
		init_init(cm, attr, ret_mask);
		return 0;
	case IBV_QPS_RTR:
		init_rtr(cm, attr, ret_mask);
		return 0;
	case IBV_QPS_RTS:
		init_rts(cm, attr, ret_mask);
		return 0;
	default:
		return sim_refuse(-EINVAL, "state %d is none of INIT, RTR and RTS",
				  (int)attr->qp_state);
	}
}

int ibcm_init_qp_attr(struct sim_id *id, struct ibv_qp_attr *attr, int *ret_mask)
{
	struct ibv_qp_attr result;
	int ret, mask;

	memset(&result, 0, sizeof(result));
	result.qp_state = attr->qp_state;
	if (id->ib && id->qp_type != IBV_QPT_UD)
		ret = init_connected(id->ib, &result, &mask);
	else
		ret = init_unconnected(id, &result, &mask);
	if (ret < 0)
		return ret;
	if (result.qp_state == IBV_QPS_RTR)
		result.rq_psn = id->starting_psn;
	*attr = result;
	*ret_mask = mask;
	return 0;
}
