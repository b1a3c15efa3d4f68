/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Connected QPs between two processes on the shared fabric: data of all sizes,
 * read directly and in fragments, and a peer that dies; and QPs of both in one
 * multicast group.  The child echoes messages, or sleeps in read() while its
 * memory is written and read.
 */
#include "config.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "providers/soft/link/shm/shm.h"
#include "providers/soft/faults/fault.h"
#include "providers/soft/link/link.h"
#include "providers/soft/shm/segment.h"
#include "providers/soft/fabric/groups.h"
#include "providers/soft/nic/rc_internal.h"
#include "shm_pair.h"

/* --- Groups. --- */

#define QKEY 0x1234u

static const union ibv_gid group = { .raw = { [10] = 0xff, 0xff, 239, 9, 9, 9 } };
static struct ibv_qp *group_qp;
static struct ibv_ah *group_ah;

static bool post_group_receive(void)
{
	struct ibv_sge sge = { .addr = (uintptr_t)my.buf + SIZE, .length = 100, .lkey = my.mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = 3, .sg_list = &sge, .num_sge = 1 }, *bad;

	return !ibv_post_recv(group_qp, &wr, &bad);
}

/* A QP in the group, ready to receive and to send. */
static bool join_group(void)
{
	struct ibv_qp_init_attr init = {
		.send_cq = my.cq, .recv_cq = my.cq, .qp_type = IBV_QPT_UD, .sq_sig_all = 0,
		.cap = { .max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1 },
	};
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = QKEY };
	struct ibv_ah_attr ah = { .port_num = 1, .is_global = 1, .grh.dgid = group };

	group_qp = sim_verbs.create_qp(my.pd, &init);
	group_ah = sim_verbs.create_ah(my.pd, &ah);
	if (!group_qp || !group_ah ||
	    sim_verbs.modify_qp(group_qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
				IBV_QP_QKEY))
		return false;
	attr.qp_state = IBV_QPS_RTR;
	if (sim_verbs.modify_qp(group_qp, &attr, IBV_QP_STATE))
		return false;
	attr.qp_state = IBV_QPS_RTS;
	if (sim_verbs.modify_qp(group_qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN))
		return false;
	return !sim_verbs.attach_mcast(group_qp, &group, 0) && post_group_receive() &&
	       post_group_receive();
}

static bool leave_group(void)
{
	return !sim_verbs.detach_mcast(group_qp, &group, 0) && !sim_verbs.destroy_ah(group_ah) &&
	       !sim_verbs.destroy_qp(group_qp);
}

static bool send_to_group(uint32_t len)
{
	struct ibv_sge sge = { .addr = (uintptr_t)my.buf, .length = len, .lkey = my.mr->lkey };
	struct ibv_send_wr wr = {
		.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND,
		.wr.ud = { .ah = group_ah, .remote_qpn = SIM_MULTICAST_QPN, .remote_qkey = QKEY },
	}, *bad;

	return !ibv_post_send(group_qp, &wr, &bad);
}

/* --- The child. --- */

/* Send back what comes, until there was an error. */
static void echo(void)
{
	struct ibv_wc wc;

	for (;;) {
		wc = pair_next_completion();
		if (wc.status != IBV_WC_SUCCESS)
			return;
		if (!(wc.opcode & IBV_WC_RECV))
			continue;
		memcpy(my.buf, my.buf + SIZE, wc.byte_len);
		if (pair_post_receive() || pair_post(IBV_WR_SEND, 0, wc.byte_len, 0, 0))
			return;
		if (!wc.byte_len)
			return;
	}
}

/* To what comes from another. */
static bool answer_group(void)
{
	struct ibv_wc wc;

	do
		wc = pair_next_completion();
	while (wc.src_qp == group_qp->qp_num);
	return wc.byte_len == 50 && send_to_group(20) && pair_next_completion().byte_len == 60 &&
	       leave_group();
}
static bool prepare(const char *mode)
{
	for (unsigned int i = 0; i < RECEIVES; i++)
		if (pair_post_receive())
			return false;
	return strncmp(mode, "group", 5) || join_group();
}

static bool work(const char *mode)
{
	if (!strcmp(mode, "echo"))
		echo();
	return strcmp(mode, "group") || answer_group();
}

/* --- The test. --- */

static const uint32_t sizes[] = { 1, 64, 4096, 8192, 8193, 16384, 65536, 1000001, SIZE };

static void check_pullable(const char *pull)
{
	sim_lock();
	/* Sanitizers and containers may forbid it; off is off. */
	if (!strcmp(pull, "off"))
		assert_false(sim_link_pullable(sim_slot_of_qpn(its.qpn)));
	sim_unlock();
}

static void messages(const char *pull)
{
	pair_start("echo", pull);
	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		struct ibv_wc wc;

		pair_fill(sizes[i], (uint8_t)i);
		memset(my.buf + SIZE, 0, SIZE);
		assert_int_equal(pair_post_receive(), 0);
		assert_int_equal(pair_post(IBV_WR_SEND, 0, sizes[i], 0, 0), 0);
		for (int n = 0; n < 2; n++) {
			wc = pair_next_completion();
			assert_int_equal(wc.status, IBV_WC_SUCCESS);
			if (wc.opcode & IBV_WC_RECV)
				assert_int_equal(wc.byte_len, sizes[i]);
		}
		assert_memory_equal(my.buf, my.buf + SIZE, sizes[i]);
	}
	check_pullable(pull);
	assert_int_equal(pair_post(IBV_WR_SEND, 0, 0, 0, 0), 0);
	assert_int_equal(pair_next_completion().status, IBV_WC_SUCCESS);
	pair_end();
}

/* Its program sleeps; the NIC does not. */
static void one_sided(const char *pull)
{
	pair_start("sleep", pull);
	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		pair_fill(sizes[i], (uint8_t)(i + 9));
		memset(my.buf + SIZE, 0, SIZE);
		assert_int_equal(pair_post(IBV_WR_RDMA_WRITE, 0, sizes[i], its.addr + 100,
					   its.rkey), 0);
		assert_int_equal(pair_post(IBV_WR_RDMA_READ, SIZE, sizes[i], its.addr + 100,
					   its.rkey), 0);
		assert_int_equal(pair_post(IBV_WR_RDMA_WRITE, 0, 8, its.addr, its.rkey), 0);
		for (int n = 0; n < 3; n++)
			assert_int_equal(pair_next_completion().status, IBV_WC_SUCCESS);
		assert_memory_equal(my.buf, my.buf + SIZE, sizes[i]);
	}
	check_pullable(pull);
	pair_end();
}

static void messages_read_directly(void **state)
{
	(void)state;
	messages("on");
}

static void messages_in_fragments(void **state)
{
	(void)state;
	messages("off");
}

static void one_sided_read_directly(void **state)
{
	(void)state;
	one_sided("on");
}

static void one_sided_in_fragments(void **state)
{
	(void)state;
	one_sided("off");
}

static void peer_that_dies(void **state)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_SQD, .timeout = 1 };

	(void)state;
	pair_start("sleep", "on");
	assert_int_equal(pair_post(IBV_WR_RDMA_WRITE, 0, 8, its.addr, its.rkey), 0);
	assert_int_equal(pair_next_completion().status, IBV_WC_SUCCESS);
	assert_int_equal(kill(pair_pid, SIGKILL), 0);
	pair_reap(SIGKILL);
	/* It does not come back: now a time-out can only be right.  The least, once. */
	assert_int_equal(sim_verbs.modify_qp(my.qp, &attr, IBV_QP_STATE), 0);
	assert_int_equal(sim_verbs.modify_qp(my.qp, &attr, IBV_QP_STATE | IBV_QP_TIMEOUT |
					     IBV_QP_RETRY_CNT), 0);
	attr.qp_state = IBV_QPS_RTS;
	assert_int_equal(sim_verbs.modify_qp(my.qp, &attr, IBV_QP_STATE), 0);
	assert_int_equal(pair_post(IBV_WR_RDMA_READ, 0, SIZE, its.addr, its.rkey), 0);
	assert_int_equal(pair_post(IBV_WR_RDMA_WRITE, 0, SIZE, its.addr, its.rkey), 0);
	assert_int_equal(pair_next_completion().status, IBV_WC_RETRY_EXC_ERR);
	assert_int_equal(pair_next_completion().status, IBV_WC_WR_FLUSH_ERR);
	pair_close();
}

static bool time_is_up;

static void end_of_time(struct sim_timer *timer)
{
	(void)timer;
	time_is_up = true;
	sim_wake();
}

static bool is_up(void *unused)
{
	(void)unused;
	return time_is_up;
}

/* All timers with an earlier deadline fire meanwhile. */
static void let_pass(uint64_t ns)
{
	static struct sim_timer timer;

	time_is_up = false;
	sim_lock();
	sim_timer_init(&timer, end_of_time);
	sim_timer_arm(&timer, sim_now() + ns);
	assert_int_equal(sim_wait(is_up, NULL, SIM_NEVER), 0);
	sim_unlock();
}

/* No answer within the time-out, and no retry left: but a card would have answered. */
static void peer_that_stands_still(void **state)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_SQD, .timeout = 1 };
	struct ibv_wc wc;
	int status;

	(void)state;
	pair_start("sleep", "on");
	assert_int_equal(pair_post(IBV_WR_RDMA_WRITE, 0, 8, its.addr, its.rkey), 0);
	assert_int_equal(pair_next_completion().status, IBV_WC_SUCCESS);
	assert_int_equal(sim_verbs.modify_qp(my.qp, &attr, IBV_QP_STATE), 0);
	assert_int_equal(sim_verbs.modify_qp(my.qp, &attr, IBV_QP_STATE | IBV_QP_TIMEOUT |
					     IBV_QP_RETRY_CNT), 0);
	attr.qp_state = IBV_QPS_RTS;
	assert_int_equal(sim_verbs.modify_qp(my.qp, &attr, IBV_QP_STATE), 0);

	assert_int_equal(kill(pair_pid, SIGSTOP), 0);
	assert_int_equal(waitpid(pair_pid, &status, WUNTRACED), pair_pid);
	assert_true(WIFSTOPPED(status));
	assert_int_equal(pair_post(IBV_WR_SEND, 0, 8, 0, 0), 0);
	let_pass(SIM_MS(200));
	assert_int_equal(ibv_poll_cq(my.cq, 1, &wc), 0);
	assert_int_equal(kill(pair_pid, SIGCONT), 0);
	assert_int_equal(pair_next_completion().status, IBV_WC_SUCCESS);
	pair_end();
}

/* A request is lost, and the process has mail: that of others is no answer. */
static void mail_of_others_is_no_answer(void **state)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_SQD, .timeout = 31 };
	struct polycm_sim_fault_rule lose = {
		.size = sizeof(lose), .action = POLYCM_SIM_LOSE, .message = "WRITE",
	};
	uint32_t number;
	struct ibv_wc wc;
	char why[100];

	(void)state;
	pair_start("sleep", "on");
	assert_int_equal(sim_verbs.modify_qp(my.qp, &attr, IBV_QP_STATE), 0);
	assert_int_equal(sim_verbs.modify_qp(my.qp, &attr, IBV_QP_STATE | IBV_QP_TIMEOUT |
					     IBV_QP_RETRY_CNT), 0);
	attr.qp_state = IBV_QPS_RTS;
	assert_int_equal(sim_verbs.modify_qp(my.qp, &attr, IBV_QP_STATE), 0);
	sim_lock();
	assert_int_equal(sim_fault_add(&lose, &number, why, sizeof(why)), 0);
	sim_unlock();

	assert_int_equal(pair_post(IBV_WR_RDMA_WRITE, 0, 8, its.addr, its.rkey), 0);
	sim_lock();
	sim_segment_notify(sim_segment_slot(), SIM_MAX_SLOTS - 1);	/* a slot that nobody has */
	rc_timer(&nic_qp(my.qp)->timer);
	sim_unlock();
	assert_int_equal(ibv_poll_cq(my.cq, 1, &wc), 1);
	assert_int_equal(wc.status, IBV_WC_RETRY_EXC_ERR);
	sim_lock();
	assert_int_equal(sim_fault_remove(number), 0);
	sim_unlock();
	pair_end();
}

static void groups_of_several_processes(void **state)
{
	unsigned int own = 0;

	(void)state;
	pair_start("group", "on");
	assert_true(join_group());
	assert_true(send_to_group(10));
	for (unsigned int i = 0; i < 2; i++) {
		struct ibv_wc wc = pair_next_completion();

		assert_int_equal(wc.status, IBV_WC_SUCCESS);
		own += wc.src_qp == group_qp->qp_num;
		assert_int_equal(wc.byte_len, wc.src_qp == group_qp->qp_num ? 50 : 60);
	}
	assert_int_equal(own, 1);
	assert_true(leave_group());
	pair_end();
}

static unsigned int members(void)
{
	uint32_t cursor = 0;
	unsigned int slot, num = 0;

	sim_lock();
	while (sim_group_next(&group, &cursor, &slot))
		num++;
	sim_unlock();
	return num;
}

static void member_that_dies(void **state)
{
	(void)state;
	pair_start("group-sleep", "on");
	assert_true(join_group());
	assert_int_equal(members(), 2);
	assert_int_equal(kill(pair_pid, SIGKILL), 0);
	pair_reap(SIGKILL);
	assert_true(send_to_group(10));
	assert_int_equal(pair_next_completion().byte_len, 50);
	sim_lock();
	sim_segment_lock();
	sim_segment_reclaim_all();
	sim_segment_unlock();
	sim_unlock();
	assert_int_equal(members(), 1);
	assert_true(leave_group());
	assert_int_equal(members(), 0);
	pair_close();
}
int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(messages_read_directly, pair_make_folder,
						pair_remove_folder),
		cmocka_unit_test_setup_teardown(messages_in_fragments, pair_make_folder,
						pair_remove_folder),
		cmocka_unit_test_setup_teardown(one_sided_read_directly, pair_make_folder,
						pair_remove_folder),
		cmocka_unit_test_setup_teardown(one_sided_in_fragments, pair_make_folder,
						pair_remove_folder),
		cmocka_unit_test_setup_teardown(peer_that_dies, pair_make_folder, pair_remove_folder),
		cmocka_unit_test_setup_teardown(peer_that_stands_still, pair_make_folder,
						pair_remove_folder),
		cmocka_unit_test_setup_teardown(mail_of_others_is_no_answer, pair_make_folder,
						pair_remove_folder),
		cmocka_unit_test_setup_teardown(groups_of_several_processes, pair_make_folder,
						pair_remove_folder),
		cmocka_unit_test_setup_teardown(member_that_dies, pair_make_folder, pair_remove_folder),
	};

	if (argc == 3 && !strcmp(argv[1], "--child"))
		return pair_child(argv[2], prepare, work);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
