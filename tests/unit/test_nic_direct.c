/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Direct access: the initiator reads and writes the memory of another process, which is
 * stopped meanwhile; what forbids it; and what the owner of the memory can rely on when it has
 * taken the permission back.  `test_nic_direct TIMES' does it more often.
 */
#include "config.h"

#include <limits.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "providers/soft/link/shm/access.h"
#include "providers/soft/link/tap.h"
#include "providers/soft/shm/visit.h"
#include "shm_pair.h"

#define BLOCK 65536u
#define PAGE 4096u
#define INNER (8u * PAGE)

static void *moved;

/* --- The child: takes back a permission while the test writes, and looks. --- */

static void seen(const struct sim_packet *packet)
{
	(void)packet;
}

static void seen_leaving(const struct sim_packet *packet, unsigned int to_slot)
{
	(void)packet;
	(void)to_slot;
}

static bool prepare(const char *mode)
{
	static struct sim_tap tap = { .sent = seen_leaving, .received = seen };

	if (!strcmp(mode, "take"))
		return !pair_post_receive();
	if (strcmp(mode, "watch"))
		return true;
	sim_lock();
	sim_tap_add(&tap);
	sim_unlock();
	return true;
}

static int to_error(void)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };

	return sim_verbs.modify_qp(my.qp, &attr, IBV_QP_STATE);
}

static int to_read_only(void)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTS, .qp_access_flags = IBV_ACCESS_REMOTE_READ,
	};

	return sim_verbs.modify_qp(my.qp, &attr, IBV_QP_STATE | IBV_QP_ACCESS_FLAGS);
}

static int deregister(void)
{
	int err = sim_verbs.dereg_mr(my.mr);

	my.mr = NULL;
	return err;
}

static int reregister(void)
{
	return sim_verbs.rereg_mr(my.mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0,
				  IBV_ACCESS_LOCAL_WRITE);
}

static int destroy(void)
{
	int err = sim_verbs.destroy_qp(my.qp);

	my.qp = NULL;
	return err;
}

/* Whole pages within what is written. */
static uint8_t *inner_pages(void)
{
	return (uint8_t *)(((uintptr_t)my.buf + 2 * PAGE) & ~(uintptr_t)(PAGE - 1));
}

/* Other memory takes their place. */
static int unmap(void)
{
	return mmap(inner_pages(), INNER, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED;
}

static int move_away(void)
{
	void *to = mmap(NULL, INNER, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (to == MAP_FAILED ||
	    mremap(inner_pages(), INNER, INNER, MREMAP_MAYMOVE | MREMAP_FIXED, to) == MAP_FAILED)
		return -1;
	moved = to;
	return unmap();
}

static const struct taking_back {
	const char *mode;
	int (*take_back)(void);
	bool inner;			/* it does that with the inner pages only */
} ways[] = {
	{ "dereg", deregister, false },
	{ "rereg", reregister, false },
	{ "error", to_error, false },
	{ "read-only", to_read_only, false },
	{ "destroy", destroy, false },
	{ "unmap", unmap, true },
	{ "move", move_away, true },
};

static bool is_all(const uint8_t *memory, size_t len, uint8_t value)
{
	for (size_t i = 0; i < len; i++)
		if (__atomic_load_n(&memory[i], __ATOMIC_RELAXED) != value)
			return false;
	return true;
}

static void await_write(void)
{
	while (!__atomic_load_n(&my.buf[BLOCK - 1], __ATOMIC_ACQUIRE))
		;
}

/* Nothing is written after the call has returned. */
static bool take_back_while_written(const struct taking_back *way)
{
	uint8_t *memory = way->inner ? inner_pages() : my.buf;
	size_t len = way->inner ? INNER : BLOCK;

	await_write();
	if (way->take_back())
		return false;
	memset(memory, 0x55, len);
	for (unsigned int i = 0; i < 200; i++)
		if (!is_all(memory, len, 0x55))
			return false;
	if (moved)
		munmap(moved, INNER);
	return !way->inner || !to_error();
}

/* A child has what was there when it began. */
static bool fork_while_written(void)
{
	static uint8_t then[BLOCK];
	int status;
	pid_t pid;

	await_write();
	pid = fork();
	if (!pid) {
		memcpy(then, my.buf, BLOCK);
		for (unsigned int i = 0; i < 200; i++)
			if (memcmp(then, my.buf, BLOCK))
				_exit(1);
		my.buf[5]++;
		_exit(0);
	}
	return pid > 0 && waitpid(pid, &status, 0) == pid && !status && !to_error();
}

static bool work(const char *mode)
{
	bool good = true;

	if (!strcmp(mode, "fork"))
		return fork_while_written();
	for (size_t i = 0; i < ARRAY_SIZE(ways); i++)
		if (!strcmp(mode, ways[i].mode))
			good = take_back_while_written(&ways[i]);
	return good;
}

/* --- The test. --- */

/* The first one is a message, and its answer an offer. */
static void begin(const char *mode, const char *direct)
{
	assert_int_equal(setenv("POLYCM_SIM_DIRECT", direct, 1), 0);
	pair_start(mode, "on");
	assert_int_equal(pair_post(IBV_WR_RDMA_WRITE, 0, 8, its.addr + SIZE, its.rkey), 0);
	assert_int_equal(pair_next_completion().status, IBV_WC_SUCCESS);
}

static bool is_direct(void)
{
	bool direct;

	sim_lock();
	direct = sim_access_enter(nic_qp(my.qp)->peer_slot) != NULL;
	sim_visit_leave();
	sim_unlock();
	return direct;
}

static void stop_child(void)
{
	int status;

	assert_int_equal(kill(pair_pid, SIGSTOP), 0);
	assert_int_equal(waitpid(pair_pid, &status, WUNTRACED), pair_pid);
	assert_true(WIFSTOPPED(status));
}

/* Sanitizers and containers may forbid system calls on another process's memory. */
static void skip_without_calls(void)
{
	if (is_direct())
		return;
	assert_int_equal(kill(pair_pid, SIGKILL), 0);
	pair_reap(SIGKILL);
	pair_close();
	print_message("this system does not let a process write to another one's memory\n");
	skip();
}

static const uint32_t sizes[] = { 1, 64, 4096, 8192, 8193, BLOCK, 1000001, SIZE };

static void write_to_stopped(const char *direct)
{
	begin("sleep", direct);
	skip_without_calls();
	stop_child();
	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		pair_fill(sizes[i], (uint8_t)i);
		memset(my.buf + SIZE, 0, SIZE);
		assert_int_equal(pair_post(IBV_WR_RDMA_WRITE, 0, sizes[i], its.addr + 100,
					   its.rkey), 0);
		assert_int_equal(pair_post(IBV_WR_RDMA_READ, SIZE, sizes[i], its.addr + 100,
					   its.rkey), 0);
		for (int n = 0; n < 2; n++)
			assert_int_equal(pair_next_completion().status, IBV_WC_SUCCESS);
		assert_memory_equal(my.buf, my.buf + SIZE, sizes[i]);
	}
	if (!strcmp(direct, "on")) {
		memset(my.buf, 0, 8);
		assert_int_equal(pair_post(IBV_WR_RDMA_WRITE, 0, 8, its.addr + PAGE, its.rkey), 0);
		for (int n = 0; n < 2; n++)
			assert_int_equal(pair_add(its.addr + PAGE, 5), 0);
		for (int n = 0; n < 3; n++)
			assert_int_equal(pair_next_completion().status, IBV_WC_SUCCESS);
		assert_int_equal(*(const uint64_t *)(const void *)my.buf, 5);
	}
	assert_int_equal(kill(pair_pid, SIGCONT), 0);
	/* The numbers of packets are as if none had been left out. */
	assert_int_equal(pair_post(IBV_WR_RDMA_WRITE_WITH_IMM, 0, 0, its.addr, its.rkey), 0);
	assert_int_equal(pair_post(IBV_WR_RDMA_READ, SIZE, 1, its.addr + 100, its.rkey), 0);
	pair_end();
}

static void stopped_peer(void **state)
{
	(void)state;
	write_to_stopped("on");
	write_to_stopped("calls");
}

/* The data of a write with immediate data is there before the receiver does anything. */
static void immediate_data(void **state)
{
	char there[100];
	struct iovec to = { .iov_base = there, .iov_len = sizeof(there) };
	struct iovec from = { .iov_len = sizeof(there) };
	struct ibv_wc wc;

	(void)state;
	begin("take", "on");
	skip_without_calls();
	from.iov_base = (void *)(uintptr_t)(its.addr + 300);
	stop_child();
	pair_fill(sizeof(there), 3);
	assert_int_equal(pair_post(IBV_WR_RDMA_WRITE_WITH_IMM, 0, sizeof(there), its.addr + 300,
				   its.rkey), 0);
	assert_int_equal(process_vm_readv(pair_pid, &to, 1, &from, 1, 0), sizeof(there));
	assert_memory_equal(there, my.buf, sizeof(there));
	assert_int_equal(ibv_poll_cq(my.cq, 1, &wc), 0);
	assert_int_equal(kill(pair_pid, SIGCONT), 0);
	assert_int_equal(pair_next_completion().status, IBV_WC_SUCCESS);
	pair_end();
}

/* Switched off, watched by the peer, watched here: then the peer has to answer. */
static void reasons_for_packets(void **state)
{
	static const struct {
		const char *mode, *direct;
		bool here;
	} cases[] = { { "sleep", "off", false }, { "watch", "on", false }, { "sleep", "on", true } };
	static struct sim_tap tap = { .sent = seen_leaving, .received = seen };
	struct ibv_wc wc;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		begin(cases[i].mode, cases[i].direct);
		if (cases[i].here) {
			sim_lock();
			sim_tap_add(&tap);
			sim_unlock();
		}
		assert_false(is_direct());
		stop_child();
		assert_int_equal(pair_post(IBV_WR_RDMA_WRITE, 0, 8, its.addr, its.rkey), 0);
		assert_int_equal(ibv_poll_cq(my.cq, 1, &wc), 0);
		assert_int_equal(kill(pair_pid, SIGCONT), 0);
		assert_int_equal(pair_next_completion().status, IBV_WC_SUCCESS);
		if (cases[i].here) {
			sim_lock();
			sim_tap_remove(&tap);
			sim_unlock();
		}
		pair_end();
	}
}

/* What the keys forbid is refused as by packets. */
static void keys(void **state)
{
	static const struct {
		enum ibv_wr_opcode opcode;
		uint32_t key, length;
		uint64_t offset;
	} cases[] = {
		{ IBV_WR_RDMA_WRITE, 1, 8, 0 },
		{ IBV_WR_RDMA_WRITE, 1u << 12, 8, 0 },
		{ IBV_WR_RDMA_WRITE, 0x7fffffff, 8, 0 },
		{ IBV_WR_RDMA_READ, 0, 8, 2 * SIZE - 7 },
		{ IBV_WR_RDMA_WRITE, 0, 8, (uint64_t)-1 },
		{ IBV_WR_RDMA_WRITE, 0, 8, (uint64_t)1 << 63 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		begin("sleep", "on");
		assert_int_equal(pair_post(cases[i].opcode, 0, cases[i].length,
					   its.addr + cases[i].offset, its.rkey ^ cases[i].key), 0);
		assert_int_equal(pair_next_completion().status, IBV_WC_REM_ACCESS_ERR);
		pair_end();
	}
}

/* A direct write is complete when the call returns.  False: the last one was no such write. */
static bool write_directly(void)
{
	struct ibv_wc wc;

	assert_int_equal(pair_post(IBV_WR_RDMA_WRITE, 0, BLOCK, its.addr, its.rkey), 0);
	return ibv_poll_cq(my.cq, 1, &wc) && wc.status == IBV_WC_SUCCESS;
}

/* A path to nobody: the peer's memory is not to be reached that way either. */
static void path_to_nobody(void **state)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_SQD, .ah_attr = { .port_num = 1, .is_global = 1 },
	};
	struct ibv_wc wc;

	(void)state;
	begin("sleep", "on");
	skip_without_calls();
	assert_int_equal(sim_verbs.modify_qp(my.qp, &attr, IBV_QP_STATE), 0);
	memset(attr.ah_attr.grh.dgid.raw, 0x22, sizeof(attr.ah_attr.grh.dgid));
	assert_int_equal(sim_verbs.modify_qp(my.qp, &attr, IBV_QP_STATE | IBV_QP_AV), 0);
	attr.qp_state = IBV_QPS_RTS;
	assert_int_equal(sim_verbs.modify_qp(my.qp, &attr, IBV_QP_STATE), 0);
	assert_int_equal(pair_post(IBV_WR_RDMA_WRITE, 0, 8, its.addr, its.rkey), 0);
	assert_int_equal(pair_post(IBV_WR_RDMA_WRITE_WITH_IMM, 0, 8, its.addr, its.rkey), 0);
	assert_int_equal(ibv_poll_cq(my.cq, 1, &wc), 0);
	pair_end();
}

static void write_while(const char *mode, const char *direct)
{
	begin(mode, direct);
	skip_without_calls();
	for (uint8_t value = 0xaa; write_directly(); value ^= 0xff)
		memset(my.buf, value, BLOCK);
	pair_end();
}

static unsigned int times = 1;

/* System calls and packets find memory by its address, whatever the program has mapped there. */
static void taken_back(void **state)
{
	static const char *const direct[] = { "on", "calls" };

	(void)state;
	for (unsigned int n = 0; n < times * ARRAY_SIZE(direct); n++) {
		for (size_t i = 0; i < ARRAY_SIZE(ways); i++)
			if (!ways[i].inner || n % 2 == 0)
				write_while(ways[i].mode, direct[n % 2]);
		write_while("fork", direct[n % 2]);
	}
}

/* Its memory stays mapped here; that the process is gone is found out in time. */
static void killed_peer(void **state)
{
	unsigned int written;

	(void)state;
	for (unsigned int n = 0; n < times; n++) {
		begin("sleep", n % 2 ? "calls" : "on");
		skip_without_calls();
		for (written = 0; write_directly(); written++)
			if (written == 500)
				assert_int_equal(kill(pair_pid, SIGKILL), 0);
		assert_in_range(written, 500, UINT_MAX);
		pair_reap(SIGKILL);
		pair_close();
	}
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(stopped_peer, pair_make_folder, pair_remove_folder),
		cmocka_unit_test_setup_teardown(immediate_data, pair_make_folder, pair_remove_folder),
		cmocka_unit_test_setup_teardown(reasons_for_packets, pair_make_folder,
						pair_remove_folder),
		cmocka_unit_test_setup_teardown(keys, pair_make_folder, pair_remove_folder),
		cmocka_unit_test_setup_teardown(path_to_nobody, pair_make_folder, pair_remove_folder),
		cmocka_unit_test_setup_teardown(taken_back, pair_make_folder, pair_remove_folder),
		cmocka_unit_test_setup_teardown(killed_peer, pair_make_folder, pair_remove_folder),
	};

	if (argc == 3 && !strcmp(argv[1], "--child"))
		return pair_child(argv[2], prepare, work);
	if (argc == 2)
		times = (unsigned int)atoi(argv[1]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
