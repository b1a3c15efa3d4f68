/* SPDX-License-Identifier: BSD-2-Clause */
/* test_sim_bind.c - binding, port conflicts, and which listener a request is for. */
#include "config.h"

#include <errno.h>
#include <linux/capability.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "providers/soft/wire/address.h"
#include "sim_world.h"

/* --- rdma_bind_addr() --- */

static void bind_checks_the_address(void **state)
{
	static const struct {
		const char *address;
		int result;
		bool device;
	} cases[] = {
		{ CLIENT, 0, true },
		{ SERVER, 0, true },		/* another node of ours */
		{ NOBODY, -EADDRNOTAVAIL, false },
		{ "fd00::1", -EADDRNOTAVAIL, false },
		{ "fe80::1", -EINVAL, false },	/* no scope */
		{ "0.0.0.0", 0, false },
		{ "0.1.2.3", -EADDRNOTAVAIL, false },
		{ "127.0.0.1", 0, false },
		{ "127.9.9.9", 0, false },
		{ "::", 0, false },
		{ "::1", 0, false },
	};

	(void)state;
	for (enum world_transport t = 0; t < NUM_TRANSPORTS; t++) {
		world_open(t);
		for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
			struct polycm_id *id = world_id(RDMA_PS_TCP);
			struct polycm_route_info info;
			union sim_sockaddr dst;

			assert_int_equal(world_bind(id, cases[i].address, PORT), cases[i].result);
			info = world_query(id);
			assert_int_equal(info.device != NULL, cases[i].device);
			assert_int_equal(info.port_num, cases[i].device);
			if (cases[i].result)
				assert_int_equal(info.src.ss_family, AF_UNSPEC);
			/* The destination is the wildcard of the same family. */
			assert_int_equal(info.dst.ss_family, info.src.ss_family);
			memcpy(&dst, &info.dst, sizeof(dst));
			if (!cases[i].result)
				assert_true(sim_addr_is_zero(&dst.sa) && !sim_addr_port(&dst.sa));
			world_destroy(id);
		}
		world_close();
	}
}

static void bind_refuses_other_families(void **state)
{
	struct sockaddr_storage addr = { .ss_family = AF_UNIX };
	struct polycm_id *id;

	(void)state;
	world_open(IB);
	id = world_id(RDMA_PS_IB);
	assert_int_equal(sim_cma_ops.bind(&id->sim, (struct sockaddr *)&addr), -EINVAL);
	assert_int_equal(id->sim.state, CMA_IDLE);
	world_destroy(id);
	world_close();
}

static void ipoib_needs_infiniband(void **state)
{
	static const int result[NUM_TRANSPORTS] = { -EINVAL, 0, -EINVAL };

	(void)state;
	for (enum world_transport t = 0; t < NUM_TRANSPORTS; t++) {
		struct polycm_id *id;

		world_open(t);
		id = world_id(RDMA_PS_IPOIB);
		assert_int_equal(world_bind(id, CLIENT, PORT), result[t]);
		world_destroy(id);

		id = world_id(RDMA_PS_IPOIB);
		assert_int_equal(world_resolve_addr(id, SERVER, 1000), 0);
		world_expect(id, result[t] ? RDMA_CM_EVENT_ADDR_ERROR : RDMA_CM_EVENT_ADDR_RESOLVED,
			     result[t]);
		world_destroy(id);
		world_close();
	}
}

/* Takes or gives back the right to bind ports below 1024, if there is one. */
static void allow_low_ports(bool allow)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3];

	assert_int_equal(syscall(SYS_capget, &header, data), 0);
	data[0].effective &= ~(1u << CAP_NET_BIND_SERVICE);
	if (allow)
		data[0].effective |= data[0].permitted & 1u << CAP_NET_BIND_SERVICE;
	assert_int_equal(syscall(SYS_capset, &header, data), 0);
}

static void low_ports_need_a_capability(void **state)
{
	struct polycm_id *id;

	(void)state;
	world_open(ROCE);
	id = world_id(RDMA_PS_TCP);
	allow_low_ports(false);
	assert_int_equal(world_bind(id, CLIENT, 1023), -EACCES);
	assert_int_equal(world_bind(id, CLIENT, 1024), 0);
	allow_low_ports(true);
	world_destroy(id);
	world_close();
}

/* --- Who stands in whose way. --- */

struct binding {
	enum rdma_port_space ps;
	const char *address;
	bool reuse, afonly;
};

static int bind_as(struct polycm_id *id, const struct binding *b)
{
	if (b->reuse)
		assert_int_equal(world_set_int(id, RDMA_OPTION_ID_REUSEADDR, 1), 0);
	if (b->afonly)
		assert_int_equal(world_set_int(id, RDMA_OPTION_ID_AFONLY, 1), 0);
	return world_bind(id, b->address, PORT);
}

static void ports_conflict(void **state)
{
	const enum rdma_port_space tcp = RDMA_PS_TCP, udp = RDMA_PS_UDP;
	const struct {
		struct binding first, second;
		int result;
	} cases[] = {
		{ { tcp, CLIENT, 0, 0 }, { tcp, CLIENT, 0, 0 }, -EADDRINUSE },
		{ { tcp, CLIENT, 0, 0 }, { tcp, "10.0.0.3", 0, 0 }, 0 },
		{ { tcp, CLIENT, 0, 0 }, { tcp, "0.0.0.0", 0, 0 }, -EADDRNOTAVAIL },
		{ { tcp, "0.0.0.0", 0, 0 }, { tcp, CLIENT, 0, 0 }, -EADDRNOTAVAIL },
		{ { tcp, "0.0.0.0", 0, 0 }, { tcp, "0.0.0.0", 0, 0 }, -EADDRNOTAVAIL },
		{ { tcp, CLIENT, 0, 0 }, { tcp, "127.0.0.1", 0, 0 }, -EADDRNOTAVAIL },
		{ { tcp, "127.0.0.1", 0, 0 }, { tcp, "127.0.0.1", 0, 0 }, -EADDRNOTAVAIL },
		{ { tcp, CLIENT, 0, 0 }, { udp, CLIENT, 0, 0 }, 0 },
		{ { tcp, CLIENT, 1, 0 }, { tcp, CLIENT, 1, 0 }, 0 },
		{ { tcp, CLIENT, 1, 0 }, { tcp, CLIENT, 0, 0 }, -EADDRINUSE },
		{ { tcp, CLIENT, 0, 0 }, { tcp, CLIENT, 1, 0 }, -EADDRINUSE },
		{ { tcp, "0.0.0.0", 0, 0 }, { tcp, "::", 0, 0 }, -EADDRNOTAVAIL },
		{ { tcp, "0.0.0.0", 0, 0 }, { tcp, "::", 0, 1 }, 0 },
		{ { tcp, "::", 0, 1 }, { tcp, "0.0.0.0", 0, 0 }, 0 },
		{ { tcp, "::", 0, 1 }, { tcp, "::", 0, 1 }, -EADDRNOTAVAIL },
	};

	(void)state;
	world_open(ROCE);
	sim_lock();
	assert_int_equal(sim_device_add_address(world.client.device, NULL, "10.0.0.3/24"), 0);
	sim_unlock();
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct polycm_id *first = world_id(cases[i].first.ps);
		struct polycm_id *second = world_id(cases[i].second.ps);
		int r;

		assert_int_equal(bind_as(first, &cases[i].first), 0);
		r = bind_as(second, &cases[i].second);
		if (r != cases[i].result)
			fail_msg("case %zu: %d instead of %d", i, r, cases[i].result);
		world_destroy(first);
		/* It was no more than that in the way. */
		if (r)
			assert_int_equal(bind_as(second, &cases[i].second), 0);
		world_destroy(second);
	}
	world_close();
}

/* Also when it became reusable after it was bound; and a listener is unique. */
static void reuse_comes_and_goes(void **state)
{
	struct polycm_id *first, *second;

	(void)state;
	world_open(ROCE);
	first = world_id(RDMA_PS_TCP);
	second = world_id(RDMA_PS_TCP);
	assert_int_equal(world_bind(first, CLIENT, PORT), 0);
	assert_int_equal(world_set_int(first, RDMA_OPTION_ID_REUSEADDR, 1), 0);
	assert_int_equal(world_set_int(second, RDMA_OPTION_ID_REUSEADDR, 1), 0);
	assert_int_equal(world_bind(second, CLIENT, PORT), 0);
	assert_int_equal(world_listen(first), -EADDRINUSE);
	world_destroy(second);
	assert_int_equal(world_listen(first), 0);

	second = world_id(RDMA_PS_TCP);
	assert_int_equal(world_set_int(second, RDMA_OPTION_ID_REUSEADDR, 1), 0);
	assert_int_equal(world_bind(second, CLIENT, PORT), -EADDRINUSE);
	world_destroy(second);
	world_destroy(first);
	world_close();
}

/* An iWARP listener is a TCP socket, whatever its port space. */
static void iwarp_listeners_share_the_tcp_ports(void **state)
{
	static const int result[NUM_TRANSPORTS] = { 0, 0, -EADDRINUSE };

	(void)state;
	for (enum world_transport t = 0; t < NUM_TRANSPORTS; t++) {
		struct polycm_id *tcp, *udp;

		world_open(t);
		tcp = world_listener(RDMA_PS_TCP);
		udp = world_id(RDMA_PS_UDP);
		assert_int_equal(world_bind(udp, SERVER, PORT), 0);
		assert_int_equal(world_listen(udp), result[t]);
		world_destroy(udp);
		world_destroy(tcp);
		world_close();
	}
}

static void listen_binds_by_itself(void **state)
{
	struct polycm_route_info info;
	struct polycm_id *id;
	union sim_sockaddr addr;

	(void)state;
	world_open(ROCE);
	id = world_id(RDMA_PS_TCP);
	assert_int_equal(world_listen(id), 0);
	info = world_query(id);
	memcpy(&addr, &info.src, sizeof(addr));
	assert_int_equal(addr.sa.sa_family, AF_INET);
	assert_int_equal(addr.in.sin_addr.s_addr, 0);
	assert_in_range(ntohs(addr.in.sin_port), 32768, 60999);
	assert_null(info.device);
	world_destroy(id);
	world_close();
}

/* --- Which listener a request is for. --- */

static void requests_find_their_listener(void **state)
{
	static const struct {
		const char *listener;
		bool afonly;
		const char *to;
		int result;
	} cases[] = {
		{ SERVER, false, SERVER, 0 },
		{ SERVER, false, "10.0.0.4", -ECONNREFUSED },
		{ "0.0.0.0", false, SERVER, 0 },
		{ "0.0.0.0", false, "fd00::1", -ECONNREFUSED },
		{ "127.0.0.1", false, SERVER, 0 },
		{ "::", false, "fd00::1", 0 },
		{ "::", false, SERVER, 0 },
		{ "::", true, SERVER, -ECONNREFUSED },
		{ "::", true, "fd00::1", 0 },
	};

	(void)state;
	world_open(ROCE);
	sim_lock();
	assert_int_equal(sim_device_add_address(world.server.device, NULL, "10.0.0.4/24"), 0);
	assert_int_equal(sim_device_add_address(world.server.device, NULL, "fd00::1/64"), 0);
	sim_set_current_node(world.server.node);
	sim_unlock();
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		union sim_sockaddr src = world_address(CLIENT, 40000);
		union sim_sockaddr dst = world_address(cases[i].to, PORT);
		struct sim_port *port = &world.server.device->ports[0];
		struct polycm_id *id = world_id(RDMA_PS_TCP);
		struct sim_id *listener = NULL, *child = NULL;
		struct polycm_event event = { .size = sizeof(event),
					      .type = RDMA_CM_EVENT_CONNECT_REQUEST };
		int r;

		if (cases[i].afonly)
			assert_int_equal(world_set_int(id, RDMA_OPTION_ID_AFONLY, 1), 0);
		assert_int_equal(world_bind(id, cases[i].listener, PORT), 0);
		sim_lock();
		/* Bound, but not listening. */
		assert_int_equal(cma_request(port, RDMA_PS_TCP, IBV_QPT_RC, &src, &dst, &listener,
					     &child), -ENOENT);
		sim_unlock();
		assert_int_equal(world_listen(id), 0);

		sim_lock();
		assert_int_equal(cma_request(port, RDMA_PS_UDP, IBV_QPT_UD, &src, &dst, &listener,
					     &child), -ENOENT);
		assert_int_equal(cma_request(port, RDMA_PS_TCP, IBV_QPT_UC, &src, &dst, &listener,
					     &child), -ECONNREFUSED);
		r = cma_request(port, RDMA_PS_TCP, IBV_QPT_RC, &src, &dst, &listener, &child);
		if (r != cases[i].result)
			fail_msg("case %zu: %d instead of %d", i, r, cases[i].result);
		if (!r) {
			assert_ptr_equal(listener, &id->sim);
			assert_int_equal(child->state, CMA_CONNECT);
			assert_int_equal(child->ps, RDMA_PS_TCP);
			assert_false(child->accepted);
			assert_ptr_equal(child->port, port);
			assert_memory_equal(&child->src, &dst, sizeof(dst));
			assert_memory_equal(&child->dst, &src, sizeof(src));
			/* Nothing but the request is posted for it, and a full backlog ends it. */
			assert_int_equal(cma_post_simple(child, RDMA_CM_EVENT_DISCONNECTED, 0),
					 -ECANCELED);
			id->backlog = 0;
			assert_int_equal(cma_post_request(listener, child, &event), -ENOMEM);
		}
		assert_int_equal(sim_cma_live_ids(), 1);
		sim_unlock();
		world_destroy(id);
	}
	world_close();
}

/* Two listeners on one port, each of an address of its own. */
static void the_address_chooses_the_listener(void **state)
{
	union sim_sockaddr src = world_address(CLIENT, 40000), dst = world_address(SERVER, PORT);
	struct sim_id *listener, *child;
	struct polycm_id *exact, *other;
	struct polycm_event event = { .size = sizeof(event), .type = RDMA_CM_EVENT_CONNECT_REQUEST };

	(void)state;
	world_open(ROCE);
	sim_lock();
	assert_int_equal(sim_device_add_address(world.server.device, NULL, "10.0.0.4/24"), 0);
	sim_unlock();
	other = world_id(RDMA_PS_TCP);
	exact = world_id(RDMA_PS_TCP);
	assert_int_equal(world_bind(other, "10.0.0.4", PORT), 0);
	assert_int_equal(world_listen(other), 0);
	assert_int_equal(world_bind(exact, SERVER, PORT), 0);
	assert_int_equal(world_listen(exact), 0);
	sim_lock();
	assert_int_equal(cma_request(&world.server.device->ports[0], RDMA_PS_TCP, IBV_QPT_RC, &src,
				     &dst, &listener, &child), 0);
	assert_ptr_equal(listener, &exact->sim);
	assert_int_equal(cma_post_request(listener, child, &event), 0);
	sim_unlock();
	world_destroy(world_request(exact));
	world_destroy(exact);
	world_destroy(other);
	world_close();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bind_checks_the_address),
		cmocka_unit_test(bind_refuses_other_families),
		cmocka_unit_test(ipoib_needs_infiniband),
		cmocka_unit_test(low_ports_need_a_capability),
		cmocka_unit_test(ports_conflict),
		cmocka_unit_test(reuse_comes_and_goes),
		cmocka_unit_test(iwarp_listeners_share_the_tcp_ports),
		cmocka_unit_test(listen_binds_by_itself),
		cmocka_unit_test(requests_find_their_listener),
		cmocka_unit_test(the_address_chooses_the_listener),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
