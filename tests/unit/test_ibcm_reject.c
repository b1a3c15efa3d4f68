/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Connections that are refused: by whom, with which reason, and what a REJ of
 * any reason does; stale connections; paths that do not lead here.
 */
#include "config.h"

#include <errno.h>
#include <string.h>

#include "ibcm_world.h"

/* --- The shapes of a refused request. --- */

static void check_refused(struct polycm_id *client, int reason)
{
	world_run(2 * LATENCY);
	world_expect(client, RDMA_CM_EVENT_REJECTED, reason);
	assert_int_equal(world_state(client), IBCM_IDLE);
	assert_uint_equal(world_mad(CM_REJ, 0)->msg.rej.message_rejected, CM_WHICH_REQ);
	assert_uint_equal(world_mad(CM_REJ, 0)->msg.rej.local_comm_id, 0);
	assert_uint_equal(world_mad(CM_REJ, 0)->msg.rej.remote_comm_id,
			  world_mad(CM_REQ, 0)->msg.req.local_comm_id);
	assert_uint_equal(world_mad(CM_REJ, 0)->msg.tid, world_mad(CM_REQ, 0)->msg.tid);
	/* The id is spent, and silent. */
	assert_int_equal(world_connect(client, 1), -EINVAL);
	world_run_ms(100000);
	assert_uint_equal(world_count(CM_REQ), 1);
	world_destroy(client);
	world_run_ms(1);
	assert_uint_equal(world.num_mads, 2);
}

static void test_nobody_listens(void **state)
{
	struct polycm_id *client = world_route(RDMA_PS_TCP, PORT);

	(void)state;
	assert_int_equal(world_connect(client, 1), 0);
	check_refused(client, 8);
}

static void test_other_port(void **state)
{
	struct polycm_id *listener = world_listen(RDMA_PS_TCP);
	struct polycm_id *client = world_route(RDMA_PS_TCP, PORT + 1);

	(void)state;
	assert_int_equal(world_connect(client, 1), 0);
	check_refused(client, 8);
	world_destroy(listener);
}

/* A bound port that does not listen is no service. */
static void test_other_port_space(void **state)
{
	struct polycm_id *listener = world_listen(RDMA_PS_UDP);
	struct polycm_id *client = world_route(RDMA_PS_TCP, PORT);

	(void)state;
	assert_int_equal(world_connect(client, 1), 0);
	check_refused(client, 8);
	world_destroy(listener);
}

static void test_other_address(void **state)
{
	struct polycm_id *listener = world_listen(RDMA_PS_TCP), *client;

	(void)state;
	sim_lock();
	assert_int_equal(sim_device_add_address(world.server_device, NULL, "10.0.0.3/24"), 0);
	sim_unlock();
	client = world_route_from(world.client, world_id(RDMA_PS_TCP), "10.0.0.3", PORT);
	assert_int_equal(world_connect(client, 1), 0);
	check_refused(client, 28);
	world_destroy(listener);
}

static void test_other_type(void **state)
{
	struct polycm_id *listener, *client = world_typed_id(RDMA_PS_IB, IBV_QPT_RC);

	(void)state;
	listener = world_typed_id(RDMA_PS_IB, IBV_QPT_UD);
	{
		struct sockaddr_in in = { .sin_family = AF_INET, .sin_port = htobe16(PORT) };

		in.sin_addr.s_addr = htobe32(0x0a000002);
		assert_int_equal(world_call(listener, bind, (struct sockaddr *)&in), 0);
		assert_int_equal(world_call(listener, listen, 1), 0);
	}
	world_route_from(world.client, client, "10.0.0.2", PORT);
	assert_int_equal(world_connect(client, 1), 0);
	check_refused(client, 28);
	world_destroy(listener);
}

static void test_listener_closing(void **state)
{
	struct polycm_id *listener = world_listen(RDMA_PS_TCP);
	struct polycm_id *client = world_route(RDMA_PS_TCP, PORT);

	(void)state;
	world.refuse = -ECANCELED;
	assert_int_equal(world_connect(client, 1), 0);
	check_refused(client, 28);
	world_destroy(listener);
}

/* Nothing is said: the client's next REQ may find room. */
static void test_backlog_full(void **state)
{
	struct polycm_id *listener = world_listen(RDMA_PS_TCP), *first, *second, *child;

	(void)state;
	world.backlog = 1;
	first = world_route(RDMA_PS_TCP, PORT);
	second = world_route(RDMA_PS_TCP, PORT);
	assert_int_equal(world_connect(first, 1), 0);
	assert_int_equal(world_connect(second, 2), 0);
	world_run_ms(4000);
	assert_uint_equal(world.num_mads, 2);
	world_expect_none(second);
	/* Fetching the event, not accepting, makes room. */
	child = world_child(listener);
	world_expect_none(listener);
	world_run_ms(1000);
	assert_uint_equal(world_count(CM_REJ), 0);
	world_destroy(child);
	child = world_child(listener);
	assert_uint_equal(world_sim(child)->ib->remote_qpn, 2);
	world_destroy(child);
	world_destroy(first);
	world_destroy(second);
	world_destroy(listener);
	world_run_ms(1);
}

static void test_reject_with_data(void **state)
{
	static const uint8_t reasons[][2] = { { 0, 28 }, { 28, 28 }, { 35, 35 } };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(reasons); i++) {
		struct pair pair = world_requested();
		const struct world_event *seen;
		uint8_t none[146] = { 0 };

		assert_int_equal(world_call(pair.server, reject, "no", 2, reasons[i][0]), 0);
		world_run(LATENCY);
		seen = world_expect(pair.client, RDMA_CM_EVENT_REJECTED, reasons[i][1]);
		assert_uint_equal(seen->event.param.conn.private_data_len, 148);
		assert_memory_equal(seen->private_data, "no", 2);
		assert_memory_equal(seen->private_data + 2, none, sizeof(none));
		assert_uint_equal(seen->event.param.conn.qp_num, 0);
		world_expect_none(pair.server);
		world_end(&pair);
		world_run_ms(1);
	}
}

/* --- A REJ of any reason reaches the program as that number. --- */

static struct cm_msg rej_of_req(struct polycm_id *client, uint16_t reason)
{
	return (struct cm_msg){
		.attr_id = CM_REJ,
		.rej = {
			.remote_comm_id = world_sim(client)->ib->local_id,
			.message_rejected = CM_WHICH_REQ,
			.reason = reason,
		},
	};
}

/* Rejecting what one has accepted does not end the repetition of the REP, which holds the id. */
static void test_reject_after_accept(void **state)
{
	struct pair pair = world_accepted();
	uint64_t start;

	(void)state;
	world_forget();
	assert_int_equal(world_call(pair.server, reject, NULL, 0, 0), 0);
	world_run_ms(1);
	world_expect(pair.client, RDMA_CM_EVENT_REJECTED, 28);
	world_run_ms(10000);
	assert_uint_equal(world_count(CM_REP), 2);
	sim_lock();
	start = sim_now();
	sim_unlock();
	world_destroy(pair.server);
	pair.server = NULL;
	sim_lock();
	assert_in_range(sim_now() - start, SIM_MS(50000), SIM_MS(60000));
	sim_unlock();
	assert_uint_equal(world_count(CM_REP), 15);
	world_expect_none(pair.client);
	world_end(&pair);
}

static void test_every_reason(void **state)
{
	static const uint16_t odd[] = { 36, 100, 0x7fff, 0xffff };
	struct polycm_id *client;
	struct cm_msg rej;
	uint16_t reason;

	(void)state;
	for (unsigned int i = 1; i <= 35 + ARRAY_SIZE(odd); i++) {
		reason = (uint16_t)(i <= 35 ? i : odd[i - 36]);
		if (reason == CM_REJ_TIMEOUT)
			continue;	/* finds its id otherwise: below */
		client = world_route(RDMA_PS_TCP, PORT);
		world_lose(CM_REQ, WORLD_ALL);
		assert_int_equal(world_connect(client, 1), 0);
		rej = rej_of_req(client, reason);
		world_inject(false, &rej);
		world_expect(client, RDMA_CM_EVENT_REJECTED, reason);
		assert_int_equal(world_state(client), reason == CM_REJ_STALE_CONN ?
				 IBCM_TIMEWAIT : IBCM_IDLE);
		/* Rejected is not disconnected. */
		world_run_ms(1000);
		assert_int_equal(world_state(client), IBCM_IDLE);
		world_expect_none(client);
		world_destroy(client);
	}
}

/* --- Stale connections. --- */

/* The client's QP is in a live connection already: both go. */
static void test_stale_req(void **state)
{
	struct pair pair = world_established();
	struct polycm_id *again = world_route(RDMA_PS_TCP, PORT);

	(void)state;
	world_forget();
	assert_int_equal(world_connect(again, 0x11), 0);
	world_run(2 * LATENCY);
	world_expect(again, RDMA_CM_EVENT_REJECTED, 10);
	assert_int_equal(world_state(again), IBCM_TIMEWAIT);
	assert_uint_equal(world_count(CM_REJ), 1);
	assert_uint_equal(world_count(CM_DREQ), 1);
	assert_int_equal(world_state(pair.server), IBCM_DREQ_SENT);
	world_expect(pair.client, RDMA_CM_EVENT_DISCONNECTED, 0);
	assert_int_equal(world_call(pair.client, disconnect), 0);
	world_run(LATENCY);
	world_expect(pair.server, RDMA_CM_EVENT_DISCONNECTED, 0);
	world_run_ms(1000);
	world_expect_none(again);
	world_destroy(again);
	world_end(&pair);
	world_run_ms(1);
}

/* The server's QP is: the REP is refused, and the client goes on asking. */
static void test_stale_rep(void **state)
{
	struct pair pair = world_established();
	struct polycm_id *again = world_route(RDMA_PS_TCP, PORT), *server;

	(void)state;
	assert_int_equal(world_connect(again, 0x12), 0);
	world_run(LATENCY);
	server = world_child(pair.listener);
	world_forget();
	assert_int_equal(world_accept(server, 0x22), 0);
	world_run(2 * LATENCY);
	assert_uint_equal(world_mad(CM_REJ, 0)->msg.rej.reason, 10);
	assert_uint_equal(world_mad(CM_REJ, 0)->msg.rej.message_rejected, CM_WHICH_REP);
	world_expect(server, RDMA_CM_EVENT_REJECTED, 10);
	assert_int_equal(world_state(server), IBCM_TIMEWAIT);
	assert_int_equal(world_state(again), IBCM_REQ_SENT);
	assert_int_equal(world_state(pair.client), IBCM_DREQ_SENT);
	world_expect(pair.server, RDMA_CM_EVENT_DISCONNECTED, 0);
	world_destroy(again);
	world_destroy(server);
	world_end(&pair);
	world_run_ms(1);
}

/* --- Paths that do not lead here. --- */

static void test_foreign_gid(void **state)
{
	struct polycm_id *listener = world_listen(RDMA_PS_TCP);
	struct cm_msg req;
	struct pair pair = { .listener = listener };
	const struct cm_rej *rej;

	(void)state;
	pair.client = world_route(RDMA_PS_TCP, PORT);
	world_lose(CM_REQ, 1);
	assert_int_equal(world_connect(pair.client, 1), 0);
	world_run(LATENCY);
	req = world_mad(CM_REQ, 0)->msg;

	req.req.primary.remote_gid.raw[15] ^= 0x80;
	world_lose(CM_REQ, 0);
	world_inject(true, &req);
	world_run(LATENCY);
	rej = &world_mad(CM_REJ, 0)->msg.rej;
	assert_uint_equal(rej->reason, CM_REJ_INVALID_GID);
	assert_uint_equal(rej->info_length, 16);
	assert_memory_equal(rej->ari, &world.server_device->ports[0].gids[0].gid, 16);
	world_expect(pair.client, RDMA_CM_EVENT_REJECTED, 12);
	world_expect_none(listener);

	/* No listener comes first. */
	world_forget();
	req.req.service_id++;
	world_inject(true, &req);
	world_run(LATENCY);
	assert_uint_equal(world_mad(CM_REJ, 0)->msg.rej.reason, CM_REJ_INVALID_SERVICE_ID);
	world_end(&pair);
}

static void test_foreign_alternate_gid(void **state)
{
	struct pair pair = { .listener = world_listen(RDMA_PS_TCP) };
	struct cm_msg req;

	(void)state;
	pair.client = world_route(RDMA_PS_TCP, PORT);
	world_lose(CM_REQ, 1);
	assert_int_equal(world_connect(pair.client, 1), 0);
	world_run(LATENCY);
	world_lose(CM_REQ, 0);
	req = world_mad(CM_REQ, 0)->msg;
	req.req.alternate = req.req.primary;
	req.req.alternate.remote_gid.raw[15] ^= 0x80;
	world_inject(true, &req);
	world_run(LATENCY);
	world_expect(pair.client, RDMA_CM_EVENT_REJECTED, 18);
	world_expect_none(pair.listener);

	/* One of ours is taken. */
	req.req.alternate = req.req.primary;
	world_inject(true, &req);
	pair.server = world_child(pair.listener);
	world_end(&pair);
	world_run_ms(1);
}

#define ROCE(test) cmocka_unit_test_setup_teardown(test, world_open_roce, world_close)

int main(void)
{
	const struct CMUnitTest tests[] = {
		ROCE(test_nobody_listens),
		ROCE(test_other_port),
		ROCE(test_other_port_space),
		ROCE(test_other_address),
		ROCE(test_other_type),
		ROCE(test_listener_closing),
		ROCE(test_backlog_full),
		ROCE(test_reject_with_data),
		ROCE(test_reject_after_accept),
		ROCE(test_every_reason),
		ROCE(test_stale_req),
		ROCE(test_stale_rep),
		ROCE(test_foreign_gid),
		ROCE(test_foreign_alternate_gid),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
