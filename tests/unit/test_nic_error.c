/* SPDX-License-Identifier: BSD-2-Clause */
/* What fails, how both ends learn of it, and the flushing of what is left. */
#include "config.h"

#include <errno.h>

#include "nic_pair.h"

static void connect_default(void)
{
	struct pair_conn conn = pair_defaults();

	pair_connect(&conn);
}

/* --- Calls that are refused. --- */

static const struct {
	enum pair_transport transport;
	enum ibv_wr_opcode opcode;
	unsigned int flags;
	int num_sge;
	uint32_t length;		/* of each */
	uint64_t remote;
	int err;
} posts[] = {
	{ PAIR_ROCE, IBV_WR_SEND, 0, 4, 8, 0, 0 },
	{ PAIR_ROCE, IBV_WR_SEND, 0, 5, 8, 0, EINVAL },
	{ PAIR_ROCE, IBV_WR_SEND, 0, -1, 8, 0, EINVAL },
	{ PAIR_ROCE, IBV_WR_SEND, IBV_SEND_INLINE, 1, 64, 0, 0 },
	{ PAIR_ROCE, IBV_WR_SEND, IBV_SEND_INLINE, 1, 65, 0, EINVAL },
	{ PAIR_ROCE, IBV_WR_SEND, IBV_SEND_INLINE, 2, 33, 0, EINVAL },
	{ PAIR_ROCE, IBV_WR_SEND, IBV_SEND_IP_CSUM, 1, 8, 0, EINVAL },
	{ PAIR_ROCE, IBV_WR_SEND, IBV_SEND_FENCE | IBV_SEND_SOLICITED | IBV_SEND_SIGNALED, 1, 8, 0, 0 },
	{ PAIR_ROCE, IBV_WR_RDMA_READ, IBV_SEND_INLINE, 1, 8, 0, EINVAL },
	{ PAIR_ROCE, IBV_WR_ATOMIC_FETCH_AND_ADD, 0, 1, 4, 0, EINVAL },
	{ PAIR_ROCE, IBV_WR_ATOMIC_FETCH_AND_ADD, 0, 2, 8, 0, EINVAL },
	{ PAIR_ROCE, IBV_WR_ATOMIC_FETCH_AND_ADD, 0, 1, 8, 4, EINVAL },
	{ PAIR_ROCE, IBV_WR_ATOMIC_CMP_AND_SWP, IBV_SEND_INLINE, 1, 8, 0, EINVAL },
	{ PAIR_ROCE, IBV_WR_LOCAL_INV, 0, 1, 8, 0, EINVAL },
	{ PAIR_ROCE, IBV_WR_LOCAL_INV, IBV_SEND_INLINE, 0, 0, 0, EINVAL },
	{ PAIR_ROCE, IBV_WR_BIND_MW, 0, 0, 0, 0, EINVAL },
	{ PAIR_ROCE, IBV_WR_TSO, 0, 1, 8, 0, EINVAL },
	{ PAIR_ROCE, (enum ibv_wr_opcode)99, 0, 1, 8, 0, EINVAL },
	{ PAIR_IWARP, IBV_WR_SEND, 0, 4, 8, 0, 0 },
	{ PAIR_IWARP, IBV_WR_RDMA_READ, 0, 1, 8, 0, 0 },
	{ PAIR_IWARP, IBV_WR_RDMA_READ, 0, 2, 8, 0, EINVAL },
	{ PAIR_IWARP, IBV_WR_SEND_WITH_IMM, 0, 1, 8, 0, EINVAL },
	{ PAIR_IWARP, IBV_WR_RDMA_WRITE_WITH_IMM, 0, 1, 8, 0, EINVAL },
	{ PAIR_IWARP, IBV_WR_ATOMIC_FETCH_AND_ADD, 0, 1, 8, 0, EINVAL },
	{ PAIR_IWARP, IBV_WR_ATOMIC_CMP_AND_SWP, 0, 1, 8, 0, EINVAL },
};

static void posts_are_checked(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(posts); i++) {
		struct ibv_send_wr wr = { .opcode = posts[i].opcode, .num_sge = posts[i].num_sge,
					  .send_flags = posts[i].flags }, *bad = NULL;
		struct ibv_sge sge[8];

		pair_open(posts[i].transport);
		connect_default();
		for (size_t n = 0; n < ARRAY_SIZE(sge); n++)
			sge[n] = pair_sge(&a, n * 100, posts[i].length);
		wr.sg_list = sge;
		if (posts[i].opcode == IBV_WR_ATOMIC_FETCH_AND_ADD ||
		    posts[i].opcode == IBV_WR_ATOMIC_CMP_AND_SWP) {
			wr.wr.atomic.remote_addr = (uintptr_t)b.buf + posts[i].remote;
			wr.wr.atomic.rkey = b.mr->rkey;
		} else {
			wr.wr.rdma.remote_addr = (uintptr_t)b.buf + posts[i].remote;
			wr.wr.rdma.rkey = b.mr->rkey;
		}
		assert_int_equal(pair_recv(&b, 1, 0, 100), 0);
		if (ibv_post_send(a.qp, &wr, &bad) != posts[i].err)
			fail_msg("post %zu", i);
		if (pair_warned("ibv_post_send refused") != !!posts[i].err)
			fail_msg("post %zu: %s", i, pair_log());
		assert_ptr_equal(bad, posts[i].err ? &wr : NULL);
		if (!posts[i].err)
			pair_expect(&a, 0, IBV_WC_SUCCESS);
		pair_close();
	}
}

static void queues_have_the_size_asked_for(void **state)
{
	struct pair_conn conn = pair_defaults();

	(void)state;
	conn.cap.max_send_wr = 3;	/* no power of two */
	conn.cap.max_recv_wr = 5;
	conn.cap.max_recv_sge = 1;
	pair_connect(&conn);
	for (uint64_t i = 0; i < 5; i++)
		assert_int_equal(pair_recv(&b, i, 0, 8), 0);
	assert_int_equal(pair_recv(&b, 5, 0, 8), ENOMEM);
	assert_true(pair_warned("the receive queue is full"));
	/* Programs post until it is full: one line for each queue is enough. */
	assert_int_equal(pair_recv(&b, 5, 0, 8), ENOMEM);
	assert_false(pair_warned("full"));
	for (uint64_t i = 0; i < 3; i++)
		assert_int_equal(pair_send(&a, i, 0, 8), 0);
	assert_int_equal(pair_send(&a, 3, 0, 8), ENOMEM);
	assert_true(pair_warned("the send queue is full"));
	assert_int_equal(pair_send(&a, 3, 0, 8), ENOMEM);
	assert_false(pair_warned("full"));
	/* A place is free when its request is complete. */
	pair_expect(&a, 0, IBV_WC_SUCCESS);
	assert_int_equal(sim_advance(SIM_MS(1)), 0);
	for (uint64_t i = 3; i < 5; i++)
		assert_int_equal(pair_send(&a, i, 0, 8), 0);
	for (uint64_t i = 1; i < 5; i++)
		pair_expect(&a, i, IBV_WC_SUCCESS);
	for (uint64_t i = 0; i < 5; i++)
		pair_expect(&b, i, IBV_WC_SUCCESS);
	/* And once around. */
	for (uint64_t i = 0; i < 50; i++) {
		assert_int_equal(pair_recv(&b, i, 0, 8), 0);
		assert_int_equal(pair_send(&a, i, 0, 8), 0);
		pair_expect(&a, i, IBV_WC_SUCCESS);
		pair_expect(&b, i, IBV_WC_SUCCESS);
	}
	for (uint64_t i = 0; i < 4; i++)
		assert_int_equal(pair_send(&a, i, 0, 8), i < 3 ? 0 : ENOMEM);
	assert_false(pair_warned("full"));
}

static void lists_are_posted_up_to_the_bad_request(void **state)
{
	struct ibv_sge sge = pair_sge(&a, 0, 8);
	struct ibv_send_wr wr[3] = {
		{ .wr_id = 0, .next = &wr[1], .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND },
		{ .wr_id = 1, .next = &wr[2], .sg_list = &sge, .num_sge = 9, .opcode = IBV_WR_SEND },
		{ .wr_id = 2, .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND },
	}, *bad = NULL;
	struct ibv_sge recv_sge = pair_sge(&b, 0, 8);
	struct ibv_recv_wr recv[3] = {
		{ .wr_id = 0, .next = &recv[1], .sg_list = &recv_sge, .num_sge = 1 },
		{ .wr_id = 1, .next = &recv[2], .sg_list = &recv_sge, .num_sge = 5 },
		{ .wr_id = 2, .sg_list = &recv_sge, .num_sge = 1 },
	}, *bad_recv = NULL;

	(void)state;
	connect_default();
	assert_int_equal(ibv_post_recv(b.qp, recv, &bad_recv), EINVAL);
	assert_ptr_equal(bad_recv, &recv[1]);
	assert_true(pair_warned("ibv_post_recv refused"));
	assert_int_equal(ibv_post_send(a.qp, wr, &bad), EINVAL);
	assert_ptr_equal(bad, &wr[1]);
	assert_true(pair_warned("ibv_post_send refused"));
	pair_expect(&a, 0, IBV_WC_SUCCESS);
	pair_expect(&b, 0, IBV_WC_SUCCESS);
	pair_none(&a, SIM_MS(1));
	assert_int_equal(pair_modify(b.qp, IBV_QPS_ERR), 0);
	pair_none(&b, SIM_MS(1));
}

static void states_in_which_one_may_post(void **state)
{
	static const struct { enum ibv_qp_state state; int send, recv; } cases[] = {
		{ IBV_QPS_RESET, EINVAL, EINVAL }, { IBV_QPS_INIT, EINVAL, 0 },
		{ IBV_QPS_RTR, EINVAL, 0 }, { IBV_QPS_RTS, 0, 0 }, { IBV_QPS_SQD, 0, 0 },
		{ IBV_QPS_ERR, 0, 0 },
	};
	struct pair_conn conn = pair_defaults();

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		a.qp = pair_qp(&a, &conn);
		b.qp = pair_qp(&b, &conn);
		if (cases[i].state == IBV_QPS_ERR)
			assert_int_equal(pair_modify(a.qp, IBV_QPS_ERR), 0);
		if (cases[i].state != IBV_QPS_ERR && cases[i].state >= IBV_QPS_INIT)
			assert_int_equal(pair_to_init(&a, a.qp, &conn), 0);
		if (cases[i].state != IBV_QPS_ERR && cases[i].state >= IBV_QPS_RTR)
			assert_int_equal(pair_to_rtr(&a, a.qp, &b, b.qp->qp_num, &conn), 0);
		if (cases[i].state != IBV_QPS_ERR && cases[i].state >= IBV_QPS_RTS)
			assert_int_equal(pair_to_rts(a.qp, &conn), 0);
		if (cases[i].state == IBV_QPS_SQD)
			assert_int_equal(pair_modify(a.qp, IBV_QPS_SQD), 0);
		assert_int_equal(pair_send(&a, 1, 0, 8), cases[i].send);
		assert_int_equal(pair_recv(&a, 2, 0, 8), cases[i].recv);
		if (cases[i].state == IBV_QPS_ERR) {
			pair_expect(&a, 1, IBV_WC_WR_FLUSH_ERR);
			pair_expect(&a, 2, IBV_WC_WR_FLUSH_ERR);
		}
		pair_disconnect();
	}
}

/* --- Flushing. --- */

static void err_flushes_everything_in_order(void **state)
{
	(void)state;
	connect_default();
	for (uint64_t i = 0; i < 5; i++) {
		assert_int_equal(pair_recv(&a, 100 + i, 0, 8), 0);
		assert_int_equal(pair_send(&a, i, 0, 8), 0);
	}
	assert_int_equal(pair_modify(a.qp, IBV_QPS_ERR), 0);
	for (uint64_t i = 0; i < 5; i++)
		assert_int_equal(pair_expect(&a, i, IBV_WC_WR_FLUSH_ERR).qp_num, a.qp->qp_num);
	for (uint64_t i = 0; i < 5; i++)
		pair_expect(&a, 100 + i, IBV_WC_WR_FLUSH_ERR);
	pair_none(&a, SIM_MS(1));
	pair_no_async(&a);
}

static void reset_forgets_everything(void **state)
{
	struct pair_conn conn = pair_defaults();

	(void)state;
	connect_default();
	assert_int_equal(pair_recv(&a, 100, 0, 8), 0);
	assert_int_equal(pair_send(&a, 1, 0, 8), 0);
	assert_int_equal(pair_modify(a.qp, IBV_QPS_RESET), 0);
	assert_int_equal(pair_modify(b.qp, IBV_QPS_RESET), 0);
	pair_none(&a, SIM_MS(1));
	/* And may be used again. */
	assert_int_equal(pair_to_init(&a, a.qp, &conn), 0);
	assert_int_equal(pair_to_init(&b, b.qp, &conn), 0);
	assert_int_equal(pair_to_rtr(&a, a.qp, &b, b.qp->qp_num, &conn), 0);
	assert_int_equal(pair_to_rtr(&b, b.qp, &a, a.qp->qp_num, &conn), 0);
	assert_int_equal(pair_to_rts(a.qp, &conn), 0);
	assert_int_equal(pair_recv(&b, 2, 0, 8), 0);
	assert_int_equal(pair_send(&a, 3, 0, 8), 0);
	pair_expect(&a, 3, IBV_WC_SUCCESS);
	pair_expect(&b, 2, IBV_WC_SUCCESS);
}

/* The failed request has the reason, all behind it are flushed, all before it succeeded. */
static void failure_in_the_middle(void **state)
{
	struct ibv_sge bad_sge = { .addr = (uintptr_t)a.buf, .length = 8, .lkey = 0x666 };
	struct ibv_send_wr bad_wr = { .wr_id = 3, .sg_list = &bad_sge, .num_sge = 1 };
	static const struct { enum ibv_wr_opcode op; } cases[] = {
		{ IBV_WR_SEND }, { IBV_WR_RDMA_WRITE }, { IBV_WR_RDMA_READ },
		{ IBV_WR_ATOMIC_FETCH_AND_ADD },
	};

	(void)state;
	for (size_t c = 0; c < ARRAY_SIZE(cases); c++) {
		connect_default();
		for (uint64_t i = 0; i < 3; i++)
			assert_int_equal(pair_rdma(&a, i & 1 ? IBV_WR_RDMA_READ : IBV_WR_RDMA_WRITE, i,
						   0, 8, 0), 0);
		bad_wr.opcode = cases[c].op;
		assert_int_equal(pair_post(&a, &bad_wr), 0);
		for (uint64_t i = 4; i < 6; i++)
			assert_int_equal(pair_rdma(&a, IBV_WR_RDMA_WRITE, i, 0, 8, 0), 0);
		assert_int_equal(pair_recv(&a, 100, 0, 8), 0);
		for (uint64_t i = 0; i < 3; i++)
			pair_expect(&a, i, IBV_WC_SUCCESS);
		pair_expect(&a, 3, IBV_WC_LOC_PROT_ERR);
		for (uint64_t i = 4; i < 6; i++)
			pair_expect(&a, i, IBV_WC_WR_FLUSH_ERR);
		pair_expect(&a, 100, IBV_WC_WR_FLUSH_ERR);
		assert_int_equal(pair_state(a.qp), IBV_QPS_ERR);
		/* The peer has not noticed. */
		assert_int_equal(pair_state(b.qp), IBV_QPS_RTS);
		pair_disconnect();
	}
}

static void local_keys_are_checked(void **state)
{
	struct ibv_mr *short_mr = sim_verbs.reg_mr(a.pd, a.buf, 100, (uintptr_t)a.buf, 0);
	struct ibv_pd *pd = sim_verbs.alloc_pd(a.context);
	struct ibv_mr *other = sim_verbs.reg_mr(pd, a.buf, 100, (uintptr_t)a.buf,
						IBV_ACCESS_LOCAL_WRITE);
	struct { struct ibv_mr *mr; uint32_t len; enum ibv_wr_opcode op; enum ibv_wc_status status; }
	cases[] = {
		{ short_mr, 100, IBV_WR_RDMA_WRITE, IBV_WC_SUCCESS },
		{ short_mr, 101, IBV_WR_RDMA_WRITE, IBV_WC_LOC_PROT_ERR },
		/* Reading writes here. */
		{ short_mr, 100, IBV_WR_RDMA_READ, IBV_WC_LOC_PROT_ERR },
		{ other, 100, IBV_WR_RDMA_WRITE, IBV_WC_LOC_PROT_ERR },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct ibv_sge sge = { .addr = (uintptr_t)a.buf, .length = cases[i].len,
				       .lkey = cases[i].mr->lkey };
		struct ibv_send_wr wr = {
			.sg_list = &sge, .num_sge = 1, .opcode = cases[i].op,
			.wr.rdma = { .remote_addr = (uintptr_t)b.buf, .rkey = b.mr->rkey },
		};

		connect_default();
		assert_int_equal(pair_post(&a, &wr), 0);
		pair_expect(&a, 0, cases[i].status);
		pair_disconnect();
	}
	assert_int_equal(sim_verbs.dereg_mr(short_mr), 0);
	assert_int_equal(sim_verbs.dereg_mr(other), 0);
	assert_int_equal(sim_verbs.dealloc_pd(pd), 0);
}

static void message_longer_than_the_receive(void **state)
{
	static const size_t lens[] = { 9, 8192, 20000 };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(lens); i++) {
		connect_default();
		memset(b.buf, 0, PAIR_BUF);
		pair_fill(&a, 0, lens[i], 1);
		assert_int_equal(pair_recv(&b, 1, 0, 8), 0);
		assert_int_equal(pair_recv(&b, 2, 0, 8), 0);
		assert_int_equal(pair_send(&a, 1, 0, lens[i]), 0);
		pair_expect(&a, 1, IBV_WC_REM_INV_REQ_ERR);
		pair_expect(&b, 1, IBV_WC_LOC_LEN_ERR);
		pair_expect(&b, 2, IBV_WC_WR_FLUSH_ERR);
		assert_int_equal(pair_state(b.qp), IBV_QPS_ERR);
		assert_int_equal(b.buf[0], 0);
		pair_no_async(&b);
		pair_disconnect();
	}
}

static void receive_with_a_wrong_key(void **state)
{
	struct ibv_sge sge = { .addr = (uintptr_t)b.buf, .length = 8, .lkey = 0x777 };
	struct ibv_recv_wr wr = { .wr_id = 1, .sg_list = &sge, .num_sge = 1 }, *bad;

	(void)state;
	connect_default();
	assert_int_equal(ibv_post_recv(b.qp, &wr, &bad), 0);
	assert_int_equal(pair_send(&a, 1, 0, 8), 0);
	pair_expect(&a, 1, IBV_WC_REM_OP_ERR);
	pair_expect(&b, 1, IBV_WC_LOC_PROT_ERR);
}

static void too_long_for_any_message(void **state)
{
	struct ibv_mr *mr = sim_verbs.reg_mr(a.pd, a.buf, PAIR_BUF, (uintptr_t)a.buf, PAIR_ALL);
	struct ibv_sge sge[2] = {
		{ .addr = (uintptr_t)a.buf, .length = 1u << 30, .lkey = mr->lkey },
		{ .addr = (uintptr_t)a.buf, .length = 1, .lkey = mr->lkey },
	};
	struct ibv_send_wr wr = { .sg_list = sge, .num_sge = 2, .opcode = IBV_WR_SEND };

	(void)state;
	connect_default();
	assert_int_equal(pair_post(&a, &wr), 0);
	pair_expect(&a, 0, IBV_WC_LOC_LEN_ERR);
	assert_int_equal(sim_verbs.dereg_mr(mr), 0);
}

/* --- Depths of reads and atomics. --- */

static void more_reads_than_the_peer_has_resources_for(void **state)
{
	static const struct { uint8_t mine, peers; enum ibv_wc_status status; } cases[] = {
		{ 1, 1, IBV_WC_SUCCESS }, { 4, 4, IBV_WC_SUCCESS }, { 1, 4, IBV_WC_SUCCESS },
		{ 4, 3, IBV_WC_REM_INV_REQ_ERR }, { 1, 0, IBV_WC_REM_INV_REQ_ERR },
		{ 0, 4, IBV_WC_LOC_QP_OP_ERR },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct pair_conn conn = pair_defaults();
		struct ibv_wc wc = { 0 };

		conn.max_rd_atomic = cases[i].mine;
		conn.max_dest_rd_atomic = cases[i].peers;
		pair_connect(&conn);
		for (uint64_t n = 0; n < 8; n++)
			assert_int_equal(pair_rdma(&a, n & 1 ? IBV_WR_ATOMIC_FETCH_AND_ADD :
						   IBV_WR_RDMA_READ, n, 0, 8, 0), 0);
		for (int n = 0; n < 8 && wc.status == IBV_WC_SUCCESS; n++)
			while (!ibv_poll_cq(a.cq, 1, &wc))
				assert_int_equal(sim_idle(NULL), 1);
		assert_int_equal(wc.status, cases[i].status);
		if (cases[i].status == IBV_WC_REM_INV_REQ_ERR)
			pair_async(&b, IBV_EVENT_QP_REQ_ERR);
		while (ibv_poll_cq(a.cq, 1, &wc))
			;
		pair_disconnect();
	}
}

static void fence_waits_for_reads(void **state)
{
	struct ibv_sge sge = pair_sge(&a, 0, 8);
	struct ibv_send_wr wr = {
		.wr_id = 2, .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE,
		.send_flags = IBV_SEND_FENCE,
		.wr.rdma = { .remote_addr = (uintptr_t)b.buf + 100, .rkey = b.mr->rkey },
	};
	uint64_t start;

	(void)state;
	connect_default();
	start = sim_now();
	/* The write sends what the read brings. */
	pair_fill(&b, 0, 8, 44);
	assert_int_equal(pair_rdma(&a, IBV_WR_RDMA_READ, 1, 0, 8, 0), 0);
	assert_int_equal(pair_post(&a, &wr), 0);
	pair_expect(&a, 1, IBV_WC_SUCCESS);
	pair_expect(&a, 2, IBV_WC_SUCCESS);
	assert_int_equal(sim_now() - start, 4 * PAIR_LATENCY);
	pair_check(&b, 100, 8, 44);
}

/* --- SQD. --- */

static void sqd_finishes_what_is_on_its_way_only(void **state)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_SQD, .en_sqd_async_notify = 1 };
	struct ibv_qp_init_attr init;

	(void)state;
	connect_default();
	assert_int_equal(pair_rdma(&a, IBV_WR_RDMA_WRITE, 1, 0, 8, 0), 0);
	assert_int_equal(sim_verbs.modify_qp(a.qp, &attr,
					     IBV_QP_STATE | IBV_QP_EN_SQD_ASYNC_NOTIFY), 0);
	assert_int_equal(pair_rdma(&a, IBV_WR_RDMA_WRITE, 2, 0, 8, 0), 0);
	pair_no_async(&a);
	assert_int_equal(sim_verbs.query_qp(a.qp, &attr, 0, &init), 0);
	assert_int_equal(attr.sq_draining, 1);
	pair_expect(&a, 1, IBV_WC_SUCCESS);
	pair_async(&a, IBV_EVENT_SQ_DRAINED);
	assert_int_equal(sim_verbs.query_qp(a.qp, &attr, 0, &init), 0);
	assert_int_equal(attr.sq_draining, 0);
	pair_none(&a, SIM_MS(1));
	assert_int_equal(pair_modify(a.qp, IBV_QPS_RTS), 0);
	pair_expect(&a, 2, IBV_WC_SUCCESS);
	pair_no_async(&a);
}

static void comm_est_is_told_once(void **state)
{
	struct pair_conn conn = pair_defaults();

	(void)state;
	a.qp = pair_qp(&a, &conn);
	b.qp = pair_qp(&b, &conn);
	assert_int_equal(pair_to_init(&a, a.qp, &conn), 0);
	assert_int_equal(pair_to_init(&b, b.qp, &conn), 0);
	assert_int_equal(pair_to_rtr(&a, a.qp, &b, b.qp->qp_num, &conn), 0);
	assert_int_equal(pair_to_rtr(&b, b.qp, &a, a.qp->qp_num, &conn), 0);
	assert_int_equal(pair_to_rts(a.qp, &conn), 0);
	for (uint64_t i = 0; i < 2; i++) {
		assert_int_equal(pair_rdma(&a, IBV_WR_RDMA_WRITE, i, 0, 8, 0), 0);
		pair_expect(&a, i, IBV_WC_SUCCESS);
	}
	pair_async(&b, IBV_EVENT_COMM_EST);
	pair_no_async(&b);
}

/* Neither numbers that do not fit nor other sequence numbers make a connection. */
static void mismatched_connections_time_out(void **state)
{
	struct pair_conn conn = pair_defaults();
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RTS, .timeout = 8, .retry_cnt = 1,
				    .sq_psn = 99 };

	(void)state;
	a.qp = pair_qp(&a, &conn);
	b.qp = pair_qp(&b, &conn);
	assert_int_equal(pair_to_init(&a, a.qp, &conn), 0);
	assert_int_equal(pair_to_init(&b, b.qp, &conn), 0);
	assert_int_equal(pair_to_rtr(&a, a.qp, &b, b.qp->qp_num, &conn), 0);
	assert_int_equal(pair_to_rtr(&b, b.qp, &a, a.qp->qp_num + 1, &conn), 0);
	conn.retry_cnt = 0;
	assert_int_equal(pair_to_rts(a.qp, &conn), 0);
	assert_int_equal(pair_rdma(&a, IBV_WR_RDMA_WRITE, 1, 0, 8, 0), 0);
	pair_expect(&a, 1, IBV_WC_RETRY_EXC_ERR);
	pair_disconnect();

	connect_default();
	assert_int_equal(pair_modify(a.qp, IBV_QPS_RESET), 0);
	assert_int_equal(pair_to_init(&a, a.qp, &conn), 0);
	assert_int_equal(pair_to_rtr(&a, a.qp, &b, b.qp->qp_num, &conn), 0);
	assert_int_equal(sim_verbs.modify_qp(a.qp, &attr, IBV_QP_STATE | IBV_QP_TIMEOUT |
					     IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
					     IBV_QP_MAX_QP_RD_ATOMIC), 0);
	assert_int_equal(pair_rdma(&a, IBV_WR_RDMA_WRITE, 1, 0, 8, 0), 0);
	pair_expect(&a, 1, IBV_WC_RETRY_EXC_ERR);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(posts_are_checked),
		cmocka_unit_test_setup_teardown(queues_have_the_size_asked_for, open_roce,
						close_pair),
		cmocka_unit_test_setup_teardown(lists_are_posted_up_to_the_bad_request, open_roce,
						close_pair),
		cmocka_unit_test_setup_teardown(states_in_which_one_may_post, open_roce,
						close_pair),
		cmocka_unit_test_setup_teardown(err_flushes_everything_in_order, open_roce,
						close_pair),
		cmocka_unit_test_setup_teardown(reset_forgets_everything, open_roce, close_pair),
		cmocka_unit_test_setup_teardown(failure_in_the_middle, open_roce, close_pair),
		cmocka_unit_test_setup_teardown(local_keys_are_checked, open_roce, close_pair),
		cmocka_unit_test_setup_teardown(message_longer_than_the_receive, open_roce,
						close_pair),
		cmocka_unit_test_setup_teardown(receive_with_a_wrong_key, open_roce, close_pair),
		cmocka_unit_test_setup_teardown(too_long_for_any_message, open_roce, close_pair),
		cmocka_unit_test_setup_teardown(more_reads_than_the_peer_has_resources_for, open_roce,
						close_pair),
		cmocka_unit_test_setup_teardown(fence_waits_for_reads, open_roce, close_pair),
		cmocka_unit_test_setup_teardown(sqd_finishes_what_is_on_its_way_only, open_roce,
						close_pair),
		cmocka_unit_test_setup_teardown(comm_est_is_told_once, open_roce, close_pair),
		cmocka_unit_test_setup_teardown(mismatched_connections_time_out, open_roce,
						close_pair),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
