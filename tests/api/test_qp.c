/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_qp.c - queue pairs and shared receive queues on ids, rdma_init_qp_attr(),
 * and programs that bring queue pairs of their own.
 */
#include <errno.h>
#include <string.h>

#include "transfer.h"

static struct ibv_qp_init_attr attr_of(enum ibv_qp_type type)
{
	return (struct ibv_qp_init_attr) {
		.qp_type = type,
		.cap = { .max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1 },
	};
}

/* --- On ids. --- */

static void an_active_id_gets_a_plain_one(void **state)
{
	(void)state;
	for (enum transport t = 0; t < NUM_TRANSPORTS; t++) {
		struct ibv_qp_init_attr attr = attr_of(IBV_QPT_RC), init;
		struct ibv_qp_attr qp_attr;
		struct pair pair;

		step_open(&pair, t, STEP_ADDR_RESOLVED);
		assert_int_equal(rdma_create_qp(pair.client, NULL, &attr), 0);
		assert_non_null(pair.client->qp);
		assert_ptr_equal(pair.client->qp->pd, pair.client->pd);
		assert_int_equal(step_qp_state(pair.client), IBV_QPS_INIT);
		assert_int_equal(ibv_query_qp(pair.client->qp, &qp_attr, IBV_QP_ACCESS_FLAGS, &init),
				 0);
		/* siw always tells the same. */
		assert_int_equal(qp_attr.qp_access_flags,
				 t == IWARP ? IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
						      IBV_ACCESS_REMOTE_READ
					    : 0);
		/* Queues that were not given are made, with channels. */
		assert_non_null(pair.client->send_cq);
		assert_non_null(pair.client->recv_cq);
		assert_ptr_equal(pair.client->qp->send_cq, pair.client->send_cq);
		assert_ptr_equal(pair.client->qp->recv_cq, pair.client->recv_cq);
		assert_ptr_equal(pair.client->send_cq->channel, pair.client->send_cq_channel);
		assert_ptr_equal(pair.client->recv_cq->channel, pair.client->recv_cq_channel);
		assert_ptr_equal(pair.client->send_cq->cq_context, pair.client);
		rdma_destroy_qp(pair.client);
		assert_null(pair.client->qp);
		assert_null(pair.client->send_cq);
		assert_null(pair.client->recv_cq_channel);
		pair_close(&pair);
	}
}

/* What later headers call IBV_ACCESS_FLUSH_GLOBAL and IBV_ACCESS_FLUSH_PERSISTENT. */
#define ACCESS_FLUSH 0x300u

/* The peer's wish to read decides whether it may. */
static void a_passive_id_gets_what_the_request_asks_for(void **state)
{
	(void)state;
	for (enum transport t = ROCE; t <= IB; t++) {
		for (uint8_t depth = 0; depth < 2; depth++) {
			struct ibv_qp_init_attr attr = attr_of(IBV_QPT_RC), init;
			struct rdma_conn_param param = pair_param(NULL, 0);
			unsigned int want = IBV_ACCESS_REMOTE_WRITE;
			struct ibv_qp_attr qp_attr;
			struct pair pair;

			pair_open(&pair, t, RDMA_PS_TCP);
			pair_resolve(&pair);
			param.initiator_depth = depth;
			rdma_ack_cm_event(pair_request(&pair, &param));
			assert_int_equal(rdma_create_qp(pair.server, NULL, &attr), 0);
			assert_int_equal(ibv_query_qp(pair.server->qp, &qp_attr,
						      IBV_QP_ACCESS_FLAGS, &init), 0);
			if (depth)
				want |= IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC |
					(t == ROCE ? ACCESS_FLUSH : 0);
			assert_int_equal(qp_attr.qp_access_flags, want);
			rdma_destroy_qp(pair.server);
			pair_close(&pair);
		}
	}
}

static void datagram_ones_work_at_once(void **state)
{
	(void)state;
	for (enum transport t = 0; t < NUM_TRANSPORTS; t++) {
		struct ibv_qp_init_attr attr = attr_of(IBV_QPT_UD), init;
		struct ibv_qp_attr qp_attr;
		struct pair pair;

		pair_open(&pair, t, RDMA_PS_UDP);
		assert_int_equal(rdma_bind_addr(pair.client, step_sa(CLIENT_ADDRESS, 0)), 0);
		if (t == IWARP) {
			assert_errno(rdma_create_qp(pair.client, NULL, &attr), EOPNOTSUPP);
			assert_null(pair.client->qp);
			assert_null(pair.client->send_cq);
		} else {
			assert_int_equal(rdma_create_qp(pair.client, NULL, &attr), 0);
			assert_int_equal(step_qp_state(pair.client), IBV_QPS_RTS);
			assert_int_equal(ibv_query_qp(pair.client->qp, &qp_attr, IBV_QP_QKEY, &init),
					 0);
			assert_int_equal(qp_attr.qkey, RDMA_UDP_QKEY);
			rdma_destroy_qp(pair.client);
		}
		pair_close(&pair);
	}
}

/* --- rdma_init_qp_attr(). --- */

#define INIT_MASK (IBV_QP_STATE | IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX | IBV_QP_PORT)
#define RTR_MASK (IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |   \
		  IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER)
#define RTS_MASK (IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |             \
		  IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_TIMEOUT)

static const struct mask_case {
	enum step step;
	enum ibv_qp_state state;
	int mask;		/* 0: EINVAL */
} masks[] = {
	/* Before there is a connection the answer is the same whatever is asked for. */
	{ STEP_ADDR_RESOLVED, IBV_QPS_INIT, INIT_MASK },
	{ STEP_ROUTE_RESOLVED, IBV_QPS_INIT, INIT_MASK },
	{ STEP_CONNECTING, IBV_QPS_INIT, INIT_MASK },
	{ STEP_CONNECTING, IBV_QPS_RTR, 0 },
	{ STEP_CONNECTING, IBV_QPS_RTS, 0 },
	{ STEP_REQUEST, IBV_QPS_INIT, INIT_MASK },
	{ STEP_REQUEST, IBV_QPS_RTR, RTR_MASK },
	{ STEP_REQUEST, IBV_QPS_RTS, RTS_MASK },
	{ STEP_RESPONSE, IBV_QPS_RTR, RTR_MASK },
	{ STEP_RESPONSE, IBV_QPS_RTS, RTS_MASK },
	{ STEP_RESPONSE, IBV_QPS_SQD, 0 },
	{ STEP_RESPONSE, IBV_QPS_ERR, 0 },
	{ STEP_ACCEPTED, IBV_QPS_RTR, RTR_MASK },
	{ STEP_ACCEPTED, IBV_QPS_RTS, RTS_MASK },
	{ STEP_ACTIVE, IBV_QPS_RTR, RTR_MASK },
	{ STEP_PASSIVE, IBV_QPS_RTS, RTS_MASK },
	{ STEP_REJECTED, IBV_QPS_RTR, 0 },
	{ STEP_DISCONNECTED, IBV_QPS_RTR, 0 },
};

static void attributes_and_their_masks(void **state)
{
	(void)state;
	for (enum transport t = ROCE; t <= IB; t++) {
		for (size_t i = 0; i < ARRAY_LEN(masks); i++) {
			const struct mask_case *c = &masks[i];
			struct ibv_qp_attr attr = { .qp_state = c->state };
			struct rdma_cm_id *id;
			struct pair pair;
			int mask = -1;

			print_message("%s, %s, state %d\n", transport_name[t], step_name[c->step],
				      c->state);
			id = step_open(&pair, t, c->step);
			if (c->mask) {
				assert_int_equal(rdma_init_qp_attr(id, &attr, &mask), 0);
				assert_int_equal(mask, c->mask);
				assert_int_equal(attr.qp_state, c->state);
			} else {
				assert_errno(rdma_init_qp_attr(id, &attr, &mask), EINVAL);
				assert_int_equal(mask, -1);
			}
			pair_close(&pair);
		}
	}
}

static void the_attributes_of_a_response(void **state)
{
	(void)state;
	for (enum transport t = ROCE; t <= IB; t++) {
		struct ibv_qp_attr rtr = { .qp_state = IBV_QPS_RTR }, rts = { .qp_state = IBV_QPS_RTS };
		struct ibv_qp_attr peer = { .qp_state = IBV_QPS_RTR };
		struct pair pair;
		int mask;

		step_open(&pair, t, STEP_RESPONSE);
		assert_int_equal(rdma_init_qp_attr(pair.client, &rtr, &mask), 0);
		assert_int_equal(rtr.dest_qp_num, 0x1234);
		assert_int_equal(rtr.path_mtu, t == ROCE ? IBV_MTU_1024 : IBV_MTU_4096);
		assert_int_equal(rtr.min_rnr_timer, 0);
		assert_int_equal(rtr.max_dest_rd_atomic, 3);
		assert_int_equal(rtr.ah_attr.port_num, 1);
		if (t == ROCE)
			assert_memory_equal(&rtr.ah_attr.grh.dgid,
					    &pair.client->route.addr.addr.ibaddr.dgid, 16);
		else
			assert_int_not_equal(rtr.ah_attr.dlid, 0);
		assert_int_equal(rdma_init_qp_attr(pair.client, &rts, &mask), 0);
		assert_int_equal(rts.retry_cnt, 5);
		assert_int_equal(rts.rnr_retry, 6);
		assert_int_equal(rts.max_rd_atomic, 4);
		assert_int_equal(rts.timeout, t == ROCE ? 17 : 19);
		/* What one side sends first is what the other expects. */
		assert_int_equal(rdma_init_qp_attr(pair.server, &peer, &mask), 0);
		assert_true(rts.sq_psn <= 0xffffff);
		assert_int_equal(rts.sq_psn, peer.rq_psn);
		pair_close(&pair);
	}
}

/* --- Queue pairs of the program's own. --- */

static void move(struct rdma_cm_id *id, struct ibv_qp *qp, enum ibv_qp_state state)
{
	struct ibv_qp_attr attr = { .qp_state = state };
	int mask;

	assert_int_equal(rdma_init_qp_attr(id, &attr, &mask), 0);
	assert_int_equal(ibv_modify_qp(qp, &attr, mask), 0);
}

struct own {
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct ibv_mr *mr;
	char data[64];
};

static void own_open(struct own *own, struct rdma_cm_id *id)
{
	struct ibv_qp_init_attr attr = attr_of(IBV_QPT_RC);

	memset(own->data, 0, sizeof(own->data));
	own->cq = ibv_create_cq(id->verbs, 4, NULL, NULL, 0);
	assert_non_null(own->cq);
	attr.send_cq = attr.recv_cq = own->cq;
	own->qp = ibv_create_qp(id->pd, &attr);
	assert_non_null(own->qp);
	own->mr = ibv_reg_mr(id->pd, own->data, sizeof(own->data), IBV_ACCESS_LOCAL_WRITE);
	assert_non_null(own->mr);
}

static void own_close(struct own *own)
{
	assert_int_equal(ibv_destroy_qp(own->qp), 0);
	assert_int_equal(ibv_destroy_cq(own->cq), 0);
	assert_int_equal(ibv_dereg_mr(own->mr), 0);
}

static void own_message(struct own *from, struct own *to)
{
	struct ibv_sge source = { (uintptr_t)from->data, 6, from->mr->lkey };
	struct ibv_sge target = { (uintptr_t)to->data, 64, to->mr->lkey };
	struct ibv_recv_wr *bad_recv, recv = { .sg_list = &target, .num_sge = 1 };
	struct ibv_send_wr *bad_send, send = { .sg_list = &source, .num_sge = 1,
					       .opcode = IBV_WR_SEND,
					       .send_flags = IBV_SEND_SIGNALED };
	struct ibv_wc wc;

	strcpy(from->data, "hello");
	assert_int_equal(ibv_post_recv(to->qp, &recv, &bad_recv), 0);
	assert_int_equal(ibv_post_send(from->qp, &send, &bad_send), 0);
	assert_int_equal(polycm_sim_advance(1000000), 0);
	assert_int_equal(ibv_poll_cq(to->cq, 1, &wc), 1);
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	assert_string_equal(to->data, "hello");
	assert_int_equal(ibv_poll_cq(from->cq, 1, &wc), 1);
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
}

/* The ids carry numbers only, the program moves its queue pairs itself. */
static void programs_bring_their_own(void **state)
{
	(void)state;
	for (enum transport t = ROCE; t <= IB; t++) {
		static struct own client, server;
		struct rdma_conn_param param = pair_param(NULL, 0);
		struct rdma_cm_event *event;
		struct pair pair;

		pair_open(&pair, t, RDMA_PS_TCP);
		pair_resolve(&pair);
		own_open(&client, pair.client);
		move(pair.client, client.qp, IBV_QPS_INIT);
		param.qp_num = client.qp->qp_num;
		event = pair_request(&pair, &param);
		assert_int_equal(event->param.conn.qp_num, client.qp->qp_num);
		rdma_ack_cm_event(event);
		own_open(&server, pair.server);
		move(pair.server, server.qp, IBV_QPS_INIT);
		move(pair.server, server.qp, IBV_QPS_RTR);
		move(pair.server, server.qp, IBV_QPS_RTS);
		param.qp_num = server.qp->qp_num;
		assert_int_equal(rdma_accept(pair.server, &param), 0);
		event = pair_expect(pair.client_channel, RDMA_CM_EVENT_CONNECT_RESPONSE, 0);
		assert_int_equal(event->param.conn.qp_num, server.qp->qp_num);
		rdma_ack_cm_event(event);
		move(pair.client, client.qp, IBV_QPS_RTR);
		move(pair.client, client.qp, IBV_QPS_RTS);
		assert_int_equal(rdma_establish(pair.client), 0);
		pair_take(pair.server_channel, RDMA_CM_EVENT_ESTABLISHED, 0);
		own_message(&client, &server);
		own_message(&server, &client);
		assert_int_equal(rdma_disconnect(pair.client), 0);
		pair_take(pair.server_channel, RDMA_CM_EVENT_DISCONNECTED, 0);
		own_close(&client);
		own_close(&server);
		pair_close(&pair);
	}
}

/* With a QP on the id, even a late one, the answer is the library's. */
static void a_late_queue_pair_is_in_the_way(void **state)
{
	(void)state;
	for (enum transport t = ROCE; t <= IB; t++) {
		struct ibv_qp_init_attr attr = attr_of(IBV_QPT_RC);
		struct pair pair;

		step_open(&pair, t, STEP_RESPONSE);
		assert_int_equal(rdma_create_qp(pair.client, NULL, &attr), 0);
		assert_errno(rdma_establish(pair.client), EINVAL);
		assert_int_equal(polycm_sim_advance(1000000), 0);
		pair_none(pair.server_channel);
		rdma_destroy_qp(pair.client);
		assert_int_equal(rdma_establish(pair.client), 0);
		pair_take(pair.server_channel, RDMA_CM_EVENT_ESTABLISHED, 0);
		pair_close(&pair);
	}
}

/* --- Shared receive queues. --- */

static void ids_have_shared_receive_queues(void **state)
{
	(void)state;
	for (enum transport t = 0; t < NUM_TRANSPORTS; t++) {
		static char in[32], out[32] = "to whom it concerns";
		struct ibv_srq_init_attr srq_attr = { .attr = { .max_wr = 8, .max_sge = 1 } };
		struct ibv_qp_init_attr attr = attr_of(IBV_QPT_RC);
		struct rdma_conn_param param = pair_param(NULL, 0);
		struct ibv_mr *in_mr, *out_mr;
		struct rdma_cm_event *event;
		struct ibv_wc wc;
		struct pair pair;

		print_message("%s\n", transport_name[t]);
		memset(in, 0, sizeof(in));
		pair_open(&pair, t, RDMA_PS_TCP);
		assert_errno(rdma_create_srq(pair.client, NULL, &srq_attr), EINVAL);
		pair_resolve(&pair);
		assert_int_equal(rdma_create_srq(pair.client, NULL, &srq_attr), 0);
		assert_non_null(pair.client->srq);
		assert_errno(rdma_create_srq(pair.client, NULL, &srq_attr), EINVAL);
		assert_int_equal(rdma_create_qp(pair.client, NULL, &attr), 0);
		assert_ptr_equal(pair.client->qp->srq, pair.client->srq);
		event = pair_request(&pair, &param);
		assert_int_equal(event->param.conn.srq, t == IWARP ? 0 : 1);
		rdma_ack_cm_event(event);
		pair_server_qp(&pair);
		assert_int_equal(rdma_accept(pair.server, &param), 0);
		pair_take(pair.client_channel, RDMA_CM_EVENT_ESTABLISHED, 0);
		pair_take(pair.server_channel, RDMA_CM_EVENT_ESTABLISHED, 0);

		in_mr = rdma_reg_msgs(pair.client, in, sizeof(in));
		out_mr = rdma_reg_msgs(pair.server, out, sizeof(out));
		assert_int_equal(rdma_post_recv(pair.client, in, in, sizeof(in), in_mr), 0);
		assert_int_equal(rdma_post_send(pair.server, NULL, out, sizeof(out), out_mr, 0), 0);
		assert_int_equal(rdma_get_recv_comp(pair.client, &wc), 1);
		assert_int_equal(wc.status, IBV_WC_SUCCESS);
		assert_ptr_equal(wc.wr_id, in);
		assert_string_equal(in, out);
		rdma_dereg_mr(in_mr);
		rdma_dereg_mr(out_mr);
		rdma_destroy_qp(pair.client);
		rdma_destroy_srq(pair.client);
		assert_null(pair.client->srq);
		pair_close(&pair);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_active_id_gets_a_plain_one),
		cmocka_unit_test(a_passive_id_gets_what_the_request_asks_for),
		cmocka_unit_test(datagram_ones_work_at_once),
		cmocka_unit_test(attributes_and_their_masks),
		cmocka_unit_test(the_attributes_of_a_response),
		cmocka_unit_test(programs_bring_their_own),
		cmocka_unit_test(a_late_queue_pair_is_in_the_way),
		cmocka_unit_test(ids_have_shared_receive_queues),
	};

	return cmocka_run_group_tests(tests, pair_group_setup, NULL);
}
