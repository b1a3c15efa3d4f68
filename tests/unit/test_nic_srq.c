/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared receive queues. */
#include "config.h"

#include <errno.h>

#include "nic_pair.h"

static void connect_srq(void)
{
	struct pair_conn conn = pair_defaults();

	conn.srq = true;
	conn.min_rnr_timer = 1;
	pair_connect(&conn);
}

static void create_checks_its_arguments(void **state)
{
	static const struct { uint32_t wr, sge; int err; } cases[] = {
		{ 1, 1, 0 }, { 1, 0, 0 }, { 0, 1, EINVAL }, { 32767, 31, 0 }, { 32768, 1, EINVAL },
		{ 1, 32, EINVAL },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct ibv_srq_init_attr init = {
			.attr = { .max_wr = cases[i].wr, .max_sge = cases[i].sge },
		};
		struct ibv_srq *srq;

		errno = 0;
		srq = sim_verbs.create_srq(a.pd, &init);
		assert_int_equal(errno, cases[i].err);
		assert_int_equal(srq != NULL, !cases[i].err);
		if (srq)
			assert_int_equal(sim_verbs.destroy_srq(srq), 0);
	}
}

static void create_ex(void **state)
{
	struct ibv_srq_init_attr_ex attr = {
		.attr = { .max_wr = 4, .max_sge = 1 },
		.comp_mask = IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_XRCD,
		.srq_type = IBV_SRQT_XRC,
		.pd = a.pd,
	};
	struct verbs_context *verbs = verbs_get_ctx(a.context);
	struct ibv_srq *srq;
	uint32_t number = 0;

	(void)state;
	assert_null(verbs->create_srq_ex(a.context, &attr));
	assert_int_equal(errno, EINVAL);
	attr.comp_mask = IBV_SRQ_INIT_ATTR_TYPE;
	attr.srq_type = IBV_SRQT_BASIC;
	assert_null(verbs->create_srq_ex(a.context, &attr));
	assert_int_equal(errno, EINVAL);
	attr.comp_mask |= IBV_SRQ_INIT_ATTR_PD;
	srq = verbs->create_srq_ex(a.context, &attr);
	assert_non_null(srq);
	assert_int_equal(ibv_get_srq_num(srq, &number), 0);
	assert_int_not_equal(number, 0);
	assert_int_equal(sim_verbs.destroy_srq(srq), 0);
}

static void two_qps_share_one_queue(void **state)
{
	struct pair_conn conn = pair_defaults();
	struct ibv_qp *first_a, *first_b;

	(void)state;
	connect_srq();
	assert_int_equal(sim_verbs.destroy_srq(b.srq), EBUSY);
	first_a = a.qp;
	first_b = b.qp;
	a.qp = pair_qp(&a, &conn);
	b.qp = pair_qp(&b, &conn);
	assert_int_equal(pair_to_init(&a, a.qp, &conn), 0);
	assert_int_equal(pair_to_init(&b, b.qp, &conn), 0);
	assert_int_equal(pair_to_rtr(&a, a.qp, &b, b.qp->qp_num, &conn), 0);
	assert_int_equal(pair_to_rtr(&b, b.qp, &a, a.qp->qp_num, &conn), 0);
	assert_int_equal(pair_to_rts(a.qp, &conn), 0);
	for (uint64_t i = 0; i < 4; i++)
		assert_int_equal(pair_recv(&b, i, i * 100, 100), 0);
	for (uint64_t i = 0; i < 4; i++) {
		struct ibv_qp *mine = a.qp, *peers = i & 1 ? first_b : b.qp;
		struct ibv_wc wc;

		a.qp = i & 1 ? first_a : mine;
		pair_fill(&a, 0, 60, (uint8_t)i);
		assert_int_equal(pair_send(&a, i, 0, 60), 0);
		a.qp = mine;
		wc = pair_expect(&b, i, IBV_WC_SUCCESS);
		assert_int_equal(wc.qp_num, peers->qp_num);
		pair_check(&b, i * 100, 60, (uint8_t)i);
		pair_expect(&a, i, IBV_WC_SUCCESS);
	}
	assert_int_equal(sim_verbs.destroy_qp(first_a), 0);
	assert_int_equal(sim_verbs.destroy_qp(first_b), 0);
}

static void own_receives_are_refused(void **state)
{
	struct ibv_sge sge;
	struct ibv_recv_wr wr = { .sg_list = &sge, .num_sge = 1 }, *bad = NULL;
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	(void)state;
	connect_srq();
	sge = pair_sge(&b, 0, 8);
	assert_int_equal(ibv_post_recv(b.qp, &wr, &bad), EINVAL);
	assert_ptr_equal(bad, &wr);
	assert_int_equal(sim_verbs.query_qp(b.qp, &attr, 0, &init), 0);
	assert_int_equal(attr.cap.max_recv_wr, 0);
	assert_ptr_equal(init.srq, b.srq);
}

static void posting_is_checked(void **state)
{
	struct ibv_sge sge[5] = { pair_sge(&b, 0, 8) };
	struct ibv_recv_wr wr = { .sg_list = sge, .num_sge = 5 }, *bad = NULL;

	(void)state;
	connect_srq();
	assert_int_equal(ibv_post_srq_recv(b.srq, &wr, &bad), EINVAL);
	assert_ptr_equal(bad, &wr);
	for (uint64_t i = 0; i < 64; i++)
		assert_int_equal(pair_recv(&b, i, 0, 8), 0);
	assert_int_equal(pair_recv(&b, 64, 0, 8), ENOMEM);
}

static void limit_is_told_once(void **state)
{
	struct ibv_srq_attr attr = { .srq_limit = 3 };

	(void)state;
	connect_srq();
	for (uint64_t i = 0; i < 6; i++)
		assert_int_equal(pair_recv(&b, i, 0, 8), 0);
	assert_int_equal(sim_verbs.modify_srq(b.srq, &attr, IBV_SRQ_LIMIT), 0);
	assert_int_equal(sim_verbs.query_srq(b.srq, &attr), 0);
	assert_int_equal(attr.max_wr, 64);
	assert_int_equal(attr.max_sge, 4);
	assert_int_equal(attr.srq_limit, 3);
	for (uint64_t i = 0; i < 3; i++) {
		assert_int_equal(pair_send(&a, i, 0, 8), 0);
		pair_expect(&b, i, IBV_WC_SUCCESS);
		pair_no_async(&b);
	}
	for (uint64_t i = 3; i < 5; i++) {
		assert_int_equal(pair_send(&a, i, 0, 8), 0);
		pair_expect(&b, i, IBV_WC_SUCCESS);
	}
	pair_async(&b, IBV_EVENT_SRQ_LIMIT_REACHED);
	pair_no_async(&b);
	assert_int_equal(sim_verbs.query_srq(b.srq, &attr), 0);
	assert_int_equal(attr.srq_limit, 0);
}

static void modify_checks_and_resizes(void **state)
{
	struct ibv_srq_attr attr = { .max_wr = 5, .srq_limit = 6 };

	(void)state;
	connect_srq();
	for (uint64_t i = 0; i < 5; i++)
		assert_int_equal(pair_recv(&b, i, i * 8, 8), 0);
	assert_int_equal(sim_verbs.modify_srq(b.srq, &attr, 4), EINVAL);
	assert_int_equal(sim_verbs.modify_srq(b.srq, &attr, IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT), EINVAL);
	attr.max_wr = 4;
	assert_int_equal(sim_verbs.modify_srq(b.srq, &attr, IBV_SRQ_MAX_WR), EINVAL);
	attr.max_wr = 32768;
	assert_int_equal(sim_verbs.modify_srq(b.srq, &attr, IBV_SRQ_MAX_WR), EINVAL);
	attr.max_wr = 5;
	assert_int_equal(sim_verbs.modify_srq(b.srq, &attr, IBV_SRQ_MAX_WR), 0);
	assert_int_equal(pair_recv(&b, 5, 40, 8), ENOMEM);
	attr.max_wr = 100;
	assert_int_equal(sim_verbs.modify_srq(b.srq, &attr, IBV_SRQ_MAX_WR), 0);
	assert_int_equal(pair_recv(&b, 5, 40, 8), 0);
	pair_fill(&a, 0, 48, 1);
	for (uint64_t i = 0; i < 6; i++) {
		assert_int_equal(pair_send(&a, i, i * 8, 8), 0);
		pair_expect(&b, i, IBV_WC_SUCCESS);
	}
	pair_check(&b, 0, 48, 1);
}

static void empty_queue_is_not_ready(void **state)
{
	(void)state;
	connect_srq();
	assert_int_equal(pair_send(&a, 1, 0, 8), 0);
	pair_none(&b, SIM_MS(1));
	assert_int_equal(pair_recv(&b, 2, 0, 8), 0);
	pair_expect(&b, 2, IBV_WC_SUCCESS);
	pair_expect(&a, 1, IBV_WC_SUCCESS);
}

/* Receives of a shared queue are not the QP's to flush. */
static void error_says_last_wqe_reached(void **state)
{
	(void)state;
	connect_srq();
	assert_int_equal(pair_recv(&b, 1, 0, 8), 0);
	assert_int_equal(pair_modify(b.qp, IBV_QPS_ERR), 0);
	pair_async(&b, IBV_EVENT_QP_LAST_WQE_REACHED);
	pair_no_async(&b);
	pair_none(&b, SIM_MS(1));
}

static void longer_than_the_shared_receive(void **state)
{
	(void)state;
	connect_srq();
	assert_int_equal(pair_recv(&b, 1, 0, 8), 0);
	assert_int_equal(pair_recv(&b, 2, 0, 8), 0);
	assert_int_equal(pair_send(&a, 1, 0, 9), 0);
	pair_expect(&a, 1, IBV_WC_REM_INV_REQ_ERR);
	pair_expect(&b, 1, IBV_WC_LOC_LEN_ERR);
	pair_none(&b, SIM_MS(1));
	pair_async(&b, IBV_EVENT_QP_LAST_WQE_REACHED);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(create_checks_its_arguments, open_roce, close_pair),
		cmocka_unit_test_setup_teardown(create_ex, open_roce, close_pair),
		cmocka_unit_test_setup_teardown(two_qps_share_one_queue, open_roce, close_pair),
		cmocka_unit_test_setup_teardown(own_receives_are_refused, open_roce, close_pair),
		cmocka_unit_test_setup_teardown(posting_is_checked, open_roce, close_pair),
		cmocka_unit_test_setup_teardown(limit_is_told_once, open_roce, close_pair),
		cmocka_unit_test_setup_teardown(modify_checks_and_resizes, open_roce, close_pair),
		cmocka_unit_test_setup_teardown(empty_queue_is_not_ready, open_roce, close_pair),
		cmocka_unit_test_setup_teardown(error_says_last_wqe_reached, open_roce, close_pair),
		cmocka_unit_test_setup_teardown(longer_than_the_shared_receive, open_roce,
						close_pair),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
