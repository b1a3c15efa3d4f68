/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Acknowledgements between two processes: messages that the peer reads together have one, each
 * has its own where somebody looks at packets, and a NAK does not come before it.  That of a
 * program that answers each message goes with its answer, and is not lost if that never comes.
 */
#include "config.h"

#include <signal.h>
#include <sys/wait.h>

#include "providers/soft/engine/engine_internal.h"
#include "providers/soft/fabric/counters.h"
#include "providers/soft/link/shm/peer.h"
#include "providers/soft/link/shm/shm.h"
#include "providers/soft/link/tap.h"
#include "providers/soft/nic/qp.h"
#include "providers/soft/shm/doorbell.h"
#include "providers/soft/wire/rc_short.h"
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

static bool reads_itself(const char *mode)
{
	return strcmp(mode, "plain") && strcmp(mode, "looks");
}

static bool prepare(const char *mode)
{
	for (unsigned int i = 0; i < RECEIVES; i++)
		if (pair_post_receive())
			return false;
	if (!strcmp(mode, "looks"))
		look();
	/* Its NIC thread is not to read anything before work() does. */
	if (reads_itself(mode))
		sim_lock();
	return true;
}

static struct sim_qp *own(void)
{
	return nic_qp(my.qp);
}

/* Lock held.  As in a poll of a program that polls steadily. */
static void read_message(uint8_t answers)
{
	uint32_t psn = own()->rq_psn;

	relaxed_store(&sim_engine.hot, true);
	own()->answers = answers;
	own()->awaits_answer = false;
	do
		sim_shm_receive();
	while (own()->rq_psn == psn);
}

static bool answer(void)
{
	struct ibv_sge sge = { .addr = (uintptr_t)my.buf, .length = 8, .lkey = my.mr->lkey };
	struct ibv_send_wr wr = { .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND };

	return !nic_post_all(own(), "answer", &wr);
}

/* What each mode has done with the acknowledgement when the lock is released. */
static bool work(const char *mode)
{
	bool good = true;

	if (!reads_itself(mode))
		return true;
	/* Where no ring leads to the peer yet, nothing waits. */
	read_message(UINT8_MAX);
	if (own()->owes_ack)
		return false;
	read_message(strcmp(mode, "does not answer") ? UINT8_MAX : 0);
	if (!strcmp(mode, "does not answer")) {
		good = !own()->owes_ack;
	} else {
		good = own()->owes_ack && own()->has_last_word;
		if (!strcmp(mode, "dies"))
			raise(SIGKILL);
		else if (!strcmp(mode, "stops"))
			raise(SIGSTOP);
		else if (!strcmp(mode, "answers"))
			good = good && answer() && !own()->owes_ack && own()->answers;
		else if (!strcmp(mode, "ends"))
			nic_qp_error(own(), true);
		/* "polls": by the NIC thread or the polls below, whichever is first. */
	}
	sim_unlock();
	while (own()->owes_ack)
		sim_progress();
	return good;
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

static uint64_t packets(void)
{
	uint64_t sum;

	sim_lock();
	sum = sim_counter(my.port, SIM_SENT_PACKETS);
	sim_unlock();
	return sum;
}

static void with_the_answer(void **state)
{
	uint64_t before;
	struct ibv_wc wc;

	(void)state;
	pair_start("answers", "on");
	assert_int_equal(pair_post_receive(), 0);
	send_all(1);
	assert_completes(1, IBV_WC_SUCCESS);
	before = packets();
	send_all(1);
	wc = pair_next_completion();
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	assert_int_equal(wc.opcode, IBV_WC_SEND);
	wc = pair_next_completion();
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	assert_int_equal(wc.opcode, IBV_WC_RECV);
	assert_int_equal(packets() - before, 3);	/* two messages, and ours of the second */
	pair_end();
}

static void without_an_answer(void **state)
{
	static const char *const modes[] = { "does not answer", "polls", "ends" };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(modes); i++) {
		pair_start(modes[i], "on");
		send_all(1);
		assert_completes(1, IBV_WC_SUCCESS);
		send_all(1);
		assert_completes(1, IBV_WC_SUCCESS);
		pair_end();
	}
}

/* We look at its ring, as a program does that polls steadily. */
static void watch(void)
{
	unsigned int slot = nic_qp(my.qp)->peer_slot;

	sim_lock();
	relaxed_store(&sim_engine.hot, true);
	sim_doorbell_watch(slot, sim_ring_next_length(&sim_peer_known(slot)->in));
	sim_unlock();
}

/* Its death is no record in its ring. */
static void of_one_that_dies(void **state)
{
	(void)state;
	pair_start("dies", "on");
	send_all(1);
	assert_completes(1, IBV_WC_SUCCESS);
	watch();
	send_all(1);
	assert_completes(1, IBV_WC_SUCCESS);
	pair_reap(SIGKILL);
	pair_close();
}

static struct rc_header seen;
static uint8_t seen_payload[8];

static void sees(const struct sim_packet *packet)
{
	assert_int_equal(packet->len, sizeof(seen) + sizeof(seen_payload));
	memcpy(&seen, packet->data, sizeof(seen));
	memcpy(seen_payload, packet->data + sizeof(seen), sizeof(seen_payload));
}

/* A packet that is under way when somebody begins to look. */
static void whoever_looks_sees_all_of_a_header(void **state)
{
	static struct sim_tap looker = { .sent = leaves, .received = sees };
	const struct rc_header h = {
		.dst_qpn = 1, .src_qpn = 2, .psn = 3, .op = RC_SEND, .flags = RC_F_IMM, .length = 8,
		.imm = 4, .rkey = 5,
	};
	struct {
		struct rc_short h;
		uint8_t payload[8];
	} sent = { .payload = "payload" };
	const struct sim_packet packet = {
		.type = SIM_PACKET_RC, .data = (const uint8_t *)&sent, .len = sizeof(sent),
	};
	struct rc_header longer = h, read;
	uint32_t acked;

	(void)state;
	assert_true(rc_shorten(&h, &sent.h));
	sim_tap_add(&looker);
	sim_tap_received(&packet);
	sim_tap_remove(&looker);
	assert_memory_equal(&seen, &h, sizeof(h));
	assert_string_equal(seen_payload, "payload");

	sent.h.acked = RC_ACKED | 7;
	assert_int_equal(rc_read_header(&sent, sizeof(sent), &read, &acked), sizeof(sent.h));
	assert_int_equal(acked, RC_ACKED | 7);
	assert_int_equal(rc_read_header(&sent, sizeof(sent.h) - 1, &read, &acked), 0);
	sent.h.op = RC_ACK | RC_SHORT;
	assert_int_equal(rc_read_header(&sent, sizeof(sent), &read, &acked), sizeof(sent.h));
	assert_int_equal(acked, 0);
	assert_int_equal(rc_read_header(&h, sizeof(h), &read, &acked), sizeof(h));
	assert_int_equal(rc_read_header(&h, sizeof(h) - 1, &read, &acked), 0);
	longer.remote_addr = 1;
	assert_false(rc_shorten(&longer, &sent.h));
}

/* As a card, it has acknowledged the message. */
static void of_one_that_is_stopped(void **state)
{
	int status;

	(void)state;
	pair_timeout = 1;
	pair_start("stops", "on");
	send_all(1);
	assert_completes(1, IBV_WC_SUCCESS);
	send_all(1);
	assert_completes(1, IBV_WC_SUCCESS);
	assert_int_equal(waitpid(pair_pid, &status, WUNTRACED), pair_pid);
	assert_true(WIFSTOPPED(status));
	assert_int_equal(kill(pair_pid, SIGCONT), 0);
	pair_end();
	pair_timeout = 0;
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(whoever_looks_sees_all_of_a_header),
		cmocka_unit_test_setup_teardown(read_together, pair_make_folder, pair_remove_folder),
		cmocka_unit_test_setup_teardown(looked_at, pair_make_folder, pair_remove_folder),
		cmocka_unit_test_setup_teardown(before_a_nak, pair_make_folder, pair_remove_folder),
		cmocka_unit_test_setup_teardown(with_the_answer, pair_make_folder, pair_remove_folder),
		cmocka_unit_test_setup_teardown(without_an_answer, pair_make_folder, pair_remove_folder),
		cmocka_unit_test_setup_teardown(of_one_that_dies, pair_make_folder, pair_remove_folder),
		cmocka_unit_test_setup_teardown(of_one_that_is_stopped, pair_make_folder,
						pair_remove_folder),
	};

	if (argc == 3 && !strcmp(argv[1], "--child"))
		return pair_child(argv[2], prepare, work);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
