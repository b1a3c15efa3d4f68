/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * nic/sysfs.c - the files that a real device has below
 * /sys/class/infiniband/NAME, for programs that read them through libibverbs.
 */
#include "config.h"

#include <inttypes.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>

#include <endian.h>

#include "device.h"
#include "verbs.h"

static int put_guid(char *buf, size_t size, __be64 guid)
{
	uint64_t id = be64toh(guid);

	return snprintf(buf, size, "%04x:%04x:%04x:%04x", (unsigned int)(id >> 48 & 0xffff),
			(unsigned int)(id >> 32 & 0xffff), (unsigned int)(id >> 16 & 0xffff),
			(unsigned int)(id & 0xffff));
}

static int device_file(const struct sim_device *device, const char *file, char *buf, size_t size)
{
	const struct ibv_device *ibdev = &device->vdev.device;

	if (!strcmp(file, "fw_ver"))
		return snprintf(buf, size, "%s", device->attr.fw_ver);
	if (!strcmp(file, "hca_type"))
		return snprintf(buf, size, "polycm sim %s", device->rules->name);
	if (!strcmp(file, "board_id"))
		return snprintf(buf, size, "POLYCM_SIM");
	if (!strcmp(file, "hw_rev"))
		return snprintf(buf, size, "%x", device->attr.hw_ver);
	if (!strcmp(file, "node_guid"))
		return put_guid(buf, size, device->attr.node_guid);
	if (!strcmp(file, "sys_image_guid"))
		return put_guid(buf, size, device->attr.sys_image_guid);
	if (!strcmp(file, "node_desc"))
		return snprintf(buf, size, "%s %s", device->node ? device->node->name : "sim",
				ibdev->name);
	if (!strcmp(file, "node_type"))
		return snprintf(buf, size, "%d: %s", (int)ibdev->node_type,
				ibdev->node_type == IBV_NODE_RNIC ? "RNIC" : "CA");
	return -1;
}

static int put_gid(char *buf, size_t size, const union ibv_gid *gid)
{
	int len = 0;

	for (unsigned int i = 0; i < 16 && len >= 0 && (size_t)len < size; i += 2)
		len += snprintf(buf + len, size - (size_t)len, "%s%02x%02x", i ? ":" : "",
				gid->raw[i], gid->raw[i + 1]);
	return len;
}

static const char *gid_type_name(uint32_t type)
{
	return type == IBV_GID_TYPE_ROCE_V2 ? "RoCE v2" : "IB/RoCE v1";
}

/* Files of a table's entry: NAME/index.  -1: no such file. */
static int table_file(const struct sim_port *port, const char *file, char *buf, size_t size)
{
	static const union ibv_gid none;
	const char *slash = strrchr(file, '/');
	char ifname[IF_NAMESIZE], *end;
	unsigned long index;
	size_t len;
	bool used;

	if (!slash || slash[1] < '0' || slash[1] > '9')
		return -1;
	len = (size_t)(slash - file);
	index = strtoul(slash + 1, &end, 10);
	if (*end)
		return -1;
	used = index < port->num_gids;
	if (len == 5 && !strncmp(file, "pkeys", len))
		return index == 0 ? snprintf(buf, size, "0x%04x", SIM_PKEY) : -1;
	if (len == 4 && !strncmp(file, "gids", len))
		return put_gid(buf, size, used ? &port->gids[index].gid : &none);
	if (!used)
		return -1;
	if (len == 15 && !strncmp(file, "gid_attrs/types", len))
		return snprintf(buf, size, "%s", gid_type_name(port->gids[index].type));
	if (len == 15 && !strncmp(file, "gid_attrs/ndevs", len))
		return if_indextoname(port->gids[index].ifindex, ifname)
			? snprintf(buf, size, "%s", ifname) : -1;
	return -1;
}

static int port_file(const struct sim_port *port, const char *file, char *buf, size_t size)
{
	static const char *const states[] = { "NOP", "DOWN", "INIT", "ARMED", "ACTIVE", "ACTIVE_DEFER" };
	struct ibv_port_attr attr;

	nic_port_attr(port, &attr);
	if (!strcmp(file, "state"))
		return snprintf(buf, size, "%d: %s", (int)attr.state, states[attr.state]);
	if (!strcmp(file, "phys_state"))
		return snprintf(buf, size, "%u: %s", attr.phys_state,
				attr.phys_state == 5 ? "LinkUp" : "Disabled");
	if (!strcmp(file, "link_layer"))
		return snprintf(buf, size, "%s", attr.link_layer == IBV_LINK_LAYER_INFINIBAND
				? "InfiniBand" : "Ethernet");
	if (!strcmp(file, "rate"))
		return snprintf(buf, size, "100 Gb/sec (4X EDR)");
	if (!strcmp(file, "lid"))
		return snprintf(buf, size, "0x%x", attr.lid);
	if (!strcmp(file, "sm_lid"))
		return snprintf(buf, size, "0x%x", attr.sm_lid);
	if (!strcmp(file, "sm_sl"))
		return snprintf(buf, size, "%u", attr.sm_sl);
	if (!strcmp(file, "lid_mask_count"))
		return snprintf(buf, size, "%u", attr.lmc);
	if (!strcmp(file, "cap_mask"))
		return snprintf(buf, size, "0x%08x", attr.port_cap_flags);
	return table_file(port, file, buf, size);
}

int sim_read_sysfs_file(struct ibv_device *ibdev, const char *file, char *buf, size_t size)
{
	struct sim_device *device = nic_container(ibdev, struct sim_device, vdev.device);
	const struct sim_port *port;
	char *end;
	int len = -1;

	if (!size)
		return -1;
	sim_lock();
	if (strncmp(file, "ports/", 6)) {
		len = device_file(device, file, buf, size);
	} else {
		port = nic_port(device, (uint32_t)strtoul(file + 6, &end, 10));
		if (port && *end == '/')
			len = port_file(port, end + 1, buf, size);
	}
	sim_unlock();
	/* As read(): what fits, terminated. */
	return len >= (int)size ? (int)size - 1 : len;
}
