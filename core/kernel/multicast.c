/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * kernel/multicast.c - groups that an id joins.
 *
 * A group has a handle of its own, since its events carry its own uid.  If the kernel
 * refuses to leave a group, it stays with the id, so that its events are counted.
 */
#include "config.h"
#include "internal.h"

#include <stdlib.h>
#include <utlist.h>

#include "core/base/addr.h"

static int join_ip(const struct kernel_id *id, uint64_t uid, const struct polycm_multicast *mc,
		   struct rdma_ucm_create_id_resp *resp)
{
	KERNEL_MESSAGE(rdma_ucm_join_ip_mcast) message = {
		.body = { .response = kernel_pointer(resp), .uid = uid, .id = id->number },
	};

	memcpy(&message.body.addr, mc->addr, polycm_addr_len(mc->addr));
	return KERNEL_COMMAND(kernel_fd(id->chan), JOIN_IP_MCAST, message, sizeof(*resp));
}

static int join_any(const struct kernel_id *id, uint64_t uid, const struct polycm_multicast *mc,
		    struct rdma_ucm_create_id_resp *resp)
{
	KERNEL_MESSAGE(rdma_ucm_join_mcast) message = {
		.body = {
			.response = kernel_pointer(resp),
			.uid = uid,
			.id = id->number,
			.addr_size = (uint16_t)polycm_addr_len(mc->addr),
			.join_flags = (uint16_t)mc->join_flags,
		},
	};

	memcpy(&message.body.addr, mc->addr, message.body.addr_size);
	return KERNEL_COMMAND(kernel_fd(id->chan), JOIN_MCAST, message, sizeof(*resp));
}

static int leave(const struct kernel_id *id, uint32_t number, uint32_t *ret_reported)
{
	return kernel_number_end(kernel_fd(id->chan), RDMA_USER_CM_CMD_LEAVE_MCAST, number,
				 ret_reported);
}

static int join(const struct kernel_id *id, struct kernel_group *group,
		const struct polycm_multicast *mc)
{
	bool plain = mc->join_flags == RDMA_MC_JOIN_FLAG_FULLMEMBER &&
		     mc->addr->sa_family != AF_IB;
	struct rdma_ucm_create_id_resp resp = { .id = KERNEL_NO_NUMBER };
	uint32_t reported;
	int r;

	r = plain ? join_ip(id, group->handle.uid, mc, &resp)
		  : join_any(id, group->handle.uid, mc, &resp);
	if (!r && resp.id == KERNEL_NO_NUMBER)
		r = -ENODATA;
	if (r && resp.id != KERNEL_NO_NUMBER)
		(void)leave(id, resp.id, &reported);
	group->number = resp.id;
	return r;
}

static int join_group(struct kernel_id *id, const struct polycm_multicast *mc)
{
	struct kernel_group *group;
	int r;

	if (!polycm_addr_len(mc->addr))
		return -EINVAL;
	r = kernel_id_ready(id);
	if (r)
		return r;
	group = calloc(1, sizeof(*group));
	if (!group)
		return -ENOMEM;
	atomic_store(&group->core, mc->group);
	r = kernel_handle_add(&group->handle, &id->handle);
	if (r)
		goto err_free;
	r = join(id, group, mc);
	if (r)
		goto err_remove;
	LL_PREPEND(id->groups, group);
	return 0;

err_remove:
	kernel_handle_remove(&group->handle);
err_free:
	free(group);
	return r;
}

int kernel_op_join_multicast(void *priv, const struct polycm_multicast *mc)
{
	return kernel_explain(priv, join_group(priv, mc), POLYCM_SVC_MULTICAST, "multicast");
}

int kernel_op_leave_multicast(void *priv, void *core_group)
{
	struct kernel_id *id = priv;
	struct kernel_group *group;
	uint32_t reported;
	int r;

	LL_FOREACH(id->groups, group)
		if (atomic_load(&group->core) == core_group)
			break;
	if (!group)
		return -EADDRNOTAVAIL;

	r = leave(id, group->number, &reported);
	if (r)
		atomic_store(&group->core, NULL);
	kernel_handle_settle(&group->handle, reported, id->chan);
	if (r)
		return r;
	LL_DELETE(id->groups, group);
	kernel_handle_remove(&group->handle);
	free(group);
	return 0;
}

void kernel_groups_free(struct kernel_id *id)
{
	struct kernel_group *group;

	while ((group = id->groups)) {
		LL_DELETE(id->groups, group);
		free(group);
	}
}
