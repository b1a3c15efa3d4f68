/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * MADs that the InfiniBand CM should not trust: requests with odd contents,
 * ids that do not belong together, corrupted and random messages.
 */
#include "config.h"

#include <endian.h>
#include <errno.h>
#include <string.h>

#include "ibcm_world.h"

/* --- Requests made by hand. --- */

static struct cm_msg captured_req(struct polycm_id *client)
{
	world_lose(CM_REQ, 1);
	assert_int_equal(world_connect(client, 0x77), 0);
	world_run(LATENCY);
	world_lose(CM_REQ, 0);
	return world_mad(CM_REQ, 0)->msg;
}

static void test_odd_requests(void **state)
{
	struct polycm_id *listener = world_listen(RDMA_PS_TCP);
	struct polycm_id *client = world_route(RDMA_PS_TCP, PORT);
	struct cm_msg req = captured_req(client), odd;

	(void)state;
	odd = req;
	odd.req.private_data[0] = 1;		/* version of the CMA header */
	world_forget();
	world_inject(true, &odd);
	world_run(LATENCY);
	assert_uint_equal(world_mad(CM_REJ, 0)->msg.rej.reason, 28);

	odd = req;
	odd.req.private_data[1] = 0x50;		/* IP version */
	world_forget();
	world_inject(true, &odd);
	world_run(LATENCY);
	assert_uint_equal(world_mad(CM_REJ, 0)->msg.rej.reason, 28);

	odd = req;
	odd.req.transport_service_type = CM_TRANSPORT_UC;
	world_forget();
	world_inject(true, &odd);
	world_run(LATENCY);
	assert_uint_equal(world_mad(CM_REJ, 0)->msg.rej.reason, 28);

	odd = req;
	odd.req.service_id |= 1ull << 40;	/* not the RDMA CM's */
	world_forget();
	world_inject(true, &odd);
	world_run(LATENCY);
	assert_uint_equal(world_mad(CM_REJ, 0)->msg.rej.reason, 8);

	odd = req;
	odd.req.service_id = 0x1234ull << 16 | PORT;	/* no such port space */
	world_forget();
	world_inject(true, &odd);
	world_run(LATENCY);
	assert_uint_equal(world_mad(CM_REJ, 0)->msg.rej.reason, 8);

	odd = req;
	odd.req.local_comm_id = 0;
	world_forget();
	world_inject(true, &odd);
	world_run_ms(1);
	assert_uint_equal(world.num_mads, 1);	/* dropped */

	world_expect_none(listener);
	world_destroy(client);
	world_destroy(listener);
	world_run_ms(1);
}

/* The limits of fields: a response time-out of 31 and no retries are served as asked. */
static void test_request_timers(void **state)
{
	struct polycm_id *listener = world_listen(RDMA_PS_TCP);
	struct polycm_id *client = world_route(RDMA_PS_TCP, PORT), *server;
	struct cm_msg req = captured_req(client);
	uint64_t start;

	(void)state;
	req.req.local_cm_response_timeout = 10;
	req.req.max_cm_retries = 2;
	req.req.primary.local_ack_timeout = 0;
	world_inject(true, &req);
	server = world_child(listener);
	assert_uint_equal(world_sim(server)->packet_lifetime, 0);
	assert_uint_equal(world_sim(server)->ib->av_timeout, 1);
	world_lose(CM_REP, WORLD_ALL);
	start = sim_now();
	assert_int_equal(world_accept(server, 2), 0);
	world_run_ms(100);
	assert_uint_equal(world_count(CM_REP), 3);
	assert_uint_equal(world_expect(server, RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT)->time,
			  start + SIM_MS(12));
	world_lose(CM_REP, 0);
	world_destroy(server);
	world_destroy(client);
	world_destroy(listener);
	world_run_ms(1);
}

/* --- MADs that name ids that do not belong together. --- */

static void test_spoofed_ids(void **state)
{
	struct pair pair = world_established();
	uint32_t server_id = world_sim(pair.server)->ib->local_id;
	uint32_t client_id = world_sim(pair.client)->ib->local_id;
	static const uint16_t attr_ids[] = { CM_MRA, CM_REJ, CM_REP, CM_RTU, CM_DREP };
	struct cm_msg msg;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(attr_ids); i++) {
		memset(&msg, 0, sizeof(msg));
		msg.attr_id = attr_ids[i];
		msg.rtu.local_comm_id = client_id ^ 1;
		msg.rtu.remote_comm_id = server_id;
		if (msg.attr_id == CM_REJ)
			msg.rej.message_rejected = CM_WHICH_OTHER;
		world_forget();
		world_inject(true, &msg);
		/* The right pair at the wrong node. */
		msg.rtu.local_comm_id = client_id;
		world_inject(false, &msg);
		world_run_ms(1);
		assert_uint_equal(world.num_mads, 2);
		assert_int_equal(world_state(pair.server), IBCM_ESTABLISHED);
		assert_int_equal(world_state(pair.client), IBCM_ESTABLISHED);
	}
	world_expect_none(pair.server);
	world_expect_none(pair.client);
	world_end(&pair);
	world_run_ms(1);
}

static void test_dreq_checks(void **state)
{
	struct pair pair = world_established();
	struct cm_msg dreq = {
		.attr_id = CM_DREQ,
		.tid = 0x123456789abcdef0,
		.dreq = {
			.local_comm_id = world_sim(pair.client)->ib->local_id,
			.remote_comm_id = world_sim(pair.server)->ib->local_id,
			.remote_qpn = 0x23,	/* not the server's */
		},
	};

	(void)state;
	world_forget();
	world_inject(true, &dreq);
	world_run_ms(1);
	assert_uint_equal(world.num_mads, 1);
	assert_int_equal(world_state(pair.server), IBCM_ESTABLISHED);

	/* A connection that nobody knows is let go of. */
	dreq.dreq.local_comm_id = 0x1ff;
	dreq.dreq.remote_comm_id = 0x2ff;
	world_inject(true, &dreq);
	world_run_ms(1);
	assert_uint_equal(world_count(CM_DREP), 1);
	assert_uint_equal(world_mad(CM_DREP, 0)->msg.tid, dreq.tid);
	assert_uint_equal(world_mad(CM_DREP, 0)->msg.drep.local_comm_id, 0x2ff);
	assert_uint_equal(world_mad(CM_DREP, 0)->msg.drep.remote_comm_id, 0x1ff);
	world_end(&pair);
	world_run_ms(1);
}

/* --- Every byte of every message, wrong. --- */

#define MESSAGES 9

static unsigned int collect(uint8_t mads[MESSAGES][CM_MAD_SIZE], bool to_server[MESSAGES])
{
	unsigned int i;

	for (i = 0; i < world.num_mads && i < MESSAGES; i++) {
		/* QPs of their own, or a REQ would find the live connection stale. */
		if (world.mads[i].msg.attr_id == CM_REQ)
			world.mads[i].msg.req.local_qpn = 0x5a5a5a;
		if (world.mads[i].msg.attr_id == CM_REP)
			world.mads[i].msg.rep.local_qpn = 0x3c3c3c;
		cm_encode(&world.mads[i].msg, mads[i]);
		to_server[i] = world.mads[i].to_server;
	}
	return i;
}

static void drain(struct polycm_id *listener)
{
	const struct world_event *seen;

	while ((seen = world_event(listener)))
		if (seen->event.child)
			world_destroy(seen->event.child);
}

static void test_corrupt_every_byte(void **state)
{
	static uint8_t mads[MESSAGES][CM_MAD_SIZE];
	static const uint8_t flips[] = { 0x01, 0x80, 0xff };
	bool to_server[MESSAGES];
	uint8_t bad[CM_MAD_SIZE];
	unsigned int num;
	struct pair old = world_established(), pair;

	(void)state;
	assert_int_equal(world_call(old.client, disconnect), 0);
	world_run(LATENCY);
	world_expect(old.server, RDMA_CM_EVENT_DISCONNECTED, 0);
	assert_int_equal(world_call(old.server, disconnect), 0);
	world_run(LATENCY);
	num = collect(mads, to_server);
	assert_uint_equal(num, 5);
	world_end(&old);

	world.keep_mads = false;
	pair = world_established();
	for (unsigned int m = 0; m < num; m++) {
		for (unsigned int byte = 0; byte < CM_MAD_SIZE; byte++) {
			for (unsigned int flip = 0; flip < ARRAY_SIZE(flips); flip++) {
				memcpy(bad, mads[m], sizeof(bad));
				bad[byte] ^= flips[flip];
				world_inject_bytes(to_server[m], bad, sizeof(bad));
				world_run(3 * LATENCY);
				drain(pair.listener);
			}
		}
		for (unsigned int len = 0; len <= CM_MAD_SIZE + 1; len += 51)
			world_inject_bytes(to_server[m], mads[m], len <= CM_MAD_SIZE ? len : 0);
	}
	/* None of it names this connection. */
	world_run_ms(200000);
	drain(pair.listener);
	world_expect_none(pair.client);
	world_expect_none(pair.server);
	assert_int_equal(world_state(pair.client), IBCM_ESTABLISHED);
	assert_int_equal(world_state(pair.server), IBCM_ESTABLISHED);
	world_end(&pair);
	world_run_ms(1);
}

/* Noise that gets past the header, at a connection in each step. */
static void test_noise(void **state)
{
	struct pair pair;
	uint8_t mad[CM_MAD_SIZE];
	struct cm_msg msg = { .attr_id = CM_RTU };

	(void)state;
	world.keep_mads = false;
	pair = world_requested();
	cm_encode(&msg, mad);
	for (int i = 0; i < 20000; i++) {
		mad[17] = (uint8_t)(CM_REQ + sim_random_below(CM_APR - CM_REQ + 1));
		for (unsigned int byte = 24; byte < CM_MAD_SIZE; byte++)
			mad[byte] = (uint8_t)sim_random();
		if (i % 2) {
			uint32_t id = htobe32(world_sim(i % 4 == 1 ? pair.client
								   : pair.server)->ib->local_id);

			memcpy(mad + 28, &id, sizeof(id));
			memset(mad + 24, 0, 4);
		}
		world_inject_bytes(i % 3 == 0, mad, sizeof(mad));
		drain(pair.listener);
		while (world_event(pair.client))
			continue;
		while (world_event(pair.server))
			continue;
	}
	world_end(&pair);
	world_run_ms(200000);
}

#define ROCE(test) cmocka_unit_test_setup_teardown(test, world_open_roce, world_close)

int main(void)
{
	const struct CMUnitTest tests[] = {
		ROCE(test_odd_requests),
		ROCE(test_request_timers),
		ROCE(test_spoofed_ids),
		ROCE(test_dreq_checks),
		ROCE(test_corrupt_every_byte),
		ROCE(test_noise),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
