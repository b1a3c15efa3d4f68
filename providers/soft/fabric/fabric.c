/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fabric/fabric.c - the nodes of the fabric, their devices and addresses, and who is
 * found under an address.  Engine lock held.
 *
 * Nodes and devices live until the fabric is closed.  GUIDs, MACs and LIDs
 * depend on names and on the order of creation only.
 */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "providers/soft/wire/address.h"
#include "counters.h"
#include "fabric.h"
#include "gids.h"
#include "ports.h"
#include "profile.h"
#include "remote.h"
#include "trace_lines.h"
#include "uverbs.h"

/* MTU of the interface behind a port: Ethernet's usual one, or IPoIB's on a link of 4096. */
#define ETHERNET_MTU 1500u
#define IPOIB_MTU 4092u

struct polycm_module *sim_module;
uint32_t sim_fabric_addresses = 1;
const struct sim_remote_ops *sim_remote;

static const struct sim_device_model *model;
static struct {
	struct sim_node *first;		/* in order of creation */
	struct sim_node *current, *home;
	struct sim_port **ports;	/* by fabric_index */
	uint32_t num_ports, num_nodes, num_devices;
} fabric;

/* ------------------------------------------------------------------------
 * The end.
 */

static void free_device(struct sim_device *device)
{
	if (device->core)
		sim_core->device_remove(device->core);
	free(device->profile);
	free(device);
}

static void free_node(struct sim_node *node)
{
	struct sim_device *device;

	while ((device = node->devices)) {
		DL_DELETE(node->devices, device);
		free_device(device);
	}
	sim_ports_close(node->port_table);
	free(node->addresses);
	free(node->routes);
	sim_node_unlearn_all(node);
	free(node);
}

void sim_nodes_drop_all(void)
{
	struct sim_node *node;

	sim_fabric_addresses++;
	while ((node = fabric.first)) {
		DL_DELETE(fabric.first, node);
		free_node(node);
	}
	fabric.current = fabric.home = NULL;
	free(fabric.ports);
	fabric.ports = NULL;
	fabric.num_ports = fabric.num_nodes = fabric.num_devices = 0;
}

/* ------------------------------------------------------------------------
 * Making nodes.
 */

int sim_node_add(const char *name, struct sim_node **ret_node)
{
	struct sim_node *node;
	int r;

	if (!*name || strlen(name) >= sizeof(node->name))
		return -EINVAL;
	for (node = fabric.first; node; node = node->next)
		if (!strcmp(node->name, name))
			return -EEXIST;

	node = calloc(1, sizeof(*node));
	if (!node)
		return -ENOMEM;
	strcpy(node->name, name);
	r = sim_ports_open(fabric.num_nodes, &node->port_table);
	if (r < 0) {
		free(node);
		return r;
	}
	node->number = fabric.num_nodes++;
	DL_APPEND(fabric.first, node);
	*ret_node = node;
	return 0;
}

void sim_node_drop_newest(void)
{
	struct sim_node *node = fabric.first->prev;

	while (node->devices)
		sim_device_drop_newest(node);
	sim_fabric_addresses++;
	DL_DELETE(fabric.first, node);
	fabric.num_nodes--;
	free_node(node);
}

void sim_device_drop_newest(struct sim_node *node)
{
	struct sim_device *device = node->devices->prev;
	unsigned int kept = 0;

	sim_fabric_addresses++;
	for (unsigned int i = 0; i < node->num_addresses; i++)
		if (!node->addresses[i].port || node->addresses[i].port->device != device)
			node->addresses[kept++] = node->addresses[i];
	node->num_addresses = kept;
	DL_DELETE(node->devices, device);
	fabric.num_ports -= device->num_ports;
	fabric.num_devices--;
	free_device(device);
}

uint32_t sim_num_devices(void)
{
	return fabric.num_devices;
}

static void init_port(struct sim_device *device, unsigned int index)
{
	struct sim_port *port = &device->ports[index];
	char name[128];

	port->device = device;
	port->num = (uint8_t)(index + 1);
	port->state = IBV_PORT_ACTIVE;
	port->fabric_index = fabric.num_ports;
	fabric.ports[fabric.num_ports++] = port;
	sim_counters_init(port);
	if (sim_wire_of(device->rules) == SIM_WIRE_IB) {
		port->netdev_mtu = IPOIB_MTU;
		port->lid = (uint16_t)(port->fabric_index + 1);
	} else {
		port->netdev_mtu = ETHERNET_MTU;
	}
	snprintf(name, sizeof(name), "%s/%s/%u", device->node->name, device->vdev.device.name,
		 port->num);
	sim_mac_of_name(name, port->mac);
	/* Interface 1 is the loopback of any host. */
	sim_gids_init(port, port->fabric_index + 2);
}

void sim_set_device_model(const struct sim_device_model *given)
{
	model = given;
}

void sim_device_init_limits(struct sim_device *device)
{
	model->init(device);
}

/* What libibverbs shows of a device before it is opened. */
static void init_verbs_device(struct sim_device *device, const char *name)
{
	unsigned int number = sim_first_uverbs() + fabric.num_devices;
	struct ibv_device *shown = &device->vdev.device;

	shown->node_type = device->rules->node_type;
	shown->transport_type = device->rules->transport_type;
	strcpy(shown->name, name);	/* sim_device_add() has checked its length */
	snprintf(shown->dev_name, sizeof(shown->dev_name), "uverbs%u", number);
	snprintf(shown->dev_path, sizeof(shown->dev_path), "/sys/class/infiniband_verbs/uverbs%u",
		 number);
	snprintf(shown->ibdev_path, sizeof(shown->ibdev_path), "/sys/class/infiniband/%s", name);
	device->vdev.verbs = model->verbs;
}

static bool device_exists(const char *name)
{
	for (struct sim_node *node = fabric.first; node; node = node->next)
		for (struct sim_device *device = node->devices; device; device = device->next)
			if (!strcmp(device->vdev.device.name, name))
				return true;
	return false;
}

int sim_device_add(struct sim_node *node, const char *name, const struct polycm_transport *rules,
		   struct sim_device **ret_device)
{
	struct sim_device *device;
	struct sim_port **grown;
	uint8_t guid[8];

	if (!*name || strlen(name) >= IBV_SYSFS_NAME_MAX)
		return -EINVAL;
	if (device_exists(name))
		return -EEXIST;
	grown = reallocarray(fabric.ports, fabric.num_ports + 2, sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	fabric.ports = grown;
	device = calloc(1, sizeof(*device));
	if (!device)
		return -ENOMEM;
	device->node = node;
	device->rules = rules;
	device->num_ports = 1;
	init_verbs_device(device, name);
	for (unsigned int i = 0; i < device->num_ports; i++)
		init_port(device, i);
	sim_eui64_of_mac(device->ports[0].mac, guid);
	memcpy(&device->vdev.node_guid, guid, sizeof(guid));
	model->init(device);

	DL_APPEND(node->devices, device);
	device->number = fabric.num_devices++;
	*ret_device = device;
	return 0;
}

int sim_device_set_profile(struct sim_device *device, const struct sim_profile *profile)
{
	device->profile = malloc(sizeof(*profile));
	if (!device->profile)
		return -ENOMEM;
	*device->profile = *profile;
	model->init(device);
	return 0;
}

int sim_node_add_address(struct sim_node *node, const char *ifname,
			 const union sim_sockaddr *addr, uint8_t prefix_len)
{
	struct sim_address *grown, *address;

	if (strlen(ifname) >= sizeof(address->ifname))
		return -EINVAL;
	grown = reallocarray(node->addresses, node->num_addresses + 1, sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	node->addresses = grown;
	sim_fabric_addresses++;
	address = &grown[node->num_addresses++];
	*address = (struct sim_address){ .addr = *addr, .prefix_len = prefix_len };
	sim_addr_set_port(&address->addr, 0);
	strcpy(address->ifname, ifname);
	return 0;
}

int sim_port_add_address(struct sim_port *port, const char *ifname, uint32_t ifindex,
			 const union sim_sockaddr *addr, uint8_t prefix_len)
{
	struct sim_node *node = port->device->node;
	int r;

	if (sim_node_address(node, &addr->sa) ||
	    (!sim_addr_is_loopback(&addr->sa) && sim_node_of_address(&addr->sa)))
		return -EEXIST;
	r = sim_node_add_address(node, ifname, addr, prefix_len);
	if (r < 0)
		return r;
	if (!sim_gids_add_address(port, addr, ifindex)) {
		node->num_addresses--;
		return -ENOSPC;
	}
	node->addresses[node->num_addresses - 1].port = port;
	if (sim_tracing())
		sim_trace_address(&node->addresses[node->num_addresses - 1], "added");
	return 0;
}

void sim_node_remove_address(struct sim_node *node, struct sim_address *address)
{
	unsigned int index = (unsigned int)(address - node->addresses);
	const struct sim_address gone = *address;

	sim_fabric_addresses++;
	if (sim_tracing() && gone.port)
		sim_trace_address(&gone, "removed");
	memmove(address, address + 1,
		(node->num_addresses - index - 1) * sizeof(struct sim_address));
	node->num_addresses--;
	if (gone.port)
		sim_gids_remove_address(gone.port, &gone.addr);
}

int sim_device_add_address(struct sim_device *device, const char *ifname, const char *address)
{
	struct sim_port *port = &device->ports[0];
	uint32_t ifindex = port->fabric_index + 2;
	union sim_sockaddr addr;
	uint8_t prefix_len;
	char made[16];
	int r;

	r = sim_addr_parse(address, &addr, &prefix_len);
	if (r < 0)
		return r;
	if (sim_addr_is_zero(&addr.sa))
		return -EINVAL;
	if (sim_addr_is_link_local(&addr.sa))
		addr.in6.sin6_scope_id = ifindex;
	if (!ifname) {
		snprintf(made, sizeof(made), "eth%u", port->fabric_index);
		ifname = made;
	}
	return sim_port_add_address(port, ifname, ifindex, &addr, prefix_len);
}

static bool is_ours(const struct sim_node *node)
{
	return !fabric.home || node == fabric.home;
}

static int announce(struct sim_device *device)
{
	struct polycm_device_info info = {
		.size = sizeof(info),
		.name = device->vdev.device.name,
		.transport = device->rules->name,
		.node_guid = device->vdev.node_guid,
		.verbs = &device->vdev,
		.cookie = device,
	};

	return sim_core->device_add(sim_module, &info, &device->core);
}

int sim_fabric_announce(void)
{
	int r;

	for (struct sim_node *node = fabric.first; node; node = node->next) {
		for (struct sim_device *device = node->devices; device; device = device->next) {
			if (device->core || device->removed || !is_ours(node))
				continue;
			r = announce(device);
			if (r < 0)
				return r;
		}
	}
	return 0;
}

/* ------------------------------------------------------------------------
 * Finding.
 */

struct sim_node *sim_first_node(void)
{
	return fabric.first;
}

struct sim_node *sim_node_by_number(uint32_t number)
{
	struct sim_node *node;

	DL_SEARCH_SCALAR(fabric.first, node, number, number);
	return node;
}

struct sim_device *sim_device_by_number(uint32_t number)
{
	struct sim_device *device;

	for (struct sim_node *node = fabric.first; node; node = node->next)
		for (device = node->devices; device; device = device->next)
			if (device->number == number)
				return device;
	return NULL;
}

struct sim_node *sim_current_node(void)
{
	return fabric.current ? fabric.current : fabric.first;
}

void sim_set_current_node(struct sim_node *node)
{
	fabric.current = node;
}

void sim_set_home_node(struct sim_node *node)
{
	fabric.home = fabric.current = node;
}

struct sim_address *sim_node_address(struct sim_node *node, const struct sockaddr *addr)
{
	for (unsigned int i = 0; i < node->num_addresses; i++)
		if (sim_addr_equal(&node->addresses[i].addr.sa, addr))
			return &node->addresses[i];
	return NULL;
}

/* Each node has its own loopback, so that is nobody's in particular. */
static struct sim_address *find_address(const struct sockaddr *addr, struct sim_node **ret_node)
{
	struct sim_address *address;

	*ret_node = sim_current_node();
	if (sim_addr_is_loopback(addr))
		return fabric.first ? sim_node_address(*ret_node, addr) : NULL;
	for (struct sim_node *node = fabric.first; node; node = node->next) {
		address = sim_node_address(node, addr);
		*ret_node = node;
		if (address)
			return address;
	}
	return NULL;
}

static struct sim_port *find_port(const struct sockaddr *addr)
{
	struct sim_node *node;
	struct sim_address *address = find_address(addr, &node);

	return address ? address->port : NULL;
}

/* Connections ask for the same few addresses again and again; those of IPv4 stay known. */
struct sim_port *sim_port_of_address(const struct sockaddr *addr)
{
	static struct {
		uint32_t addresses;
		in_addr_t addr;
		struct sim_port *port;
	} lately[16], *entry;
	in_addr_t wanted;

	if (sim_addr_family(addr) != AF_INET || sim_addr_is_loopback(addr))
		return find_port(addr);
	wanted = sim_addr_ipv4(addr);
	entry = &lately[(wanted ^ wanted >> 8 ^ wanted >> 16 ^ wanted >> 24) % 16];
	if (entry->addresses != sim_fabric_addresses || entry->addr != wanted) {
		entry->port = find_port(addr);
		entry->addr = wanted;
		entry->addresses = sim_fabric_addresses;
	}
	return entry->port;
}

struct sim_node *sim_node_of_address(const struct sockaddr *addr)
{
	struct sim_node *node;

	return find_address(addr, &node) ? node : NULL;
}

struct sim_node *sim_own_node_of_address(const struct sockaddr *addr)
{
	struct sim_node *node = sim_node_of_address(addr);

	return node && is_ours(node) ? node : NULL;
}

static bool port_has_gid(const struct sim_port *port, const union ibv_gid *gid)
{
	for (unsigned int i = 0; i < port->num_gids; i++)
		if (!memcmp(port->gids[i].gid.raw, gid->raw, sizeof(gid->raw)))
			return sim_gid_is_set(&port->gids[i]);
	return false;
}

struct sim_port *sim_port_of_gid(const union ibv_gid *gid)
{
	for (uint32_t i = 0; i < fabric.num_ports; i++)
		if (port_has_gid(fabric.ports[i], gid))
			return fabric.ports[i];
	return sim_remote ? sim_remote->port_of_gid(gid) : NULL;
}

struct sim_port *sim_port_by_index(uint32_t fabric_index)
{
	return fabric_index < fabric.num_ports ? fabric.ports[fabric_index] : NULL;
}
