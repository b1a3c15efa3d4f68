/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Ports in a shared fabric.  On the real clock a port number is drawn by chance: processes do
 * not follow each other's draws.  What ports count is in a table that other processes write.
 */
#include "config.h"

#include "providers/sim/fabric_open.h"
#include "providers/soft/host/host.h"
#include "providers/soft/wire/address.h"
#include "providers/soft/fabric/counters.h"
#include "sim_fake.h"
#include "tests/cmocka_all.h"

#define DRAWS 8u
#define SEED 1u

/* The first ports that a process gets.  By chance the same ones: once in 10^35 runs. */
static void draw(enum sim_clock clock, uint16_t ret_ports[DRAWS])
{
	static char ids[DRAWS];		/* only compared */

	assert_int_equal(sim_engine_start(clock, SEED), 0);
	sim_lock();
	assert_int_equal(sim_fabric_open_default(), 0);
	for (unsigned int i = 0; i < DRAWS; i++) {
		union sim_sockaddr addr = { .in = { .sin_family = AF_INET } };

		assert_int_equal(sim_bind_port(sim_current_node(), RDMA_PS_TCP, &addr, 0,
					       (struct sim_id *)(void *)&ids[i]), 0);
		ret_ports[i] = sim_addr_port(&addr.sa);
		assert_in_range(ret_ports[i], 1024, UINT16_MAX);
	}
	sim_fabric_close();
	sim_unlock();
	sim_engine_stop();
}

static void chance_or_the_seed(void **state)
{
	uint16_t first[DRAWS], second[DRAWS];

	(void)state;
	draw(SIM_CLOCK_REAL, first);
	draw(SIM_CLOCK_REAL, second);
	assert_memory_not_equal(first, second, sizeof(first));
	draw(SIM_CLOCK_VIRTUAL, first);
	draw(SIM_CLOCK_VIRTUAL, second);
	assert_memory_equal(first, second, sizeof(first));
}

/* No process has such a slot: the row is free. */
static void a_row_of_counters_may_name_anybody(void **state)
{
	static const uint64_t nobody[] = { UINT64_MAX, UINT32_MAX, SIM_MAX_SLOTS + 1, 1ull << 32 };
	struct sim_counters_area *area;
	struct sim_port *port;

	(void)state;
	assert_int_equal(sim_engine_start(SIM_CLOCK_REAL, SEED), 0);
	sim_lock();
	assert_int_equal(sim_fabric_open_default(), 0);
	assert_true(sim_segment_joined());
	area = sim_segment_area(SIM_AREA_COUNTERS);
	port = sim_port_by_index(0);
	assert_non_null(port);
	for (size_t i = 0; i < sizeof(nobody) / sizeof(nobody[0]); i++) {
		for (unsigned int row = 0; row < SIM_COUNTER_ROWS; row++)
			atomic_store(&area->owner[row], nobody[i]);
		sim_counters_renew();
		assert_false(port->counters_shared);
		assert_ptr_equal(port->counters, &area->of[0][0].counters);
	}
	sim_fabric_close();
	sim_unlock();
	sim_engine_stop();
}

static int set_up(void **state)
{
	(void)state;
	sim_fake_init();
	sim_fake_make_runtime_dir();
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	sim_fake_remove_runtime_dir();
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(chance_or_the_seed),
		cmocka_unit_test(a_row_of_counters_may_name_anybody),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
