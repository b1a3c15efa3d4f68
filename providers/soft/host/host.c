/* SPDX-License-Identifier: BSD-2-Clause */
/* host/host.c - see host.h. */
#include "config.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>

#include "providers/soft/fabric/counters.h"
#include "providers/soft/fabric/numbers.h"
#include "providers/soft/fabric/ports.h"
#include "providers/soft/fabric/world.h"
#include "providers/soft/faults/fault.h"
#include "providers/soft/link/shape.h"
#include "providers/soft/link/shm/shm.h"
#include "providers/soft/nic/nic.h"
#include "providers/soft/wire/address.h"
#include "host.h"

static char shared_name[SIM_FABRIC_NAME_MAX];	/* while on a shared fabric */

int sim_fabric_begin(void)
{
	sim_set_device_model(&sim_nic_model);
	return sim_numbers_open();
}

/* Users of the nodes are closed before the nodes, and tables in the segment before the segment. */
void sim_fabric_close(void)
{
	sim_link_drop_all();
	sim_flows_forget();
	sim_fault_close();
	sim_world_close();
	sim_nodes_drop_all();
	sim_numbers_close();
	shared_name[0] = '\0';
	sim_fabric_forget_shared();
	sim_shm_leave();
}

/* The tables in the shared segment have other addresses now. */
static int renew_tables(void)
{
	struct sim_ports_table *table;
	int r;

	sim_numbers_close();
	r = sim_numbers_open();
	for (struct sim_node *node = sim_first_node(); node && !r; node = node->next) {
		r = sim_ports_open(node->number, &table);
		if (r < 0)
			break;
		sim_ports_close(node->port_table);
		node->port_table = table;
	}
	sim_counters_renew();
	return r;
}

/* The child of a fork() joins as a process of its own, when it first uses the simulator. */
static void after_fork(void)
{
	int r;

	if (!shared_name[0])
		return;
	r = sim_shm_join(shared_name);
	if (!r)
		r = sim_scenario_agree_again();
	if (!r)
		r = renew_tables();
	if (!r)
		sim_changes_read();
	if (r < 0)
		sim_core->log(POLYCM_LOG_ERROR, NULL, "after fork(): no way back to fabric %s: %s",
			      shared_name, strerror(-r));
}

int sim_host_join(const char *name)
{
	snprintf(shared_name, sizeof(shared_name), "%s", name);
	sim_engine_hooks.after_fork = after_fork;
	return sim_shm_join(shared_name);
}

static unsigned int prefix_of_mask(const struct sockaddr *mask, sa_family_t family)
{
	union sim_sockaddr copy;
	uint8_t bytes[16];
	unsigned int bits = 0, max;

	if (!mask)
		return family == AF_INET ? 32 : 128;
	copy = sim_addr_copy(mask);
	copy.sa.sa_family = family;
	max = 8 * sim_addr_bytes(&copy, bytes);
	while (bits < max && bytes[bits / 8] >> (7 - bits % 8) & 1)
		bits++;
	return bits;
}

static int add_address(struct sim_port *port, const char *ifname, const struct sockaddr *address,
		       const struct sockaddr *mask)
{
	union sim_sockaddr addr = sim_addr_copy(address);
	uint32_t ifindex = if_nametoindex(ifname);
	char text[INET6_ADDRSTRLEN] = "?";
	int r;

	r = sim_port_add_address(port, ifname, ifindex, &addr,
				 (uint8_t)prefix_of_mask(mask, addr.sa.sa_family));
	if (r == -EEXIST)
		return 0;
	if (r == -ENOSPC) {
		inet_ntop(addr.sa.sa_family, addr.sa.sa_family == AF_INET ?
			  (void *)&addr.in.sin_addr : (void *)&addr.in6.sin6_addr,
			  text, sizeof(text));
		sim_core->log(POLYCM_LOG_INFO, NULL,
			      "%s: no GID left for the address %s of %s",
			      port->device->vdev.device.name, text, ifname);
		return 0;
	}
	return r;
}

bool (*sim_host_may_use)(const struct sockaddr *addr);

static bool may_use(const struct ifaddrs *i)
{
	return i->ifa_flags & IFF_LOOPBACK || !sim_host_may_use || sim_host_may_use(i->ifa_addr);
}

/* Add the host's addresses on loopback interfaces, or those on all others. */
static int add_addresses(struct sim_port *port, const struct ifaddrs *list, bool loopback)
{
	int r;

	for (const struct ifaddrs *i = list; i; i = i->ifa_next) {
		if (!i->ifa_addr || !(i->ifa_flags & IFF_UP) ||
		    (i->ifa_addr->sa_family != AF_INET && i->ifa_addr->sa_family != AF_INET6) ||
		    !!(i->ifa_flags & IFF_LOOPBACK) != loopback || !may_use(i))
			continue;
		r = add_address(port, i->ifa_name, i->ifa_addr, i->ifa_netmask);
		if (r < 0)
			return r;
	}
	return 0;
}

/* Loopback works also where the host has none. */
static int add_loopback(struct sim_port *port)
{
	union sim_sockaddr addr;
	uint8_t prefix_len;
	int r;

	if (sim_addr_parse("127.0.0.1/8", &addr, &prefix_len))
		return -EINVAL;
	r = sim_port_add_address(port, "lo", 1, &addr, prefix_len);
	return r == -EEXIST ? 0 : r;
}

/* Loopback comes last: programs take the first GIDs of a port. */
static int add_host_addresses(struct sim_port *port)
{
	struct ifaddrs *list;
	int r;

	if (getifaddrs(&list) < 0) {
		sim_core->log(POLYCM_LOG_INFO, NULL, "addresses of this host: %s", strerror(errno));
		return add_loopback(port);
	}
	r = add_addresses(port, list, false);
	if (!r)
		r = add_addresses(port, list, true);
	if (!r)
		r = add_loopback(port);
	freeifaddrs(list);
	return r;
}

/* Does the host have it, or is it loopback, which works everywhere? */
static bool host_has(const struct ifaddrs *list, const struct sim_address *address)
{
	if (sim_addr_is_loopback(&address->addr.sa))
		return true;
	for (const struct ifaddrs *i = list; i; i = i->ifa_next)
		if (i->ifa_addr && i->ifa_flags & IFF_UP &&
		    sim_addr_equal(i->ifa_addr, &address->addr.sa))
			return true;
	return false;
}

bool sim_host_renew(struct sim_port *port)
{
	struct sim_node *node = port->device->node;
	uint32_t before = sim_fabric_addresses;
	struct ifaddrs *list;

	if (getifaddrs(&list) < 0)
		return false;
	for (unsigned int i = node->num_addresses; i-- > 0;)
		if (!host_has(list, &node->addresses[i]))
			sim_node_remove_address(node, &node->addresses[i]);
	(void)add_addresses(port, list, false);	/* without memory: at the next change */
	freeifaddrs(list);
	if (before == sim_fabric_addresses)
		return false;
	sim_port_gids_changed(port);
	return true;
}

int sim_host_add(const char *name, const char *device_name, const struct polycm_transport *rules,
		 const struct sim_profile *profile)
{
	struct sim_device *device;
	struct sim_node *node;
	int r;

	r = sim_node_add(name, &node);
	if (!r)
		r = sim_device_add(node, device_name, rules, &device);
	if (!r && profile)
		r = sim_device_set_profile(device, profile);
	return r ?: add_host_addresses(&device->ports[0]);
}
