/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The shared fabric with real processes on it: who sees that another one has
 * died, and that mail came while it went to sleep.
 */
#include "config.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/wait.h>

#include "providers/sim/fabric_open.h"
#include "providers/soft/host/host.h"
#include "providers/soft/shm/doorbell.h"
#include "providers/soft/link/shm/shm.h"
#include "providers/soft/fabric/fabric.h"
#include "providers/soft/link/link.h"
#include "providers/soft/link/shm/peer.h"
#include "providers/soft/shm/segment.h"
#include "shm_child.h"
#include "sim_fake.h"
#include "tests/cmocka_all.h"

static unsigned int deaths;

static void count_death(unsigned int slot)
{
	(void)slot;
	deaths++;
}

static int join(void **state)
{
	int r;

	(void)state;
	sim_fake_init();
	sim_fake_make_runtime_dir();
	r = sim_engine_start(SIM_CLOCK_REAL, 1);
	if (r)
		return r;
	sim_lock();
	r = sim_fabric_open_default();
	sim_link_process_died = count_death;
	sim_unlock();
	return r;
}

static int leave(void **state)
{
	(void)state;
	if (!sim_lock_within(SIM_MS(500)))
		print_message("a test that failed has the lock\n");
	sim_link_process_died = NULL;
	sim_fabric_close();
	sim_unlock();
	sim_engine_stop();
	sim_fake_remove_runtime_dir();
	return 0;
}

/* Also when it was another process that saw it first, and nobody has told us yet. */
static void who_looks_at_a_dead_process_sees_it_dead(void **state)
{
	struct shm_child child;

	(void)state;
	sim_lock();
	for (unsigned int round = 0; round < 2; round++) {
		shm_child_start(&child, "flood");
		deaths = 0;
		sim_link_look_at(child.slot);
		assert_int_equal(deaths, 0);
		assert_true(WIFSIGNALED(shm_child_kill(&child)));
		if (round) {
			sim_segment_lock();
			assert_true(sim_segment_reclaim(child.slot));
			sim_segment_unlock();
		}
		sim_link_look_at(child.slot);
		assert_int_equal(deaths, 1);
	}
	sim_unlock();
}

static unsigned int packets;

static void count_packet(const struct sim_packet *packet)
{
	(void)packet;
	assert_int_equal(deaths, 0);
	packets++;
}

/* The ways on which we hear of it: mail, a packet to its heir, the start of something with that. */
static void by_mail(unsigned int slot)
{
	(void)slot;
}

static void by_sending(unsigned int slot)
{
	struct sim_port *port = sim_port_by_index(0);

	assert_int_equal(sim_link_send(port, port, slot, SIM_PACKET_RC, "x", 1, NULL, 0, 0), 0);
}

/*
 * Its slot has another owner when we look again: all that it sent comes, then
 * its death, and the heir is not taken for it.
 */
static void the_dead_are_heard_of_though_they_have_heirs(void **state)
{
	void (*const ways[])(unsigned int) = { by_mail, by_sending, sim_link_meet };
	struct sim_peer *peer;
	struct shm_child child;
	struct sim_slot *slot;

	(void)state;
	sim_lock();
	sim_link_set_handler(SIM_PACKET_RC, count_packet);
	for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
		deaths = packets = 0;
		shm_child_start(&child, "flood");
		/* Some of its packets, so that we know it. */
		sim_shm_receive();
		assert_in_range(packets, 1, SHM_CHILD_FLOOD - 1);
		assert_true(WIFSIGNALED(shm_child_kill(&child)));
		slot = sim_segment_peer(child.slot);
		sim_segment_lock();
		assert_true(sim_segment_reclaim(child.slot));
		atomic_fetch_add(&slot->generation, 1);
		atomic_store(&slot->state, SIM_SLOT_LIVE);
		sim_segment_unlock();

		ways[i](child.slot);
		while (sim_shm_pending())
			sim_shm_receive();
		assert_int_equal(packets, SHM_CHILD_FLOOD);
		assert_int_equal(deaths, 1);
		assert_int_equal(sim_peer_get(child.slot, &peer), 0);
		assert_int_equal(peer->generation, atomic_load(&slot->generation));
		assert_false(sim_peer_is_stale(child.slot));
		atomic_store(&slot->state, SIM_SLOT_FREE);
	}
	sim_unlock();
}

#define UNREAD 100u

static void count_unread(const struct sim_packet *packet)
{
	assert_int_equal(deaths, 1);
	assert_int_equal(packet->from_slot, sim_self_slot());
	assert_memory_equal(packet->data, &packets, sizeof(packets));
	packets++;
}

/* Its host has got what it had not read, and takes messages; nobody takes data. */
static void the_host_answers_what_the_dead_had_not_read(void **state)
{
	struct sim_port *port = sim_port_by_index(0);
	struct shm_child child;

	(void)state;
	sim_lock();
	sim_link_set_handler(SIM_PACKET_MAD, count_unread);
	sim_link_set_handler(SIM_PACKET_RC, count_unread);
	deaths = packets = 0;
	shm_child_start(&child, "deaf");
	for (unsigned int i = 0; i < UNREAD; i++) {
		assert_int_equal(sim_link_send(port, port, child.slot, SIM_PACKET_MAD, &i,
					       sizeof(i), NULL, 0, 0), 0);
		assert_int_equal(sim_link_send(port, port, child.slot, SIM_PACKET_RC, "x", 1, NULL,
					       0, 0), 0);
	}
	assert_int_equal(sim_link_answers_for(child.slot), child.slot);
	assert_true(WIFSIGNALED(shm_child_kill(&child)));
	sim_link_look_at(child.slot);
	assert_int_equal(packets, UNREAD);
	assert_int_equal(sim_link_answers_for(child.slot), sim_self_slot());
	sim_link_set_handler(SIM_PACKET_MAD, NULL);
	sim_link_set_handler(SIM_PACKET_RC, NULL);
	sim_unlock();
}

#define LETTERS 1000u

static _Atomic unsigned int sent, received;

/* A letter comes wherever we are just then. */
static void letter_comes(int signal)
{
	unsigned int self = sim_segment_slot();

	(void)signal;
	sim_segment_notify(self, (self + 1) % SIM_MAX_SLOTS);
	atomic_fetch_add(&sent, 1);
}

static void *write_letters(void *arg)
{
	const pthread_t *to = arg;

	for (unsigned int letter = 0; letter < LETTERS; letter++) {
		while (atomic_load(&received) != letter)
			sched_yield();
		for (unsigned int i = 0; i < letter % 256; i++)
			atomic_signal_fence(memory_order_seq_cst);
		pthread_kill(*to, SIGUSR1);
	}
	return NULL;
}

/* On its way to sleep, too; what is lost is never heard of: the test hangs. */
static void no_letter_finds_us_asleep(void **state)
{
	const struct sigaction action = { .sa_handler = letter_comes };
	struct sim_slot *self = sim_segment_self();
	pthread_t thread, own = pthread_self();
	unsigned int letters = 0;
	struct sigaction old;
	uint32_t ticket;

	(void)state;
	atomic_store(&sent, 0);
	atomic_store(&received, 0);
	assert_int_equal(sigaction(SIGUSR1, &action, &old), 0);
	assert_int_equal(pthread_create(&thread, NULL, write_letters, &own), 0);
	while (letters < LETTERS) {
		ticket = sim_shm_prepare_wait(false);
		if (atomic_load(&sent) != letters) {
			sim_shm_wait(ticket, SIM_NEVER);
			assert_int_not_equal(atomic_exchange(&self->summary, 0), 0);
			for (unsigned int word = 0; word < SIM_MAX_SLOTS / 64; word++)
				atomic_store(&self->inbox[word], 0);
			sim_shm_awake();
			atomic_store(&received, ++letters);
		} else {
			sim_shm_awake();
		}
	}
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_equal(sigaction(SIGUSR1, &old, NULL), 0);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(who_looks_at_a_dead_process_sees_it_dead, join,
						leave),
		cmocka_unit_test_setup_teardown(the_host_answers_what_the_dead_had_not_read, join,
						leave),
		cmocka_unit_test_setup_teardown(no_letter_finds_us_asleep, join, leave),
		cmocka_unit_test_setup_teardown(the_dead_are_heard_of_though_they_have_heirs, join,
						leave),
	};
	int child = shm_child_main(argc, argv);

	if (child >= 0)
		return child;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
