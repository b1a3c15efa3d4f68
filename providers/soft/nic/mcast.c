/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * nic/mcast.c - multicast groups of a device: attaching QPs, detaching them,
 * and the way of a datagram to all that are in its group, the sender's own QPs
 * among them.  The table that other processes see is in groups.c.
 */
#include "config.h"

#include <stdlib.h>

#define HASH_NONFATAL_OOM 1
#include <uthash.h>

#include "providers/soft/fabric/gids.h"
#include "providers/soft/fabric/groups.h"
#include "refuse.h"
#include "ud_internal.h"
#include "verbs.h"

#define FIRST_MLID 0xc000u
#define PERMISSIVE_LID 0xffffu

struct group_key {
	const struct sim_device *device;
	union ibv_gid mgid;
};

struct nic_group {
	UT_hash_handle hh;
	struct group_key key;
	struct nic_list members;	/* in the order of attaching */
	int num_members;
};

/* A QP in a group. */
struct nic_member {
	struct nic_list in_group, in_qp;
	struct nic_group *group;
	struct sim_qp *qp;
	uint16_t lid;			/* as it was attached */
};

static const char attach_call[] = "ibv_attach_mcast";
static struct nic_group *groups;

static struct nic_group *find_group(const struct sim_device *device, const union ibv_gid *mgid)
{
	struct group_key key;
	struct nic_group *group;

	memset(&key, 0, sizeof(key));
	key.device = device;
	key.mgid = *mgid;
	HASH_FIND(hh, groups, &key, sizeof(key), group);
	return group;
}

static struct nic_member *find_member(const struct sim_qp *qp, const union ibv_gid *mgid)
{
	struct nic_member *member;

	nic_list_each(member, &qp->groups, in_qp)
		if (!memcmp(&member->group->key.mgid, mgid, sizeof(*mgid)))
			return member;
	return NULL;
}

static void leave(const struct nic_group *group)
{
	for (unsigned int i = 0; i < group->key.device->num_ports; i++)
		sim_group_leave(&group->key.mgid, &group->key.device->ports[i]);
}

/* All ports: which of them a QP is on may change while it is attached. */
static int enter(const struct sim_device *device, const union ibv_gid *mgid)
{
	int r = 0;

	for (unsigned int i = 0; i < device->num_ports && !r; i++)
		r = sim_group_enter(mgid, &device->ports[i]);
	return -r;
}

static void drop_if_empty(struct nic_group *group)
{
	if (group->num_members)
		return;
	leave(group);
	HASH_DEL(groups, group);
	free(group);
}

static int make_group(const struct sim_device *device, const union ibv_gid *mgid,
		      struct nic_group **ret_group)
{
	struct nic_group *group = calloc(1, sizeof(*group));

	if (!group)
		return ENOMEM;
	group->key.device = device;
	group->key.mgid = *mgid;
	nic_list_init(&group->members);
	HASH_ADD(hh, groups, key, sizeof(group->key), group);
	if (!group->hh.tbl) {
		free(group);
		return ENOMEM;
	}
	*ret_group = group;
	return 0;
}

/* Has the device room for one more in the group (NULL: a new one)? */
static int check_room(const struct sim_device *device, const struct nic_group *into)
{
	const struct ibv_device_attr *limits = &device->attr;
	int num_groups = 0, num_members = 0;

	for (struct nic_group *group = groups; group; group = group->hh.next) {
		if (group->key.device != device)
			continue;
		num_groups++;
		num_members += group->num_members;
	}
	if (!into && num_groups >= limits->max_mcast_grp)
		return nic_refuse(device, attach_call, ENOMEM, "the device has no more than %d groups "
				  "(max_mcast_grp)", limits->max_mcast_grp);
	if ((into ? into->num_members : 0) >= limits->max_mcast_qp_attach)
		return nic_refuse(device, attach_call, ENOMEM, "a group has no more than %d QPs of the "
				  "device (max_mcast_qp_attach)", limits->max_mcast_qp_attach);
	if (num_members >= limits->max_total_mcast_qp_attach)
		return nic_refuse(device, attach_call, ENOMEM, "the device has no more than %d QPs in "
				  "groups (max_total_mcast_qp_attach)",
				  limits->max_total_mcast_qp_attach);
	return 0;
}

/* The QP is in the group now, or the group is dropped if it has no member. */
static int join(struct nic_group *group, struct sim_qp *qp, uint16_t lid)
{
	struct nic_member *member = malloc(sizeof(*member));
	int err = ENOMEM;

	if (!member)
		goto err_drop;
	err = enter(group->key.device, &group->key.mgid);
	if (err)
		goto err_free;
	*member = (struct nic_member) { .group = group, .qp = qp, .lid = lid };
	nic_list_add(&group->members, &member->in_group);
	nic_list_add(&qp->groups, &member->in_qp);
	group->num_members++;
	return 0;

err_free:
	free(member);
err_drop:
	drop_if_empty(group);
	return err;
}

static int attach(struct sim_qp *qp, const union ibv_gid *mgid, uint16_t lid)
{
	const struct sim_device *device = qp->port->device;
	struct nic_group *group = find_group(device, mgid);
	int err;

	if (device->removed)
		return nic_refuse(device, attach_call, EIO, "the device was removed");
	if (find_member(qp, mgid))
		return 0;
	err = check_room(device, group);
	if (err)
		return err;
	if (!group)
		err = make_group(device, mgid, &group);
	if (!err)
		err = join(group, qp, lid);
	return err ? nic_refuse(device, attach_call, err, "no memory or no room in the fabric") : 0;
}

static void detach(struct nic_member *member)
{
	nic_list_del(&member->in_group);
	nic_list_del(&member->in_qp);
	member->group->num_members--;
	drop_if_empty(member->group);
	free(member);
}

void nic_groups_detach_all(struct sim_qp *qp)
{
	while (!nic_list_empty(&qp->groups))
		detach(nic_container(qp->groups.next, struct nic_member, in_qp));
}

/* Only InfiniBand has LIDs, and those of groups are at the end of the range. */
static int check(const struct sim_qp *qp, const char *call, const union ibv_gid *mgid, uint16_t lid)
{
	const struct sim_device *device = qp->port->device;

	if (!(device->services & POLYCM_SVC_MULTICAST))
		return nic_refuse(device, call, EOPNOTSUPP, "the device has no multicast groups");
	if (qp->type != IBV_QPT_UD)
		return nic_refuse(device, call, EINVAL, "QP 0x%06x is not of type UD", nic_qpn(qp));
	if (!sim_gid_is_group(mgid))
		return nic_refuse(device, call, EINVAL, "the GID is not that of a group");
	if (device->rules->link_layer == IBV_LINK_LAYER_INFINIBAND &&
	    (lid < FIRST_MLID || lid == PERMISSIVE_LID))
		return nic_refuse(device, call, EINVAL, "LID 0x%x is not that of a group", lid);
	return 0;
}

int sim_attach_mcast(struct ibv_qp *ibqp, const union ibv_gid *mgid, uint16_t lid)
{
	struct sim_qp *qp = nic_qp(ibqp);
	int err = check(qp, attach_call, mgid, lid);

	if (!err) {
		sim_lock();
		err = attach(qp, mgid, lid);
		sim_unlock();
	}
	if (err)
		errno = err;
	return err;
}

int sim_detach_mcast(struct ibv_qp *ibqp, const union ibv_gid *mgid, uint16_t lid)
{
	static const char call[] = "ibv_detach_mcast";
	struct sim_qp *qp = nic_qp(ibqp);
	struct nic_member *member;
	int err = check(qp, call, mgid, lid);

	if (!err) {
		sim_lock();
		member = find_member(qp, mgid);
		if (member && member->lid == lid)
			detach(member);
		else
			err = nic_refuse(qp->port->device, call, EINVAL,
					 "QP 0x%06x is not attached to that group", nic_qpn(qp));
		sim_unlock();
	}
	if (err)
		errno = err;
	return err;
}

void nic_group_deliver(const struct sim_packet *packet, const struct ud_header *h)
{
	struct nic_group *group = find_group(packet->to->device, &h->dgid);
	struct nic_member *member;

	if (!group)
		return;
	nic_list_each(member, &group->members, in_group)
		ud_deliver(member->qp, packet, h);
}
