/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The sub-states of an InfiniBand CM id: each call in each state, with its
 * errno, what goes out, the state after it, and what the peer sees.
 */
#include "config.h"

#include <errno.h>

#include "ibcm_scene.h"

/* What a call does in each situation. */
struct row {
	enum situation situation;
	int result;
	uint16_t sent;			/* the one MAD, or NOTHING */
	enum ibcm_state after;
	uint8_t peer_event;		/* enum rdma_cm_event_type or NO_EVENT */
	int peer_status;
	uint8_t which;			/* of a REJ */
};

static void check_peer(const struct scene *scene, const struct row *row)
{
	if (!scene->peer)
		return;
	if (row->peer_event != NO_EVENT)
		world_expect(scene->peer, (enum rdma_cm_event_type)row->peer_event,
			     row->peer_status);
	world_expect_none(scene->peer);
}

static void check_row(const struct row *row, int (*call)(struct polycm_id *id))
{
	struct scene scene = set_scene(row->situation);

	assert_int_equal(call(scene.id), row->result);
	assert_int_equal(world_state(scene.id), row->after);
	world_run(LATENCY);
	assert_uint_equal(world.num_mads, row->sent == NOTHING ? 0 : 1);
	if (row->sent != NOTHING)
		assert_uint_equal(world.mads[0].msg.attr_id, row->sent);
	if (row->sent == CM_REJ) {
		assert_uint_equal(world.mads[0].msg.rej.message_rejected, row->which);
		assert_uint_equal(world.mads[0].msg.rej.reason, 28);
	}
	world_expect_none(scene.id);
	check_peer(&scene, row);
	clear_scene(&scene);
}

#define CHECK_ROWS(rows, call)						\
	do {								\
		assert_int_equal(ARRAY_SIZE(rows), SITUATIONS);		\
		for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {		\
			assert_int_equal((rows)[i].situation, i);	\
			check_row(&(rows)[i], call);			\
		}							\
	} while (0)

#define SAME(situation, result) { situation, result, NOTHING, states_of(situation), NO_EVENT, 0, 0 }
#define states_of(situation) STATE_##situation
#define STATE_REQ_SENT IBCM_REQ_SENT
#define STATE_MRA_REQ_RCVD IBCM_MRA_REQ_RCVD
#define STATE_MRA_REQ_SENT IBCM_MRA_REQ_SENT
#define STATE_REP_SENT IBCM_REP_SENT
#define STATE_MRA_REP_RCVD IBCM_MRA_REP_RCVD
#define STATE_MRA_REP_SENT IBCM_MRA_REP_SENT
#define STATE_ESTABLISHED_ACTIVE IBCM_ESTABLISHED
#define STATE_ESTABLISHED_PASSIVE IBCM_ESTABLISHED
#define STATE_DREQ_SENT IBCM_DREQ_SENT
#define STATE_DREQ_RCVD IBCM_DREQ_RCVD
#define STATE_TIMEWAIT IBCM_TIMEWAIT
#define STATE_IDLE IBCM_IDLE

static int do_disconnect(struct polycm_id *id)
{
	return world_call(id, disconnect);
}

/* 0 in every state, even where nothing can be sent. */
static void test_disconnect(void **state)
{
	static const struct row rows[] = {
		SAME(REQ_SENT, 0),
		SAME(MRA_REQ_RCVD, 0),
		SAME(MRA_REQ_SENT, 0),
		SAME(REP_SENT, 0),
		SAME(MRA_REP_RCVD, 0),
		SAME(MRA_REP_SENT, 0),
		{ ESTABLISHED_ACTIVE, 0, CM_DREQ, IBCM_DREQ_SENT,
		  RDMA_CM_EVENT_DISCONNECTED, 0, 0 },
		{ ESTABLISHED_PASSIVE, 0, CM_DREQ, IBCM_DREQ_SENT,
		  RDMA_CM_EVENT_DISCONNECTED, 0, 0 },
		SAME(DREQ_SENT, 0),
		{ DREQ_RCVD, 0, CM_DREP, IBCM_TIMEWAIT, RDMA_CM_EVENT_DISCONNECTED, 0, 0 },
		SAME(TIMEWAIT, 0),
		SAME(IDLE, 0),
	};

	(void)state;
	CHECK_ROWS(rows, do_disconnect);
}

static int do_reject(struct polycm_id *id)
{
	return world_call(id, reject, "no", 2, 0);
}

static void test_reject(void **state)
{
	static const struct row rows[] = {
		{ REQ_SENT, 0, CM_REJ, IBCM_IDLE, NO_EVENT, 0, CM_WHICH_OTHER },
		{ MRA_REQ_RCVD, 0, CM_REJ, IBCM_IDLE, NO_EVENT, 0, CM_WHICH_OTHER },
		{ MRA_REQ_SENT, 0, CM_REJ, IBCM_IDLE, RDMA_CM_EVENT_REJECTED, 28, CM_WHICH_REQ },
		/* The client saw no REP yet, so it cannot tell whose REJ this is. */
		{ REP_SENT, 0, CM_REJ, IBCM_TIMEWAIT, NO_EVENT, 0, CM_WHICH_OTHER },
		{ MRA_REP_RCVD, 0, CM_REJ, IBCM_TIMEWAIT, RDMA_CM_EVENT_REJECTED, 28,
		  CM_WHICH_OTHER },
		{ MRA_REP_SENT, 0, CM_REJ, IBCM_IDLE, RDMA_CM_EVENT_REJECTED, 28, CM_WHICH_REP },
		SAME(ESTABLISHED_ACTIVE, -EINVAL),
		SAME(ESTABLISHED_PASSIVE, -EINVAL),
		SAME(DREQ_SENT, -EINVAL),
		SAME(DREQ_RCVD, -EINVAL),
		SAME(TIMEWAIT, -EINVAL),
		SAME(IDLE, -EINVAL),
	};

	(void)state;
	CHECK_ROWS(rows, do_reject);
}

static int do_establish(struct polycm_id *id)
{
	return world_call(id, establish);
}

/* At the wrong moment it destroys what there is. */
static void test_establish(void **state)
{
	static const struct row rows[] = {
		{ REQ_SENT, -EINVAL, CM_REJ, IBCM_IDLE, NO_EVENT, 0, CM_WHICH_OTHER },
		{ MRA_REQ_RCVD, -EINVAL, CM_REJ, IBCM_IDLE, NO_EVENT, 0, CM_WHICH_OTHER },
		{ MRA_REQ_SENT, -EINVAL, CM_REJ, IBCM_IDLE, RDMA_CM_EVENT_REJECTED, 28,
		  CM_WHICH_REQ },
		{ REP_SENT, -EINVAL, CM_REJ, IBCM_TIMEWAIT, NO_EVENT, 0, CM_WHICH_OTHER },
		{ MRA_REP_RCVD, -EINVAL, CM_REJ, IBCM_TIMEWAIT, RDMA_CM_EVENT_REJECTED, 28,
		  CM_WHICH_OTHER },
		{ MRA_REP_SENT, 0, CM_RTU, IBCM_ESTABLISHED, RDMA_CM_EVENT_ESTABLISHED, 0, 0 },
		SAME(ESTABLISHED_ACTIVE, -EINVAL),
		SAME(ESTABLISHED_PASSIVE, -EINVAL),
		SAME(DREQ_SENT, -EINVAL),
		SAME(DREQ_RCVD, -EINVAL),
		SAME(TIMEWAIT, -EINVAL),
		SAME(IDLE, -EINVAL),
	};

	(void)state;
	CHECK_ROWS(rows, do_establish);
}

static int do_accept(struct polycm_id *id)
{
	return world_accept(id, 0x33);
}

/* A second accept, or one on the active side, refuses the connection. */
static void test_accept(void **state)
{
	static const struct row rows[] = {
		{ REQ_SENT, -EINVAL, CM_REJ, IBCM_IDLE, NO_EVENT, 0, CM_WHICH_OTHER },
		{ MRA_REQ_RCVD, -EINVAL, CM_REJ, IBCM_IDLE, NO_EVENT, 0, CM_WHICH_OTHER },
		{ MRA_REQ_SENT, 0, CM_REP, IBCM_REP_SENT, RDMA_CM_EVENT_CONNECT_RESPONSE, 0, 0 },
		{ REP_SENT, -EINVAL, CM_REJ, IBCM_TIMEWAIT, NO_EVENT, 0, CM_WHICH_OTHER },
		{ MRA_REP_RCVD, -EINVAL, CM_REJ, IBCM_TIMEWAIT, RDMA_CM_EVENT_REJECTED, 28,
		  CM_WHICH_OTHER },
		{ MRA_REP_SENT, -EINVAL, CM_REJ, IBCM_IDLE, RDMA_CM_EVENT_REJECTED, 28,
		  CM_WHICH_REP },
		SAME(ESTABLISHED_ACTIVE, -EINVAL),
		SAME(ESTABLISHED_PASSIVE, -EINVAL),
		SAME(DREQ_SENT, -EINVAL),
		SAME(DREQ_RCVD, -EINVAL),
		SAME(TIMEWAIT, -EINVAL),
		SAME(IDLE, -EINVAL),
	};

	(void)state;
	CHECK_ROWS(rows, do_accept);
}

static int do_connect(struct polycm_id *id)
{
	return world_connect(id, 0x33);
}

static void test_connect_again(void **state)
{
	(void)state;
	for (int situation = 0; situation < SITUATIONS; situation++) {
		struct row row = { (enum situation)situation, -EINVAL, NOTHING, scene_states[situation],
				   NO_EVENT, 0, 0 };

		check_row(&row, do_connect);
	}
}

static int notify_comm_est(struct polycm_id *id)
{
	return world_call(id, notify, IBV_EVENT_COMM_EST);
}

static void test_notify(void **state)
{
	static const int results[SITUATIONS] = {
		-EINVAL, -EINVAL, -EINVAL, 0, 0, -EINVAL, -EISCONN, -EISCONN, -EINVAL, -EINVAL,
		-EINVAL, -EINVAL,
	};
	struct scene scene;

	(void)state;
	for (int situation = 0; situation < SITUATIONS; situation++) {
		scene = set_scene((enum situation)situation);
		assert_int_equal(notify_comm_est(scene.id), results[situation]);
		if (!results[situation]) {
			world_expect(scene.id, RDMA_CM_EVENT_ESTABLISHED, 0);
			assert_int_equal(world_state(scene.id), IBCM_ESTABLISHED);
			/* The REP is not repeated any more. */
			world_run_ms(1000000);
			assert_uint_equal(world_count(CM_REP), 0);
		} else {
			assert_int_equal(world_state(scene.id), scene_states[situation]);
		}
		world_expect_none(scene.id);
		clear_scene(&scene);
	}
}

static void test_notify_others(void **state)
{
	struct scene scene = set_scene(ESTABLISHED_ACTIVE);

	(void)state;
	assert_int_equal(world_call(scene.id, notify, IBV_EVENT_PATH_MIG), 0);
	assert_int_equal(world_call(scene.id, notify, IBV_EVENT_QP_FATAL), -EINVAL);
	assert_int_equal(world_call(scene.id, notify, IBV_EVENT_PATH_MIG_ERR), -EINVAL);
	clear_scene(&scene);
	scene = set_scene(MRA_REP_SENT);
	assert_int_equal(world_call(scene.id, notify, IBV_EVENT_PATH_MIG), -EINVAL);
	clear_scene(&scene);
}

#define ROCE(test) cmocka_unit_test_setup_teardown(test, world_open_roce, world_close)

int main(void)
{
	const struct CMUnitTest tests[] = {
		ROCE(test_disconnect),
		ROCE(test_reject),
		ROCE(test_establish),
		ROCE(test_accept),
		ROCE(test_connect_again),
		ROCE(test_notify),
		ROCE(test_notify_others),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
