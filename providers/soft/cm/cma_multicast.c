/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cm/cma_multicast.c - rdma_join_multicast() and rdma_leave_multicast(): the
 * group's GID, and the event that tells the program what to attach to.  The
 * datagrams themselves are the NIC's.  Engine lock held.
 */
#include "config.h"

#include <errno.h>
#include <string.h>

#include "providers/soft/fabric/trace_lines.h"
#include "cma_internal.h"

#define KERNEL_ENOTSUPP 524		/* the kernel's ENOTSUPP, which programs see */
#define MULTICAST_QPN 0xffffffu
#define FIRST_MLID 0xc000u
#define MLIDS 0x3fffu

struct cma_group {
	struct sim_timer timer;
	struct sim_id *id;
	void *group;
	union ibv_gid mgid;
	struct cma_group *next;
};

static int roce_mgid(const union sim_sockaddr *addr, bool v2, union ibv_gid *ret_mgid)
{
	if (sim_addr_is_zero(&addr->sa))
		return sim_refuse(-EINVAL, "the wildcard is no group");
	memset(ret_mgid, 0, sizeof(*ret_mgid));
	if (addr->sa.sa_family == AF_INET6) {
		if (v2)
			return -KERNEL_ENOTSUPP;
		memcpy(ret_mgid->raw, &addr->in6.sin6_addr, sizeof(ret_mgid->raw));
		return 0;
	}
	if (!v2) {
		ret_mgid->raw[0] = 0xff;
		ret_mgid->raw[1] = 0x0e;
	}
	ret_mgid->raw[10] = ret_mgid->raw[11] = 0xff;
	memcpy(&ret_mgid->raw[12], &addr->in.sin_addr, 4);
	return 0;
}

/* RFC 4391, 4: the group's GID from its IP address, scope link-local. */
static void ib_mgid(const struct sim_id *id, const union sim_sockaddr *addr,
		    union ibv_gid *ret_mgid)
{
	const uint8_t *ip6 = addr->in6.sin6_addr.s6_addr;
	uint8_t *raw = ret_mgid->raw;
	uint32_t group;

	memset(raw, 0, sizeof(ret_mgid->raw));
	raw[0] = 0xff;
	raw[1] = 0x12;
	raw[3] = id->ps == RDMA_PS_UDP ? 0x01 : 0x1b;
	raw[4] = raw[5] = 0xff;		/* P_Key */
	if (sim_addr_is_zero(&addr->sa)) {	/* the SA chooses one */
		raw[2] = 0xa0;
		raw[3] = 0x1b;
		group = htonl(id->number);
		memcpy(&raw[12], &group, sizeof(group));
	} else if (addr->sa.sa_family == AF_INET) {
		raw[2] = 0x40;
		group = htonl(ntohl(addr->in.sin_addr.s_addr) & 0x0fffffff);
		memcpy(&raw[12], &group, sizeof(group));
	} else if (ip6[0] == 0xff && (ip6[1] & 0xf0) == 0x10 && ip6[2] == 0xa0 && ip6[3] == 0x1b) {
		memcpy(raw, ip6, sizeof(ret_mgid->raw));
	} else {
		raw[2] = 0x60;
		memcpy(&raw[6], &ip6[6], 10);
	}
}

static uint16_t mlid_of(const union ibv_gid *mgid)
{
	uint32_t sum = 0;

	for (unsigned int i = 0; i < sizeof(mgid->raw); i++)
		sum = sum * 31 + mgid->raw[i];
	return (uint16_t)(FIRST_MLID + sum % MLIDS);
}

/* The index of the id's source GID; *ret_v2: it is for RoCE v2. */
static uint8_t source_index(const struct sim_id *id, bool *ret_v2)
{
	union ibv_gid gid;
	int index = sim_port_gid_of_address(id->port, &id->src.sa, &gid);

	if (index < 0)
		index = 0;
	*ret_v2 = id->port->gids[index].type == IBV_GID_TYPE_ROCE_V2;
	return (uint8_t)index;
}

static void post_loss(const struct cma_group *join)
{
	const struct polycm_event event = {
		.size = sizeof(event),
		.type = RDMA_CM_EVENT_MULTICAST_ERROR,
		.status = -ENETRESET,
		.is_ud = true,
		.group = join->group,
	};

	(void)cma_post(join->id, &event);
}

static void joined(struct sim_timer *timer)
{
	struct cma_group *join = sim_container(timer, struct cma_group, timer);
	struct sim_id *id = join->id;
	struct polycm_event event = {
		.size = sizeof(event),
		.type = RDMA_CM_EVENT_MULTICAST_JOIN,
		.is_ud = true,
		.group = join->group,
	};
	struct ibv_ah_attr *ah = &event.param.ud.ah_attr;
	bool v2;

	ah->grh.sgid_index = source_index(id, &v2);
	ah->grh.dgid = join->mgid;
	ah->grh.traffic_class = id->tos;
	ah->is_global = 1;
	ah->port_num = id->port->num;
	if (cma_rules(id)->flags & POLYCM_T_HAS_SA)
		ah->dlid = mlid_of(&join->mgid);
	else
		ah->grh.hop_limit = v2 ? 64 : 1;
	event.param.ud.qp_num = MULTICAST_QPN;
	event.param.ud.qkey = id->ps == RDMA_PS_IPOIB ? CMA_IPOIB_QKEY : RDMA_UDP_QKEY;
	(void)cma_post(id, &event);
}

static void describe_timer(const struct sim_timer *timer, struct sim_timer_text *ret_text)
{
	const struct cma_group *join = sim_container(timer, struct cma_group, timer);

	*ret_text = (struct sim_timer_text){
		.name = "join_multicast",
		.node = join->id->node,
		.of = "id",
		.number = join->id->number,
	};
}

void cma_multicast_start(void)
{
	sim_trace_timers(joined, describe_timer);
}

int cma_join_multicast(struct sim_id *id, const struct polycm_multicast *mc)
{
	struct cma_group *join;
	union sim_sockaddr addr;
	bool subnet, v2;
	int r = 0;

	if (!id->port)
		return sim_refuse(-EINVAL, "the id is not on a device yet");
	if (id->qp_type != IBV_QPT_UD)
		return sim_refuse(-EINVAL, "only ids of datagrams (RDMA_PS_UDP, RDMA_PS_IPOIB) join "
				  "groups");
	if (!cma_is_ip(mc->addr))
		return sim_refuse(-EINVAL, "the group has no IP address");
	if (id->state != CMA_ADDR_BOUND && id->state != CMA_ADDR_RESOLVED)
		return cma_wrong_state(id);
	if (!(cma_rules(id)->services & POLYCM_SVC_MULTICAST))
		return sim_refuse(-ENOSYS, "%s has no multicast", cma_rules(id)->name);
	join = sim_core->alloc(sizeof(*join));
	if (!join)
		return -ENOMEM;
	addr = sim_addr_copy(mc->addr);
	subnet = cma_rules(id)->flags & POLYCM_T_HAS_SA;
	source_index(id, &v2);
	if (subnet)
		ib_mgid(id, &addr, &join->mgid);
	else
		r = roce_mgid(&addr, v2, &join->mgid);
	if (r < 0) {
		sim_core->free(join);
		return r;
	}
	join->id = id;
	join->group = mc->group;
	join->next = id->groups;
	id->groups = join;
	sim_timer_init(&join->timer, joined);
	sim_timer_arm(&join->timer,
		      sim_now() + (subnet ? CMA_SA_QUERY_NS : CMA_LOCAL_NS) + cma_delay);
	return 0;
}

/* The subnet administrator has forgotten the groups; on Ethernet nobody keeps them. */
void cma_lose_groups_of(struct sim_port *port)
{
	if (!(port->device->rules->flags & POLYCM_T_HAS_SA))
		return;
	for (struct sim_id *id = cma_first_id(); id; id = id->next)
		for (struct cma_group *join = id->groups; join; join = join->next)
			if (id->port == port && cma_live(id)) {
				sim_timer_disarm(&join->timer);
				post_loss(join);
			}
}

static void leave(struct cma_group **at)
{
	struct cma_group *join = *at;

	*at = join->next;
	sim_timer_disarm(&join->timer);
	sim_core->free(join);
}

int cma_leave_multicast(struct sim_id *id, void *group)
{
	for (struct cma_group **at = &id->groups; *at; at = &(*at)->next) {
		if ((*at)->group == group) {
			leave(at);
			return 0;
		}
	}
	return sim_refuse(-EADDRNOTAVAIL, "the id is no member");
}

void cma_leave_all(struct sim_id *id)
{
	while (id->groups)
		leave(&id->groups);
}
