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

static int num_groups(const struct sim_device *device)
{
	struct nic_group *group;
	int num = 0;

	for (group = groups; group; group = group->hh.next)
		num += group->key.device == device;
	return num;
}

static struct nic_member *find_member(const struct sim_qp *qp, const union ibv_gid *mgid)
{
	struct nic_list *node;

	for (node = qp->groups.next; node != &qp->groups; node = node->next) {
		struct nic_member *member = nic_container(node, struct nic_member, in_qp);

		if (!memcmp(&member->group->key.mgid, mgid, sizeof(*mgid)))
			return member;
	}
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
	struct nic_group *group;

	if (num_groups(device) >= device->attr.max_mcast_grp)
		return ENOMEM;
	group = calloc(1, sizeof(*group));
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

static int attach(struct sim_qp *qp, const union ibv_gid *mgid, uint16_t lid)
{
	const struct sim_device *device = qp->port->device;
	struct nic_group *group = find_group(device, mgid);
	struct nic_member *member;
	int err = 0;

	if (device->removed)
		return EIO;
	if (find_member(qp, mgid))
		return 0;
	if (!group)
		err = make_group(device, mgid, &group);
	if (err)
		return err;
	err = ENOMEM;
	if (group->num_members >= device->attr.max_mcast_qp_attach)
		goto err_drop;
	member = malloc(sizeof(*member));
	if (!member)
		goto err_drop;
	err = enter(device, mgid);
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
static int check(const struct sim_qp *qp, const union ibv_gid *mgid, uint16_t lid)
{
	const struct polycm_transport *rules = qp->port->device->rules;

	if (!(rules->services & POLYCM_SVC_MULTICAST))
		return EOPNOTSUPP;
	if (qp->type != IBV_QPT_UD || !sim_gid_is_group(mgid))
		return EINVAL;
	if (rules->link_layer == IBV_LINK_LAYER_INFINIBAND &&
	    (lid < FIRST_MLID || lid == PERMISSIVE_LID))
		return EINVAL;
	return 0;
}

int sim_attach_mcast(struct ibv_qp *ibqp, const union ibv_gid *mgid, uint16_t lid)
{
	struct sim_qp *qp = nic_qp(ibqp);
	int err = check(qp, mgid, lid);
	bool fits = !err;

	if (!err) {
		sim_lock();
		err = attach(qp, mgid, lid);
		sim_unlock();
	}
	if (err)
		errno = nic_refuse(qp->port->device, "ibv_attach_mcast", err, "QP 0x%06x: %s",
				   nic_qpn(qp),
				   fits ? "no memory or no room for one more" :
					  "not a UD QP, or not the GID and LID of a group");
	return err;
}

int sim_detach_mcast(struct ibv_qp *ibqp, const union ibv_gid *mgid, uint16_t lid)
{
	struct sim_qp *qp = nic_qp(ibqp);
	struct nic_member *member;
	int err = check(qp, mgid, lid);

	if (!err) {
		sim_lock();
		member = find_member(qp, mgid);
		if (member && member->lid == lid)
			detach(member);
		else
			err = EINVAL;
		sim_unlock();
	}
	if (err)
		errno = nic_refuse(qp->port->device, "ibv_detach_mcast", err,
				   "QP 0x%06x is not attached to that group", nic_qpn(qp));
	return err;
}

void nic_group_deliver(const struct sim_packet *packet, const struct ud_header *h)
{
	struct nic_group *group = find_group(packet->to->device, &h->dgid);
	struct nic_list *node;

	if (!group)
		return;
	for (node = group->members.next; node != &group->members; node = node->next)
		ud_deliver(nic_container(node, struct nic_member, in_group)->qp, packet, h);
}
