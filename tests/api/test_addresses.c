/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_addresses.c - rdma_bind_addr(), rdma_resolve_addr() and
 * rdma_resolve_route(): addresses that do not do, ports that are taken, and
 * when each failure shows.
 */
#include <errno.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <linux/capability.h>

#include "steps.h"

static struct rdma_cm_id *new_id(struct pair *pair, enum rdma_port_space ps)
{
	struct rdma_cm_id *id;

	assert_int_equal(rdma_create_id(pair->client_channel, &id, NULL, ps), 0);
	return id;
}

/* --- Families. --- */

static void unknown_families(void **state)
{
	static const sa_family_t families[] = { AF_UNSPEC, AF_UNIX, AF_PACKET, 99, 65535 };
	struct sockaddr_storage bad;

	(void)state;
	memset(&bad, 0, sizeof(bad));
	for (enum transport t = 0; t < NUM_TRANSPORTS; t++) {
		for (size_t i = 0; i < ARRAY_LEN(families); i++) {
			struct pair pair;

			pair_open(&pair, t, RDMA_PS_TCP);
			bad.ss_family = families[i];
			assert_errno(rdma_bind_addr(pair.client, (struct sockaddr *)&bad), EINVAL);
			assert_errno(rdma_resolve_addr(pair.client, NULL, (struct sockaddr *)&bad,
						       2000), EINVAL);
			if (families[i] != AF_UNSPEC)
				assert_errno(rdma_resolve_addr(pair.client, (struct sockaddr *)&bad,
							       step_sa(SERVER_ADDRESS, 1), 2000),
					     EINVAL);
			/* No harm done. */
			pair_resolve(&pair);
			pair_close(&pair);
		}
	}
}

static void families_must_match(void **state)
{
	(void)state;
	for (enum transport t = 0; t < NUM_TRANSPORTS; t++) {
		struct pair pair;

		pair_open(&pair, t, RDMA_PS_TCP);
		assert_int_equal(polycm_sim_node_add_address(pair.client_node, "fd00::2/64"), 0);
		assert_int_equal(polycm_sim_node_add_address(pair.server_node, "fd00::1/64"), 0);
		assert_int_equal(rdma_bind_addr(pair.client, step_sa("fd00::2", 0)), 0);
		assert_errno(rdma_resolve_addr(pair.client, NULL, step_sa(SERVER_ADDRESS, 1), 2000),
			     EINVAL);
		assert_int_equal(rdma_resolve_addr(pair.client, NULL, step_sa("fd00::1", 1), 2000), 0);
		pair_take(pair.client_channel, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
		assert_int_equal(rdma_get_local_addr(pair.client)->sa_family, AF_INET6);
		pair_close(&pair);
	}
}

/* --- Binding. --- */

static const struct bind_case {
	const char *address;
	int error;
} binds[] = {
	{ CLIENT_ADDRESS, 0 },
	{ SERVER_ADDRESS, 0 },			/* whose node it is makes no difference */
	{ "0.0.0.0", 0 },
	{ "127.0.0.1", 0 },
	{ "::", 0 },
	{ "::1", 0 },
	{ "10.0.0.3", EADDRNOTAVAIL },
	{ "192.0.2.1", EADDRNOTAVAIL },
	{ "fd00::7", EADDRNOTAVAIL },
	{ "fe80::1", EINVAL },			/* link-local without a scope */
};

static void binds_to_local_addresses(void **state)
{
	(void)state;
	for (enum transport t = 0; t < NUM_TRANSPORTS; t++) {
		for (size_t i = 0; i < ARRAY_LEN(binds); i++) {
			const struct bind_case *c = &binds[i];
			struct pair pair;

			pair_open(&pair, t, RDMA_PS_TCP);
			if (c->error) {
				assert_errno(rdma_bind_addr(pair.client, step_sa(c->address, 0)),
					     c->error);
				assert_int_equal(rdma_get_src_port(pair.client), 0);
				assert_null(pair.client->verbs);
				/* Another one may be tried. */
				assert_int_equal(rdma_bind_addr(pair.client,
								step_sa(CLIENT_ADDRESS, 0)), 0);
			} else {
				assert_int_equal(rdma_bind_addr(pair.client, step_sa(c->address, 0)),
						 0);
			}
			assert_true(ntohs(rdma_get_src_port(pair.client)) >= 1024);
			pair_close(&pair);
		}
	}
}

static void a_specific_address_gives_the_device(void **state)
{
	struct pair pair;

	(void)state;
	pair_open(&pair, ROCE, RDMA_PS_TCP);
	assert_int_equal(rdma_bind_addr(pair.client, step_sa(CLIENT_ADDRESS, 0)), 0);
	assert_non_null(pair.client->verbs);
	assert_non_null(pair.client->pd);
	assert_int_equal(pair.client->port_num, 1);
	assert_memory_equal(pair.client->route.addr.addr.ibaddr.sgid.raw,
			    "\0\0\0\0\0\0\0\0\0\0\xff\xff\x0a\0\0\x02", 16);
	pair_close(&pair);
	pair_open(&pair, ROCE, RDMA_PS_TCP);
	assert_int_equal(rdma_bind_addr(pair.client, step_sa("0.0.0.0", 0)), 0);
	assert_null(pair.client->verbs);
	pair_close(&pair);
}

/* --- Ports. --- */

static const struct port_case {
	const char *first, *second;
	enum rdma_port_space second_ps;
	int error;
} ports[] = {
	{ "10.0.0.2", "10.0.0.2", RDMA_PS_TCP, EADDRINUSE },
	{ "10.0.0.2", "10.0.0.12", RDMA_PS_TCP, 0 },
	{ "10.0.0.2", "0.0.0.0", RDMA_PS_TCP, EADDRNOTAVAIL },
	{ "0.0.0.0", "10.0.0.2", RDMA_PS_TCP, EADDRNOTAVAIL },
	{ "0.0.0.0", "0.0.0.0", RDMA_PS_TCP, EADDRNOTAVAIL },
	{ "127.0.0.1", "10.0.0.2", RDMA_PS_TCP, EADDRNOTAVAIL },
	{ "10.0.0.2", "127.0.0.1", RDMA_PS_TCP, EADDRNOTAVAIL },
	{ "127.0.0.1", "127.0.0.1", RDMA_PS_TCP, EADDRNOTAVAIL },
	{ "fd00::2", "10.0.0.2", RDMA_PS_TCP, 0 },
	{ "fd00::2", "fd00::2", RDMA_PS_TCP, EADDRINUSE },
	{ "fd00::2", "::", RDMA_PS_TCP, EADDRNOTAVAIL },
	{ "::", "10.0.0.2", RDMA_PS_TCP, EADDRNOTAVAIL },
	/* Port spaces do not know of each other. */
	{ "10.0.0.2", "10.0.0.2", RDMA_PS_UDP, 0 },
	{ "0.0.0.0", "0.0.0.0", RDMA_PS_UDP, 0 },
};

static void taken_ports(void **state)
{
	(void)state;
	for (enum transport t = 0; t < NUM_TRANSPORTS; t++) {
		for (size_t i = 0; i < ARRAY_LEN(ports); i++) {
			const struct port_case *c = &ports[i];
			struct rdma_cm_id *a, *b;
			struct pair pair;
			int r;

			pair_open(&pair, t, RDMA_PS_TCP);
			assert_int_equal(polycm_sim_node_add_address(pair.client_node,
								     "10.0.0.12/24"), 0);
			assert_int_equal(polycm_sim_node_add_address(pair.client_node, "fd00::2/64"),
					 0);
			a = new_id(&pair, RDMA_PS_TCP);
			b = new_id(&pair, c->second_ps);
			assert_int_equal(rdma_bind_addr(a, step_sa(c->first, 5000)), 0);
			errno = 0;
			r = rdma_bind_addr(b, step_sa(c->second, 5000));
			if (r != (c->error ? -1 : 0) || errno != c->error)
				fail_msg("%s: %s beside %s: %s", transport_name[t], c->second,
					 c->first, strerror(errno));
			/* Free again with the id that had it. */
			assert_int_equal(rdma_destroy_id(a), 0);
			if (c->error)
				assert_int_equal(rdma_bind_addr(b, step_sa(c->second, 5000)), 0);
			assert_int_equal(rdma_destroy_id(b), 0);
			pair_close(&pair);
		}
	}
}

static void port_0_takes_a_free_one(void **state)
{
	enum { NUM = 64 };
	struct rdma_cm_id *id[NUM];
	struct pair pair;

	(void)state;
	pair_open(&pair, ROCE, RDMA_PS_TCP);
	for (unsigned int i = 0; i < NUM; i++) {
		id[i] = new_id(&pair, RDMA_PS_TCP);
		assert_int_equal(rdma_bind_addr(id[i], step_sa(CLIENT_ADDRESS, 0)), 0);
		for (unsigned int j = 0; j < i; j++)
			assert_int_not_equal(rdma_get_src_port(id[i]), rdma_get_src_port(id[j]));
	}
	for (unsigned int i = 0; i < NUM; i++)
		assert_int_equal(rdma_destroy_id(id[i]), 0);
	pair_close(&pair);
}

/* The effective capability, without libcap; false: it cannot be had. */
static bool set_capability(unsigned int capability, bool on)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2];

	if (syscall(SYS_capget, &header, data))
		return false;
	if (on)
		data[0].effective |= 1u << capability;
	else
		data[0].effective &= ~(1u << capability);
	return !syscall(SYS_capset, &header, data);
}

static void low_ports_are_for_the_privileged(void **state)
{
	struct pair pair;

	(void)state;
	pair_open(&pair, ROCE, RDMA_PS_TCP);
	assert_true(set_capability(CAP_NET_BIND_SERVICE, false));
	assert_errno(rdma_bind_addr(pair.client, step_sa(CLIENT_ADDRESS, 1023)), EACCES);
	assert_errno(rdma_bind_addr(pair.client, step_sa(CLIENT_ADDRESS, 1)), EACCES);
	if (set_capability(CAP_NET_BIND_SERVICE, true))
		assert_int_equal(rdma_bind_addr(pair.client, step_sa(CLIENT_ADDRESS, 1023)), 0);
	else
		assert_int_equal(rdma_bind_addr(pair.client, step_sa(CLIENT_ADDRESS, 1024)), 0);
	pair_close(&pair);
}

/* --- Resolving. --- */

static void nobody_answers(void **state)
{
	static const int timeouts[] = { 0, 1, 50, 2000, 3600000 };

	(void)state;
	for (enum transport t = 0; t < NUM_TRANSPORTS; t++) {
		struct pair pair;

		pair_open(&pair, t, RDMA_PS_TCP);
		for (size_t i = 0; i < ARRAY_LEN(timeouts); i++) {
			uint64_t before = pair_now();

			/* On the same id: an error leaves it as it was. */
			assert_int_equal(rdma_resolve_addr(pair.client, NULL,
							   step_sa("10.0.0.99", 1), timeouts[i]), 0);
			pair_take(pair.client_channel, RDMA_CM_EVENT_ADDR_ERROR, -ETIMEDOUT);
			assert_elapsed(before, (uint64_t)timeouts[i] * 1000000);
		}
		pair_resolve(&pair);
		pair_close(&pair);
	}
}

/* No address of the destination's family to go out from. */
static void no_route(void **state)
{
	(void)state;
	for (enum transport t = 0; t < NUM_TRANSPORTS; t++) {
		struct pair pair;

		pair_open(&pair, t, RDMA_PS_TCP);
		assert_errno(rdma_resolve_addr(pair.client, NULL, step_sa("fd00::1", 1), 2000),
			     ENETUNREACH);
		assert_int_equal(polycm_sim_advance(SECONDS(5)), 0);
		pair_none(pair.client_channel);
		/* The id is bound to the wildcard of that family now. */
		assert_errno(rdma_resolve_addr(pair.client, NULL, step_sa(SERVER_ADDRESS, 1), 2000),
			     EINVAL);
		assert_errno(rdma_bind_addr(pair.client, step_sa(CLIENT_ADDRESS, 0)), EINVAL);
		pair_close(&pair);
	}
}

static void from_an_address_that_is_not_there(void **state)
{
	struct pair pair;

	(void)state;
	pair_open(&pair, ROCE, RDMA_PS_TCP);
	assert_errno(rdma_resolve_addr(pair.client, step_sa("10.0.0.77", 0),
				       step_sa(SERVER_ADDRESS, 1), 2000), EADDRNOTAVAIL);
	assert_int_equal(rdma_resolve_addr(pair.client, step_sa(CLIENT_ADDRESS, 0),
					   step_sa(SERVER_ADDRESS, 1), 2000), 0);
	pair_take(pair.client_channel, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
	pair_close(&pair);
}

static void a_route_needs_time(void **state)
{
	(void)state;
	for (enum transport t = 0; t < NUM_TRANSPORTS; t++) {
		struct pair pair;

		step_open(&pair, t, STEP_ADDR_RESOLVED);
		assert_errno(rdma_resolve_route(pair.client, 0), EINVAL);
		assert_int_equal(rdma_resolve_route(pair.client, 1), 0);
		pair_take(pair.client_channel, RDMA_CM_EVENT_ROUTE_RESOLVED, 0);
		pair_close(&pair);
	}
}

/* Loopback: 0.0.0.0 and 127.0.0.1 lead to the node itself. */
static void to_oneself(void **state)
{
	static const char *const addresses[] = { "0.0.0.0", "127.0.0.1", "127.1.2.3", CLIENT_ADDRESS };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(addresses); i++) {
		struct rdma_conn_param param = pair_param(NULL, 0);
		struct rdma_cm_event *event;
		struct rdma_cm_id *listener;
		struct pair pair;

		print_message("%s\n", addresses[i]);
		pair_open(&pair, IB, RDMA_PS_TCP);
		listener = new_id(&pair, RDMA_PS_TCP);
		assert_int_equal(rdma_bind_addr(listener, step_sa("0.0.0.0", 6000)), 0);
		assert_int_equal(rdma_listen(listener, 1), 0);
		assert_int_equal(rdma_resolve_addr(pair.client, NULL, step_sa(addresses[i], 6000),
						   2000), 0);
		pair_take(pair.client_channel, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
		assert_int_equal(rdma_resolve_route(pair.client, 2000), 0);
		pair_take(pair.client_channel, RDMA_CM_EVENT_ROUTE_RESOLVED, 0);
		assert_int_equal(rdma_connect(pair.client, &param), 0);
		event = pair_expect(pair.client_channel, RDMA_CM_EVENT_CONNECT_REQUEST, 0);
		assert_ptr_equal(event->listen_id, listener);
		pair.server = event->id;
		rdma_ack_cm_event(event);
		assert_int_equal(rdma_destroy_id(listener), 0);
		pair_close(&pair);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(unknown_families),
		cmocka_unit_test(families_must_match),
		cmocka_unit_test(binds_to_local_addresses),
		cmocka_unit_test(a_specific_address_gives_the_device),
		cmocka_unit_test(taken_ports),
		cmocka_unit_test(port_0_takes_a_free_one),
		cmocka_unit_test(low_ports_are_for_the_privileged),
		cmocka_unit_test(nobody_answers),
		cmocka_unit_test(no_route),
		cmocka_unit_test(from_an_address_that_is_not_there),
		cmocka_unit_test(a_route_needs_time),
		cmocka_unit_test(to_oneself),
	};

	return cmocka_run_group_tests(tests, pair_group_setup, NULL);
}
