/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which way packets of a host go, and from which of its addresses: several of
 * an interface, routes that it was given, cables between its devices.
 */
#include "config.h"

#include <arpa/inet.h>
#include <errno.h>

#include "providers/soft/wire/address.h"
#include "providers/soft/fabric/build.h"
#include "sim_fake.h"
#include "tests/cmocka_all.h"

static struct sim_node *host;
static struct sim_device *devices[3];	/* a cable joins the first two */

static union sim_sockaddr address(const char *text)
{
	union sim_sockaddr addr;
	uint8_t prefix_len;

	assert_int_equal(sim_addr_parse(text, &addr, &prefix_len), 0);
	return addr;
}

static void make_host(void)
{
	static const struct {
		unsigned int device;
		const char *address;
	} addresses[] = {
		{ 0, "10.1.0.1/24" },	{ 0, "10.1.0.11/24" },	 { 0, "10.1.0.12/25" },
		{ 0, "fd00:1::11/64" }, { 0, "fd00:1::21/64" },	 { 0, "fd00:1:0:ff::1/48" },
		{ 0, "fe80::101/64" },
		{ 1, "10.1.0.2/24" },	{ 1, "fd00:1::2/64" },	 { 2, "10.2.0.1/24" },
		{ 2, "10.2.0.11/24" },	{ 2, "fd00:2::1/64" },
	};
	static const char *const routes[][2] = {
		{ "10.1.0.2/32", "10.1.0.1" }, { "10.1.0.1/32", "10.1.0.2" },
		{ "10.0.0.0/8", "10.1.0.1" },  { "10.2.0.0/16", "10.1.0.1" },
		{ "10.4.0.0/16", "10.1.0.2" },
	};
	const char *why;

	assert_int_equal(sim_node_add("host", &host), 0);
	for (unsigned int i = 0; i < ARRAY_SIZE(devices); i++) {
		char name[] = { 'd', (char)('0' + i), '\0' };

		assert_int_equal(sim_device_add(host, name, &sim_fake_roce, &devices[i]), 0);
	}
	for (size_t i = 0; i < ARRAY_SIZE(addresses); i++)
		assert_int_equal(sim_device_add_address(devices[addresses[i].device], NULL,
							addresses[i].address), 0);
	host->described = true;
	for (size_t i = 0; i < ARRAY_SIZE(routes); i++)
		assert_int_equal(sim_build_route(host, routes[i][0], routes[i][1], &why), 0);
}

static void a_source_is_chosen(void **state)
{
	static const struct {
		const char *to, *source;	/* NULL: no route */
	} ways[] = {
		/* Own: IPv4's secondary addresses have the primary one as source, IPv6's themselves. */
		{ "10.1.0.11", "10.1.0.1" },
		{ "10.1.0.12", "10.1.0.12" },	/* of another length: no secondary one */
		{ "10.2.0.11", "10.2.0.1" },
		{ "fd00:1::11", "fd00:1::11" },
		/* A route to the very address goes before that. */
		{ "10.1.0.1", "10.1.0.2" },
		{ "10.1.0.2", "10.1.0.1" },
		/* Neighbours. */
		{ "10.1.0.200", "10.1.0.1" },
		{ "10.1.0.99", "10.1.0.12" },
		{ "fd00:1::10", "fd00:1::21" },	/* the newest of two in the same network */
		{ "fd00:1:0:fe::1", "fd00:1::21" },	/* more bits in common than the network's own */
		{ "ff15::1", "fd00:1:0:ff::1" },
		/* The longest prefix, be it a network's or a route's. */
		{ "10.2.0.99", "10.2.0.1" },
		{ "10.2.1.1", "10.1.0.1" },
		{ "10.4.0.1", "10.1.0.2" },
		{ "10.5.0.1", "10.1.0.1" },
		{ "192.0.2.1", NULL },
	};

	(void)state;
	make_host();
	for (size_t i = 0; i < ARRAY_SIZE(ways); i++) {
		union sim_sockaddr to = address(ways[i].to), wanted;
		struct sim_address *source = NULL;
		int r = sim_node_route(host, &to.sa, &source);

		print_message("to %s\n", ways[i].to);
		assert_int_equal(r, ways[i].source ? 0 : -ENETUNREACH);
		if (r)
			continue;
		wanted = address(ways[i].source);
		assert_true(sim_addr_equal(&source->addr.sa, &wanted.sa));
	}
}

static void packets_stay_inside_or_leave(void **state)
{
	static const struct {
		const char *from, *to;
		bool kept;
	} ways[] = {
		{ "10.1.0.1", "10.1.0.1", true },      { "10.1.0.11", "10.1.0.1", true },
		{ "10.1.0.2", "10.1.0.1", false },     { "0.0.0.0", "10.1.0.1", false },
		{ "127.0.0.1", "10.1.0.1", false },    { "0.0.0.0", "10.2.0.1", true },
		{ "127.0.0.1", "10.2.0.1", true },     { "10.1.0.1", "10.2.0.1", false },
		{ "10.2.0.1", "10.1.0.1", false },     { "fd00:1::11", "fd00:2::1", true },
		{ "::", "fd00:2::1", true },	       { "10.1.0.1", "10.3.0.9", false },
	};

	(void)state;
	make_host();
	for (size_t i = 0; i < ARRAY_SIZE(ways); i++) {
		union sim_sockaddr from = address(ways[i].from), to = address(ways[i].to);

		print_message("from %s to %s\n", ways[i].from, ways[i].to);
		assert_int_equal(sim_node_keeps(host, &from.sa, &to.sa), ways[i].kept);
	}
}

static void devices_of_a_host_need_a_cable(void **state)
{
	struct sim_device *other;
	struct sim_node *node;

	(void)state;
	make_host();
	assert_int_equal(sim_node_add("other", &node), 0);
	assert_int_equal(sim_device_add(node, "o", &sim_fake_roce, &other), 0);
	for (unsigned int i = 0; i < ARRAY_SIZE(devices); i++) {
		for (unsigned int j = 0; j < ARRAY_SIZE(devices); j++)
			assert_int_equal(sim_port_reaches(devices[i]->ports, devices[j]->ports),
					 i == j || i + j == 1);
		assert_true(sim_port_reaches(devices[i]->ports, other->ports));
		assert_true(sim_port_reaches(other->ports, devices[i]->ports));
	}
	/* A cable has two ends, whatever routes lead over it. */
	host->num_routes = 1;
	assert_true(sim_port_reaches(devices[1]->ports, devices[0]->ports));
	host->described = false;	/* a node, about which no such thing was said */
	assert_true(sim_port_reaches(devices[0]->ports, devices[2]->ports));
}

static void each_port_has_neighbours_of_its_own(void **state)
{
	static const char *const texts[] = { "10.9.0.1", "10.9.0.2", "fd00:9::1" };
	struct sim_port *one, *two;

	(void)state;
	make_host();
	one = devices[0]->ports;
	two = devices[2]->ports;
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		union sim_sockaddr addr = address(texts[i]);

		assert_false(sim_port_knows(one, &addr.sa));
		sim_port_learn(one, &addr.sa);
		assert_true(sim_port_knows(one, &addr.sa));
		assert_true(sim_port_knows(one, &addr.sa));
		assert_false(sim_port_knows(two, &addr.sa));
	}
	sim_node_unlearn_all(host);
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		union sim_sockaddr addr = address(texts[i]);

		assert_false(sim_port_knows(one, &addr.sa));
	}
}

int main(void)
{
#define PRIVATE(test) cmocka_unit_test_setup_teardown(test, sim_fake_open, sim_fake_close)
	const struct CMUnitTest tests[] = {
		PRIVATE(a_source_is_chosen),
		PRIVATE(packets_stay_inside_or_leave),
		PRIVATE(devices_of_a_host_need_a_cable),
		PRIVATE(each_port_has_neighbours_of_its_own),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
