/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cm/group.c - multicast groups of an id, under its lock.  A group lives until it was left and
 * all of its events are acknowledged; the provider knows it by its address.
 */
#include "config.h"
#include "id_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/log.h"
#include "core/plugin/op.h"

void polycm_group_free(struct polycm_group *group)
{
	polycm_ev_unreserve(POLYCM_GROUP_EVENTS);
	free(group);
}

void polycm_group_joined(struct polycm_id *id, struct polycm_ev *ev)
{
	const struct ibv_ah_attr *ah = &ev->pub.param.ud.ah_attr;
	struct polycm_group *group = ev->group;
	int err;

	if (ev->pub.status || id->closing || group->left)
		return;
	group->mgid = ah->grh.dgid;
	group->mlid = ah->dlid;
	if (!id->pub.qp || group->join_flags == RDMA_MC_JOIN_FLAG_SENDONLY_FULLMEMBER)
		return;

	err = ibv_attach_mcast(id->pub.qp, &group->mgid, group->mlid);
	if (err) {
		polycm_log_id(POLYCM_LOG_DEBUG, id, "QP %u cannot attach to the group: %s",
			      id->pub.qp->qp_num, strerror(err < 0 ? errno : err));
		polycm_ev_set_type(ev, RDMA_CM_EVENT_MULTICAST_ERROR);
		ev->pub.status = -1;
		return;
	}
	group->attached = true;
}

void polycm_group_detach(struct polycm_id *id, struct polycm_group *group)
{
	if (group->attached && id->pub.qp)
		(void)ibv_detach_mcast(id->pub.qp, &group->mgid, group->mlid);
	group->attached = false;
}

void polycm_groups_detach(struct polycm_id *id)
{
	for (struct polycm_group *group = id->groups; group; group = group->next)
		polycm_group_detach(id, group);
}

void polycm_groups_leave(struct polycm_id *id)
{
	polycm_groups_detach(id);
	if (!id->module)
		return;
	for (struct polycm_group *group = id->groups; group; group = group->next)
		(void)POLYCM_OP(id->module, leave_multicast, id->priv, group);
}

void polycm_groups_free(struct polycm_id *id)
{
	struct polycm_group *group;

	while ((group = id->groups)) {
		id->groups = group->next;
		polycm_group_free(group);
	}
}
