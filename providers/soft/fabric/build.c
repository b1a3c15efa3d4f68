/* SPDX-License-Identifier: BSD-2-Clause */
/* fabric/build.c - see build.h. */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "providers/soft/wire/address.h"
#include "build.h"

#define MAX_DEPTH 255u		/* rdma_conn_param has a byte for it */

struct sim_node *sim_node_by_name(const char *name)
{
	struct sim_node *node = sim_first_node();

	while (node && strcmp(node->name, name))
		node = node->next;
	return node;
}

struct sim_device *sim_device_by_name(const struct sim_node *node, const char *name)
{
	struct sim_device *device = node->devices;

	while (device && name && strcmp(device->vdev.device.name, name))
		device = device->next;
	return device;
}

int sim_build_node(const char *name, struct sim_node **ret_node, const char **ret_why)
{
	*ret_why = NULL;
	if (!*name || strlen(name) >= sizeof((*ret_node)->name))
		*ret_why = "the name is empty or too long";
	else if (sim_node_by_name(name))
		*ret_why = "the name is taken";
	return *ret_why ? -EINVAL : sim_node_add(name, ret_node);
}

/* What is wrong with an address for an interface of the fabric, or NULL. */
static const char *wrong_address(const char *text)
{
	union sim_sockaddr addr;
	uint8_t prefix_len;

	if (sim_addr_parse(text, &addr, &prefix_len) < 0)
		return "no address as in 10.0.0.1/24 or fd00::1/64";
	if (sim_addr_is_zero(&addr.sa))
		return "the address of no interface";
	if (sim_addr_is_loopback(&addr.sa))
		return "a loopback address";
	if (sim_addr_is_multicast(&addr.sa))
		return "the address of a multicast group";
	return sim_node_of_address(&addr.sa) ? "a node has that address" : NULL;
}

int sim_build_address(struct sim_device *device, const char *address, const char **ret_why)
{
	int r;

	*ret_why = wrong_address(address);
	if (*ret_why)
		return -EINVAL;
	r = sim_device_add_address(device, NULL, address);
	if (r != -ENOSPC)
		return r;
	*ret_why = "the device has no room for one more GID";
	return -ENOMEM;
}

int sim_build_interface(struct sim_node *node, const char *name, const char *address,
			const char **ret_why)
{
	*ret_why = wrong_address(address);
	if (*ret_why)
		return -EINVAL;
	if (!*name || strlen(name) >= sizeof(node->addresses->ifname)) {
		*ret_why = "the name is empty or too long";
		return -EINVAL;
	}
	return sim_node_add_interface(node, name, address);
}

int sim_build_route(struct sim_node *node, const char *to, const char *source,
		    const char **ret_why)
{
	union sim_sockaddr dst, src;
	uint8_t bits;

	*ret_why = NULL;
	if (sim_addr_parse(to, &dst, &bits) < 0)
		*ret_why = "no addresses as in 10.0.0.0/8 or fd00::/64";
	else if (sim_addr_parse(source, &src, &bits) < 0 || !sim_node_address(node, &src.sa))
		*ret_why = "its source is no address of the node";
	else if (src.sa.sa_family != dst.sa.sa_family)
		*ret_why = "its source is of another address family";
	return *ret_why ? -EINVAL : sim_node_add_route(node, to, source);
}

/* ------------------------------------------------------------------------
 * Limits.
 */

struct limit {
	unsigned int wanted;
	int *of;		/* the device's own, which is the most that it can do */
	bool depth;
};

static bool possible(const struct limit *limit)
{
	return limit->wanted <= (limit->depth ? MAX_DEPTH : (unsigned int)*limit->of);
}

int sim_build_limits(struct sim_device *device, const struct polycm_sim_limits *given,
		     const char **ret_why)
{
	struct ibv_device_attr *attr = &device->attr;
	const struct ibv_device_attr old = *attr;
	struct polycm_sim_limits limits = { 0 };

	*ret_why = NULL;
	if (device->contexts)
		return -EBUSY;
	if (given->size < sizeof(given->size)) {
		*ret_why = "the size of the limits is not set";
		return -EINVAL;
	}
	memcpy(&limits, given, given->size < sizeof(limits) ? given->size : sizeof(limits));
	sim_device_init_limits(device);	/* with all that it can do */
	const struct limit all[] = {
		{ limits.max_qp, &attr->max_qp, false },
		{ limits.max_cq, &attr->max_cq, false },
		{ limits.max_cqe, &attr->max_cqe, false },
		{ limits.max_mr, &attr->max_mr, false },
		{ limits.max_pd, &attr->max_pd, false },
		{ limits.max_srq, &attr->max_srq, false },
		{ limits.max_ah, &attr->max_ah, false },
		{ limits.max_qp_wr, &attr->max_qp_wr, false },
		{ limits.max_sge, &attr->max_sge, false },
		{ limits.max_responder_resources, &attr->max_qp_rd_atom, true },
		{ limits.max_initiator_depth, &attr->max_qp_init_rd_atom, true },
		{ limits.max_mcast_grp, &attr->max_mcast_grp, false },
	};

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		if (!possible(&all[i])) {
			*attr = old;
			*ret_why = "a limit is above what a device of this transport has";
			return -EINVAL;
		}
	}
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		if (all[i].wanted)
			*all[i].of = (int)all[i].wanted;
	return 0;
}

/* ------------------------------------------------------------------------
 * Devices.
 */

int sim_build_device(struct sim_node *node, const char *transport, const char *address,
		     const struct polycm_sim_limits *limits, struct sim_device **ret_device,
		     const char **ret_why)
{
	const struct polycm_transport *rules = sim_core->transport(transport);
	char name[32];
	int r;

	*ret_why = NULL;
	if (!rules) {
		*ret_why = "no such transport; 'polycm info' lists those installed";
		return -EINVAL;
	}
	if (rules->protocol == POLYCM_PROTO_OTHER) {
		*ret_why = "the simulator cannot play this transport: its protocol is its "
			   "provider's own";
		return -EINVAL;
	}
	snprintf(name, sizeof(name), "sim%u", sim_num_devices());
	r = sim_device_add(node, name, rules, ret_device);
	if (r < 0)
		return r;
	if (limits)
		r = sim_build_limits(*ret_device, limits, ret_why);
	if (!r && address)
		r = sim_build_address(*ret_device, address, ret_why);
	if (r < 0)
		sim_device_drop_newest(node);
	return r;
}
