/* SPDX-License-Identifier: BSD-2-Clause */
/* Extended QPs: requests through the wr_*() calls. */
#include "config.h"

#include <arpa/inet.h>
#include <errno.h>

#include "nic_pair.h"
#include "providers/soft/nic/objects.h"

#define ALL_OPS (IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM | IBV_QP_EX_WITH_RDMA_WRITE | \
		 IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM | IBV_QP_EX_WITH_RDMA_READ | \
		 IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP | IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD | \
		 IBV_QP_EX_WITH_ATOMIC_WRITE | SIM_QP_EX_WITH_FLUSH)

static struct ibv_qp_init_attr_ex init_attr(struct pair_side *side, uint64_t ops)
{
	return (struct ibv_qp_init_attr_ex) {
		.send_cq = side->cq, .recv_cq = side->cq, .qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = 8, .max_recv_wr = 8, .max_send_sge = 2, .max_recv_sge = 2,
			 .max_inline_data = 32 },
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.pd = side->pd,
		.send_ops_flags = ops,
	};
}

static struct ibv_qp *create(struct ibv_qp_init_attr_ex *attr)
{
	return verbs_get_ctx(a.context)->create_qp_ex(a.context, attr);
}

static struct ibv_qp_ex *ex;

static int open_ex(void **state)
{
	struct ibv_qp_init_attr_ex attr;
	struct pair_conn conn = pair_defaults();

	(void)state;
	pair_open(PAIR_ROCE);
	attr = init_attr(&a, ALL_OPS);
	a.qp = create(&attr);
	assert_non_null(a.qp);
	b.qp = pair_qp(&b, &conn);
	ex = sim_verbs.qp_to_qp_ex(a.qp);
	assert_non_null(ex);
	assert_ptr_equal(&ex->qp_base, a.qp);
	assert_int_equal(pair_to_init(&a, a.qp, &conn), 0);
	assert_int_equal(pair_to_init(&b, b.qp, &conn), 0);
	assert_int_equal(pair_to_rtr(&a, a.qp, &b, b.qp->qp_num, &conn), 0);
	assert_int_equal(pair_to_rtr(&b, b.qp, &a, a.qp->qp_num, &conn), 0);
	assert_int_equal(pair_to_rts(a.qp, &conn), 0);
	assert_int_equal(pair_to_rts(b.qp, &conn), 0);
	return 0;
}

static void what_can_be_created(void **state)
{
	static const struct { enum pair_transport t; enum ibv_qp_type type; uint64_t ops; int err; }
	cases[] = {
		{ PAIR_ROCE, IBV_QPT_RC, 0, 0 },
		{ PAIR_ROCE, IBV_QPT_RC, ALL_OPS, 0 },
		{ PAIR_ROCE, IBV_QPT_RC, IBV_QP_EX_WITH_TSO, EOPNOTSUPP },
		{ PAIR_ROCE, IBV_QPT_RC, IBV_QP_EX_WITH_BIND_MW, 0 },
		{ PAIR_ROCE, IBV_QPT_UD, IBV_QP_EX_WITH_BIND_MW, EOPNOTSUPP },
		{ PAIR_ROCE, IBV_QPT_RC, 1ull << 40, EOPNOTSUPP },
		{ PAIR_ROCE, IBV_QPT_RC, 1ull << 13, EOPNOTSUPP },
		{ PAIR_ROCE, IBV_QPT_UC, SIM_QP_EX_WITH_FLUSH, EOPNOTSUPP },
		{ PAIR_ROCE, IBV_QPT_UC, IBV_QP_EX_WITH_ATOMIC_WRITE, EOPNOTSUPP },
		{ PAIR_ROCE, IBV_QPT_UD, IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM, 0 },
		{ PAIR_ROCE, IBV_QPT_UD, IBV_QP_EX_WITH_RDMA_WRITE, EOPNOTSUPP },
		{ PAIR_IWARP, IBV_QPT_RC, IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_RDMA_READ, 0 },
		{ PAIR_IWARP, IBV_QPT_RC, IBV_QP_EX_WITH_SEND_WITH_IMM, EOPNOTSUPP },
		{ PAIR_IWARP, IBV_QPT_RC, IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD, EOPNOTSUPP },
		{ PAIR_IWARP, IBV_QPT_RC, IBV_QP_EX_WITH_ATOMIC_WRITE, EOPNOTSUPP },
		{ PAIR_IWARP, IBV_QPT_RC, SIM_QP_EX_WITH_FLUSH, EOPNOTSUPP },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct ibv_qp_init_attr_ex attr;
		struct ibv_qp *qp;

		pair_open(cases[i].t);
		attr = init_attr(&a, cases[i].ops);
		attr.qp_type = cases[i].type;
		errno = 0;
		qp = create(&attr);
		assert_int_equal(errno, cases[i].err);
		assert_int_equal(qp != NULL, !cases[i].err);
		if (qp)
			assert_int_equal(sim_verbs.destroy_qp(qp), 0);
		attr.comp_mask |= IBV_QP_INIT_ATTR_XRCD;
		assert_null(create(&attr));
		assert_int_equal(errno, EOPNOTSUPP);
		attr = init_attr(&b, 0);
		assert_null(create(&attr));
		assert_int_equal(errno, EINVAL);
		/* Without operations it is a plain one. */
		attr = init_attr(&a, 0);
		attr.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_CREATE_FLAGS;
		qp = create(&attr);
		assert_non_null(qp);
		assert_null(sim_verbs.qp_to_qp_ex(qp));
		assert_int_equal(sim_verbs.destroy_qp(qp), 0);
		attr.create_flags = IBV_QP_CREATE_CVLAN_STRIPPING;
		assert_null(create(&attr));
		assert_int_equal(errno, EOPNOTSUPP);
		pair_close();
	}
}

static void a_batch_of_everything(void **state)
{
	char text[] = "inline";
	struct ibv_data_buf bufs[2] = { { text, 2 }, { text + 2, 4 } };
	struct ibv_sge sges[2] = { pair_sge(&a, 0, 4), pair_sge(&a, 100, 4) };
	uint64_t addr = (uintptr_t)b.buf, *target = (uint64_t *)(void *)(b.buf + 2000);
	struct ibv_wc wc;

	(void)state;
	pair_fill(&a, 0, 200, 1);
	*target = 5;
	for (uint64_t i = 0; i < 3; i++)
		assert_int_equal(pair_recv(&b, 10 + i, 4000 + i * 100, 100), 0);
	ex->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_start(ex);
	ex->wr_id = 1;
	ibv_wr_rdma_write(ex, b.mr->rkey, addr);
	ibv_wr_set_sge(ex, a.mr->lkey, (uintptr_t)a.buf, 50);
	ex->wr_id = 2;
	ibv_wr_send(ex);
	ibv_wr_set_inline_data_list(ex, 2, bufs);
	ex->wr_id = 3;
	ibv_wr_send_imm(ex, htonl(9));
	ibv_wr_set_sge_list(ex, 2, sges);
	ex->wr_id = 4;
	ibv_wr_rdma_read(ex, b.mr->rkey, addr);
	ibv_wr_set_sge(ex, a.mr->lkey, (uintptr_t)a.buf + 1000, 50);
	ex->wr_id = 5;
	ibv_wr_atomic_fetch_add(ex, b.mr->rkey, addr + 2000, 3);
	ibv_wr_set_sge(ex, a.mr->lkey, (uintptr_t)a.buf + 3000, 8);
	ex->wr_id = 6;
	ibv_wr_atomic_cmp_swp(ex, b.mr->rkey, addr + 2000, 8, 11);
	ibv_wr_set_sge(ex, a.mr->lkey, (uintptr_t)a.buf + 3008, 8);
	ex->wr_id = 7;
	ex->wr_flags = 0;
	ibv_wr_rdma_write_imm(ex, b.mr->rkey, addr + 600, htonl(10));
	ibv_wr_set_inline_data(ex, text, 6);
	assert_int_equal(ibv_wr_complete(ex), 0);

	for (uint64_t i = 1; i <= 6; i++)
		pair_expect(&a, i, IBV_WC_SUCCESS);
	assert_int_equal(pair_expect(&b, 10, IBV_WC_SUCCESS).byte_len, 6);
	wc = pair_expect(&b, 11, IBV_WC_SUCCESS);
	assert_int_equal(wc.byte_len, 8);
	assert_int_equal(ntohl(wc.imm_data), 9);
	wc = pair_expect(&b, 12, IBV_WC_SUCCESS);
	assert_int_equal(ntohl(wc.imm_data), 10);
	pair_none(&a, SIM_MS(1));
	pair_check(&b, 0, 50, 1);
	assert_memory_equal(a.buf + 1000, b.buf, 50);
	assert_memory_equal(b.buf + 4000, "inline", 6);
	assert_memory_equal(b.buf + 4100, a.buf, 4);
	assert_memory_equal(b.buf + 4104, a.buf + 100, 4);
	assert_memory_equal(b.buf + 600, "inline", 6);
	assert_int_equal(*(uint64_t *)(void *)(a.buf + 3000), 5);
	assert_int_equal(*(uint64_t *)(void *)(a.buf + 3008), 8);
	assert_int_equal(*target, 11);
}

static void aborted_batches_leave_nothing(void **state)
{
	(void)state;
	ibv_wr_start(ex);
	ibv_wr_send(ex);
	ibv_wr_abort(ex);
	ibv_wr_start(ex);
	assert_int_equal(ibv_wr_complete(ex), 0);
	pair_none(&a, SIM_MS(1));
	assert_int_equal(sim_idle(NULL), -EDEADLK);
}

/* All or nothing. */
static void bad_batches_post_nothing(void **state)
{
	char text[40] = "";
	struct ibv_sge sges[33];

	(void)state;
	memset(sges, 0, sizeof(sges));
	for (int i = 0; i < 4; i++) {
		ex->wr_flags = IBV_SEND_SIGNALED;
		ibv_wr_start(ex);
		ibv_wr_rdma_write(ex, b.mr->rkey, (uintptr_t)b.buf);
		ibv_wr_set_sge(ex, a.mr->lkey, (uintptr_t)a.buf, 8);
		ibv_wr_rdma_write(ex, b.mr->rkey, (uintptr_t)b.buf);
		if (i == 0)
			ibv_wr_set_inline_data(ex, text, 33);
		else if (i == 1)
			ibv_wr_set_sge_list(ex, 3, sges);
		else if (i == 2)
			ibv_wr_set_sge_list(ex, 33, sges);
		else
			for (int n = 0; n < 7; n++)
				ibv_wr_rdma_write(ex, b.mr->rkey, (uintptr_t)b.buf);
		assert_int_equal(ibv_wr_complete(ex), i == 3 ? ENOMEM : EINVAL);
		assert_true(pair_warned("refused"));
		pair_none(&a, SIM_MS(1));
	}
	/* And the QP is none the worse for it. */
	ibv_wr_start(ex);
	ex->wr_id = 9;
	ibv_wr_rdma_write(ex, b.mr->rkey, (uintptr_t)b.buf);
	ibv_wr_set_sge(ex, a.mr->lkey, (uintptr_t)a.buf, 8);
	assert_int_equal(ibv_wr_complete(ex), 0);
	pair_expect(&a, 9, IBV_WC_SUCCESS);
}

static struct ibv_mr *reg(unsigned int access)
{
	return sim_verbs.reg_mr(b.pd, b.buf, 4096, (uintptr_t)b.buf, access);
}

static void flush(uint32_t rkey, uint64_t addr, size_t length, uint8_t type, uint8_t level)
{
	struct nic_qp_newest *newest = (struct nic_qp_newest *)(void *)ex;

	ex->wr_id = 1;
	ex->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_start(ex);
	newest->wr_flush(ex, rkey, addr, length, type, level);
	assert_int_equal(ibv_wr_complete(ex), 0);
}

static void flushes(void **state)
{
	static const struct { uint8_t type, level; int64_t offset; size_t length; bool has, may;
			      enum ibv_wc_status status; } cases[] = {
		{ SIM_FLUSH_GLOBAL, SIM_FLUSH_RANGE, 0, 4096, true, true, IBV_WC_SUCCESS },
		{ SIM_FLUSH_GLOBAL, SIM_FLUSH_RANGE, 1, 4096, true, true, IBV_WC_REM_ACCESS_ERR },
		{ SIM_FLUSH_GLOBAL, SIM_FLUSH_RANGE, -1, 8, true, true, IBV_WC_REM_ACCESS_ERR },
		{ SIM_FLUSH_GLOBAL, SIM_FLUSH_MR, 9999, 123456, true, true, IBV_WC_SUCCESS },
		{ SIM_FLUSH_GLOBAL, SIM_FLUSH_RANGE, 0, 8, false, true, IBV_WC_REM_ACCESS_ERR },
		{ SIM_FLUSH_GLOBAL, SIM_FLUSH_MR, 0, 8, false, true, IBV_WC_REM_ACCESS_ERR },
		{ SIM_FLUSH_GLOBAL, SIM_FLUSH_RANGE, 0, 8, true, false, IBV_WC_REM_ACCESS_ERR },
		{ SIM_FLUSH_PERSISTENT, SIM_FLUSH_MR, 0, 8, true, true, IBV_WC_REM_ACCESS_ERR },
		{ 0, SIM_FLUSH_MR, 0, 8, true, true, IBV_WC_REM_INV_REQ_ERR },
		{ 4, SIM_FLUSH_MR, 0, 8, true, true, IBV_WC_REM_INV_REQ_ERR },
		{ SIM_FLUSH_GLOBAL, 2, 0, 8, true, true, IBV_WC_REM_INV_REQ_ERR },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct ibv_qp_attr attr = { .qp_access_flags = PAIR_ALL };
		struct ibv_mr *mr;

		open_ex(state);
		if (cases[i].may)
			attr.qp_access_flags |= SIM_ACCESS_FLUSH;
		assert_int_equal(sim_verbs.modify_qp(b.qp, &attr, IBV_QP_ACCESS_FLAGS), 0);
		mr = reg(cases[i].has ? SIM_ACCESS_FLUSH_GLOBAL : 0);
		flush(mr->rkey, (uintptr_t)b.buf + (uint64_t)cases[i].offset, cases[i].length,
		      cases[i].type, cases[i].level);
		assert_int_equal(pair_expect(&a, 1, cases[i].status).opcode, SIM_WC_FLUSH);
		pair_none(&b, 0);
		assert_int_equal(sim_verbs.dereg_mr(mr), 0);
		close_pair(state);
	}
}

/* As on rxe. */
static void ordinary_memory_is_not_persistent(void **state)
{
	(void)state;
	assert_null(reg(SIM_ACCESS_FLUSH_PERSISTENT));
	assert_int_equal(errno, EINVAL);
	assert_true(pair_warned("the memory is not persistent"));
}

static void atomic_writes(void **state)
{
	static const struct { size_t offset; unsigned int access; enum ibv_wc_status status; }
	cases[] = {
		{ 8, PAIR_ALL, IBV_WC_SUCCESS },
		{ 4, PAIR_ALL, IBV_WC_REM_INV_REQ_ERR },
		{ 8, IBV_ACCESS_REMOTE_READ, IBV_WC_REM_ACCESS_ERR },
		{ 4096, PAIR_ALL, IBV_WC_REM_ACCESS_ERR },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		bool written = cases[i].status == IBV_WC_SUCCESS;
		char value[8] = "8 bytes";
		struct ibv_mr *mr;

		open_ex(state);
		mr = reg(cases[i].access);
		memset(b.buf, 0, 4104);
		ex->wr_id = 2;
		ex->wr_flags = IBV_SEND_SIGNALED;
		ibv_wr_start(ex);
		ibv_wr_atomic_write(ex, mr->rkey, (uintptr_t)b.buf + cases[i].offset, value);
		memset(value, 0, sizeof(value));	/* it was copied */
		assert_int_equal(ibv_wr_complete(ex), 0);
		assert_int_equal(pair_expect(&a, 2, cases[i].status).opcode, IBV_WC_ATOMIC_WRITE);
		assert_memory_equal(b.buf + cases[i].offset, written ? "8 bytes" : value, 8);
		assert_int_equal(sim_verbs.dereg_mr(mr), 0);
		close_pair(state);
	}
}

/* Their answer was lost: the repeated request has no effect but another one. */
static unsigned int lose;

static bool lose_answers(const struct sim_packet *packet)
{
	return packet->from != &b.device->ports[0] || !lose || !lose--;
}

static void repeated_atomic_writes_write_once(void **state)
{
	uint64_t value = 7, *target = (uint64_t *)(void *)b.buf;

	(void)state;
	lose = 1;
	pair_filter = lose_answers;
	ex->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_start(ex);
	ibv_wr_atomic_write(ex, b.mr->rkey, (uintptr_t)target, &value);
	assert_int_equal(ibv_wr_complete(ex), 0);
	while (*target != 7)
		assert_int_equal(sim_idle(NULL), 1);
	*target = 8;
	assert_int_equal(pair_expect(&a, 0, IBV_WC_SUCCESS).opcode, IBV_WC_ATOMIC_WRITE);
	assert_int_equal(*target, 8);
	pair_filter = NULL;
}

static void plain_posting_has_none(void **state)
{
	static const unsigned int opcodes[] = { SIM_WR_FLUSH, IBV_WR_ATOMIC_WRITE };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(opcodes); i++) {
		struct ibv_send_wr wr = { .opcode = (enum ibv_wr_opcode)opcodes[i] };

		assert_int_equal(pair_post(&a, &wr), EINVAL);
		assert_true(pair_warned("ibv_wr_flush()"));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_can_be_created),
		cmocka_unit_test_setup_teardown(a_batch_of_everything, open_ex, close_pair),
		cmocka_unit_test_setup_teardown(aborted_batches_leave_nothing, open_ex, close_pair),
		cmocka_unit_test_setup_teardown(bad_batches_post_nothing, open_ex, close_pair),
		cmocka_unit_test(flushes),
		cmocka_unit_test_setup_teardown(ordinary_memory_is_not_persistent, open_ex, close_pair),
		cmocka_unit_test(atomic_writes),
		cmocka_unit_test_setup_teardown(repeated_atomic_writes_write_once, open_ex, close_pair),
		cmocka_unit_test_setup_teardown(plain_posting_has_none, open_ex, close_pair),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
