/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Connected QPs between two processes on the shared fabric: data of all sizes,
 * read directly and in fragments, and a peer that dies; and QPs of both in one
 * multicast group.  The child echoes messages, or sleeps in read() while its
 * memory is written and read.
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "providers/sim/fabric_open.h"
#include "providers/soft/host/host.h"
#include "providers/soft/link/shm/shm.h"
#include "providers/roce/rules.h"
#include "providers/soft/faults/fault.h"
#include "providers/soft/link/link.h"
#include "providers/soft/shm/segment.h"
#include "providers/soft/fabric/groups.h"
#include "providers/soft/nic/sq.h"
#include "providers/soft/nic/rc_internal.h"
#include "tests/cmocka_all.h"
#include "host_services.h"

#define SIZE (2u << 20)
#define RECEIVES 4u

extern char **environ;

/* --- The host. --- */

static bool log_enabled(enum polycm_log_level level)
{
	return level <= POLYCM_LOG_WARN;
}

__attribute__((format(printf, 3, 4)))
static void log_line(enum polycm_log_level level, const struct polycm_id *id, const char *format,
		     ...)
{
	va_list args;

	(void)id;
	if (!log_enabled(level))
		return;
	va_start(args, format);
	vfprintf(stderr, format, args);
	fputc('\n', stderr);
	va_end(args);
}

static const struct polycm_transport *transport(const char *name)
{
	return strcmp(name, "roce") ? NULL : &roce_transport;
}

static const char *setting(const char *name)
{
	return getenv(name);
}

static const struct polycm_core core = {
	.size = sizeof(core),
	.log_enabled = log_enabled,
	.log = log_line,
	.transport = transport,
	.setting = setting,
};

/* --- One end. --- */

/* What both must know of each other. */
struct end {
	uint32_t qpn, rkey;
	uint64_t addr;
};

static struct {
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct ibv_mr *mr;
	uint8_t *buf;			/* SIZE to send from, SIZE to receive to */
	struct sim_port *port;
} my;

static bool open_end(struct end *ret_end)
{
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_RC, .sq_sig_all = 1,
		.cap = { .max_send_wr = 16, .max_recv_wr = RECEIVES, .max_send_sge = 1,
			 .max_recv_sge = 1 },
	};

	sim_core = &core;
	sim_time = &clock_services;
	if (sim_engine_start(SIM_CLOCK_REAL, 1))
		return false;
	sim_lock();
	sim_nic_start();
	if (sim_fabric_open_default())
		return false;
	my.port = &sim_first_node()->devices->ports[0];
	sim_unlock();
	my.context = sim_verbs.open_device(&my.port->device->vdev.device);
	my.pd = sim_verbs.alloc_pd(my.context);
	my.cq = sim_verbs.create_cq(my.context, 64, NULL, NULL, 0);
	init.send_cq = init.recv_cq = my.cq;
	my.qp = sim_verbs.create_qp(my.pd, &init);
	my.buf = calloc(2, SIZE);
	if (!my.qp || !my.buf)
		return false;
	my.mr = sim_verbs.reg_mr(my.pd, my.buf, 2 * SIZE, (uintptr_t)my.buf, IBV_ACCESS_LOCAL_WRITE |
				 IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ);
	if (!my.mr)
		return false;
	*ret_end = (struct end) {
		.qpn = my.qp->qp_num, .rkey = my.mr->rkey, .addr = (uintptr_t)my.buf,
	};
	return true;
}

static bool connect_end(const struct end *peer)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT, .port_num = 1, .path_mtu = IBV_MTU_1024,
		.qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ,
		.dest_qp_num = peer->qpn, .max_dest_rd_atomic = 16, .max_rd_atomic = 16,
		/* No time-out: how long the other process waits for a processor is nobody's fault. */
		.min_rnr_timer = 1, .rnr_retry = 7, .timeout = 0, .retry_cnt = 7,
		.ah_attr = { .port_num = 1, .is_global = 1 },
	};

	attr.ah_attr.grh.dgid = my.port->gids[0].gid;	/* the other process has the same port */
	if (sim_verbs.modify_qp(my.qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
				IBV_QP_ACCESS_FLAGS))
		return false;
	attr.qp_state = IBV_QPS_RTR;
	if (sim_verbs.modify_qp(my.qp, &attr, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
				IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
				IBV_QP_MIN_RNR_TIMER))
		return false;
	attr.qp_state = IBV_QPS_RTS;
	return !sim_verbs.modify_qp(my.qp, &attr, IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
				    IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC);
}

static void close_end(void)
{
	struct polycm_sim_counts counts;

	assert_int_equal(sim_verbs.destroy_qp(my.qp), 0);
	assert_int_equal(sim_verbs.dereg_mr(my.mr), 0);
	assert_int_equal(sim_verbs.destroy_cq(my.cq), 0);
	assert_int_equal(sim_verbs.dealloc_pd(my.pd), 0);
	assert_int_equal(sim_verbs.close_device(my.context), 0);
	free(my.buf);
	sim_lock();
	sim_nic_counts(&counts);
	assert_int_equal(counts.contexts + counts.qps + counts.cqs + counts.mrs, 0);
	sim_nic_stop();
	sim_fabric_close();
	sim_unlock();
	sim_engine_stop();
}

static int post(enum ibv_wr_opcode opcode, size_t offset, uint32_t len, uint64_t remote, uint32_t rkey)
{
	struct ibv_sge sge = { .addr = (uintptr_t)my.buf + offset, .length = len, .lkey = my.mr->lkey };
	struct ibv_send_wr wr = {
		.wr_id = 1, .sg_list = &sge, .num_sge = 1, .opcode = opcode,
		.wr.rdma = { .remote_addr = remote, .rkey = rkey },
	}, *bad;

	return ibv_post_send(my.qp, &wr, &bad);
}

static int post_receive(void)
{
	struct ibv_sge sge = { .addr = (uintptr_t)my.buf + SIZE, .length = SIZE, .lkey = my.mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = 2, .sg_list = &sge, .num_sge = 1 }, *bad;

	return ibv_post_recv(my.qp, &wr, &bad);
}

static struct ibv_wc next_completion(void)
{
	struct ibv_wc wc;

	while (!ibv_poll_cq(my.cq, 1, &wc))
		;
	return wc;
}

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

static bool input_ended(void)
{
	char byte;

	return read(0, &byte, 1) != 1;
}

/* Send back what comes, until there was an error. */
static void echo(void)
{
	struct ibv_wc wc;

	for (;;) {
		wc = next_completion();
		if (wc.status != IBV_WC_SUCCESS)
			return;
		if (!(wc.opcode & IBV_WC_RECV))
			continue;
		memcpy(my.buf, my.buf + SIZE, wc.byte_len);
		if (post_receive() || post(IBV_WR_SEND, 0, wc.byte_len, 0, 0))
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
		wc = next_completion();
	while (wc.src_qp == group_qp->qp_num);
	return wc.byte_len == 50 && send_to_group(20) && next_completion().byte_len == 60 &&
	       leave_group();
}

static int child(const char *mode)
{
	struct end mine, peer;

	if (!open_end(&mine) || write(1, &mine, sizeof(mine)) != sizeof(mine) ||
	    read(0, &peer, sizeof(peer)) != sizeof(peer) || !connect_end(&peer))
		return 2;
	for (unsigned int i = 0; i < RECEIVES; i++)
		if (post_receive())
			return 3;
	if (!strncmp(mode, "group", 5) && !join_group())
		return 5;
	if (write(1, "", 1) != 1)
		return 4;
	if (!strcmp(mode, "echo"))
		echo();
	if (!strcmp(mode, "group") && !answer_group())
		return 6;
	while (!input_ended())
		;
	close_end();
	return 0;
}

/* --- The test. --- */

static pid_t pid;
static int to_child, from_child;
static struct end its;
static char folder[64];

static void start(const char *mode, const char *pull)
{
	char *argv[] = { (char *)(uintptr_t)"child", (char *)(uintptr_t)"--child",
			 (char *)(uintptr_t)mode, NULL };
	posix_spawn_file_actions_t actions;
	char path[4096] = "";
	int in[2], out[2];
	struct end mine;
	char byte;

	/* The link itself leads elsewhere under valgrind. */
	assert_in_range(readlink("/proc/self/exe", path, sizeof(path) - 1), 1, sizeof(path) - 2);

	assert_int_equal(setenv("POLYCM_SIM_PULL", pull, 1), 0);
	assert_int_equal(pipe2(in, O_CLOEXEC), 0);
	assert_int_equal(pipe2(out, O_CLOEXEC), 0);
	assert_int_equal(posix_spawn_file_actions_init(&actions), 0);
	posix_spawn_file_actions_adddup2(&actions, in[0], 0);
	posix_spawn_file_actions_adddup2(&actions, out[1], 1);
	assert_int_equal(posix_spawn(&pid, path, &actions, NULL, argv, environ), 0);
	posix_spawn_file_actions_destroy(&actions);
	close(in[0]);
	close(out[1]);
	to_child = in[1];
	from_child = out[0];

	assert_true(open_end(&mine));
	assert_int_equal(read(from_child, &its, sizeof(its)), sizeof(its));
	assert_int_equal(write(to_child, &mine, sizeof(mine)), sizeof(mine));
	assert_true(connect_end(&its));
	assert_int_equal(read(from_child, &byte, 1), 1);
}

static void reap(int expected)
{
	int status;

	close(to_child);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, expected);
	close(from_child);
}

static void end(void)
{
	reap(0);
	close_end();
}

static void fill(size_t len, uint8_t seed)
{
	for (size_t i = 0; i < len; i++)
		my.buf[i] = (uint8_t)(i * 7 + (i >> 11) + seed);
}

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
	start("echo", pull);
	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		struct ibv_wc wc;

		fill(sizes[i], (uint8_t)i);
		memset(my.buf + SIZE, 0, SIZE);
		assert_int_equal(post_receive(), 0);
		assert_int_equal(post(IBV_WR_SEND, 0, sizes[i], 0, 0), 0);
		for (int n = 0; n < 2; n++) {
			wc = next_completion();
			assert_int_equal(wc.status, IBV_WC_SUCCESS);
			if (wc.opcode & IBV_WC_RECV)
				assert_int_equal(wc.byte_len, sizes[i]);
		}
		assert_memory_equal(my.buf, my.buf + SIZE, sizes[i]);
	}
	check_pullable(pull);
	assert_int_equal(post(IBV_WR_SEND, 0, 0, 0, 0), 0);
	assert_int_equal(next_completion().status, IBV_WC_SUCCESS);
	end();
}

/* Its program sleeps; the NIC does not. */
static void one_sided(const char *pull)
{
	start("sleep", pull);
	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		fill(sizes[i], (uint8_t)(i + 9));
		memset(my.buf + SIZE, 0, SIZE);
		assert_int_equal(post(IBV_WR_RDMA_WRITE, 0, sizes[i], its.addr + 100, its.rkey), 0);
		assert_int_equal(post(IBV_WR_RDMA_READ, SIZE, sizes[i], its.addr + 100, its.rkey), 0);
		assert_int_equal(post(IBV_WR_RDMA_WRITE, 0, 8, its.addr, its.rkey), 0);
		for (int n = 0; n < 3; n++)
			assert_int_equal(next_completion().status, IBV_WC_SUCCESS);
		assert_memory_equal(my.buf, my.buf + SIZE, sizes[i]);
	}
	check_pullable(pull);
	end();
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
	start("sleep", "on");
	assert_int_equal(post(IBV_WR_RDMA_WRITE, 0, 8, its.addr, its.rkey), 0);
	assert_int_equal(next_completion().status, IBV_WC_SUCCESS);
	assert_int_equal(kill(pid, SIGKILL), 0);
	reap(SIGKILL);
	/* It does not come back: now a time-out can only be right.  The least, once. */
	assert_int_equal(sim_verbs.modify_qp(my.qp, &attr, IBV_QP_STATE), 0);
	assert_int_equal(sim_verbs.modify_qp(my.qp, &attr, IBV_QP_STATE | IBV_QP_TIMEOUT |
					     IBV_QP_RETRY_CNT), 0);
	attr.qp_state = IBV_QPS_RTS;
	assert_int_equal(sim_verbs.modify_qp(my.qp, &attr, IBV_QP_STATE), 0);
	assert_int_equal(post(IBV_WR_RDMA_READ, 0, SIZE, its.addr, its.rkey), 0);
	assert_int_equal(post(IBV_WR_RDMA_WRITE, 0, SIZE, its.addr, its.rkey), 0);
	assert_int_equal(next_completion().status, IBV_WC_RETRY_EXC_ERR);
	assert_int_equal(next_completion().status, IBV_WC_WR_FLUSH_ERR);
	close_end();
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
	start("sleep", "on");
	assert_int_equal(post(IBV_WR_RDMA_WRITE, 0, 8, its.addr, its.rkey), 0);
	assert_int_equal(next_completion().status, IBV_WC_SUCCESS);
	assert_int_equal(sim_verbs.modify_qp(my.qp, &attr, IBV_QP_STATE), 0);
	assert_int_equal(sim_verbs.modify_qp(my.qp, &attr, IBV_QP_STATE | IBV_QP_TIMEOUT |
					     IBV_QP_RETRY_CNT), 0);
	attr.qp_state = IBV_QPS_RTS;
	assert_int_equal(sim_verbs.modify_qp(my.qp, &attr, IBV_QP_STATE), 0);

	assert_int_equal(kill(pid, SIGSTOP), 0);
	assert_int_equal(waitpid(pid, &status, WUNTRACED), pid);
	assert_true(WIFSTOPPED(status));
	assert_int_equal(post(IBV_WR_RDMA_WRITE, 0, 8, its.addr, its.rkey), 0);
	let_pass(SIM_MS(200));
	assert_int_equal(ibv_poll_cq(my.cq, 1, &wc), 0);
	assert_int_equal(kill(pid, SIGCONT), 0);
	assert_int_equal(next_completion().status, IBV_WC_SUCCESS);
	end();
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
	start("sleep", "on");
	assert_int_equal(sim_verbs.modify_qp(my.qp, &attr, IBV_QP_STATE), 0);
	assert_int_equal(sim_verbs.modify_qp(my.qp, &attr, IBV_QP_STATE | IBV_QP_TIMEOUT |
					     IBV_QP_RETRY_CNT), 0);
	attr.qp_state = IBV_QPS_RTS;
	assert_int_equal(sim_verbs.modify_qp(my.qp, &attr, IBV_QP_STATE), 0);
	sim_lock();
	assert_int_equal(sim_fault_add(&lose, &number, why, sizeof(why)), 0);
	sim_unlock();

	assert_int_equal(post(IBV_WR_RDMA_WRITE, 0, 8, its.addr, its.rkey), 0);
	sim_lock();
	sim_segment_notify(sim_segment_slot(), SIM_MAX_SLOTS - 1);	/* a slot that nobody has */
	rc_timer(&nic_qp(my.qp)->timer);
	sim_unlock();
	assert_int_equal(ibv_poll_cq(my.cq, 1, &wc), 1);
	assert_int_equal(wc.status, IBV_WC_RETRY_EXC_ERR);
	sim_lock();
	assert_int_equal(sim_fault_remove(number), 0);
	sim_unlock();
	end();
}

static void groups_of_several_processes(void **state)
{
	unsigned int own = 0;

	(void)state;
	start("group", "on");
	assert_true(join_group());
	assert_true(send_to_group(10));
	for (unsigned int i = 0; i < 2; i++) {
		struct ibv_wc wc = next_completion();

		assert_int_equal(wc.status, IBV_WC_SUCCESS);
		own += wc.src_qp == group_qp->qp_num;
		assert_int_equal(wc.byte_len, wc.src_qp == group_qp->qp_num ? 50 : 60);
	}
	assert_int_equal(own, 1);
	assert_true(leave_group());
	end();
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
	start("group-sleep", "on");
	assert_true(join_group());
	assert_int_equal(members(), 2);
	assert_int_equal(kill(pid, SIGKILL), 0);
	reap(SIGKILL);
	assert_true(send_to_group(10));
	assert_int_equal(next_completion().byte_len, 50);
	sim_lock();
	sim_segment_lock();
	sim_segment_reclaim_all();
	sim_segment_unlock();
	sim_unlock();
	assert_int_equal(members(), 1);
	assert_true(leave_group());
	assert_int_equal(members(), 0);
	close_end();
}

static int make_folder(void **state)
{
	(void)state;
	memset(folder, 0, sizeof(folder));
	strcpy(folder, "/tmp/polycm-test-");
	memset(folder + strlen(folder), 'X', 6);	/* for mkdtemp() to replace */
	assert_non_null(mkdtemp(folder));
	return setenv("XDG_RUNTIME_DIR", folder, 1);
}

static int remove_folder(void **state)
{
	char path[128];

	(void)state;
	snprintf(path, sizeof(path), "%s/polycm", folder);
	rmdir(path);
	return rmdir(folder);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(messages_read_directly, make_folder, remove_folder),
		cmocka_unit_test_setup_teardown(messages_in_fragments, make_folder, remove_folder),
		cmocka_unit_test_setup_teardown(one_sided_read_directly, make_folder,
						remove_folder),
		cmocka_unit_test_setup_teardown(one_sided_in_fragments, make_folder, remove_folder),
		cmocka_unit_test_setup_teardown(peer_that_dies, make_folder, remove_folder),
		cmocka_unit_test_setup_teardown(peer_that_stands_still, make_folder,
						remove_folder),
		cmocka_unit_test_setup_teardown(mail_of_others_is_no_answer, make_folder,
						remove_folder),
		cmocka_unit_test_setup_teardown(groups_of_several_processes, make_folder,
						remove_folder),
		cmocka_unit_test_setup_teardown(member_that_dies, make_folder, remove_folder),
	};

	if (argc == 3 && !strcmp(argv[1], "--child"))
		return child(argv[2]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
