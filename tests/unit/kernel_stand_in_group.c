/* SPDX-License-Identifier: BSD-2-Clause */
/* kernel_stand_in_group.c - multicast groups of the stand-in's ids; every join is granted at once. */
#include "kernel_stand_in_internal.h"

#include <stdlib.h>

#define MULTICAST_QPN	0xffffff
#define FIRST_MLID	0xc001

static uint32_t next_group = 0x70000000;

/* ff12:401b:PKEY::group on InfiniBand, the address mapped on RoCE. */
static void fill_mgid(const struct si_id *id, const struct sockaddr_storage *addr, uint8_t *mgid)
{
	uint32_t ip = 0, be;

	memset(mgid, 0, 16);
	if (addr->ss_family != AF_INET) {
		memcpy(mgid, (const uint8_t *)addr + 8, 16);
		return;
	}
	si_addr_ip(addr, &ip);
	be = htonl(si_kind(id) == STAND_IN_IB ? ip & 0x0fffffff : ip);
	memcpy(mgid + 12, &be, sizeof(be));
	if (si_kind(id) == STAND_IN_IB) {
		mgid[0] = 0xff;
		mgid[1] = 0x12;
		mgid[2] = 0x40;
		mgid[3] = id->ps == RDMA_PS_UDP ? 0x01 : 0x1b;
	} else {
		mgid[10] = mgid[11] = 0xff;
	}
}

static void joined(struct si_id *id, struct si_group *group)
{
	struct si_event *event = si_event_new(id, RDMA_CM_EVENT_MULTICAST_JOIN, 0);
	struct rdma_ucm_ud_param *ud = &event->resp.param.ud;

	event->group = group;
	event->resp.uid = group->uid;
	event->resp.id = group->id;
	ud->qp_num = MULTICAST_QPN;
	ud->qkey = SI_QKEY;
	ud->ah_attr.is_global = 1;
	ud->ah_attr.port_num = id->port_num;
	if (si_kind(id) == STAND_IN_IB)
		ud->ah_attr.dlid = (uint16_t)(FIRST_MLID + group->id % 0x100);
	fill_mgid(id, &group->addr, ud->ah_attr.grh.dgid);
	si_event_queue(event);
}

int si_join(struct si_id *id, uint64_t uid, const void *addr, uint16_t flags, uint32_t *ret_id)
{
	struct si_group *group;

	(void)flags;
	if (id->state != STAND_IN_ADDR_BOUND && id->state != STAND_IN_ADDR_RESOLVED)
		return -EINVAL;
	if (id->qp_type != IBV_QPT_UD)
		return -EINVAL;
	if (si_kind(id) == STAND_IN_IWARP)
		return -ENOSYS;
	if (!uid)
		si_violation("a join without a uid");
	group = calloc(1, sizeof(*group));
	if (!group)
		return -ENOMEM;
	group->id = next_group++;
	group->uid = uid;
	memcpy(&group->addr, addr, si_addr_size(addr));
	group->next = id->groups;
	id->groups = group;
	stand_in.groups++;
	*ret_id = group->id;
	joined(id, group);
	return 0;
}

int si_leave(struct si_file *file, uint32_t number, unsigned int *ret_reported)
{
	for (size_t i = 0; i < SI_MAX_IDS; i++) {
		struct si_group **link = &si_ids[i].groups, *group;

		if (!si_ids[i].used)
			continue;
		while (*link && (*link)->id != number)
			link = &(*link)->next;
		group = *link;
		if (!group)
			continue;
		if (si_ids[i].file != file)
			return -EINVAL;
		*link = group->next;
		si_group_drop_events(&si_ids[i], group);
		*ret_reported = group->reported;
		free(group);
		stand_in.groups--;
		return 0;
	}
	return -ENOENT;
}

void si_groups_free(struct si_id *id)
{
	struct si_group *group;

	while ((group = id->groups)) {
		id->groups = group->next;
		free(group);
		stand_in.groups--;
	}
}
