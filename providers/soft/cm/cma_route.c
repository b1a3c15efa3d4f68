/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cm/cma_route.c - rdma_resolve_route(), and the path that an id has then.
 * InfiniBand asks the subnet administrator; RoCE and iWARP know the path
 * already and only report it later.  Engine lock held.
 */
#include "config.h"

#include <errno.h>
#include <string.h>

#include "providers/soft/fabric/gids.h"
#include "providers/soft/faults/fault.h"
#include "cma_internal.h"
#include "ibcm.h"


/* The SA client's retries: one wait and ten more. */
#define SA_TRIES 11u

#define HOP_LIMIT 64u			/* of an IP route */
#define SELECT_EXACTLY 2u		/* IBTA vol. 1, PathRecord: MtuSelector and the like */
#define FLOW_LABEL_MASK 0xfffffu
#define ALL_LIDS 0xffffu
/* The kernel's of each path, which RDMA_OPTION_IB_PATH wants; programs find them as "preference". */
#define PATH_FLAGS (IBV_PATH_FLAG_GMP | IBV_PATH_FLAG_PRIMARY | IBV_PATH_FLAG_BIDIRECTIONAL)

/* How long the SA client keeps asking. */
static uint64_t sa_deadline(uint32_t timeout_ms)
{
	uint32_t step = timeout_ms / 10;

	return SIM_MS(step ? step : 1) * SA_TRIES;
}

/*
 * Ask the SA for a path: when there is an answer, and which.  It has no record
 * of ports that it does not know, and drops those that went down.  -EAGAIN:
 * there is no way to ask it.
 */
static int ask_sa(struct sim_id *id, uint32_t timeout_ms, uint64_t *ret_delay)
{
	const struct sim_port *peer = cma_peer_port(id);
	uint64_t deadline = sa_deadline(timeout_ms);

	if (id->port->state != IBV_PORT_ACTIVE)
		return sim_refuse(-EAGAIN, "the port is down, and so is the way to the subnet "
				  "administrator");
	*ret_delay = sim_fault_delay(CMA_SA_QUERY_NS, id->node, SIM_LOOKUP_PATH);
	if (*ret_delay > deadline) {
		*ret_delay = deadline;
		id->pending_status = -ETIMEDOUT;
	} else if (!peer || peer->state != IBV_PORT_ACTIVE ||
		   !(peer->device->rules->flags & POLYCM_T_HAS_SA)) {
		id->pending_status = -EINVAL;
	}
	return 0;
}

/*
 * RoCE: the type of service.  A path query has room for it only with IPv6, from
 * the flow information; with IPv4 it asks for a QoS class.
 */
static uint8_t query_traffic_class(const struct sim_id *id)
{
	if (!(cma_rules(id)->flags & POLYCM_T_HAS_SA))
		return id->tos;
	if (cma_is_af_ib(id))
		return (uint8_t)(ntohl(id->src.ib.sib_flowinfo) >> 20);
	if (id->src.sa.sa_family != AF_INET6)
		return 0;
	return (uint8_t)(ntohl(id->src.in6.sin6_flowinfo) >> 20);
}

/* RoCE needs an interface.  Behind a loopback address there is none, but the id may be on one. */
static bool has_interface(const struct sim_id *id)
{
	return !id->node->described || cma_interface(id, id->node) ||
	       sim_wire_of(cma_rules(id)) != SIM_WIRE_ROCE || !sim_addr_is_loopback(&id->src.sa);
}

static int start_query(struct sim_id *id, uint32_t timeout_ms)
{
	const struct polycm_transport *rules = cma_rules(id);
	uint64_t delay = CMA_LOCAL_NS;
	int r;

	id->pending_status = 0;
	id->traffic_class = query_traffic_class(id);
	if (rules->flags & POLYCM_T_HAS_SA) {
		r = ask_sa(id, timeout_ms, &delay);
		if (r < 0)
			return r;
	} else if (cma_is_af_ib(id)) {
		return sim_refuse(-ENODEV, "an AF_IB address has no interface, which RoCE needs");
	} else if (rules->path_mtu && !rules->path_mtu(id->port->netdev_mtu)) {
		return sim_refuse(-EINVAL, "no path MTU fits an interface MTU of %u",
				  id->port->netdev_mtu);
	}
	sim_timer_arm(&id->timer, sim_now() + delay + cma_delay);
	return 0;
}

int cma_resolve_route(struct sim_id *id, int timeout_ms)
{
	int r;

	if (id->state != CMA_ADDR_RESOLVED)
		return cma_wrong_state(id);
	if (!timeout_ms)
		return sim_refuse(-EINVAL, "a time-out of 0 ms");
	if (!has_interface(id))
		return sim_refuse(-ENODEV, "no interface is behind a loopback address");
	r = start_query(id, (uint32_t)timeout_ms);
	if (r < 0)
		return r;
	cma_set_state(id, CMA_ROUTE_QUERY);
	return 0;
}

static enum ibv_mtu mtu_of_bytes(uint32_t bytes)
{
	enum ibv_mtu mtu = IBV_MTU_256;

	while (mtu < IBV_MTU_4096 && 256u << mtu <= bytes)
		mtu++;
	return mtu;
}

static void set_path(struct sim_id *id)
{
	const struct polycm_transport *rules = cma_rules(id);
	const struct sim_port *peer;

	id->packet_lifetime = rules->packet_lifetime;
	if (rules->link_layer == IBV_LINK_LAYER_INFINIBAND) {
		id->rate = IBV_RATE_100_GBPS;
	} else {
		/* A wildcard is no destination: only an earlier one was looked up. */
		id->hop_limit = cma_is_any(&id->dst.sa) && !id->way_out ? 0 : HOP_LIMIT;
		id->rate = IBV_RATE_MAX;	/* the port's current */
	}
	if (rules->flags & POLYCM_T_HAS_SA) {
		id->path_mtu = id->port->active_mtu;
		peer = cma_peer_port(id);
		if (peer && peer->active_mtu < id->path_mtu)
			id->path_mtu = peer->active_mtu;
		return;
	}
	if (id->ack_timeout_set && id->ack_timeout)
		id->packet_lifetime = (uint8_t)(id->ack_timeout - 1);
	if (rules->path_mtu)
		id->path_mtu = mtu_of_bytes(rules->path_mtu(id->port->netdev_mtu));
}

void cma_route_done(struct sim_id *id)
{
	if (id->pending_status) {
		cma_set_state(id, CMA_ADDR_RESOLVED);
		cma_post_simple(id, RDMA_CM_EVENT_ROUTE_ERROR, id->pending_status);
		return;
	}
	set_path(id);
	cma_set_state(id, CMA_ROUTE_RESOLVED);
	cma_post_simple(id, RDMA_CM_EVENT_ROUTE_RESOLVED, 0);
}

/* The kernel's choice, from which the UDP source port of RoCE v2 follows. */
static uint32_t roce_flow_label(const struct sim_id *id)
{
	uint32_t label = 0;

	if (id->src.sa.sa_family == AF_INET6)
		label = ntohl(id->src.in6.sin6_flowinfo) & FLOW_LABEL_MASK;
	if (!label)
		label = ((uint32_t)sim_addr_port(&id->src.sa) * 31 + sim_addr_port(&id->dst.sa)) &
			FLOW_LABEL_MASK;
	return label;
}

uint32_t cma_flow_label(const struct sim_id *id)
{
	if (id->path_given)
		return id->flow_label;
	return cma_rules(id)->link_layer == IBV_LINK_LAYER_INFINIBAND ? 0 : roce_flow_label(id);
}

uint16_t cma_dlid(const struct sim_id *id)
{
	const struct sim_port *peer = cma_peer_port(id);

	if (cma_rules(id)->link_layer != IBV_LINK_LAYER_INFINIBAND)
		return 0;
	return peer ? peer->lid : ALL_LIDS;
}

static void query_path(const struct sim_id *id, struct ibv_sa_path_rec *ret_path)
{
	memset(ret_path, 0, sizeof(*ret_path));
	ret_path->sgid = id->sgid;
	ret_path->dgid = id->dgid;
	ret_path->hop_limit = id->hop_limit;
	ret_path->traffic_class = id->traffic_class;
	ret_path->sl = id->sl;
	ret_path->rate = id->rate;
	ret_path->reversible = 1;
	ret_path->numb_path = 1;
	ret_path->pkey = htons(SIM_PKEY);
	ret_path->mtu_selector = SELECT_EXACTLY;
	ret_path->mtu = (uint8_t)id->path_mtu;
	ret_path->rate_selector = SELECT_EXACTLY;
	ret_path->packet_life_time_selector = SELECT_EXACTLY;
	ret_path->packet_life_time = id->packet_lifetime;
	ret_path->preference = PATH_FLAGS;
	ret_path->slid = htons(id->port->lid);
	ret_path->dlid = htons(cma_dlid(id));
	ret_path->flow_label = htonl(cma_flow_label(id));
}

static bool has_path(const struct sim_id *id)
{
	if (cma_rules(id)->protocol != POLYCM_PROTO_IB_CM)
		return false;
	if (id->state == CMA_ROUTE_RESOLVED)
		return true;
	if (id->state != CMA_CONNECT && id->state != CMA_DISCONNECT)
		return false;
	/* A SIDR request names none. */
	return !id->ib || id->qp_type != IBV_QPT_UD || !id->ib->remote_id;
}

/*
 * What librdmacm's programs find in an id: where there is no path it shows the
 * addresses as RoCE has GIDs; Ethernet has no P_Key, but from loopback to itself; and an
 * active id on iWARP has no GIDs but the one that binding gave it.
 */
static void query_gids(const struct sim_id *id, struct polycm_route_info *ret_info)
{
	const struct polycm_transport *rules = cma_rules(id);

	if (rules->link_layer == IBV_LINK_LAYER_INFINIBAND ||
	    (sim_addr_is_loopback(&id->src.sa) && cma_is_any(&id->dst.sa)))
		ret_info->pkey = htons(SIM_PKEY);
	switch (sim_wire_of(rules)) {
	case SIM_WIRE_IB:
		ret_info->sgid = id->sgid;
		ret_info->dgid = id->dgid;
		break;
	case SIM_WIRE_ROCE:
		ret_info->sgid = id->sgid;
		ret_info->dgid = id->dgid;
		if (!ret_info->num_paths)
			sim_gid_of_address(&id->dst, &ret_info->dgid);
		if (!ret_info->num_paths && sim_addr_is_loopback(&id->src.sa))
			sim_gid_of_address(&id->src, &ret_info->sgid);
		break;
	case SIM_WIRE_IWARP:
		if (!id->active || id->bind_asked)
			ret_info->sgid = id->sgid;
		break;
	}
}

void cma_query(const struct sim_id *id, struct polycm_route_info *ret_info)
{
	uint32_t size = ret_info->size;

	/* Paths are filled in only if there are any. */
	memset(ret_info, 0, offsetof(struct polycm_route_info, path));
	ret_info->size = size;
	memcpy(&ret_info->src, &id->src, sizeof(id->src));
	memcpy(&ret_info->dst, &id->dst, sizeof(id->dst));
	if (!id->port)
		return;
	ret_info->device = id->port->device->core;
	ret_info->port_num = id->port->num;
	if (has_path(id)) {
		ret_info->num_paths = 1;
		query_path(id, &ret_info->path[0]);
	}
	query_gids(id, ret_info);
}
