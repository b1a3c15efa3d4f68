/* SPDX-License-Identifier: BSD-2-Clause */
/* fabric/build.c - see build.h. */
#include "config.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "providers/soft/wire/address.h"
#include "build.h"
#include "profile.h"

#define MAX_DEPTH 255u		/* rdma_conn_param has a byte for it */
/* Interface numbers of those without a device, beyond those of ports. */
#define FIRST_PLAIN_INTERFACE 10000u

struct sim_node *sim_node_by_name(const char *name)
{
	struct sim_node *node = sim_first_node();

	while (node && strcmp(node->name, name))
		node = node->next;
	return node;
}

void sim_list_nodes(char *text, size_t size)
{
	size_t len = 0;

	*text = '\0';
	for (const struct sim_node *node = sim_first_node(); node && len < size; node = node->next)
		len += (size_t)snprintf(text + len, size - len, "%s%s", len ? ", " : "", node->name);
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
	int r = sim_node_add(name, ret_node);

	*ret_why = r == -EINVAL ? "the name is empty or too long" :
		   r == -EEXIST ? "the name is taken" : NULL;
	return *ret_why ? -EINVAL : r;
}

/* What is wrong with an address for an interface of the fabric, or NULL. */
static const char *wrong_address(const char *text, union sim_sockaddr *ret_addr,
				 uint8_t *ret_prefix_len)
{
	const struct sockaddr *addr = &ret_addr->sa;

	if (sim_addr_parse(text, ret_addr, ret_prefix_len) < 0)
		return "no address as in 10.0.0.1/24 or fd00::1/64";
	if (sim_addr_is_zero(addr))
		return "the address of no interface";
	if (sim_addr_is_loopback(addr))
		return "a loopback address";
	if (sim_addr_is_multicast(addr))
		return "the address of a multicast group";
	return sim_node_of_address(addr) ? "a node has that address" : NULL;
}

int sim_build_address(struct sim_device *device, const char *address, const char **ret_why)
{
	union sim_sockaddr addr;
	uint8_t prefix_len;
	int r;

	*ret_why = wrong_address(address, &addr, &prefix_len);
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
	union sim_sockaddr addr;
	uint8_t prefix_len;

	*ret_why = wrong_address(address, &addr, &prefix_len);
	if (!*ret_why && (!*name || strlen(name) >= sizeof(node->addresses->ifname)))
		*ret_why = "the name is empty or too long";
	if (*ret_why)
		return -EINVAL;
	if (sim_addr_is_link_local(&addr.sa))
		addr.in6.sin6_scope_id = FIRST_PLAIN_INTERFACE + node->num_addresses;
	return sim_node_add_address(node, name, &addr, prefix_len);
}

int sim_build_route(struct sim_node *node, const char *to, const char *source,
		    const char **ret_why)
{
	struct sim_route route, *grown;
	uint8_t unused;

	*ret_why = NULL;
	if (sim_addr_parse(to, &route.to, &route.prefix_len) < 0)
		*ret_why = "no addresses as in 10.0.0.0/8 or fd00::/64";
	else if (sim_addr_parse(source, &route.source, &unused) < 0 ||
		 !sim_node_address(node, &route.source.sa))
		*ret_why = "its source is no address of the node";
	else if (route.source.sa.sa_family != route.to.sa.sa_family)
		*ret_why = "its source is of another address family";
	if (*ret_why)
		return -EINVAL;
	grown = reallocarray(node->routes, node->num_routes + 1, sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	node->routes = grown;
	grown[node->num_routes++] = route;
	sim_fabric_addresses++;
	return 0;
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

static bool name_is_free(const char *name)
{
	for (const struct sim_node *node = sim_first_node(); node; node = node->next)
		if (node->devices && sim_device_by_name(node, name))
			return false;
	return true;
}

/* The profile's own name, or that with the next number which is free. */
static void name_after(const struct sim_profile *profile, char *name, size_t size)
{
	size_t stem = strlen(profile->name);

	snprintf(name, size, "%s", profile->name);
	while (stem > 0 && isdigit((unsigned char)profile->name[stem - 1]))
		stem--;
	for (unsigned int i = 0; !name_is_free(name) && i <= sim_num_devices(); i++)
		snprintf(name, size, "%.*s%u", (int)stem, profile->name, i);
}

static int check_transport(const char *transport, const struct polycm_transport **ret_rules,
			   const char **ret_why)
{
	*ret_rules = sim_core->transport(transport);
	if (!*ret_rules)
		*ret_why = "no such transport; 'polycm info' lists those installed";
	else if ((*ret_rules)->protocol == POLYCM_PROTO_OTHER)
		*ret_why = "the simulator cannot play this transport: its protocol is its "
			   "provider's own";
	return *ret_why ? -EINVAL : 0;
}

int sim_build_device(struct sim_node *node, const char *transport, const char *address,
		     const struct sim_profile *profile, const struct polycm_sim_limits *limits,
		     struct sim_device **ret_device, const char **ret_why)
{
	const struct polycm_transport *rules;
	char name[IBV_SYSFS_NAME_MAX];
	int r;

	*ret_why = NULL;
	if (!transport)
		transport = sim_profile_transport(profile);
	r = check_transport(transport, &rules, ret_why);
	if (r < 0)
		return r;
	if (profile && !sim_profile_fits(profile, rules)) {
		*ret_why = "the transport is not that of the device";
		return -EINVAL;
	}
	if (profile)
		name_after(profile, name, sizeof(name));
	else
		snprintf(name, sizeof(name), "sim%u", sim_num_devices());
	r = sim_device_add(node, name, rules, ret_device);
	if (r < 0)
		return r;
	if (profile)
		r = sim_device_set_profile(*ret_device, profile);
	if (!r && limits)
		r = sim_build_limits(*ret_device, limits, ret_why);
	if (!r && address)
		r = sim_build_address(*ret_device, address, ret_why);
	if (r < 0)
		sim_device_drop_newest(node);
	return r;
}
