/* SPDX-License-Identifier: BSD-2-Clause */
/* On the real clock a port is drawn by chance: processes do not follow each other's draws. */
#include "config.h"

#include "providers/sim/fabric_open.h"
#include "providers/soft/host/host.h"
#include "providers/soft/wire/address.h"
#include "providers/soft/fabric/fabric.h"
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
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
