/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The attributes that bring a QP along with its connection: masks, values and
 * the states in which they may be asked for.
 */
#include "config.h"

#include <errno.h>
#include <string.h>

#include "ibcm_world.h"

#define MASK_INIT (IBV_QP_STATE | IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX | IBV_QP_PORT)
#define MASK_RTR							\
	(IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |	\
	 IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER)
#define MASK_RTS							\
	(IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |	\
	 IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_TIMEOUT)

static struct ibv_qp_attr attr_of(struct polycm_id *id, enum ibv_qp_state qp_state, int want_mask)
{
	struct ibv_qp_attr attr;
	int mask = 0;

	/* Whatever was there is overwritten. */
	memset(&attr, 0xa5, sizeof(attr));
	attr.qp_state = qp_state;
	assert_int_equal(world_call(id, init_qp_attr, &attr, &mask), 0);
	assert_int_equal(mask, want_mask);
	assert_int_equal(attr.qp_state, qp_state);
	return attr;
}

static void refused(struct polycm_id *id, enum ibv_qp_state qp_state)
{
	struct ibv_qp_attr attr = { .qp_state = qp_state, .port_num = 9 };
	int mask = 77;

	assert_int_equal(world_call(id, init_qp_attr, &attr, &mask), -EINVAL);
	assert_int_equal(mask, 77);
	assert_int_equal(attr.port_num, 9);
}

static void check_init(struct polycm_id *id, unsigned int access)
{
	struct ibv_qp_attr attr = attr_of(id, IBV_QPS_INIT, MASK_INIT);

	assert_int_equal(attr.pkey_index, 0);
	assert_int_equal(attr.port_num, 1);
	assert_uint_equal(attr.qp_access_flags, access);
}

/* What one end's QP must be set to. */
struct want {
	uint32_t dest_qp_num, rq_psn, sq_psn;
	uint8_t max_dest_rd_atomic, max_rd_atomic, retry_cnt, rnr_retry, timeout;
	const union ibv_gid *dgid;
	uint16_t dlid;
};

static void check_ah(const struct ibv_ah_attr *ah, const struct want *want, bool ib)
{
	assert_int_equal(ah->port_num, 1);
	assert_int_equal(ah->sl, 0);
	assert_int_equal(ah->src_path_bits, 0);
	assert_int_equal(ah->is_global, !ib);
	assert_uint_equal(ah->dlid, ib ? want->dlid : 0);
	if (ib)
		return;
	assert_memory_equal(&ah->grh.dgid, want->dgid, sizeof(*want->dgid));
	assert_int_equal(ah->grh.hop_limit, 64);
	assert_int_equal(ah->grh.traffic_class, 0);
	assert_int_not_equal(ah->grh.flow_label, 0);
}

static void check_rtr(struct polycm_id *id, const struct want *want, bool ib)
{
	struct ibv_qp_attr attr = attr_of(id, IBV_QPS_RTR, MASK_RTR);

	check_ah(&attr.ah_attr, want, ib);
	assert_int_equal(attr.path_mtu, world_sim(id)->path_mtu);
	assert_uint_equal(attr.dest_qp_num, want->dest_qp_num);
	assert_uint_equal(attr.rq_psn, want->rq_psn);
	assert_int_equal(attr.max_dest_rd_atomic, want->max_dest_rd_atomic);
	assert_int_equal(attr.min_rnr_timer, 0);
}

static void check_rts(struct polycm_id *id, const struct want *want)
{
	struct ibv_qp_attr attr = attr_of(id, IBV_QPS_RTS, MASK_RTS);

	assert_uint_equal(attr.sq_psn, want->sq_psn);
	assert_int_equal(attr.retry_cnt, want->retry_cnt);
	assert_int_equal(attr.rnr_retry, want->rnr_retry);
	assert_int_equal(attr.max_rd_atomic, want->max_rd_atomic);
	assert_int_equal(attr.timeout, want->timeout);
}

/* On RoCE with both kinds of flushes, which not all headers have names for. */
#define ACCESS_ALL_IB (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC)
#define ACCESS_ALL (ACCESS_ALL_IB | 0x300)

static struct polycm_conn_param connect_param(void)
{
	return (struct polycm_conn_param){
		.size = sizeof(struct polycm_conn_param),
		.responder_resources = 9, .initiator_depth = 4,
		.retry_count = 5, .rnr_retry_count = 3, .qp_num = 0x111,
	};
}

static struct polycm_conn_param accept_param(void)
{
	return (struct polycm_conn_param){
		.size = sizeof(struct polycm_conn_param),
		.responder_resources = 2, .initiator_depth = 6,
		.retry_count = 1, .rnr_retry_count = 6, .qp_num = 0x222,
	};
}

static void check_sides(bool ib)
{
	struct polycm_conn_param connect = connect_param(), accept = accept_param();
	struct pair pair = { .listener = world_listen(RDMA_PS_TCP) };
	const unsigned int access = ib ? ACCESS_ALL_IB : ACCESS_ALL;
	struct want active, passive;

	pair.client = world_route(RDMA_PS_TCP, PORT);
	/* Before connecting an active id gives no access yet, whatever is asked for. */
	attr_of(pair.client, IBV_QPS_RTS, MASK_INIT);
	check_init(pair.client, 0);
	assert_int_equal(world_call(pair.client, connect, &connect), 0);
	check_init(pair.client, access);
	refused(pair.client, IBV_QPS_RTR);
	refused(pair.client, IBV_QPS_RTS);
	world_run(LATENCY);
	pair.server = world_child(pair.listener);

	/* With the peer's responder's delay: REQ and REP carry each other's. */
	passive = (struct want){
		.dest_qp_num = 0x111,
		.rq_psn = world_sim(pair.server)->starting_psn,
		.sq_psn = world_sim(pair.client)->starting_psn,
		.max_dest_rd_atomic = 4, .max_rd_atomic = 9,
		.retry_cnt = 5, .rnr_retry = 3, .timeout = ib ? 19 : 17,
		.dgid = &world_sim(pair.client)->sgid,
		.dlid = world.client_device->ports[0].lid,
	};
	check_init(pair.server, access);
	check_rtr(pair.server, &passive, ib);
	check_rts(pair.server, &passive);
	refused(pair.server, IBV_QPS_SQD);

	assert_int_equal(world_call(pair.server, accept, &accept), 0);
	passive.max_dest_rd_atomic = 2;
	passive.max_rd_atomic = 6;
	check_rtr(pair.server, &passive, ib);
	check_rts(pair.server, &passive);
	world_run(LATENCY);

	active = (struct want){
		.dest_qp_num = 0x222,
		.rq_psn = world_sim(pair.client)->starting_psn,
		.sq_psn = world_sim(pair.server)->starting_psn,
		.max_dest_rd_atomic = 6, .max_rd_atomic = 2,
		.retry_cnt = 5, .rnr_retry = 6, .timeout = ib ? 19 : 17,
		.dgid = &world_sim(pair.client)->dgid,
		.dlid = world.server_device->ports[0].lid,
	};
	check_init(pair.client, access);
	check_rtr(pair.client, &active, ib);
	check_rts(pair.client, &active);

	assert_int_equal(world_call(pair.client, establish), 0);
	world_run(LATENCY);
	check_rts(pair.client, &active);
	check_rts(pair.server, &passive);
	assert_int_equal(world_call(pair.client, disconnect), 0);
	refused(pair.client, IBV_QPS_RTS);
	world_end(&pair);
	world_run_ms(1);
}

static void test_roce(void **state)
{
	(void)state;
	check_sides(false);
}

static void test_ib(void **state)
{
	(void)state;
	check_sides(true);
}

/* Nobody may read from a side that keeps no responder resources. */
static void test_access_flags(void **state)
{
	struct polycm_conn_param param = connect_param();
	struct pair pair = { .listener = world_listen(RDMA_PS_TCP) };

	(void)state;
	param.initiator_depth = 0;
	pair.client = world_route(RDMA_PS_TCP, PORT);
	assert_int_equal(world_call(pair.client, connect, &param), 0);
	check_init(pair.client, ACCESS_ALL);
	world_run(LATENCY);
	pair.server = world_child(pair.listener);
	check_init(pair.server, IBV_ACCESS_REMOTE_WRITE);
	param = accept_param();
	param.initiator_depth = 0;
	assert_int_equal(world_call(pair.server, accept, &param), 0);
	world_run(LATENCY);
	check_init(pair.client, IBV_ACCESS_REMOTE_WRITE);
	check_init(pair.server, ACCESS_ALL);
	world_end(&pair);
	world_run_ms(1);
}

/* Each QP waits with the other side's ACK delay in mind. */
static void test_peer_ack_delay(void **state)
{
	struct pair pair;

	(void)state;
	world.client_device->attr.local_ca_ack_delay = 18;
	world.server_device->attr.local_ca_ack_delay = 20;
	pair = world_established();
	assert_uint_equal(attr_of(pair.server, IBV_QPS_RTS, MASK_RTS).timeout, 19);
	assert_uint_equal(attr_of(pair.client, IBV_QPS_RTS, MASK_RTS).timeout, 20);
	world_end(&pair);
	world_run_ms(1);
}

static void test_own_ack_timeout(void **state)
{
	struct pair pair = { .listener = world_listen(RDMA_PS_TCP) };
	uint8_t timeout = 10;

	(void)state;
	pair.client = world_route(RDMA_PS_TCP, PORT);
	assert_int_equal(world_call(pair.client, set_option, RDMA_OPTION_ID,
				    RDMA_OPTION_ID_ACK_TIMEOUT, &timeout, sizeof(timeout)), 0);
	assert_int_equal(world_connect(pair.client, 1), 0);
	world_run(LATENCY);
	pair.server = world_child(pair.listener);
	assert_int_equal(world_accept(pair.server, 2), 0);
	world_run(LATENCY);
	/* This side only, and not negotiated. */
	assert_uint_equal(attr_of(pair.client, IBV_QPS_RTS, MASK_RTS).timeout, 10);
	assert_uint_equal(attr_of(pair.server, IBV_QPS_RTS, MASK_RTS).timeout, 17);
	world_end(&pair);
	world_run_ms(1);
}

/* It also decides the packet lifetime; five bits of that are the most that a wait can be. */
static void test_excessive_ack_timeout(void **state)
{
	struct polycm_id *client = world_id(RDMA_PS_TCP);
	uint8_t timeout = 255;

	(void)state;
	assert_int_equal(world_call(client, set_option, RDMA_OPTION_ID,
				    RDMA_OPTION_ID_ACK_TIMEOUT, &timeout, sizeof(timeout)), 0);
	world_route_from(world.client, client, "10.0.0.2", PORT);
	assert_int_equal(world_connect(client, 1), 0);
	assert_uint_equal(world_sim(client)->ib->timeout_ms, 2 * (1u << 23) + 4096);
	world_destroy(client);
	world_run_ms(1);
}

static void test_illegal_states(void **state)
{
	struct pair pair = world_requested();

	(void)state;
	assert_int_equal(world_call(pair.server, reject, NULL, 0, 0), 0);
	world_run(LATENCY);
	for (int qp_state = IBV_QPS_INIT; qp_state <= IBV_QPS_RTS; qp_state++) {
		refused(pair.server, (enum ibv_qp_state)qp_state);
		refused(pair.client, (enum ibv_qp_state)qp_state);
	}
	world_end(&pair);
}

/* UD: the same for every state, before and after connecting. */
static void test_ud(void **state)
{
	struct pair pair = { .listener = world_listen(RDMA_PS_UDP) };
	int mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY;

	(void)state;
	pair.client = world_route(RDMA_PS_UDP, PORT);
	assert_uint_equal(attr_of(pair.client, IBV_QPS_INIT, mask).qkey, RDMA_UDP_QKEY);
	assert_int_equal(world_connect(pair.client, 1), 0);
	assert_uint_equal(attr_of(pair.client, IBV_QPS_RTR, mask).qkey, RDMA_UDP_QKEY);
	world_run(LATENCY);
	pair.server = world_child(pair.listener);
	assert_uint_equal(attr_of(pair.server, IBV_QPS_INIT, mask).qkey, RDMA_UDP_QKEY);
	assert_int_equal(world_accept(pair.server, 2), 0);
	world_run(LATENCY);
	world_expect(pair.client, RDMA_CM_EVENT_ESTABLISHED, 0);
	world_end(&pair);
}

/* An id without a device has nothing to say. */
static void test_no_device(void **state)
{
	struct polycm_id *id = world_id(RDMA_PS_TCP);

	(void)state;
	refused(id, IBV_QPS_INIT);
	world_destroy(id);
}

/* --- XRC and UC. --- */

static void check_type(enum ibv_qp_type active, enum ibv_qp_type passive, int client_rtr,
		       int client_rts, int server_rtr, int server_rts)
{
	struct polycm_id *listener = world_typed_id(RDMA_PS_IB, passive), *client, *server;
	struct sockaddr_in in = { .sin_family = AF_INET, .sin_port = htobe16(PORT) };
	const struct world_event *seen;

	in.sin_addr.s_addr = htobe32(0x0a000002);
	assert_int_equal(world_call(listener, bind, (struct sockaddr *)&in), 0);
	assert_int_equal(world_call(listener, listen, 1), 0);
	client = world_route_from(world.client, world_typed_id(RDMA_PS_IB, active), "10.0.0.2",
				  PORT);
	assert_int_equal(world_connect(client, 0x11), 0);
	world_run(LATENCY);
	server = world_child(listener);
	attr_of(server, IBV_QPS_RTR, server_rtr);
	attr_of(server, IBV_QPS_RTS, server_rts);
	assert_int_equal(world_accept(server, 0x22), 0);
	world_run(LATENCY);
	seen = world_expect(client, RDMA_CM_EVENT_CONNECT_RESPONSE, 0);
	assert_uint_equal(seen->event.param.conn.qp_num, 0x22);
	assert_uint_equal(attr_of(client, IBV_QPS_RTR, client_rtr).dest_qp_num, 0x22);
	attr_of(client, IBV_QPS_RTS, client_rts);
	world_destroy(client);
	world_destroy(server);
	world_destroy(listener);
	world_run_ms(1);
}

#define MASK_RTR_ANY (IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN)
#define MASK_RTS_ANY (IBV_QP_STATE | IBV_QP_SQ_PSN)

static void test_uc(void **state)
{
	(void)state;
	check_type(IBV_QPT_UC, IBV_QPT_UC, MASK_RTR_ANY, MASK_RTS_ANY, MASK_RTR_ANY, MASK_RTS_ANY);
	assert_uint_equal(world_mad(CM_REQ, 0)->msg.req.transport_service_type, CM_TRANSPORT_UC);
}

static void test_xrc(void **state)
{
	const struct cm_rep *rep;

	(void)state;
	check_type(IBV_QPT_XRC_SEND, IBV_QPT_XRC_RECV, MASK_RTR_ANY, MASK_RTS, MASK_RTR,
		   MASK_RTS_ANY | IBV_QP_TIMEOUT);
	assert_uint_equal(world_mad(CM_REQ, 0)->msg.req.transport_service_type,
			  CM_TRANSPORT_EXTENDED);
	assert_uint_equal(world_mad(CM_REQ, 0)->msg.req.extended_transport_type,
			  CM_EXTENDED_TRANSPORT_XRC);
	assert_uint_equal(world_mad(CM_REQ, 0)->msg.req.responder_resources, 0);
	rep = &world_mad(CM_REP, 0)->msg.rep;
	assert_uint_equal(rep->local_eecn, 0x22);
	assert_uint_equal(rep->local_qpn, 0);
	assert_true(rep->srq);
}

#define ROCE(test) cmocka_unit_test_setup_teardown(test, world_open_roce, world_close)

int main(void)
{
	const struct CMUnitTest tests[] = {
		ROCE(test_roce),
		cmocka_unit_test_setup_teardown(test_ib, world_open_ib, world_close),
		ROCE(test_access_flags),
		ROCE(test_peer_ack_delay),
		ROCE(test_own_ack_timeout),
		ROCE(test_excessive_ack_timeout),
		ROCE(test_illegal_states),
		ROCE(test_ud),
		ROCE(test_no_device),
		ROCE(test_uc),
		ROCE(test_xrc),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
