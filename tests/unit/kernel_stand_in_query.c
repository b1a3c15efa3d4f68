/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * kernel_stand_in_query.c - what the stand-in tells of an id: addresses,
 * device, paths, and attributes for its QP.
 */
#include "kernel_stand_in_internal.h"

#include <endian.h>
#include <stdlib.h>

#define IB_MTU		4	/* 2048 */
#define IB_RATE		7	/* 40 Gb/s */
#define IB_LIFE		18
#define ROCE_MTU	3	/* 1024 */
#define ROCE_LIFE	16
#define EXACTLY		2	/* a selector */
#define KERNEL_BITS	(7 << 21)	/* of a mask; some kernels set them everywhere */

static uint16_t pkey_of(const struct si_id *id)
{
	return id->device->port[id->port_num - 1].pkey;
}

/* Kernels that have no index for a device end their answers before it. */
static size_t with_index(const struct si_id *id, size_t size, size_t size_without)
{
	return id->device && id->device->host.index < 0 ? size_without : size;
}

/* The path as ROUTE_RESOLVED has it; Ethernet has no LIDs. */
static void fill_path(const struct si_id *id, struct ib_user_path_rec *path)
{
	bool ib = si_kind(id) == STAND_IN_IB;

	memcpy(path->dgid, &id->dgid, sizeof(path->dgid));
	memcpy(path->sgid, &id->sgid, sizeof(path->sgid));
	path->dlid = htons(id->dlid);
	path->slid = htons(id->slid);
	path->reversible = 1;
	path->numb_path = 1;
	path->pkey = htons(pkey_of(id));
	path->hop_limit = ib ? 0 : 64;
	path->mtu_selector = EXACTLY;
	path->mtu = ib ? IB_MTU : ROCE_MTU;
	path->rate_selector = EXACTLY;
	path->rate = IB_RATE;
	path->packet_life_time_selector = EXACTLY;
	path->packet_life_time = ib ? IB_LIFE : ROCE_LIFE;
}

/* The same as the SA's attribute has it. */
static void pack_path(const struct si_id *id, unsigned char *out)
{
	struct ib_user_path_rec path = { 0 };

	fill_path(id, &path);
	memcpy(out + 8, path.dgid, 16);
	memcpy(out + 24, path.sgid, 16);
	memcpy(out + 40, &path.dlid, 2);
	memcpy(out + 42, &path.slid, 2);
	out[47] = path.hop_limit;
	out[49] = (unsigned char)(path.reversible << 7 | path.numb_path);
	memcpy(out + 50, &path.pkey, 2);
	out[54] = (unsigned char)((unsigned int)path.mtu_selector << 6 | path.mtu);
	out[55] = (unsigned char)(path.rate_selector << 6 | path.rate);
	out[56] = (unsigned char)(path.packet_life_time_selector << 6 | path.packet_life_time);
}

static void copy_in6(const struct sockaddr_storage *from, struct sockaddr_in6 *to)
{
	memcpy(to, from, from->ss_family == AF_INET ? sizeof(struct sockaddr_in) : sizeof(*to));
}

int si_query_route(struct si_id *id, uint64_t response, const struct si_reply *reply)
{
	struct rdma_ucm_query_route_resp resp = { 0 };

	copy_in6(&id->src, &resp.src_addr);
	copy_in6(&id->dst, &resp.dst_addr);
	if (id->device) {
		resp.node_guid = id->device->host.node_guid;
		resp.ibdev_index = (uint32_t)id->device->host.index;
		resp.port_num = id->port_num;
		resp.num_paths = id->num_paths;
		memcpy(resp.ib_route[0].sgid, &id->sgid, 16);
		memcpy(resp.ib_route[0].dgid, &id->dgid, 16);
		if (si_kind(id) != STAND_IN_IWARP)
			resp.ib_route[0].pkey = htons(pkey_of(id));
		if (id->num_paths)
			fill_path(id, &resp.ib_route[0]);
	}
	return si_respond(reply, response, &resp,
			  with_index(id, sizeof(resp),
				     offsetof(struct rdma_ucm_query_route_resp, ibdev_index)));
}

static void copy_gid(const struct si_id *id, const struct sockaddr_storage *addr,
		     const union ibv_gid *gid, struct __kernel_sockaddr_storage *to)
{
	struct sockaddr_ib ib = {
		.sib_family = AF_IB,
		.sib_sid = htobe64((uint64_t)id->ps << 16 | si_addr_port(addr)),
		.sib_sid_mask = htobe64(UINT64_MAX),
	};

	if (addr->ss_family == AF_IB) {
		memcpy(to, addr, sizeof(ib));
		return;
	}
	if (id->device) {
		ib.sib_pkey = htons(pkey_of(id));
		memcpy(&ib.sib_addr, gid, sizeof(ib.sib_addr));
	}
	memcpy(to, &ib, sizeof(ib));
}

static int query_addr(struct si_id *id, bool gids, uint64_t response, const struct si_reply *reply)
{
	struct rdma_ucm_query_addr_resp resp = { 0 };

	if (reply->size < offsetof(struct rdma_ucm_query_addr_resp, ibdev_index))
		return -ENOSPC;
	if (id->device) {
		resp.node_guid = id->device->host.node_guid;
		resp.ibdev_index = (uint32_t)id->device->host.index;
		resp.port_num = id->port_num;
		resp.pkey = htons(pkey_of(id));
	}
	if (gids) {
		resp.src_size = resp.dst_size = sizeof(struct sockaddr_ib);
		copy_gid(id, &id->src, &id->sgid, &resp.src_addr);
		copy_gid(id, &id->dst, &id->dgid, &resp.dst_addr);
	} else {
		resp.src_size = (uint16_t)si_addr_size(&id->src);
		memcpy(&resp.src_addr, &id->src, resp.src_size);
		resp.dst_size = (uint16_t)si_addr_size(&id->dst);
		memcpy(&resp.dst_addr, &id->dst, resp.dst_size);
	}
	return si_respond(reply, response, &resp,
			  with_index(id, sizeof(resp),
				     offsetof(struct rdma_ucm_query_addr_resp, ibdev_index)));
}

static int query_path(struct si_id *id, uint64_t response, const struct si_reply *reply)
{
	/* struct rdma_ucm_query_path_resp with one path. */
	struct {
		uint32_t num_paths, reserved;
		struct ib_path_rec_data path;
	} out;

	if (reply->size < sizeof(struct rdma_ucm_query_path_resp))
		return -ENOSPC;
	memset(&out, 0, sizeof(out));
	out.num_paths = id->num_paths;
	if (id->num_paths) {
		out.path.flags = IB_PATH_GMP | IB_PATH_PRIMARY | IB_PATH_BIDIRECTIONAL;
		pack_path(id, (unsigned char *)out.path.path_rec);
	}
	return si_respond(reply, response, &out, sizeof(out));
}

int si_query(struct si_id *id, uint32_t option, uint64_t response, const struct si_reply *reply)
{
	switch (option) {
	case RDMA_USER_CM_QUERY_ADDR:
		return query_addr(id, false, response, reply);
	case RDMA_USER_CM_QUERY_GID:
		return query_addr(id, true, response, reply);
	case RDMA_USER_CM_QUERY_PATH:
		return query_path(id, response, reply);
	default:
		return -ENOSYS;
	}
}

/* ------------------------------------------------------------------------
 * Attributes.  The numbers that this side gave and the other gave decide.
 */

static void fill_av(const struct si_id *id, struct ib_uverbs_ah_attr *ah)
{
	ah->dlid = id->dlid;
	ah->port_num = id->port_num;
	ah->static_rate = IB_RATE;
	ah->is_global = si_kind(id) == STAND_IN_ROCE;
	if (!ah->is_global)
		return;
	memcpy(ah->grh.dgid, &id->dgid, sizeof(ah->grh.dgid));
	ah->grh.hop_limit = 64;
	ah->grh.sgid_index = 3;
}

static void init_attr(const struct si_id *id, struct ib_uverbs_qp_attr *attr)
{
	attr->qp_attr_mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT;
	attr->port_num = id->port_num;
	attr->pkey_index = pkey_of(id) == 0xffff ? 0 : 1;
	if (id->qp_type == IBV_QPT_UD) {
		attr->qp_attr_mask |= IBV_QP_QKEY;
		attr->qkey = SI_QKEY;
	} else {
		attr->qp_attr_mask |= IBV_QP_ACCESS_FLAGS;
		if (id->cm != CM_IDLE)
			attr->qp_access_flags = IBV_ACCESS_REMOTE_WRITE;
		if (id->cm != CM_IDLE && id->theirs.initiator_depth)
			attr->qp_access_flags |= IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
	}
}

static int rtr_attr(const struct si_id *id, struct ib_uverbs_qp_attr *attr)
{
	if (id->cm == CM_IDLE || id->cm == CM_REQ_SENT)
		return -EINVAL;
	attr->qp_attr_mask = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
			     IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER |
			     KERNEL_BITS;
	fill_av(id, &attr->ah_attr);
	attr->path_mtu = si_kind(id) == STAND_IN_IB ? IB_MTU : ROCE_MTU;
	attr->dest_qp_num = id->theirs.qp_num;
	attr->rq_psn = 0x1000 + id->id % 0x1000;
	attr->max_dest_rd_atomic = id->theirs.initiator_depth;
	return 0;
}

static int rts_attr(const struct si_id *id, struct ib_uverbs_qp_attr *attr)
{
	if (id->cm == CM_IDLE || id->cm == CM_REQ_SENT)
		return -EINVAL;
	attr->qp_attr_mask = IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
			     IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_TIMEOUT;
	attr->sq_psn = 0x2000;
	attr->retry_cnt = id->child ? id->theirs.retry_count : id->own.retry_count;
	attr->rnr_retry = id->theirs.rnr_retry_count;
	attr->max_rd_atomic = id->theirs.responder_resources;
	attr->timeout = id->has_ack_timeout ? id->ack_timeout
		      : si_kind(id) == STAND_IN_IB ? IB_LIFE + 1 : ROCE_LIFE + 1;
	return 0;
}

int si_init_qp_attr(struct si_id *id, uint32_t state, struct ib_uverbs_qp_attr *ret_attr)
{
	memset(ret_attr, 0, sizeof(*ret_attr));
	ret_attr->qp_state = state;
	if (si_kind(id) == STAND_IN_IWARP) {
		ret_attr->qp_attr_mask = IBV_QP_STATE;
		if (state == IBV_QPS_INIT || state == IBV_QPS_RTR)
			ret_attr->qp_attr_mask |= IBV_QP_ACCESS_FLAGS;
		ret_attr->qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;
		return 0;
	}
	if (state == IBV_QPS_INIT || id->qp_type == IBV_QPT_UD) {
		ret_attr->qp_state = IBV_QPS_INIT;
		init_attr(id, ret_attr);
		return 0;
	}
	if (state == IBV_QPS_RTR)
		return rtr_attr(id, ret_attr);
	if (state == IBV_QPS_RTS)
		return rts_attr(id, ret_attr);
	return -EINVAL;
}
