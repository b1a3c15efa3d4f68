/* SPDX-License-Identifier: BSD-2-Clause */
/* Listeners that are TCP sockets: which are in each other's way, and which a stream gets to. */
#include "config.h"

#include <errno.h>

#include "providers/soft/wire/address.h"
#include "providers/soft/fabric/fabric.h"
#include "sim_fake.h"
#include "tests/cmocka_all.h"

static struct sim_node *node;
static char id_memory[10];		/* ids are compared, not looked into */

static struct sim_id *id_number(unsigned int number)
{
	return (struct sim_id *)(void *)&id_memory[number];
}

static int open_node(void **state)
{
	int r = sim_fake_open(state);

	return r ? r : sim_node_add("a", &node);
}

static union sim_sockaddr address(const char *text, uint16_t port)
{
	union sim_sockaddr addr;
	uint8_t prefix_len;

	assert_int_equal(sim_addr_parse(text, &addr, &prefix_len), 0);
	sim_addr_set_port(&addr, port);
	return addr;
}

static int open_socket(const char *text, enum rdma_port_space ps, unsigned int flags, unsigned int id)
{
	union sim_sockaddr addr = address(text, 7471);

	assert_int_equal(sim_bind_port(node, ps, &addr, flags, id_number(id)), 0);
	return sim_bind_listen(node, ps, &addr, id_number(id), SIM_LISTEN | SIM_LISTEN_SOCKET);
}

static void unbind(const char *text, enum rdma_port_space ps, unsigned int id)
{
	union sim_sockaddr addr = address(text, 7471);

	sim_unbind_port(node, ps, &addr, id_number(id));
}

/* As tests/golden/iwarp/socket-*.txt has it; loopback needs a host with one iWARP device. */
static void sockets_of_two_port_spaces_share_a_port(void **state)
{
	static const struct {
		const char *first, *second;
		bool first_only, second_only, shared;
	} pairs[] = {
		{ "10.0.0.1", "10.0.0.1", false, false, false },
		{ "10.0.0.1", "10.0.0.2", false, false, true },
		{ "10.0.0.1", "0.0.0.0", false, false, false },
		{ "0.0.0.0", "10.0.0.1", false, false, false },
		{ "0.0.0.0", "0.0.0.0", false, false, false },
		{ "0.0.0.0", "::", false, false, false },
		{ "0.0.0.0", "::", false, true, true },
		{ "::", "0.0.0.0", true, true, true },
		{ "::", "10.0.0.1", false, false, false },
		{ "::", "10.0.0.1", true, false, true },
		{ "::", "fd00::1", true, true, false },
		{ "fd00::1", "::", false, true, false },
		{ "fd00::1", "0.0.0.0", false, false, true },
		{ "fd00::1", "10.0.0.1", false, false, true },
		{ "127.0.0.1", "::1", false, false, true },
		{ "::1", "127.0.0.1", false, false, true },
		{ "127.0.0.1", "10.0.0.1", false, false, true },
		{ "127.0.0.1", "127.0.0.1", false, false, false },
		{ "127.0.0.1", "0.0.0.0", false, false, false },
		{ "::", "127.0.0.1", false, false, false },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(pairs); i++) {
		const char *first = pairs[i].first, *second = pairs[i].second;
		union sim_sockaddr addr = address(second, 7471);

		print_message("%s, then %s\n", first, second);
		assert_int_equal(open_socket(first, RDMA_PS_TCP,
					     pairs[i].first_only ? SIM_BIND_AFONLY : 0, 0),
				 0);
		assert_int_equal(open_socket(second, RDMA_PS_UDP,
					     pairs[i].second_only ? SIM_BIND_AFONLY : 0, 1),
				 pairs[i].shared ? 0 : -EADDRINUSE);
		assert_int_equal(sim_bind_listen(node, RDMA_PS_UDP, &addr, id_number(1), 0), 0);
		unbind(first, RDMA_PS_TCP, 0);
		/* Nothing is left of either. */
		assert_false(sim_socket_taken(node, &addr));
		unbind(second, RDMA_PS_UDP, 1);
	}
}

/* A client's socket; listeners without one are in nobody's way. */
static void a_client_needs_a_free_socket(void **state)
{
	union sim_sockaddr client = address("10.0.0.1", 7471);

	(void)state;
	assert_int_equal(sim_bind_port(node, RDMA_PS_TCP, &client, 0, id_number(0)), 0);
	assert_int_equal(sim_bind_listen(node, RDMA_PS_TCP, &client, id_number(0), SIM_LISTEN), 0);
	assert_false(sim_socket_taken(node, &client));
	assert_int_equal(open_socket("10.0.0.2", RDMA_PS_UDP, 0, 1), 0);
	assert_false(sim_socket_taken(node, &client));
	assert_int_equal(open_socket("10.0.0.1", RDMA_PS_IB, 0, 2), 0);
	assert_true(sim_socket_taken(node, &client));
}

static void a_stream_finds_its_socket(void **state)
{
	static const struct {
		const char *to;
		int id;			/* -1: nobody listens */
	} streams[] = {
		{ "10.0.0.1", 0 }, { "10.0.0.2", 1 }, { "10.0.0.3", -1 }, { "fd00::1", 2 },
		{ "127.0.0.1", 3 }, { "::1", 2 },
	};
	struct sim_id *id;
	unsigned int slot;

	(void)state;
	assert_int_equal(open_socket("10.0.0.1", RDMA_PS_TCP, 0, 0), 0);
	assert_int_equal(open_socket("10.0.0.2", RDMA_PS_UDP, 0, 1), 0);
	assert_int_equal(open_socket("::", RDMA_PS_IB, SIM_BIND_AFONLY, 2), 0);
	assert_int_equal(open_socket("127.0.0.1", RDMA_PS_IPOIB, SIM_BIND_AFONLY, 3), 0);
	for (size_t i = 0; i < ARRAY_SIZE(streams); i++) {
		union sim_sockaddr to = address(streams[i].to, 7471);

		print_message("to %s\n", streams[i].to);
		assert_int_equal(sim_find_socket(node, &to.sa, &slot, &id), streams[i].id >= 0);
		if (streams[i].id >= 0)
			assert_ptr_equal(id, id_number((unsigned int)streams[i].id));
	}
}

/* The port space is asked first. */
static void a_sibling_is_in_the_way_before_a_socket(void **state)
{
	union sim_sockaddr addr = address("10.0.0.1", 7471), any = address("0.0.0.0", 7471);

	(void)state;
	assert_int_equal(open_socket("10.0.0.1", RDMA_PS_UDP, 0, 0), 0);
	assert_int_equal(sim_bind_port(node, RDMA_PS_TCP, &addr, SIM_BIND_REUSE, id_number(1)), 0);
	assert_int_equal(sim_bind_port(node, RDMA_PS_TCP, &any, SIM_BIND_REUSE, id_number(2)), 0);
	assert_int_equal(sim_bind_listen(node, RDMA_PS_TCP, &addr, id_number(1),
					 SIM_LISTEN | SIM_LISTEN_SOCKET), -EADDRNOTAVAIL);
	unbind("0.0.0.0", RDMA_PS_TCP, 2);
	assert_int_equal(sim_bind_listen(node, RDMA_PS_TCP, &addr, id_number(1),
					 SIM_LISTEN | SIM_LISTEN_SOCKET), -EADDRINUSE);
}

int main(void)
{
#define PRIVATE(test) cmocka_unit_test_setup_teardown(test, open_node, sim_fake_close)
	const struct CMUnitTest tests[] = {
		PRIVATE(sockets_of_two_port_spaces_share_a_port),
		PRIVATE(a_client_needs_a_free_socket),
		PRIVATE(a_stream_finds_its_socket),
		PRIVATE(a_sibling_is_in_the_way_before_a_socket),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
