/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Bound port numbers: who may share one, who listens, which are free.  Each
 * test runs on a private fabric and on the one that processes share.
 */
#include "config.h"

#include <errno.h>
#include <linux/capability.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "providers/sim/fabric_open.h"
#include "providers/soft/host/host.h"
#include "providers/soft/wire/address.h"
#include "providers/soft/fabric/fabric.h"
#include "providers/soft/link/link.h"
#include "providers/soft/fabric/ports_area.h"
#include "sim_fake.h"
#include "tests/cmocka_all.h"

#define REUSE SIM_BIND_REUSE
#define AFONLY SIM_BIND_AFONLY
#define NUM_IDS 40000

static struct sim_node *node;
static char id_memory[NUM_IDS];		/* ids are compared, not looked into */

static struct sim_id *id_number(unsigned int number)
{
	return (struct sim_id *)(void *)&id_memory[number];
}

static int open_private(void **state)
{
	(void)state;
	sim_fake_init();
	assert_int_equal(sim_engine_start(SIM_CLOCK_VIRTUAL, 7), 0);
	sim_lock();
	assert_int_equal(sim_fabric_begin(), 0);
	assert_int_equal(sim_node_add("a", &node), 0);
	return 0;
}

static int open_shared(void **state)
{
	(void)state;
	sim_fake_init();
	sim_fake_make_runtime_dir();
	assert_int_equal(sim_engine_start(SIM_CLOCK_REAL, 7), 0);
	sim_lock();
	assert_int_equal(sim_fabric_open_default(), 0);
	assert_true(sim_fabric_is_shared());
	node = sim_first_node();
	return 0;
}

static int close_all(void **state)
{
	bool shared = sim_fabric_is_shared();

	(void)state;
	sim_fabric_close();
	sim_unlock();
	sim_engine_stop();
	if (shared)
		sim_fake_remove_runtime_dir();
	return 0;
}

static union sim_sockaddr address(const char *text, uint16_t port)
{
	union sim_sockaddr addr;
	uint8_t prefix_len;

	assert_int_equal(sim_addr_parse(text, &addr, &prefix_len), 0);
	sim_addr_set_port(&addr, port);
	return addr;
}

static int bind_id(const char *text, uint16_t port, unsigned int flags, unsigned int id)
{
	union sim_sockaddr addr = address(text, port);
	int r = sim_bind_port(node, RDMA_PS_TCP, &addr, flags, id_number(id));

	if (!r)
		assert_int_equal(sim_addr_port(&addr.sa), port);
	return r;
}

static int listen_id(const char *text, uint16_t port, unsigned int id, bool listening)
{
	union sim_sockaddr addr = address(text, port);

	return sim_bind_listen(node, RDMA_PS_TCP, &addr, id_number(id),
			       listening ? SIM_LISTEN : 0);
}

static void unbind_id(const char *text, uint16_t port, unsigned int id)
{
	union sim_sockaddr addr = address(text, port);

	sim_unbind_port(node, RDMA_PS_TCP, &addr, id_number(id));
}

/* Who listens: "" nobody for that address, "-" no service at all, else the id's number. */
static const char *listener(const char *text, uint16_t port)
{
	union sim_sockaddr addr = address(text, port);
	unsigned int slot = SIM_MAX_SLOTS;
	static char number[16];
	struct sim_id *id;
	bool service;

	if (!sim_find_listener(node, RDMA_PS_TCP, &addr.sa, &slot, &id, &service)) {
		assert_null(id);
		return service ? "" : "-";
	}
	assert_true(service);
	assert_int_equal(slot, sim_self_slot());
	assert_non_null(id);
	snprintf(number, sizeof(number), "%td", (char *)id - id_memory);
	return number;
}

/* ------------------------------------------------------------------------
 * Conflicts.
 */

static const struct {
	const char *first;
	unsigned int first_flags;
	const char *second;
	unsigned int second_flags;
	int error;
} conflicts[] = {
	{ "10.0.0.1", 0, "10.0.0.1", 0, -EADDRINUSE },
	{ "10.0.0.1", 0, "10.0.0.2", 0, 0 },
	{ "10.0.0.1", 0, "fd00::1", 0, 0 },
	{ "fd00::1", 0, "fd00::1", 0, -EADDRINUSE },
	{ "fd00::1", 0, "fd00::2", 0, 0 },
	/* A wildcard or loopback address is in the way of every other. */
	{ "0.0.0.0", 0, "10.0.0.1", 0, -EADDRNOTAVAIL },
	{ "10.0.0.1", 0, "0.0.0.0", 0, -EADDRNOTAVAIL },
	{ "0.0.0.0", 0, "0.0.0.0", 0, -EADDRNOTAVAIL },
	{ "0.1.2.3", 0, "10.0.0.1", 0, 0 },
	{ "127.0.0.1", 0, "10.0.0.1", 0, -EADDRNOTAVAIL },
	{ "127.0.0.1", 0, "127.0.0.1", 0, -EADDRNOTAVAIL },
	{ "::", 0, "10.0.0.1", 0, -EADDRNOTAVAIL },
	{ "::", 0, "0.0.0.0", AFONLY, -EADDRNOTAVAIL },
	{ "::1", 0, "fd00::1", 0, -EADDRNOTAVAIL },
	/* Of different families only if both want no more than their own. */
	{ "::", AFONLY, "0.0.0.0", AFONLY, 0 },
	{ "::", AFONLY, "10.0.0.1", AFONLY, 0 },
	{ "::", AFONLY, "10.0.0.1", 0, -EADDRNOTAVAIL },
	{ "::", AFONLY, "::", AFONLY, -EADDRNOTAVAIL },
	/* Both have to be willing to share. */
	{ "10.0.0.1", REUSE, "10.0.0.1", REUSE, 0 },
	{ "10.0.0.1", REUSE, "10.0.0.1", 0, -EADDRINUSE },
	{ "10.0.0.1", 0, "10.0.0.1", REUSE, -EADDRINUSE },
	{ "0.0.0.0", REUSE, "10.0.0.1", REUSE, 0 },
	{ "0.0.0.0", REUSE, "10.0.0.1", 0, -EADDRNOTAVAIL },
};

static void conflicts_are_the_kernels(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(conflicts); i++) {
		print_message("case %zu: %s, then %s\n", i, conflicts[i].first,
			      conflicts[i].second);
		assert_int_equal(bind_id(conflicts[i].first, 7471, conflicts[i].first_flags, 0), 0);
		assert_int_equal(bind_id(conflicts[i].second, 7471, conflicts[i].second_flags, 1),
				 conflicts[i].error);
		/* Another port is another matter, and the first one is free again afterwards. */
		assert_int_equal(bind_id(conflicts[i].second, 7472, 0, 2), 0);
		unbind_id(conflicts[i].first, 7471, 0);
		unbind_id(conflicts[i].second, 7471, 1);
		unbind_id(conflicts[i].second, 7472, 2);
		assert_int_equal(bind_id("0.0.0.0", 7471, 0, 3), 0);
		unbind_id("0.0.0.0", 7471, 3);
	}
}

static void port_spaces_are_apart(void **state)
{
	static const enum rdma_port_space spaces[] = {
		RDMA_PS_TCP, RDMA_PS_UDP, RDMA_PS_IPOIB, RDMA_PS_IB,
	};
	union sim_sockaddr addr = address("10.0.0.1", 7471);
	struct sim_id *id;
	unsigned int slot;
	bool service;

	(void)state;
	for (unsigned int i = 0; i < ARRAY_SIZE(spaces); i++)
		assert_int_equal(sim_bind_port(node, spaces[i], &addr, 0, id_number(i)), 0);
	for (unsigned int i = 0; i < ARRAY_SIZE(spaces); i++)
		assert_int_equal(sim_bind_port(node, spaces[i], &addr, 0, id_number(9)),
				 -EADDRINUSE);
	assert_int_equal(sim_bind_listen(node, RDMA_PS_UDP, &addr, id_number(1), SIM_LISTEN), 0);
	assert_true(sim_find_listener(node, RDMA_PS_UDP, &addr.sa, &slot, &id, &service));
	assert_ptr_equal(id, id_number(1));
	assert_false(sim_find_listener(node, RDMA_PS_TCP, &addr.sa, &slot, &id, &service));
	assert_false(service);
}

static void only_the_owner_can_unbind(void **state)
{
	(void)state;
	assert_int_equal(bind_id("10.0.0.1", 7471, 0, 0), 0);
	unbind_id("10.0.0.1", 7471, 1);
	unbind_id("10.0.0.1", 7472, 0);
	assert_int_equal(bind_id("10.0.0.1", 7471, 0, 1), -EADDRINUSE);
	assert_int_equal(listen_id("10.0.0.1", 7471, 1, true), -EINVAL);
	unbind_id("10.0.0.1", 7471, 0);
	assert_int_equal(bind_id("10.0.0.1", 7471, 0, 1), 0);
}

/* ------------------------------------------------------------------------
 * Listening.
 */

static void the_best_listener_is_found(void **state)
{
	(void)state;
	assert_string_equal(listener("10.0.0.1", 7471), "-");
	assert_int_equal(bind_id("10.0.0.1", 7471, AFONLY, 0), 0);
	assert_string_equal(listener("10.0.0.1", 7471), "-");
	assert_int_equal(listen_id("10.0.0.1", 7471, 0, true), 0);
	assert_string_equal(listener("10.0.0.1", 7471), "0");
	assert_string_equal(listener("10.0.0.2", 7471), "");
	assert_string_equal(listener("fd00::1", 7471), "");
	assert_string_equal(listener("10.0.0.1", 7472), "-");
	assert_int_equal(bind_id("10.0.0.2", 7471, AFONLY, 1), 0);
	assert_int_equal(listen_id("10.0.0.2", 7471, 1, true), 0);
	assert_string_equal(listener("10.0.0.1", 7471), "0");
	assert_string_equal(listener("10.0.0.2", 7471), "1");
	assert_int_equal(listen_id("10.0.0.2", 7471, 1, false), 0);
	assert_string_equal(listener("10.0.0.2", 7471), "");
	unbind_id("10.0.0.1", 7471, 0);
	assert_string_equal(listener("10.0.0.1", 7471), "-");
}

static void wildcards_take_what_is_left(void **state)
{
	(void)state;
	assert_int_equal(bind_id("0.0.0.0", 7471, AFONLY, 0), 0);
	assert_int_equal(listen_id("0.0.0.0", 7471, 0, true), 0);
	assert_string_equal(listener("10.0.0.1", 7471), "0");
	assert_string_equal(listener("127.0.0.1", 7471), "0");
	assert_string_equal(listener("fd00::1", 7471), "");
	assert_int_equal(bind_id("::", 7471, AFONLY, 1), 0);
	assert_int_equal(listen_id("::", 7471, 1, true), 0);
	assert_string_equal(listener("fd00::1", 7471), "1");
	assert_string_equal(listener("10.0.0.1", 7471), "0");

	assert_int_equal(bind_id("::", 7472, 0, 2), 0);
	assert_int_equal(listen_id("::", 7472, 2, true), 0);
	assert_string_equal(listener("10.0.0.1", 7472), "2");
	assert_string_equal(listener("fd00::1", 7472), "2");

	/* Bound to loopback means bound to whatever device it is. */
	assert_int_equal(bind_id("127.0.0.1", 7473, AFONLY, 3), 0);
	assert_int_equal(listen_id("127.0.0.1", 7473, 3, true), 0);
	assert_string_equal(listener("127.0.0.1", 7473), "3");
	assert_string_equal(listener("10.0.0.1", 7473), "3");
	assert_string_equal(listener("::1", 7473), "");
}

static void a_listener_shares_with_nobody(void **state)
{
	(void)state;
	assert_int_equal(bind_id("10.0.0.1", 7471, REUSE, 0), 0);
	assert_int_equal(bind_id("10.0.0.1", 7471, REUSE, 1), 0);
	assert_int_equal(listen_id("10.0.0.1", 7471, 0, true), -EADDRINUSE);
	unbind_id("10.0.0.1", 7471, 1);
	assert_int_equal(listen_id("10.0.0.1", 7471, 0, true), 0);
	assert_int_equal(bind_id("10.0.0.1", 7471, REUSE, 1), -EADDRINUSE);
	assert_int_equal(bind_id("10.0.0.2", 7471, REUSE, 2), 0);
	assert_int_equal(listen_id("10.0.0.2", 7471, 2, true), 0);

	assert_int_equal(bind_id("0.0.0.0", 7472, REUSE, 3), 0);
	assert_int_equal(bind_id("10.0.0.1", 7472, REUSE, 4), 0);
	assert_int_equal(listen_id("10.0.0.1", 7472, 4, true), -EADDRNOTAVAIL);
}

/* ------------------------------------------------------------------------
 * Which ports.
 */

static void local_range(unsigned int *low, unsigned int *high)
{
	FILE *file = fopen("/proc/sys/net/ipv4/ip_local_port_range", "r");

	*low = 32768;
	*high = 60999;
	if (!file || sim_is_virtual())
		goto out;
	assert_int_equal(fscanf(file, "%u %u", low, high), 2);
out:
	if (file)
		fclose(file);
}

static void port_0_takes_any_free_one_until_none_is_left(void **state)
{
	unsigned int low, high, count;
	static bool taken[65536];
	union sim_sockaddr addr;
	uint16_t port = 0;

	(void)state;
	memset(taken, 0, sizeof(taken));
	local_range(&low, &high);
	count = high - low + 1;
	if (count > NUM_IDS)
		skip();
	for (unsigned int i = 0; i < count - 1; i++) {
		addr = address(i % 2 ? "0.0.0.0" : "fd00::1", 0);
		assert_int_equal(sim_bind_port(node, RDMA_PS_TCP, &addr, REUSE, id_number(i)), 0);
		port = sim_addr_port(&addr.sa);
		assert_in_range(port, low, high);
		assert_false(taken[port]);
		taken[port] = true;
	}
	/* The last one taken is not given again at once, even if it was given back. */
	unbind_id("0.0.0.0", port, count - 2);
	addr = address("0.0.0.0", 0);
	assert_int_equal(sim_bind_port(node, RDMA_PS_TCP, &addr, 0, id_number(0)), 0);
	assert_int_not_equal(sim_addr_port(&addr.sa), port);
	assert_int_equal(bind_id("0.0.0.0", port, 0, 1), 0);
	addr = address("0.0.0.0", 0);
	assert_int_equal(sim_bind_port(node, RDMA_PS_TCP, &addr, 0, id_number(2)), -EADDRNOTAVAIL);
	assert_int_equal(sim_addr_port(&addr.sa), 0);
	assert_int_equal(sim_bind_port(node, RDMA_PS_UDP, &addr, 0, id_number(2)), 0);
}

static void free_ports_follow_from_the_seed(void **state)
{
	uint16_t ports[2][20];
	union sim_sockaddr addr;

	(void)state;
	for (unsigned int round = 0; round < 2; round++) {
		if (round) {
			assert_int_equal(close_all(NULL), 0);
			assert_int_equal(open_private(NULL), 0);
		}
		for (unsigned int i = 0; i < 20; i++) {
			addr = address("0.0.0.0", 0);
			assert_int_equal(sim_bind_port(node, RDMA_PS_TCP, &addr, 0, id_number(i)),
					 0);
			ports[round][i] = sim_addr_port(&addr.sa);
		}
	}
	assert_memory_equal(ports[0], ports[1], sizeof(ports[0]));
}

static void every_port_can_be_bound(void **state)
{
	(void)state;
	for (unsigned int port = 1024; port < 65536; port++)
		assert_int_equal(bind_id("10.0.0.1", (uint16_t)port, 0, port % NUM_IDS), 0);
	assert_int_equal(bind_id("10.0.0.1", 65535, 0, 0), -EADDRINUSE);
	for (unsigned int port = 1024; port < 65536; port++)
		unbind_id("10.0.0.1", (uint16_t)port, port % NUM_IDS);
	assert_int_equal(bind_id("0.0.0.0", 1024, 0, 0), 0);
	assert_int_equal(bind_id("0.0.0.0", 65535, 0, 1), 0);
}

static void nodes_have_ports_of_their_own(void **state)
{
	struct sim_node *other, *first = node;

	(void)state;
	assert_int_equal(sim_node_add("b", &other), 0);
	assert_int_equal(bind_id("0.0.0.0", 7471, 0, 0), 0);
	assert_int_equal(listen_id("0.0.0.0", 7471, 0, true), 0);
	node = other;
	assert_string_equal(listener("10.0.0.1", 7471), "-");
	assert_int_equal(bind_id("0.0.0.0", 7471, 0, 1), 0);
	assert_int_equal(listen_id("0.0.0.0", 7471, 1, true), 0);
	assert_string_equal(listener("10.0.0.1", 7471), "1");
	node = first;
	assert_string_equal(listener("10.0.0.1", 7471), "0");
}

static void set_low_ports(bool allowed, uint32_t *effective)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3];
	uint32_t bit = 1u << CAP_NET_BIND_SERVICE;

	assert_int_equal(syscall(SYS_capget, &header, data), 0);
	*effective = data[0].effective & bit;
	data[0].effective = allowed ? data[0].effective | bit : data[0].effective & ~bit;
	assert_int_equal(syscall(SYS_capset, &header, data), 0);
}

static void low_ports_need_a_capability(void **state)
{
	uint32_t had, ignored;

	(void)state;
	set_low_ports(false, &had);
	assert_int_equal(bind_id("10.0.0.1", 1, 0, 0), -EACCES);
	assert_int_equal(bind_id("10.0.0.1", 1023, 0, 0), -EACCES);
	assert_int_equal(bind_id("10.0.0.1", 1024, 0, 0), 0);
	if (had) {
		set_low_ports(true, &ignored);
		assert_int_equal(bind_id("10.0.0.1", 1023, 0, 1), 0);
	}
}

static void other_families_have_no_ports(void **state)
{
	union sim_sockaddr addr = { .sa.sa_family = AF_UNIX };

	(void)state;
	assert_int_equal(sim_bind_port(node, RDMA_PS_TCP, &addr, 0, id_number(0)), -EINVAL);
}

/* ------------------------------------------------------------------------
 * The table itself, after a process died while changing it.
 */

static struct sim_port_binding binding_of(uint16_t port, unsigned int slot)
{
	union sim_sockaddr addr = address("10.0.0.1", port);

	return sim_port_binding(RDMA_PS_TCP, &addr.sa, 0, slot);
}

static void a_torn_table_is_repaired(void **state)
{
	struct sim_ports_area *area = calloc(1, sizeof(*area));
	struct sim_port_binding binding;
	uint32_t entries[100], entry;

	(void)state;
	assert_non_null(area);
	for (unsigned int i = 0; i < 100; i++) {
		binding = binding_of((uint16_t)(2000 + i), i % 4);
		assert_int_equal(sim_ports_area_add(area, &binding, &entries[i]), 0);
	}
	sim_ports_area_remove(area, entries[10]);
	/* One entry is removed but still linked, another is complete but not linked; and worse. */
	area->entries[entries[20]].binding.family = 0;
	area->entries[entries[30]].next = SIM_PORT_ENTRIES + 5;
	memset(area->buckets, 0xff, sizeof(area->buckets) / 2);
	area->free = 77777;
	sim_ports_area_repair(area);
	sim_ports_area_drop_slot(area, 3);
	for (unsigned int i = 0; i < 100; i++)
		assert_int_equal(sim_ports_area_taken(area, RDMA_PS_TCP, (uint16_t)(2000 + i)),
				 i != 10 && i != 20 && i % 4 != 3);
	/* All 27 free entries are used again before a new one. */
	for (unsigned int i = 0; i < 27; i++) {
		binding = binding_of((uint16_t)(3000 + i), 0);
		assert_int_equal(sim_ports_area_add(area, &binding, &entry), 0);
		assert_in_range(entry, 0, 99);
	}
	binding = binding_of(4000, 0);
	assert_int_equal(sim_ports_area_add(area, &binding, &entry), 0);
	assert_int_equal(entry, 100);
	free(area);
}

int main(void)
{
#define ON(kind, test) { #test " (" #kind ")", test, open_##kind, close_all, NULL }
#define BOTH(test) ON(private, test), ON(shared, test)
	const struct CMUnitTest tests[] = {
		BOTH(conflicts_are_the_kernels),
		BOTH(port_spaces_are_apart),
		BOTH(only_the_owner_can_unbind),
		BOTH(the_best_listener_is_found),
		BOTH(wildcards_take_what_is_left),
		BOTH(a_listener_shares_with_nobody),
		BOTH(port_0_takes_any_free_one_until_none_is_left),
		BOTH(every_port_can_be_bound),
		BOTH(low_ports_need_a_capability),
		BOTH(other_families_have_no_ports),
		ON(private, free_ports_follow_from_the_seed),
		ON(private, nodes_have_ports_of_their_own),
		cmocka_unit_test(a_torn_table_is_repaired),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
