/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A connection over the InfiniBand CM from REQ to TIMEWAIT_EXIT, on RoCE and
 * InfiniBand: what is on the wire, what the events say, and when.
 */
#include "config.h"

#include <endian.h>
#include <errno.h>
#include <string.h>

#include "ibcm_world.h"

static struct polycm_conn_param full_param(const char *data, uint32_t qp_num)
{
	return (struct polycm_conn_param){
		.size = sizeof(struct polycm_conn_param),
		.private_data = data,
		.private_data_len = (uint8_t)strlen(data),
		.responder_resources = 9,
		.initiator_depth = 4,
		.flow_control = 3,	/* its lowest bit is sent */
		.retry_count = 200,	/* clamped, not masked */
		.rnr_retry_count = 99,
		.srq = 1,
		.qp_num = 0xab000000 | qp_num,	/* 24 bits are sent */
		.ece = { .vendor_id = 0x15b3, .options = 0x30000002 },
	};
}

static void check_zero_from(const uint8_t *data, size_t from, size_t to)
{
	for (size_t i = from; i < to; i++)
		assert_int_equal(data[i], 0);
}

static void check_req(const struct cm_msg *msg, struct sim_id *client, bool ib)
{
	const struct cm_req *req = &msg->req;
	struct cma_hdr_info hdr;

	assert_int_equal(msg->attr_id, CM_REQ);
	assert_uint_equal(msg->attr_mod, 0x30000002);
	assert_uint_equal((uint32_t)msg->tid, req->local_comm_id);
	assert_uint_equal(req->local_comm_id, client->ib->local_id);
	assert_uint_equal(req->vendor_id, 0x15b3);
	assert_uint_equal(req->service_id, 0x0000000001061d2fu);
	assert_uint_equal(req->local_ca_guid, be64toh(world.client_device->vdev.node_guid));
	assert_uint_equal(req->local_qpn, 0x111);
	assert_uint_equal(req->responder_resources, 9);
	assert_uint_equal(req->initiator_depth, 4);
	assert_uint_equal(req->remote_cm_response_timeout, 20);
	assert_uint_equal(req->local_cm_response_timeout, 20);
	assert_uint_equal(req->max_cm_retries, 15);
	assert_uint_equal(req->transport_service_type, CM_TRANSPORT_RC);
	assert_true(req->end_to_end_flow_control);
	assert_uint_equal(req->starting_psn, client->starting_psn);
	assert_uint_equal(req->retry_count, 7);
	assert_uint_equal(req->rnr_retry_count, 7);
	assert_uint_equal(req->pkey, 0xffff);
	assert_uint_equal(req->path_mtu, client->path_mtu);
	assert_true(req->srq);

	assert_memory_equal(&req->primary.local_gid, &client->sgid, sizeof(client->sgid));
	assert_memory_equal(&req->primary.remote_gid, &client->dgid, sizeof(client->dgid));
	assert_int_equal(req->primary.subnet_local, ib);
	assert_uint_equal(req->primary.local_lid, ib ? world.client_device->ports[0].lid : 0xffff);
	assert_uint_equal(req->primary.remote_lid, ib ? world.server_device->ports[0].lid : 0xffff);
	assert_uint_equal(req->primary.hop_limit, ib ? 0 : 64);
	assert_uint_equal(req->primary.local_ack_timeout, ib ? 19 : 17);
	assert_uint_equal(req->alternate.local_lid, 0);

	assert_int_equal(cma_hdr_decode(req->private_data, sizeof(req->private_data), &hdr), 0);
	assert_int_equal(hdr.ip_version, 4);
	assert_memory_equal(&hdr.src.in.sin_addr, &client->src.in.sin_addr, 4);
	assert_uint_equal(hdr.src.in.sin_port, client->src.in.sin_port);
	assert_memory_equal(&hdr.dst.in.sin_addr, &client->dst.in.sin_addr, 4);
	assert_memory_equal(req->private_data + 36, "hello", 5);
	check_zero_from(req->private_data, 41, 92);
}

static void check_request_event(const struct world_event *seen)
{
	const struct rdma_conn_param *conn = &seen->event.param.conn;

	assert_false(seen->event.is_ud);
	assert_uint_equal(conn->private_data_len, 56);
	assert_memory_equal(seen->private_data, "hello", 5);
	check_zero_from(seen->private_data, 5, 56);
	/* From the passive side's point of view. */
	assert_uint_equal(conn->responder_resources, 4);
	assert_uint_equal(conn->initiator_depth, 9);
	assert_uint_equal(conn->flow_control, 1);
	assert_uint_equal(conn->retry_count, 7);
	assert_uint_equal(conn->rnr_retry_count, 7);
	assert_uint_equal(conn->srq, 1);
	assert_uint_equal(conn->qp_num, 0x111);
	assert_uint_equal(seen->event.ece.vendor_id, 0x15b3);
	assert_uint_equal(seen->event.ece.options, 0x30000002);
}

static void check_rep(const struct cm_msg *msg, struct sim_id *server, bool ib)
{
	const struct cm_rep *rep = &msg->rep;

	assert_uint_equal(msg->tid, world_mad(CM_REQ, 0)->msg.tid);
	assert_uint_equal(msg->attr_mod, 7);
	assert_uint_equal(rep->local_comm_id, server->ib->local_id);
	assert_uint_equal(rep->remote_comm_id, world_mad(CM_REQ, 0)->msg.req.local_comm_id);
	assert_uint_equal(rep->local_qpn, 0x222);
	assert_uint_equal(rep->starting_psn, server->starting_psn);
	assert_uint_equal(rep->vendor_id, 0x15b3);
	assert_uint_equal(rep->responder_resources, 2);
	assert_uint_equal(rep->initiator_depth, 6);
	assert_uint_equal(rep->target_ack_delay, ib ? 16 : 15);
	assert_uint_equal(rep->failover_accepted, 0);
	assert_false(rep->end_to_end_flow_control);
	assert_uint_equal(rep->rnr_retry_count, 7);
	assert_false(rep->srq);
	assert_uint_equal(rep->local_ca_guid, be64toh(world.server_device->vdev.node_guid));
	assert_memory_equal(rep->private_data, "welcome", 7);
	check_zero_from(rep->private_data, 7, 196);
}

static void check_response_event(const struct world_event *seen)
{
	const struct rdma_conn_param *conn = &seen->event.param.conn;

	assert_uint_equal(conn->private_data_len, 196);
	assert_memory_equal(seen->private_data, "welcome", 7);
	check_zero_from(seen->private_data, 7, 196);
	assert_uint_equal(conn->responder_resources, 6);
	assert_uint_equal(conn->initiator_depth, 2);
	assert_uint_equal(conn->flow_control, 0);
	assert_uint_equal(conn->retry_count, 0);
	assert_uint_equal(conn->rnr_retry_count, 7);
	assert_uint_equal(conn->srq, 0);
	assert_uint_equal(conn->qp_num, 0x222);
	assert_uint_equal(seen->event.ece.vendor_id, 0x15b3);
	assert_uint_equal(seen->event.ece.options, 7);
}

static void accept_request(struct polycm_id *server)
{
	struct polycm_conn_param param = full_param("welcome", 0x222);

	param.responder_resources = 2;
	param.initiator_depth = 6;
	param.flow_control = 2;
	param.srq = 0;
	param.ece.options = 7;
	assert_int_equal(world_call(server, accept, &param), 0);
	world_run(LATENCY);
}

/* Between two established ids: DREQ, the server's answer, and the ends of TIMEWAIT. */
static void check_disconnect(struct pair *pair, uint64_t timewait_ms)
{
	const struct world_event *seen;
	uint64_t start = sim_now();

	assert_int_equal(world_call(pair->client, disconnect), 0);
	world_run(LATENCY);
	assert_uint_equal(world_mad(CM_DREQ, 0)->msg.dreq.remote_qpn, 0x222);
	seen = world_expect(pair->server, RDMA_CM_EVENT_DISCONNECTED, 0);
	assert_uint_equal(seen->event.param.conn.private_data_len, 0);
	assert_null(seen->event.param.conn.private_data);

	/* No DREP until the server's program says so. */
	world_run_ms(1000);
	assert_uint_equal(world_count(CM_DREP), 0);
	world_expect_none(pair->client);
	assert_int_equal(world_call(pair->server, disconnect), 0);
	world_run(LATENCY);
	assert_uint_equal(world_count(CM_DREP), 1);
	assert_uint_equal(world_mad(CM_DREP, 0)->msg.tid, world_mad(CM_DREQ, 0)->msg.tid);
	seen = world_expect(pair->client, RDMA_CM_EVENT_DISCONNECTED, 0);
	assert_uint_equal(seen->time - start, SIM_MS(1000) + 2 * LATENCY);

	world_run_ms(timewait_ms);
	seen = world_expect(pair->server, RDMA_CM_EVENT_TIMEWAIT_EXIT, 0);
	assert_uint_equal(seen->time - start, SIM_MS(1000 + timewait_ms) + LATENCY);
	seen = world_expect(pair->client, RDMA_CM_EVENT_TIMEWAIT_EXIT, 0);
	assert_uint_equal(seen->time - start, SIM_MS(1000 + timewait_ms) + 2 * LATENCY);
	assert_int_equal(world_state(pair->client), IBCM_IDLE);
}

static void check_handshake(bool ib)
{
	struct polycm_conn_param param = full_param("hello", 0x111);
	const struct world_event *seen;
	struct pair pair;

	pair.listener = world_listen(RDMA_PS_TCP);
	pair.client = world_route(RDMA_PS_TCP, PORT);
	assert_int_equal(world_call(pair.client, connect, &param), 0);
	assert_int_equal(world_state(pair.client), IBCM_REQ_SENT);
	world_run(LATENCY);
	check_req(&world_mad(CM_REQ, 0)->msg, world_sim(pair.client), ib);
	seen = world_expect(pair.listener, RDMA_CM_EVENT_CONNECT_REQUEST, 0);
	check_request_event(seen);
	pair.server = seen->event.child;
	assert_int_equal(world_state(pair.server), IBCM_MRA_REQ_SENT);

	accept_request(pair.server);
	assert_int_equal(world_state(pair.server), IBCM_REP_SENT);
	check_rep(&world_mad(CM_REP, 0)->msg, world_sim(pair.server), ib);
	check_response_event(world_expect(pair.client, RDMA_CM_EVENT_CONNECT_RESPONSE, 0));
	assert_int_equal(world_state(pair.client), IBCM_MRA_REP_SENT);

	assert_int_equal(world_call(pair.client, establish), 0);
	assert_int_equal(world_state(pair.client), IBCM_ESTABLISHED);
	world_expect_none(pair.client);
	world_run(LATENCY);
	seen = world_expect(pair.server, RDMA_CM_EVENT_ESTABLISHED, 0);
	assert_uint_equal(seen->event.param.conn.private_data_len, 0);
	assert_null(seen->event.param.conn.private_data);
	assert_int_equal(world_state(pair.server), IBCM_ESTABLISHED);
	assert_uint_equal(world.num_mads, 3);

	/* An established connection is quiet, and needs no buffer. */
	world_run_ms(1000000);
	assert_uint_equal(world.num_mads, 3);
	assert_null(world_sim(pair.client)->ib->repeating);
	assert_null(world_sim(pair.server)->ib->repeating);

	check_disconnect(&pair, ib ? 2048 : 512);
	assert_uint_equal(world.num_mads, 5);
	world_end(&pair);
	world_run_ms(100000);
	assert_uint_equal(world.num_mads, 5);
}

static void test_roce(void **state)
{
	(void)state;
	check_handshake(false);
}

static void test_ib(void **state)
{
	(void)state;
	check_handshake(true);
}

/* The server's node takes over the request's path. */
static void test_passive_path(void **state)
{
	struct pair pair = world_requested();
	struct sim_id *client = world_sim(pair.client), *server = world_sim(pair.server);

	(void)state;
	assert_memory_equal(&server->sgid, &client->dgid, sizeof(client->dgid));
	assert_memory_equal(&server->dgid, &client->sgid, sizeof(client->sgid));
	assert_uint_equal(server->path_mtu, client->path_mtu);
	assert_uint_equal(server->packet_lifetime, 16);
	assert_memory_equal(&server->dst.in.sin_addr, &client->src.in.sin_addr, 4);
	assert_uint_equal(server->dst.in.sin_port, client->src.in.sin_port);
	assert_memory_equal(&server->src.in.sin_addr, &client->dst.in.sin_addr, 4);
	assert_uint_equal(server->src.in.sin_port, client->dst.in.sin_port);
	world_end(&pair);
}

static void test_rep_data_absent(void **state)
{
	struct pair pair = world_accepted();

	(void)state;
	check_zero_from(world_mad(CM_REP, 0)->msg.rep.private_data, 0, 196);
	check_zero_from(world_mad(CM_REQ, 0)->msg.req.private_data, 36, 92);
	world_end(&pair);
}

/* Communication ids count up and are not used again soon. */
static void test_comm_ids(void **state)
{
	struct polycm_id *id;
	uint32_t last = 0, local_id;

	(void)state;
	for (int i = 0; i < 5; i++) {
		id = world_route(RDMA_PS_TCP, PORT);
		assert_int_equal(world_connect(id, 1), 0);
		local_id = world_sim(id)->ib->local_id;
		assert_uint_equal(sim_slot_of_conn(local_id), sim_self_slot());
		if (i)
			assert_in_range((local_id - last) & 0x3fffff, 1, 2);
		last = local_id;
		world_destroy(id);
	}
	world_run_ms(1);
}

/* Many connections at once, through growing tables. */
static void test_many(void **state)
{
	enum { MANY = 3000 };
	static struct polycm_id *clients[MANY], *servers[MANY];
	struct polycm_id *listener = world_listen(RDMA_PS_TCP);

	(void)state;
	world.keep_mads = false;
	for (uint32_t i = 0; i < MANY; i++) {
		clients[i] = world_route(RDMA_PS_TCP, PORT);
		assert_int_equal(world_connect(clients[i], i + 1), 0);
		world_run(LATENCY);
		servers[i] = world_child(listener);
		assert_int_equal(world_accept(servers[i], i + 1), 0);
		world_run(LATENCY);
		world_expect(clients[i], RDMA_CM_EVENT_CONNECT_RESPONSE, 0);
		assert_int_equal(world_call(clients[i], establish), 0);
		world_run(LATENCY);
		world_expect(servers[i], RDMA_CM_EVENT_ESTABLISHED, 0);
	}
	assert_uint_equal(ibcm_table_count(IBCM_BY_LOCAL), 2 * MANY);
	assert_uint_equal(ibcm_table_count(IBCM_BY_REMOTE), 2 * MANY);
	assert_uint_equal(ibcm_table_count(IBCM_BY_QPN), 2 * MANY);
	for (uint32_t i = 0; i < MANY; i++) {
		world_destroy(clients[i]);
		world_run(LATENCY);
		world_expect(servers[i], RDMA_CM_EVENT_DISCONNECTED, 0);
		world_destroy(servers[i]);
	}
	world_destroy(listener);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_roce, world_open_roce, world_close),
		cmocka_unit_test_setup_teardown(test_ib, world_open_ib, world_close),
		cmocka_unit_test_setup_teardown(test_passive_path, world_open_roce, world_close),
		cmocka_unit_test_setup_teardown(test_rep_data_absent, world_open_roce, world_close),
		cmocka_unit_test_setup_teardown(test_comm_ids, world_open_roce, world_close),
		cmocka_unit_test_setup_teardown(test_many, world_open_roce, world_close),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
