/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Lost messages of the InfiniBand CM: when each is repeated, what the other
 * side answers, and which event comes at which time if nothing helps.
 */
#include "config.h"

#include <errno.h>

#include "ibcm_world.h"

#define T_REP_MS	4096u
#define T_MRA_MS	65536u	/* the service time-out alone */

struct timing {
	uint32_t req_ms;	/* one wait for a REP */
	uint32_t av_ms;		/* TIMEWAIT, and what an MRA adds */
};

static const struct timing roce = { 4608, 512 }, ib = { 6144, 2048 };

static const struct timing *timing(void)
{
	return cma_rules(&(struct sim_id){ .port = &world.client_device->ports[0] })->link_layer ==
	       IBV_LINK_LAYER_INFINIBAND ? &ib : &roce;
}

static void check_waits(enum cm_attr_id attr_id, unsigned int count, uint64_t first, uint64_t wait)
{
	assert_uint_equal(world_count(attr_id), count);
	for (unsigned int i = 0; i < count; i++)
		assert_uint_equal(world_mad(attr_id, i)->time, first + i * wait);
}

/* --- Nobody answers at all. --- */

static void test_dead_server(void **state)
{
	uint64_t wait = SIM_MS(timing()->req_ms), start;
	const struct world_event *seen;
	struct polycm_id *client;

	(void)state;
	client = world_route(RDMA_PS_TCP, PORT);
	world_lose(CM_REQ, WORLD_ALL);
	start = sim_now();
	assert_int_equal(world_connect(client, 1), 0);
	world_run_ms(200000);
	check_waits(CM_REQ, 16, start + LATENCY, wait);
	seen = world_expect(client, RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT);
	assert_uint_equal(seen->time, start + 16 * wait);	/* 73.728 s, 98.304 s */
	assert_int_equal(world_state(client), IBCM_IDLE);
	assert_int_equal(world_sim(client)->state, CMA_CONNECT);
	world_expect_none(client);
	world_destroy(client);
	world_run_ms(1);
	/* Not even a REJ. */
	assert_uint_equal(world.num_mads, 16);
}

static void test_totals(void **state)
{
	(void)state;
	assert_uint_equal(16 * roce.req_ms, 73728);
	assert_uint_equal(16 * ib.req_ms, 98304);
	assert_uint_equal(16 * T_REP_MS, 65536);
}

static void test_dead_client(void **state)
{
	struct pair pair = world_requested();
	const struct world_event *seen;
	uint64_t start = sim_now();

	(void)state;
	world_lose(CM_REP, WORLD_ALL);
	world_lose(CM_REQ, WORLD_ALL);
	assert_int_equal(world_accept(pair.server, 2), 0);
	world_run_ms(70000);
	check_waits(CM_REP, 16, start + LATENCY, SIM_MS(T_REP_MS));
	seen = world_expect(pair.server, RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT);
	assert_uint_equal(seen->time, start + SIM_MS(65536));
	assert_int_equal(world_state(pair.server), IBCM_IDLE);
	world_forget();
	world_destroy(pair.server);
	world_run_ms(1);
	assert_uint_equal(world_count(CM_REJ), 0);
	pair.server = NULL;
	world_end(&pair);
	world_run_ms(1);
}

/* The side that disconnects: its own REQ's or REP's time-out. */
static void check_dead_disconnect(bool by_client, uint32_t wait_ms)
{
	struct pair pair = world_established();
	struct polycm_id *id = by_client ? pair.client : pair.server;
	const struct world_event *seen;
	uint64_t start = sim_now();

	world_lose(CM_DREQ, WORLD_ALL);
	assert_int_equal(world_call(id, disconnect), 0);
	world_run_ms(16 * wait_ms);
	check_waits(CM_DREQ, 16, start + LATENCY, SIM_MS(wait_ms));
	seen = world_expect(id, RDMA_CM_EVENT_DISCONNECTED, -ETIMEDOUT);
	assert_uint_equal(seen->time, start + SIM_MS(16 * wait_ms));
	assert_int_equal(world_state(id), IBCM_TIMEWAIT);
	world_run_ms(timing()->av_ms);
	seen = world_expect(id, RDMA_CM_EVENT_TIMEWAIT_EXIT, 0);
	assert_uint_equal(seen->time, start + SIM_MS(16 * wait_ms + timing()->av_ms));
	world_lose(CM_DREQ, 0);
	world_end(&pair);
	world_run_ms(1);
}

static void test_dead_disconnect_active(void **state)
{
	(void)state;
	check_dead_disconnect(true, timing()->req_ms);
}

static void test_dead_disconnect_passive(void **state)
{
	(void)state;
	check_dead_disconnect(false, T_REP_MS);
}

/* A live CM with a program that never does anything. */

static void test_stuck_server_program(void **state)
{
	const struct timing *t = timing();
	const struct world_event *seen;
	struct polycm_id *listener = world_listen(RDMA_PS_TCP), *client, *server;
	uint64_t start, mra, long_wait = SIM_MS(T_MRA_MS + t->av_ms);

	(void)state;
	client = world_route(RDMA_PS_TCP, PORT);
	start = sim_now();
	assert_int_equal(world_connect(client, 1), 0);
	world_run_ms(t->req_ms);
	assert_uint_equal(world_count(CM_MRA), 0);	/* the first REQ gets none */
	world_run(2 * LATENCY);
	assert_uint_equal(world_count(CM_MRA), 1);
	assert_uint_equal(world_mad(CM_MRA, 0)->msg.mra.message_mraed, CM_WHICH_REQ);
	assert_uint_equal(world_mad(CM_MRA, 0)->msg.mra.service_timeout, 24);
	assert_int_equal(world_state(client), IBCM_MRA_REQ_RCVD);
	mra = start + SIM_MS(t->req_ms) + 2 * LATENCY;

	world_run_ms(1100000);
	assert_uint_equal(world_count(CM_REQ), 16);
	assert_uint_equal(world_count(CM_MRA), 15);
	for (unsigned int i = 2; i < 16; i++)
		assert_uint_equal(world_mad(CM_REQ, i)->time, mra + (i - 1) * long_wait + LATENCY);
	seen = world_expect(client, RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT);
	assert_uint_equal(seen->time, mra + 15 * long_wait);
	if (t == &roce)
		assert_uint_equal((seen->time - start) / SIM_MS(1), 995328);

	/* One request for all sixteen REQs; nobody told the server that it is over. */
	server = world_child(listener);
	world_expect_none(listener);
	assert_int_equal(world_state(server), IBCM_MRA_REQ_SENT);
	world_destroy(server);
	world_destroy(client);
	world_destroy(listener);
	world_run_ms(1);
}

static void test_stuck_client_program(void **state)
{
	const struct timing *t = timing();
	const struct world_event *seen;
	struct pair pair = world_requested();
	uint64_t start = sim_now(), long_wait = SIM_MS(T_MRA_MS + t->av_ms);

	(void)state;
	assert_int_equal(world_accept(pair.server, 2), 0);
	world_run_ms(1100000);
	assert_uint_equal(world_count(CM_REP), 16);
	assert_uint_equal(world_mad(CM_MRA, 0)->msg.mra.message_mraed, CM_WHICH_REP);
	seen = world_expect(pair.server, RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT);
	assert_uint_equal(seen->time, start + SIM_MS(T_REP_MS) + 2 * LATENCY + 15 * long_wait);
	world_expect(pair.client, RDMA_CM_EVENT_CONNECT_RESPONSE, 0);
	world_expect_none(pair.client);
	assert_int_equal(world_state(pair.client), IBCM_MRA_REP_SENT);
	world_end(&pair);
	world_run_ms(1);
}

/* --- One message is lost, then all goes well. --- */

static void test_nth_req_lost(void **state)
{
	(void)state;
	for (unsigned int lost = 1; lost <= 2; lost++) {
		struct polycm_id *listener = world_listen(RDMA_PS_TCP), *client, *server;
		const struct world_event *seen;
		uint64_t start;

		client = world_route(RDMA_PS_TCP, PORT);
		world_lose(CM_REQ, 1);
		start = sim_now();
		assert_int_equal(world_connect(client, lost), 0);
		world_run_ms(timing()->req_ms);
		world_expect_none(listener);
		world_lose(CM_REQ, lost == 2 ? 1 : 0);
		world_run_ms(timing()->req_ms + 1);
		seen = world_expect(listener, RDMA_CM_EVENT_CONNECT_REQUEST, 0);
		assert_uint_equal(seen->time, start + lost * SIM_MS(timing()->req_ms) + LATENCY);
		server = seen->event.child;
		world_expect_none(listener);
		world_destroy(client);
		world_run_ms(1);
		world_destroy(server);
		world_destroy(listener);
	}
}

static void test_rep_lost(void **state)
{
	struct pair pair = world_requested();
	const struct world_event *seen;
	uint64_t start = sim_now();

	(void)state;
	world_lose(CM_REP, 1);
	assert_int_equal(world_accept(pair.server, 2), 0);
	world_run_ms(T_REP_MS + 1);
	seen = world_expect(pair.client, RDMA_CM_EVENT_CONNECT_RESPONSE, 0);
	assert_uint_equal(seen->time, start + SIM_MS(T_REP_MS) + LATENCY);
	/* The REQ is not repeated to a server that answered: its REP is. */
	assert_uint_equal(world_count(CM_MRA), 0);
	assert_int_equal(world_call(pair.client, establish), 0);
	world_run_ms(1);
	world_expect(pair.server, RDMA_CM_EVENT_ESTABLISHED, 0);
	world_end(&pair);
	world_run_ms(1);
}

static void test_rtu_lost(void **state)
{
	struct pair pair = world_accepted();
	const struct world_event *seen;
	uint64_t accepted = sim_now() - LATENCY;

	(void)state;
	world_lose(CM_RTU, 1);
	assert_int_equal(world_call(pair.client, establish), 0);
	world_run_ms(T_REP_MS);
	world_expect_none(pair.server);
	world_run_ms(1);
	/* The repeated REP finds the client established: it repeats the RTU. */
	assert_uint_equal(world_count(CM_RTU), 2);
	seen = world_expect(pair.server, RDMA_CM_EVENT_ESTABLISHED, 0);
	assert_uint_equal(seen->time, accepted + SIM_MS(T_REP_MS) + 2 * LATENCY);
	world_run_ms(1000000);
	assert_uint_equal(world_count(CM_REP), 2);
	world_end(&pair);
	world_run_ms(1);
}

/* The client disconnects before the server heard its RTU: no ESTABLISHED at all. */
static void test_rtu_lost_then_dreq(void **state)
{
	struct pair pair = world_accepted();

	(void)state;
	world_lose(CM_RTU, WORLD_ALL);
	assert_int_equal(world_call(pair.client, establish), 0);
	assert_int_equal(world_call(pair.client, disconnect), 0);
	world_run_ms(1);
	world_expect(pair.server, RDMA_CM_EVENT_DISCONNECTED, 0);
	assert_int_equal(world_state(pair.server), IBCM_DREQ_RCVD);
	world_forget();
	world_run_ms(1000000);
	assert_uint_equal(world_count(CM_REP), 0);
	world_end(&pair);
	world_run_ms(1);
}

static void test_mra_lost(void **state)
{
	struct pair pair = world_requested();

	(void)state;
	world_lose(CM_MRA, 1);
	world_run_ms(2 * timing()->req_ms + 1);
	assert_uint_equal(world_count(CM_REQ), 3);
	assert_uint_equal(world_count(CM_MRA), 2);
	assert_int_equal(world_state(pair.client), IBCM_MRA_REQ_RCVD);
	world_end(&pair);
	world_run_ms(1);
}

static void test_dreq_lost(void **state)
{
	struct pair pair = world_established();
	const struct world_event *seen;
	uint64_t start = sim_now();

	(void)state;
	world_lose(CM_DREQ, 1);
	assert_int_equal(world_call(pair.client, disconnect), 0);
	world_run_ms(timing()->req_ms + 1);
	seen = world_expect(pair.server, RDMA_CM_EVENT_DISCONNECTED, 0);
	assert_uint_equal(seen->time, start + SIM_MS(timing()->req_ms) + LATENCY);
	assert_int_equal(world_call(pair.server, disconnect), 0);
	world_run_ms(1);
	world_expect(pair.client, RDMA_CM_EVENT_DISCONNECTED, 0);
	world_end(&pair);
	world_run_ms(1);
}

/* The repeated DREQ finds the server in TIMEWAIT if that lasts: the DREP is repeated. */
static void test_drep_lost(void **state)
{
	struct pair pair = world_established();

	(void)state;
	world_lose(CM_DREP, 1);
	assert_int_equal(world_call(pair.client, disconnect), 0);
	world_run_ms(timing()->req_ms - 100);
	world_expect(pair.server, RDMA_CM_EVENT_DISCONNECTED, 0);
	assert_int_equal(world_call(pair.server, disconnect), 0);
	world_run_ms(90);
	assert_int_equal(world_state(pair.server), IBCM_TIMEWAIT);
	world_expect_none(pair.client);
	world_run_ms(20);
	assert_uint_equal(world_count(CM_DREQ), 2);
	assert_uint_equal(world_count(CM_DREP), 2);
	world_expect(pair.client, RDMA_CM_EVENT_DISCONNECTED, 0);
	world_end(&pair);
	world_run_ms(1);
}

/* The client gave up, the server never heard of it. */
static void test_rej_lost(void **state)
{
	struct pair pair = world_requested();

	(void)state;
	world_lose(CM_REJ, 1);
	world_destroy(pair.client);
	pair.client = NULL;
	world_run_ms(1);
	assert_int_equal(world_state(pair.server), IBCM_MRA_REQ_SENT);
	/* Its accept goes to an id that is gone, sixteen times. */
	assert_int_equal(world_accept(pair.server, 2), 0);
	world_run_ms(70000);
	assert_uint_equal(world_count(CM_REP), 16);
	world_expect(pair.server, RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT);
	world_end(&pair);
	world_run_ms(1);
}

/* Destroyed while connected: one DREQ; lost, the peer never hears of it. */
static void test_destroy_dreq_lost(void **state)
{
	struct pair pair = world_established();

	(void)state;
	world_lose(CM_DREQ, WORLD_ALL);
	world_destroy(pair.client);
	pair.client = NULL;
	world_run_ms(1000000);
	assert_uint_equal(world_count(CM_DREQ), 1);
	world_expect_none(pair.server);
	assert_int_equal(world_state(pair.server), IBCM_ESTABLISHED);
	/* Its own disconnect finds nobody: the CM there lets it go at once. */
	world_lose(CM_DREQ, 0);
	assert_int_equal(world_call(pair.server, disconnect), 0);
	world_run(2 * LATENCY);
	world_expect(pair.server, RDMA_CM_EVENT_DISCONNECTED, 0);
	assert_int_equal(world_state(pair.server), IBCM_TIMEWAIT);
	world_end(&pair);
	world_run_ms(1);
}

/* Twice the same message: a duplicate changes nothing and is no event. */
static void test_duplicates(void **state)
{
	struct pair pair = world_established();
	struct cm_msg req = world_mad(CM_REQ, 0)->msg, rep = world_mad(CM_REP, 0)->msg,
		      rtu = world_mad(CM_RTU, 0)->msg;

	(void)state;
	world_forget();
	world_inject(true, &req);
	world_run_ms(1);
	assert_uint_equal(world.num_mads, 1);	/* dropped */
	world_inject(true, &rtu);
	world_run_ms(1);
	assert_uint_equal(world.num_mads, 2);
	world_inject(false, &rep);
	world_run_ms(1);
	assert_uint_equal(world_count(CM_RTU), 2);	/* answered */
	world_expect_none(pair.client);
	world_expect_none(pair.server);
	world_expect_none(pair.listener);
	assert_int_equal(world_state(pair.client), IBCM_ESTABLISHED);
	assert_int_equal(world_state(pair.server), IBCM_ESTABLISHED);
	world_end(&pair);
	world_run_ms(1);
}

#define ROCE_AND_IB(test)						\
	{ #test " roce", test, world_open_roce, world_close, NULL },	\
	{ #test " ib", test, world_open_ib, world_close, NULL }

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_totals),
		ROCE_AND_IB(test_dead_server),
		ROCE_AND_IB(test_dead_client),
		ROCE_AND_IB(test_dead_disconnect_active),
		ROCE_AND_IB(test_dead_disconnect_passive),
		ROCE_AND_IB(test_stuck_server_program),
		ROCE_AND_IB(test_stuck_client_program),
		ROCE_AND_IB(test_nth_req_lost),
		ROCE_AND_IB(test_rep_lost),
		ROCE_AND_IB(test_rtu_lost),
		ROCE_AND_IB(test_rtu_lost_then_dreq),
		ROCE_AND_IB(test_mra_lost),
		ROCE_AND_IB(test_dreq_lost),
		ROCE_AND_IB(test_drep_lost),
		ROCE_AND_IB(test_rej_lost),
		ROCE_AND_IB(test_destroy_dreq_lost),
		ROCE_AND_IB(test_duplicates),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
