/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cm/cma_option.c - rdma_set_option(): values, lengths and states as the
 * kernel checks them.  Engine lock held.
 */
#include "config.h"

#include <errno.h>
#include <string.h>

#include <infiniband/sa.h>

#include "cma_internal.h"

static int option_byte(const void *optval, size_t optlen, uint8_t *ret_value)
{
	if (optlen != sizeof(*ret_value))
		return sim_refuse(-EINVAL, "the option is 1 byte, not %zu", optlen);
	memcpy(ret_value, optval, sizeof(*ret_value));
	return 0;
}

static int option_flag(const void *optval, size_t optlen, bool *ret_value)
{
	int value;

	if (optlen != sizeof(value))
		return sim_refuse(-EINVAL, "the option is an int, not %zu bytes", optlen);
	memcpy(&value, optval, sizeof(value));
	*ret_value = value != 0;
	return 0;
}

/*
 * The port table has the flags that a port was taken with.  New ones: take it
 * again, which succeeds unless they now stand in somebody's way.
 */
static void rebind(struct sim_id *id, bool reuse, bool afonly)
{
	union sim_sockaddr addr = cma_bound_address(id);
	unsigned int flags = (id->reuse ? SIM_BIND_REUSE : 0) | (id->afonly ? SIM_BIND_AFONLY : 0);

	if (!id->bound || (reuse == id->reuse && afonly == id->afonly))
		return;
	sim_unbind_port(id->node, id->bound_ps, &addr, id);
	if (sim_bind_port(id->node, id->bound_ps, &addr, (reuse ? SIM_BIND_REUSE : 0) |
			  (afonly ? SIM_BIND_AFONLY : 0), id) < 0)
		id->bound = sim_bind_port(id->node, id->bound_ps, &addr, flags, id) == 0;
}

static int set_reuse(struct sim_id *id, const void *optval, size_t optlen)
{
	bool reuse;
	int r = option_flag(optval, optlen, &reuse);

	if (r < 0)
		return r;
	if (id->state != CMA_IDLE && (!reuse || id->state == CMA_LISTEN))
		return cma_wrong_state(id);
	rebind(id, reuse, id->afonly);
	id->reuse = reuse;
	return 0;
}

static int set_afonly(struct sim_id *id, const void *optval, size_t optlen)
{
	bool afonly;
	int r = option_flag(optval, optlen, &afonly);

	if (r < 0)
		return r;
	if (id->state != CMA_IDLE && id->state != CMA_ADDR_BOUND)
		return cma_wrong_state(id);
	rebind(id, id->reuse, afonly);
	id->afonly = afonly;
	id->afonly_set = true;
	return 0;
}

static int set_ack_timeout(struct sim_id *id, const void *optval, size_t optlen)
{
	uint8_t value;
	int r = option_byte(optval, optlen, &value);

	if (r < 0)
		return r;
	if (id->qp_type != IBV_QPT_RC && id->qp_type != IBV_QPT_XRC_SEND)
		return sim_refuse(-EINVAL, "an ACK time-out is for connected ids");
	id->ack_timeout = value;
	id->ack_timeout_set = true;
	return 0;
}

/* A program (or its library, from a cache) brings the path itself. */
static int set_ib_path(struct sim_id *id, const void *optval, size_t optlen)
{
	const uint32_t wanted = IBV_PATH_FLAG_GMP | IBV_PATH_FLAG_PRIMARY |
				IBV_PATH_FLAG_BIDIRECTIONAL;
	const uint8_t *at = optval;
	struct ibv_path_data data;

	if (!optlen || optlen % sizeof(data))
		return sim_refuse(-EINVAL, "%zu bytes are no whole path records", optlen);
	for (; optlen; at += sizeof(data), optlen -= sizeof(data)) {
		memcpy(&data, at, sizeof(data));
		if (data.flags == wanted)
			break;
	}
	if (!optlen)
		return sim_refuse(-EINVAL, "none of the path records is that of a primary path");
	if (!id->port || id->state != CMA_ADDR_RESOLVED)
		return cma_wrong_state(id);
	id->packet_lifetime = data.path.packetlifetime & 0x3f;
	id->path_mtu = (enum ibv_mtu)(data.path.mtu & 0x3f);
	id->traffic_class = data.path.tclass;
	id->rate = data.path.rate & 0x3f;
	id->sl = (uint8_t)(ntohs(data.path.qosclass_sl) & 0xf);
	id->hop_limit = (uint8_t)ntohl(data.path.flowlabel_hoplimit);
	id->flow_label = ntohl(data.path.flowlabel_hoplimit) >> 8 & 0xfffff;
	id->path_given = true;
	cma_set_state(id, CMA_ROUTE_RESOLVED);
	return cma_post_simple(id, RDMA_CM_EVENT_ROUTE_RESOLVED, 0);
}

int cma_set_option(struct sim_id *id, int level, int optname, const void *optval, size_t optlen)
{
	if (level == RDMA_OPTION_IB && optname == RDMA_OPTION_IB_PATH)
		return set_ib_path(id, optval, optlen);
	if (level != RDMA_OPTION_ID)
		return sim_refuse(-ENOSYS, "no options of level %d", level);
	switch (optname) {
	case RDMA_OPTION_ID_TOS:
		return option_byte(optval, optlen, &id->tos);
	case RDMA_OPTION_ID_REUSEADDR:
		return set_reuse(id, optval, optlen);
	case RDMA_OPTION_ID_AFONLY:
		return set_afonly(id, optval, optlen);
	case RDMA_OPTION_ID_ACK_TIMEOUT:
		return set_ack_timeout(id, optval, optlen);
	default:
		return sim_refuse(-ENOSYS, "no option %d", optname);
	}
}
