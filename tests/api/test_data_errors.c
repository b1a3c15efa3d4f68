/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_data_errors.c - requests that must fail: the status at each end, the
 * state of both queue pairs, and that nothing was written where it must not.
 */
#include <errno.h>
#include <string.h>

#include "transfer.h"

/* Everything posted to a queue pair in error comes back flushed. */
static void check_error_state(struct end *end)
{
	assert_int_equal(step_qp_state(end->id), IBV_QPS_ERR);
	transfer_send(end, 900, 0, 1);
	transfer_recv(end, 901, 0, 1);
	transfer_sent(end, 900, IBV_WC_WR_FLUSH_ERR);
	transfer_received(end, 901, IBV_WC_WR_FLUSH_ERR);
	transfer_none(end);
}

/* On iWARP the stream ends with it, and both programs are told. */
static void check_stream_gone(struct transfer *x)
{
	struct rdma_cm_event *event;

	if (x->pair.transport != IWARP) {
		assert_int_equal(polycm_sim_advance(1000000), 0);
		pair_none(x->pair.client_channel);
		pair_none(x->pair.server_channel);
		return;
	}
	event = pair_expect(x->pair.client_channel, RDMA_CM_EVENT_DISCONNECTED, 0);
	rdma_ack_cm_event(event);
	event = pair_expect(x->pair.server_channel, RDMA_CM_EVENT_DISCONNECTED, 0);
	rdma_ack_cm_event(event);
}

/* --- Remote memory. --- */

enum trouble { WRONG_KEY, STALE_KEY, BELOW, ABOVE, READ_ONLY, WRITE_ONLY, LOCAL_ONLY, OTHER_PD };

static const struct remote_case {
	const char *name;
	enum trouble trouble;
	enum ibv_wr_opcode opcode;
} remotes[] = {
	{ "write, wrong key", WRONG_KEY, IBV_WR_RDMA_WRITE },
	{ "read, wrong key", WRONG_KEY, IBV_WR_RDMA_READ },
	{ "write, stale key", STALE_KEY, IBV_WR_RDMA_WRITE },
	{ "read, stale key", STALE_KEY, IBV_WR_RDMA_READ },
	{ "write below", BELOW, IBV_WR_RDMA_WRITE },
	{ "read below", BELOW, IBV_WR_RDMA_READ },
	{ "write above", ABOVE, IBV_WR_RDMA_WRITE },
	{ "read above", ABOVE, IBV_WR_RDMA_READ },
	{ "write to read-only memory", READ_ONLY, IBV_WR_RDMA_WRITE },
	{ "read from write-only memory", WRITE_ONLY, IBV_WR_RDMA_READ },
	{ "write to local memory", LOCAL_ONLY, IBV_WR_RDMA_WRITE },
	{ "read from local memory", LOCAL_ONLY, IBV_WR_RDMA_READ },
	{ "write to another domain's memory", OTHER_PD, IBV_WR_RDMA_WRITE },
	{ "read from another domain's memory", OTHER_PD, IBV_WR_RDMA_READ },
};

/* A region of the server's in the middle of its memory, wrong in this way. */
struct wrong {
	struct ibv_pd *pd;
	struct ibv_mr *mr;
	uint64_t addr;
	uint32_t rkey;
};

#define REGION_AT 8192u
#define REGION_LEN 4096u
#define ACCESS_LEN 64u

static void make_wrong(struct wrong *wrong, struct end *server, enum trouble trouble)
{
	unsigned int access = IBV_ACCESS_LOCAL_WRITE;

	if (trouble != READ_ONLY && trouble != LOCAL_ONLY)
		access |= IBV_ACCESS_REMOTE_WRITE;
	if (trouble != WRITE_ONLY && trouble != LOCAL_ONLY)
		access |= IBV_ACCESS_REMOTE_READ;
	wrong->pd = trouble == OTHER_PD ? ibv_alloc_pd(server->id->verbs) : NULL;
	wrong->mr = ibv_reg_mr(wrong->pd ? wrong->pd : server->id->pd, server->data + REGION_AT,
			       REGION_LEN, access);
	assert_non_null(wrong->mr);
	wrong->addr = (uintptr_t)(server->data + REGION_AT);
	wrong->rkey = wrong->mr->rkey;
	if (trouble == WRONG_KEY)
		wrong->rkey ^= 0x40;
	if (trouble == BELOW)
		wrong->addr -= 1;
	if (trouble == ABOVE)
		wrong->addr += REGION_LEN - ACCESS_LEN + 1;
	if (trouble == STALE_KEY) {
		assert_int_equal(ibv_dereg_mr(wrong->mr), 0);
		wrong->mr = NULL;
	}
}

static void end_wrong(struct wrong *wrong)
{
	if (wrong->mr)
		assert_int_equal(ibv_dereg_mr(wrong->mr), 0);
	if (wrong->pd)
		assert_int_equal(ibv_dealloc_pd(wrong->pd), 0);
}

static void remote_access_is_checked(void **state)
{
	(void)state;
	for (enum transport t = 0; t < NUM_TRANSPORTS; t++) {
		for (size_t i = 0; i < ARRAY_LEN(remotes); i++) {
			const struct remote_case *c = &remotes[i];
			struct wrong wrong;
			struct transfer x;
			enum ibv_wc_status status;
			bool taken;
			int r;

			print_message("%s, %s\n", transport_name[t], c->name);
			transfer_open(&x, t, NULL);
			make_wrong(&wrong, &x.server, c->trouble);
			transfer_recv(&x.server, 1, 0, 100);
			if (c->opcode == IBV_WR_RDMA_WRITE)
				r = rdma_post_write(x.client.id, (void *)5, x.client.data, ACCESS_LEN,
						    x.client.mr, IBV_SEND_SIGNALED, wrong.addr,
						    wrong.rkey);
			else
				r = rdma_post_read(x.client.id, (void *)5, x.client.data, ACCESS_LEN,
						   x.client.mr, IBV_SEND_SIGNALED, wrong.addr,
						   wrong.rkey);
			assert_int_equal(r, 0);
			transfer_send(&x.client, 6, 0, 1);
			/* iWARP does not say which it was: what TCP had taken is done, a read is not. */
			status = t == IWARP ? IBV_WC_WR_FLUSH_ERR : IBV_WC_REM_ACCESS_ERR;
			taken = t == IWARP && c->opcode == IBV_WR_RDMA_WRITE;
			transfer_sent(&x.client, 5, taken ? IBV_WC_SUCCESS : status);
			transfer_sent(&x.client, 6, taken ? IBV_WC_SUCCESS : IBV_WC_WR_FLUSH_ERR);
			transfer_received(&x.server, 1, IBV_WC_WR_FLUSH_ERR);
			transfer_check_clean(&x.server, 0, TRANSFER_SIZE);
			transfer_check_clean(&x.client, 0, TRANSFER_SIZE);
			check_error_state(&x.client);
			check_error_state(&x.server);
			check_stream_gone(&x);
			end_wrong(&wrong);
			transfer_close(&x);
		}
	}
}

/* No bytes need no key. */
static void nothing_needs_no_key(void **state)
{
	(void)state;
	for (enum transport t = 0; t < NUM_TRANSPORTS; t++) {
		struct transfer x;

		transfer_open(&x, t, NULL);
		assert_int_equal(rdma_post_write(x.client.id, NULL, x.client.data, 0, x.client.mr,
						 IBV_SEND_SIGNALED, 0, 0), 0);
		transfer_sent(&x.client, 0, IBV_WC_SUCCESS);
		assert_int_equal(rdma_post_read(x.client.id, NULL, x.client.data, 0, x.client.mr,
						IBV_SEND_SIGNALED, 0, 0), 0);
		transfer_sent(&x.client, 0, IBV_WC_SUCCESS);
		transfer_close(&x);
	}
}

/* A side that accepted without responder resources lets nobody read. */
static void reading_needs_responder_resources(void **state)
{
	(void)state;
	for (enum transport t = ROCE; t <= IB; t++) {
		struct rdma_conn_param param = pair_param(NULL, 0);
		struct ibv_qp_init_attr init;
		struct ibv_qp_attr attr;
		struct transfer x;

		param.responder_resources = 0;
		param.initiator_depth = 0;
		transfer_open(&x, t, &param);
		assert_int_equal(ibv_query_qp(x.server.id->qp, &attr, IBV_QP_ACCESS_FLAGS, &init), 0);
		assert_int_equal(attr.qp_access_flags, IBV_ACCESS_REMOTE_WRITE);
		assert_int_equal(transfer_post(&x.client, 1, IBV_WR_RDMA_WRITE, 0, 8, &x.server, 0), 0);
		transfer_sent(&x.client, 1, IBV_WC_SUCCESS);
		/* With no depth of its own the client cannot even ask. */
		assert_int_equal(transfer_post(&x.client, 2, IBV_WR_RDMA_READ, 0, 8, &x.server, 0), 0);
		transfer_sent(&x.client, 2, IBV_WC_LOC_QP_OP_ERR);
		check_error_state(&x.client);
		transfer_close(&x);
	}
}

/* --- Local memory. --- */

static void local_keys_are_checked(void **state)
{
	(void)state;
	for (enum transport t = 0; t < NUM_TRANSPORTS; t++) {
		struct ibv_sge sge;
		struct transfer x;

		transfer_open(&x, t, NULL);
		transfer_recv(&x.server, 1, 0, 100);
		sge = (struct ibv_sge) { (uintptr_t)x.client.data, 10, x.client.mr->lkey ^ 1 };
		transfer_recv(&x.server, 2, 0, 100);
		transfer_send(&x.client, 4, 0, 5);
		assert_int_equal(rdma_post_sendv(x.client.id, (void *)5, &sge, 1, IBV_SEND_SIGNALED),
				 0);
		/* What was before it is not affected, and the peer is not told. */
		transfer_sent(&x.client, 4, IBV_WC_SUCCESS);
		transfer_sent(&x.client, 5, IBV_WC_LOC_PROT_ERR);
		transfer_received(&x.server, 1, IBV_WC_SUCCESS);
		check_error_state(&x.client);
		if (t != IWARP) {
			assert_int_equal(polycm_sim_advance(1000000), 0);
			transfer_none(&x.server);
			assert_int_equal(step_qp_state(x.server.id), IBV_QPS_RTS);
		} else {
			transfer_received(&x.server, 2, IBV_WC_WR_FLUSH_ERR);
		}
		check_stream_gone(&x);
		transfer_close(&x);
	}
}

static void local_bounds_are_checked(void **state)
{
	(void)state;
	for (enum transport t = 0; t < NUM_TRANSPORTS; t++) {
		struct ibv_sge sge;
		struct transfer x;

		transfer_open(&x, t, NULL);
		sge = (struct ibv_sge) { (uintptr_t)x.client.data + TRANSFER_SIZE - 10, 11,
					 x.client.mr->lkey };
		assert_int_equal(rdma_post_readv(x.client.id, (void *)5, &sge, 1, IBV_SEND_SIGNALED,
						 (uintptr_t)x.server.data, x.server.mr->rkey), 0);
		transfer_sent(&x.client, 5, IBV_WC_LOC_PROT_ERR);
		check_error_state(&x.client);
		transfer_close(&x);
	}
}

static void regions_that_cannot_be(void **state)
{
	(void)state;
	for (enum transport t = 0; t < NUM_TRANSPORTS; t++) {
		struct transfer x;

		transfer_open(&x, t, NULL);
		/* Who lets others write must let itself. */
		errno = 0;
		assert_null(ibv_reg_mr(x.client.id->pd, x.client.data, 10, IBV_ACCESS_REMOTE_WRITE));
		assert_int_equal(errno, EINVAL);
		errno = 0;
		assert_null(ibv_reg_mr(x.client.id->pd, x.client.data, 10,
				       IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_REMOTE_READ));
		assert_int_equal(errno, EINVAL);
		/* Nothing is mapped there. */
		errno = 0;
		assert_null(rdma_reg_msgs(x.client.id, (void *)4096, 10));
		assert_int_equal(errno, EFAULT);
		transfer_close(&x);
	}
}

/* --- Receives. --- */

static void receives_that_are_too_short(void **state)
{
	(void)state;
	for (enum transport t = 0; t < NUM_TRANSPORTS; t++) {
		struct transfer x;

		transfer_open(&x, t, NULL);
		transfer_recv(&x.server, 1, 0, 10);
		transfer_recv(&x.server, 2, 0, 10);
		transfer_send(&x.client, 5, 0, 11);
		transfer_received(&x.server, 1, IBV_WC_LOC_LEN_ERR);
		transfer_received(&x.server, 2, IBV_WC_WR_FLUSH_ERR);
		transfer_sent(&x.client, 5, t == IWARP ? IBV_WC_SUCCESS : IBV_WC_REM_INV_REQ_ERR);
		transfer_check_clean(&x.server, 0, TRANSFER_SIZE);
		check_error_state(&x.client);
		check_error_state(&x.server);
		check_stream_gone(&x);
		transfer_close(&x);
	}
}

static void receives_with_a_wrong_key(void **state)
{
	(void)state;
	for (enum transport t = 0; t < NUM_TRANSPORTS; t++) {
		struct ibv_sge sge;
		struct transfer x;

		transfer_open(&x, t, NULL);
		sge = (struct ibv_sge) { (uintptr_t)x.server.data, 100, x.server.mr->lkey ^ 1 };
		assert_int_equal(rdma_post_recvv(x.server.id, (void *)1, &sge, 1), 0);
		transfer_send(&x.client, 5, 0, 10);
		transfer_received(&x.server, 1, IBV_WC_LOC_PROT_ERR);
		transfer_sent(&x.client, 5, t == IWARP ? IBV_WC_SUCCESS : IBV_WC_REM_OP_ERR);
		check_error_state(&x.client);
		check_error_state(&x.server);
		check_stream_gone(&x);
		transfer_close(&x);
	}
}

/* iWARP knows no RNR: a message that nothing was posted for ends the stream, which had taken it. */
static void iwarp_ends_without_a_receive(void **state)
{
	struct transfer x;

	(void)state;
	transfer_open(&x, IWARP, NULL);
	transfer_send(&x.client, 5, 0, 10);
	transfer_sent(&x.client, 5, IBV_WC_SUCCESS);
	check_error_state(&x.client);
	check_error_state(&x.server);
	check_stream_gone(&x);
	transfer_close(&x);
}

/* --- Flushing. --- */

/* The end that disconnects flushes at once; on InfiniBand the other one when it does the same. */
static void disconnecting_flushes(void **state)
{
	(void)state;
	for (enum transport t = 0; t < NUM_TRANSPORTS; t++) {
		struct transfer x;

		transfer_open(&x, t, NULL);
		for (uint64_t i = 0; i < 3; i++) {
			transfer_recv(&x.client, i, 0, 10);
			transfer_recv(&x.server, i, 0, 10);
		}
		assert_int_equal(rdma_disconnect(x.client.id), 0);
		for (uint64_t i = 0; i < 3; i++)
			transfer_received(&x.client, i, IBV_WC_WR_FLUSH_ERR);
		pair_take(x.pair.server_channel, RDMA_CM_EVENT_DISCONNECTED, 0);
		if (t != IWARP) {
			transfer_none(&x.server);
			assert_int_equal(rdma_disconnect(x.server.id), 0);
		}
		for (uint64_t i = 0; i < 3; i++)
			transfer_received(&x.server, i, IBV_WC_WR_FLUSH_ERR);
		pair_take(x.pair.client_channel, RDMA_CM_EVENT_DISCONNECTED, 0);
		transfer_none(&x.client);
		transfer_none(&x.server);
		transfer_close(&x);
	}
}

static void destroying_a_queue_pair_drops_its_requests(void **state)
{
	(void)state;
	for (enum transport t = 0; t < NUM_TRANSPORTS; t++) {
		struct transfer x;

		transfer_open(&x, t, NULL);
		transfer_recv(&x.client, 1, 0, 10);
		transfer_send(&x.client, 1, 0, 10);
		rdma_destroy_qp(x.client.id);
		assert_null(x.client.id->qp);
		/* Its queues were made with it and went with it. */
		assert_null(x.client.id->send_cq);
		assert_null(x.client.id->recv_cq);
		assert_null(x.client.id->send_cq_channel);
		transfer_close(&x);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(remote_access_is_checked),
		cmocka_unit_test(nothing_needs_no_key),
		cmocka_unit_test(reading_needs_responder_resources),
		cmocka_unit_test(local_keys_are_checked),
		cmocka_unit_test(local_bounds_are_checked),
		cmocka_unit_test(regions_that_cannot_be),
		cmocka_unit_test(receives_that_are_too_short),
		cmocka_unit_test(receives_with_a_wrong_key),
		cmocka_unit_test(iwarp_ends_without_a_receive),
		cmocka_unit_test(disconnecting_flushes),
		cmocka_unit_test(destroying_a_queue_pair_drops_its_requests),
	};

	return cmocka_run_group_tests(tests, pair_group_setup, NULL);
}
