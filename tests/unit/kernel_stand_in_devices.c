/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * kernel_stand_in_devices.c - the RDMA devices of the stand-in's host, their
 * addresses, and their verbs: those of cm_fake_verbs.c with QP numbers of
 * their own.
 */
#include "kernel_stand_in_internal.h"

#include <endian.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "cm_fake.h"

#define IP(a, b, c, d) ((uint32_t)(a) << 24 | (b) << 16 | (c) << 8 | (d))

static const struct si_device fresh[SI_DEVICES] = {
	{
		.host = { .name = "hca0", .index = 1, .node_type = IBV_NODE_CA,
			  .transport_type = IBV_TRANSPORT_IB,
			  .link_layer = { [0 ... KERNEL_PORTS - 1] = IBV_LINK_LAYER_INFINIBAND } },
		.port = { { 0x11, 0xffff, IP(10, 0, 1, 1), STAND_IN_IB },
			  { 0x12, 0x8001, IP(10, 0, 2, 1), STAND_IN_IB } },
	},
	{
		.host = { .name = "hca1", .index = 2, .node_type = IBV_NODE_CA,
			  .transport_type = IBV_TRANSPORT_IB,
			  .link_layer = { [0 ... KERNEL_PORTS - 1] = IBV_LINK_LAYER_INFINIBAND } },
		.port = { { 0x21, 0xffff, IP(10, 1, 1, 1), STAND_IN_IB },
			  { 0x22, 0xffff, IP(10, 1, 2, 1), STAND_IN_IB } },
	},
	{
		.host = { .name = "rocee0", .index = 3, .node_type = IBV_NODE_CA,
			  .transport_type = IBV_TRANSPORT_IB,
			  .link_layer = { [0 ... KERNEL_PORTS - 1] = IBV_LINK_LAYER_ETHERNET } },
		.port = { { 0, 0xffff, IP(20, 0, 0, 1), STAND_IN_ROCE } },
	},
	{
		.host = { .name = "iw0", .index = 4, .node_type = IBV_NODE_RNIC,
			  .transport_type = IBV_TRANSPORT_IWARP,
			  .link_layer = { [0 ... KERNEL_PORTS - 1] = IBV_LINK_LAYER_ETHERNET } },
		.port = { { 0, 0xffff, IP(30, 0, 0, 1), STAND_IN_IWARP } },
	},
	{
		.host = { .name = "vpi0", .index = 5, .node_type = IBV_NODE_CA,
			  .transport_type = IBV_TRANSPORT_IB,
			  .link_layer = { IBV_LINK_LAYER_UNSPECIFIED, IBV_LINK_LAYER_ETHERNET } },
		.spare = true,
		.port = { { 0x31, 0xffff, IP(10, 2, 1, 1), STAND_IN_IB },
			  { 0, 0xffff, IP(20, 1, 0, 1), STAND_IN_ROCE } },
	},
};

struct si_device si_devices[SI_DEVICES];
struct ibv_qp_attr stand_in_rtr, stand_in_rts;
uint32_t stand_in_last_qpn;

/* One for each time that a device was plugged: the library may hold on to older ones. */
struct si_verbs {
	struct polycm_verbs_device vdev;	/* first */
	size_t device;
	struct si_verbs *next;
};

static struct si_verbs *all_verbs;
static struct polycm_verbs verbs;

/* ------------------------------------------------------------------------
 * Verbs.
 */

static const struct si_device *device_of(const struct ibv_device *device)
{
	return &si_devices[((const struct si_verbs *)(const void *)device)->device];
}

static struct ibv_context *open_device(struct ibv_device *device)
{
	/* As open() of a device node is. */
	pthread_testcancel();
	if (device_of(device)->broken) {
		errno = EIO;
		return NULL;
	}
	return fake_verbs_table.open_device(device);
}

static int query_port(struct ibv_context *context, uint8_t port, struct ibv_port_attr *attr)
{
	const struct si_device *device = device_of(context->device);

	if (port < 1 || port > 2 || !device->port[port - 1].ip)
		return EINVAL;
	attr->link_layer = device->host.link_layer[port - 1];
	attr->lid = device->port[port - 1].lid;
	attr->state = IBV_PORT_ACTIVE;
	return 0;
}

static struct ibv_qp *make_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
	struct ibv_qp *qp = fake_verbs_table.create_qp(pd, attr);

	if (qp)
		qp->qp_num = ++stand_in_last_qpn;
	return qp;
}

static int modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask)
{
	if (attr->qp_state == IBV_QPS_RTR)
		stand_in_rtr = *attr;
	if (attr->qp_state == IBV_QPS_RTS)
		stand_in_rts = *attr;
	return fake_verbs_table.modify_qp(qp, attr, mask);
}

void si_device_renew(struct si_device *device)
{
	struct si_verbs *one = calloc(1, sizeof(*one));

	if (!one)
		abort();
	one->device = (size_t)(device - si_devices);
	one->next = all_verbs;
	all_verbs = one;
	one->vdev.verbs = &verbs;
	one->vdev.node_guid = device->host.node_guid;
	one->vdev.device.node_type = device->host.node_type;
	one->vdev.device.transport_type = device->host.transport_type;
	snprintf(one->vdev.device.name, sizeof(one->vdev.device.name), "%.16s", device->host.name);
	device->host.verbs = &one->vdev;
}

void si_devices_reset(void)
{
	if (!verbs.size) {
		verbs = fake_verbs_table;
		verbs.open_device = open_device;
		verbs.query_port = query_port;
		verbs.create_qp = make_qp;
		verbs.modify_qp = modify_qp;
	}
	for (size_t i = 0; i < SI_DEVICES; i++) {
		struct si_device *device = &si_devices[i];
		struct kernel_host_device old = device->host;

		*device = fresh[i];
		device->host.node_guid = htobe64(UINT64_C(0x0002c90300000000) + i + 1);
		device->host.verbs = old.verbs;
		device->host.index = old.verbs ? old.index : device->host.index;
		if (!old.verbs)
			si_device_renew(device);
		device->present = !fresh[i].spare;
	}
	stand_in_last_qpn = 0x100;
	memset(&stand_in_rtr, 0, sizeof(stand_in_rtr));
	memset(&stand_in_rts, 0, sizeof(stand_in_rts));
}

void stand_in_break(const char *name, bool broken)
{
	for (size_t i = 0; i < SI_DEVICES; i++)
		if (!strcmp(si_devices[i].host.name, name))
			si_devices[i].broken = broken;
}

void stand_in_set_indices(bool known)
{
	for (size_t i = 0; i < SI_DEVICES; i++)
		si_devices[i].host.index = known ? fresh[i].host.index : -1;
}

/* ------------------------------------------------------------------------
 * Addresses.
 */

void si_port_gid(const struct si_device *device, uint8_t port, union ibv_gid *ret_gid)
{
	const uint64_t guid = be64toh(device->host.node_guid);
	const uint32_t ip = htonl(device->port[port - 1].ip);

	memset(ret_gid, 0, sizeof(*ret_gid));
	switch (device->port[port - 1].kind) {
	case STAND_IN_IB:
		ret_gid->global.subnet_prefix = htobe64(UINT64_C(0xfe80000000000000));
		ret_gid->global.interface_id = htobe64(guid + (uint64_t)port * 0x10000);
		break;
	case STAND_IN_ROCE:
		ret_gid->raw[10] = ret_gid->raw[11] = 0xff;
		memcpy(ret_gid->raw + 12, &ip, sizeof(ip));
		break;
	case STAND_IN_IWARP:
		ret_gid->raw[0] = 0x02;
		memcpy(ret_gid->raw + 2, &ip, sizeof(ip));
		break;
	}
}

static bool is_port(const struct si_device *device, uint8_t port,
		    const struct sockaddr_storage *addr)
{
	const struct sockaddr_ib *ib = (const struct sockaddr_ib *)(const void *)addr;
	union ibv_gid gid;
	uint32_t ip;

	if (!device->port[port - 1].ip)
		return false;
	if (addr->ss_family == AF_IB) {
		si_port_gid(device, port, &gid);
		return device->port[port - 1].kind == STAND_IN_IB &&
		       !memcmp(&gid, &ib->sib_addr, sizeof(gid));
	}
	return si_addr_ip(addr, &ip) && device->port[port - 1].ip == ip;
}

static bool find_port(const struct sockaddr_storage *addr, bool absent,
		      struct si_device **ret_device, uint8_t *ret_port)
{
	for (size_t i = 0; i < SI_DEVICES; i++)
		for (uint8_t port = 1; port <= 2; port++)
			if ((si_devices[i].present || absent) &&
			    is_port(&si_devices[i], port, addr)) {
				*ret_device = &si_devices[i];
				*ret_port = port;
				return true;
			}
	return false;
}

bool si_find_port(const struct sockaddr_storage *addr, struct si_device **ret_device,
		  uint8_t *ret_port)
{
	return find_port(addr, false, ret_device, ret_port);
}

bool si_is_host(const struct sockaddr_storage *addr)
{
	struct si_device *device;
	uint8_t port;
	uint32_t ip;

	if (si_addr_ip(addr, &ip) && ip == IP(40, 0, 0, 1))
		return true;
	return find_port(addr, true, &device, &port);
}
