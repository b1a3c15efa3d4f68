/* SPDX-License-Identifier: BSD-2-Clause */
/* shm_pair.c - see shm_pair.h. */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "providers/sim/fabric_open.h"
#include "providers/soft/host/host.h"
#include "providers/roce/rules.h"
#include "host_services.h"
#include "shm_pair.h"

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

struct pair_end my;
uint8_t pair_timeout;
struct pair_numbers its;

bool pair_open(struct pair_numbers *ret_numbers)
{
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_RC, .sq_sig_all = 1,
		.cap = { .max_send_wr = 16, .max_recv_wr = RECEIVES, .max_send_sge = 4,
			 .max_recv_sge = 1, .max_inline_data = 64 },
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
				 IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
				 IBV_ACCESS_REMOTE_ATOMIC);
	if (!my.mr)
		return false;
	*ret_numbers = (struct pair_numbers) {
		.qpn = my.qp->qp_num, .rkey = my.mr->rkey, .addr = (uintptr_t)my.buf,
	};
	return true;
}

bool pair_connect(const struct pair_numbers *peer)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT, .port_num = 1, .path_mtu = IBV_MTU_1024,
		.qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
				   IBV_ACCESS_REMOTE_ATOMIC,
		.dest_qp_num = peer->qpn, .max_dest_rd_atomic = 16, .max_rd_atomic = 16,
		/* No time-out: how long the other process waits for a processor is nobody's fault. */
		.min_rnr_timer = 1, .rnr_retry = 7, .timeout = pair_timeout,
		.retry_cnt = pair_timeout ? 0 : 7,
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

void pair_close(void)
{
	struct polycm_sim_counts counts;

	if (my.qp)
		assert_int_equal(sim_verbs.destroy_qp(my.qp), 0);
	if (my.mr)
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

int pair_post(enum ibv_wr_opcode opcode, size_t offset, uint32_t len, uint64_t remote, uint32_t rkey)
{
	struct ibv_sge sge = { .addr = (uintptr_t)my.buf + offset, .length = len, .lkey = my.mr->lkey };
	struct ibv_send_wr wr = {
		.wr_id = 1, .sg_list = &sge, .num_sge = 1, .opcode = opcode,
		.wr.rdma = { .remote_addr = remote, .rkey = rkey },
	}, *bad;

	return ibv_post_send(my.qp, &wr, &bad);
}

int pair_add(uint64_t remote, uint64_t value)
{
	struct ibv_sge sge = { .addr = (uintptr_t)my.buf, .length = 8, .lkey = my.mr->lkey };
	struct ibv_send_wr wr = {
		.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_ATOMIC_FETCH_AND_ADD,
		.wr.atomic = { .remote_addr = remote, .rkey = its.rkey, .compare_add = value },
	}, *bad;

	return ibv_post_send(my.qp, &wr, &bad);
}

int pair_post_receive(void)
{
	struct ibv_sge sge = { .addr = (uintptr_t)my.buf + SIZE, .length = SIZE, .lkey = my.mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = 2, .sg_list = &sge, .num_sge = 1 }, *bad;

	return ibv_post_recv(my.qp, &wr, &bad);
}

struct ibv_wc pair_next_completion(void)
{
	struct ibv_wc wc;

	while (!ibv_poll_cq(my.cq, 1, &wc))
		;
	return wc;
}

/* --- The other process. --- */

bool pair_input_ended(void)
{
	char byte;

	return read(0, &byte, 1) != 1;
}

int pair_child(const char *mode, bool (*prepare)(const char *mode), bool (*work)(const char *mode))
{
	struct pair_numbers mine, peer;

	if (!pair_open(&mine) || write(1, &mine, sizeof(mine)) != sizeof(mine) ||
	    read(0, &peer, sizeof(peer)) != sizeof(peer) || !pair_connect(&peer))
		return 2;
	if (!prepare(mode) || write(1, "", 1) != 1)
		return 3;
	if (!work(mode))
		return 4;
	while (!pair_input_ended())
		;
	pair_close();
	return 0;
}

pid_t pair_pid;
int pair_from_child;
static int to_child;
static char folder[64];

void pair_start(const char *mode, const char *pull)
{
	char *argv[] = { (char *)(uintptr_t)"child", (char *)(uintptr_t)"--child",
			 (char *)(uintptr_t)mode, NULL };
	posix_spawn_file_actions_t actions;
	char path[4096] = "";
	int in[2], out[2];
	struct pair_numbers mine;
	char byte;

	/* The link itself leads elsewhere under valgrind. */
	assert_in_range(readlink("/proc/self/exe", path, sizeof(path) - 1), 1, sizeof(path) - 2);

	assert_int_equal(setenv("POLYCM_SIM_PULL", pull, 1), 0);
	assert_int_equal(pipe2(in, O_CLOEXEC), 0);
	assert_int_equal(pipe2(out, O_CLOEXEC), 0);
	assert_int_equal(posix_spawn_file_actions_init(&actions), 0);
	posix_spawn_file_actions_adddup2(&actions, in[0], 0);
	posix_spawn_file_actions_adddup2(&actions, out[1], 1);
	assert_int_equal(posix_spawn(&pair_pid, path, &actions, NULL, argv, environ), 0);
	posix_spawn_file_actions_destroy(&actions);
	close(in[0]);
	close(out[1]);
	to_child = in[1];
	pair_from_child = out[0];

	assert_true(pair_open(&mine));
	assert_int_equal(read(pair_from_child, &its, sizeof(its)), sizeof(its));
	assert_int_equal(write(to_child, &mine, sizeof(mine)), sizeof(mine));
	assert_true(pair_connect(&its));
	assert_int_equal(read(pair_from_child, &byte, 1), 1);
}

void pair_reap(int expected)
{
	int status;

	close(to_child);
	assert_int_equal(waitpid(pair_pid, &status, 0), pair_pid);
	assert_int_equal(status, expected);
	close(pair_from_child);
}

void pair_end(void)
{
	pair_reap(0);
	pair_close();
}

void pair_fill(size_t len, uint8_t seed)
{
	for (size_t i = 0; i < len; i++)
		my.buf[i] = (uint8_t)(i * 7 + (i >> 11) + seed);
}

int pair_make_folder(void **state)
{
	(void)state;
	memset(folder, 0, sizeof(folder));
	strcpy(folder, "/tmp/polycm-test-");
	memset(folder + strlen(folder), 'X', 6);	/* for mkdtemp() to replace */
	assert_non_null(mkdtemp(folder));
	return setenv("XDG_RUNTIME_DIR", folder, 1);
}

int pair_remove_folder(void **state)
{
	char path[128];

	(void)state;
	snprintf(path, sizeof(path), "%s/polycm", folder);
	rmdir(path);
	return rmdir(folder);
}
