/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Connected QPs on iWARP: the stream carries them, nothing is retried but by
 * TCP, and an error ends the stream on both sides.
 */
#include "config.h"

#include <errno.h>

#include "providers/soft/nic/objects.h"
#include "nic_pair.h"

static int open_iwarp(void **state)
{
	struct pair_conn conn = pair_defaults();

	(void)state;
	pair_open(PAIR_IWARP);
	pair_connect(&conn);
	return 0;
}

static struct sim_qp *find(struct pair_side *side)
{
	struct sim_qp *qp = sim_qp_find(side->device, side->qp->qp_num);

	assert_non_null(qp);
	return qp;
}

static void check_ended(enum ibv_event_type at_b)
{
	assert_int_equal(pair_state(a.qp), IBV_QPS_ERR);
	assert_int_equal(pair_state(b.qp), IBV_QPS_ERR);
	pair_async(&b, at_b);
	pair_no_async(&b);
	/* Both owners were told, once. */
	assert_int_equal(pair_closed_by_nic, 2);
	assert_int_equal(pair_closed_by_program, 0);
}

static void send_without_receive_ends_the_stream(void **state)
{
	uint64_t start = sim_now();

	(void)state;
	assert_int_equal(pair_send(&a, 1, 0, 8), 0);
	assert_int_equal(pair_send(&a, 2, 0, 8), 0);
	/* TCP had taken them. */
	pair_expect(&a, 1, IBV_WC_SUCCESS);
	pair_expect(&a, 2, IBV_WC_SUCCESS);
	assert_int_equal(sim_now() - start, 2 * PAIR_LATENCY);
	check_ended(IBV_EVENT_QP_FATAL);
}

static void wrong_key_ends_the_stream(void **state)
{
	static const enum ibv_wr_opcode ops[] = { IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(ops); i++) {
		struct ibv_sge sge = pair_sge(&a, 0, 8);
		struct ibv_send_wr wr = {
			.wr_id = 1, .sg_list = &sge, .num_sge = 1, .opcode = ops[i],
			.wr.rdma = { .remote_addr = (uintptr_t)b.buf, .rkey = b.mr->rkey ^ 1 },
		};
		struct pair_conn conn = pair_defaults();

		assert_int_equal(pair_recv(&b, 7, 0, 8), 0);
		assert_int_equal(pair_post(&a, &wr), 0);
		/* TERMINATE does not name the request; what is written TCP had taken. */
		pair_expect(&a, 1, ops[i] == IBV_WR_RDMA_READ ? IBV_WC_WR_FLUSH_ERR : IBV_WC_SUCCESS);
		pair_expect(&b, 7, IBV_WC_WR_FLUSH_ERR);
		check_ended(IBV_EVENT_QP_ACCESS_ERR);
		pair_disconnect();
		assert_int_equal(pair_closed_by_program, 0);
		pair_closed_by_nic = 0;
		pair_connect(&conn);
	}
}

static void message_longer_than_the_receive(void **state)
{
	(void)state;
	assert_int_equal(pair_recv(&b, 7, 0, 8), 0);
	assert_int_equal(pair_send(&a, 1, 0, 9), 0);
	pair_expect(&a, 1, IBV_WC_SUCCESS);
	pair_expect(&b, 7, IBV_WC_LOC_LEN_ERR);
	assert_int_equal(pair_closed_by_nic, 2);
}

static void local_error_is_told(void **state)
{
	struct ibv_sge sge = { .addr = (uintptr_t)a.buf, .length = 8, .lkey = 1 };
	struct ibv_send_wr wr = { .wr_id = 1, .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND };

	(void)state;
	assert_int_equal(pair_post(&a, &wr), 0);
	pair_expect(&a, 1, IBV_WC_LOC_PROT_ERR);
	assert_int_equal(pair_closed_by_nic, 1);
}

static void sqd_is_a_graceful_end(void **state)
{
	(void)state;
	assert_int_equal(pair_recv(&a, 5, 0, 8), 0);
	assert_int_equal(pair_modify(a.qp, IBV_QPS_SQD), 0);
	assert_int_equal(pair_closed_by_program, 1);
	pair_expect(&a, 5, IBV_WC_WR_FLUSH_ERR);
	assert_int_equal(pair_state(a.qp), IBV_QPS_SQD);
	assert_int_equal(pair_send(&a, 6, 0, 8), ENOTCONN);
	/* Told once. */
	assert_int_equal(pair_modify(a.qp, IBV_QPS_SQD), 0);
	assert_int_equal(pair_modify(a.qp, IBV_QPS_ERR), 0);
	assert_int_equal(pair_closed_by_program, 1);
}

/* Without a depth of one's own there is nothing to wait for. */
static void reads_need_a_depth(void **state)
{
	struct pair_conn conn = pair_defaults();

	(void)state;
	pair_disconnect();
	conn.max_rd_atomic = 0;
	pair_connect(&conn);
	assert_int_equal(pair_rdma(&a, IBV_WR_RDMA_READ, 1, 0, 8, 0), EINVAL);
	assert_int_equal(pair_rdma(&a, IBV_WR_RDMA_WRITE, 2, 0, 8, 0), 0);
	pair_expect(&a, 2, IBV_WC_SUCCESS);
}

/* siw completes a request when TCP has its data, so a graceful end does not cut it off. */
static void sqd_completes_what_tcp_has(void **state)
{
	(void)state;
	pair_fill(&a, 0, 8, 1);
	assert_int_equal(pair_recv(&b, 7, 100, 8), 0);
	assert_int_equal(pair_rdma(&a, IBV_WR_RDMA_WRITE, 1, 0, 8, 200), 0);
	assert_int_equal(pair_send(&a, 2, 0, 8), 0);
	assert_int_equal(pair_modify(a.qp, IBV_QPS_SQD), 0);
	pair_expect(&a, 1, IBV_WC_SUCCESS);
	pair_expect(&a, 2, IBV_WC_SUCCESS);
	assert_int_equal(pair_state(a.qp), IBV_QPS_SQD);
	assert_int_equal(pair_closed_by_program, 1);
	pair_expect(&b, 7, IBV_WC_SUCCESS);
	pair_check(&b, 100, 8, 1);
	pair_check(&b, 200, 8, 1);
	/* Nothing is repeated although the answers are not for us any more. */
	pair_none(&a, SIM_MS(10000));
	pair_none(&b, 0);
}

static void sqd_with_requests_open_flushes_them(void **state)
{
	(void)state;
	assert_int_equal(pair_rdma(&a, IBV_WR_RDMA_READ, 1, 0, 8, 0), 0);
	assert_int_equal(pair_modify(a.qp, IBV_QPS_SQD), 0);
	pair_expect(&a, 1, IBV_WC_WR_FLUSH_ERR);
	assert_int_equal(pair_state(a.qp), IBV_QPS_ERR);
	assert_int_equal(pair_closed_by_program, 1);
}

static void end_stream(struct pair_side *side)
{
	sim_lock();
	sim_qp_stream_error(find(side));
	sim_unlock();
}

/* The peer closed it: what TCP had taken by then is done, the rest is not. */
static void the_stream_is_gone(void **state)
{
	(void)state;
	assert_int_equal(pair_recv(&a, 5, 0, 8), 0);
	assert_int_equal(pair_rdma(&a, IBV_WR_RDMA_WRITE, 1, 0, 8, 0), 0);
	assert_int_equal(pair_send(&a, 2, 0, 0), 0);
	assert_int_equal(pair_rdma(&a, IBV_WR_RDMA_READ, 3, 0, 8, 0), 0);
	assert_int_equal(pair_send(&a, 4, 0, 8), 0);
	end_stream(&a);
	pair_expect(&a, 1, IBV_WC_SUCCESS);
	pair_expect(&a, 2, IBV_WC_SUCCESS);
	pair_expect(&a, 3, IBV_WC_WR_FLUSH_ERR);
	pair_expect(&a, 4, IBV_WC_WR_FLUSH_ERR);
	pair_expect(&a, 5, IBV_WC_WR_FLUSH_ERR);
	/* The owner said it. */
	assert_int_equal(pair_closed_by_nic + pair_closed_by_program, 0);
}

/* Too large for TCP to have taken it: the peer was to fetch it. */
static void the_stream_is_gone_with_a_large_message(void **state)
{
	(void)state;
	assert_int_equal(pair_send(&a, 1, 0, PAIR_BUF), 0);
	assert_int_equal(pair_send(&a, 2, 0, 8), 0);
	end_stream(&a);
	pair_expect(&a, 1, IBV_WC_WR_FLUSH_ERR);
	pair_expect(&a, 2, IBV_WC_WR_FLUSH_ERR);
}

static void destroying_ends_the_stream(void **state)
{
	(void)state;
	assert_int_equal(sim_verbs.destroy_qp(a.qp), 0);
	a.qp = NULL;
	assert_int_equal(pair_closed_by_program, 1);
	sim_lock();
	sim_qp_stream_set_owner(find(&b), NULL);
	sim_unlock();
	assert_int_equal(sim_verbs.destroy_qp(b.qp), 0);
	b.qp = NULL;
	assert_int_equal(pair_closed_by_program, 1);
}

/* The program gives it up while the stream is being set up. */
static void an_error_before_the_stream_is_told(void **state)
{
	struct pair_conn conn = pair_defaults();

	(void)state;
	pair_disconnect();
	pair_closed_by_program = pair_closed_by_nic = 0;
	a.qp = pair_qp(&a, &conn);
	sim_lock();
	sim_qp_stream_set_owner(find(&a), (struct sim_id *)&a);
	assert_ptr_equal(sim_qp_stream_owner(find(&a)), &a);
	sim_unlock();
	assert_int_equal(pair_modify(a.qp, IBV_QPS_ERR), 0);
	assert_int_equal(pair_closed_by_program, 1);
	sim_lock();
	assert_null(sim_qp_stream_owner(find(&a)));
	sim_unlock();
}

static void connecting_is_checked(void **state)
{
	struct sim_port *port = &b.device->ports[0];
	struct pair_conn conn = pair_defaults();

	(void)state;
	sim_lock();
	assert_int_equal(sim_qp_stream_connect(find(&a), port, 1, 1, 1), -EINVAL);
	sim_unlock();
	pair_disconnect();
	a.qp = pair_qp(&a, &conn);
	assert_int_equal(pair_send(&a, 1, 0, 8), ENOTCONN);
	sim_lock();
	assert_int_equal(sim_qp_stream_connect(find(&a), port, 1, 129, 1), -EINVAL);
	assert_int_equal(sim_qp_stream_connect(find(&a), port, 1, 1, 129), -EINVAL);
	assert_int_equal(sim_qp_state(find(&a)), IBV_QPS_INIT);
	assert_int_equal(sim_qp_stream_connect(find(&a), port, 1, 128, 128), 0);
	assert_int_equal(sim_qp_state(find(&a)), IBV_QPS_RTS);
	sim_unlock();
}

static unsigned int to_lose;

static bool lose_some(const struct sim_packet *packet)
{
	(void)packet;
	return !to_lose || !to_lose--;
}

/* TCP sends again after 200, 400, 800 ms. */
static void tcp_retransmits(void **state)
{
	uint64_t start = sim_now();

	(void)state;
	to_lose = 3;
	pair_filter = lose_some;
	pair_fill(&a, 0, 8, 1);
	assert_int_equal(pair_recv(&b, 7, 100, 8), 0);
	assert_int_equal(pair_send(&a, 1, 0, 8), 0);
	pair_expect(&b, 7, IBV_WC_SUCCESS);
	pair_expect(&a, 1, IBV_WC_SUCCESS);
	pair_check(&b, 100, 8, 1);
	assert_int_equal(sim_now() - start, SIM_MS(1400) + 2 * PAIR_LATENCY);
}

static void tcp_gives_up(void **state)
{
	uint64_t start = sim_now(), total = 0, rto = SIM_MS(200);

	(void)state;
	to_lose = UINT32_MAX;
	pair_filter = lose_some;
	assert_int_equal(pair_send(&a, 1, 0, 8), 0);
	pair_expect(&a, 1, IBV_WC_SUCCESS);
	for (int i = 0; i < 16; i++, rto *= 2)
		total += rto < SIM_MS(120000) ? rto : SIM_MS(120000);
	assert_int_equal(sim_now() - start, total);
	assert_int_equal(pair_closed_by_nic, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(send_without_receive_ends_the_stream, open_iwarp,
						close_pair),
		cmocka_unit_test_setup_teardown(wrong_key_ends_the_stream, open_iwarp, close_pair),
		cmocka_unit_test_setup_teardown(message_longer_than_the_receive, open_iwarp,
						close_pair),
		cmocka_unit_test_setup_teardown(local_error_is_told, open_iwarp, close_pair),
		cmocka_unit_test_setup_teardown(sqd_is_a_graceful_end, open_iwarp, close_pair),
		cmocka_unit_test_setup_teardown(reads_need_a_depth, open_iwarp, close_pair),
		cmocka_unit_test_setup_teardown(sqd_completes_what_tcp_has, open_iwarp, close_pair),
		cmocka_unit_test_setup_teardown(sqd_with_requests_open_flushes_them, open_iwarp,
						close_pair),
		cmocka_unit_test_setup_teardown(the_stream_is_gone, open_iwarp, close_pair),
		cmocka_unit_test_setup_teardown(the_stream_is_gone_with_a_large_message, open_iwarp,
						close_pair),
		cmocka_unit_test_setup_teardown(destroying_ends_the_stream, open_iwarp, close_pair),
		cmocka_unit_test_setup_teardown(an_error_before_the_stream_is_told, open_iwarp,
						close_pair),
		cmocka_unit_test_setup_teardown(connecting_is_checked, open_iwarp, close_pair),
		cmocka_unit_test_setup_teardown(tcp_retransmits, open_iwarp, close_pair),
		cmocka_unit_test_setup_teardown(tcp_gives_up, open_iwarp, close_pair),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
