/* SPDX-License-Identifier: BSD-2-Clause */
/* ibcm_scene.c - see ibcm_scene.h. */
#include "config.h"

#include "ibcm_scene.h"

const enum ibcm_state scene_states[SITUATIONS] = {
	[REQ_SENT] = IBCM_REQ_SENT,
	[MRA_REQ_RCVD] = IBCM_MRA_REQ_RCVD,
	[MRA_REQ_SENT] = IBCM_MRA_REQ_SENT,
	[REP_SENT] = IBCM_REP_SENT,
	[MRA_REP_RCVD] = IBCM_MRA_REP_RCVD,
	[MRA_REP_SENT] = IBCM_MRA_REP_SENT,
	[ESTABLISHED_ACTIVE] = IBCM_ESTABLISHED,
	[ESTABLISHED_PASSIVE] = IBCM_ESTABLISHED,
	[DREQ_SENT] = IBCM_DREQ_SENT,
	[DREQ_RCVD] = IBCM_DREQ_RCVD,
	[TIMEWAIT] = IBCM_TIMEWAIT,
	[IDLE] = IBCM_IDLE,
};

static void establish_pair(struct scene *scene, enum situation situation)
{
	scene->pair = world_established();
	scene->id = situation == ESTABLISHED_PASSIVE ? scene->pair.server : scene->pair.client;
	scene->peer = situation == ESTABLISHED_PASSIVE ? scene->pair.client : scene->pair.server;
	if (situation < DREQ_SENT)
		return;
	if (situation == DREQ_RCVD) {
		assert_int_equal(world_call(scene->peer, disconnect), 0);
		world_run(LATENCY);
		world_expect(scene->id, RDMA_CM_EVENT_DISCONNECTED, 0);
		return;
	}
	assert_int_equal(world_call(scene->id, disconnect), 0);
	world_run(LATENCY);
	world_expect(scene->peer, RDMA_CM_EVENT_DISCONNECTED, 0);
	if (situation == DREQ_SENT)
		return;
	assert_int_equal(world_call(scene->peer, disconnect), 0);
	world_run(LATENCY);
	world_expect(scene->id, RDMA_CM_EVENT_DISCONNECTED, 0);
}

static void request_pair(struct scene *scene, enum situation situation)
{
	scene->pair = world_requested();
	scene->id = situation == MRA_REQ_SENT || situation == REP_SENT ? scene->pair.server
								       : scene->pair.client;
	scene->peer = scene->id == scene->pair.server ? scene->pair.client : scene->pair.server;
	if (situation == MRA_REQ_RCVD) {
		world_run_ms(4609);
	} else if (situation == IDLE) {
		assert_int_equal(world_call(scene->peer, reject, NULL, 0, 0), 0);
		world_run(LATENCY);
		world_expect(scene->id, RDMA_CM_EVENT_REJECTED, 28);
	} else if (situation == REP_SENT) {
		world_lose(CM_REP, 1);
		assert_int_equal(world_accept(scene->id, 0x22), 0);
		world_run(LATENCY);
	}
}

struct scene set_scene(enum situation situation)
{
	struct scene scene = { 0 };

	switch (situation) {
	case REQ_SENT:
		scene.id = scene.pair.client = world_route(RDMA_PS_TCP, PORT);
		world_lose(CM_REQ, 1);
		assert_int_equal(world_connect(scene.id, 0x11), 0);
		world_run(LATENCY);
		break;
	case MRA_REP_RCVD:
		scene.pair = world_accepted();
		scene.id = scene.pair.server;
		scene.peer = scene.pair.client;
		world_run_ms(4097);
		break;
	case MRA_REP_SENT:
		scene.pair = world_accepted();
		scene.id = scene.pair.client;
		scene.peer = scene.pair.server;
		break;
	case MRA_REQ_RCVD:
	case MRA_REQ_SENT:
	case REP_SENT:
	case IDLE:
		request_pair(&scene, situation);
		break;
	default:
		establish_pair(&scene, situation);
		break;
	}
	assert_int_equal(world_state(scene.id), scene_states[situation]);
	world_lose(CM_REQ, 0);
	world_lose(CM_REP, 0);
	world_forget();
	return scene;
}

void clear_scene(struct scene *scene)
{
	world_end(&scene->pair);
	world_run_ms(1);
}
