/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The shared fabric with real processes on it: packets of all sizes, processes that die,
 * come and go, what is found in the folder.
 */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "providers/soft/fabric/fabric.h"
#include "providers/soft/host/host.h"
#include "providers/soft/link/shm/shm.h"
#include "providers/soft/shm/segment.h"
#include "providers/soft/wire/address.h"
#include "shm_seen.h"

#define FOLDER "polycm/default-roce"

static void packets_of_all_sizes_go_there_and_back(void **state)
{
	static const size_t sizes[] = {
		0, 1, 7, 8, 9, 56, 63, 64, 65, 255, 256, 1024, 4096, 16383, SIM_LINK_MAX_PACKET,
	};
	static uint8_t bytes[SIM_LINK_MAX_PACKET + 1];
	struct shm_child child;

	(void)state;
	shm_child_start(&child, "echo");
	assert_int_equal(child.slot, 1);
	sim_lock();
	for (unsigned int i = 0; i < ARRAY_SIZE(sizes); i++) {
		for (size_t j = 0; j < sizes[i]; j++)
			bytes[j] = (uint8_t)(i + j * 13);
		assert_int_equal(send_bytes(child.slot, bytes, sizes[i]), 0);
		assert_int_equal(wait_for(i + 1), 0);
		assert_int_equal(seen.from_slot, child.slot);
		assert_int_equal(seen.len, sizes[i]);
		assert_memory_equal(seen.data, bytes, sizes[i]);
	}
	assert_int_equal(send_bytes(child.slot, bytes, SIM_LINK_MAX_PACKET + 1), -EMSGSIZE);
	sim_unlock();
	assert_int_equal(shm_child_end(&child), 0);
}

static void packets_to_ourselves_need_no_ring(void **state)
{
	(void)state;
	sim_lock();
	assert_int_equal(send_bytes(sim_self_slot(), "abc", 3), 0);
	assert_int_equal(seen.count, 0);
	sim_unlock();
	sim_lock();
	assert_int_equal(seen.count, 1);
	assert_memory_equal(seen.data, "abc", 3);
	assert_int_equal(count_files(FOLDER), 1);
	sim_unlock();
}

static void a_poller_needs_no_thread(void **state)
{
	struct shm_child child;

	(void)state;
	shm_child_start(&child, "poll");
	sim_lock();
	assert_int_equal(send_bytes(child.slot, "abc", 3), 0);
	assert_int_equal(wait_for(1), 0);
	assert_memory_equal(seen.data, "abc", 3);
	sim_unlock();
	assert_int_equal(shm_child_end(&child), 0);
}

#define FLOOD 2000u

/* Far more than a ring holds, to a process that takes its time. */
static void flood(struct shm_child *child, const char *mode)
{
	static uint8_t bytes[4000];

	shm_child_start(child, mode);
	sim_lock();
	for (uint32_t i = 0; i < FLOOD; i++) {
		memcpy(bytes, &i, sizeof(i));
		assert_int_equal(send_bytes(child->slot, bytes, sizeof(i) + i % 3996), 0);
	}
	assert_int_equal(seen.count, 0);
	sim_unlock();
	shm_child_tell(child);
}

static void a_slow_receiver_gets_all_in_order(void **state)
{
	struct shm_child child;

	(void)state;
	flood(&child, "deaf");
	sim_lock();
	assert_int_equal(wait_for(FLOOD), 0);
	assert_true(seen.in_order);
	assert_int_equal(seen.count, FLOOD);
	sim_unlock();
	assert_int_equal(shm_child_end(&child), 0);
}

/* A receiver that never reads shall not cost all memory: packets are lost, as on a wire. */
static void what_waits_is_bounded(void **state)
{
	static uint8_t bytes[SIM_LINK_MAX_PACKET];
	const uint32_t sent = (80u << 20) / sizeof(bytes);
	unsigned int one = 1;
	struct shm_child child;
	uint32_t arrived;

	(void)state;
	shm_child_start(&child, "silent");
	sim_lock();
	for (uint32_t i = 0; i < sent; i++) {
		memcpy(bytes, &i, sizeof(i));
		assert_int_equal(send_bytes(child.slot, bytes, sizeof(bytes)), 0);
	}
	sim_unlock();
	shm_child_tell(&child);
	sim_lock();
	sim_engine_need_thread();
	/* Lost as well until there is room. */
	do
		assert_int_equal(send_bytes(child.slot, "end", 3), 0);
	while (sim_wait(seen_enough, &one, sim_now() + SIM_MS(1)));
	memcpy(&arrived, seen.data, sizeof(arrived));
	sim_unlock();
	/* All that came did so in order, and then a part was missing. */
	assert_in_range(arrived, (60u << 20) / sizeof(bytes), (66u << 20) / sizeof(bytes));
	assert_int_equal(shm_child_end(&child), 0);
}

/* Nothing comes back that would make the sender look. */
static void a_silent_receiver_asks_for_more(void **state)
{
	const uint32_t all = FLOOD;
	struct shm_child child;

	(void)state;
	flood(&child, "silent");
	sim_lock();
	sim_engine_need_thread();
	assert_int_equal(send_bytes(child.slot, "end", 3), 0);
	assert_int_equal(wait_for(1), 0);
	assert_int_equal(seen.len, sizeof(all));
	assert_memory_equal(seen.data, &all, sizeof(all));
	sim_unlock();
	assert_int_equal(shm_child_end(&child), 0);
}

static void packets_to_nobody_are_lost(void **state)
{
	(void)state;
	sim_lock();
	assert_int_equal(send_bytes(77, "abc", 3), 0);
	assert_int_equal(send_bytes(SIM_MAX_SLOTS, "abc", 3), 0);
	assert_int_equal(send_bytes(UINT32_MAX, "abc", 3), 0);
	assert_false(sim_link_pullable(77));
	assert_false(sim_link_pullable(SIM_MAX_SLOTS));
	sim_unlock();
	assert_int_equal(sim_fake_log_count(POLYCM_LOG_WARN), 0);
}

/* ------------------------------------------------------------------------
 * Processes that die, come and go.
 */

static int bind_port(uint16_t port)
{
	static char id;
	union sim_sockaddr addr;
	uint8_t prefix_len;

	assert_int_equal(sim_addr_parse("0.0.0.0", &addr, &prefix_len), 0);
	sim_addr_set_port(&addr, port);
	return sim_bind_port(sim_first_node(), RDMA_PS_TCP, &addr, 0, (struct sim_id *)(void *)&id);
}

/* The slot of who listens on the child's port, or SIM_MAX_SLOTS. */
static unsigned int find_listener(void)
{
	unsigned int slot = SIM_MAX_SLOTS;
	union sim_sockaddr addr;
	uint8_t prefix_len;
	struct sim_id *id;
	bool service;

	assert_int_equal(sim_addr_parse("127.0.0.1", &addr, &prefix_len), 0);
	sim_addr_set_port(&addr, SHM_CHILD_PORT);
	sim_find_listener(sim_first_node(), RDMA_PS_TCP, &addr.sa, &slot, &id, &service);
	assert_null(id);
	return slot;
}

static void check_dead_process_is_cleared_away(const char *mode)
{
	struct shm_child child, other;
	uint32_t qpn;

	shm_child_start(&child, mode);
	if (!strcmp(mode, "hold")) {
		sim_lock();
		assert_int_equal(find_listener(), child.slot);
		assert_int_equal(bind_port(SHM_CHILD_PORT), -EADDRNOTAVAIL);
		assert_int_equal(sim_slot_of_qpn(child.qpn + 5), child.slot);
		assert_int_equal(send_bytes(child.slot, "abc", 3), 0);
		sim_unlock();
	}
	assert_true(WIFSIGNALED(shm_child_kill(&child)));
	sim_lock();
	assert_int_equal(find_listener(), SIM_MAX_SLOTS);
	assert_int_equal(sim_slot_of_qpn(child.qpn + 5), SIM_MAX_SLOTS);
	assert_int_equal(bind_port(SHM_CHILD_PORT), 0);
	assert_int_equal(send_bytes(child.slot, "abc", 3), 0);
	assert_int_equal(sim_qpn_block(&qpn), 0);
	assert_int_not_equal(qpn, child.qpn);
	assert_int_equal(sim_fake_log_count(POLYCM_LOG_ERROR), 0);
	sim_unlock();

	/* Its number is not given to the next one at once. */
	shm_child_start(&other, "echo");
	assert_int_equal(other.slot, child.slot + 1);
	assert_int_equal(shm_child_end(&other), 0);
}

static void a_dead_process_gives_back_what_it_had(void **state)
{
	(void)state;
	check_dead_process_is_cleared_away("hold");
}

static void a_process_that_dies_with_the_lock_harms_nobody(void **state)
{
	(void)state;
	check_dead_process_is_cleared_away("lock");
}

static void a_flood_to_a_process_that_dies_is_dropped(void **state)
{
	static uint8_t bytes[SIM_LINK_MAX_PACKET];
	struct shm_child child;

	(void)state;
	shm_child_start(&child, "deaf");
	sim_lock();
	for (unsigned int i = 0; i < 100; i++)
		assert_int_equal(send_bytes(child.slot, bytes, sizeof(bytes)), 0);
	sim_unlock();
	assert_true(WIFSIGNALED(shm_child_kill(&child)));
	sim_lock();
	for (unsigned int i = 0; i < 1000; i++)
		assert_int_equal(send_bytes(child.slot, bytes, sizeof(bytes)), 0);
	sim_unlock();
	assert_non_null(strstr(sim_fake_log(POLYCM_LOG_DEBUG), "it is gone"));
}

static void see_and_answer(const struct sim_packet *packet)
{
	see(packet);
	assert_int_equal(send_bytes(packet->from_slot, packet->data, packet->len), 0);
}

/* Its last packets arrive, and answering them is no mistake. */
static void the_last_words_of_the_dead_are_heard(void **state)
{
	struct shm_child child;

	(void)state;
	for (unsigned int round = 0; round < 2; round++) {
		sim_lock();
		sim_link_set_handler(SIM_PACKET_RC, round ? see_and_answer : see);
		seen.count = 0;
		seen.in_order = true;
		shm_child_start(&child, "flood");
		assert_true(WIFSIGNALED(shm_child_kill(&child)));
		assert_int_equal(find_listener(), SIM_MAX_SLOTS);
		if (round) {
			sim_segment_lock();
			assert_true(sim_segment_reclaim(child.slot));
			sim_segment_unlock();
		}
		assert_int_equal(wait_for(SHM_CHILD_FLOOD), 0);
		assert_true(seen.in_order);
		assert_int_equal(seen.count, SHM_CHILD_FLOOD);
		sim_unlock();
	}
}

/* The slot gets a new owner while we are in the middle of the old one's packets. */
static void see_and_answer_an_heir(const struct sim_packet *packet)
{
	if (!seen.count)
		atomic_fetch_add(&sim_segment_peer(packet->from_slot)->generation, 1);
	see_and_answer(packet);
}

static void an_heir_does_not_end_the_reading(void **state)
{
	struct shm_child child;

	(void)state;
	sim_lock();
	sim_link_set_handler(SIM_PACKET_RC, see_and_answer_an_heir);
	shm_child_start(&child, "flood");
	assert_true(WIFSIGNALED(shm_child_kill(&child)));
	assert_int_equal(wait_for(2), 0);
	assert_true(seen.in_order);
	sim_unlock();
}

#define CROWD 30

static void a_crowd_comes_and_goes(void)
{
	static struct shm_child children[CROWD];

	for (unsigned int i = 0; i < CROWD; i++)
		shm_child_start(&children[i], "churn");
	for (unsigned int i = 0; i < CROWD; i++)
		assert_int_equal(shm_child_end(&children[i]), 0);
}

static void thirty_processes_come_and_go_at_once(void **state)
{
	uint32_t qpn;

	(void)state;
	a_crowd_comes_and_goes();
	sim_lock();
	assert_int_equal(sim_qpn_block(&qpn), 0);
	assert_int_equal(count_files(FOLDER), 1);
	sim_unlock();
}

/* Nobody stays, so that the folder itself comes and goes. */
static void the_folder_comes_and_goes_under_a_crowd(void **state)
{
	(void)state;
	a_crowd_comes_and_goes();
	assert_int_equal(count_files("polycm"), 0);
}

/* Rings of others that are mapped here. */
static unsigned int count_rings(void)
{
	unsigned int count = 0;
	char line[512];
	FILE *maps = fopen("/proc/self/maps", "r");

	assert_non_null(maps);
	while (fgets(line, sizeof(line), maps))
		count += strstr(line, "/ring-") != NULL;
	fclose(maps);
	return count;
}

static void everybody_talks_to_everybody(void **state)
{
	struct shm_child children[8];
	unsigned int sent = 0;

	(void)state;
	for (unsigned int i = 0; i < 8; i++)
		shm_child_start(&children[i], "echo");
	sim_lock();
	for (unsigned int round = 0; round < 100; round++)
		for (unsigned int i = 0; i < 8; i++, sent++)
			assert_int_equal(send_bytes(children[i].slot, &sent, sizeof(sent)), 0);
	assert_int_equal(wait_for(sent), 0);
	assert_int_equal(count_rings(), 16);
	sim_unlock();
	for (unsigned int i = 0; i < 8; i++)
		assert_int_equal(shm_child_end(&children[i]), 0);
	sim_lock();
	assert_int_equal(count_files(FOLDER), 1);
	sim_shm_receive();		/* what its processes had is let go */
	assert_int_equal(count_rings(), 0);
	sim_unlock();
}

static void a_forked_child_is_a_process_of_its_own(void **state)
{
	unsigned int own, theirs;
	int status;
	pid_t pid;

	(void)state;
	sim_lock();
	own = sim_self_slot();
	assert_int_equal(bind_port(7500), 0);
	sim_unlock();
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		int ok;

		sim_lock();
		theirs = sim_self_slot();
		ok = theirs != own && bind_port(7500) == -EADDRNOTAVAIL && !bind_port(7501) &&
		     !send_bytes(own, &theirs, sizeof(theirs));
		sim_fabric_close();
		sim_unlock();
		_exit(ok ? 42 : 1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 42);
	sim_lock();
	assert_int_equal(sim_self_slot(), own);
	assert_int_equal(wait_for(1), 0);
	assert_int_equal(seen.from_slot, own + 1);
	assert_int_equal(bind_port(7500), -EADDRNOTAVAIL);
	assert_int_equal(bind_port(7501), 0);
	sim_unlock();
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		JOINED(packets_of_all_sizes_go_there_and_back),
		JOINED(packets_to_ourselves_need_no_ring),
		JOINED(a_poller_needs_no_thread),
		JOINED(a_slow_receiver_gets_all_in_order),
		JOINED(a_silent_receiver_asks_for_more),
		JOINED(what_waits_is_bounded),
		JOINED(packets_to_nobody_are_lost),
		JOINED(a_dead_process_gives_back_what_it_had),
		JOINED(a_process_that_dies_with_the_lock_harms_nobody),
		JOINED(a_flood_to_a_process_that_dies_is_dropped),
		JOINED(the_last_words_of_the_dead_are_heard),
		JOINED(an_heir_does_not_end_the_reading),
		JOINED(thirty_processes_come_and_go_at_once),
		cmocka_unit_test_setup_teardown(the_folder_comes_and_goes_under_a_crowd, start, stop),
		JOINED(everybody_talks_to_everybody),
		JOINED(a_forked_child_is_a_process_of_its_own),
	};
	int child = shm_child_main(argc, argv);

	if (child >= 0)
		return child;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
