/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ibcm_request.c - what REQ and SIDR_REQ have in common: the service id and,
 * in front of the program's data, the addresses that the RDMA CM puts there.
 */
#include "config.h"

#include <endian.h>
#include <errno.h>
#include <string.h>

#include "ibcm.h"

uint64_t ibcm_service_id(const struct sim_id *id, const union sim_sockaddr *addr)
{
	/* The port is in the same place for both families. */
	return cm_service_id((uint16_t)id->ps, be16toh(addr->in.sin_port));
}

int ibcm_put_request_data(const struct sim_id *id, const struct polycm_conn_param *param,
			  uint8_t *data, size_t room)
{
	struct cma_hdr_info hdr = {
		.ip_version = id->dst.sa.sa_family == AF_INET6 ? 6 : 4,
		.src = id->src,
		.dst = id->dst,
	};
	size_t limit = ibcm_limit(id, POLYCM_MSG_CONNECT, room - CMA_HDR_SIZE);

	if (param->private_data_len > limit)
		return cma_too_long(id, param->private_data_len, limit);
	cma_hdr_encode(&hdr, data);
	if (param->private_data)
		memcpy(data + CMA_HDR_SIZE, param->private_data, param->private_data_len);
	return 0;
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
	union sim_sockaddr any;
	struct sim_id *listener;
	unsigned int slot;
	bool service = false;

	memset(&any, 0, sizeof(any));
	any.in.sin_family = AF_INET;
	any.in.sin_port = htobe16(port);
	return sim_find_listener(node, ps, &any.sa, &slot, &listener, &service) || service;
}

int ibcm_request(const struct sim_packet *packet, uint64_t service_id, enum ibv_qp_type qp_type,
		 const uint8_t *data, size_t len, struct sim_id **ret_listener,
		 struct sim_id **ret_child)
{
	struct cma_hdr_info hdr;
	enum rdma_port_space ps;
	uint16_t port;

	if (ibcm_service(service_id, &ps, &port) < 0)
		return -ENOENT;
	if (cma_hdr_decode(data, len, &hdr) < 0)
		return ibcm_service_exists(ibcm_node(packet), ps, port) ? -EPROTO : -ENOENT;
	hdr.dst.in.sin_port = htobe16(port);
	return cma_request(packet->to, ps, qp_type, &hdr.src, &hdr.dst, ret_listener, ret_child);
}
