/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The process at the other end is gone: an id must see what it sees when that
 * end is destroyed, in whichever state it is.
 */
#include "config.h"

#include "ibcm_scene.h"
#include "providers/sim/world.h"

#define MAX_EVENTS 4u

struct outcome {
	unsigned int num;
	struct {
		enum rdma_cm_event_type type;
		int status;
	} event[MAX_EVENTS];
	enum ibcm_state state;
};

static void look_at(struct polycm_id *id, struct outcome *ret)
{
	const struct world_event *event;

	memset(ret, 0, sizeof(*ret));
	while ((event = world_event(id))) {
		assert_in_range(ret->num, 0, MAX_EVENTS - 1);
		ret->event[ret->num].type = event->event.type;
		ret->event[ret->num++].status = event->event.status;
	}
	ret->state = world_state(id);
}

static void let_die(struct polycm_id *peer)
{
	sim_lock();
	ibcm_peer_died(world_sim(peer)->ib);
	sim_unlock();
}

static void destroy(struct scene *scene)
{
	world_destroy(scene->id);
	if (scene->id == scene->pair.client)
		scene->pair.client = NULL;
	else
		scene->pair.server = NULL;
}

static void play(enum situation situation, bool dies, struct outcome *ret)
{
	struct scene scene = set_scene(situation);

	if (dies)
		let_die(scene.peer);
	else
		destroy(&scene);
	world_run(LATENCY);
	look_at(scene.peer, ret);
	clear_scene(&scene);
}

/* Those with a peer, and nothing on the wire: what was sent is read before. */
static void test_as_when_destroyed(void **state)
{
	static const enum situation situations[] = {
		MRA_REQ_RCVD, MRA_REQ_SENT, MRA_REP_RCVD, MRA_REP_SENT, ESTABLISHED_ACTIVE,
		ESTABLISHED_PASSIVE, DREQ_SENT, DREQ_RCVD, TIMEWAIT, IDLE,
	};
	struct outcome destroyed, dead;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(situations); i++) {
		play(situations[i], false, &destroyed);
		play(situations[i], true, &dead);
		if (memcmp(&destroyed, &dead, sizeof(dead)) != 0)
			fail_msg("situation %u: %u events and state %u, dead: %u and %u",
				 situations[i], destroyed.num, destroyed.state, dead.num,
				 dead.state);
	}
}

/* A host that is cut off when its process dies cannot tell. */
static void test_cut_off(void **state)
{
	static const enum situation situations[] = { ESTABLISHED_ACTIVE, MRA_REQ_RCVD, DREQ_SENT };
	struct outcome cut_off;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(situations); i++) {
		struct scene scene = set_scene(situations[i]);
		struct sim_port *port = world_sim(scene.id)->port;

		sim_lock();
		port->state = IBV_PORT_DOWN;
		sim_world_disturbed = true;
		ibcm_peer_died(world_sim(scene.peer)->ib);
		sim_unlock();
		world_run(LATENCY);
		look_at(scene.peer, &cut_off);
		assert_int_equal(cut_off.num, 0);
		sim_lock();
		port->state = IBV_PORT_ACTIVE;
		sim_world_disturbed = false;
		sim_unlock();
		clear_scene(&scene);
	}
}

/* A request for datagrams that nobody has answered. */
static void test_datagrams(void **state)
{
	struct polycm_id *listener = world_listen(RDMA_PS_UDP);
	struct polycm_id *client = world_route(RDMA_PS_UDP, PORT), *child;

	(void)state;
	assert_int_equal(world_connect(client, 1), 0);
	world_run(LATENCY);
	child = world_child(listener);
	/* The client's process: the server has nothing to be told. */
	let_die(child);
	world_expect_none(child);
	let_die(client);
	world_expect(client, RDMA_CM_EVENT_UNREACHABLE, CM_SIDR_REJECT);
	world_destroy(child);
	world_destroy(client);
	world_destroy(listener);
	world_run_ms(1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_as_when_destroyed, world_open_roce,
						world_close),
		cmocka_unit_test_setup_teardown(test_cut_off, world_open_roce, world_close),
		cmocka_unit_test_setup_teardown(test_datagrams, world_open_ib, world_close),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
