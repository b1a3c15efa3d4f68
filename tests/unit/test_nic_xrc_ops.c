/* SPDX-License-Identifier: BSD-2-Clause */
/* What XRC requests do, the events of receivers and SRQs, and what is refused. */
#include "config.h"

#include "nic_xrc.h"

/* --- Every operation, through the wr_*() calls. --- */

static struct ibv_qp_ex *connect_extended(void)
{
	struct ibv_qp_init_attr_ex attr = {
		.qp_type = IBV_QPT_XRC_SEND, .send_cq = a.cq, .sq_sig_all = 1, .pd = a.pd,
		.cap = { .max_send_wr = 16, .max_send_sge = 2 },
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.send_ops_flags = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM |
				  IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM | IBV_QP_EX_WITH_RDMA_READ |
				  IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD,
	};
	struct ibv_qp *qp = verbs_get_ctx(a.context)->create_qp_ex(a.context, &attr);

	assert_non_null(qp);
	connect_qp(qp, 7);
	return sim_verbs.qp_to_qp_ex(qp);
}

static void built_requests_name_the_srq(void **state)
{
	struct ibv_qp_ex *ex = connect_extended();
	uint64_t *counter = (uint64_t *)(void *)(b.buf + 4096), *answers = (void *)(a.buf + 8192);
	struct ibv_wc wc;

	(void)state;
	*counter = 5;
	receive(second, 1, 0, 100);
	receive(first, 2, 1000, 100);
	receive(second, 3, 0, 0);
	pair_fill(&a, 0, 100, 7);
	ibv_wr_start(ex);
	for (uint64_t i = 0; i < 5; i++) {
		ex->wr_id = 10 + i;
		if (i == 0)
			ibv_wr_send(ex);
		else if (i == 1)
			ibv_wr_send_imm(ex, 0x1234);
		else if (i == 2)
			ibv_wr_rdma_write_imm(ex, b.mr->rkey, (uintptr_t)b.buf + 2000, 0x5678);
		else if (i == 3)
			ibv_wr_atomic_fetch_add(ex, b.mr->rkey, (uintptr_t)counter, 3);
		else
			ibv_wr_rdma_read(ex, b.mr->rkey, (uintptr_t)counter);
		ibv_wr_set_xrc_srqn(ex, i == 1 ? first_number : second_number);
		if (i < 3)
			ibv_wr_set_sge(ex, a.mr->lkey, (uintptr_t)a.buf, 100);
		else
			ibv_wr_set_sge(ex, a.mr->lkey, (uintptr_t)&answers[i - 3], 8);
	}
	assert_int_equal(ibv_wr_complete(ex), 0);
	for (uint64_t i = 0; i < 5; i++)
		pair_expect(&a, 10 + i, IBV_WC_SUCCESS);
	pair_expect(&b, 1, IBV_WC_SUCCESS);
	wc = pair_expect(&b, 2, IBV_WC_SUCCESS);
	assert_int_equal(wc.imm_data, 0x1234);
	wc = pair_expect(&b, 3, IBV_WC_SUCCESS);
	assert_int_equal(wc.imm_data, 0x5678);
	assert_int_equal(wc.opcode, IBV_WC_RECV_RDMA_WITH_IMM);
	pair_check(&b, 0, 100, 7);
	pair_check(&b, 1000, 100, 7);
	pair_check(&b, 2000, 100, 7);
	assert_int_equal(answers[0], 5);
	assert_int_equal(answers[1], 8);
	end();
}

/* --- Windows. --- */

/* The receiver's windows are bound through another QP of its: of type 1, as XRC has none itself. */
static struct ibv_mw *bound_window(enum ibv_mw_type type, struct ibv_mr *mr, struct ibv_qp **ret_qp)
{
	struct pair_conn conn = pair_defaults();
	struct ibv_mw *mw = ibv_alloc_mw(b.pd, type);
	struct ibv_send_wr wr = {
		.wr_id = 50, .opcode = IBV_WR_BIND_MW, .bind_mw = {
			.mw = mw, .bind_info = { .mr = mr, .addr = (uintptr_t)b.buf, .length = 4096,
						 .mw_access_flags = IBV_ACCESS_REMOTE_WRITE },
		},
	}, *bad;

	assert_non_null(mw);
	*ret_qp = pair_qp(&b, &conn);
	assert_int_equal(pair_to_init(&b, *ret_qp, &conn), 0);
	assert_int_equal(pair_to_rtr(&b, *ret_qp, &a, 1, &conn), 0);
	assert_int_equal(pair_to_rts(*ret_qp, &conn), 0);
	wr.bind_mw.rkey = mw->rkey = ibv_inc_rkey(mw->rkey);
	assert_int_equal(ibv_post_send(*ret_qp, &wr, &bad), 0);
	pair_expect(&b, 50, IBV_WC_SUCCESS);
	return mw;
}

static int send_with_key(enum ibv_wr_opcode opcode, uint64_t wr_id, uint32_t key)
{
	struct ibv_sge sge = pair_sge(&a, 0, 50);
	struct ibv_send_wr wr = {
		.wr_id = wr_id, .opcode = opcode, .sg_list = &sge, .num_sge = 1,
		.qp_type.xrc.remote_srqn = first_number,
	};

	if (opcode == IBV_WR_SEND_WITH_INV) {
		wr.invalidate_rkey = key;
	} else {
		wr.wr.rdma.rkey = key;
		wr.wr.rdma.remote_addr = (uintptr_t)b.buf;
	}
	return pair_post(&a, &wr);
}

/*
 * A window of type 1 opens its memory to XRC, too.  None can be bound through a QP that only
 * receives, so there is none that a sender could invalidate.
 */
static void windows_of_the_receiver(void **state)
{
	struct ibv_mr *mr;
	struct ibv_qp *binder;
	struct ibv_mw *mw;

	(void)state;
	for (int type = IBV_MW_TYPE_1; type <= IBV_MW_TYPE_2; type++) {
		pair_open(PAIR_ROCE);
		connect_xrc(7);
		mr = sim_verbs.reg_mr(b.pd, b.buf, 4096, (uintptr_t)b.buf,
				      IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND);
		assert_non_null(mr);
		mw = bound_window((enum ibv_mw_type)type, mr, &binder);
		receive(first, 1, 100, 100);
		pair_fill(&a, 0, 50, 3);
		if (type == IBV_MW_TYPE_1) {
			assert_int_equal(send_with_key(IBV_WR_RDMA_WRITE, 2, mw->rkey), 0);
			pair_expect(&a, 2, IBV_WC_SUCCESS);
			pair_check(&b, 0, 50, 3);
		}
		assert_int_equal(send_with_key(IBV_WR_SEND_WITH_INV, 3, mw->rkey), 0);
		pair_expect(&a, 3, IBV_WC_REM_OP_ERR);
		pair_expect(&b, 1, IBV_WC_REM_INV_REQ_ERR);
		assert_int_equal(pair_state(b.qp), IBV_QPS_ERR);
		pair_abandon();
	}
}

/* --- Events. --- */

static void events_of_srqs_and_receivers(void **state)
{
	struct ibv_srq_attr limit = { .srq_limit = 2 };

	(void)state;
	connect_xrc(7);
	for (uint64_t i = 0; i < 3; i++)
		receive(first, i, i * 100, 100);
	receive(second, 9, 0, 100);
	assert_int_equal(sim_verbs.modify_srq(first, &limit, IBV_SRQ_LIMIT), 0);
	assert_int_equal(request(IBV_WR_SEND, second_number, 10, 0, 50), 0);
	pair_expect(&b, 9, IBV_WC_SUCCESS);
	assert_int_equal(request(IBV_WR_SEND, first_number, 11, 0, 50), 0);
	pair_expect(&b, 0, IBV_WC_SUCCESS);
	pair_no_async(&b);
	assert_int_equal(request(IBV_WR_SEND, first_number, 12, 0, 50), 0);
	pair_expect(&b, 1, IBV_WC_SUCCESS);
	pair_async(&b, IBV_EVENT_SRQ_LIMIT_REACHED);
	/* No receive of any SRQ goes to this QP any more; they stay for others. */
	assert_int_equal(pair_modify(b.qp, IBV_QPS_ERR), 0);
	pair_async(&b, IBV_EVENT_QP_LAST_WQE_REACHED);
	pair_no_async(&b);
	pair_none(&b, SIM_MS(1));
	assert_int_equal(pair_modify(a.qp, IBV_QPS_ERR), 0);
	pair_no_async(&a);
	end();
}

/* --- What is refused. --- */

static struct ibv_srq_init_attr_ex srq_attr(void)
{
	return (struct ibv_srq_init_attr_ex) {
		.attr = { .max_wr = 1, .max_sge = 1 }, .srq_type = IBV_SRQT_XRC,
		.comp_mask = IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_TYPE |
			     IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ,
		.pd = b.pd, .xrcd = domain, .cq = b.cq,
	};
}

static int create_srq(struct ibv_srq_init_attr_ex attr)
{
	return ibv_create_srq_ex(b.context, &attr) ? 0 : errno;
}

static int srq_without_domain(void)
{
	struct ibv_srq_init_attr_ex attr = srq_attr();

	attr.comp_mask &= ~(uint32_t)IBV_SRQ_INIT_ATTR_XRCD;
	return create_srq(attr);
}

static int srq_without_cq(void)
{
	struct ibv_srq_init_attr_ex attr = srq_attr();

	attr.cq = NULL;
	return create_srq(attr);
}

static int srq_of_another_context(void)
{
	struct ibv_srq_init_attr_ex attr = srq_attr();

	attr.cq = a.cq;
	return create_srq(attr);
}

static int srq_too_wide(void)
{
	struct ibv_srq_init_attr_ex attr = srq_attr();

	attr.attr.max_sge = 1000;
	return create_srq(attr);
}

static int create_qp(struct pair_side *side, struct ibv_qp_init_attr_ex attr)
{
	return verbs_get_ctx(side->context)->create_qp_ex(side->context, &attr) ? 0 : errno;
}

static int receiver_without_domain(void)
{
	return create_qp(&b, (struct ibv_qp_init_attr_ex) { .qp_type = IBV_QPT_XRC_RECV });
}

static int receiver_of_another_context(void)
{
	return create_qp(&a, (struct ibv_qp_init_attr_ex) {
		.qp_type = IBV_QPT_XRC_RECV, .comp_mask = IBV_QP_INIT_ATTR_XRCD, .xrcd = domain,
	});
}

static int receiver_that_sends(void)
{
	return create_qp(&b, (struct ibv_qp_init_attr_ex) {
		.qp_type = IBV_QPT_XRC_RECV, .xrcd = domain, .send_ops_flags = IBV_QP_EX_WITH_SEND,
		.comp_mask = IBV_QP_INIT_ATTR_XRCD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
	});
}

static int sender_without_cq(void)
{
	return create_qp(&b, (struct ibv_qp_init_attr_ex) {
		.qp_type = IBV_QPT_XRC_SEND, .comp_mask = IBV_QP_INIT_ATTR_PD, .pd = b.pd,
	});
}

static int sender_with_domain(void)
{
	return create_qp(&b, (struct ibv_qp_init_attr_ex) {
		.qp_type = IBV_QPT_XRC_SEND, .comp_mask = IBV_QP_INIT_ATTR_XRCD, .xrcd = domain,
		.send_cq = b.cq,
	});
}

/* Its receives have a CQ of their own, and its messages name it. */
static int rc_with_xrc_srq(void)
{
	struct ibv_qp_init_attr attr = {
		.qp_type = IBV_QPT_RC, .send_cq = b.cq, .recv_cq = b.cq, .srq = first,
	};

	return sim_verbs.create_qp(b.pd, &attr) ? 0 : errno;
}

static int receive_on_sender(void)
{
	struct ibv_recv_wr wr = { .wr_id = 1 }, *bad;

	return ibv_post_recv(a.qp, &wr, &bad);
}

static int receive_on_receiver(void)
{
	struct ibv_recv_wr wr = { .wr_id = 1 }, *bad;

	return ibv_post_recv(b.qp, &wr, &bad);
}

static int send_on_receiver(void)
{
	struct ibv_send_wr wr = { .opcode = IBV_WR_SEND }, *bad;

	return ibv_post_send(b.qp, &wr, &bad);
}

static int bind_on_sender(void)
{
	struct ibv_send_wr wr = { .opcode = IBV_WR_BIND_MW }, *bad;

	return ibv_post_send(a.qp, &wr, &bad);
}

static int close_busy(void)
{
	return ibv_close_xrcd(domain);
}

static void what_is_refused(void **state)
{
	static const struct pair_refusal cases[] = {
		{ srq_without_domain, EINVAL, "ibv_create_srq_ex", "it needs an XRC domain" },
		{ srq_without_cq, EINVAL, "ibv_create_srq_ex", "it needs a CQ" },
		{ srq_of_another_context, EINVAL, "ibv_create_srq_ex", "cq is of another context" },
		{ srq_too_wide, EINVAL, "ibv_create_srq_ex", "max_sge is 1000" },
		{ receiver_without_domain, EINVAL, "ibv_create_qp_ex", "it needs an XRC domain" },
		{ receiver_of_another_context, EINVAL, "ibv_create_qp_ex", "of the same context" },
		{ receiver_that_sends, EOPNOTSUPP, "ibv_create_qp_ex", "send_ops_flags" },
		{ sender_without_cq, EINVAL, "ibv_create_qp_ex", "send_cq is NULL" },
		{ sender_with_domain, EOPNOTSUPP, "ibv_create_qp_ex", "only a QP of type XRC_RECV" },
		{ rc_with_xrc_srq, EINVAL, "ibv_create_qp", "the SRQ is one of XRC" },
		{ receive_on_sender, EINVAL, "ibv_post_recv", "does not receive" },
		{ receive_on_receiver, EINVAL, "ibv_post_recv", "receives from an SRQ" },
		{ send_on_receiver, EINVAL, "ibv_post_send", "has no operation" },
		{ bind_on_sender, EINVAL, "ibv_post_send", "has no operation" },
		{ close_busy, EBUSY, "ibv_close_xrcd", "SRQs and QPs of the domain are left: 3" },
	};

	(void)state;
	connect_xrc(7);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		pair_refused(&cases[i]);
	end();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ROCE(built_requests_name_the_srq),
		cmocka_unit_test(windows_of_the_receiver),
		ROCE(events_of_srqs_and_receivers),
		ROCE(what_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
