/* SPDX-License-Identifier: BSD-2-Clause */
/* Nodes, devices, addresses and GID tables; who is found under an address; the default fabric. */
#include "config.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "providers/sim/fabric_open.h"
#include "providers/soft/host/host.h"
#include "providers/soft/wire/address.h"
#include "providers/soft/fabric/build.h"
#include "providers/soft/fabric/fabric.h"
#include "providers/soft/link/link.h"
#include "sim_fake.h"
#include "tests/cmocka_all.h"

static struct sim_device *make_node(const char *name, const char *device_name,
				    const struct polycm_transport *rules, const char *address)
{
	struct sim_device *device;
	struct sim_node *node;

	assert_int_equal(sim_node_add(name, &node), 0);
	assert_int_equal(sim_device_add(node, device_name, rules, &device), 0);
	if (address)
		assert_int_equal(sim_device_add_address(device, NULL, address), 0);
	return device;
}

static union sim_sockaddr address(const char *text)
{
	union sim_sockaddr addr;
	uint8_t prefix_len;

	assert_int_equal(sim_addr_parse(text, &addr, &prefix_len), 0);
	return addr;
}

/* "" for none. */
static const char *text_of(const struct sim_address *addr)
{
	static char text[INET6_ADDRSTRLEN];

	if (!addr)
		return "";
	if (addr->addr.sa.sa_family == AF_INET)
		inet_ntop(AF_INET, &addr->addr.in.sin_addr, text, sizeof(text));
	else
		inet_ntop(AF_INET6, &addr->addr.in6.sin6_addr, text, sizeof(text));
	return text;
}

static const char *gid_text(const union ibv_gid *gid)
{
	static char text[INET6_ADDRSTRLEN];

	inet_ntop(AF_INET6, gid->raw, text, sizeof(text));
	return text;
}

/* ------------------------------------------------------------------------
 * Devices and GID tables.
 */

static void check_gids(const struct sim_port *port, const char *const *gids, const uint32_t *types,
		       unsigned int num)
{
	assert_int_equal(port->num_gids, num);
	for (unsigned int i = 0; i < num; i++) {
		assert_string_equal(gid_text(&port->gids[i].gid), gids[i]);
		assert_int_equal(port->gids[i].type, types[i]);
	}
}

static void roce_has_two_gids_of_its_mac_and_of_each_address(void **state)
{
	static const uint32_t types[] = {
		IBV_GID_TYPE_ROCE_V1, IBV_GID_TYPE_ROCE_V2, IBV_GID_TYPE_ROCE_V1,
		IBV_GID_TYPE_ROCE_V2, IBV_GID_TYPE_ROCE_V1, IBV_GID_TYPE_ROCE_V2,
	};
	struct sim_device *device = make_node("a", "sim0", &sim_fake_roce, "10.0.0.1/24");
	struct sim_port *port = &device->ports[0];
	const uint8_t *mac = port->mac;
	char link_local[INET6_ADDRSTRLEN];
	const char *gids[] = {
		link_local, link_local, "::ffff:10.0.0.1", "::ffff:10.0.0.1", "fd00::1", "fd00::1",
	};
	struct in6_addr expected = { .s6_addr = {
		0xfe, 0x80, 0, 0, 0, 0, 0, 0,
		mac[0] ^ 2, mac[1], mac[2], 0xff, 0xfe, mac[3], mac[4], mac[5],
	} };

	(void)state;
	inet_ntop(AF_INET6, &expected, link_local, sizeof(link_local));
	assert_int_equal(mac[0], 0x02);
	assert_int_equal(sim_device_add_address(device, "eth7", "fd00::1/64"), 0);
	check_gids(port, gids, types, 6);
	assert_memory_equal(&device->vdev.node_guid, port->gids[0].gid.raw + 8, 8);
	for (unsigned int i = 0; i < 6; i++)
		assert_int_equal(port->gids[i].ifindex, 2);
	assert_int_equal(port->lid, 0);
	assert_int_equal(port->netdev_mtu, 1500);
	assert_int_equal(port->state, IBV_PORT_ACTIVE);

	/* An address that is the MAC's link-local one has its entries already. */
	assert_int_equal(sim_device_add_address(device, NULL, link_local), 0);
	check_gids(port, gids, types, 6);
}

static void infiniband_has_the_gid_of_its_port(void **state)
{
	struct sim_device *a = make_node("a", "sim0", &sim_fake_ib, "10.0.0.1/24");
	struct sim_device *b = make_node("b", "sim1", &sim_fake_ib, "10.0.0.2/24");
	static const uint8_t prefix[] = { 0xfe, 0x80, 0, 0, 0, 0, 0, 0 };

	(void)state;
	assert_int_equal(a->ports[0].num_gids, 1);
	assert_int_equal(a->ports[0].gids[0].type, IBV_GID_TYPE_IB);
	assert_memory_equal(a->ports[0].gids[0].gid.raw, prefix, 8);
	assert_memory_equal(a->ports[0].gids[0].gid.raw + 8, &a->vdev.node_guid, 8);
	assert_memory_not_equal(&a->vdev.node_guid, &b->vdev.node_guid, 8);
	assert_int_equal(a->ports[0].lid, 1);
	assert_int_equal(b->ports[0].lid, 2);
	assert_int_equal(a->ports[0].fabric_index, 0);
	assert_int_equal(b->ports[0].fabric_index, 1);
	assert_int_equal(a->ports[0].netdev_mtu, 4092);
}

static void iwarp_has_the_gid_of_its_mac(void **state)
{
	struct sim_device *device = make_node("a", "sim0", &sim_fake_iwarp, "10.0.0.1/24");
	static const uint8_t zero[10];

	(void)state;
	assert_int_equal(device->ports[0].num_gids, 1);
	assert_int_equal(device->ports[0].gids[0].type, IBV_GID_TYPE_IB);
	assert_memory_equal(device->ports[0].gids[0].gid.raw, device->ports[0].mac, 6);
	assert_memory_equal(device->ports[0].gids[0].gid.raw + 6, zero, 10);
	assert_int_equal(device->vdev.device.transport_type, IBV_TRANSPORT_IWARP);
	assert_int_equal(device->vdev.device.node_type, IBV_NODE_RNIC);
}

static void numbers_of_a_device_follow_from_its_name(void **state)
{
	static const struct {
		const char *node, *device;
	} names[] = {
		{ "a", "sim0" }, { "b", "sim1" }, { "c", "sim2" },
	};
	__be64 guids[3][2];

	(void)state;
	for (unsigned int round = 0; round < 2; round++) {
		for (unsigned int i = 0; i < 3; i++)
			guids[i][round] = make_node(names[i].node, names[i].device, &sim_fake_ib,
						    NULL)->vdev.node_guid;
		sim_fabric_close();
		assert_int_equal(sim_fabric_begin(), 0);
	}
	for (unsigned int i = 0; i < 3; i++) {
		assert_true(guids[i][0] == guids[i][1]);
		assert_true(guids[i][0] != guids[(i + 1) % 3][0]);
	}
}

static void a_full_gid_table_takes_no_more_addresses(void **state)
{
	struct sim_device *device = make_node("a", "sim0", &sim_fake_roce, NULL);
	union sim_sockaddr addr = address("10.0.0.200");
	char text[32];

	(void)state;
	for (unsigned int i = 0; i < (SIM_MAX_GIDS - 2) / 2; i++) {
		snprintf(text, sizeof(text), "10.0.0.%u/24", i + 1);
		assert_int_equal(sim_device_add_address(device, NULL, text), 0);
	}
	assert_int_equal(device->ports[0].num_gids, SIM_MAX_GIDS);
	assert_int_equal(sim_device_add_address(device, NULL, "10.0.0.200/24"), -ENOSPC);
	assert_int_equal(device->node->num_addresses, (SIM_MAX_GIDS - 2) / 2);
	assert_null(sim_port_of_address(&addr.sa));
}

static void what_cannot_be_added_is_refused(void **state)
{
	struct sim_device *a = make_node("a", "sim0", &sim_fake_roce, "10.0.0.1/24"), *device;
	struct sim_node *node;

	(void)state;
	assert_int_equal(sim_node_add("", &node), -EINVAL);
	assert_int_equal(sim_node_add("a", &node), -EEXIST);
	assert_int_equal(sim_node_add("a-name-that-is-too-long-for-a-node", &node), -EINVAL);
	assert_int_equal(sim_node_add("b", &node), 0);
	assert_int_equal(sim_device_add(node, "", &sim_fake_roce, &device), -EINVAL);
	assert_int_equal(sim_device_add(node, "sim0", &sim_fake_roce, &device), -EEXIST);
	assert_int_equal(sim_device_add(node, "sim1", &sim_fake_roce, &device), 0);
	assert_int_equal(sim_device_add_address(device, NULL, "10.0.0.1/24"), -EEXIST);
	assert_int_equal(sim_device_add_address(a, NULL, "10.0.0.1/24"), -EEXIST);
	assert_int_equal(sim_device_add_address(a, NULL, "nonsense"), -EINVAL);
	assert_int_equal(sim_device_add_address(a, NULL, "0.0.0.0/0"), -EINVAL);
	assert_int_equal(sim_device_add_address(a, "an-interface-name", "10.0.0.9"), -EINVAL);
	assert_int_equal(node->num_addresses, 0);
}

static void devices_are_announced_once_and_removed(void **state)
{
	struct sim_device *a = make_node("a", "sim0", &sim_fake_roce, "10.0.0.1/24");
	struct sim_device *b = make_node("b", "sim1", &sim_fake_iwarp, "10.0.0.2/24");

	(void)state;
	assert_int_equal(sim_fabric_announce(), 0);
	assert_int_equal(sim_fabric_announce(), 0);
	assert_int_equal(sim_fake_added, 2);
	assert_string_equal(sim_fake_devices[0].name, "sim0");
	assert_string_equal(sim_fake_devices[0].transport, "roce");
	assert_ptr_equal(sim_fake_devices[0].cookie, a);
	assert_ptr_equal(sim_fake_devices[0].verbs, &a->vdev);
	assert_true(sim_fake_devices[0].node_guid == a->vdev.node_guid);
	assert_string_equal(sim_fake_devices[1].transport, "iwarp");
	assert_ptr_equal(a->core, &sim_fake_devices[0]);
	assert_ptr_equal(b->core, &sim_fake_devices[1]);
	make_node("c", "sim2", &sim_fake_ib, NULL);
	assert_int_equal(sim_fabric_announce(), 0);
	assert_int_equal(sim_fake_added, 3);
	sim_fabric_close();
	assert_int_equal(sim_fake_removed, 3);
	assert_null(sim_first_node());
}

/* ------------------------------------------------------------------------
 * Finding.
 */

static const struct {
	const char *addr;
	const char *node;		/* that has it; NULL: none */
} owners[] = {
	{ "10.0.0.1", "a" },
	{ "10.0.1.1", "a" },
	{ "fd00::a", "a" },
	{ "10.0.0.2", "b" },
	{ "fd00::b", "b" },
	{ "10.0.0.3", NULL },
	{ "0.0.0.0", NULL },
	{ "::", NULL },
	{ "127.0.0.1", "a" },		/* the current node's own */
	{ "::1", NULL },
};

static const struct {
	const char *node, *dst;
	const char *src;		/* NULL: unreachable */
} routes[] = {
	{ "a", "10.0.0.2", "10.0.0.1" },
	{ "a", "10.0.1.77", "10.0.1.1" },
	{ "a", "192.0.2.9", "10.0.0.1" },	/* as by a default route */
	{ "a", "10.0.1.1", "10.0.1.1" },	/* itself */
	{ "a", "127.0.0.1", "127.0.0.1" },
	{ "a", "127.0.0.9", "127.0.0.1" },
	{ "a", "0.0.0.0", "10.0.0.1" },
	{ "a", "fd00::b", "fd00::a" },
	{ "a", "2001:db8::1", "fd00::a" },	/* not from the link-local address */
	{ "a", "fe80::77", "fe80::a" },
	{ "b", "10.0.0.1", "10.0.0.2" },
	{ "b", "127.0.0.1", "10.0.0.2" },	/* it has no other to offer */
	{ "b", "fe80::77", NULL },
	{ "c", "10.0.0.1", NULL },
	{ "c", "fd00::a", NULL },
	{ "lo", "127.0.0.1", "127.0.0.1" },
	{ "lo", "10.0.0.1", NULL },		/* loopback leads nowhere else */
};

static struct sim_node *node_named(const char *name)
{
	struct sim_node *node = sim_first_node();

	while (node && strcmp(node->name, name) != 0)
		node = node->next;
	assert_non_null(node);
	return node;
}

static void make_network(void)
{
	struct sim_device *a = make_node("a", "sim0", &sim_fake_roce, "127.0.0.1/8");
	struct sim_device *b = make_node("b", "sim1", &sim_fake_roce, "10.0.0.2/24");
	struct sim_device *lo;

	assert_int_equal(sim_device_add_address(a, NULL, "fe80::a/64"), 0);
	assert_int_equal(sim_device_add_address(a, NULL, "10.0.0.1/24"), 0);
	assert_int_equal(sim_device_add_address(a, NULL, "10.0.1.1/24"), 0);
	assert_int_equal(sim_device_add_address(a, NULL, "fd00::a/64"), 0);
	assert_int_equal(sim_device_add_address(b, NULL, "fd00::b/64"), 0);
	make_node("c", "sim2", &sim_fake_roce, NULL);
	lo = make_node("lo", "sim3", &sim_fake_roce, NULL);
	/* Its loopback is not a's. */
	assert_int_equal(sim_device_add_address(lo, "lo", "127.0.0.1/8"), 0);
	assert_int_equal(sim_device_add_address(lo, "lo", "127.0.0.1/8"), -EEXIST);
}

static void addresses_lead_to_their_nodes(void **state)
{
	union sim_sockaddr loopback = address("127.0.0.1");

	(void)state;
	make_network();
	assert_ptr_equal(sim_current_node(), node_named("a"));
	for (size_t i = 0; i < ARRAY_SIZE(owners); i++) {
		union sim_sockaddr addr = address(owners[i].addr);
		struct sim_node *node = sim_node_of_address(&addr.sa);

		print_message("case %zu: %s\n", i, owners[i].addr);
		sim_addr_set_port(&addr, 4791);
		if (owners[i].node) {
			assert_non_null(node);
			assert_string_equal(node->name, owners[i].node);
			assert_ptr_equal(sim_port_of_address(&addr.sa), &node->devices->ports[0]);
			assert_string_equal(text_of(sim_node_address(node, &addr.sa)),
					    owners[i].addr);
		} else {
			assert_null(node);
			assert_null(sim_port_of_address(&addr.sa));
		}
	}
	sim_set_current_node(node_named("lo"));
	assert_ptr_equal(sim_node_of_address(&loopback.sa), node_named("lo"));
	sim_set_current_node(node_named("b"));
	assert_null(sim_node_of_address(&loopback.sa));
	assert_ptr_equal(sim_current_node(), node_named("b"));
}

static void routes_choose_the_source(void **state)
{
	(void)state;
	make_network();
	for (size_t i = 0; i < ARRAY_SIZE(routes); i++) {
		union sim_sockaddr dst = address(routes[i].dst);
		struct sim_address *src = NULL;
		int r = sim_node_route(node_named(routes[i].node), &dst.sa, &src);

		print_message("case %zu: %s to %s\n", i, routes[i].node, routes[i].dst);
		assert_int_equal(r, routes[i].src ? 0 : -ENETUNREACH);
		assert_string_equal(text_of(src), routes[i].src ? routes[i].src : "");
	}
}

static void link_local_routes_keep_to_their_interface(void **state)
{
	union sim_sockaddr dst = address("fe80::77");
	struct sim_address *src;

	(void)state;
	make_network();
	dst.in6.sin6_scope_id = 2;
	assert_int_equal(sim_node_route(node_named("a"), &dst.sa, &src), 0);
	assert_string_equal(text_of(src), "fe80::a");
	dst.in6.sin6_scope_id = 3;
	assert_int_equal(sim_node_route(node_named("a"), &dst.sa, &src), -ENETUNREACH);
}

static void gids_lead_to_their_ports(void **state)
{
	struct sim_device *roce = make_node("a", "sim0", &sim_fake_roce, "10.0.0.1/24");
	struct sim_device *ib = make_node("b", "sim1", &sim_fake_ib, "10.0.0.2/24");
	union sim_sockaddr addr = address("10.0.0.1");
	union ibv_gid gid;

	(void)state;
	assert_int_equal(sim_port_gid_of_address(&roce->ports[0], &addr.sa, &gid), 3);
	assert_string_equal(gid_text(&gid), "::ffff:10.0.0.1");
	assert_int_equal(roce->ports[0].gids[3].type, IBV_GID_TYPE_ROCE_V2);
	assert_ptr_equal(sim_port_of_gid(&gid), &roce->ports[0]);
	addr = address("10.0.0.2");
	assert_int_equal(sim_port_gid_of_address(&roce->ports[0], &addr.sa, &gid), -EADDRNOTAVAIL);
	assert_int_equal(sim_port_gid_of_address(&ib->ports[0], &addr.sa, &gid), 0);
	assert_memory_equal(gid.raw, ib->ports[0].gids[0].gid.raw, 16);
	assert_ptr_equal(sim_port_of_gid(&gid), &ib->ports[0]);
	gid.raw[15] ^= 1;
	assert_null(sim_port_of_gid(&gid));
	assert_ptr_equal(sim_port_by_index(0), &roce->ports[0]);
	assert_ptr_equal(sim_port_by_index(1), &ib->ports[0]);
	assert_null(sim_port_by_index(2));
	assert_int_equal(sim_self_slot(), 0);
}

static void qp_numbers_come_in_blocks(void **state)
{
	uint32_t first, next;

	(void)state;
	assert_int_equal(sim_qpn_block(&first), 0);
	assert_int_equal(sim_qpn_block(&next), 0);
	assert_int_equal(first, 256);
	assert_int_equal(next, 512);
	assert_int_equal(sim_slot_of_qpn(0), SIM_MAX_SLOTS);
	assert_int_equal(sim_slot_of_qpn(255), SIM_MAX_SLOTS);
	assert_int_equal(sim_slot_of_qpn(256), 0);
	assert_int_equal(sim_slot_of_qpn(767), 0);
	assert_int_equal(sim_slot_of_qpn(768), SIM_MAX_SLOTS);
	assert_int_equal(sim_slot_of_qpn(UINT32_MAX), SIM_MAX_SLOTS);
	for (unsigned int i = 3; i < 65536; i++)
		assert_int_equal(sim_qpn_block(&next), 0);
	assert_int_equal(next, 0xffff00);
	assert_int_equal(sim_qpn_block(&next), -ENOMEM);
	assert_int_equal(sim_conn_id(5), 5);
	assert_int_equal(sim_slot_of_conn(3u << 22 | 5), 3);
}

/* ------------------------------------------------------------------------
 * Packets inside the process.
 */

static struct {
	enum sim_packet_type type;
	uint64_t at;
	uint8_t first;
	size_t len;
} seen[8];
static unsigned int num_seen;

static void see(const struct sim_packet *packet)
{
	seen[num_seen].type = packet->type;
	seen[num_seen].at = sim_now();
	seen[num_seen].first = packet->len ? packet->data[0] : 0;
	seen[num_seen++].len = packet->len;
	assert_int_equal(packet->from_slot, 0);
}

static int send_text(struct sim_port *from, struct sim_port *to, enum sim_packet_type type,
		const char *text, size_t len)
{
	struct iovec parts[2] = {
		{ .iov_base = (void *)(uintptr_t)(text + 1), .iov_len = 0 },
		{ .iov_base = (void *)(uintptr_t)(text + 1), .iov_len = len ? len - 1 : 0 },
	};

	return sim_link_send(from, to, 0, type, text, len ? 1 : 0, parts, 2, len ? len - 1 : 0);
}

static void packets_arrive_after_the_latency_in_order(void **state)
{
	static char big[SIM_LINK_MAX_PACKET + 1] = "B";
	struct sim_port *a = &make_node("a", "sim0", &sim_fake_roce, NULL)->ports[0];
	struct sim_port *b = &make_node("b", "sim1", &sim_fake_roce, NULL)->ports[0];
	struct iovec shorter = { .iov_base = big, .iov_len = 3 };

	(void)state;
	num_seen = 0;
	sim_link_set_handler(SIM_PACKET_MAD, see);
	sim_link_set_handler(SIM_PACKET_RC, see);
	sim_link_set_handler(SIM_PACKET_UD, NULL);
	assert_int_equal(send_text(a, b, SIM_PACKET_MAD, "first", 5), 0);
	assert_int_equal(send_text(a, b, SIM_PACKET_RC, "second", 6), 0);
	assert_int_equal(send_text(a, b, SIM_PACKET_UD, "nobody's", 8), 0);
	assert_int_equal(send_text(b, b, SIM_PACKET_RC, "", 0), 0);
	assert_int_equal(send_text(a, b, SIM_PACKET_RC, big, SIM_LINK_MAX_PACKET), 0);
	assert_int_equal(send_text(a, b, SIM_PACKET_RC, big, SIM_LINK_MAX_PACKET + 1), -EMSGSIZE);
	assert_int_equal(sim_link_send(a, b, 0, SIM_PACKET_RC, NULL, 0, &shorter, 1, 4), -EINVAL);
	assert_int_equal(num_seen, 0);
	sim_unlock();
	assert_int_equal(sim_advance(999), 0);
	assert_int_equal(num_seen, 0);
	assert_int_equal(sim_advance(1), 0);
	sim_lock();
	assert_int_equal(num_seen, 4);
	assert_int_equal(seen[0].type, SIM_PACKET_MAD);
	assert_int_equal(seen[0].first, 'f');
	assert_int_equal(seen[0].len, 5);
	assert_int_equal(seen[1].first, 's');
	assert_int_equal(seen[2].len, 0);
	assert_int_equal(seen[3].len, SIM_LINK_MAX_PACKET);
	assert_int_equal(seen[3].at, 1000);

	/* What is under way when the fabric is closed is lost. */
	assert_int_equal(send_text(a, b, SIM_PACKET_RC, "late", 4), 0);
	sim_fabric_close();
	sim_unlock();
	assert_int_equal(sim_idle(NULL), -EDEADLK);
	sim_lock();
	assert_int_equal(num_seen, 4);
}

/* ------------------------------------------------------------------------
 * The default fabric.
 */

static int start_virtual(void **state)
{
	(void)state;
	sim_fake_init();
	assert_int_equal(sim_engine_start(SIM_CLOCK_VIRTUAL, 1), 0);
	sim_lock();
	return 0;
}

static void the_default_fabric_is_this_host(void **state)
{
	struct sim_device *device;
	struct sim_address *src;
	union sim_sockaddr loopback = address("127.0.0.1");
	union ibv_gid gid;

	(void)state;
	assert_int_equal(sim_fabric_open_default(), 0);
	assert_false(sim_fabric_is_shared());
	assert_string_equal(sim_first_node()->name, "host");
	assert_null(sim_first_node()->next);
	device = sim_first_node()->devices;
	assert_string_equal(device->vdev.device.name, "sim0");
	assert_string_equal(device->rules->name, "roce");
	assert_ptr_equal(sim_port_of_address(&loopback.sa), &device->ports[0]);
	assert_true(sim_port_gid_of_address(&device->ports[0], &loopback.sa, &gid) > 0);
	assert_string_equal(gid_text(&gid), "::ffff:127.0.0.1");
	assert_int_equal(sim_node_route(sim_first_node(), &loopback.sa, &src), 0);
	assert_string_equal(text_of(src), "127.0.0.1");
	assert_string_equal(src->ifname, "lo");
}

static void the_default_fabric_plays_the_transport_asked_for(void **state)
{
	(void)state;
	sim_fake_set("POLYCM_SIM_TRANSPORT", "iwarp");
	assert_int_equal(sim_fabric_open_default(), 0);
	assert_string_equal(sim_first_node()->devices->rules->name, "iwarp");
	assert_int_equal(sim_first_node()->devices->vdev.device.transport_type,
			 IBV_TRANSPORT_IWARP);
}

static void an_unknown_transport_is_named(void **state)
{
	(void)state;
	sim_fake_set("POLYCM_SIM_TRANSPORT", "acme");
	assert_int_equal(sim_fabric_open_default(), -ENODEV);
	assert_non_null(strstr(sim_fake_log(POLYCM_LOG_ERROR), "POLYCM_SIM_TRANSPORT=acme"));
}

static void a_protocol_that_is_unknown_here_is_not_played(void **state)
{
	struct sim_device *device;
	struct sim_node *node;
	const char *why;

	(void)state;
	assert_int_equal(sim_node_add("a", &node), 0);
	assert_int_equal(sim_build_device(node, "own", NULL, NULL, NULL, &device, &why), -EINVAL);
	assert_non_null(strstr(why, "its protocol"));
	sim_fake_set("POLYCM_SIM_TRANSPORT", "own");
	assert_int_equal(sim_fabric_open_default(), -ENODEV);
	assert_non_null(strstr(sim_fake_log(POLYCM_LOG_ERROR), "its protocol"));
}

int main(void)
{
#define PRIVATE(test) cmocka_unit_test_setup_teardown(test, sim_fake_open, sim_fake_close)
#define DEFAULT(test) cmocka_unit_test_setup_teardown(test, start_virtual, sim_fake_close)
	const struct CMUnitTest tests[] = {
		PRIVATE(roce_has_two_gids_of_its_mac_and_of_each_address),
		PRIVATE(infiniband_has_the_gid_of_its_port),
		PRIVATE(iwarp_has_the_gid_of_its_mac),
		PRIVATE(numbers_of_a_device_follow_from_its_name),
		PRIVATE(a_full_gid_table_takes_no_more_addresses),
		PRIVATE(what_cannot_be_added_is_refused),
		PRIVATE(devices_are_announced_once_and_removed),
		PRIVATE(addresses_lead_to_their_nodes),
		PRIVATE(routes_choose_the_source),
		PRIVATE(link_local_routes_keep_to_their_interface),
		PRIVATE(gids_lead_to_their_ports),
		PRIVATE(qp_numbers_come_in_blocks),
		PRIVATE(packets_arrive_after_the_latency_in_order),
		DEFAULT(the_default_fabric_is_this_host),
		DEFAULT(the_default_fabric_plays_the_transport_asked_for),
		DEFAULT(an_unknown_transport_is_named),
		DEFAULT(a_protocol_that_is_unknown_here_is_not_played),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
