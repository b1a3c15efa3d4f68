/* SPDX-License-Identifier: BSD-2-Clause */
/* A request that the NIC does not take is one line at `warn': the call, the reason and the errno. */
#include "config.h"

#include <errno.h>

#include "nic_pair.h"

/* --- Posting, to a QP that is not connected: RTS is only needed where it says so. --- */

static struct ibv_qp *ready_qp(const struct pair_conn *conn)
{
	struct ibv_qp *qp = pair_qp(&a, conn);

	assert_int_equal(pair_to_init(&a, qp, conn), 0);
	assert_int_equal(pair_to_rtr(&a, qp, &b, 1000, conn), 0);
	assert_int_equal(pair_to_rts(qp, conn), 0);
	return qp;
}

/* Whether it is posted or refused, the QP goes. */
static int post(struct ibv_qp *qp, struct ibv_send_wr *wr)
{
	struct ibv_send_wr *bad = NULL;
	int err = ibv_post_send(qp, wr, &bad);

	assert_ptr_equal(bad, wr);
	assert_int_equal(sim_verbs.destroy_qp(qp), 0);
	return err;
}

static int post_wr(struct ibv_send_wr wr)
{
	struct pair_conn conn = pair_defaults();
	struct ibv_sge sge[40] = { { .length = 1000 } };

	wr.sg_list = sge;
	return post(ready_qp(&conn), &wr);
}

static int post_early(void)
{
	struct pair_conn conn = pair_defaults();
	struct ibv_send_wr wr = { .opcode = IBV_WR_SEND };

	return post(pair_qp(&a, &conn), &wr);
}

static int post_wide(void)
{
	return post_wr((struct ibv_send_wr){ .wr_id = 0x77, .opcode = IBV_WR_SEND, .num_sge = 5 });
}

static int post_unknown(void)
{
	return post_wr((struct ibv_send_wr){ .opcode = (enum ibv_wr_opcode)99 });
}

static int post_flags(void)
{
	return post_wr((struct ibv_send_wr){ .opcode = IBV_WR_SEND, .send_flags = 1 << 20 });
}

static int post_inline(void)
{
	return post_wr((struct ibv_send_wr){
		.opcode = IBV_WR_SEND, .num_sge = 1, .send_flags = IBV_SEND_INLINE,
	});
}

static int post_inline_read(void)
{
	return post_wr((struct ibv_send_wr){
		.opcode = IBV_WR_RDMA_READ, .num_sge = 1, .send_flags = IBV_SEND_INLINE,
	});
}

static int post_atomic(void)
{
	return post_wr((struct ibv_send_wr){ .opcode = IBV_WR_ATOMIC_FETCH_AND_ADD, .num_sge = 1 });
}

static int post_bind(void)
{
	return post_wr((struct ibv_send_wr){ .opcode = IBV_WR_BIND_MW });
}

static int post_invalidate(void)
{
	return post_wr((struct ibv_send_wr){ .opcode = IBV_WR_LOCAL_INV, .num_sge = 1 });
}

static int post_datagram(void)
{
	struct ibv_send_wr wr = { .opcode = IBV_WR_SEND };

	return post(pair_ud_qp(&a, 1), &wr);
}

static int post_too_many(void)
{
	struct pair_conn conn = pair_defaults();
	struct ibv_send_wr wr = { .opcode = IBV_WR_SEND }, *bad;
	struct ibv_qp *qp;

	conn.cap.max_send_wr = 1;
	qp = ready_qp(&conn);
	assert_int_equal(ibv_post_send(qp, &wr, &bad), 0);
	return post(qp, &wr);
}

static int bind_early(void)
{
	struct pair_conn conn = pair_defaults();
	struct ibv_qp *qp = pair_qp(&a, &conn);
	struct ibv_mw *mw = ibv_alloc_mw(a.pd, IBV_MW_TYPE_1);
	struct ibv_mw_bind bind = { .wr_id = 1 };
	int err = ibv_bind_mw(qp, mw, &bind);

	assert_int_equal(errno, err);
	assert_int_equal(ibv_dealloc_mw(mw), 0);
	assert_int_equal(sim_verbs.destroy_qp(qp), 0);
	return err;
}

static int receive(struct pair_conn conn, bool reset, int num_sge)
{
	struct ibv_recv_wr wr = { .wr_id = 0x78, .num_sge = num_sge }, *bad;
	struct ibv_qp *qp = pair_qp(&a, &conn);
	int err;

	if (!reset)
		assert_int_equal(pair_to_init(&a, qp, &conn), 0);
	err = ibv_post_recv(qp, &wr, &bad);
	assert_int_equal(sim_verbs.destroy_qp(qp), 0);
	return err;
}

static int receive_early(void)
{
	return receive(pair_defaults(), true, 0);
}

static int receive_wide(void)
{
	return receive(pair_defaults(), false, 5);
}

static int receive_too_many(void)
{
	struct pair_conn conn = pair_defaults();

	conn.cap.max_recv_wr = 0;
	return receive(conn, false, 0);
}

static int receive_shared(int (*use)(struct ibv_srq *srq, struct ibv_qp *qp))
{
	struct ibv_srq_init_attr init = { .attr = { .max_wr = 1, .max_sge = 1 } };
	struct pair_conn conn = pair_defaults();
	struct ibv_qp *qp;
	int err;

	a.srq = sim_verbs.create_srq(a.pd, &init);
	qp = pair_qp(&a, &conn);
	err = use(a.srq, qp);
	assert_int_equal(sim_verbs.destroy_qp(qp), 0);
	assert_int_equal(sim_verbs.destroy_srq(a.srq), 0);
	a.srq = NULL;
	return err;
}

static int use_wide(struct ibv_srq *srq, struct ibv_qp *qp)
{
	struct ibv_recv_wr wr = { .num_sge = 2 }, *bad;

	(void)qp;
	return ibv_post_srq_recv(srq, &wr, &bad);
}

static int use_own(struct ibv_srq *srq, struct ibv_qp *qp)
{
	struct ibv_recv_wr wr = { .num_sge = 1 }, *bad;

	(void)srq;
	return ibv_post_recv(qp, &wr, &bad);
}

static int srq_wide(void)
{
	return receive_shared(use_wide);
}

static int srq_not_own(void)
{
	return receive_shared(use_own);
}

/* --- Extended QPs. --- */

static int build(void (*calls)(struct ibv_qp_ex *ex))
{
	struct ibv_qp_init_attr_ex attr = {
		.send_cq = a.cq, .recv_cq = a.cq, .qp_type = IBV_QPT_RC, .pd = a.pd,
		.cap = { .max_send_wr = 1, .max_send_sge = 1 },
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.send_ops_flags = IBV_QP_EX_WITH_SEND,
	};
	struct ibv_qp *qp = verbs_get_ctx(a.context)->create_qp_ex(a.context, &attr);
	struct ibv_qp_ex *ex;
	int err;

	assert_non_null(qp);
	ex = sim_verbs.qp_to_qp_ex(qp);
	ibv_wr_start(ex);
	calls(ex);
	err = ibv_wr_complete(ex);
	assert_int_equal(sim_verbs.destroy_qp(qp), 0);
	return err;
}

static void set_first(struct ibv_qp_ex *ex)
{
	ibv_wr_set_sge(ex, 0, 0, 0);
	ibv_wr_send(ex);
}

static void set_many(struct ibv_qp_ex *ex)
{
	static const struct ibv_sge sge[1000];

	ibv_wr_send(ex);
	ibv_wr_set_sge_list(ex, 1000, sge);
}

static void set_long(struct ibv_qp_ex *ex)
{
	static char data[10000];

	ibv_wr_send(ex);
	ibv_wr_set_inline_data(ex, data, sizeof(data));
}

static int build_set_first(void)
{
	return build(set_first);
}

static int build_wide(void)
{
	return build(set_many);
}

static int build_long(void)
{
	return build(set_long);
}

static int build_early(void)
{
	return build(ibv_wr_send);
}

static void refused_requests_are_told(void **state)
{
	static const struct pair_refusal cases[] = {
		{ post_early, EINVAL, "ibv_post_send", "a QP sends from RTS on, it is in RESET" },
		{ post_wide, EINVAL, "ibv_post_send",
		  "wr_id 0x77: num_sge is 5, the QP has max_send_sge 4" },
		{ post_unknown, EINVAL, "ibv_post_send", "no operation 99" },
		{ post_flags, EINVAL, "ibv_post_send", "send_flags 0x100000, known are 0xf" },
		{ post_inline, EINVAL, "ibv_post_send",
		  "1000 bytes inline, the QP has max_inline_data 64" },
		{ post_inline_read, EINVAL, "ibv_post_send", "operation 4 cannot be inline" },
		{ post_atomic, EINVAL, "ibv_post_send",
		  "1000 bytes at 0x0: atomics are of 8 bytes" },
		{ post_bind, EINVAL, "ibv_post_send", "a bind needs bind_mw.mw" },
		{ post_invalidate, EINVAL, "ibv_post_send", "an invalidation has no data" },
		{ post_datagram, EINVAL, "ibv_post_send", "needs an address handle" },
		{ post_too_many, ENOMEM, "ibv_post_send",
		  "the send queue is full (max_send_wr 1): read completions" },
		{ bind_early, EINVAL, "ibv_bind_mw", "a QP sends from RTS on" },
		{ receive_early, EINVAL, "ibv_post_recv", "the QP is in RESET" },
		{ receive_wide, EINVAL, "ibv_post_recv",
		  "wr_id 0x78, num_sge 5; the queue has max_wr 64, max_sge 4" },
		{ receive_too_many, ENOMEM, "ibv_post_recv", "the receive queue is full" },
		{ srq_wide, EINVAL, "ibv_post_srq_recv", "num_sge is not within max_sge" },
		{ srq_not_own, EINVAL, "ibv_post_recv", "the QP receives from an SRQ" },
		{ build_set_first, EINVAL, "ibv_wr_complete",
		  "ibv_wr_set_*() comes after the call of an operation" },
		{ build_wide, EINVAL, "ibv_wr_complete", "longer than that of any QP" },
		{ build_long, EINVAL, "ibv_wr_complete", "more inline data than any QP has" },
		{ build_early, EINVAL, "ibv_wr_complete", "a QP sends from RTS on" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		pair_refused(&cases[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(refused_requests_are_told, open_roce, close_pair),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
