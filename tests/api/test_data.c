/* SPDX-License-Identifier: BSD-2-Clause */
/* test_data.c - data over a connection: what arrives where, and what completes how. */
#include <errno.h>
#include <poll.h>
#include <string.h>

#include "transfer.h"

static const size_t sizes[] = { 0, 1, 7, 64, 1023, 1024, 1025, 4096, 8191, 8192, 8193, 16385, 65536 };

static void send_and_receive(void **state)
{
	(void)state;
	for (enum transport t = 0; t < NUM_TRANSPORTS; t++) {
		struct transfer x;

		transfer_open(&x, t, NULL);
		for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
			uint8_t seed = (uint8_t)(i + 1);
			struct ibv_wc wc;

			transfer_fill(&x.client, 0, sizes[i], seed);
			transfer_recv(&x.server, 100 + i, 0, TRANSFER_SIZE);
			transfer_send(&x.client, 200 + i, 0, sizes[i]);
			wc = transfer_received(&x.server, 100 + i, IBV_WC_SUCCESS);
			assert_int_equal(wc.opcode, IBV_WC_RECV);
			assert_int_equal(wc.byte_len, sizes[i]);
			assert_int_equal(wc.wc_flags & IBV_WC_WITH_IMM, 0);
			transfer_check(&x.server, 0, sizes[i], seed);
			wc = transfer_sent(&x.client, 200 + i, IBV_WC_SUCCESS);
			assert_int_equal(wc.opcode, IBV_WC_SEND);
		}
		transfer_none(&x.client);
		transfer_none(&x.server);
		transfer_close(&x);
	}
}

static void both_ways(void **state)
{
	(void)state;
	for (enum transport t = 0; t < NUM_TRANSPORTS; t++) {
		struct transfer x;

		transfer_open(&x, t, NULL);
		transfer_fill(&x.client, 0, 100, 1);
		transfer_fill(&x.server, 0, 200, 2);
		transfer_recv(&x.client, 1, 1000, 1000);
		transfer_recv(&x.server, 2, 1000, 1000);
		transfer_send(&x.client, 3, 0, 100);
		transfer_send(&x.server, 4, 0, 200);
		assert_int_equal(transfer_received(&x.client, 1, IBV_WC_SUCCESS).byte_len, 200);
		assert_int_equal(transfer_received(&x.server, 2, IBV_WC_SUCCESS).byte_len, 100);
		transfer_check(&x.client, 1000, 200, 2);
		transfer_check(&x.server, 1000, 100, 1);
		transfer_sent(&x.client, 3, IBV_WC_SUCCESS);
		transfer_sent(&x.server, 4, IBV_WC_SUCCESS);
		transfer_close(&x);
	}
}

static void immediate_data(void **state)
{
	(void)state;
	for (enum transport t = ROCE; t <= IB; t++) {
		struct transfer x;
		struct ibv_wc wc;

		transfer_open(&x, t, NULL);
		transfer_fill(&x.client, 0, 10, 1);
		transfer_recv(&x.server, 1, 0, 100);
		transfer_recv(&x.server, 2, 200, 100);
		assert_int_equal(transfer_post(&x.client, 3, IBV_WR_SEND_WITH_IMM, 0, 10, NULL, 0), 0);
		wc = transfer_received(&x.server, 1, IBV_WC_SUCCESS);
		assert_int_equal(wc.opcode, IBV_WC_RECV);
		assert_int_equal(wc.byte_len, 10);
		assert_true(wc.wc_flags & IBV_WC_WITH_IMM);
		assert_int_equal(be32toh(wc.imm_data), 0x12345678);

		/* A write with it takes a receive, but none of the receive's memory. */
		assert_int_equal(transfer_post(&x.client, 4, IBV_WR_RDMA_WRITE_WITH_IMM, 0, 10,
					       &x.server, 5000), 0);
		wc = transfer_received(&x.server, 2, IBV_WC_SUCCESS);
		assert_int_equal(wc.opcode, IBV_WC_RECV_RDMA_WITH_IMM);
		assert_int_equal(wc.byte_len, 10);
		assert_true(wc.wc_flags & IBV_WC_WITH_IMM);
		assert_int_equal(be32toh(wc.imm_data), 0x12345678);
		transfer_check(&x.server, 5000, 10, 1);
		transfer_check_clean(&x.server, 200, 100);
		assert_int_equal(transfer_sent(&x.client, 3, IBV_WC_SUCCESS).opcode, IBV_WC_SEND);
		assert_int_equal(transfer_sent(&x.client, 4, IBV_WC_SUCCESS).opcode,
				 IBV_WC_RDMA_WRITE);
		transfer_close(&x);
	}
}

static void iwarp_has_no_immediate_data(void **state)
{
	struct transfer x;

	(void)state;
	transfer_open(&x, IWARP, NULL);
	assert_int_equal(transfer_post(&x.client, 1, IBV_WR_SEND_WITH_IMM, 0, 1, NULL, 0), EINVAL);
	assert_int_equal(transfer_post(&x.client, 1, IBV_WR_RDMA_WRITE_WITH_IMM, 0, 1, &x.server, 0),
			 EINVAL);
	transfer_none(&x.client);
	transfer_close(&x);
}

static void writes(void **state)
{
	(void)state;
	for (enum transport t = 0; t < NUM_TRANSPORTS; t++) {
		for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
			size_t at = TRANSFER_SIZE - sizes[i];
			struct transfer x;
			struct ibv_wc wc;

			transfer_open(&x, t, NULL);
			transfer_fill(&x.client, 0, sizes[i], 9);
			assert_int_equal(rdma_post_write(x.client.id, NULL, x.client.data, sizes[i],
							 x.client.mr, IBV_SEND_SIGNALED,
							 (uintptr_t)(x.server.data + at),
							 x.server.mr->rkey), 0);
			wc = transfer_sent(&x.client, 0, IBV_WC_SUCCESS);
			assert_int_equal(wc.opcode, IBV_WC_RDMA_WRITE);
			assert_int_equal(polycm_sim_advance(1000000), 0);
			transfer_check(&x.server, at, sizes[i], 9);
			transfer_check_clean(&x.server, 0, at);
			/* The server's program is told nothing. */
			transfer_none(&x.server);
			transfer_close(&x);
		}
	}
}

static void reads(void **state)
{
	(void)state;
	for (enum transport t = 0; t < NUM_TRANSPORTS; t++) {
		for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
			size_t at = TRANSFER_SIZE - sizes[i];
			struct transfer x;
			struct ibv_wc wc;

			transfer_open(&x, t, NULL);
			transfer_fill(&x.server, at, sizes[i], 5);
			assert_int_equal(rdma_post_read(x.client.id, NULL, x.client.data, sizes[i],
							x.client.mr, IBV_SEND_SIGNALED,
							(uintptr_t)(x.server.data + at),
							x.server.mr->rkey), 0);
			wc = transfer_sent(&x.client, 0, IBV_WC_SUCCESS);
			assert_int_equal(wc.opcode, IBV_WC_RDMA_READ);
			assert_int_equal(wc.byte_len, sizes[i]);
			transfer_check(&x.client, 0, sizes[i], 5);
			transfer_check_clean(&x.client, sizes[i], at);
			transfer_none(&x.server);
			transfer_close(&x);
		}
	}
}

/* Gathered from four places, scattered to three. */
static void several_elements(void **state)
{
	static const uint32_t from[4] = { 10, 0, 300, 90 }, to[3] = { 1, 350, 500 };

	(void)state;
	for (enum transport t = 0; t < NUM_TRANSPORTS; t++) {
		struct ibv_sge send[4], recv[3];
		uint8_t got[400];
		struct transfer x;
		size_t at = 0;

		transfer_open(&x, t, NULL);
		for (unsigned int i = 0; i < 4; i++) {
			send[i] = (struct ibv_sge) { (uintptr_t)(x.client.data + i * 1000), from[i],
						     x.client.mr->lkey };
			for (uint32_t b = 0; b < from[i]; b++)
				x.client.data[i * 1000 + b] = (uint8_t)(at++ * 7);
		}
		for (unsigned int i = 0; i < 3; i++)
			recv[i] = (struct ibv_sge) { (uintptr_t)(x.server.data + i * 1000), to[i],
						     x.server.mr->lkey };
		assert_int_equal(rdma_post_recvv(x.server.id, NULL, recv, 3), 0);
		assert_int_equal(rdma_post_sendv(x.client.id, NULL, send, 4, IBV_SEND_SIGNALED), 0);
		assert_int_equal(transfer_received(&x.server, 0, IBV_WC_SUCCESS).byte_len, 400);
		memcpy(got, x.server.data, 1);
		memcpy(got + 1, x.server.data + 1000, 350);
		memcpy(got + 351, x.server.data + 2000, 49);
		for (size_t b = 0; b < sizeof(got); b++)
			assert_int_equal(got[b], (uint8_t)(b * 7));
		transfer_check_clean(&x.server, 2049, 451);

		assert_int_equal(rdma_post_writev(x.client.id, NULL, send, 4, IBV_SEND_SIGNALED,
						  (uintptr_t)(x.server.data + 8000),
						  x.server.mr->rkey), 0);
		transfer_sent(&x.client, 0, IBV_WC_SUCCESS);
		transfer_sent(&x.client, 0, IBV_WC_SUCCESS);
		assert_int_equal(polycm_sim_advance(1000000), 0);
		assert_memory_equal(x.server.data + 8000, got, sizeof(got));
		transfer_close(&x);
	}
}

/* Taken when posted: needs no key, and the memory may change at once. */
static void inline_data(void **state)
{
	(void)state;
	for (enum transport t = 0; t < NUM_TRANSPORTS; t++) {
		uint8_t text[TRANSFER_INLINE];
		struct transfer x;

		transfer_open(&x, t, NULL);
		memset(text, 'a', sizeof(text));
		transfer_recv(&x.server, 1, 0, 100);
		assert_int_equal(rdma_post_send(x.client.id, NULL, text, sizeof(text), NULL,
						IBV_SEND_INLINE | IBV_SEND_SIGNALED), 0);
		memset(text, 'b', sizeof(text));
		assert_int_equal(rdma_post_write(x.client.id, NULL, text, 8, NULL,
						 IBV_SEND_INLINE | IBV_SEND_SIGNALED,
						 (uintptr_t)(x.server.data + 200), x.server.mr->rkey),
				 0);
		memset(text, 'c', sizeof(text));
		assert_int_equal(transfer_received(&x.server, 1, IBV_WC_SUCCESS).byte_len,
				 sizeof(text));
		transfer_sent(&x.client, 0, IBV_WC_SUCCESS);
		transfer_sent(&x.client, 0, IBV_WC_SUCCESS);
		assert_int_equal(polycm_sim_advance(1000000), 0);
		for (size_t i = 0; i < sizeof(text); i++)
			assert_int_equal(x.server.data[i], 'a');
		for (size_t i = 0; i < 8; i++)
			assert_int_equal(x.server.data[200 + i], 'b');
		transfer_check_clean(&x.server, sizeof(text), 100);
		transfer_close(&x);
	}
}

static void inline_data_has_a_limit(void **state)
{
	(void)state;
	for (enum transport t = 0; t < NUM_TRANSPORTS; t++) {
		struct ibv_qp_init_attr init;
		struct ibv_qp_attr attr;
		struct transfer x;

		transfer_open(&x, t, NULL);
		assert_int_equal(ibv_query_qp(x.client.id->qp, &attr, IBV_QP_CAP, &init), 0);
		assert_errno(rdma_post_send(x.client.id, NULL, x.client.data,
					    init.cap.max_inline_data + 1, NULL, IBV_SEND_INLINE),
			     EINVAL);
		transfer_recv(&x.server, 1, 0, TRANSFER_SIZE);
		assert_int_equal(rdma_post_send(x.client.id, NULL, x.client.data,
						init.cap.max_inline_data, NULL, IBV_SEND_INLINE), 0);
		assert_int_equal(transfer_received(&x.server, 1, IBV_WC_SUCCESS).byte_len,
				 init.cap.max_inline_data);
		transfer_close(&x);
	}
}

/* --- Order. --- */

static void everything_completes_in_order(void **state)
{
	static const enum ibv_wr_opcode opcodes[] = {
		IBV_WR_SEND, IBV_WR_RDMA_READ, IBV_WR_RDMA_WRITE, IBV_WR_SEND, IBV_WR_RDMA_READ,
		IBV_WR_RDMA_READ, IBV_WR_RDMA_READ, IBV_WR_RDMA_READ, IBV_WR_RDMA_READ,
		IBV_WR_SEND, IBV_WR_RDMA_WRITE,
	};

	(void)state;
	for (enum transport t = 0; t < NUM_TRANSPORTS; t++) {
		uint64_t received = 0;
		struct transfer x;

		transfer_open(&x, t, NULL);
		for (uint64_t i = 0; i < 3; i++)
			transfer_recv(&x.server, i, 0, 1000);
		for (size_t i = 0; i < ARRAY_LEN(opcodes); i++)
			assert_int_equal(transfer_post(&x.client, i, opcodes[i], 0, 100, &x.server, 0),
					 0);
		for (size_t i = 0; i < ARRAY_LEN(opcodes); i++)
			transfer_sent(&x.client, i, IBV_WC_SUCCESS);
		assert_int_equal(polycm_sim_advance(1000000), 0);
		while (received < 3)
			transfer_received(&x.server, received++, IBV_WC_SUCCESS);
		transfer_none(&x.client);
		transfer_none(&x.server);
		transfer_close(&x);
	}
}

/* A read sees the writes before it; a receive's completion vouches for the writes before its send. */
static void later_requests_see_earlier_ones(void **state)
{
	(void)state;
	for (enum transport t = 0; t < NUM_TRANSPORTS; t++) {
		struct transfer x;

		transfer_open(&x, t, NULL);
		transfer_fill(&x.client, 0, 20000, 77);
		transfer_recv(&x.server, 1, 60000, 100);
		assert_int_equal(transfer_post(&x.client, 1, IBV_WR_RDMA_WRITE, 0, 20000, &x.server, 0),
				 0);
		assert_int_equal(transfer_post(&x.client, 2, IBV_WR_RDMA_READ, 30000, 20000, &x.server,
					       0), 0);
		assert_int_equal(transfer_post(&x.client, 3, IBV_WR_SEND, 0, 1, NULL, 0), 0);
		transfer_received(&x.server, 1, IBV_WC_SUCCESS);
		transfer_check(&x.server, 0, 20000, 77);
		for (uint64_t i = 1; i <= 3; i++)
			transfer_sent(&x.client, i, IBV_WC_SUCCESS);
		transfer_check(&x.client, 30000, 20000, 77);
		transfer_close(&x);
	}
}

static void unsignaled_requests_complete_silently(void **state)
{
	(void)state;
	for (enum transport t = 0; t < NUM_TRANSPORTS; t++) {
		struct transfer x;

		transfer_open(&x, t, NULL);
		/* More of them than the queue holds at a time. */
		for (unsigned int i = 0; i < 3 * TRANSFER_WRS; i++) {
			bool last = i % TRANSFER_WRS == TRANSFER_WRS - 1;

			assert_int_equal(rdma_post_write(x.client.id, NULL, x.client.data, 1,
							 x.client.mr, last ? IBV_SEND_SIGNALED : 0,
							 (uintptr_t)x.server.data,
							 x.server.mr->rkey), 0);
			if (last)
				transfer_sent(&x.client, 0, IBV_WC_SUCCESS);
		}
		transfer_none(&x.client);
		transfer_close(&x);
	}
}

static void queues_have_an_end(void **state)
{
	(void)state;
	for (enum transport t = 0; t < NUM_TRANSPORTS; t++) {
		struct ibv_qp_init_attr init;
		struct ibv_qp_attr attr;
		struct transfer x;

		transfer_open(&x, t, NULL);
		assert_int_equal(ibv_query_qp(x.client.id->qp, &attr, IBV_QP_CAP, &init), 0);
		assert_true(init.cap.max_send_wr >= TRANSFER_WRS);
		for (uint32_t i = 0; i < init.cap.max_recv_wr; i++)
			transfer_recv(&x.server, i, 0, 1);
		assert_errno(rdma_post_recv(x.server.id, NULL, x.server.data, 1, x.server.mr), ENOMEM);
		for (uint32_t i = 0; i < init.cap.max_send_wr; i++)
			transfer_send(&x.client, i, 0, 1);
		assert_errno(rdma_post_send(x.client.id, NULL, x.client.data, 1, x.client.mr, 0),
			     ENOMEM);
		for (uint32_t i = 0; i < init.cap.max_send_wr; i++)
			transfer_sent(&x.client, i, IBV_WC_SUCCESS);
		transfer_send(&x.client, 7, 0, 1);
		transfer_close(&x);
	}
}

/* --- Completion channels. --- */

static bool is_readable(int fd)
{
	struct pollfd poller = { .fd = fd, .events = POLLIN };

	return poll(&poller, 1, 0) == 1;
}

static void channels_tell_of_completions(void **state)
{
	(void)state;
	for (enum transport t = 0; t < NUM_TRANSPORTS; t++) {
		struct ibv_comp_channel *channel;
		struct ibv_cq *cq;
		struct transfer x;
		struct ibv_wc wc;
		void *context;

		transfer_open(&x, t, NULL);
		channel = x.server.id->recv_cq_channel;
		transfer_recv(&x.server, 1, 0, 10);
		transfer_recv(&x.server, 2, 0, 10);
		transfer_recv(&x.server, 3, 0, 10);
		/* Not asked for, not told. */
		transfer_send(&x.client, 1, 0, 10);
		assert_int_equal(polycm_sim_advance(1000000), 0);
		assert_false(is_readable(channel->fd));
		/* Asked for once, told once. */
		assert_int_equal(ibv_req_notify_cq(x.server.id->recv_cq, 0), 0);
		assert_false(is_readable(channel->fd));
		transfer_send(&x.client, 2, 0, 10);
		transfer_send(&x.client, 3, 0, 10);
		assert_int_equal(ibv_get_cq_event(channel, &cq, &context), 0);
		assert_ptr_equal(cq, x.server.id->recv_cq);
		assert_ptr_equal(context, x.server.id);
		assert_int_equal(polycm_sim_advance(1000000), 0);
		assert_false(is_readable(channel->fd));
		ibv_ack_cq_events(cq, 1);
		for (uint64_t i = 1; i <= 3; i++) {
			assert_int_equal(ibv_poll_cq(cq, 1, &wc), 1);
			assert_int_equal(wc.wr_id, i);
		}
		assert_int_equal(ibv_poll_cq(cq, 1, &wc), 0);
		/* Nothing can come: an error and no hang. */
		assert_int_equal(ibv_req_notify_cq(cq, 0), 0);
		assert_errno(ibv_get_cq_event(channel, &cq, &context), EDEADLK);
		transfer_close(&x);
	}
}

/* IBV_SEND_SOLICITED ends a wait for solicited completions, others do not. */
static void solicited_only(void **state)
{
	(void)state;
	for (enum transport t = 0; t < NUM_TRANSPORTS; t++) {
		struct ibv_comp_channel *channel;
		struct ibv_cq *cq;
		struct transfer x;
		void *context;

		transfer_open(&x, t, NULL);
		channel = x.server.id->recv_cq_channel;
		transfer_recv(&x.server, 1, 0, 10);
		transfer_recv(&x.server, 2, 0, 10);
		assert_int_equal(ibv_req_notify_cq(x.server.id->recv_cq, 1), 0);
		transfer_send(&x.client, 1, 0, 10);
		assert_int_equal(polycm_sim_advance(1000000), 0);
		assert_false(is_readable(channel->fd));
		assert_int_equal(rdma_post_send(x.client.id, NULL, x.client.data, 1, x.client.mr,
						IBV_SEND_SOLICITED | IBV_SEND_SIGNALED), 0);
		assert_int_equal(polycm_sim_advance(1000000), 0);
		assert_true(is_readable(channel->fd));
		assert_int_equal(ibv_get_cq_event(channel, &cq, &context), 0);
		ibv_ack_cq_events(cq, 1);
		transfer_close(&x);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(send_and_receive),
		cmocka_unit_test(both_ways),
		cmocka_unit_test(immediate_data),
		cmocka_unit_test(iwarp_has_no_immediate_data),
		cmocka_unit_test(writes),
		cmocka_unit_test(reads),
		cmocka_unit_test(several_elements),
		cmocka_unit_test(inline_data),
		cmocka_unit_test(inline_data_has_a_limit),
		cmocka_unit_test(everything_completes_in_order),
		cmocka_unit_test(later_requests_see_earlier_ones),
		cmocka_unit_test(unsignaled_requests_complete_silently),
		cmocka_unit_test(queues_have_an_end),
		cmocka_unit_test(channels_tell_of_completions),
		cmocka_unit_test(solicited_only),
	};

	return cmocka_run_group_tests(tests, pair_group_setup, NULL);
}
