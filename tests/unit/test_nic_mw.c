/* SPDX-License-Identifier: BSD-2-Clause */
/* test_nic_mw.c - memory windows: binding, access through them, taking them back. */
#include <errno.h>
#include <infiniband/verbs.h>

#include "nic_pair.h"

#define L IBV_ACCESS_LOCAL_WRITE
#define W IBV_ACCESS_REMOTE_WRITE
#define R IBV_ACCESS_REMOTE_READ
#define BIND IBV_ACCESS_MW_BIND

static struct ibv_mr *mr;	/* B's: the first 4096 bytes of its buffer */

static void open_bound(enum pair_transport transport, unsigned int access)
{
	struct pair_conn conn = pair_defaults();

	pair_open(transport);
	mr = sim_verbs.reg_mr(b.pd, b.buf, 4096, (uintptr_t)b.buf, access);
	assert_non_null(mr);
	pair_connect(&conn);
}

static void close_bound(void)
{
	pair_disconnect();
	assert_int_equal(sim_verbs.dereg_mr(mr), 0);
	pair_close();
}

/* A key of the same window, as programs make it. */
static uint32_t next_key(struct ibv_mw *mw)
{
	mw->rkey = ibv_inc_rkey(mw->rkey);
	return mw->rkey;
}

static int bind_2(struct ibv_mw *mw, uint64_t wr_id, uint32_t key, size_t offset, uint64_t length,
		  unsigned int access)
{
	struct ibv_send_wr wr = {
		.wr_id = wr_id, .opcode = IBV_WR_BIND_MW, .send_flags = IBV_SEND_SIGNALED,
		.bind_mw = {
			.mw = mw, .rkey = key,
			.bind_info = { .mr = mr, .addr = (uintptr_t)b.buf + offset, .length = length,
				       .mw_access_flags = access },
		},
	};

	return pair_post(&b, &wr);
}

static int bind_1(struct ibv_mw *mw, uint64_t wr_id, size_t offset, uint64_t length,
		  unsigned int access)
{
	struct ibv_mw_bind bind = {
		.wr_id = wr_id, .send_flags = IBV_SEND_SIGNALED,
		.bind_info = { .mr = mr, .addr = (uintptr_t)b.buf + offset, .length = length,
			       .mw_access_flags = access },
	};

	return ibv_bind_mw(b.qp, mw, &bind);
}

static int invalidate(uint64_t wr_id, uint32_t key)
{
	struct ibv_send_wr wr = {
		.wr_id = wr_id, .opcode = IBV_WR_LOCAL_INV, .send_flags = IBV_SEND_SIGNALED,
		.invalidate_rkey = key,
	};

	return pair_post(&b, &wr);
}

/* A writes len bytes to addr through the key. */
static void write_through(uint32_t key, uint64_t addr, size_t len, enum ibv_wc_status status)
{
	struct ibv_sge sge = pair_sge(&a, 0, len);
	struct ibv_send_wr wr = {
		.wr_id = 77, .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE,
		.send_flags = IBV_SEND_SIGNALED,
		.wr.rdma = { .remote_addr = addr, .rkey = key },
	};

	assert_int_equal(pair_post(&a, &wr), 0);
	pair_expect(&a, 77, status);
}

static void a_window_of_each_type_opens_a_part_of_a_region(void **state)
{
	static const enum ibv_mw_type types[] = { IBV_MW_TYPE_1, IBV_MW_TYPE_2 };

	(void)state;
	for (enum pair_transport t = 0; t < PAIR_TRANSPORTS; t++) {
		for (size_t i = 0; i < ARRAY_SIZE(types); i++) {
			struct ibv_wc wc;
			struct ibv_mw *mw;
			uint32_t first;

			open_bound(t, L | BIND);
			mw = ibv_alloc_mw(b.pd, types[i]);
			assert_non_null(mw);
			assert_int_equal(sim_verbs.dealloc_pd(b.pd), EBUSY);
			first = mw->rkey;
			if (types[i] == IBV_MW_TYPE_1)
				assert_int_equal(bind_1(mw, 1, 100, 200, W), 0);
			else
				assert_int_equal(bind_2(mw, 1, next_key(mw), 100, 200, W), 0);
			assert_int_not_equal(mw->rkey, first);
			wc = pair_expect(&b, 1, IBV_WC_SUCCESS);
			assert_int_equal(wc.opcode, IBV_WC_BIND_MW);
			assert_int_equal(sim_verbs.dereg_mr(mr), EINVAL);
			pair_fill(&a, 0, 200, 5);
			write_through(mw->rkey, (uintptr_t)b.buf + 100, 200, IBV_WC_SUCCESS);
			pair_check(&b, 100, 200, 5);
			assert_int_equal(ibv_dealloc_mw(mw), 0);
			close_bound();
		}
	}
}

/* Requests before and after a bind come in order, and the peer sees no gap. */
static void a_bind_takes_its_turn(void **state)
{
	struct ibv_mw *mw;

	(void)state;
	open_bound(PAIR_ROCE, L | BIND);
	mw = ibv_alloc_mw(b.pd, IBV_MW_TYPE_2);
	assert_non_null(mw);
	for (unsigned int i = 0; i < 3; i++)
		assert_int_equal(pair_recv(&a, 10 + i, 100u * i, 100), 0);
	assert_int_equal(pair_send(&b, 1, 0, 100), 0);
	assert_int_equal(bind_2(mw, 2, next_key(mw), 0, 10, R), 0);
	assert_int_equal(pair_send(&b, 3, 0, 100), 0);
	assert_int_equal(invalidate(4, mw->rkey), 0);
	assert_int_equal(bind_2(mw, 5, next_key(mw), 0, 10, R), 0);
	assert_int_equal(pair_send(&b, 6, 0, 100), 0);
	for (uint64_t id = 1; id <= 6; id++)
		pair_expect(&b, id, IBV_WC_SUCCESS);
	for (uint64_t id = 10; id < 13; id++)
		pair_expect(&a, id, IBV_WC_SUCCESS);
	assert_int_equal(ibv_dealloc_mw(mw), 0);
	close_bound();
}

static void what_a_window_does_not_open(void **state)
{
	static const struct {
		unsigned int access;
		int64_t from;	/* the window is 100..299 */
		size_t len;
		enum ibv_wc_status status;
	} cases[] = {
		{ W, 100, 200, IBV_WC_SUCCESS },
		{ W, 299, 1, IBV_WC_SUCCESS },
		{ W, 99, 10, IBV_WC_REM_ACCESS_ERR },
		{ W, 291, 10, IBV_WC_REM_ACCESS_ERR },
		{ W, 100, 201, IBV_WC_REM_ACCESS_ERR },
		{ R, 100, 10, IBV_WC_REM_ACCESS_ERR },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct ibv_mw *mw;

		open_bound(PAIR_IB, L | BIND);
		mw = ibv_alloc_mw(b.pd, IBV_MW_TYPE_1);
		assert_non_null(mw);
		assert_int_equal(bind_1(mw, 1, 100, 200, cases[i].access), 0);
		pair_expect(&b, 1, IBV_WC_SUCCESS);
		write_through(mw->rkey, (uintptr_t)b.buf + (uint64_t)cases[i].from, cases[i].len,
			      cases[i].status);
		assert_int_equal(ibv_dealloc_mw(mw), 0);
		close_bound();
	}
}

static void a_zero_based_window_counts_from_its_beginning(void **state)
{
	struct ibv_mw *mw;

	(void)state;
	open_bound(PAIR_ROCE, L | BIND);
	mw = ibv_alloc_mw(b.pd, IBV_MW_TYPE_2);
	assert_non_null(mw);
	assert_int_equal(bind_2(mw, 1, next_key(mw), 100, 200, W | IBV_ACCESS_ZERO_BASED), 0);
	pair_expect(&b, 1, IBV_WC_SUCCESS);
	pair_fill(&a, 0, 50, 9);
	write_through(mw->rkey, 150, 50, IBV_WC_SUCCESS);
	pair_check(&b, 250, 50, 9);
	write_through(mw->rkey, 151, 50, IBV_WC_REM_ACCESS_ERR);
	assert_int_equal(ibv_dealloc_mw(mw), 0);
	close_bound();
}

/* Who may take a key back: its own side, the peer with a message, the end of the QP. */
static void keys_are_taken_back(void **state)
{
	enum { OWN, PEER, UNBIND, GONE, WAYS };

	(void)state;
	for (int way = OWN; way < WAYS; way++) {
		struct ibv_sge sge;
		struct ibv_send_wr send = {
			.wr_id = 2, .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND_WITH_INV,
			.send_flags = IBV_SEND_SIGNALED,
		};
		struct ibv_mw *mw;
		struct ibv_wc wc;
		uint32_t key;

		open_bound(PAIR_ROCE, L | BIND);
		mw = ibv_alloc_mw(b.pd, way == UNBIND ? IBV_MW_TYPE_1 : IBV_MW_TYPE_2);
		assert_non_null(mw);
		if (way == UNBIND)
			assert_int_equal(bind_1(mw, 1, 0, 100, W), 0);
		else
			assert_int_equal(bind_2(mw, 1, next_key(mw), 0, 100, W), 0);
		pair_expect(&b, 1, IBV_WC_SUCCESS);
		key = mw->rkey;
		write_through(key, (uintptr_t)b.buf, 10, IBV_WC_SUCCESS);
		switch (way) {
		case OWN:
			assert_int_equal(invalidate(2, key), 0);
			assert_int_equal(pair_expect(&b, 2, IBV_WC_SUCCESS).opcode, IBV_WC_LOCAL_INV);
			break;
		case PEER:
			sge = pair_sge(&a, 0, 8);
			send.invalidate_rkey = key;
			assert_int_equal(pair_recv(&b, 3, 0, 100), 0);
			assert_int_equal(pair_post(&a, &send), 0);
			pair_expect(&a, 2, IBV_WC_SUCCESS);
			wc = pair_expect(&b, 3, IBV_WC_SUCCESS);
			assert_true(wc.wc_flags & IBV_WC_WITH_INV);
			assert_int_equal(wc.invalidated_rkey, key);
			break;
		case UNBIND:
			assert_int_equal(bind_1(mw, 2, 0, 0, 0), 0);
			pair_expect(&b, 2, IBV_WC_SUCCESS);
			break;
		default:
			pair_disconnect();
			break;
		}
		if (way != GONE)
			write_through(key, (uintptr_t)b.buf, 10, IBV_WC_REM_ACCESS_ERR);
		if (way != GONE)
			pair_disconnect();
		assert_int_equal(sim_verbs.dereg_mr(mr), 0);
		assert_int_equal(ibv_dealloc_mw(mw), 0);
		pair_close();
	}
}

static void what_cannot_be_bound(void **state)
{
	static const struct {
		enum ibv_mw_type type;
		unsigned int region, access;
		size_t from;
		uint64_t len;
		bool other_key, twice;
		enum ibv_wc_status status;
	} cases[] = {
		{ IBV_MW_TYPE_2, L | BIND, W, 0, 4096, false, false, IBV_WC_SUCCESS },
		{ IBV_MW_TYPE_2, L | BIND, L | W, 0, 4096, false, false, IBV_WC_SUCCESS },
		{ IBV_MW_TYPE_2, L, W, 0, 4096, false, false, IBV_WC_MW_BIND_ERR },
		{ IBV_MW_TYPE_2, BIND, W, 0, 4096, false, false, IBV_WC_MW_BIND_ERR },
		{ IBV_MW_TYPE_2, BIND, R, 0, 4096, false, false, IBV_WC_SUCCESS },
		{ IBV_MW_TYPE_2, L | BIND, W, 1, 4096, false, false, IBV_WC_MW_BIND_ERR },
		{ IBV_MW_TYPE_2, L | BIND, W, 0, 0, false, false, IBV_WC_MW_BIND_ERR },
		{ IBV_MW_TYPE_2, L | BIND, W | BIND, 0, 10, false, false, IBV_WC_MW_BIND_ERR },
		{ IBV_MW_TYPE_2, L | BIND, W, 0, 10, true, false, IBV_WC_MW_BIND_ERR },
		{ IBV_MW_TYPE_2, L | BIND, W, 0, 10, false, true, IBV_WC_MW_BIND_ERR },
		{ IBV_MW_TYPE_1, L | BIND, W, 0, 10, false, true, IBV_WC_SUCCESS },
		{ IBV_MW_TYPE_1, L | BIND, W | IBV_ACCESS_ZERO_BASED, 0, 10, false, false,
		  IBV_WC_MW_BIND_ERR },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct ibv_mw *mw;
		uint32_t key;

		open_bound(PAIR_ROCE, cases[i].region);
		mw = ibv_alloc_mw(b.pd, cases[i].type);
		assert_non_null(mw);
		if (cases[i].twice) {
			assert_int_equal(bind_2(mw, 1, next_key(mw), 0, 20, W), 0);
			pair_expect(&b, 1, IBV_WC_SUCCESS);
		}
		key = next_key(mw) ^ (cases[i].other_key ? 0x100 : 0);
		assert_int_equal(bind_2(mw, 2, key, cases[i].from, cases[i].len, cases[i].access), 0);
		pair_expect(&b, 2, cases[i].status);
		assert_int_equal(pair_state(b.qp), cases[i].status ? IBV_QPS_ERR : IBV_QPS_RTS);
		assert_int_equal(ibv_dealloc_mw(mw), 0);
		close_bound();
	}
}

/* Another's memory behind the region would be behind the window, too. */
static void a_region_with_windows_stays_as_it_is(void **state)
{
	static const int flags[] = {
		IBV_REREG_MR_CHANGE_TRANSLATION, IBV_REREG_MR_CHANGE_PD, IBV_REREG_MR_CHANGE_ACCESS,
	};
	struct ibv_mw *mw;

	(void)state;
	open_bound(PAIR_ROCE, L | BIND);
	mw = ibv_alloc_mw(b.pd, IBV_MW_TYPE_2);
	assert_non_null(mw);
	assert_int_equal(bind_2(mw, 1, next_key(mw), 4000, 96, W), 0);
	pair_expect(&b, 1, IBV_WC_SUCCESS);
	for (size_t i = 0; i < ARRAY_SIZE(flags); i++) {
		errno = 0;
		assert_int_equal(sim_verbs.rereg_mr(mr, flags[i], b.pd, b.buf + 8192, 10, L),
				 IBV_REREG_MR_ERR_INPUT);
		assert_int_equal(errno, EINVAL);
	}
	pair_fill(&a, 0, 96, 3);
	write_through(mw->rkey, (uintptr_t)b.buf + 4000, 96, IBV_WC_SUCCESS);
	pair_check(&b, 4000, 96, 3);
	assert_int_equal(invalidate(2, mw->rkey), 0);
	pair_expect(&b, 2, IBV_WC_SUCCESS);
	assert_int_equal(sim_verbs.rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, L), 0);
	assert_int_equal(ibv_dealloc_mw(mw), 0);
	close_bound();
}

static void keys_that_cannot_be_invalidated(void **state)
{
	struct ibv_mw *mw;

	(void)state;
	for (int bound = 0; bound < 2; bound++) {
		open_bound(PAIR_ROCE, L | BIND);
		mw = ibv_alloc_mw(b.pd, bound ? IBV_MW_TYPE_1 : IBV_MW_TYPE_2);
		assert_non_null(mw);
		if (bound) {
			assert_int_equal(bind_1(mw, 1, 0, 10, W), 0);
			pair_expect(&b, 1, IBV_WC_SUCCESS);
		}
		assert_int_equal(invalidate(2, mw->rkey), 0);
		pair_expect(&b, 2, IBV_WC_LOC_QP_OP_ERR);
		assert_int_equal(ibv_dealloc_mw(mw), 0);
		close_bound();
	}
	/* By the peer. */
	struct ibv_send_wr send = {
		.wr_id = 2, .opcode = IBV_WR_SEND_WITH_INV, .send_flags = IBV_SEND_SIGNALED,
		.invalidate_rkey = 0x12345678,
	};

	open_bound(PAIR_ROCE, L | BIND);
	assert_int_equal(pair_recv(&b, 3, 0, 100), 0);
	assert_int_equal(pair_post(&a, &send), 0);
	pair_expect(&a, 2, IBV_WC_REM_OP_ERR);
	pair_expect(&b, 3, IBV_WC_REM_INV_REQ_ERR);
	close_bound();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_window_of_each_type_opens_a_part_of_a_region),
		cmocka_unit_test(a_bind_takes_its_turn),
		cmocka_unit_test(what_a_window_does_not_open),
		cmocka_unit_test(a_zero_based_window_counts_from_its_beginning),
		cmocka_unit_test(keys_are_taken_back),
		cmocka_unit_test(what_cannot_be_bound),
		cmocka_unit_test(a_region_with_windows_stays_as_it_is),
		cmocka_unit_test(keys_that_cannot_be_invalidated),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
