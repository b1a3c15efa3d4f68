/* SPDX-License-Identifier: BSD-2-Clause */
/* test_sim_resolve.c - address and route resolution: results, errors, times. */
#include "config.h"

#include <errno.h>
#include <string.h>

#include "providers/soft/faults/fault.h"
#include "sim_world.h"

#define NEIGHBOUR SIM_US(20)
#define LOCAL SIM_US(1)
#define SA_QUERY SIM_US(50)

/* --- rdma_resolve_addr() --- */

static void addresses_resolve(void **state)
{
	static const struct {
		const char *to, *source;
		uint64_t delay;
	} cases[] = {
		{ SERVER, CLIENT, NEIGHBOUR },
		{ CLIENT, CLIENT, LOCAL },
		{ "127.0.0.1", "127.0.0.1", LOCAL },
		{ "0.0.0.0", "127.0.0.1", LOCAL },
	};

	(void)state;
	for (enum world_transport t = 0; t < NUM_TRANSPORTS; t++) {
		world_open(t);
		for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
			struct polycm_id *id = world_id(RDMA_PS_TCP);
			struct polycm_route_info info;
			union sim_sockaddr src, want = world_address(cases[i].source, 0);
			uint64_t start = world_now();

			assert_int_equal(world_resolve_addr(id, cases[i].to, 1000), 0);
			assert_null(world_query(id).device);
			world_expect(id, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
			assert_int_equal(world_now() - start, cases[i].delay);
			info = world_query(id);
			assert_ptr_equal(info.device, world.client.device);
			assert_int_equal(info.port_num, 1);
			assert_int_equal(info.num_paths, 0);
			memcpy(&src, &info.src, sizeof(src));
			assert_int_equal(src.in.sin_addr.s_addr, want.in.sin_addr.s_addr);
			assert_in_range(ntohs(src.in.sin_port), 32768, 60999);
			world_destroy(id);
		}
		world_close();
	}
}

static void unknown_addresses_time_out(void **state)
{
	static const int timeouts[] = { 0, 1, 10, 2000 };

	(void)state;
	for (enum world_transport t = 0; t < NUM_TRANSPORTS; t++) {
		world_open(t);
		for (size_t i = 0; i < ARRAY_SIZE(timeouts); i++) {
			struct polycm_id *id = world_id(RDMA_PS_TCP);
			uint64_t start = world_now();

			assert_int_equal(world_resolve_addr(id, NOBODY, timeouts[i]), 0);
			world_expect(id, RDMA_CM_EVENT_ADDR_ERROR, -ETIMEDOUT);
			assert_int_equal(world_now() - start, SIM_MS(timeouts[i]));
			/* Another try on the same id, which keeps its port. */
			assert_int_equal(id->sim.state, CMA_ADDR_BOUND);
			assert_int_equal(world_resolve_addr(id, SERVER, 1000), 0);
			world_expect(id, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
			world_destroy(id);
		}
		world_close();
	}
}

/* No time for an answer: the neighbour is not asked for less than it takes. */
static void no_time_is_a_timeout(void **state)
{
	struct polycm_id *id;

	(void)state;
	world_open(ROCE);
	id = world_id(RDMA_PS_TCP);
	assert_int_equal(world_resolve_addr(id, SERVER, 0), 0);
	world_expect(id, RDMA_CM_EVENT_ADDR_ERROR, -ETIMEDOUT);
	assert_int_equal(world_resolve_addr(id, CLIENT, 0), 0);
	world_expect(id, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
	world_destroy(id);
	world_close();
}

/* Nobody has to answer for a group. */
static void groups_resolve(void **state)
{
	(void)state;
	for (enum world_transport t = 0; t < NUM_TRANSPORTS; t++) {
		struct polycm_id *id;

		world_open(t);
		id = world_id(RDMA_PS_UDP);
		assert_int_equal(world_bind(id, CLIENT, 0), 0);
		assert_int_equal(world_resolve_addr(id, "239.1.2.3", 0), 0);
		world_expect(id, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
		world_destroy(id);
		id = world_id(RDMA_PS_UDP);
		assert_int_equal(world_bind(id, CLIENT, 0), 0);
		assert_int_equal(world_resolve_addr(id, "255.255.255.255", 0), 0);
		world_expect(id, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
		world_destroy(id);
		world_close();
	}
}

static void resolving_fails_at_once(void **state)
{
	static const struct {
		const char *bound, *source, *to;
		int result;
		enum cma_state after;
	} cases[] = {
		{ NULL, NULL, "fd00::1", -ENETUNREACH, CMA_ADDR_BOUND },
		{ "0.0.0.0", NULL, "fd00::1", -EINVAL, CMA_ADDR_BOUND },
		{ NULL, "::", SERVER, -EINVAL, CMA_ADDR_BOUND },
		{ NULL, NOBODY, SERVER, -EADDRNOTAVAIL, CMA_IDLE },
		{ "127.0.0.1", NULL, SERVER, -EINVAL, CMA_ADDR_BOUND },
	};

	(void)state;
	for (enum world_transport t = 0; t < NUM_TRANSPORTS; t++) {
		world_open(t);
		for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
			struct polycm_id *id = world_id(RDMA_PS_TCP);
			union sim_sockaddr src, dst = world_address(cases[i].to, PORT);

			if (cases[i].bound)
				assert_int_equal(world_bind(id, cases[i].bound, 0), 0);
			if (cases[i].source)
				src = world_address(cases[i].source, 0);
			assert_int_equal(sim_cma_ops.resolve_addr(&id->sim, cases[i].source ?
								  &src.sa : NULL, &dst.sa, 1000),
					 cases[i].result);
			assert_int_equal(id->sim.state, cases[i].after);
			world_none(id, SIM_MS(2000));
			world_destroy(id);
		}
		world_close();
	}
}

/* The source decides the node, before the node that is in use. */
static void the_source_decides(void **state)
{
	union sim_sockaddr src = world_address(SERVER, 0), dst = world_address(CLIENT, PORT);
	struct polycm_id *id;

	(void)state;
	world_open(ROCE);
	id = world_id(RDMA_PS_TCP);
	assert_int_equal(sim_cma_ops.resolve_addr(&id->sim, &src.sa, &dst.sa, 1000), 0);
	world_expect(id, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
	assert_ptr_equal(world_query(id).device, world.server.device);
	world_destroy(id);
	world_close();
}

static void a_port_that_is_down_answers_nobody(void **state)
{
	struct polycm_id *id;

	(void)state;
	world_open(ROCE);
	world.server.device->ports[0].state = IBV_PORT_DOWN;
	id = world_id(RDMA_PS_TCP);
	assert_int_equal(world_resolve_addr(id, SERVER, 500), 0);
	world_expect(id, RDMA_CM_EVENT_ADDR_ERROR, -ETIMEDOUT);
	world_destroy(id);
	world_close();
}

/* Destroyed while the query is out: nothing comes of it. */
static void destroying_ends_a_query(void **state)
{
	struct polycm_id *id;

	(void)state;
	world_open(IB);
	id = world_id(RDMA_PS_TCP);
	assert_int_equal(world_resolve_addr(id, SERVER, 1000), 0);
	world_destroy(id);
	world_advance(SIM_MS(2000));
	world_close();
}

/* --- rdma_resolve_route() --- */

static struct polycm_id *addr_resolved(const char *to)
{
	struct polycm_id *id = world_id(RDMA_PS_TCP);

	assert_int_equal(world_resolve_addr(id, to, 1000), 0);
	world_expect(id, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
	return id;
}

static void routes_resolve(void **state)
{
	static const uint64_t delay[NUM_TRANSPORTS] = { LOCAL, SA_QUERY, LOCAL };
	static const char *const to[] = { SERVER, CLIENT, "127.0.0.1" };

	(void)state;
	for (enum world_transport t = 0; t < NUM_TRANSPORTS; t++) {
		world_open(t);
		for (size_t i = 0; i < ARRAY_SIZE(to); i++) {
			struct polycm_id *id = addr_resolved(to[i]);
			uint64_t start = world_now();

			assert_int_equal(sim_cma_ops.resolve_route(&id->sim, 0), -EINVAL);
			assert_int_equal(sim_cma_ops.resolve_route(&id->sim, 2000), 0);
			world_expect(id, RDMA_CM_EVENT_ROUTE_RESOLVED, 0);
			assert_int_equal(world_now() - start, delay[t]);
			world_destroy(id);
		}
		world_close();
	}
}

static void a_path_shows_what_was_resolved(void **state)
{
	static const uint8_t v4_mapped[12] = { [10] = 0xff, [11] = 0xff };
	uint8_t tos = 0x28;
	struct polycm_route_info info;
	struct ibv_sa_path_rec *path = &info.path[0];
	struct polycm_id *id;

	(void)state;
	for (enum world_transport t = 0; t < NUM_TRANSPORTS; t++) {
		union sim_sockaddr src = world_address(CLIENT, 40000);
		union sim_sockaddr dst = world_address(SERVER, 7471);

		world_open(t);
		id = world_id(RDMA_PS_TCP);
		assert_int_equal(sim_cma_ops.set_option(&id->sim, RDMA_OPTION_ID,
							RDMA_OPTION_ID_TOS, &tos, 1), 0);
		assert_int_equal(sim_cma_ops.resolve_addr(&id->sim, &src.sa, &dst.sa, 1000), 0);
		world_expect(id, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
		assert_int_equal(sim_cma_ops.resolve_route(&id->sim, 2000), 0);
		world_expect(id, RDMA_CM_EVENT_ROUTE_RESOLVED, 0);
		info = world_query(id);
		assert_int_equal(info.num_paths, t != IWARP);
		/* Only InfiniBand shows it here. */
		assert_int_equal(info.pkey, t == IB ? htons(0xffff) : 0);
		if (t == ROCE) {
			assert_memory_equal(path->sgid.raw, v4_mapped, sizeof(v4_mapped));
			assert_memory_equal(path->sgid.raw + 12, &src.in.sin_addr, 4);
			assert_memory_equal(path->dgid.raw + 12, &dst.in.sin_addr, 4);
			assert_int_equal(path->mtu, IBV_MTU_1024);
			assert_int_equal(path->packet_life_time, 16);
			assert_int_equal(ntohl(path->flow_label), 0x308ef);
			assert_int_equal(path->hop_limit, 64);
			assert_int_equal(path->traffic_class, 0x28);
			assert_int_equal(path->rate, IBV_RATE_MAX);
			assert_int_equal(path->slid, 0);
		} else if (t == IB) {
			assert_int_equal(path->packet_life_time, 18);
			assert_int_equal(path->mtu, world.client.device->ports[0].active_mtu);
			assert_int_equal(ntohs(path->slid), world.client.device->ports[0].lid);
			assert_int_equal(ntohs(path->dlid), world.server.device->ports[0].lid);
			assert_int_not_equal(path->slid, path->dlid);
			assert_int_equal(path->hop_limit, 0);
			assert_memory_equal(&path->dgid, &world.server.device->ports[0].gids[0].gid,
					    sizeof(path->dgid));
		}
		if (t != IWARP) {
			assert_int_equal(path->pkey, htons(0xffff));
			assert_int_equal(path->numb_path, 1);
			assert_int_equal(path->reversible, 1);
			assert_memory_equal(&path->sgid, &info.sgid, sizeof(info.sgid));
			assert_memory_equal(&path->dgid, &info.dgid, sizeof(info.dgid));
		}
		world_destroy(id);
		world_close();
	}
}

/* GIDs in an id: of the addresses on RoCE, on iWARP only what binding gave, of the ports on IB. */
static void ids_show_gids(void **state)
{
	static const union ibv_gid zero;
	const union ibv_gid any = { .raw = { [10] = 0xff, 0xff } };
	const union ibv_gid loopback = { .raw = { [10] = 0xff, 0xff, 127, 0, 0, 1 } };
	struct polycm_route_info info;
	struct polycm_id *id;

	(void)state;
	for (enum world_transport t = 0; t < NUM_TRANSPORTS; t++) {
		for (int bound = 0; bound < 2; bound++) {
			const union ibv_gid *own;

			world_open(t);
			own = &world.client.device->ports[0].gids[0].gid;
			id = world_id(RDMA_PS_TCP);
			if (bound) {
				assert_int_equal(world_bind(id, CLIENT, 0), 0);
				info = world_query(id);
				assert_memory_equal(&info.dgid, t == ROCE ? &any : &zero, 16);
				if (t != ROCE)
					assert_memory_equal(&info.sgid, own, 16);
			}
			assert_int_equal(world_resolve_addr(id, "127.0.0.1", 1000), 0);
			world_expect(id, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
			info = world_query(id);
			/* A loopback source alone has a P_Key on Ethernet. */
			assert_int_equal(info.pkey, t == IB || !bound ? htons(0xffff) : 0);
			if (t == ROCE)
				assert_memory_equal(&info.dgid, &loopback, 16);
			if (t == IWARP) {
				assert_memory_equal(&info.dgid, &zero, 16);
				assert_memory_equal(&info.sgid, bound ? own : &zero, 16);
			}
			if (t == IB) {
				assert_memory_equal(&info.dgid, own, 16);
				assert_memory_equal(&info.sgid, own, 16);
			}
			world_destroy(id);
			world_close();
		}
	}
}

/* On RoCE it also stands for the packet lifetime, one less; on InfiniBand the SA's counts. */
static void ack_timeout_decides_the_packet_lifetime(void **state)
{
	static const uint8_t lifetime[2] = { 13, 18 };
	uint8_t value = 14;

	(void)state;
	for (enum world_transport t = ROCE; t <= IB; t++) {
		struct polycm_id *id;

		world_open(t);
		id = addr_resolved(SERVER);
		assert_int_equal(sim_cma_ops.set_option(&id->sim, RDMA_OPTION_ID,
							RDMA_OPTION_ID_ACK_TIMEOUT, &value, 1), 0);
		assert_int_equal(sim_cma_ops.resolve_route(&id->sim, 2000), 0);
		world_expect(id, RDMA_CM_EVENT_ROUTE_RESOLVED, 0);
		assert_int_equal(world_query(id).path[0].packet_life_time, lifetime[t]);
		world_destroy(id);
		world_close();
	}
}

static uint32_t lookup_rule(enum polycm_sim_action action, uint64_t delay)
{
	struct polycm_sim_fault_rule rule = {
		.size = sizeof(rule), .action = action, .message = "path", .delay_ns = delay,
	};
	uint32_t number;
	char why[128];

	assert_int_equal(sim_fault_add(&rule, &number, why, sizeof(why)), 0);
	return number;
}

static void route_errors(void **state)
{
	struct polycm_id *id;
	uint64_t start;
	uint32_t rule;

	(void)state;
	world_open(ROCE);
	id = addr_resolved(SERVER);
	world.client.device->ports[0].netdev_mtu = 351;
	assert_int_equal(sim_cma_ops.resolve_route(&id->sim, 2000), -EINVAL);
	world.client.device->ports[0].netdev_mtu = 352;
	assert_int_equal(sim_cma_ops.resolve_route(&id->sim, 2000), 0);
	world_expect(id, RDMA_CM_EVENT_ROUTE_RESOLVED, 0);
	assert_int_equal(world_query(id).path[0].mtu, IBV_MTU_256);
	world_destroy(id);
	world_close();

	/* The subnet administrator: no way to it; no record; silent, eleven times a tenth; late. */
	world_open(IB);
	id = addr_resolved(SERVER);
	world.client.device->ports[0].state = IBV_PORT_INIT;
	assert_int_equal(sim_cma_ops.resolve_route(&id->sim, 2000), -EAGAIN);
	world.client.device->ports[0].state = IBV_PORT_ACTIVE;
	world.server.device->ports[0].state = IBV_PORT_DOWN;
	start = world_now();
	assert_int_equal(sim_cma_ops.resolve_route(&id->sim, 2000), 0);
	world_expect(id, RDMA_CM_EVENT_ROUTE_ERROR, -EINVAL);
	assert_int_equal(world_now() - start, SIM_US(50));
	world.server.device->ports[0].state = IBV_PORT_ACTIVE;
	start = world_now();
	rule = lookup_rule(POLYCM_SIM_ANSWER_NEVER, 0);
	assert_int_equal(sim_cma_ops.resolve_route(&id->sim, 2000), 0);
	world_expect(id, RDMA_CM_EVENT_ROUTE_ERROR, -ETIMEDOUT);
	assert_int_equal(world_now() - start, SIM_MS(2200));
	start = world_now();
	assert_int_equal(sim_cma_ops.resolve_route(&id->sim, 5), 0);
	world_expect(id, RDMA_CM_EVENT_ROUTE_ERROR, -ETIMEDOUT);
	assert_int_equal(world_now() - start, SIM_MS(11));
	assert_int_equal(sim_fault_remove(rule), 0);
	/* Another try on the same id: an answer within the time is as good as any. */
	rule = lookup_rule(POLYCM_SIM_ANSWER_LATE, SIM_MS(2199));
	start = world_now();
	assert_int_equal(sim_cma_ops.resolve_route(&id->sim, 2000), 0);
	world_expect(id, RDMA_CM_EVENT_ROUTE_RESOLVED, 0);
	assert_int_equal(world_now() - start, SIM_MS(2199) + SIM_US(50));
	assert_int_equal(sim_fault_remove(rule), 0);
	world_destroy(id);
	world_close();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(addresses_resolve),
		cmocka_unit_test(unknown_addresses_time_out),
		cmocka_unit_test(no_time_is_a_timeout),
		cmocka_unit_test(groups_resolve),
		cmocka_unit_test(resolving_fails_at_once),
		cmocka_unit_test(the_source_decides),
		cmocka_unit_test(a_port_that_is_down_answers_nobody),
		cmocka_unit_test(destroying_ends_a_query),
		cmocka_unit_test(routes_resolve),
		cmocka_unit_test(a_path_shows_what_was_resolved),
		cmocka_unit_test(ids_show_gids),
		cmocka_unit_test(ack_timeout_decides_the_packet_lifetime),
		cmocka_unit_test(route_errors),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
