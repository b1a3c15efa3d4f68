/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cm/ibcm_request.c - what REQ and SIDR_REQ have in common: the service id and,
 * in front of the program's data, the addresses that the RDMA CM puts there.
 */
#include "config.h"

#include <endian.h>
#include <errno.h>
#include <string.h>

#include "ibcm.h"

uint64_t ibcm_service_id(const struct sim_id *id, const union sim_sockaddr *addr)
{
	if (addr->sa.sa_family == AF_IB)
		return be64toh(addr->ib.sib_sid);
	/* The port is in the same place for both families. */
	return cm_service_id((uint16_t)id->ps, be16toh(addr->in.sin_port));
}

enum rdma_port_space ibcm_dst_port_space(const struct sim_id *id)
{
	enum rdma_port_space ps = id->ps;
	uint16_t port;

	/* A service that is none of the RDMA CM's is nowhere. */
	if (cma_is_af_ib(id))
		(void)ibcm_service(ibcm_service_id(id, &id->dst), &ps, &port);
	return ps;
}

/* The receiver tells by its first bytes whether there is a header. */
static void check_headless(const struct sim_id *id, const uint8_t *data)
{
	struct cma_hdr_info hdr;

	if (data[0] || !cma_hdr_decode(data, CMA_HDR_SIZE, &hdr))
		sim_core->log(POLYCM_LOG_WARN, id->id, "private data over AF_IB should begin with "
			      "a byte 0, and the second with other bits than 4 or 6: the peer's "
			      "RDMA CM takes these for its header");
}

void ibcm_take_route(struct ibcm *cm)
{
	const struct sim_id *id = cm->id;

	cm->dlid = cma_dlid(id);
	cm->av_timeout = (uint8_t)(id->packet_lifetime + 1);
	cm->tid = ibcm_new_tid(cm);
	cm->peer = cma_peer_port(id);
	cm->max_retries = cma_rules(id)->max_cm_retries;
}

static int put_data(const struct sim_id *id, const struct polycm_conn_param *param, uint8_t *data,
		    size_t room)
{
	struct cma_hdr_info hdr = {
		.ip_version = id->dst.sa.sa_family == AF_INET6 ? 6 : 4,
		.src = id->src,
		.dst = id->dst,
	};
	size_t header = ibcm_header_size(id);
	size_t limit = ibcm_limit(id, POLYCM_MSG_CONNECT, room - header);

	if (param->private_data_len > limit)
		return cma_too_long(id, param->private_data_len, limit);
	if (header)
		cma_hdr_encode(&hdr, data);
	if (param->private_data)
		memcpy(data + header, param->private_data, param->private_data_len);
	if (!header)
		check_headless(id, data);
	return 0;
}

int ibcm_send_request(struct ibcm *cm, struct cm_msg *msg, const struct polycm_conn_param *param)
{
	bool ud = msg->attr_id == CM_SIDR_REQ;
	struct sim_id *id = cm->id;
	int r;

	r = ud ? put_data(id, param, msg->sidr_req.private_data, CM_SIDR_REQ_PRIVATE_SIZE)
	       : put_data(id, param, msg->req.private_data, CM_REQ_PRIVATE_SIZE);
	if (!r)
		r = ibcm_send_repeatedly(cm, msg, cma_delay);
	if (!r) {
		id->ib = cm;
		ibcm_set_state(cm, ud ? IBCM_SIDR_REQ_SENT : IBCM_REQ_SENT);
	} else if (!id->ib) {
		ibcm_destroy(cm);
	}
	return r;
}

int ibcm_service(uint64_t service_id, enum rdma_port_space *ret_ps, uint16_t *ret_port)
{
	uint16_t ps = cm_service_id_port_space(service_id);

	switch (ps) {
	case RDMA_PS_TCP:
	case RDMA_PS_UDP:
	case RDMA_PS_IPOIB:
	case RDMA_PS_IB:
		*ret_ps = (enum rdma_port_space)ps;
		*ret_port = cm_service_id_port(service_id);
		return 0;
	default:
		return -ENOENT;
	}
}

bool ibcm_service_exists(struct sim_node *node, enum rdma_port_space ps, uint16_t port)
{
	union sim_sockaddr any = cma_any_address(AF_INET);
	struct sim_id *listener;
	unsigned int slot;
	bool service = false;

	any.in.sin_port = htobe16(port);
	return sim_find_listener(node, ps, &any.sa, &slot, &listener, &service) || service;
}

/*
 * A listener with an address of AF_IB takes whatever comes in for its service
 * on its device; what it is told of addresses is the GIDs of the path.
 */
static int request_af_ib(const struct sim_packet *packet, const struct ibcm_asked *asked,
			 enum rdma_port_space ps, struct sim_id **ret_listener,
			 struct sim_id **ret_child)
{
	static const union ibv_gid none;
	uint32_t flow_label = asked->path ? asked->path->flow_label : 0;
	union sim_sockaddr src, dst;
	int r = -ENOENT;

	src = cma_ib_address(asked->path ? &asked->path->local_gid : &none, 0, flow_label);
	for (unsigned int i = 0; r < 0 && i < packet->to->num_gids; i++) {
		dst = cma_ib_address(&packet->to->gids[i].gid, asked->service_id, flow_label);
		r = cma_request(packet->to, ps, asked->qp_type, &src, &dst, ret_listener,
				ret_child);
		if (r != -ENOENT && r != -ECONNREFUSED)
			break;
	}
	return r == -EAFNOSUPPORT ? -ECONNREFUSED : r;
}

/* As cma_request(), and -EPROTO: the CMA header is bad. */
static int find_and_make(const struct sim_packet *packet, const struct ibcm_asked *asked,
			 struct sim_id **ret_listener, struct sim_id **ret_child)
{
	struct cma_hdr_info hdr;
	enum rdma_port_space ps;
	uint16_t port;
	int r = -ENOENT;

	if (ibcm_service(asked->service_id, &ps, &port) < 0)
		return -ENOENT;
	if (!cma_hdr_decode(asked->data, asked->len, &hdr)) {
		hdr.dst.in.sin_port = htobe16(port);
		r = cma_request(packet->to, ps, asked->qp_type, &hdr.src, &hdr.dst, ret_listener,
				ret_child);
	} else if (asked->data[0]) {		/* a header, of another version */
		return ibcm_service_exists(ibcm_node(packet), ps, port) ? -EPROTO : -ENOENT;
	}
	if (r == -ENOENT || r == -ECONNREFUSED || r == -EAFNOSUPPORT)
		r = request_af_ib(packet, asked, ps, ret_listener, ret_child);
	return r;
}

int ibcm_request(const struct sim_packet *packet, const struct ibcm_asked *asked,
		 struct sim_id **ret_listener, struct ibcm **ret_cm)
{
	uint32_t number = ibcm_take_number();
	struct sim_id *child;
	struct ibcm *cm;
	int r;

	if (!number)
		return -ENOMEM;
	r = find_and_make(packet, asked, ret_listener, &child);
	if (r < 0)
		return r;
	cm = child->ib = ibcm_create_with(child, number);
	cm->peer = packet->from;
	child->peer_mac = packet->from->mac_number;
	*ret_cm = cm;
	return 0;
}
