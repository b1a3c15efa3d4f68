/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The process at the other end is gone: an id must see what it sees when that
 * end is destroyed, in whichever state it is.
 */
#include "config.h"

#include "ibcm_scene.h"
#include "providers/soft/fabric/world.h"

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

#define NOTE_SIZE (2 * sizeof(uint32_t) + sizeof(uint8_t))

static void give(const struct ibcm *cm, const uint8_t *note, size_t len, unsigned int from_slot)
{
	ibcm_recv_note(&(struct sim_packet){
		.type = SIM_PACKET_NOTE,
		.from = cm->peer,
		.to = cm->id->port,
		.from_slot = from_slot,
		.data = note,
		.len = len,
	});
}

static void put_note(uint8_t *note, const struct ibcm *cm, const struct ibcm *dead)
{
	uint32_t ids[2] = { cm->remote_id, cm->local_id };

	if (dead) {
		ids[0] = dead->local_id;
		ids[1] = dead->remote_id;
	}
	memcpy(note, ids, sizeof(ids));
	note[sizeof(ids)] = dead ? dead->state : IBCM_IDLE;
}

/* NULL: it was destroyed. */
static void tell(const struct ibcm *cm, const struct ibcm *dead)
{
	uint8_t note[NOTE_SIZE];

	put_note(note, cm, dead);
	give(cm, note, sizeof(note), sim_self_slot());
}

/* As if `dead' were the id of another process, which told the other end all along how it is. */
static void let_die(struct polycm_id *dead, struct polycm_id *peer)
{
	struct ibcm *cm = world_sim(peer)->ib;

	sim_lock();
	tell(cm, dead ? world_sim(dead)->ib : NULL);
	ibcm_peer_died(cm);
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
		let_die(scene.id, scene.peer);
	else
		destroy(&scene);
	world_run(LATENCY);
	look_at(scene.peer, ret);
	clear_scene(&scene);
}

/* Those with a peer, and nothing on the wire: what was sent is read before, or lost. */
static void test_as_when_destroyed(void **state)
{
	static const enum situation situations[] = {
		MRA_REQ_RCVD, MRA_REQ_SENT, REP_SENT, MRA_REP_RCVD, MRA_REP_SENT, ESTABLISHED_ACTIVE,
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

/*
 * A message of its own that was lost does not come again because the process
 * dies: neither from an id that is still there nor from one that is destroyed.
 */
static void test_lost_before(void **state)
{
	static const struct {
		enum situation situation;
		enum cm_attr_id lost;
		bool disconnects, is_destroyed;
	} table[] = {
		{ ESTABLISHED_ACTIVE, CM_DREQ, true, false },
		{ ESTABLISHED_ACTIVE, CM_DREQ, true, true },
		{ ESTABLISHED_ACTIVE, CM_DREQ, false, true },
		{ ESTABLISHED_PASSIVE, CM_DREQ, true, true },
		{ DREQ_RCVD, CM_DREP, true, false },
		{ DREQ_RCVD, CM_DREP, false, true },
		{ MRA_REQ_SENT, CM_REJ, false, true },
		{ MRA_REQ_RCVD, CM_REJ, false, true },
	};
	struct outcome outcome;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
		struct scene scene = set_scene(table[i].situation);
		enum ibcm_state before = world_state(scene.peer);

		world_lose(table[i].lost, WORLD_ALL);
		if (table[i].disconnects)
			assert_int_equal(world_call(scene.id, disconnect), 0);
		if (table[i].is_destroyed)
			destroy(&scene);
		world_run(LATENCY);
		let_die(table[i].is_destroyed ? NULL : scene.id, scene.peer);
		world_run(LATENCY);
		look_at(scene.peer, &outcome);
		if (outcome.num || outcome.state != before)
			fail_msg("line %zu: %u events, and state %u", i, outcome.num, outcome.state);
		world_lose(table[i].lost, 0);
		clear_scene(&scene);
	}
}

/* A host that is cut off when its process dies cannot tell. */
static void test_cut_off(void **state)
{
	static const enum situation situations[] = { ESTABLISHED_ACTIVE, MRA_REQ_RCVD, DREQ_RCVD };
	struct outcome cut_off;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(situations); i++) {
		struct scene scene = set_scene(situations[i]);
		struct sim_port *port = world_sim(scene.id)->port;

		sim_lock();
		tell(world_sim(scene.peer)->ib, world_sim(scene.id)->ib);
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

/* Other processes may write anything. */
static void test_hostile_notes(void **state)
{
	struct scene scene = set_scene(ESTABLISHED_ACTIVE);
	struct ibcm *cm = world_sim(scene.peer)->ib;
	const struct ibcm *dead = world_sim(scene.id)->ib;
	uint8_t note[NOTE_SIZE + 1] = { 0 };

	(void)state;
	sim_lock();
	put_note(note, cm, dead);
	cm->peer_state = IBCM_TIMEWAIT;
	for (size_t len = 0; len <= sizeof(note); len++)
		if (len != NOTE_SIZE)
			give(cm, note, len, sim_self_slot());
	give(cm, note, NOTE_SIZE, sim_self_slot() + 1);
	for (size_t byte = 0; byte < 2 * sizeof(uint32_t); byte++) {
		note[byte] ^= 0x80;
		give(cm, note, NOTE_SIZE, sim_self_slot());
		note[byte] ^= 0x80;
	}
	for (unsigned int other = IBCM_SIDR_REQ_RCVD + 1; other <= UINT8_MAX; other++) {
		note[NOTE_SIZE - 1] = (uint8_t)other;
		give(cm, note, NOTE_SIZE, sim_self_slot());
	}
	assert_int_equal(cm->peer_state, IBCM_TIMEWAIT);
	tell(cm, dead);
	assert_int_equal(cm->peer_state, IBCM_ESTABLISHED);
	sim_unlock();
	clear_scene(&scene);
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
	let_die(client, child);
	world_expect_none(child);
	let_die(child, client);
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
		cmocka_unit_test_setup_teardown(test_lost_before, world_open_roce, world_close),
		cmocka_unit_test_setup_teardown(test_hostile_notes, world_open_roce, world_close),
		cmocka_unit_test_setup_teardown(test_cut_off, world_open_roce, world_close),
		cmocka_unit_test_setup_teardown(test_datagrams, world_open_ib, world_close),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
