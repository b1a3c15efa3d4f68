/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * info_devices.c - the devices that can carry connections, as libibverbs calls
 * show them to a program.
 */
#include "config.h"

#include <arpa/inet.h>
#include <endian.h>
#include <inttypes.h>
#include <net/if.h>
#include <stdlib.h>
#include <string.h>

#include <infiniband/verbs.h>

#include "polycm.h"
#include "polycm/polycm.h"

/* A device, copied: in a walk's callback the library must not be called again. */
struct device {
	struct device *next;
	char *name, *provider, *transport;
	uint64_t guid;
	int error;		/* why nothing can connect on it, or 0 */
};

struct devices {
	struct device *first, **last;
	const char *provider;	/* whose; NULL: everybody's */
};

static int keep_device(void *arg, const struct polycm_device_view *view)
{
	struct devices *devices = arg;
	struct device *device;

	if (devices->provider && strcmp(devices->provider, view->provider))
		return 0;
	device = calloc(1, sizeof(*device));
	if (!device)
		return -1;
	device->name = tool_strdup(view->name);
	device->provider = tool_strdup(view->provider);
	device->transport = tool_strdup(view->transport);
	device->guid = be64toh(view->node_guid);
	device->error = view->error;
	*devices->last = device;
	devices->last = &device->next;
	return 0;
}

/* 1024 of IBV_MTU_1024. */
static unsigned int mtu_bytes(enum ibv_mtu mtu)
{
	return mtu >= IBV_MTU_256 && mtu <= IBV_MTU_4096 ? 128u << mtu : 0;
}

static const char *gid_type(const struct ibv_gid_entry *gid)
{
	switch (gid->gid_type) {
	case IBV_GID_TYPE_IB:
		return "InfiniBand";
	case IBV_GID_TYPE_ROCE_V1:
		return "RoCE v1";
	case IBV_GID_TYPE_ROCE_V2:
		return "RoCE v2";
	default:
		return "-";
	}
}

/* An IPv4 address that a GID stands for is shown as such. */
static void print_gid(struct table *table, const struct ibv_gid_entry *gid, bool has_type)
{
	char address[INET6_ADDRSTRLEN], interface[IF_NAMESIZE] = "";
	static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };
	char *index = tool_printf("GID %u", gid->gid_index);

	if (!memcmp(gid->gid.raw, mapped, sizeof(mapped)))
		inet_ntop(AF_INET, gid->gid.raw + 12, address, sizeof(address));
	else
		inet_ntop(AF_INET6, gid->gid.raw, address, sizeof(address));
	if (gid->ndev_ifindex)
		if_indextoname(gid->ndev_ifindex, interface);
	TABLE_ROW(table, index, address, has_type ? gid_type(gid) : "", interface);
	free(index);
}

static void print_gids(struct ibv_context *verbs, uint8_t port, int num, bool has_type)
{
	struct table table = { 0 };
	struct ibv_gid_entry gid;

	for (int i = 0; i < num; i++)
		if (!ibv_query_gid_ex(verbs, port, (uint32_t)i, &gid, 0))
			print_gid(&table, &gid, has_type);
	table_print(&table, 6);
}

static const char *link_layer(const struct ibv_port_attr *port)
{
	return port->link_layer == IBV_LINK_LAYER_ETHERNET ? "Ethernet" : "InfiniBand";
}

static int print_port(struct ibv_context *verbs, uint8_t num)
{
	bool iwarp = verbs->device->transport_type == IBV_TRANSPORT_IWARP;
	struct ibv_port_attr port;

	if (ibv_query_port(verbs, num, &port)) {
		tool_error("info: %s port %u: %m", ibv_get_device_name(verbs->device), num);
		return EXIT_FAILURE;
	}
	printf("    port %u  %s, %s, MTU %u of %u", num, ibv_port_state_str(port.state),
	       link_layer(&port), mtu_bytes(port.active_mtu), mtu_bytes(port.max_mtu));
	if (port.lid)
		printf(", LID %u", port.lid);
	putchar('\n');
	print_gids(verbs, num, port.gid_tbl_len, !iwarp);
	return 0;
}

static int print_ports(struct ibv_device *device)
{
	struct ibv_context *verbs = ibv_open_device(device);
	struct ibv_device_attr attr;
	int status = 0;

	if (!verbs) {
		tool_error("info: cannot open %s: %m", ibv_get_device_name(device));
		return EXIT_FAILURE;
	}
	if (ibv_query_device(verbs, &attr)) {
		tool_error("info: cannot query %s: %m", ibv_get_device_name(device));
		status = EXIT_FAILURE;
	} else {
		printf("    responder resources up to %d, initiator depth up to %d\n",
		       attr.max_qp_rd_atom, attr.max_qp_init_rd_atom);
		for (uint8_t port = 1; port <= attr.phys_port_cnt && !status; port++)
			status = print_port(verbs, port);
	}
	ibv_close_device(verbs);
	return status;
}

/* What the line above them has is left out. */
static int add_fact(void *arg, const char *name, const char *value)
{
	if (strcmp(name, "provider") != 0 && strcmp(name, "transport") != 0)
		TABLE_ROW(arg, name, value);
	return 0;
}

/* What the device's limits come from. */
static int add_origin(void *arg, const char *name, const char *value)
{
	if (!strcmp(name, "looks like") || !strcmp(name, "not given there"))
		TABLE_ROW(arg, name, value);
	return 0;
}

static int print_facts(const char *name,
		       int (*add)(void *arg, const char *name, const char *value))
{
	struct table table = { 0 };
	int status = 0;

	if (polycm_device_walk(name, add, &table) < 0) {
		tool_error("info: cannot inspect %s: %m", name);
		status = EXIT_FAILURE;
	}
	table_print(&table, 4);
	return status;
}

static int print_device(const struct device *device, struct ibv_device **list)
{
	printf("  %s  provider %s, transport %s, node GUID %04x:%04x:%04x:%04x\n",
	       device->name, device->provider, device->transport,
	       (unsigned int)(device->guid >> 48), (unsigned int)(device->guid >> 32) & 0xffff,
	       (unsigned int)(device->guid >> 16) & 0xffff, (unsigned int)device->guid & 0xffff);
	if (device->error)
		printf("    nothing can connect: %s\n", strerror(-device->error));
	for (; *list; list++)
		if (!strcmp(ibv_get_device_name(*list), device->name))
			return print_ports(*list);
	puts("    libibverbs does not show it");
	return 0;
}

int info_devices(const char *provider)
{
	struct devices devices = { .last = &devices.first, .provider = provider };
	struct ibv_device **list;
	struct device *device;
	int status = 0;

	if (polycm_devices_walk(keep_device, &devices) < 0) {
		tool_error("info: cannot list the devices: %m");
		return EXIT_FAILURE;
	}
	if (!devices.first) {
		puts("  none");
		return 0;
	}
	list = ibv_get_device_list(NULL);
	if (!list) {
		tool_error("info: cannot list the devices: %m");
		return EXIT_FAILURE;
	}
	for (device = devices.first; device && !status; device = device->next) {
		status = print_device(device, list);
		if (!status)
			status = print_facts(device->name, provider ? add_fact : add_origin);
	}
	ibv_free_device_list(list);
	return status;
}
