/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Packets on a slow link whose sender, a real process, is killed before they arrive: they arrive all
 * the same.
 */
#include "config.h"

#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "providers/soft/fabric/fabric.h"
#include "providers/soft/host/host.h"
#include "providers/soft/link/link.h"
#include "providers/soft/link/shm/shm.h"
#include "providers/soft/shm/segment.h"
#include "shm_child.h"
#include "sim_fake.h"
#include "tests/cmocka_all.h"

/* Long enough that the child is killed before. */
#define LINKS "links = ( { latency = \"300 ms\"; } );\n"

static char path[256];
static _Atomic unsigned int packets, in_order, deaths, packets_before_death;

static void count_death(unsigned int slot)
{
	(void)slot;
	atomic_store(&packets_before_death, atomic_load(&packets));
	deaths++;
}

static void count_packet(const struct sim_packet *packet)
{
	const unsigned int expected = packets++;

	in_order += packet->len == sizeof(expected) &&
		    !memcmp(packet->data, &expected, sizeof(expected));
}

static int join(void **state)
{
	FILE *file;
	int r;

	(void)state;
	sim_fake_init();
	sim_fake_make_runtime_dir();
	snprintf(path, sizeof(path), "%s", sim_fake_path("links.cfg"));
	file = fopen(path, "w");
	assert_non_null(file);
	fputs(LINKS, file);
	assert_int_equal(fclose(file), 0);
	assert_int_equal(setenv("SHM_CHILD_SCENARIO", path, 1), 0);
	assert_int_equal(sim_engine_start(SIM_CLOCK_REAL, 1), 0);
	packets = in_order = deaths = 0;
	sim_lock();
	r = shm_child_open(path);
	sim_link_process_died = count_death;
	sim_link_set_handler(SIM_PACKET_RC, count_packet);
	sim_unlock();
	return r;
}

static int leave(void **state)
{
	(void)state;
	sim_lock();
	sim_link_process_died = NULL;
	sim_link_set_handler(SIM_PACKET_RC, NULL);
	sim_fabric_close();
	sim_unlock();
	sim_engine_stop();
	assert_int_equal(remove(path), 0);
	sim_fake_remove_runtime_dir();
	return 0;
}

static void await(const _Atomic unsigned int *counter, unsigned int num)
{
	sim_lock();
	assert_int_equal(sim_engine_need_thread(), 0);
	sim_unlock();
	while (atomic_load(counter) < num)
		sched_yield();
}

/* In order, and before its end is noticed. */
static void they_arrive_before_the_end(void **state)
{
	struct shm_child child;

	(void)state;
	shm_child_start(&child, "flood");
	assert_true(WIFSIGNALED(shm_child_kill(&child)));
	await(&deaths, 1);
	assert_int_equal(atomic_load(&packets_before_death), SHM_CHILD_FLOOD);
	assert_int_equal(atomic_load(&in_order), SHM_CHILD_FLOOD);
	assert_int_equal(sim_link_under_way(), 0);
}

/* Also when it ends by itself, and takes down its fabric. */
static void they_arrive_after_an_exit(void **state)
{
	struct shm_child child;

	(void)state;
	shm_child_start(&child, "flood");
	assert_int_equal(shm_child_end(&child), 0);
	await(&deaths, 1);
	assert_int_equal(atomic_load(&packets_before_death), SHM_CHILD_FLOOD);
	assert_int_equal(atomic_load(&in_order), SHM_CHILD_FLOOD);
}

/* Nobody waits for them when another process has its slot. */
static void they_arrive_though_it_has_an_heir(void **state)
{
	struct shm_child child;
	struct sim_slot *slot;

	(void)state;
	shm_child_start(&child, "flood");
	sim_lock();
	/* It is met. */
	sim_shm_receive();
	assert_true(WIFSIGNALED(shm_child_kill(&child)));
	slot = sim_segment_peer(child.slot);
	sim_segment_lock();
	assert_true(sim_segment_reclaim(child.slot));
	atomic_fetch_add(&slot->generation, 1);
	atomic_store(&slot->state, SIM_SLOT_LIVE);
	sim_segment_unlock();
	sim_link_meet(child.slot);
	sim_unlock();
	assert_int_equal(atomic_load(&deaths), 1);
	await(&packets, SHM_CHILD_FLOOD);
	assert_int_equal(atomic_load(&in_order), SHM_CHILD_FLOOD);
	atomic_store(&slot->state, SIM_SLOT_FREE);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(they_arrive_before_the_end, join, leave),
		cmocka_unit_test_setup_teardown(they_arrive_after_an_exit, join, leave),
		cmocka_unit_test_setup_teardown(they_arrive_though_it_has_an_heir, join, leave),
	};
	int child = shm_child_main(argc, argv);

	if (child >= 0)
		return child;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
