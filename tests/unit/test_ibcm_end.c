/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Ends of InfiniBand CM ids: destroyed in each state, rejected while
 * established, disconnected by both sides at once, and other rarities.
 */
#include "config.h"

#include <errno.h>

#include "ibcm_scene.h"

/* --- Destroying. --- */

struct destroy_row {
	enum situation situation;
	uint16_t sent;
	uint16_t reason;
	uint8_t peer_event;
	int peer_status;
	enum ibcm_state peer_after;
};

/* What was under way goes on to nobody: no repetition, no event. */
static void check_destroy(const struct destroy_row *row)
{
	struct scene scene = set_scene(row->situation);
	bool is_client = scene.id == scene.pair.client;

	world_destroy(scene.id);
	if (is_client)
		scene.pair.client = NULL;
	else
		scene.pair.server = NULL;
	world_run(LATENCY);
	assert_uint_equal(world.num_mads, row->sent == NOTHING ? 0 : 1);
	if (row->sent != NOTHING)
		assert_uint_equal(world.mads[0].msg.attr_id, row->sent);
	if (row->sent == CM_REJ)
		assert_uint_equal(world.mads[0].msg.rej.reason, row->reason);
	if (scene.peer) {
		if (row->peer_event != NO_EVENT)
			world_expect(scene.peer, (enum rdma_cm_event_type)row->peer_event,
				     row->peer_status);
		world_expect_none(scene.peer);
		assert_int_equal(world_state(scene.peer), row->peer_after);
	}
	clear_scene(&scene);
}

static void test_destroy(void **state)
{
	static const struct destroy_row rows[] = {
		{ REQ_SENT, CM_REJ, 4, NO_EVENT, 0, IBCM_IDLE },
		/* The server did not accept yet, so its program hears nothing. */
		{ MRA_REQ_RCVD, CM_REJ, 4, NO_EVENT, 0, IBCM_IDLE },
		{ MRA_REQ_SENT, CM_REJ, 28, RDMA_CM_EVENT_REJECTED, 28, IBCM_IDLE },
		{ REP_SENT, CM_REJ, 28, NO_EVENT, 0, IBCM_REQ_SENT },
		{ MRA_REP_RCVD, CM_REJ, 28, RDMA_CM_EVENT_REJECTED, 28, IBCM_TIMEWAIT },
		{ MRA_REP_SENT, CM_REJ, 28, RDMA_CM_EVENT_REJECTED, 28, IBCM_IDLE },
		{ ESTABLISHED_ACTIVE, CM_DREQ, 0, RDMA_CM_EVENT_DISCONNECTED, 0, IBCM_DREQ_RCVD },
		{ ESTABLISHED_PASSIVE, CM_DREQ, 0, RDMA_CM_EVENT_DISCONNECTED, 0, IBCM_DREQ_RCVD },
		{ DREQ_SENT, NOTHING, 0, NO_EVENT, 0, IBCM_DREQ_RCVD },
		{ DREQ_RCVD, CM_DREP, 0, RDMA_CM_EVENT_DISCONNECTED, 0, IBCM_TIMEWAIT },
		{ TIMEWAIT, NOTHING, 0, NO_EVENT, 0, IBCM_TIMEWAIT },
		{ IDLE, NOTHING, 0, NO_EVENT, 0, IBCM_IDLE },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		check_destroy(&rows[i]);
}

/* Who gave up names itself by its CA's GUID: it does not know the server's id. */
static void test_destroy_requesting(void **state)
{
	struct pair pair = world_requested();
	const struct cm_rej *rej;

	(void)state;
	world_destroy(pair.client);
	pair.client = NULL;
	world_run(LATENCY);
	rej = &world_mad(CM_REJ, 0)->msg.rej;
	assert_uint_equal(rej->reason, CM_REJ_TIMEOUT);
	assert_uint_equal(rej->message_rejected, CM_WHICH_OTHER);
	assert_uint_equal(rej->remote_comm_id, 0);
	assert_uint_equal(rej->info_length, 8);
	assert_memory_equal(rej->ari, &world.client_device->vdev.node_guid, 8);
	assert_int_equal(world_state(pair.server), IBCM_IDLE);
	world_expect_none(pair.server);
	/* The server learns it from its accept. */
	world_forget();
	assert_int_equal(world_accept(pair.server, 2), -EINVAL);
	world_run(LATENCY);
	assert_uint_equal(world.num_mads, 0);
	world_end(&pair);
	world_run_ms(1);
}

/* Once accepted, a client that gave up is an event. */
static void test_give_up_after_accept(void **state)
{
	struct pair pair = world_requested();

	(void)state;
	world_lose(CM_REP, 1);
	assert_int_equal(world_accept(pair.server, 2), 0);
	world_run(LATENCY);
	world_destroy(pair.client);
	pair.client = NULL;
	world_run(LATENCY);
	world_expect(pair.server, RDMA_CM_EVENT_REJECTED, CM_REJ_TIMEOUT);
	assert_int_equal(world_state(pair.server), IBCM_IDLE);
	world_forget();
	world_run_ms(100000);
	assert_uint_equal(world.num_mads, 0);
	world_end(&pair);
	world_run_ms(1);
}

/* --- Rarities. --- */

static void test_simultaneous_disconnect(void **state)
{
	struct pair pair = world_established();

	(void)state;
	assert_int_equal(world_call(pair.client, disconnect), 0);
	assert_int_equal(world_call(pair.server, disconnect), 0);
	world_run(LATENCY);
	world_expect(pair.client, RDMA_CM_EVENT_DISCONNECTED, 0);
	world_expect(pair.server, RDMA_CM_EVENT_DISCONNECTED, 0);
	assert_int_equal(world_state(pair.client), IBCM_DREQ_RCVD);
	assert_int_equal(world_state(pair.server), IBCM_DREQ_RCVD);
	/* Nobody sends a DREP by itself, nothing is repeated, no TIMEWAIT_EXIT. */
	world_forget();
	world_run_ms(1000000);
	assert_uint_equal(world.num_mads, 0);
	world_expect_none(pair.client);
	world_expect_none(pair.server);
	/* One more call: its DREP ends both. */
	assert_int_equal(world_call(pair.client, disconnect), 0);
	world_run_ms(513);
	assert_uint_equal(world_count(CM_DREP), 1);
	world_expect(pair.client, RDMA_CM_EVENT_TIMEWAIT_EXIT, 0);
	world_expect(pair.server, RDMA_CM_EVENT_TIMEWAIT_EXIT, 0);
	world_end(&pair);
}

/*
 * An establish too early takes the id out of the game, but its REQ is still
 * repeated: a server that was late to listen gets a request of nobody.
 */
static void test_early_establish_repeats_req(void **state)
{
	struct polycm_id *client = world_route(RDMA_PS_TCP, PORT), *listener, *child;

	(void)state;
	world_lose(CM_REQ, 1);
	assert_int_equal(world_connect(client, 1), 0);
	world_run(LATENCY);
	world_lose(CM_REQ, 0);
	assert_int_equal(world_call(client, establish), -EINVAL);
	assert_int_equal(world_state(client), IBCM_IDLE);
	listener = world_listen(RDMA_PS_TCP);
	world_run_ms(4609);
	child = world_child(listener);
	assert_int_equal(world_accept(child, 2), 0);
	world_run_ms(70000);
	world_expect(child, RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT);
	/* All sixteen, then silence, and no event for the client. */
	world_run_ms(100000);
	assert_uint_equal(world_count(CM_REQ), 16);
	world_expect_none(client);
	world_destroy(client);
	world_destroy(child);
	world_expect_none(listener);
	world_destroy(listener);
	world_run_ms(1);
}

/* A REJ on a live connection: REJECTED, and no TIMEWAIT_EXIT since it never disconnected. */
static void test_rej_when_established(void **state)
{
	struct pair pair = world_established();
	struct cm_msg rej = {
		.attr_id = CM_REJ,
		.rej = {
			.local_comm_id = world_sim(pair.client)->ib->local_id,
			.remote_comm_id = world_sim(pair.server)->ib->local_id,
			.message_rejected = CM_WHICH_OTHER,
			.reason = CM_REJ_NO_RESOURCES,
		},
	};

	(void)state;
	world_inject(true, &rej);
	world_expect(pair.server, RDMA_CM_EVENT_REJECTED, CM_REJ_NO_RESOURCES);
	assert_int_equal(world_state(pair.server), IBCM_TIMEWAIT);
	world_run_ms(1000);
	assert_int_equal(world_state(pair.server), IBCM_IDLE);
	world_expect_none(pair.server);
	world_end(&pair);
	world_run_ms(1);
}

static void test_rej_of_dreq(void **state)
{
	struct pair pair = world_established();
	struct cm_msg rej = {
		.attr_id = CM_REJ,
		.rej = {
			.local_comm_id = world_sim(pair.server)->ib->local_id,
			.remote_comm_id = world_sim(pair.client)->ib->local_id,
			.message_rejected = CM_WHICH_OTHER,
			.reason = CM_REJ_INVALID_COMM_ID,
		},
	};

	(void)state;
	assert_int_equal(world_call(pair.client, disconnect), 0);
	world_inject(false, &rej);
	world_expect(pair.client, RDMA_CM_EVENT_REJECTED, CM_REJ_INVALID_COMM_ID);
	assert_int_equal(world_state(pair.client), IBCM_TIMEWAIT);
	world_end(&pair);
	world_run_ms(1);
}

/* QP numbers are free for a new connection as soon as TIMEWAIT begins. */
static void test_reuse_in_timewait(void **state)
{
	struct scene scene = set_scene(TIMEWAIT);
	struct polycm_id *client, *server;

	(void)state;
	assert_int_equal(world_state(scene.peer), IBCM_TIMEWAIT);
	client = world_route(RDMA_PS_TCP, PORT);
	assert_int_equal(world_connect(client, 0x11), 0);
	world_run(LATENCY);
	server = world_child(scene.pair.listener);
	assert_int_equal(world_accept(server, 0x22), 0);
	world_run(LATENCY);
	world_expect(client, RDMA_CM_EVENT_CONNECT_RESPONSE, 0);
	world_destroy(client);
	world_destroy(server);
	clear_scene(&scene);
}

#define ROCE(test) cmocka_unit_test_setup_teardown(test, world_open_roce, world_close)

int main(void)
{
	const struct CMUnitTest tests[] = {
		ROCE(test_destroy),
		ROCE(test_destroy_requesting),
		ROCE(test_give_up_after_accept),
		ROCE(test_simultaneous_disconnect),
		ROCE(test_early_establish_repeats_req),
		ROCE(test_rej_when_established),
		ROCE(test_rej_of_dreq),
		ROCE(test_reuse_in_timewait),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
