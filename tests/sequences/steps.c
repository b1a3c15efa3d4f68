/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * steps.c - owns the steps: which call comes next and what is waited for after
 * it.  Not drawn are calls that crash librdmacm or the kernel (on iWARP, that an
 * id which connects is asked to answer), and to connect to a wildcard or over
 * RoCE to ::1: the request cannot be sent, and after that rxe's QP 1 sends
 * nothing any more, for any other sequence either.
 */
#include <netinet/in.h>

#include "sequence.h"

/* What one end has set going reaches the other. */
enum { SOON_MS = 300, RESOLVE_MS = 2000 };

static const char *ps_text(enum rdma_port_space ps)
{
	return ps == RDMA_PS_TCP ? "TCP" : ps == RDMA_PS_UDP ? "UDP" : "IPOIB";
}

/* say() and tried() of a call with what it was given. */
#define TRIED(call, ...)                                                                           \
	(snprintf(call_text, sizeof(call_text), __VA_ARGS__), errno = 0, tried(call_text, (call)))
static char call_text[256];

static void show_device(const struct rdma_cm_id *id)
{
	if (id->verbs)
		say("%s on %s", id_name(id),
		    id->verbs->device->transport_type == IBV_TRANSPORT_IWARP ? "iwarp" : "roce");
}

/* --- Making and ending. --- */

static void create(struct actor *actor)
{
	static const enum rdma_port_space spaces[] = { RDMA_PS_TCP, RDMA_PS_UDP, RDMA_PS_IPOIB };
	static const unsigned int weights[] = { 74, 24, 2 };

	actor->ps = spaces[draw_weighted(weights, ARRAY_LEN(weights))];
	actor->id = make_id(actor->name, actor->events, actor->ps);
	actor->state = FRESH;
	actor->peer = NULL;
	actor->at = NULL;
	actor->answered = false;
	say("%s of %s", actor->name, ps_text(actor->ps));
}

static unsigned int end_ms(const struct actor *actor)
{
	return actor->answered ? rest_ms() : SOON_MS;
}

static void destroy_peer(struct actor *actor)
{
	struct rdma_cm_id *peer = actor->peer;

	actor->peer = NULL;
	destroy_shown(id_name(peer), peer);
	take_until_quiet(end_ms(actor));
}

static void destroy(struct actor *actor)
{
	struct rdma_cm_id *id = actor->id;

	/* Its peer is still found by its own id. */
	destroy_shown(actor->name, id);
	take_until_quiet(end_ms(actor));
	if (actor->peer)
		destroy_peer(actor);
	actor->id = NULL;
}

/* --- Addresses. --- */

static void set_option(struct actor *actor)
{
	int name = draw_percent(50) ? RDMA_OPTION_ID_REUSEADDR : RDMA_OPTION_ID_AFONLY, on = 1;

	TRIED(rdma_set_option(actor->id, RDMA_OPTION_ID, name, &on, sizeof(on)), "%s: %s",
	      actor->name, name == RDMA_OPTION_ID_REUSEADDR ? "REUSEADDR" : "AFONLY");
}

static void bind_id(struct actor *actor)
{
	enum place place = draw_own_place();
	struct sockaddr *address;
	int port = draw_port();

	if (actor->state == FRESH && draw_percent(15))
		set_option(actor);
	address = at(place, port);
	if (!TRIED(rdma_bind_addr(actor->id, address), "rdma_bind_addr(%s, %s)", actor->name,
		   address_text(address)) && actor->state == FRESH) {
		actor->state = BOUND;
		actor->place = place;
		actor->port = port;
		show_addresses(actor->id);
		show_device(actor->id);
	}
}

static void listen_id(struct actor *actor)
{
	if (TRIED(rdma_listen(actor->id, 0), "rdma_listen(%s)", actor->name))
		return;
	if (actor->state == FRESH)
		actor->port = ANY_PORT;
	actor->state = LISTENING;
	show_addresses(actor->id);
}

/* Mostly where somebody listens. */
static struct sockaddr *draw_destination(void)
{
	unsigned int first = draw(MAX_ACTORS), i;
	bool listener = draw_percent(75);
	struct sockaddr *address;
	struct actor *actor;
	enum place place;
	int port = draw_port();

	for (i = 0; listener && i < MAX_ACTORS; i++) {
		actor = &actors[(first + i) % MAX_ACTORS];
		if (!actor->id || actor->state != LISTENING || actor->port == ANY_PORT)
			continue;
		place = actor->place == ANY4 || actor->place == ANY6 ? draw_target() : actor->place;
		return at(place, actor->port);
	}
	address = at(draw_target(), port == ANY_PORT ? 2 : port);
	return address;
}

/* Mostly of the destination's family, and none where the id has one. */
static struct sockaddr *draw_source(const struct actor *actor, sa_family_t family)
{
	struct sockaddr *source;
	bool any_family = draw_percent(10);
	int port = draw_percent(75) ? ANY_PORT : draw_port();

	if (draw_percent(actor->state == FRESH ? 45 : 85))
		return NULL;
	do
		source = at(draw_own_place(), port);
	while (!any_family && source->sa_family != family);
	return source;
}

static void resolve_addr(struct actor *actor)
{
	struct sockaddr_storage to = *(struct sockaddr_storage *)draw_destination();
	struct sockaddr *destination = (struct sockaddr *)&to;
	struct sockaddr *source = draw_source(actor, destination->sa_family);

	if (TRIED(rdma_resolve_addr(actor->id, source, destination, RESOLVE_MS),
		  "rdma_resolve_addr(%s, %s, %s)", actor->name,
		  source ? address_text(source) : "NULL", address_text(destination)))
		return;
	take_one(actor->events);
	show_addresses(actor->id);
	show_device(actor->id);
}

static void resolve_route(struct actor *actor)
{
	if (TRIED(rdma_resolve_route(actor->id, RESOLVE_MS), "rdma_resolve_route(%s)", actor->name))
		return;
	take_one(actor->events);
	show_route(actor->id);
}

/* --- Connections. --- */

static bool try_qp(struct rdma_cm_id *id)
{
	struct ibv_qp_init_attr attr = {
		.cap = { .max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1 },
		.qp_type = id->qp_type,
		.sq_sig_all = 1,
	};

	if (id->qp || !rdma_create_qp(id, NULL, &attr))
		return true;
	say("rdma_create_qp(%s) = -1 %s", id_name(id), errno_text(errno));
	return false;
}

static bool is_wildcard(const struct sockaddr *address)
{
	static const struct in6_addr any6, mapped_any = { .s6_addr = { [10] = 0xff, 0xff } };
	const struct in6_addr *in6 = &((const struct sockaddr_in6 *)address)->sin6_addr;

	if (address->sa_family == AF_INET)
		return !((const struct sockaddr_in *)address)->sin_addr.s_addr;
	return !memcmp(in6, &any6, sizeof(any6)) || !memcmp(in6, &mapped_any, sizeof(mapped_any));
}

static bool cannot_be_sent(const struct rdma_cm_id *id)
{
	const struct sockaddr_in6 *to = (const struct sockaddr_in6 *)&id->route.addr.dst_addr;

	return to->sin6_family == AF_INET6 && IN6_IS_ADDR_LOOPBACK(&to->sin6_addr) &&
	       id->verbs->device->transport_type != IBV_TRANSPORT_IWARP;
}

static void connect_id(struct actor *actor)
{
	struct rdma_conn_param usual = param();

	if (is_wildcard(&actor->id->route.addr.dst_addr) || cannot_be_sent(actor->id)) {
		say("%s would connect to where nothing can be sent", actor->name);
		actor->state = OVER;
		return;
	}
	if (!try_qp(actor->id)) {
		actor->state = OVER;
		return;
	}
	if (TRIED(rdma_connect(actor->id, &usual), "rdma_connect(%s)", actor->name))
		return;
	actor->state = ASKED;
	take_first();
	if (!actor->peer)
		actor->state = OVER;
	else
		show_addresses(actor->peer);
}

static void accept_peer(struct actor *actor)
{
	struct rdma_conn_param usual = param();

	if (!try_qp(actor->peer) ||
	    TRIED(rdma_accept(actor->peer, &usual), "rdma_accept(%s)", id_name(actor->peer))) {
		destroy_peer(actor);
		return;
	}
	actor->answered = true;
	take_one(actor->events);
	if (actor->ps == RDMA_PS_TCP && actor->state == CONNECTED)
		take_one(actor->at->events);
	show_addresses(actor->id);
	show_addresses(actor->peer);
}

static void answer(struct actor *actor)
{
	static const unsigned int weights[] = { 60, 25, 15 };

	switch (draw_weighted(weights, ARRAY_LEN(weights))) {
	case 0:
		accept_peer(actor);
		break;
	case 1:
		TRIED(rdma_reject(actor->peer, NULL, 0), "rdma_reject(%s)", id_name(actor->peer));
		take_until_quiet(SOON_MS);
		/* fall through */
	default:
		destroy_peer(actor);
	}
}

static void disconnect(struct actor *actor)
{
	bool first = draw_percent(50);
	struct rdma_cm_id *one = first ? actor->id : actor->peer;
	struct rdma_cm_id *other = first ? actor->peer : actor->id;

	TRIED(rdma_disconnect(one), "rdma_disconnect(%s)", id_name(one));
	take_until_quiet(SOON_MS);
	TRIED(rdma_disconnect(other), "rdma_disconnect(%s)", id_name(other));
	take_until_quiet(rest_ms());
	actor->state = OVER;
}

/* --- What comes next. --- */

enum step { BIND, LISTEN, RESOLVE, ROUTE, CONNECT, DISCONNECT, OPTION, DESTROY_ID, NUM_STEPS };

static const unsigned int step_weights[NUM_STATES][NUM_STEPS] = {
	[FRESH]	    = { [BIND] = 40, [LISTEN] = 4, [RESOLVE] = 56 },
	[BOUND]	    = { [BIND] = 5, [LISTEN] = 60, [RESOLVE] = 25, [OPTION] = 4, [DESTROY_ID] = 6 },
	[LISTENING] = { [BIND] = 3, [LISTEN] = 3, [RESOLVE] = 3, [DESTROY_ID] = 4 },
	[FOUND]	    = { [BIND] = 3, [LISTEN] = 4, [RESOLVE] = 6, [ROUTE] = 80, [DESTROY_ID] = 7 },
	[ROUTED]    = { [BIND] = 3, [RESOLVE] = 3, [ROUTE] = 4, [CONNECT] = 82, [DESTROY_ID] = 8 },
	[ASKED]	    = { [DESTROY_ID] = 1 },
	[CONNECTED] = { [BIND] = 2, [LISTEN] = 2, [DISCONNECT] = 60, [DESTROY_ID] = 30 },
	[OVER]	    = { [RESOLVE] = 5, [DESTROY_ID] = 40 },
};

static bool anyone_listens(void)
{
	unsigned int i;

	for (i = 0; i < MAX_ACTORS; i++) {
		if (actors[i].id && actors[i].state == LISTENING)
			return true;
	}
	return false;
}

static enum step draw_step(const struct actor *actor)
{
	if (actor->state == FRESH && !anyone_listens() && draw_percent(60))
		return BIND;
	return (enum step)draw_weighted(step_weights[actor->state], NUM_STEPS);
}

static void act(struct actor *actor)
{
	switch (draw_step(actor)) {
	case BIND: bind_id(actor); break;
	case LISTEN: listen_id(actor); break;
	case RESOLVE: resolve_addr(actor); break;
	case ROUTE: resolve_route(actor); break;
	case CONNECT: connect_id(actor); break;
	case DISCONNECT: disconnect(actor); break;
	case OPTION: set_option(actor); break;
	default: destroy(actor); break;
	}
}

/* Listeners are left alone, mostly: others connect to them. */
static struct actor *draw_actor(void)
{
	unsigned int chances[MAX_ACTORS], i;

	for (i = 0; i < MAX_ACTORS; i++)
		chances[i] = actors[i].id && actors[i].state == LISTENING ? 8 : 40;
	return &actors[draw_weighted(chances, MAX_ACTORS)];
}

void play_step(void)
{
	struct actor *actor;
	unsigned int i;

	for (i = 0; i < MAX_ACTORS; i++) {
		if (actors[i].id && actors[i].state == ASKED && actors[i].peer) {
			answer(&actors[i]);
			return;
		}
	}
	actor = draw_actor();
	if (!actor->id)
		create(actor);
	act(actor);
}
