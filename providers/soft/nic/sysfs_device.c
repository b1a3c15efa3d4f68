/* SPDX-License-Identifier: BSD-2-Clause */
/* nic/sysfs_device.c - the files of a device, of its card and of the interfaces behind it. */
#include "providers/soft/fabric/profile.h"
#include "config.h"

#include <endian.h>
#include <net/if_arp.h>
#include <stdio.h>

#include "sysfs.h"

#define CARD_DEVICE 0x1000u	/* the PCI device ID of those without a profile; the part follows */

int nic_sysfs_guid(char *buf, size_t size, __be64 guid)
{
	uint64_t id = be64toh(guid);

	return snprintf(buf, size, "%04x:%04x:%04x:%04x", (unsigned int)(id >> 48 & 0xffff),
			(unsigned int)(id >> 32 & 0xffff), (unsigned int)(id >> 16 & 0xffff),
			(unsigned int)(id & 0xffff));
}

/* --- The device. --- */

static int show_board_id(const struct sysfs_place *at, char *buf, size_t size)
{
	const struct sim_profile *profile = at->device->profile;

	return snprintf(buf, size, "%s", profile && profile->board_id[0] ? profile->board_id
									  : "POLYCM_SIM");
}

static int show_fw_ver(const struct sysfs_place *at, char *buf, size_t size)
{
	return snprintf(buf, size, "%s", at->device->attr.fw_ver);
}

static int show_hca_type(const struct sysfs_place *at, char *buf, size_t size)
{
	return snprintf(buf, size, "polycm sim %s", at->device->rules->name);
}

static int show_hw_rev(const struct sysfs_place *at, char *buf, size_t size)
{
	return snprintf(buf, size, "%x", at->device->attr.hw_ver);
}

static int show_node_desc(const struct sysfs_place *at, char *buf, size_t size)
{
	return snprintf(buf, size, "%s %s", at->device->node ? at->device->node->name : "sim",
			at->device->vdev.device.name);
}

static int show_node_guid(const struct sysfs_place *at, char *buf, size_t size)
{
	return nic_sysfs_guid(buf, size, at->device->attr.node_guid);
}

static int show_node_type(const struct sysfs_place *at, char *buf, size_t size)
{
	enum ibv_node_type type = at->device->vdev.device.node_type;

	return snprintf(buf, size, "%d: %s", (int)type, type == IBV_NODE_RNIC ? "RNIC" : "CA");
}

static int show_sys_image_guid(const struct sysfs_place *at, char *buf, size_t size)
{
	return nic_sysfs_guid(buf, size, at->device->attr.sys_image_guid);
}

static const struct sysfs_file device_files[] = {
	{ "board_id", show_board_id, 0 },
	{ "fw_ver", show_fw_ver, 0 },
	{ "hca_type", show_hca_type, 0 },
	{ "hw_rev", show_hw_rev, 0 },
	{ "node_desc", show_node_desc, 0 },
	{ "node_guid", show_node_guid, 0 },
	{ "node_type", show_node_type, 0 },
	{ "sys_image_guid", show_sys_image_guid, 0 },
	{ NULL, NULL, 0 },
};

/* --- Its card. --- */

static bool is_ib(const struct sysfs_place *at)
{
	return at->device->rules->link_layer == IBV_LINK_LAYER_INFINIBAND;
}

static int show_class(const struct sysfs_place *at, char *buf, size_t size)
{
	return snprintf(buf, size, "0x0%s00", is_ib(at) ? "207" : "200");
}

/* Drivers of adapters have the PCI device ID as the part. */
static uint32_t card_device(const struct sysfs_place *at)
{
	return (at->device->profile ? 0 : CARD_DEVICE) + at->device->attr.vendor_part_id;
}

static int show_device(const struct sysfs_place *at, char *buf, size_t size)
{
	return snprintf(buf, size, "0x%04x", card_device(at));
}

/* 16 bits of what libibverbs shows. */
static int show_vendor(const struct sysfs_place *at, char *buf, size_t size)
{
	return snprintf(buf, size, "0x%04x", at->device->attr.vendor_id & 0xffff);
}

static int show_revision(const struct sysfs_place *at, char *buf, size_t size)
{
	return snprintf(buf, size, "0x%02x", at->device->attr.hw_ver);
}

/* It is near to no processor in particular. */
static int show_numa_node(const struct sysfs_place *at, char *buf, size_t size)
{
	(void)at;
	return snprintf(buf, size, "-1");
}

static int show_uevent(const struct sysfs_place *at, char *buf, size_t size)
{
	return snprintf(buf, size, "DRIVER=polycm\nPCI_CLASS=%s00\nPCI_ID=%04X:%04X",
			is_ib(at) ? "207" : "200", at->device->attr.vendor_id & 0xffff,
			card_device(at));
}

static const struct sysfs_file card_files[] = {
	{ "class", show_class, 0 },
	{ "device", show_device, 0 },
	{ "numa_node", show_numa_node, 0 },
	{ "revision", show_revision, 0 },
	{ "subsystem_device", show_device, 0 },
	{ "subsystem_vendor", show_vendor, 0 },
	{ "uevent", show_uevent, 0 },
	{ "vendor", show_vendor, 0 },
	{ NULL, NULL, 0 },
};

/* --- The interfaces behind its ports. --- */

static int show_address(const struct sysfs_place *at, char *buf, size_t size)
{
	const uint8_t *mac = at->port->mac;

	return snprintf(buf, size, "%02x:%02x:%02x:%02x:%02x:%02x", mac[0], mac[1], mac[2], mac[3],
			mac[4], mac[5]);
}

static int show_carrier(const struct sysfs_place *at, char *buf, size_t size)
{
	return snprintf(buf, size, "%d", at->port->state == IBV_PORT_ACTIVE);
}

/* Ports are counted from 0 here. */
static int show_dev_port(const struct sysfs_place *at, char *buf, size_t size)
{
	return snprintf(buf, size, "%u", at->port->num - 1u);
}

static int show_dev_id(const struct sysfs_place *at, char *buf, size_t size)
{
	return snprintf(buf, size, "0x%x", at->port->num - 1u);
}

static int show_mtu(const struct sysfs_place *at, char *buf, size_t size)
{
	return snprintf(buf, size, "%u", at->port->netdev_mtu);
}

static int show_operstate(const struct sysfs_place *at, char *buf, size_t size)
{
	return snprintf(buf, size, "%s", at->port->state == IBV_PORT_ACTIVE ? "up" : "down");
}

static int show_type(const struct sysfs_place *at, char *buf, size_t size)
{
	return snprintf(buf, size, "%d", is_ib(at) ? ARPHRD_INFINIBAND : ARPHRD_ETHER);
}

static const struct sysfs_file interface_files[] = {
	{ "address", show_address, 0 },
	{ "carrier", show_carrier, 0 },
	{ "dev_id", show_dev_id, 0 },
	{ "dev_port", show_dev_port, 0 },
	{ "mtu", show_mtu, 0 },
	{ "operstate", show_operstate, 0 },
	{ "type", show_type, 0 },
	{ NULL, NULL, 0 },
};

/* The interface of an address of the device, if no address before has it.  No card has loopback. */
static const struct sim_address *interface_at(const struct sim_device *device, unsigned int index)
{
	const struct sim_address *address = &device->node->addresses[index];

	if (!address->port || address->port->device != device ||
	    sim_addr_is_loopback(&address->addr.sa))
		return NULL;
	for (unsigned int i = 0; i < index; i++)
		if (device->node->addresses[i].port == address->port &&
		    !strcmp(device->node->addresses[i].ifname, address->ifname))
			return NULL;
	return address;
}

static const struct sim_address *find_interface(const struct sim_device *device, unsigned int n,
						const char *name)
{
	for (unsigned int i = 0; device->node && i < device->node->num_addresses; i++) {
		const struct sim_address *address = interface_at(device, i);

		if (address && (name ? !strcmp(address->ifname, name) : !n--))
			return address;
	}
	return NULL;
}

static bool enter_interface(struct sysfs_place *at, const char *name)
{
	const struct sim_address *address = find_interface(at->device, 0, name);

	if (!address)
		return false;
	at->port = address->port;
	return true;
}

static bool nth_interface(const struct sysfs_place *at, unsigned int n,
			  char name[static IBV_SYSFS_NAME_MAX])
{
	const struct sim_address *address = find_interface(at->device, n, NULL);

	if (!address)
		return false;
	(void)snprintf(name, IBV_SYSFS_NAME_MAX, "%s", address->ifname);
	return true;
}

static const struct sysfs_folder interfaces[] = {
	{ .enter = enter_interface, .nth = nth_interface, .files = interface_files },
	{ .name = NULL },
};

static const struct sysfs_folder in_card[] = {
	{ .name = "net", .folders = interfaces },
	{ .name = NULL },
};

static const struct sysfs_folder in_device[] = {
	{ .name = "device", .files = card_files, .folders = in_card },
	{ .name = "ports", .folders = nic_sysfs_ports },
	{ .name = NULL },
};

const struct sysfs_folder nic_sysfs_root = { .files = device_files, .folders = in_device };
