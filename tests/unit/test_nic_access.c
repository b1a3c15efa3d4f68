/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory regions: registration, and who may do what with which key.  Both
 * ends of an RDMA operation report the violation as adapters do.
 */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <sys/mman.h>

#include "nic_pair.h"

enum {
	L = IBV_ACCESS_LOCAL_WRITE,
	W = IBV_ACCESS_REMOTE_WRITE,
	R = IBV_ACCESS_REMOTE_READ,
	A = IBV_ACCESS_REMOTE_ATOMIC,
};

static struct ibv_mr *reg(struct pair_side *side, void *addr, size_t len, unsigned int access)
{
	return sim_verbs.reg_mr(side->pd, addr, len, (uintptr_t)addr, access);
}

static void registration_errors(void **state)
{
	static const struct { unsigned int access; int err; } accesses[] = {
		{ 0, 0 }, { L, 0 }, { R, 0 }, { L | W, 0 }, { L | R, 0 }, { L | A, 0 },
		{ L | W | R | A, 0 }, { L | IBV_ACCESS_MW_BIND, 0 }, { L | IBV_ACCESS_HUGETLB, 0 },
		{ L | IBV_ACCESS_RELAXED_ORDERING, 0 },
		{ W, EINVAL }, { A, EINVAL }, { W | R, EINVAL }, { W | R | A, EINVAL },
		{ L | IBV_ACCESS_ON_DEMAND, 0 }, { L | SIM_ACCESS_FLUSH_GLOBAL, 0 },
		{ L | SIM_ACCESS_FLUSH_PERSISTENT, EINVAL }, { L | 1 << 10, EINVAL },
		{ 1u << 31, EINVAL },
	};
	struct { void *addr; size_t len; int err; } ranges[] = {
		{ a.buf, 1, 0 }, { a.buf + 1, PAIR_BUF - 1, 0 }, { a.buf, 0, EINVAL },
		{ NULL, 0, EINVAL }, { NULL, 1, EFAULT }, { (void *)4096, 1, EFAULT },
		{ a.buf, SIZE_MAX, EINVAL }, { a.buf, SIZE_MAX / 2, EFAULT },
	};
	struct ibv_mr *mr;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(accesses); i++) {
		errno = 0;
		mr = reg(&a, a.buf, 100, accesses[i].access);
		assert_int_equal(errno, accesses[i].err);
		assert_int_equal(!mr, accesses[i].err != 0);
		if (mr)
			assert_int_equal(sim_verbs.dereg_mr(mr), 0);
	}
	for (size_t i = 0; i < ARRAY_SIZE(ranges); i++) {
		errno = 0;
		mr = reg(&a, ranges[i].addr, ranges[i].len, L);
		assert_int_equal(errno, ranges[i].err);
		assert_int_equal(!mr, ranges[i].err != 0);
		if (mr)
			assert_int_equal(sim_verbs.dereg_mr(mr), 0);
	}
	/* The place in the page must be the same in both addresses. */
	assert_null(sim_verbs.reg_mr(a.pd, a.buf, 100, 0x1001, L));
	assert_int_equal(errno, EINVAL);
	/* Nor may the range wrap around. */
	assert_null(sim_verbs.reg_mr(a.pd, a.buf, PAIR_BUF, UINT64_MAX - 4095, L));
	assert_int_equal(errno, EINVAL);
}

/* As the kernel, which would have to make it writable for the device. */
static void read_only_memory_is_a_fault(void **state)
{
	static const struct { unsigned int access; int err[2]; } cases[] = {	/* read-only, none */
		{ 0, { 0, EFAULT } },
		{ IBV_ACCESS_REMOTE_READ, { 0, EFAULT } },
		{ IBV_ACCESS_LOCAL_WRITE, { EFAULT, EFAULT } },
		{ PAIR_ALL, { EFAULT, EFAULT } },
		{ IBV_ACCESS_MW_BIND, { EFAULT, EFAULT } },
	};
	static const int protections[] = { PROT_READ, PROT_NONE };
	const size_t page = 4096;
	uint8_t *map = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	(void)state;
	assert_ptr_not_equal(map, MAP_FAILED);
	for (size_t p = 0; p < ARRAY_SIZE(protections); p++) {
		/* The second page; the range begins in the first. */
		assert_int_equal(mprotect(map + page, page, protections[p]), 0);
		for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
			uint8_t *at = map + page - 8;
			struct ibv_mr *mr;

			errno = 0;
			mr = sim_verbs.reg_mr(a.pd, at, 16, (uintptr_t)at, cases[i].access);
			assert_int_equal(mr ? 0 : errno, cases[i].err[p]);
			if (mr)
				assert_int_equal(sim_verbs.dereg_mr(mr), 0);
			mr = sim_verbs.reg_mr(a.pd, at, 8, (uintptr_t)at, cases[i].access);
			assert_non_null(mr);
			assert_int_equal(sim_verbs.dereg_mr(mr), 0);
		}
	}
	munmap(map, 2 * page);
}

static void unmapped_memory_is_a_fault(void **state)
{
	char *map = mmap(NULL, 3 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	(void)state;
	assert_ptr_not_equal(map, MAP_FAILED);
	assert_int_equal(munmap(map + 4096, 4096), 0);
	assert_null(reg(&a, map, 3 * 4096, L));
	assert_int_equal(errno, EFAULT);
	munmap(map, 3 * 4096);
}

static void keys_are_not_used_twice_in_a_row(void **state)
{
	uint32_t keys[200];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
		struct ibv_mr *mr = reg(&a, a.buf, 100, L);

		assert_non_null(mr);
		assert_int_not_equal(mr->lkey, 0);
		assert_ptr_equal(mr->addr, a.buf);
		assert_int_equal(mr->length, 100);
		assert_ptr_equal(mr->pd, a.pd);
		assert_ptr_equal(mr->context, a.context);
		keys[i] = mr->lkey;
		for (size_t j = i < 50 ? 0 : i - 50; j < i; j++)
			assert_int_not_equal(keys[j], keys[i]);
		assert_int_equal(sim_verbs.dereg_mr(mr), 0);
	}
}

static void pd_with_regions_is_busy(void **state)
{
	(void)state;
	assert_int_equal(sim_verbs.dealloc_pd(a.pd), EBUSY);
}

/* --- Remote access. --- */

struct remote_case {
	enum ibv_wr_opcode op;
	unsigned int qp, mr;		/* access flags at the target */
	enum ibv_wc_status status;
};

static const struct remote_case remote_cases[] = {
	{ IBV_WR_RDMA_WRITE, W, L | W, IBV_WC_SUCCESS },
	{ IBV_WR_RDMA_WRITE, W | R | A, L | W | R | A, IBV_WC_SUCCESS },
	{ IBV_WR_RDMA_WRITE, R | A, L | W | R | A, IBV_WC_REM_ACCESS_ERR },
	{ IBV_WR_RDMA_WRITE, W | R | A, L | R | A, IBV_WC_REM_ACCESS_ERR },
	{ IBV_WR_RDMA_WRITE, W | R | A, L, IBV_WC_REM_ACCESS_ERR },
	{ IBV_WR_RDMA_WRITE, W | R | A, 0, IBV_WC_REM_ACCESS_ERR },
	{ IBV_WR_RDMA_READ, R, R, IBV_WC_SUCCESS },
	{ IBV_WR_RDMA_READ, W | R | A, L | W | R | A, IBV_WC_SUCCESS },
	{ IBV_WR_RDMA_READ, W | A, L | W | R | A, IBV_WC_REM_ACCESS_ERR },
	{ IBV_WR_RDMA_READ, W | R | A, L | W | A, IBV_WC_REM_ACCESS_ERR },
	{ IBV_WR_RDMA_READ, W | R | A, L, IBV_WC_REM_ACCESS_ERR },
	{ IBV_WR_ATOMIC_FETCH_AND_ADD, A, L | A, IBV_WC_SUCCESS },
	{ IBV_WR_ATOMIC_FETCH_AND_ADD, W | R, L | W | R | A, IBV_WC_REM_ACCESS_ERR },
	{ IBV_WR_ATOMIC_FETCH_AND_ADD, W | R | A, L | W | R, IBV_WC_REM_ACCESS_ERR },
	{ IBV_WR_ATOMIC_CMP_AND_SWP, A, L | A, IBV_WC_SUCCESS },
	{ IBV_WR_ATOMIC_CMP_AND_SWP, W | R | A, L | W | R, IBV_WC_REM_ACCESS_ERR },
};

/* Post the operation on [addr, addr + len) of the key and check both ends. */
static void check_remote(enum ibv_wr_opcode op, uint32_t rkey, uint64_t addr, size_t len,
			 enum ibv_wc_status status)
{
	struct ibv_sge sge = pair_sge(&a, 0, len);
	struct ibv_send_wr wr = { .wr_id = 1, .sg_list = &sge, .num_sge = 1, .opcode = op };

	if (op == IBV_WR_RDMA_WRITE || op == IBV_WR_RDMA_READ) {
		wr.wr.rdma.rkey = rkey;
		wr.wr.rdma.remote_addr = addr;
	} else {
		wr.wr.atomic.rkey = rkey;
		wr.wr.atomic.remote_addr = addr;
	}
	assert_int_equal(pair_recv(&b, 77, 100, 8), 0);
	assert_int_equal(pair_post(&a, &wr), 0);
	pair_expect(&a, 1, status);
	if (status == IBV_WC_SUCCESS) {
		assert_int_equal(pair_state(b.qp), IBV_QPS_RTS);
		pair_no_async(&b);
		return;
	}
	assert_int_equal(pair_state(a.qp), IBV_QPS_ERR);
	pair_no_async(&a);
	assert_int_equal(pair_state(b.qp), IBV_QPS_ERR);
	pair_expect(&b, 77, IBV_WC_WR_FLUSH_ERR);
}

static void connect_with(unsigned int access)
{
	struct pair_conn conn = pair_defaults();

	conn.access = access;
	pair_connect(&conn);
}

static void remote_access_rights(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(remote_cases); i++) {
		const struct remote_case *c = &remote_cases[i];
		struct ibv_mr *mr = reg(&b, b.buf, 4096, c->mr);

		assert_non_null(mr);
		connect_with(c->qp);
		check_remote(c->op, mr->rkey, (uintptr_t)b.buf, 8, c->status);
		if (c->status != IBV_WC_SUCCESS) {
			pair_async(&b, IBV_EVENT_QP_ACCESS_ERR);
			pair_no_async(&b);
		}
		pair_disconnect();
		assert_int_equal(sim_verbs.dereg_mr(mr), 0);
	}
}

/* A region in the middle of the buffer: one byte more on either side is too much. */
static void bounds_are_exact(void **state)
{
	enum { START = 1000, LEN = 100 };
	static const struct { int64_t offset; size_t len; bool good; } cases[] = {
		{ 0, LEN, true }, { 0, 1, true }, { LEN - 1, 1, true }, { 50, 50, true },
		{ -1, 1, false }, { -1, LEN, false }, { 0, LEN + 1, false }, { LEN, 1, false },
		{ LEN - 1, 2, false }, { -1, LEN + 2, false }, { 1 << 20, 1, false },
		{ INT64_MAX, 1, false }, { INT64_MIN, 1, false },
	};
	static const enum ibv_wr_opcode ops[] = { IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases) * ARRAY_SIZE(ops); i++) {
		enum ibv_wr_opcode op = ops[i % ARRAY_SIZE(ops)];
		struct ibv_mr *mr = reg(&b, b.buf + START, LEN, L | W | R);
		uint64_t addr = (uintptr_t)b.buf + START + (uint64_t)cases[i / 2].offset;

		assert_non_null(mr);
		connect_with(W | R);
		check_remote(op, mr->rkey, addr, cases[i / 2].len,
			     cases[i / 2].good ? IBV_WC_SUCCESS : IBV_WC_REM_ACCESS_ERR);
		if (!cases[i / 2].good)
			pair_async(&b, IBV_EVENT_QP_ACCESS_ERR);
		pair_disconnect();
		assert_int_equal(sim_verbs.dereg_mr(mr), 0);
	}
}

static void wrong_keys(void **state)
{
	struct ibv_send_wr wr = { .wr_id = 3, .opcode = IBV_WR_RDMA_WRITE };
	uint32_t good = b.mr->rkey, stale;
	uint32_t keys[] = { 0, UINT32_MAX, good ^ 1, good + 4096, 0, 0 };
	struct ibv_pd *pd = sim_verbs.alloc_pd(b.context);
	struct ibv_mr *other, *gone = reg(&b, b.buf, 100, PAIR_ALL);

	(void)state;
	assert_non_null(pd);
	assert_non_null(gone);
	other = sim_verbs.reg_mr(pd, b.buf, 100, (uintptr_t)b.buf, PAIR_ALL);
	assert_non_null(other);
	stale = gone->rkey;
	assert_int_equal(sim_verbs.dereg_mr(gone), 0);

	keys[4] = stale;
	keys[5] = other->rkey;
	for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
		connect_with(W | R | A);
		check_remote(IBV_WR_RDMA_WRITE, keys[i], (uintptr_t)b.buf, 8, IBV_WC_REM_ACCESS_ERR);
		pair_async(&b, IBV_EVENT_QP_ACCESS_ERR);
		assert_non_null(strstr(pair_log(), "QP"));
		pair_disconnect();
	}
	/* Nothing is checked where nothing is moved. */
	connect_with(W | R | A);
	assert_int_equal(pair_post(&a, &wr), 0);
	pair_expect(&a, 3, IBV_WC_SUCCESS);
	wr.opcode = IBV_WR_RDMA_READ;
	assert_int_equal(pair_post(&a, &wr), 0);
	pair_expect(&a, 3, IBV_WC_SUCCESS);
	assert_int_equal(sim_verbs.dereg_mr(other), 0);
	assert_int_equal(sim_verbs.dealloc_pd(pd), 0);
}

static void the_log_says_which_key_and_why(void **state)
{
	char expected[96];

	(void)state;
	connect_with(W | R);
	check_remote(IBV_WR_RDMA_WRITE, 0x1234, (uintptr_t)b.buf, 8, IBV_WC_REM_ACCESS_ERR);
	pair_async(&b, IBV_EVENT_QP_ACCESS_ERR);
	snprintf(expected, sizeof(expected), "sim0 QP 0x%06x: a send request (wr_id 0x", a.qp->qp_num);
	assert_non_null(strstr(pair_log(), expected));
	assert_non_null(strstr(pair_log(), "completes with IBV_WC_REM_ACCESS_ERR: the peer does not "
			       "allow"));
}

/* --- Addresses other than the memory's own. --- */

static void iova_and_zero_based(void **state)
{
	static const struct { uint64_t iova; unsigned int access; uint64_t base; } cases[] = {
		{ 0, PAIR_ALL, 0 },
		{ 0x7000000000000000, PAIR_ALL, 0x7000000000000000 },
		{ 0x4000, PAIR_ALL | IBV_ACCESS_ZERO_BASED, 0 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct ibv_mr *mr = sim_verbs.reg_mr(b.pd, b.buf + 4096, 8192, cases[i].iova,
						     cases[i].access);
		struct ibv_sge sge = pair_sge(&a, 0, 20);
		struct ibv_send_wr wr = {
			.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE,
			.wr.rdma = { .remote_addr = cases[i].base + 8000, .rkey = mr->rkey },
		};

		connect_with(W | R);
		pair_fill(&a, 0, 20, (uint8_t)i);
		assert_int_equal(pair_post(&a, &wr), 0);
		pair_expect(&a, 0, IBV_WC_SUCCESS);
		pair_check(&b, 4096 + 8000, 20, (uint8_t)i);
		pair_disconnect();
		assert_int_equal(sim_verbs.dereg_mr(mr), 0);
	}
}

static void rereg_changes_what_it_is_told(void **state)
{
	struct ibv_pd *pd = sim_verbs.alloc_pd(b.context);
	struct ibv_mr *mr = reg(&b, b.buf, 100, L);
	struct ibv_sge sge = pair_sge(&a, 0, 200);
	struct ibv_send_wr wr = { .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE };
	uint32_t key = mr->rkey;

	(void)state;
	assert_int_equal(sim_verbs.rereg_mr(mr, 0, NULL, NULL, 0, 0), IBV_REREG_MR_ERR_INPUT);
	assert_int_equal(sim_verbs.rereg_mr(mr, 8, NULL, NULL, 0, 0), IBV_REREG_MR_ERR_INPUT);
	assert_int_equal(sim_verbs.rereg_mr(mr, IBV_REREG_MR_CHANGE_PD, NULL, NULL, 0, 0),
			 IBV_REREG_MR_ERR_INPUT);
	assert_int_equal(sim_verbs.rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, W),
			 IBV_REREG_MR_ERR_INPUT);
	assert_int_equal(sim_verbs.rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, NULL, 1, 0),
			 IBV_REREG_MR_ERR_INPUT);
	assert_int_equal(mr->rkey, key);

	assert_int_equal(sim_verbs.rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, L | W), 0);
	assert_int_equal(mr->rkey, key);
	assert_int_equal(sim_verbs.rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, b.buf + 50,
					    200, 0), 0);
	assert_int_not_equal(mr->rkey, key);
	key = mr->rkey;
	assert_ptr_equal(mr->addr, b.buf + 50);
	assert_int_equal(mr->length, 200);
	connect_with(W);
	wr.wr.rdma.remote_addr = (uintptr_t)b.buf + 50;
	wr.wr.rdma.rkey = mr->rkey;
	assert_int_equal(pair_post(&a, &wr), 0);
	pair_expect(&a, 0, IBV_WC_SUCCESS);
	assert_int_equal(sim_verbs.rereg_mr(mr, IBV_REREG_MR_CHANGE_PD, pd, NULL, 0, 0), 0);
	assert_ptr_equal(mr->pd, pd);
	assert_int_equal(mr->rkey, key);
	assert_int_equal(pair_post(&a, &wr), 0);
	pair_expect(&a, 0, IBV_WC_REM_ACCESS_ERR);
	assert_int_equal(sim_verbs.dealloc_pd(pd), EBUSY);
	assert_int_equal(sim_verbs.dereg_mr(mr), 0);
	assert_int_equal(sim_verbs.dealloc_pd(pd), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(registration_errors, open_roce, close_pair),
		cmocka_unit_test_setup_teardown(read_only_memory_is_a_fault, open_roce, close_pair),
		cmocka_unit_test_setup_teardown(unmapped_memory_is_a_fault, open_roce, close_pair),
		cmocka_unit_test_setup_teardown(keys_are_not_used_twice_in_a_row, open_roce,
						close_pair),
		cmocka_unit_test_setup_teardown(pd_with_regions_is_busy, open_roce, close_pair),
		cmocka_unit_test_setup_teardown(remote_access_rights, open_roce, close_pair),
		cmocka_unit_test_setup_teardown(bounds_are_exact, open_roce, close_pair),
		cmocka_unit_test_setup_teardown(wrong_keys, open_roce, close_pair),
		cmocka_unit_test_setup_teardown(the_log_says_which_key_and_why, open_roce,
						close_pair),
		cmocka_unit_test_setup_teardown(iova_and_zero_based, open_roce, close_pair),
		cmocka_unit_test_setup_teardown(rereg_changes_what_it_is_told, open_roce,
						close_pair),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
