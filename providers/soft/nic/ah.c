/* SPDX-License-Identifier: BSD-2-Clause */
/* nic/ah.c - address handles: where datagrams go to. */
#include "config.h"

#include <stdlib.h>

#include "device.h"
#include "pd.h"
#include "refuse.h"

static struct sim_port *port_by_lid(uint16_t lid)
{
	for (struct sim_node *node = sim_first_node(); node; node = node->next)
		for (struct sim_device *device = node->devices; device; device = device->next)
			for (unsigned int i = 0; i < device->num_ports; i++)
				if (device->ports[i].lid == lid)
					return &device->ports[i];
	return NULL;
}

int nic_resolve_ah(struct sim_device *device, const struct ibv_ah_attr *attr,
		   struct sim_port **ret_peer)
{
	const struct sim_port *port = nic_port(device, attr->port_num);

	if (!port)
		return EINVAL;
	if (attr->is_global) {
		if (attr->grh.sgid_index >= port->num_gids)
			return EINVAL;
		*ret_peer = sim_port_of_gid(&attr->grh.dgid);
		return 0;
	}
	/* Ethernet has no other addresses than GIDs. */
	if (device->rules->link_layer != IBV_LINK_LAYER_INFINIBAND)
		return EINVAL;
	*ret_peer = attr->dlid ? port_by_lid(attr->dlid) : NULL;
	return 0;
}

struct ibv_ah *sim_create_ah(struct ibv_pd *ibpd, struct ibv_ah_attr *attr)
{
	static const char call[] = "ibv_create_ah";
	struct sim_device *device = nic_device(ibpd->context);
	struct sim_ah *ah;
	int err;

	if (nic_is_iwarp(device)) {
		err = nic_refuse(device, call, EOPNOTSUPP, "iWARP has no datagrams");
		goto err_errno;
	}
	ah = calloc(1, sizeof(*ah));
	if (!ah) {
		err = nic_no_memory(device, call);
		goto err_errno;
	}
	ah->pub.context = ibpd->context;
	ah->pub.pd = ibpd;
	ah->attr = *attr;

	sim_lock();
	err = nic_resolve_ah(device, attr, &ah->peer);
	if (err)
		(void)nic_refuse(device, call, err,
				 "port %u, GID index %u, %s: the device has no such way",
				 attr->port_num, attr->grh.sgid_index,
				 attr->is_global ? "global" : "by LID");
	if (!err && ah->peer)
		ah->peer_mac = ah->peer->mac_number;
	if (!err)
		err = nic_take(ibpd->context, NIC_AH);
	if (!err) {
		nic_list_add(&nic_context(ibpd->context)->ahs, &ah->node);
		nic_pd(ibpd)->users++;
	}
	sim_unlock();
	if (!err)
		return &ah->pub;
	free(ah);
err_errno:
	errno = err;
	return NULL;
}

void nic_ah_free(struct sim_ah *ah)
{
	nic_list_del(&ah->node);
	nic_pd(ah->pub.pd)->users--;
	nic_give(ah->pub.context, NIC_AH);
	free(ah);
}

int sim_destroy_ah(struct ibv_ah *ah)
{
	sim_lock();
	nic_ah_free(nic_container(ah, struct sim_ah, pub));
	sim_unlock();
	return 0;
}
