/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The same random requests to another process, carried out by their initiator where that is
 * possible, and as packets: memory and completions of both processes are equal.
 *
 * `test_nic_random SEED OPERATIONS' plays another program, and more of it.
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "providers/soft/link/shm/access.h"
#include "providers/soft/nic/direct.h"
#include "providers/soft/shm/visit.h"
#include "shm_pair.h"

#define BATCH 8u
#define LENGTHS 5u

/* What a process has seen: FNV-1a. */
static uint64_t hash(uint64_t value, const void *bytes, size_t len)
{
	const uint8_t *at = bytes;

	for (size_t i = 0; i < len; i++)
		value = (value ^ at[i]) * 0x100000001b3u;
	return value;
}

static uint64_t seen = 0xcbf29ce484222325u;

static void see(const struct ibv_wc *wc)
{
	const uint64_t what[] = {
		wc->status == IBV_WC_SUCCESS ? wc->opcode : 0, wc->status,
		wc->status == IBV_WC_SUCCESS ? wc->byte_len : 0, wc->wr_id,
		wc->wc_flags & IBV_WC_WITH_IMM ? wc->imm_data : 0,
	};

	seen = hash(seen, what, sizeof(what));
}

static void see_memory(void)
{
	seen = hash(seen, my.buf, 2 * SIZE);
}

/* --- The child: takes messages until its QP is in error. --- */

static bool prepare(const char *mode)
{
	(void)mode;
	for (unsigned int i = 0; i < RECEIVES; i++)
		if (pair_post_receive())
			return false;
	return true;
}

static bool work(const char *mode)
{
	unsigned int flushed = 0;
	struct ibv_wc wc;

	(void)mode;
	while (flushed < RECEIVES) {
		wc = pair_next_completion();
		flushed += wc.status != IBV_WC_SUCCESS;
		see(&wc);
		if (wc.status == IBV_WC_SUCCESS && pair_post_receive())
			return false;
	}
	see_memory();
	return write(1, &seen, sizeof(seen)) == sizeof(seen);
}

/* --- The test. --- */

static uint64_t state;

static uint32_t draw(uint32_t below)
{
	state = state * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(state >> 33) % below;
}

static uint32_t draw_length(void)
{
	static const uint32_t most[LENGTHS] = { 9, 300, 8200, 20000, 100000 };

	return draw(draw(50) ? most[draw(LENGTHS - 1)] : most[LENGTHS - 1]);
}

struct request {
	struct ibv_send_wr wr;
	struct ibv_sge sge[4];
};

/* The first half of our buffer is sent from, and the second read to. */
static void draw_request(struct request *request, uint64_t id, bool fence)
{
	static const enum ibv_wr_opcode opcodes[] = {
		IBV_WR_SEND, IBV_WR_RDMA_WRITE, IBV_WR_RDMA_WRITE, IBV_WR_RDMA_WRITE_WITH_IMM,
		IBV_WR_RDMA_READ, IBV_WR_RDMA_READ, IBV_WR_ATOMIC_FETCH_AND_ADD,
		IBV_WR_ATOMIC_CMP_AND_SWP,
	};
	enum ibv_wr_opcode opcode = opcodes[draw(ARRAY_SIZE(opcodes))];
	bool atomic = opcode == IBV_WR_ATOMIC_FETCH_AND_ADD || opcode == IBV_WR_ATOMIC_CMP_AND_SWP;
	bool reads = atomic || opcode == IBV_WR_RDMA_READ;
	uint32_t parts = atomic ? 1 : 1 + draw(4);
	uint64_t remote = its.addr + draw(SIZE - 500000);

	*request = (struct request){
		.wr = {
			.wr_id = id, .opcode = opcode, .sg_list = request->sge, .num_sge = (int)parts,
			.send_flags = fence ? IBV_SEND_FENCE : 0, .imm_data = draw(1000),
		},
	};
	for (uint32_t i = 0; i < parts; i++)
		request->sge[i] = (struct ibv_sge){
			.addr = (uintptr_t)my.buf + (reads ? SIZE : 0) + draw(SIZE - 100000),
			.length = atomic ? 8 : draw_length(), .lkey = my.mr->lkey,
		};
	/* What is read to one place twice has what came last; a request has no order within. */
	for (uint32_t i = 1; reads && i < parts; i++)
		request->sge[i].addr = request->sge[i - 1].addr + request->sge[i - 1].length;
	if (reads && request->sge[0].addr > (uintptr_t)my.buf + 2 * SIZE - 500000)
		for (uint32_t i = 0; i < parts; i++)
			request->sge[i].addr -= 500000;
	if (!atomic) {
		request->wr.wr.rdma.remote_addr = remote;
		request->wr.wr.rdma.rkey = its.rkey;
		return;
	}
	/* The child's buffer begins anywhere. */
	request->wr.wr.atomic.remote_addr = (remote & ~(uint64_t)7) + 8;
	request->wr.wr.atomic.rkey = its.rkey;
	request->wr.wr.atomic.compare_add = draw(3);
	request->wr.wr.atomic.swap = draw(3);
}

/* Some requests at once; all are complete when this returns. */
static void play_batch(uint64_t *id)
{
	struct request requests[BATCH];
	struct ibv_send_wr *bad;
	uint32_t num = 1 + draw(BATCH);
	bool fence = false;

	for (uint32_t i = 0; i < num; i++) {
		draw_request(&requests[i], ++*id, fence);
		requests[i].wr.next = i + 1 < num ? &requests[i + 1].wr : NULL;
		/* What follows a read may overtake it, unless it is fenced. */
		fence |= requests[i].wr.opcode == IBV_WR_RDMA_READ || draw(4) == 0;
	}
	assert_int_equal(ibv_post_send(my.qp, &requests[0].wr, &bad), 0);
	for (uint32_t i = 0; i < num; i++) {
		struct ibv_wc wc = pair_next_completion();

		assert_int_equal(wc.status, IBV_WC_SUCCESS);
		see(&wc);
	}
	for (uint32_t i = 0; i < 16; i++)
		my.buf[draw(SIZE)] = (uint8_t)draw(256);
}

/* One that is refused, and two behind it. */
static void play_end(void)
{
	uint32_t kind = draw(3);
	uint64_t addr = its.addr + (kind == 0 ? 2 * SIZE : 0);
	uint32_t key = its.rkey ^ (kind == 1 ? 5 : kind == 2 ? 0x10000 : 0);

	assert_int_equal(pair_post(draw(2) ? IBV_WR_RDMA_WRITE : IBV_WR_RDMA_READ, 0, 100, addr,
				   key), 0);
	(void)pair_post(IBV_WR_RDMA_WRITE, 0, 100, its.addr, its.rkey);
	(void)pair_post(IBV_WR_SEND, 0, 100, 0, 0);
	for (int i = 0; i < 3; i++) {
		struct ibv_wc wc = pair_next_completion();

		see(&wc);
		assert_int_not_equal(wc.status, IBV_WC_SUCCESS);
	}
}

static bool is_allowed(void)
{
	bool allowed;

	sim_lock();
	allowed = sim_access_enter(nic_qp(my.qp)->peer_slot) != NULL;
	sim_visit_leave();
	sim_unlock();
	return allowed;
}

struct result {
	uint64_t mine, its;
};

static struct result play(uint64_t seed, uint64_t operations, const char *direct)
{
	struct result result;
	uint64_t done = 0;

	state = seed;
	seen = 0xcbf29ce484222325u;
	nic_direct_carried = 0;
	assert_int_equal(setenv("POLYCM_SIM_DIRECT", direct, 1), 0);
	pair_start("take", "on");
	pair_fill(SIZE, (uint8_t)seed);
	while (done < operations)
		play_batch(&done);
	/* Sanitizers and containers may forbid system calls on another process's memory. */
	if (!strcmp(direct, "off"))
		assert_int_equal(nic_direct_carried, 0);
	else if (is_allowed())
		assert_in_range(nic_direct_carried, operations / 10, operations);
	play_end();
	see_memory();
	result.mine = seen;
	assert_int_equal(read(pair_from_child, &result.its, sizeof(result.its)), sizeof(result.its));
	pair_end();
	return result;
}

static uint64_t first_seed = 1, seeds = 3, operations = 400;

static void equal_results(void **unused)
{
	static const char *const ways[] = { "on", "calls" };
	struct result result, packets;

	(void)unused;
	for (uint64_t seed = first_seed; seed < first_seed + seeds; seed++) {
		packets = play(seed, operations, "off");
		for (unsigned int i = 0; i < ARRAY_SIZE(ways); i++) {
			result = play(seed, operations, ways[i]);
			if (result.mine != packets.mine || result.its != packets.its)
				print_error("seed %llu, %s\n", (unsigned long long)seed, ways[i]);
			assert_int_equal(result.mine, packets.mine);
			assert_int_equal(result.its, packets.its);
		}
	}
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(equal_results, pair_make_folder, pair_remove_folder),
	};

	if (argc == 3 && !strcmp(argv[1], "--child"))
		return pair_child(argv[2], prepare, work);
	if (argc == 3) {
		first_seed = strtoull(argv[1], NULL, 0);
		operations = strtoull(argv[2], NULL, 0);
		seeds = 1;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
