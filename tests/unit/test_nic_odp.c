/* SPDX-License-Identifier: BSD-2-Clause */
/* On-demand paging: regions with holes, implicit regions, advice. */
#include "config.h"

#include <errno.h>
#include <sys/mman.h>

#include "nic_pair.h"

#define PAGE 4096u
#define ODP (PAIR_ALL | IBV_ACCESS_ON_DEMAND)

static char *map;		/* three pages; the second is a hole */
static struct ibv_mr *holed, *implicit;

static struct ibv_mr *reg(struct ibv_pd *pd, void *addr, size_t length, unsigned int access)
{
	return sim_verbs.reg_mr(pd, addr, length, (uintptr_t)addr, access);
}

static int open_holed(void **state)
{
	open_roce(state);
	map = mmap(NULL, 3 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(map, MAP_FAILED);
	assert_int_equal(munmap(map + PAGE, PAGE), 0);
	holed = reg(b.pd, map, 3 * PAGE, ODP);
	assert_non_null(holed);
	implicit = reg(b.pd, NULL, SIZE_MAX, ODP);
	assert_non_null(implicit);
	return 0;
}

static int close_holed(void **state)
{
	assert_int_equal(sim_verbs.dereg_mr(holed), 0);
	assert_int_equal(sim_verbs.dereg_mr(implicit), 0);
	munmap(map, 3 * PAGE);
	return close_pair(state);
}

static void write_to_map(uint32_t rkey, size_t offset, enum ibv_wc_status status)
{
	struct pair_conn conn = pair_defaults();
	struct ibv_sge sge = pair_sge(&a, 0, 64);
	struct ibv_send_wr wr = {
		.wr_id = 1, .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE,
		.wr.rdma = { .rkey = rkey, .remote_addr = (uintptr_t)map + offset },
	};

	pair_connect(&conn);
	a.buf[0]++;
	assert_int_equal(pair_post(&a, &wr), 0);
	pair_expect(&a, 1, status);
	if (status == IBV_WC_SUCCESS)
		assert_memory_equal(map + offset, a.buf, 64);
	pair_disconnect();
}

static void holes_are_access_errors(void **state)
{
	static const struct { size_t offset; enum ibv_wc_status status; } cases[] = {
		{ 0, IBV_WC_SUCCESS }, { PAGE - 64, IBV_WC_SUCCESS }, { 2 * PAGE, IBV_WC_SUCCESS },
		{ PAGE - 63, IBV_WC_REM_ACCESS_ERR }, { PAGE, IBV_WC_REM_ACCESS_ERR },
		{ 2 * PAGE - 1, IBV_WC_REM_ACCESS_ERR },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		write_to_map(holed->rkey, cases[i].offset, cases[i].status);
		write_to_map(implicit->rkey, cases[i].offset, cases[i].status);
	}
	/* What is mapped later is found. */
	assert_ptr_equal(mmap(map + PAGE, PAGE, PROT_READ | PROT_WRITE,
			      MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0), map + PAGE);
	write_to_map(holed->rkey, PAGE, IBV_WC_SUCCESS);
	write_to_map(implicit->rkey, PAGE, IBV_WC_SUCCESS);
}

/* Memory that the host may not touch is none for the peer, and ends no process. */
static void forbidden_pages_are_access_errors(void **state)
{
	(void)state;
	assert_int_equal(mprotect(map, PAGE, PROT_READ), 0);
	assert_int_equal(mprotect(map + 2 * PAGE, PAGE, PROT_NONE), 0);
	write_to_map(holed->rkey, 0, IBV_WC_REM_ACCESS_ERR);
	write_to_map(implicit->rkey, 0, IBV_WC_REM_ACCESS_ERR);
	write_to_map(holed->rkey, 2 * PAGE, IBV_WC_REM_ACCESS_ERR);
	write_to_map(implicit->rkey, 2 * PAGE, IBV_WC_REM_ACCESS_ERR);
}

/* Without on-demand paging all of it must be there. */
static void a_holed_region_stays_on_demand(void **state)
{
	const int change = IBV_REREG_MR_CHANGE_ACCESS;

	(void)state;
	assert_int_equal(sim_verbs.rereg_mr(holed, change, NULL, NULL, 0, PAIR_ALL),
			 IBV_REREG_MR_ERR_INPUT);
	assert_true(pair_warned("are no range of memory"));
	assert_int_equal(sim_verbs.rereg_mr(implicit, change, NULL, NULL, 0, PAIR_ALL),
			 IBV_REREG_MR_ERR_INPUT);
	write_to_map(holed->rkey, PAGE, IBV_WC_REM_ACCESS_ERR);
	assert_int_equal(sim_verbs.rereg_mr(holed, change, NULL, NULL, 0,
					    ODP & ~(unsigned int)IBV_ACCESS_REMOTE_READ), 0);
	write_to_map(holed->rkey, PAGE, IBV_WC_REM_ACCESS_ERR);
	assert_ptr_equal(mmap(map + PAGE, PAGE, PROT_READ | PROT_WRITE,
			      MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0), map + PAGE);
	assert_int_equal(sim_verbs.rereg_mr(holed, change, NULL, NULL, 0, PAIR_ALL), 0);
	write_to_map(holed->rkey, PAGE, IBV_WC_SUCCESS);
}

static void local_holes_are_protection_errors(void **state)
{
	struct ibv_sge sge = { .addr = (uintptr_t)map + PAGE, .length = 8, .lkey = holed->lkey };
	struct ibv_send_wr wr = { .wr_id = 2, .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND };
	struct pair_conn conn = pair_defaults();

	(void)state;
	pair_connect(&conn);
	assert_int_equal(pair_post(&b, &wr), 0);
	pair_expect(&b, 2, IBV_WC_LOC_PROT_ERR);
	assert_true(pair_warned("no memory is mapped there"));
}

static void advice(void **state)
{
	enum { NONE = IBV_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT };
	const unsigned int now = IBV_ADVISE_MR_FLAG_FLUSH;
	struct ibv_mr *plain = reg(b.pd, b.buf, 100, PAIR_ALL);
	struct ibv_mr *reads = reg(b.pd, map, PAGE, IBV_ACCESS_ON_DEMAND);
	const struct { unsigned int advice, flags; uint32_t lkey; size_t offset, length; int err; }
	cases[] = {
		{ 0, 0, holed->lkey, 0, 3 * PAGE, 0 },
		{ 0, now, holed->lkey, 0, PAGE, 0 },
		{ 0, now, holed->lkey, 0, 3 * PAGE, EFAULT },
		{ 1, now, holed->lkey, 0, PAGE + 1, EFAULT },
		{ NONE, now, holed->lkey, 0, 3 * PAGE, 0 },
		{ 1, now, implicit->lkey, 2 * PAGE, PAGE, 0 },
		{ 0, 0, holed->lkey, 1, 3 * PAGE, EFAULT },
		{ 0, now, reads->lkey, 0, PAGE, 0 },
		{ 1, now, reads->lkey, 0, PAGE, EPERM },
		{ 0, 0, plain->lkey, 0, PAGE, EINVAL },
		{ 0, 0, 12345, 0, PAGE, EFAULT },
		{ 0, 2, holed->lkey, 0, PAGE, EINVAL },
		{ 3, 0, holed->lkey, 0, PAGE, EOPNOTSUPP },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct ibv_sge sge = { .addr = (uintptr_t)map + cases[i].offset,
				       .length = (uint32_t)cases[i].length, .lkey = cases[i].lkey };
		unsigned int before = pair_warnings;

		print_message("case %zu\n", i);
		assert_int_equal(ibv_advise_mr(b.pd, (enum ibv_advise_mr_advice)cases[i].advice,
					       cases[i].flags, &sge, 1), cases[i].err);
		assert_int_equal(pair_warnings - before, cases[i].err != 0);
	}
	assert_int_equal(ibv_advise_mr(b.pd, IBV_ADVISE_MR_ADVICE_PREFETCH, 0, NULL, 0), EINVAL);
	assert_int_equal(sim_verbs.dereg_mr(plain), 0);
	assert_int_equal(sim_verbs.dereg_mr(reads), 0);
}

static void iwarp_has_none(void **state)
{
	struct ibv_device_attr_ex attr;
	struct ibv_sge sge;

	(void)state;
	pair_open(PAIR_IWARP);
	assert_int_equal(ibv_query_device_ex(a.context, NULL, &attr), 0);
	assert_int_equal(attr.odp_caps.general_caps, 0);
	errno = 0;
	assert_null(reg(a.pd, a.buf, 100, ODP & ~(unsigned int)IBV_ACCESS_REMOTE_ATOMIC));
	assert_int_equal(errno, EOPNOTSUPP);
	sge = pair_sge(&a, 0, 8);
	assert_int_equal(ibv_advise_mr(a.pd, IBV_ADVISE_MR_ADVICE_PREFETCH, 0, &sge, 1), EOPNOTSUPP);
	pair_close();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(holes_are_access_errors, open_holed, close_holed),
		cmocka_unit_test_setup_teardown(forbidden_pages_are_access_errors, open_holed,
						close_holed),
		cmocka_unit_test_setup_teardown(a_holed_region_stays_on_demand, open_holed, close_holed),
		cmocka_unit_test_setup_teardown(local_holes_are_protection_errors, open_holed,
						close_holed),
		cmocka_unit_test_setup_teardown(advice, open_holed, close_holed),
		cmocka_unit_test(iwarp_has_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
