/* SPDX-License-Identifier: BSD-2-Clause */
/* nic/ah.c - address handles: where datagrams go to. */
#include "config.h"

#include <stdlib.h>

#include "providers/soft/fabric/remote.h"
#include "device.h"
#include "refuse.h"
#include "verbs.h"

static struct sim_port *port_by_lid(uint16_t lid)
{
	for (struct sim_node *node = sim_first_node(); node; node = node->next)
		for (struct sim_device *device = node->devices; device; device = device->next)
			for (unsigned int i = 0; i < device->num_ports; i++)
				if (device->ports[i].lid == lid)
					return &device->ports[i];
	return sim_remote ? sim_remote->port_of_lid(lid) : NULL;
}

int nic_resolve_ah(struct sim_device *device, const char *call, const struct ibv_ah_attr *attr,
		   struct sim_port **ret_peer)
{
	const struct sim_port *port = nic_port(device, attr->port_num);

	if (!port)
		return nic_refuse(device, call, EINVAL, "ah_attr: port_num is %u, the device has %u",
				  attr->port_num, device->num_ports);
	if (attr->is_global) {
		if (attr->grh.sgid_index >= port->num_gids)
			return nic_refuse(device, call, EINVAL,
					  "ah_attr: sgid_index is %u, port %u has %u GIDs",
					  attr->grh.sgid_index, attr->port_num,
					  (unsigned int)port->num_gids);
		*ret_peer = sim_port_of_gid(&attr->grh.dgid);
		return 0;
	}
	/* Ethernet has no other addresses than GIDs. */
	if (device->rules->link_layer != IBV_LINK_LAYER_INFINIBAND)
		return nic_refuse(device, call, EINVAL, "ah_attr: is_global is 0, and Ethernet has "
				  "no LIDs: set is_global and grh, with the peer's GID");
	*ret_peer = attr->dlid ? port_by_lid(attr->dlid) : NULL;
	return 0;
}

struct ibv_ah *sim_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attr)
{
	static const char call[] = "ibv_create_ah";
	struct sim_device *device = nic_device(pd->context);
	struct sim_ah *ah;
	int err;

	if (nic_is_iwarp(device))
		return nic_fail(NULL, nic_refuse(device, call, EOPNOTSUPP, "iWARP has no datagrams"));
	ah = nic_alloc(device, call, sizeof(*ah));
	if (!ah)
		return NULL;
	ah->pub.context = pd->context;
	ah->pub.pd = pd;
	ah->attr = *attr;

	sim_lock();
	err = nic_resolve_ah(device, call, attr, &ah->peer);
	if (!err)
		err = nic_add(pd->context, call, NIC_AH, &ah->node, pd);
	if (!err && ah->peer)
		ah->peer_mac = ah->peer->mac_number;
	sim_unlock();
	return err ? nic_fail(ah, err) : &ah->pub;
}

void nic_ah_free(struct sim_ah *ah)
{
	nic_remove(ah->pub.context, NIC_AH, &ah->node, ah->pub.pd);
	free(ah);
}

int sim_destroy_ah(struct ibv_ah *ah)
{
	sim_lock();
	nic_ah_free(nic_container(ah, struct sim_ah, pub));
	sim_unlock();
	return 0;
}
