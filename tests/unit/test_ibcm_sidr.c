/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * UD ids over the InfiniBand CM: SIDR_REQ and SIDR_REP, their statuses, Q_Keys
 * and time-outs.
 */
#include "config.h"

#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

#include "ibcm_world.h"

#define QKEY 0x01234567u

static struct pair requested_of(enum rdma_port_space ps)
{
	struct pair pair = { .listener = world_listen(ps) };

	pair.client = world_route(ps, PORT);
	assert_int_equal(world_connect(pair.client, 0x11), 0);
	world_run(LATENCY);
	pair.server = world_child(pair.listener);
	return pair;
}

static void test_request(void **state)
{
	struct pair pair = { .listener = world_listen(RDMA_PS_UDP) };
	struct polycm_conn_param param = world_param(0x11);
	const struct world_event *seen;
	const struct cm_msg *msg;
	uint8_t none[175] = { 0 };

	(void)state;
	pair.client = world_route(RDMA_PS_UDP, PORT);
	param.private_data = "hello";
	param.private_data_len = 5;
	assert_int_equal(world_call(pair.client, connect, &param), 0);
	assert_int_equal(world_state(pair.client), IBCM_SIDR_REQ_SENT);
	world_run(LATENCY);

	msg = &world_mad(CM_SIDR_REQ, 0)->msg;
	assert_uint_equal(msg->attr_mod, 0);
	assert_uint_equal(msg->sidr_req.request_id, world_sim(pair.client)->ib->local_id);
	assert_uint_equal(msg->sidr_req.pkey, 0xffff);
	assert_uint_equal(msg->sidr_req.service_id, 0x0000000001111d2fu);
	assert_memory_equal(msg->sidr_req.private_data + 36, "hello", 5);

	seen = world_expect(pair.listener, RDMA_CM_EVENT_CONNECT_REQUEST, 0);
	assert_true(seen->event.is_ud);
	assert_uint_equal(seen->event.param.ud.private_data_len, 180);
	assert_memory_equal(seen->private_data, "hello", 5);
	assert_memory_equal(seen->private_data + 5, none, sizeof(none));
	assert_uint_equal(seen->event.param.ud.qp_num, 0);
	assert_uint_equal(seen->event.param.ud.qkey, 0);
	pair.server = seen->event.child;
	assert_int_equal(world_state(pair.server), IBCM_SIDR_REQ_RCVD);
	assert_uint_equal(world_sim(pair.server)->dst.in.sin_port,
			  world_sim(pair.client)->src.in.sin_port);
	world_end(&pair);
	world_run_ms(1);
}

static void check_accept(bool ib)
{
	struct pair pair = requested_of(RDMA_PS_UDP);
	struct polycm_conn_param param = world_param(0xff000222);
	const struct world_event *seen;
	const struct rdma_ud_param *ud;
	const struct cm_sidr_rep *rep;

	param.private_data = "welcome";
	param.private_data_len = 7;
	param.ece = (struct polycm_ece){ .vendor_id = 0x15b3, .options = 9 };
	assert_int_equal(world_call(pair.server, accept, &param), 0);
	assert_int_equal(world_state(pair.server), IBCM_IDLE);
	world_run(LATENCY);
	rep = &world_mad(CM_SIDR_REP, 0)->msg.sidr_rep;
	assert_uint_equal(world_mad(CM_SIDR_REP, 0)->msg.attr_mod, 9);
	assert_uint_equal(world_mad(CM_SIDR_REP, 0)->msg.tid,
			  world_mad(CM_SIDR_REQ, 0)->msg.tid);
	assert_uint_equal(rep->request_id, world_sim(pair.client)->ib->local_id);
	assert_uint_equal(rep->status, 0);
	assert_uint_equal(rep->info_length, 0);
	assert_uint_equal(rep->qpn, 0x222);
	assert_uint_equal(rep->vendor_id, 0x15b3);
	assert_uint_equal(rep->service_id, 0x0000000001111d2fu);
	assert_uint_equal(rep->qkey, QKEY);

	seen = world_expect(pair.client, RDMA_CM_EVENT_ESTABLISHED, 0);
	ud = &seen->event.param.ud;
	assert_true(seen->event.is_ud);
	assert_uint_equal(ud->private_data_len, 136);
	assert_memory_equal(seen->private_data, "welcome", 8);
	assert_uint_equal(ud->qp_num, 0x222);
	assert_uint_equal(ud->qkey, QKEY);
	assert_uint_equal(ud->ah_attr.port_num, 1);
	assert_int_equal(ud->ah_attr.is_global, !ib);
	if (ib) {
		assert_uint_equal(ud->ah_attr.dlid, world.server_device->ports[0].lid);
	} else {
		assert_memory_equal(&ud->ah_attr.grh.dgid, &world_sim(pair.client)->dgid, 16);
		assert_uint_equal(ud->ah_attr.grh.hop_limit, 64);
	}
	/* The passive side gets no event, and its part is over. */
	world_expect_none(pair.server);
	assert_int_equal(world_call(pair.server, accept, &param), -EINVAL);
	assert_int_equal(world_call(pair.client, disconnect), 0);
	assert_int_equal(world_call(pair.server, disconnect), 0);
	world_run_ms(1000000);
	assert_uint_equal(world.num_mads, 2);
	world_end(&pair);
	world_run_ms(1);
	assert_uint_equal(world.num_mads, 2);
}

static void test_accept_roce(void **state)
{
	(void)state;
	check_accept(false);
}

static void test_accept_ib(void **state)
{
	(void)state;
	check_accept(true);
}

/* --- Statuses. --- */

static void test_nobody_listens(void **state)
{
	struct polycm_id *client = world_route(RDMA_PS_UDP, PORT);

	(void)state;
	assert_int_equal(world_connect(client, 1), 0);
	world_run(2 * LATENCY);
	assert_uint_equal(world_expect(client, RDMA_CM_EVENT_UNREACHABLE, 1)
				  ->event.param.ud.private_data_len, 136);
	assert_int_equal(world_connect(client, 1), -EINVAL);
	world_destroy(client);
}

static void test_rejected(void **state)
{
	struct pair pair = requested_of(RDMA_PS_UDP);

	(void)state;
	assert_int_equal(world_call(pair.server, reject, "no", 2, 0), 0);
	world_run(LATENCY);
	assert_memory_equal(world_expect(pair.client, RDMA_CM_EVENT_UNREACHABLE, 2)->private_data,
			    "no", 3);
	assert_int_equal(world_call(pair.server, reject, "no", 2, 0), -EINVAL);
	world_end(&pair);
}

static void test_destroyed_unanswered(void **state)
{
	struct pair pair = requested_of(RDMA_PS_UDP);

	(void)state;
	world_destroy(pair.server);
	pair.server = NULL;
	world_run(LATENCY);
	world_expect(pair.client, RDMA_CM_EVENT_UNREACHABLE, 2);
	world_end(&pair);
}

static void test_backlog_full(void **state)
{
	struct polycm_id *listener = world_listen(RDMA_PS_UDP), *client;

	(void)state;
	world.backlog = 0;
	client = world_route(RDMA_PS_UDP, PORT);
	assert_int_equal(world_connect(client, 1), 0);
	world_run(2 * LATENCY);
	world_expect(client, RDMA_CM_EVENT_UNREACHABLE, 2);
	world_destroy(client);
	world_destroy(listener);
}

static void test_listener_of_rc(void **state)
{
	struct polycm_id *listener = world_typed_id(RDMA_PS_IB, IBV_QPT_RC), *client;
	struct sockaddr_in in = { .sin_family = AF_INET, .sin_port = htons(PORT) };

	(void)state;
	in.sin_addr.s_addr = htonl(0x0a000002);
	assert_int_equal(world_call(listener, bind, (struct sockaddr *)&in), 0);
	assert_int_equal(world_call(listener, listen, 1), 0);
	client = world_route_from(world.client, world_typed_id(RDMA_PS_IB, IBV_QPT_UD), "10.0.0.2",
				  PORT);
	assert_int_equal(world_connect(client, 1), 0);
	world_run(2 * LATENCY);
	world_expect(client, RDMA_CM_EVENT_UNREACHABLE, 2);
	world_destroy(client);
	world_destroy(listener);
}

/* Whatever status comes is passed on. */
static void test_every_status(void **state)
{
	(void)state;
	for (int status = 1; status <= 255; status++) {
		struct polycm_id *client = world_route(RDMA_PS_UDP, PORT);
		struct cm_msg rep = { .attr_id = CM_SIDR_REP };

		world_lose(CM_SIDR_REQ, WORLD_ALL);
		assert_int_equal(world_connect(client, 1), 0);
		rep.sidr_rep.request_id = world_sim(client)->ib->local_id;
		rep.sidr_rep.status = (uint8_t)status;
		rep.sidr_rep.qkey = QKEY;
		world_inject(false, &rep);
		world_expect(client, RDMA_CM_EVENT_UNREACHABLE, status);
		world_inject(false, &rep);
		world_expect_none(client);
		world_destroy(client);
		world_forget();
	}
}

static void test_timeout(void **state)
{
	struct polycm_id *client = world_route(RDMA_PS_UDP, PORT);
	uint64_t start = sim_now();

	(void)state;
	world_lose(CM_SIDR_REQ, WORLD_ALL);
	assert_int_equal(world_connect(client, 1), 0);
	world_run_ms(100000);
	assert_uint_equal(world_count(CM_SIDR_REQ), 16);
	assert_uint_equal(world_mad(CM_SIDR_REQ, 1)->time, start + SIM_MS(4096) + LATENCY);
	assert_uint_equal(world_expect(client, RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT)->time,
			  start + SIM_MS(65536));
	world_destroy(client);
}

/* Destroyed while it asks: silence. */
static void test_destroy_asking(void **state)
{
	struct polycm_id *client = world_route(RDMA_PS_UDP, PORT);

	(void)state;
	world_lose(CM_SIDR_REQ, WORLD_ALL);
	assert_int_equal(world_connect(client, 1), 0);
	world_destroy(client);
	world_run_ms(100000);
	assert_uint_equal(world.num_mads, 1);
}

/* --- Repetition. --- */

static void test_repeated_request(void **state)
{
	struct pair pair = requested_of(RDMA_PS_UDP);
	const struct cm_msg req = world_mad(CM_SIDR_REQ, 0)->msg;
	struct polycm_id *second;

	(void)state;
	/* While the first one waits, nothing happens. */
	world_run_ms(3 * 4096 - 1);
	assert_uint_equal(world_count(CM_SIDR_REQ), 3);
	assert_uint_equal(world_count(CM_MRA), 0);
	world_expect_none(pair.listener);
	/* The reply is lost: the repetition is a new request. */
	world_lose(CM_SIDR_REP, 1);
	assert_int_equal(world_accept(pair.server, 0x22), 0);
	world_run_ms(4096);
	second = world_child(pair.listener);
	assert_ptr_not_equal(second, pair.server);
	world_lose(CM_SIDR_REP, 0);
	assert_int_equal(world_accept(second, 0x23), 0);
	world_run_ms(1);
	assert_uint_equal(world_expect(pair.client, RDMA_CM_EVENT_ESTABLISHED, 0)
				  ->event.param.ud.qp_num, 0x23);
	/* So would be one that comes late. */
	world_inject(true, &req);
	world_destroy(second);
	second = world_child(pair.listener);
	world_destroy(second);
	world_end(&pair);
	world_run_ms(1);
}

static void test_no_request_id(void **state)
{
	struct pair pair = requested_of(RDMA_PS_UDP);
	struct cm_msg req = world_mad(CM_SIDR_REQ, 0)->msg;

	(void)state;
	world_forget();
	req.sidr_req.request_id = 0;
	world_inject(true, &req);
	world_run_ms(1);
	assert_uint_equal(world.num_mads, 1);
	world_expect_none(pair.listener);
	world_end(&pair);
	world_run_ms(1);
}

/* --- Q_Keys. --- */

static void answer_with_qkey(struct polycm_id *client, uint32_t qkey)
{
	struct cm_msg rep = { .attr_id = CM_SIDR_REP };

	rep.sidr_rep.request_id = world_sim(client)->ib->local_id;
	rep.sidr_rep.qpn = 0x22;
	rep.sidr_rep.qkey = qkey;
	world_inject(false, &rep);
}

static struct polycm_id *asking_client(bool with_qp)
{
	struct polycm_id *client = world_route(RDMA_PS_UDP, PORT);
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT };
	int mask;

	if (with_qp) {
		assert_int_equal(world_call(client, init_qp_attr, &attr, &mask), 0);
		assert_uint_equal(attr.qkey, QKEY);
	}
	world_lose(CM_SIDR_REQ, WORLD_ALL);
	assert_int_equal(world_connect(client, 1), 0);
	return client;
}

static void test_qkeys(void **state)
{
	static const struct {
		bool with_qp;
		uint32_t qkey;
		enum rdma_cm_event_type event;
		int status;
	} rows[] = {
		{ false, QKEY, RDMA_CM_EVENT_ESTABLISHED, 0 },
		{ false, 0x99, RDMA_CM_EVENT_ESTABLISHED, 0 },
		{ false, 0, RDMA_CM_EVENT_ADDR_ERROR, -EINVAL },
		{ true, QKEY, RDMA_CM_EVENT_ESTABLISHED, 0 },
		{ true, 0x99, RDMA_CM_EVENT_ADDR_ERROR, -EINVAL },
		{ true, 0, RDMA_CM_EVENT_ADDR_ERROR, -EINVAL },
	};
	const struct world_event *seen;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct polycm_id *client = asking_client(rows[i].with_qp);

		answer_with_qkey(client, rows[i].qkey);
		seen = world_expect(client, rows[i].event, rows[i].status);
		if (!rows[i].status)
			assert_uint_equal(seen->event.param.ud.qkey, rows[i].qkey);
		world_destroy(client);
	}
}

static void test_own_qkey(void **state)
{
	struct pair pair = requested_of(RDMA_PS_UDP);
	struct polycm_conn_param param = world_param(0x22);

	(void)state;
	param.qkey = 0x77;
	assert_int_equal(world_call(pair.server, accept, &param), 0);
	world_run(LATENCY);
	assert_uint_equal(world_mad(CM_SIDR_REP, 0)->msg.sidr_rep.qkey, 0x77);
	assert_uint_equal(world_expect(pair.client, RDMA_CM_EVENT_ESTABLISHED, 0)
				  ->event.param.ud.qkey, 0x77);
	world_end(&pair);
}

/* One that contradicts the QP's: refused. */
static void test_other_qkey(void **state)
{
	struct pair pair = requested_of(RDMA_PS_UDP);
	struct polycm_conn_param param = world_param(0x22);
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT };
	int mask;

	(void)state;
	assert_int_equal(world_call(pair.server, init_qp_attr, &attr, &mask), 0);
	param.qkey = 0x77;
	assert_int_equal(world_call(pair.server, accept, &param), -EINVAL);
	world_run(LATENCY);
	world_expect(pair.client, RDMA_CM_EVENT_UNREACHABLE, 2);
	world_end(&pair);
}

/* The broadcast group's Q_Key where IP over InfiniBand is meant. */
static void test_ipoib(void **state)
{
	struct pair pair = requested_of(RDMA_PS_IPOIB);

	(void)state;
	assert_uint_equal(world_mad(CM_SIDR_REQ, 0)->msg.sidr_req.service_id,
			  0x0000000000021d2fu);
	assert_int_equal(world_accept(pair.server, 0x22), 0);
	world_run(LATENCY);
	assert_uint_equal(world_expect(pair.client, RDMA_CM_EVENT_ESTABLISHED, 0)
				  ->event.param.ud.qkey, 0x0b1b);
	world_end(&pair);
}

/* --- Calls that are for connections. --- */

static void test_other_calls(void **state)
{
	struct pair pair = requested_of(RDMA_PS_UDP);
	struct polycm_id *fresh;

	(void)state;
	assert_int_equal(world_call(pair.server, notify, IBV_EVENT_COMM_EST), -EINVAL);
	assert_int_equal(world_call(pair.client, notify, IBV_EVENT_COMM_EST), -EINVAL);
	assert_int_equal(world_call(pair.client, establish), -EINVAL);
	assert_int_equal(world_call(pair.client, disconnect), 0);
	fresh = world_route(RDMA_PS_UDP, PORT);
	assert_int_equal(world_call(fresh, disconnect), -EINVAL);
	world_destroy(fresh);
	/* An establish is an accept without parameters. */
	assert_int_equal(world_call(pair.server, establish), 0);
	world_run(LATENCY);
	assert_uint_equal(world_expect(pair.client, RDMA_CM_EVENT_ESTABLISHED, 0)
				  ->event.param.ud.qp_num, 0);
	world_end(&pair);
}

#define ROCE(test) cmocka_unit_test_setup_teardown(test, world_open_roce, world_close)
#define IB(test) cmocka_unit_test_setup_teardown(test, world_open_ib, world_close)

int main(void)
{
	const struct CMUnitTest tests[] = {
		ROCE(test_request),
		ROCE(test_accept_roce),
		IB(test_accept_ib),
		ROCE(test_nobody_listens),
		ROCE(test_rejected),
		ROCE(test_destroyed_unanswered),
		ROCE(test_backlog_full),
		ROCE(test_listener_of_rc),
		ROCE(test_every_status),
		ROCE(test_timeout),
		ROCE(test_destroy_asking),
		ROCE(test_repeated_request),
		{ "test_repeated_request ib", test_repeated_request, world_open_ib, world_close,
		  NULL },
		ROCE(test_no_request_id),
		ROCE(test_qkeys),
		ROCE(test_own_qkey),
		ROCE(test_other_qkey),
		IB(test_ipoib),
		ROCE(test_other_calls),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
