/* SPDX-License-Identifier: BSD-2-Clause */
/* Data over connected QPs: every operation on every transport that has it. */
#include "config.h"

#include <arpa/inet.h>
#include <errno.h>

#include "nic_pair.h"

static const size_t sizes[] = { 0, 1, 7, 8, 4096, 8191, 8192, 8193, 16384, 20000 };

static void send_moves_bytes_of_every_size(void **state)
{
	(void)state;
	for (enum pair_transport t = 0; t < PAIR_TRANSPORTS; t++) {
		struct pair_conn conn = pair_defaults();

		pair_open(t);
		pair_connect(&conn);
		for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
			struct ibv_wc wc;

			pair_fill(&a, 100, sizes[i], (uint8_t)i);
			assert_int_equal(pair_recv(&b, 200 + i, 300, sizes[i]), 0);
			assert_int_equal(pair_send(&a, 100 + i, 100, sizes[i]), 0);
			wc = pair_expect(&b, 200 + i, IBV_WC_SUCCESS);
			assert_int_equal(wc.opcode, IBV_WC_RECV);
			assert_int_equal(wc.byte_len, sizes[i]);
			assert_int_equal(wc.wc_flags, t == PAIR_ROCE ? IBV_WC_GRH : 0);
			assert_int_equal(wc.qp_num, b.qp->qp_num);
			pair_check(&b, 300, sizes[i], (uint8_t)i);
			assert_int_equal(b.buf[299], 0);
			wc = pair_expect(&a, 100 + i, IBV_WC_SUCCESS);
			assert_int_equal(wc.opcode, IBV_WC_SEND);
			assert_int_equal(wc.qp_num, a.qp->qp_num);
		}
		pair_close();
	}
}

static void write_and_read_move_bytes_of_every_size(void **state)
{
	(void)state;
	for (enum pair_transport t = 0; t < PAIR_TRANSPORTS; t++) {
		struct pair_conn conn = pair_defaults();
		struct ibv_wc wc;

		pair_open(t);
		pair_connect(&conn);
		for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
			pair_fill(&a, 0, sizes[i], (uint8_t)(i + 1));
			assert_int_equal(pair_rdma(&a, IBV_WR_RDMA_WRITE, 1, 0, sizes[i], 1000), 0);
			wc = pair_expect(&a, 1, IBV_WC_SUCCESS);
			assert_int_equal(wc.opcode, IBV_WC_RDMA_WRITE);
			pair_check(&b, 1000, sizes[i], (uint8_t)(i + 1));
			assert_int_equal(b.buf[1000 + sizes[i]], 0);

			assert_int_equal(pair_rdma(&a, IBV_WR_RDMA_READ, 2, 30000, sizes[i], 1000), 0);
			wc = pair_expect(&a, 2, IBV_WC_SUCCESS);
			assert_int_equal(wc.opcode, IBV_WC_RDMA_READ);
			assert_int_equal(wc.byte_len, sizes[i]);
			pair_check(&a, 30000, sizes[i], (uint8_t)(i + 1));
			memset(b.buf, 0, PAIR_BUF);
		}
		pair_none(&b, SIM_MS(1));
		pair_close();
	}
}

static void immediate_data_arrives(void **state)
{
	struct pair_conn conn = pair_defaults();
	struct ibv_send_wr wr = { .opcode = IBV_WR_SEND_WITH_IMM, .imm_data = htonl(0xcafe) };
	struct ibv_sge sge;
	struct ibv_wc wc;

	(void)state;
	pair_connect(&conn);
	assert_int_equal(pair_recv(&b, 1, 0, 10), 0);
	assert_int_equal(pair_recv(&b, 2, 500, 10), 0);
	assert_int_equal(pair_post(&a, &wr), 0);
	wc = pair_expect(&b, 1, IBV_WC_SUCCESS);
	assert_int_equal(wc.opcode, IBV_WC_RECV);
	assert_int_equal(wc.byte_len, 0);
	assert_int_equal(wc.wc_flags, IBV_WC_WITH_IMM | IBV_WC_GRH);
	assert_int_equal(ntohl(wc.imm_data), 0xcafe);

	pair_fill(&a, 0, 20, 3);
	sge = pair_sge(&a, 0, 20);
	wr.opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
	wr.sg_list = &sge;
	wr.num_sge = 1;
	wr.wr.rdma.rkey = b.mr->rkey;
	wr.wr.rdma.remote_addr = (uintptr_t)b.buf + 64;
	assert_int_equal(pair_post(&a, &wr), 0);
	/* Takes a receive but none of its memory. */
	wc = pair_expect(&b, 2, IBV_WC_SUCCESS);
	assert_int_equal(wc.opcode, IBV_WC_RECV_RDMA_WITH_IMM);
	assert_int_equal(wc.byte_len, 20);
	assert_int_equal(wc.wc_flags, IBV_WC_WITH_IMM | IBV_WC_GRH);
	assert_int_equal(ntohl(wc.imm_data), 0xcafe);
	pair_check(&b, 64, 20, 3);
	assert_int_equal(b.buf[500], 0);
}

static void scatter_and_gather_follow_the_lists(void **state)
{
	struct pair_conn conn = pair_defaults();
	struct ibv_sge from[4], to[4];
	struct ibv_send_wr wr = { .wr_id = 5, .sg_list = from, .num_sge = 4, .opcode = IBV_WR_SEND };
	struct ibv_recv_wr recv = { .wr_id = 6, .sg_list = to, .num_sge = 4 }, *bad;
	static const struct { uint32_t big; } cases[] = { { 100 }, { 20000 } };

	(void)state;
	pair_connect(&conn);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		uint32_t big = cases[i].big;
		uint8_t expected[PAIR_BUF / 2];
		size_t len = 0;

		pair_fill(&a, 0, PAIR_BUF, 9);
		memset(b.buf, 0, PAIR_BUF);
		/* A part of no bytes is none. */
		from[0] = pair_sge(&a, 3, 5);
		from[1] = pair_sge(&a, 0, 0);
		from[2] = pair_sge(&a, 50, big);
		from[3] = pair_sge(&a, 1, 1);
		for (size_t n = 0; n < 4; n++) {
			memcpy(expected + len, (void *)(uintptr_t)from[n].addr, from[n].length);
			len += from[n].length;
		}
		to[0] = pair_sge(&b, 10, 1);
		to[1] = pair_sge(&b, 20, 7);
		to[2] = pair_sge(&b, 40, big - 10);
		to[3] = pair_sge(&b, 40000, 100);
		assert_int_equal(ibv_post_recv(b.qp, &recv, &bad), 0);
		assert_int_equal(pair_post(&a, &wr), 0);
		assert_int_equal(pair_expect(&b, 6, IBV_WC_SUCCESS).byte_len, big + 6);
		pair_expect(&a, 5, IBV_WC_SUCCESS);
		assert_memory_equal(b.buf + 10, expected, 1);
		assert_memory_equal(b.buf + 20, expected + 1, 7);
		assert_memory_equal(b.buf + 40, expected + 8, big - 10);
		assert_memory_equal(b.buf + 40000, expected + big - 2, 8);
		assert_int_equal(b.buf[40008], 0);
	}
}

static void gather_of_write_and_scatter_of_read(void **state)
{
	struct pair_conn conn = pair_defaults();
	struct ibv_sge list[3] = { pair_sge(&a, 0, 10), pair_sge(&a, 100, 9000), pair_sge(&a, 20, 5) };
	struct ibv_send_wr wr = {
		.sg_list = list,
		.num_sge = 3,
		.opcode = IBV_WR_RDMA_WRITE,
		.wr.rdma = { .remote_addr = (uintptr_t)b.buf + 8, .rkey = b.mr->rkey },
	};

	(void)state;
	pair_connect(&conn);
	pair_fill(&a, 0, PAIR_BUF, 77);
	assert_int_equal(pair_post(&a, &wr), 0);
	pair_expect(&a, 0, IBV_WC_SUCCESS);
	assert_memory_equal(b.buf + 8, a.buf, 10);
	assert_memory_equal(b.buf + 18, a.buf + 100, 9000);
	assert_memory_equal(b.buf + 9018, a.buf + 20, 5);

	pair_fill(&b, 8, 9015, 5);
	wr.opcode = IBV_WR_RDMA_READ;
	assert_int_equal(pair_post(&a, &wr), 0);
	pair_expect(&a, 0, IBV_WC_SUCCESS);
	assert_memory_equal(a.buf, b.buf + 8, 10);
	assert_memory_equal(a.buf + 100, b.buf + 18, 9000);
	assert_memory_equal(a.buf + 20, b.buf + 9018, 5);
}

static void inline_data_is_taken_when_posted(void **state)
{
	struct pair_conn conn = pair_defaults();
	char text[] = "inline data", more[] = ", in two parts";
	/* No key needed. */
	struct ibv_sge sge[2] = {
		{ .addr = (uintptr_t)text, .length = 11 }, { .addr = (uintptr_t)more, .length = 15 },
	};
	struct ibv_send_wr wr = {
		.sg_list = sge,
		.num_sge = 2,
		.opcode = IBV_WR_SEND,
		.send_flags = IBV_SEND_INLINE,
	};

	(void)state;
	pair_connect(&conn);
	assert_int_equal(pair_recv(&b, 1, 0, 64), 0);
	assert_int_equal(pair_post(&a, &wr), 0);
	memset(text, 'x', sizeof(text));
	memset(more, 'x', sizeof(more));
	assert_int_equal(pair_expect(&b, 1, IBV_WC_SUCCESS).byte_len, 26);
	assert_string_equal((char *)b.buf, "inline data, in two parts");
	pair_expect(&a, 0, IBV_WC_SUCCESS);
}

static void atomics_return_what_was_there(void **state)
{
	struct pair_conn conn = pair_defaults();
	uint64_t *target = (uint64_t *)(void *)(b.buf + 8);
	uint64_t *result = (uint64_t *)(void *)a.buf;

	(void)state;
	pair_connect(&conn);
	*target = 41;
	assert_int_equal(pair_rdma(&a, IBV_WR_ATOMIC_FETCH_AND_ADD, 1, 0, 8, 8), 0);
	assert_int_equal(pair_expect(&a, 1, IBV_WC_SUCCESS).opcode, IBV_WC_FETCH_ADD);
	assert_int_equal(*result, 41);
	assert_int_equal(*target, 42);
	/* Compares with 1, would swap in 2. */
	assert_int_equal(pair_rdma(&a, IBV_WR_ATOMIC_CMP_AND_SWP, 2, 0, 8, 8), 0);
	assert_int_equal(pair_expect(&a, 2, IBV_WC_SUCCESS).opcode, IBV_WC_COMP_SWAP);
	assert_int_equal(*result, 42);
	assert_int_equal(*target, 42);
	*target = 1;
	assert_int_equal(pair_rdma(&a, IBV_WR_ATOMIC_CMP_AND_SWP, 3, 0, 8, 8), 0);
	pair_expect(&a, 3, IBV_WC_SUCCESS);
	assert_int_equal(*result, 1);
	assert_int_equal(*target, 2);
}

static void only_signaled_requests_complete(void **state)
{
	struct pair_conn conn = pair_defaults();
	struct ibv_sge sge = pair_sge(&a, 0, 8);
	struct ibv_send_wr wr[3] = {
		{ .wr_id = 1, .next = &wr[1], .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND },
		{ .wr_id = 2, .next = &wr[2], .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND,
		  .send_flags = IBV_SEND_SIGNALED },
		{ .wr_id = 3, .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND },
	};

	(void)state;
	conn.sq_sig_all = false;
	pair_connect(&conn);
	for (uint64_t i = 0; i < 3; i++)
		assert_int_equal(pair_recv(&b, 10 + i, 0, 8), 0);
	assert_int_equal(pair_post(&a, wr), 0);
	pair_expect(&a, 2, IBV_WC_SUCCESS);
	for (uint64_t i = 0; i < 3; i++)
		pair_expect(&b, 10 + i, IBV_WC_SUCCESS);
	pair_none(&a, SIM_MS(1));
}

/* Reads and sends of all sizes in flight at once complete in the order of posting. */
static void many_requests_complete_in_order(void **state)
{
	struct pair_conn conn = pair_defaults();

	(void)state;
	for (uint8_t depth = 1; depth <= 16; depth += 15) {
		conn.max_rd_atomic = depth;
		pair_connect(&conn);
		pair_fill(&b, 0, 20000, 1);
		for (uint64_t i = 0; i < 60; i++) {
			size_t len = sizes[i % ARRAY_SIZE(sizes)];

			if (i % 3 == 0)
				assert_int_equal(pair_rdma(&a, IBV_WR_RDMA_READ, i, 0, len, 0), 0);
			else if (i % 3 == 1)
				assert_int_equal(pair_rdma(&a, IBV_WR_RDMA_WRITE, i, 0, len, 40000), 0);
			else
				assert_int_equal(pair_recv(&b, i, 25000, 20000) ||
						 pair_send(&a, i, 0, len), 0);
		}
		for (uint64_t i = 0; i < 60; i++)
			pair_expect(&a, i, IBV_WC_SUCCESS);
		for (uint64_t i = 2; i < 60; i += 3)
			pair_expect(&b, i, IBV_WC_SUCCESS);
		pair_none(&a, SIM_MS(1));
		pair_disconnect();
	}
}

static void both_directions_at_once(void **state)
{
	struct pair_conn conn = pair_defaults();

	(void)state;
	pair_connect(&conn);
	for (uint64_t i = 0; i < 20; i++) {
		assert_int_equal(pair_recv(&a, 100 + i, 0, 100), 0);
		assert_int_equal(pair_recv(&b, 100 + i, 0, 100), 0);
	}
	for (uint64_t i = 0; i < 20; i++) {
		assert_int_equal(pair_send(&a, i, 200, 100), 0);
		assert_int_equal(pair_send(&b, i, 200, 100), 0);
	}
	for (struct pair_side *side = &a; side; side = side == &a ? &b : NULL) {
		bool sent[20] = { false }, received[20] = { false };
		struct ibv_wc wc;

		for (int n = 0; n < 40; n++) {
			while (!ibv_poll_cq(side->cq, 1, &wc))
				assert_int_equal(sim_idle(NULL), 1);
			assert_int_equal(wc.status, IBV_WC_SUCCESS);
			if (wc.wr_id < 20)
				sent[wc.wr_id] = true;
			else
				received[wc.wr_id - 100] = true;
		}
		for (int i = 0; i < 20; i++)
			assert_true(sent[i] && received[i]);
	}
}

/* A QP may be connected to itself: the same memory on both sides. */
static void loopback_to_oneself(void **state)
{
	struct pair_conn conn = pair_defaults();
	struct ibv_send_wr wr = { .wr_id = 1, .opcode = IBV_WR_RDMA_WRITE, .num_sge = 1 };
	struct ibv_sge sge = pair_sge(&a, 0, 100);

	(void)state;
	a.qp = pair_qp(&a, &conn);
	assert_int_equal(pair_to_init(&a, a.qp, &conn), 0);
	assert_int_equal(pair_to_rtr(&a, a.qp, &a, a.qp->qp_num, &conn), 0);
	assert_int_equal(pair_to_rts(a.qp, &conn), 0);
	pair_fill(&a, 0, 100, 1);
	wr.sg_list = &sge;
	wr.wr.rdma.remote_addr = (uintptr_t)a.buf + 5000;
	wr.wr.rdma.rkey = a.mr->rkey;
	assert_int_equal(pair_post(&a, &wr), 0);
	pair_expect(&a, 1, IBV_WC_SUCCESS);
	pair_check(&a, 5000, 100, 1);
}

static void latency_is_the_links(void **state)
{
	struct pair_conn conn = pair_defaults();
	uint64_t start;

	(void)state;
	pair_connect(&conn);
	start = sim_now();
	assert_int_equal(pair_rdma(&a, IBV_WR_RDMA_WRITE, 1, 0, 8, 0), 0);
	assert_int_equal(sim_now(), start);
	pair_expect(&a, 1, IBV_WC_SUCCESS);
	assert_int_equal(sim_now(), start + 2 * PAIR_LATENCY);
}

/* The receiver does not need the sender's request any more once it has it. */
static void sender_gone_before_delivery(void **state)
{
	struct pair_conn conn = pair_defaults();

	(void)state;
	pair_connect(&conn);
	assert_int_equal(pair_recv(&b, 1, 0, 20000), 0);
	assert_int_equal(pair_send(&a, 1, 0, 20000), 0);
	assert_int_equal(sim_verbs.destroy_qp(a.qp), 0);
	a.qp = NULL;
	pair_none(&b, SIM_MS(1));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(send_moves_bytes_of_every_size),
		cmocka_unit_test(write_and_read_move_bytes_of_every_size),
		cmocka_unit_test_setup_teardown(immediate_data_arrives, open_roce, close_pair),
		cmocka_unit_test_setup_teardown(scatter_and_gather_follow_the_lists, open_roce,
						close_pair),
		cmocka_unit_test_setup_teardown(gather_of_write_and_scatter_of_read, open_roce,
						close_pair),
		cmocka_unit_test_setup_teardown(inline_data_is_taken_when_posted, open_roce,
						close_pair),
		cmocka_unit_test_setup_teardown(atomics_return_what_was_there, open_roce,
						close_pair),
		cmocka_unit_test_setup_teardown(only_signaled_requests_complete, open_roce,
						close_pair),
		cmocka_unit_test_setup_teardown(many_requests_complete_in_order, open_roce,
						close_pair),
		cmocka_unit_test_setup_teardown(both_directions_at_once, open_roce, close_pair),
		cmocka_unit_test_setup_teardown(loopback_to_oneself, open_roce, close_pair),
		cmocka_unit_test_setup_teardown(latency_is_the_links, open_roce, close_pair),
		cmocka_unit_test_setup_teardown(sender_gone_before_delivery, open_roce, close_pair),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
