/* SPDX-License-Identifier: BSD-2-Clause */
/* lives.c - see lives.h: what a program does at random, and what it is told. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "lives.h"

#define FIRST_PORT 7000u
#define PORTS 3u
#define LONGEST UINT64_C(10000000000000)	/* ns in which all must have come to rest */

/* ------------------------------------------------------------------------
 * Ids.
 */

static struct life *begin_life(struct world *world, enum role role, struct rdma_cm_id *id)
{
	struct life *life = world->lives;

	while (life < world->lives + MAX_LIVES && life->id)
		life++;
	if (life == world->lives + MAX_LIVES)
		return NULL;
	memset(life, 0, sizeof(*life));
	life->number = ++world->num_lives;
	life->role = role;
	life->id = id;
	life->ps = id->ps;
	id->context = life;
	return life;
}

static void end_life(struct world *world, struct life *life)
{
	lives_say(world, "destroy %u", life->number);
	if (life->id->qp)
		rdma_destroy_qp(life->id);
	if (rdma_destroy_id(life->id))
		broken(world, "id %u cannot be destroyed: %s", life->number, strerror(errno));
	life->id = NULL;
}

/* One of those that live; NULL: there is none. */
static struct life *any_life(struct world *world, enum role role)
{
	unsigned int first = lives_below(world, MAX_LIVES);

	for (unsigned int i = 0; role == PASSIVE && i < MAX_LIVES; i++)
		if (world->lives[i].id && world->lives[i].role == role && !world->lives[i].tried &&
		    lives_chance(world, 50))
			return &world->lives[i];

	for (unsigned int i = 0; i < MAX_LIVES; i++) {
		struct life *life = &world->lives[(first + i) % MAX_LIVES];

		if (life->id && life->role == role)
			return life;
	}
	return NULL;
}

/* ------------------------------------------------------------------------
 * Events.
 */

static struct life *life_of(struct world *world, const struct rdma_cm_id *id, const char *event)
{
	for (struct life *life = world->lives; life < world->lives + MAX_LIVES; life++)
		if (life->id && life->id == id)
			return life;
	broken(world, "%s for an id that is not there", event);
}

/* false: there are lives enough. */
static bool take_request(struct world *world, const struct rdma_cm_event *event)
{
	struct life *listener = life_of(world, event->listen_id, "CONNECT_REQUEST"), *life;

	if (listener->role != LISTENER)
		broken(world, "CONNECT_REQUEST for id %u, which does not listen", listener->number);
	life = begin_life(world, PASSIVE, event->id);
	if (life)
		lives_say(world, "  id %u", life->number);
	return life != NULL;
}

static void check_outcome(struct world *world, struct life *life, const char *name)
{
	bool again = life->outcomes && !(life->role == ACTIVE && !life->id->qp);

	if (!life->tried)
		broken(world, "%s for id %u, which did not ask for it", name, life->number);
	if (again)
		broken(world, "%s for id %u after another outcome", name, life->number);
	life->outcomes++;
}

/* On a connection that is there, or was answered, the peer may still say no. */
static void check_rejected(struct world *world, struct life *life)
{
	if (!life->tried)
		broken(world, "REJECTED for id %u, which did not ask for it", life->number);
	life->outcomes++;
	life->established = life->left = false;
}

static void check_end(struct world *world, struct life *life, enum rdma_cm_event_type type)
{
	if (type == RDMA_CM_EVENT_DISCONNECTED) {
		if (!life->tried || life->disconnects++)
			broken(world, "DISCONNECTED for id %u %s", life->number,
			       life->tried ? "twice" : "which was not connected");
		life->outcomes += life->role == PASSIVE && !life->outcomes;
	} else if (!life->disconnects || life->timewaits++) {
		broken(world, "TIMEWAIT_EXIT for id %u %s", life->number,
		       life->disconnects ? "twice" : "without DISCONNECTED");
	}
}

static void count_down(struct world *world, struct life *life, unsigned int *calls,
		       const char *name)
{
	if (!*calls)
		broken(world, "%s for id %u, which did not ask for it", name, life->number);
	--*calls;
}

static void take_event(struct world *world, const struct rdma_cm_event *event)
{
	const char *name = rdma_event_str(event->event);
	struct life *life;

	life = life_of(world, event->id, name);
	if (event->id->context != life)
		broken(world, "id %u has another context", life->number);
	if (life->removed)
		broken(world, "%s for id %u after DEVICE_REMOVAL", name, life->number);
	switch (event->event) {
	case RDMA_CM_EVENT_ADDR_ERROR:
		/* A UD lookup whose Q_Key does not fit ends like that. */
		if (!life->resolving && life->tried && life->ps == RDMA_PS_UDP) {
			check_outcome(world, life, name);
			return;
		}
		/* fall through */
	case RDMA_CM_EVENT_ADDR_RESOLVED:
		count_down(world, life, &life->resolving, name);
		if (event->event == RDMA_CM_EVENT_ADDR_RESOLVED)
			life->stage = RESOLVED;
		return;
	case RDMA_CM_EVENT_ROUTE_RESOLVED:
	case RDMA_CM_EVENT_ROUTE_ERROR:
		count_down(world, life, &life->routing, name);
		if (event->event == RDMA_CM_EVENT_ROUTE_RESOLVED)
			life->stage = ROUTED;
		return;
	case RDMA_CM_EVENT_UNREACHABLE:
		if (world->moves)
			return;
		/* fall through */
	case RDMA_CM_EVENT_CONNECT_RESPONSE:
	case RDMA_CM_EVENT_ESTABLISHED:
	case RDMA_CM_EVENT_CONNECT_ERROR:
		if (event->event == RDMA_CM_EVENT_CONNECT_RESPONSE)
			life->stage = RESPONDED;
		life->established = event->event == RDMA_CM_EVENT_ESTABLISHED;
		check_outcome(world, life, name);
		return;
	case RDMA_CM_EVENT_REJECTED:
		check_rejected(world, life);
		return;
	case RDMA_CM_EVENT_DISCONNECTED:
	case RDMA_CM_EVENT_TIMEWAIT_EXIT:
		check_end(world, life, event->event);
		return;
	case RDMA_CM_EVENT_DEVICE_REMOVAL:
		life->removed = true;
		return;
	case RDMA_CM_EVENT_ADDR_CHANGE:
		return;
	default:
		broken(world, "%s for id %u", name, life->number);
	}
}

static bool take_one(struct world *world, struct rdma_event_channel *channel)
{
	struct rdma_cm_event *event;
	struct rdma_cm_id *unwanted = NULL;

	if (rdma_get_cm_event(channel, &event)) {
		if (errno != EAGAIN)
			broken(world, "no event: %s", strerror(errno));
		return false;
	}
	lives_say(world, "  %s, status %d", rdma_event_str(event->event), event->status);
	if (event->id->channel != channel && event->event != RDMA_CM_EVENT_CONNECT_REQUEST)
		broken(world, "%s on another channel than the id's", rdma_event_str(event->event));
	if (event->event != RDMA_CM_EVENT_CONNECT_REQUEST)
		take_event(world, event);
	else if (!take_request(world, event))
		unwanted = event->id;
	if (rdma_ack_cm_event(event))
		broken(world, "an event cannot be acked: %s", strerror(errno));
	if (unwanted)
		rdma_destroy_id(unwanted);
	return true;
}

unsigned int lives_take_events(struct world *world)
{
	unsigned int num = 0;

	for (unsigned int i = 0; i < world->num_channels; i++)
		while (take_one(world, world->channels[i]))
			num++;
	return num;
}

/* ------------------------------------------------------------------------
 * Calls.  Each may fail; what they said must be told.
 */

static struct sockaddr_in address_of(unsigned int node, unsigned int port)
{
	return (struct sockaddr_in){
		.sin_family = AF_INET,
		.sin_port = htons((uint16_t)port),
		.sin_addr.s_addr = htonl(0x0a000001 + node),
	};
}

static bool result(struct world *world, const struct life *life, const char *call, int r)
{
	lives_say(world, "%s %u: %s", call, life->number, r ? strerror(errno) : "well");
	if (r && r != -1)
		broken(world, "%s returns %d", call, r);
	/* On a node that stands still for ever a call may wait for what never comes. */
	if (r && ((errno == EDEADLK && !world->halts) || errno == EFAULT || !errno))
		broken(world, "%s of id %u fails with %s", call, life->number, strerror(errno));
	return !r;
}

static struct life *create(struct world *world, enum role role)
{
	struct rdma_event_channel *channel = world->channels[lives_below(world,
									 world->num_channels)];
	enum rdma_port_space ps = lives_chance(world, 20) ? RDMA_PS_UDP : RDMA_PS_TCP;
	struct rdma_cm_id *id;
	struct life *life;

	if (rdma_create_id(channel, &id, NULL, ps))
		return NULL;
	life = begin_life(world, role, id);
	if (!life) {
		rdma_destroy_id(id);
		return NULL;
	}
	life->node = lives_below(world, world->num_nodes);
	lives_say(world, "create %u: %s, %s on node%u", life->number,
		  role == LISTENER ? "listener" : "active", ps == RDMA_PS_TCP ? "TCP" : "UDP",
		  life->node);
	return life;
}

static void start_listening(struct world *world)
{
	struct life *life = create(world, LISTENER);
	struct sockaddr_in at;

	if (!life)
		return;
	life->port = FIRST_PORT + lives_below(world, PORTS);
	at = address_of(life->node, life->port);
	if (lives_chance(world, 30))
		at.sin_addr.s_addr = 0;
	polycm_sim_node_use(world->nodes[life->node]);
	if (result(world, life, "bind", rdma_bind_addr(life->id, (struct sockaddr *)&at)))
		result(world, life, "listen", rdma_listen(life->id, (int)lives_below(world, 6)));
}

/* As a rule to where somebody listens. */
static void resolve(struct world *world, struct life *life)
{
	struct sockaddr_in from = address_of(life->node, 0);
	struct sockaddr_in to = address_of(lives_below(world, world->num_nodes),
					   FIRST_PORT + lives_below(world, PORTS));
	const struct life *listener = any_life(world, LISTENER);

	for (unsigned int i = 0; i < 4 && listener && listener->ps != life->ps; i++)
		listener = any_life(world, LISTENER);
	if (listener && lives_chance(world, 90))
		to = address_of(listener->node, listener->port);
	if (result(world, life, "resolve_addr",
		   rdma_resolve_addr(life->id, (struct sockaddr *)&from, (struct sockaddr *)&to,
				     1 + (int)lives_below(world, 3000))))
		life->resolving++;
}

static void create_qp(struct world *world, struct life *life)
{
	struct ibv_qp_init_attr attr = {
		.qp_type = life->ps == RDMA_PS_TCP ? IBV_QPT_RC : IBV_QPT_UD,
		.cap = { .max_send_wr = 2, .max_recv_wr = 2, .max_send_sge = 1, .max_recv_sge = 1 },
	};

	if (!life->id->qp && life->id->verbs)
		result(world, life, "create_qp", rdma_create_qp(life->id, NULL, &attr));
}

static struct rdma_conn_param parameters(const struct life *life)
{
	return (struct rdma_conn_param){
		.private_data = life,
		.private_data_len = 40,
		.responder_resources = 1,
		.initiator_depth = 1,
		.retry_count = 7,
		.rnr_retry_count = 7,
		.qp_num = 0x100 + life->number,
	};
}

static void start_connecting(struct world *world, struct life *life)
{
	static const uint8_t data[40];
	struct rdma_conn_param param = parameters(life);

	param.private_data = data;
	if (lives_chance(world, 70))
		create_qp(world, life);
	if (life->id->verbs &&
	    result(world, life, "connect", rdma_connect(life->id, &param))) {
		life->tried = true;
		life->stage = CONNECTING;
	}
}

static void establish(struct world *world, struct life *life)
{
	/* At the wrong moment it ends the attempt, as in Linux. */
	if (!result(world, life, "establish", rdma_establish(life->id)))
		life->ended = true;
}

static void resolve_route(struct world *world, struct life *life)
{
	if (life->id->verbs &&
	    result(world, life, "resolve_route", rdma_resolve_route(life->id, 2000)))
		life->routing++;
}

/* The next thing that makes sense, or something else. */
static void go_on(struct world *world, struct life *life)
{
	static void (*const calls[])(struct world *world, struct life *life) = {
		[NEW] = resolve,
		[RESOLVED] = resolve_route,
		[ROUTED] = start_connecting,
		[CONNECTING] = create_qp,
		[RESPONDED] = establish,
	};

	if (lives_chance(world, 90))
		calls[life->stage](world, life);
	else
		calls[lives_below(world, sizeof(calls) / sizeof(calls[0]))](world, life);
}

static void answer(struct world *world, struct life *life)
{
	static const uint8_t data[40];
	struct rdma_conn_param param = parameters(life);

	param.private_data = data;
	if (lives_chance(world, 20)) {
		/* Of one that was accepted it gives up what was under way. */
		if (result(world, life, "reject", rdma_reject(life->id, data, 20)))
			life->ended = true;
		return;
	}
	if (lives_chance(world, 80))
		create_qp(world, life);
	if (result(world, life, "accept", rdma_accept(life->id, &param)))
		life->tried = true;
	else
		life->ended = true;
}

static void migrate(struct world *world, struct life *life)
{
	unsigned int to = lives_below(world, world->num_channels);

	result(world, life, "migrate", rdma_migrate_id(life->id, world->channels[to]));
}

static void disconnect(struct world *world, struct life *life)
{
	if (life->id->verbs && result(world, life, "disconnect", rdma_disconnect(life->id))) {
		life->ended = true;
		life->left = life->established && life->ps == RDMA_PS_TCP;
	}
}

static void act(struct world *world, enum role role)
{
	struct life *life = any_life(world, role);
	uint32_t what = lives_below(world, 40);

	if (!life)
		return;
	if (what == 0)
		end_life(world, life);
	else if (what == 1)
		migrate(world, life);
	else if (what < (life->outcomes ? 20u : 3u))
		disconnect(world, life);
	else if (role == ACTIVE)
		go_on(world, life);
	else if (role == PASSIVE && (!life->tried || lives_chance(world, 10)))
		answer(world, life);
	else if (life->outcomes > life->disconnects + 1 || lives_chance(world, 10))
		end_life(world, life);
}

static void pass_time(struct world *world)
{
	static const uint64_t spans[] = { 1000, 10000, 100000, 100000, 1000000, 10000000,
					  1000000000, 5000000000, 100000000000 };
	uint64_t span = spans[lives_below(world, sizeof(spans) / sizeof(spans[0]))];
	uint64_t ns = 1 + lives_below(world, 1000) * span / 1000;

	lives_say(world, "%llu ns pass", (unsigned long long)ns);
	if (polycm_sim_advance(ns))
		broken(world, "time does not move: %s", strerror(errno));
}

static void step(struct world *world)
{
	uint32_t what = lives_below(world, 20);

	if (what == 0)
		start_listening(world);
	else if (what == 1 && lives_chance(world, 30))
		act(world, LISTENER);
	else if (what < 4)
		(void)create(world, ACTIVE);
	else if (what < 8)
		pass_time(world);
	else if (what < 12)
		act(world, PASSIVE);
	else
		act(world, ACTIVE);
}

/* ------------------------------------------------------------------------
 * The whole.
 */

static void come_to_rest(struct world *world)
{
	unsigned int rounds = 0;

	do {
		if (polycm_sim_run(LONGEST))
			broken(world, "does not come to rest: %s", strerror(errno));
		if (++rounds > 1000)
			broken(world, "events without end");
	} while (lives_take_events(world));
}

static void check_rest(struct world *world)
{
	for (struct life *life = world->lives; life < world->lives + MAX_LIVES; life++) {
		if (!life->id || life->removed || world->halts)
			continue;
		if (life->resolving || life->routing)
			broken(world, "a lookup of id %u never ended", life->number);
		if (life->left && !life->disconnects)
			broken(world, "id %u was never disconnected", life->number);
		if (life->tried && !life->ended && !life->outcomes && !world->moves &&
		    !(life->role == PASSIVE && life->ps == RDMA_PS_UDP))
			broken(world, "the attempt of id %u (%s, %s) never ended", life->number,
			       life->role == ACTIVE ? "active" : "passive",
			       world->transports[life->node]);
	}
}

void lives_play(struct world *world)
{
	unsigned int steps = 30 + lives_below(world, 100);

	world->num_channels = 1 + lives_below(world, MAX_CHANNELS);
	for (unsigned int i = 0; i < world->num_channels; i++) {
		world->channels[i] = rdma_create_event_channel();
		if (!world->channels[i])
			broken(world, "no channel: %s", strerror(errno));
		fcntl(world->channels[i]->fd, F_SETFL, O_NONBLOCK);
	}
	for (unsigned int i = 0; i < 2; i++)
		start_listening(world);
	for (unsigned int i = 0; i < steps; i++) {
		step(world);
		if (lives_chance(world, 70))
			(void)lives_take_events(world);
	}
	come_to_rest(world);
	check_rest(world);
	for (struct life *life = world->lives; life < world->lives + MAX_LIVES; life++)
		if (life->id)
			end_life(world, life);
	come_to_rest(world);
	for (unsigned int i = 0; i < world->num_channels; i++)
		rdma_destroy_event_channel(world->channels[i]);
	/* Requests that nobody retrieved are rejected as their channel goes. */
	if (polycm_sim_run(LONGEST))
		broken(world, "does not come to rest: %s", strerror(errno));
}
