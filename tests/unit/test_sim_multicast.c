/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_sim_multicast.c - joining and leaving groups: who may, which group GID
 * an address means, and what the event says.
 */
#include "config.h"

#include <errno.h>
#include <string.h>

#include "providers/soft/fabric/world.h"
#include "sim_world.h"

static char context[2];		/* handles of joins */

static int join(struct polycm_id *id, const char *address, void *group)
{
	union sim_sockaddr addr = world_address(address, 0);
	struct polycm_multicast mc = { .size = sizeof(mc), .group = group, .addr = &addr.sa };

	return sim_cma_ops.join_multicast(&id->sim, &mc);
}

static struct polycm_id *bound(enum rdma_port_space ps)
{
	struct polycm_id *id = world_id(ps);

	assert_int_equal(world_bind(id, CLIENT, 0), 0);
	return id;
}

static void who_may_join(void **state)
{
	static const int result[NUM_TRANSPORTS] = { 0, 0, -ENOSYS };

	(void)state;
	for (enum world_transport t = 0; t < NUM_TRANSPORTS; t++) {
		struct polycm_id *id;

		world_open(t);
		id = world_id(RDMA_PS_UDP);
		assert_int_equal(join(id, "239.1.2.3", context), -EINVAL);	/* no device */
		assert_int_equal(world_resolve_addr(id, SERVER, 1000), 0);
		assert_int_equal(join(id, "239.1.2.3", context), -EINVAL);	/* not yet */
		world_expect(id, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
		assert_int_equal(join(id, "239.1.2.3", context), result[t]);
		if (!result[t])
			world_expect(id, RDMA_CM_EVENT_MULTICAST_JOIN, 0);
		world_destroy(id);

		id = bound(RDMA_PS_TCP);
		assert_int_equal(join(id, "239.1.2.3", context), -EINVAL);
		world_destroy(id);
		world_close();
	}
}

static void groups_have_gids(void **state)
{
	static const struct {
		enum world_transport transport;
		enum rdma_port_space ps;
		const char *address, *mgid;
		int result;
	} cases[] = {
		{ ROCE, RDMA_PS_UDP, "239.1.2.3", "::ffff:239.1.2.3", 0 },
		{ ROCE, RDMA_PS_UDP, "0.0.0.0", NULL, -EINVAL },
		{ ROCE, RDMA_PS_UDP, "ff0e::1", NULL, -524 },
		{ IB, RDMA_PS_UDP, "239.1.2.3", "ff12:4001:ffff::f01:203", 0 },
		{ IB, RDMA_PS_IPOIB, "239.1.2.3", "ff12:401b:ffff::f01:203", 0 },
		{ IB, RDMA_PS_UDP, "ff0e::1:2", "ff12:6001:ffff::1:2", 0 },
		{ IB, RDMA_PS_IPOIB, "ff0e::1:2", "ff12:601b:ffff::1:2", 0 },
		{ IB, RDMA_PS_UDP, "ff12:a01b:1::7", "ff12:a01b:1::7", 0 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		const struct polycm_event *event;
		const struct ibv_ah_attr *ah;
		union sim_sockaddr mgid;
		struct polycm_id *id;

		world_open(cases[i].transport);
		id = bound(cases[i].ps);
		assert_int_equal(join(id, cases[i].address, context), cases[i].result);
		if (!cases[i].result) {
			event = world_expect(id, RDMA_CM_EVENT_MULTICAST_JOIN, 0);
			ah = &event->param.ud.ah_attr;
			/* As text it would be the same IPv6 address. */
			mgid = world_address(cases[i].mgid, 0);
			assert_memory_equal(ah->grh.dgid.raw, &mgid.in6.sin6_addr, 16);
			assert_true(event->is_ud);
			assert_ptr_equal(event->group, context);
			assert_int_equal(event->param.ud.private_data_len, 0);
			assert_int_equal(event->param.ud.qp_num, 0xffffff);
			assert_int_equal(event->param.ud.qkey,
					 cases[i].ps == RDMA_PS_UDP ? 0x01234567 : 0x0b1b);
			assert_int_equal(ah->is_global, 1);
			assert_int_equal(ah->port_num, 1);
			if (cases[i].transport == IB)
				assert_in_range(ah->dlid, 0xc000, 0xfffe);
			else
				assert_int_equal(ah->grh.hop_limit, 64);
		}
		world_none(id, SIM_MS(1000));
		world_destroy(id);
		world_close();
	}
}

static void leaving(void **state)
{
	(void)state;
	for (enum world_transport t = ROCE; t <= IB; t++) {
		struct polycm_id *id;

		world_open(t);
		id = bound(RDMA_PS_UDP);
		assert_int_equal(join(id, "239.1.2.3", &context[0]), 0);
		assert_int_equal(join(id, "239.1.2.4", &context[1]), 0);
		/* Before its event came: then it never does. */
		assert_int_equal(sim_cma_ops.leave_multicast(&id->sim, &context[0]), 0);
		assert_int_equal(sim_cma_ops.leave_multicast(&id->sim, &context[0]),
				 -EADDRNOTAVAIL);
		assert_ptr_equal(world_expect(id, RDMA_CM_EVENT_MULTICAST_JOIN, 0)->group,
				 &context[1]);
		assert_int_equal(sim_cma_ops.leave_multicast(&id->sim, &context[1]), 0);
		assert_int_equal(join(id, "239.1.2.3", &context[0]), 0);
		world_destroy(id);	/* leaves by itself */
		world_advance(SIM_MS(1000));
		world_close();
	}
}

static void set_port(struct polycm_id *id, bool up)
{
	sim_lock();
	sim_port_set_state(id->sim.port, up);
	sim_unlock();
}

/* On InfiniBand they are the subnet administrator's, who forgets a port that goes down. */
static void groups_of_a_port_that_goes_down(void **state)
{
	(void)state;
	for (enum world_transport t = ROCE; t <= IB; t++) {
		struct polycm_id *id, *other;

		world_open(t);
		id = bound(RDMA_PS_UDP);
		other = bound(RDMA_PS_UDP);	/* in no group: not told */
		assert_int_equal(join(id, "239.1.2.3", &context[0]), 0);
		world_expect(id, RDMA_CM_EVENT_MULTICAST_JOIN, 0);
		/* Of this one the answer is still to come: it is the same. */
		assert_int_equal(join(id, "239.1.2.4", &context[1]), 0);
		set_port(id, false);
		if (t == IB) {
			bool seen[2] = { false };

			for (unsigned int i = 0; i < 2; i++) {
				const struct polycm_event *event =
					world_expect(id, RDMA_CM_EVENT_MULTICAST_ERROR, -ENETRESET);

				assert_true(event->is_ud);
				seen[event->group == &context[1]] = true;
			}
			assert_true(seen[0] && seen[1]);
		} else {
			world_expect(id, RDMA_CM_EVENT_MULTICAST_JOIN, 0);
		}
		set_port(id, true);
		world_none(id, SIM_MS(1000));
		world_none(other, SIM_MS(1000));
		/* Left and joined again. */
		assert_int_equal(sim_cma_ops.leave_multicast(&id->sim, &context[0]), 0);
		assert_int_equal(join(id, "239.1.2.3", &context[0]), 0);
		world_expect(id, RDMA_CM_EVENT_MULTICAST_JOIN, 0);
		world_destroy(other);
		world_destroy(id);
		world_close();
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(who_may_join),
		cmocka_unit_test(groups_have_gids),
		cmocka_unit_test(leaving),
		cmocka_unit_test(groups_of_a_port_that_goes_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
