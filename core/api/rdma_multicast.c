/* SPDX-License-Identifier: BSD-2-Clause */
/* api/rdma_multicast.c - the calls that join and leave multicast groups (cm/group.c). */
#include "config.h"
#include "core/cm/id_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "core/base/addr.h"
#include "core/base/export.h"
#include "core/plugin/op.h"
#include "core/cm/ret.h"

static int join(struct polycm_id *id, const struct sockaddr *addr, uint32_t join_flags,
		void *context)
{
	size_t len = polycm_addr_len(addr);
	struct polycm_multicast mc = { .size = sizeof(mc), .addr = addr, .join_flags = join_flags };
	char text[POLYCM_ADDR_TEXT];
	struct polycm_group *group;
	int err;

	if (!len)
		return polycm_fail(-EINVAL, addr ? "unknown address family" : "no address");
	err = polycm_need_module(id);
	if (err)
		return err;

	group = calloc(1, sizeof(*group));
	if (!group)
		return -ENOMEM;
	if (polycm_ev_reserve(POLYCM_GROUP_EVENTS)) {
		free(group);
		return -ENOMEM;
	}
	group->context = context;
	group->join_flags = join_flags;
	memcpy(&group->addr, addr, len);
	LL_PREPEND(id->groups, group);

	mc.group = group;
	err = POLYCM_OP(id->module, join_multicast, id->priv, &mc);
	if (!err)
		return 0;
	LL_DELETE(id->groups, group);
	polycm_ev_drop(id, group);
	polycm_group_free(group);
	return polycm_fail_in(err, "group %s", polycm_addr_text(addr, text));
}

/* Takes the group out; the caller waits for its events and frees it. */
static int leave(struct polycm_id *id, const struct sockaddr *addr, struct polycm_group **ret_group)
{
	size_t len = polycm_addr_len(addr);
	char text[POLYCM_ADDR_TEXT];
	struct polycm_group *group;
	int err;

	if (!len)
		return polycm_fail(-EINVAL, addr ? "unknown address family" : "no address");
	for (group = id->groups; group; group = group->next)
		if (!memcmp(&group->addr, addr, len))
			break;
	if (!group)
		return polycm_fail(-EADDRNOTAVAIL, "no member of group %s",
				   polycm_addr_text(addr, text));

	err = polycm_ev_check_acks(id, group, "rdma_leave_multicast");
	if (err)
		return err;
	polycm_group_detach(id, group);
	err = POLYCM_OP(id->module, leave_multicast, id->priv, group);
	LL_DELETE(id->groups, group);
	group->left = true;
	*ret_group = group;
	return err;
}

POLYCM_EXPORT int rdma_join_multicast(struct rdma_cm_id *id, struct sockaddr *addr, void *context)
{
	return POLYCM_CALL(polycm_exit_to_complete, self, id,
			   join(self, addr, RDMA_MC_JOIN_FLAG_FULLMEMBER, context));
}

POLYCM_EXPORT int rdma_join_multicast_ex(struct rdma_cm_id *id,
					 struct rdma_cm_join_mc_attr_ex *attr, void *context)
{
	const uint32_t needed = RDMA_CM_JOIN_MC_ATTR_ADDRESS | RDMA_CM_JOIN_MC_ATTR_JOIN_FLAGS;

	polycm_why_clear();
	if (attr && attr->comp_mask >= RDMA_CM_JOIN_MC_ATTR_RESERVED)
		return polycm_ret(__func__, NULL,
				  polycm_fail(-EOPNOTSUPP, "attributes that are unknown"));
	if (!attr || (attr->comp_mask & needed) != needed ||
	    attr->join_flags >= RDMA_MC_JOIN_FLAG_RESERVED)
		return polycm_ret(__func__, NULL,
				  polycm_fail(-EINVAL, "attributes lack address or join flags, "
						       "or have unknown flags"));
	return POLYCM_CALL(polycm_exit_to_complete, self, id,
			   join(self, attr->addr, attr->join_flags, context));
}

POLYCM_EXPORT int rdma_leave_multicast(struct rdma_cm_id *id, struct sockaddr *addr)
{
	struct polycm_id *self = polycm_enter(id);
	struct polycm_group *group = NULL;
	int err;

	if (!self)
		return polycm_refused(__func__);
	err = leave(self, addr, &group);
	if (!group)
		return polycm_exit(__func__, self, err);
	polycm_id_unlock(self);
	polycm_ev_drop(self, group);
	if (__atomic_load_n(&self->rsocket.sync, __ATOMIC_RELAXED))
		polycm_release_event(self);
	(void)polycm_ev_wait_and_leave(self, group, __func__);
	polycm_group_free(group);
	return polycm_ret(__func__, self, err);
}
