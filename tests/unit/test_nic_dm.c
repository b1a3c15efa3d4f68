/* SPDX-License-Identifier: BSD-2-Clause */
/* Device memory: its size, copies, and its zero-based regions. */
#include "config.h"

#include <errno.h>

#include "nic_pair.h"

#define ACCESS (PAIR_ALL | IBV_ACCESS_ZERO_BASED)

static size_t dm_size(struct pair_side *side)
{
	struct ibv_device_attr_ex attr;

	assert_int_equal(ibv_query_device_ex(side->context, NULL, &attr), 0);
	return attr.max_dm_size;
}

static struct ibv_dm *make(struct pair_side *side, size_t length)
{
	struct ibv_alloc_dm_attr attr = { .length = length };

	errno = 0;
	return ibv_alloc_dm(side->context, &attr);
}

static void attributes_are_checked(void **state)
{
	size_t max = dm_size(&a);
	const struct ibv_alloc_dm_attr cases[] = {
		{ .length = 0 },
		{ .length = max + 1 },
		{ .length = SIZE_MAX },
		{ .length = 64, .comp_mask = 1 },
		{ .length = 64, .log_align_req = 32 },
		{ .length = 64, .log_align_req = 31 },
	};
	struct ibv_alloc_dm_attr aligned = { .length = 8, .log_align_req = 12 };
	struct ibv_dm *dm;

	(void)state;
	assert_int_not_equal(max, 0);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct ibv_alloc_dm_attr attr = cases[i];

		errno = 0;
		assert_null(ibv_alloc_dm(a.context, &attr));
		assert_int_equal(errno, EINVAL);
		assert_true(pair_warned("ibv_alloc_dm refused"));
	}
	dm = ibv_alloc_dm(a.context, &aligned);
	assert_non_null(dm);
	assert_ptr_equal(dm->context, a.context);
	assert_int_equal(ibv_free_dm(dm), 0);
}

/* The device has so much, whichever context takes it. */
static void it_has_an_end(void **state)
{
	struct pair_side again = { .context = sim_verbs.open_device(a.context->device) };
	size_t max = dm_size(&a);
	struct ibv_dm *half = make(&a, max / 2), *rest;

	(void)state;
	rest = make(&again, max / 2);
	assert_non_null(rest);
	assert_null(make(&a, 4));
	assert_int_equal(errno, ENOMEM);
	assert_true(pair_warned("ibv_alloc_dm refused: length is 4, and "));
	/* The other device has its own. */
	assert_int_equal(ibv_free_dm(make(&b, max)), 0);
	assert_int_equal(ibv_free_dm(half), 0);
	half = make(&a, 4);
	assert_non_null(half);
	assert_int_equal(ibv_free_dm(half), 0);
	/* Closing a context gives back what it had. */
	assert_int_equal(sim_verbs.close_device(again.context), 0);
	assert_int_equal(ibv_free_dm(make(&a, max)), 0);
}

static void copies_stay_within(void **state)
{
	static const struct {
		uint64_t offset;
		size_t length;
		int err;
	} cases[] = {
		{ 0, 100, 0 }, { 96, 4, 0 }, { 100, 0, 0 }, { 0, 104, EFAULT }, { 100, 4, EFAULT },
		{ 104, 0, EFAULT }, { UINT64_MAX - 3, 4, EFAULT }, { 4, SIZE_MAX - 3, EFAULT },
		{ 1, 4, EINVAL }, { 4, 3, EINVAL },
	};
	struct ibv_dm *dm = make(&a, 100);
	uint8_t in[100], out[100];

	(void)state;
	for (size_t i = 0; i < sizeof(in); i++)
		in[i] = (uint8_t)(i + 1);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		assert_int_equal(ibv_memcpy_to_dm(dm, cases[i].offset, in, cases[i].length),
				 cases[i].err);
		assert_int_equal(ibv_memcpy_from_dm(out, dm, cases[i].offset, cases[i].length),
				 cases[i].err);
		if (cases[i].err)
			assert_true(pair_warned("ibv_memcpy_from_dm refused"));
		else
			assert_memory_equal(in, out, cases[i].length);
	}
	assert_int_equal(ibv_free_dm(dm), 0);
}

static void regions_are_checked(void **state)
{
	struct ibv_dm *dm = make(&a, 100), *other = make(&b, 100);
	const struct {
		struct ibv_dm *dm;
		uint64_t offset;
		size_t length;
		unsigned int access;
	} cases[] = {
		{ dm, 0, 104, ACCESS }, { dm, 104, 0, ACCESS }, { dm, UINT64_MAX, 4, ACCESS },
		{ dm, 0, 100, PAIR_ALL },
		{ dm, 0, 100, IBV_ACCESS_ZERO_BASED | IBV_ACCESS_REMOTE_WRITE },
		{ other, 0, 100, ACCESS },
	};
	struct ibv_mr *mr;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		errno = 0;
		assert_null(ibv_reg_dm_mr(a.pd, cases[i].dm, cases[i].offset, cases[i].length,
					  cases[i].access));
		assert_int_equal(errno, EINVAL);
		assert_true(pair_warned("ibv_reg_dm_mr refused"));
	}
	mr = ibv_reg_dm_mr(a.pd, dm, 0, 100, ACCESS);
	assert_non_null(mr);
	assert_null(mr->addr);
	assert_int_equal(mr->length, 100);
	assert_int_equal(ibv_free_dm(dm), EBUSY);
	assert_true(pair_warned("ibv_free_dm refused: regions of it are left: 1"));
	assert_int_equal(sim_verbs.rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, ACCESS),
			 IBV_REREG_MR_ERR_INPUT);
	assert_int_equal(sim_verbs.dereg_mr(mr), 0);
	assert_int_equal(ibv_free_dm(dm), 0);
	assert_int_equal(ibv_free_dm(other), 0);
}

/* Addresses count from the region's beginning, on both sides. */
static void data_goes_there_and_comes_from_there(void **state)
{
	enum { SIZE = 40000, SKIP = 64 };
	static uint8_t data[SIZE], back[SIZE];

	(void)state;
	for (enum pair_transport t = PAIR_ROCE; t <= PAIR_IB; t++) {
		struct pair_conn conn = pair_defaults();
		struct ibv_dm *dm;
		struct ibv_mr *mr;
		struct ibv_sge sge;
		struct ibv_send_wr wr;
		uint64_t old;

		pair_open(t);
		dm = make(&b, SIZE);
		mr = ibv_reg_dm_mr(b.pd, dm, SKIP, SIZE - SKIP, ACCESS);
		pair_connect(&conn);
		pair_fill(&a, 0, SIZE, 3);
		sge = pair_sge(&a, 0, 30000);
		wr = (struct ibv_send_wr) {
			.wr_id = 1, .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE,
			.wr.rdma = { .remote_addr = 8, .rkey = mr->rkey },
		};
		assert_int_equal(pair_post(&a, &wr), 0);
		pair_expect(&a, 1, IBV_WC_SUCCESS);
		assert_int_equal(ibv_memcpy_from_dm(back, dm, SKIP + 8, 30000), 0);
		assert_memory_equal(back, a.buf, 30000);

		/* Its owner sends from it. */
		assert_int_equal(pair_recv(&a, 2, 32768, 30000), 0);
		sge = (struct ibv_sge) { .addr = 8, .length = 30000, .lkey = mr->lkey };
		wr = (struct ibv_send_wr) {
			.wr_id = 3, .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND,
		};
		assert_int_equal(pair_post(&b, &wr), 0);
		pair_expect(&a, 2, IBV_WC_SUCCESS);
		pair_expect(&b, 3, IBV_WC_SUCCESS);
		assert_memory_equal(a.buf + 32768, a.buf, 30000);

		/* Atomics reach it. */
		memset(data, 0, 8);
		data[0] = 5;
		assert_int_equal(ibv_memcpy_to_dm(dm, SKIP, data, 8), 0);
		sge = pair_sge(&a, 0, 8);
		wr = (struct ibv_send_wr) {
			.wr_id = 4, .sg_list = &sge, .num_sge = 1,
			.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD,
			.wr.atomic = { .compare_add = 2, .rkey = mr->rkey },
		};
		assert_int_equal(pair_post(&a, &wr), 0);
		pair_expect(&a, 4, IBV_WC_SUCCESS);
		memcpy(&old, a.buf, 8);
		assert_int_equal(old, 5);
		assert_int_equal(ibv_memcpy_from_dm(back, dm, SKIP, 8), 0);
		assert_int_equal(back[0], 7);

		/* The region ends where it ends. */
		wr.wr_id = 5;
		wr.wr.atomic.remote_addr = SIZE - SKIP;
		assert_int_equal(pair_post(&a, &wr), 0);
		pair_expect(&a, 5, IBV_WC_REM_ACCESS_ERR);
		pair_disconnect();
		assert_int_equal(sim_verbs.dereg_mr(mr), 0);
		assert_int_equal(ibv_free_dm(dm), 0);
		pair_close();
	}
}

static void iwarp_has_none(void **state)
{
	(void)state;
	pair_open(PAIR_IWARP);
	assert_int_equal(dm_size(&a), 0);
	assert_null(make(&a, 4));
	assert_int_equal(errno, EOPNOTSUPP);
	assert_true(pair_warned("ibv_alloc_dm refused: the device has no memory for it"));
	pair_close();
}

#define ROCE(test) cmocka_unit_test_setup_teardown(test, open_roce, close_pair)

int main(void)
{
	const struct CMUnitTest tests[] = {
		ROCE(attributes_are_checked),
		ROCE(it_has_an_end),
		ROCE(copies_stay_within),
		ROCE(regions_are_checked),
		cmocka_unit_test(data_goes_there_and_comes_from_there),
		cmocka_unit_test(iwarp_has_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
