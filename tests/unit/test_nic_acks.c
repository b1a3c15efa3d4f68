/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Acknowledgements between two processes: messages that the peer reads together have one, each
 * has its own where somebody looks at packets, and a NAK does not come before it.
 */
#include "config.h"

#include <signal.h>
#include <sys/wait.h>

#include "providers/soft/link/tap.h"
#include "providers/soft/wire/rc.h"
#include "shm_pair.h"

static unsigned int acks, naks, acks_before_nak;

static void leaves(const struct sim_packet *packet, unsigned int to_slot)
{
	(void)packet;
	(void)to_slot;
}

static void arrives(const struct sim_packet *packet)
{
	struct rc_header h;

	if (packet->type != SIM_PACKET_RC || packet->len < sizeof(h))
		return;
	memcpy(&h, packet->data, sizeof(h));
	acks += h.op == RC_ACK;
	if (h.op == RC_NAK && !naks++)
		acks_before_nak = acks;
}

static struct sim_tap tap = { .sent = leaves, .received = arrives };

static void look(void)
{
	sim_lock();
	sim_tap_add(&tap);
	sim_unlock();
}

/* --- The child: what it has posted takes the messages. --- */

static bool prepare(const char *mode)
{
	for (unsigned int i = 0; i < RECEIVES; i++)
		if (pair_post_receive())
			return false;
	if (!strcmp(mode, "looks"))
		look();
	return true;
}

static bool work(const char *mode)
{
	(void)mode;
	return true;
}

/* --- The test. --- */

static void begin(const char *mode)
{
	int status;

	acks = naks = acks_before_nak = 0;
	pair_start(mode, "on");
	look();
	assert_int_equal(kill(pair_pid, SIGSTOP), 0);
	assert_int_equal(waitpid(pair_pid, &status, WUNTRACED), pair_pid);
	assert_true(WIFSTOPPED(status));
}

static void end(void)
{
	sim_lock();
	sim_tap_remove(&tap);
	sim_unlock();
	pair_end();
}

static void send_all(unsigned int num)
{
	for (unsigned int i = 0; i < num; i++)
		assert_int_equal(pair_post(IBV_WR_SEND, 0, 64 * i, 0, 0), 0);
}

static void assert_completes(unsigned int num, enum ibv_wc_status status)
{
	for (unsigned int i = 0; i < num; i++)
		assert_int_equal(pair_next_completion().status, status);
}

static void play(const char *mode, unsigned int expected)
{
	begin(mode);
	send_all(RECEIVES);
	assert_int_equal(kill(pair_pid, SIGCONT), 0);
	assert_completes(RECEIVES, IBV_WC_SUCCESS);
	assert_int_equal(acks, expected);
	assert_int_equal(naks, 0);
	end();
}

static void read_together(void **state)
{
	(void)state;
	play("plain", 1);
}

static void looked_at(void **state)
{
	(void)state;
	play("looks", RECEIVES);
}

static void before_a_nak(void **state)
{
	(void)state;
	begin("plain");
	send_all(2);
	assert_int_equal(pair_post(IBV_WR_RDMA_WRITE, 0, 8, its.addr, its.rkey + 1), 0);
	send_all(1);
	assert_int_equal(kill(pair_pid, SIGCONT), 0);
	assert_completes(2, IBV_WC_SUCCESS);
	assert_completes(1, IBV_WC_REM_ACCESS_ERR);
	assert_completes(1, IBV_WC_WR_FLUSH_ERR);
	assert_int_equal(acks_before_nak, 1);
	assert_int_equal(acks, 1);
	end();
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(read_together, pair_make_folder, pair_remove_folder),
		cmocka_unit_test_setup_teardown(looked_at, pair_make_folder, pair_remove_folder),
		cmocka_unit_test_setup_teardown(before_a_nak, pair_make_folder, pair_remove_folder),
	};

	if (argc == 3 && !strcmp(argv[1], "--child"))
		return pair_child(argv[2], prepare, work);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
