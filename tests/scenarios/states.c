/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * states.c - scenarios of every call in every state of an id: what it answers, and
 * that it changes nothing else.
 */
#include "scene.h"

/*
 * The calls that are wrong in most states, from the harmless to the harmful,
 * so that one does not hide the next.
 */
static void try_early_calls(struct rdma_cm_id *id)
{
	TRY(rdma_bind_addr(id, at(CLIENT4, 5)));
	TRY(rdma_resolve_addr(id, NULL, at(SERVER4, 5), 2000));
	TRY(rdma_listen(id, 1));
}

static void try_late_calls(struct rdma_cm_id *id)
{
	struct rdma_conn_param with = param();

	TRY_CRASH(rdma_resolve_route(id, 2000));
	TRY_CRASH(rdma_notify(id, IBV_EVENT_COMM_EST));
	TRY_CRASH(rdma_connect(id, &with));
	TRY_CRASH(rdma_reject(id, NULL, 0));
	TRY_CRASH(rdma_accept(id, &with));
	TRY_CRASH(rdma_establish(id));
	TRY_CRASH(rdma_disconnect(id));
}

static void states_idle(void)
{
	open_scene(RDMA_PS_TCP);
	try_late_calls(client);
}

static void states_bound(void)
{
	open_scene(RDMA_PS_TCP);
	MUST(rdma_bind_addr(client, at(CLIENT4, 0)));
	TRY(rdma_bind_addr(client, at(CLIENT4, 1)));
	try_late_calls(client);
	say("and it can still be used");
	TRY(rdma_resolve_addr(client, NULL, at(SERVER4, 0), 2000));
	next(client_events);
	show_addresses(client);
}

static void states_bound_any(void)
{
	open_scene(RDMA_PS_TCP);
	MUST(rdma_bind_addr(client, at(ANY4, 0)));
	TRY(rdma_bind_addr(client, at(CLIENT4, 1)));
	try_late_calls(client);
	say("and it can still be used");
	TRY(rdma_resolve_addr(client, NULL, at(SERVER4, 0), 2000));
	next(client_events);
}

static void states_resolving(void)
{
	open_scene(RDMA_PS_TCP);
	MUST(rdma_resolve_addr(client, NULL, at(NOBODY4, 0), 3000));
	try_early_calls(client);
	TRY_CRASH(rdma_resolve_route(client, 2000));
	TRY_CRASH(rdma_disconnect(client));
	next(client_events);
}

static void states_resolve_failed(void)
{
	open_scene(RDMA_PS_TCP);
	MUST(rdma_resolve_addr(client, NULL, at(NOBODY4, 0), 300));
	next(client_events);
	try_late_calls(client);
	TRY(rdma_bind_addr(client, at(CLIENT4, 5)));
	say("and it can still be used");
	TRY(rdma_resolve_addr(client, NULL, at(SERVER4, 0), 2000));
	next(client_events);
}

static void states_found(void)
{
	struct rdma_conn_param with = param();

	open_scene(RDMA_PS_TCP);
	client_finds();
	try_early_calls(client);
	TRY(rdma_notify(client, IBV_EVENT_COMM_EST));
	TRY(rdma_connect(client, &with));
	TRY(rdma_reject(client, NULL, 0));
	TRY(rdma_accept(client, &with));
	TRY(rdma_establish(client));
	TRY(rdma_disconnect(client));
	say("and it can still be used");
	TRY(rdma_resolve_route(client, 2000));
	next(client_events);
}

static void states_routed(void)
{
	struct rdma_conn_param with = param();

	open_scene(RDMA_PS_TCP);
	server_listens(0);
	client_resolves();
	try_early_calls(client);
	TRY(rdma_resolve_route(client, 2000));
	TRY(rdma_notify(client, IBV_EVENT_COMM_EST));
	TRY(rdma_reject(client, NULL, 0));
	TRY(rdma_accept(client, &with));
	TRY(rdma_establish(client));
	TRY(rdma_disconnect(client));
	say("and it can still be used");
	make_qp(client);
	TRY(rdma_connect(client, &with));
	next(server_events);
}

static void states_listening(void)
{
	struct rdma_conn_param with = param();

	open_scene(RDMA_PS_TCP);
	server_listens(0);
	TRY(rdma_bind_addr(server, at(CLIENT4, 5)));
	TRY(rdma_resolve_addr(server, NULL, at(CLIENT4, 5), 2000));
	TRY(rdma_listen(server, 1));
	TRY(rdma_resolve_route(server, 2000));
	TRY(rdma_notify(server, IBV_EVENT_COMM_EST));
	TRY(rdma_connect(server, &with));
	TRY(rdma_reject(server, NULL, 0));
	TRY(rdma_accept(server, &with));
	TRY(rdma_establish(server));
	TRY(rdma_disconnect(server));
	say("and it still listens");
	client_resolves();
	make_qp(client);
	MUST(rdma_connect(client, &with));
	next(server_events);
}

static void states_requested(void)
{
	struct rdma_conn_param with = param();

	open_scene(RDMA_PS_TCP);
	request(NULL);
	try_early_calls(child);
	TRY(rdma_resolve_route(child, 2000));
	TRY(rdma_notify(child, IBV_EVENT_COMM_EST));
	TRY(rdma_connect(child, &with));
	rest(client_events);
	make_qp(child);
	TRY(rdma_accept(child, &with));
	next(client_events);
	next(server_events);
}

static void states_connecting(void)
{
	struct rdma_conn_param with = param();

	open_scene(RDMA_PS_TCP);
	request(NULL);
	try_early_calls(client);
	TRY(rdma_resolve_route(client, 2000));
	TRY(rdma_notify(client, IBV_EVENT_COMM_EST));
	TRY(rdma_connect(client, &with));
	TRY(rdma_establish(client));
	rest(client_events);
	make_qp(child);
	TRY(rdma_accept(child, &with));
	next(client_events);
	next(server_events);
}

static void states_established_client(void)
{
	struct rdma_conn_param with = param();

	open_scene(RDMA_PS_TCP);
	established();
	try_early_calls(client);
	TRY(rdma_resolve_route(client, 2000));
	TRY(rdma_notify(client, IBV_EVENT_COMM_EST));
	TRY(rdma_connect(client, &with));
	TRY(rdma_establish(client));
	rest(client_events);
	rest(server_events);
	show_qp(client);
}

static void states_established_server(void)
{
	open_scene(RDMA_PS_TCP);
	established();
	try_early_calls(child);
	TRY(rdma_resolve_route(child, 2000));
	TRY(rdma_notify(child, IBV_EVENT_COMM_EST));
	TRY(rdma_establish(child));
	rest(client_events);
	rest(server_events);
	show_qp(child);
}

static void states_reject_established(void)
{
	open_scene(RDMA_PS_TCP);
	established();
	TRY(rdma_reject(child, NULL, 0));
	rest(client_events);
	rest(server_events);
	TRY(rdma_reject(client, NULL, 0));
	rest(server_events);
	show_qp(client);
	show_qp(child);
}

static void states_disconnected(void)
{
	struct rdma_conn_param with = param();

	open_scene(RDMA_PS_TCP);
	established();
	MUST(rdma_disconnect(client));
	next(server_events);
	MUST(rdma_disconnect(child));
	next(client_events);
	rest(client_events);
	rest(server_events);
	try_early_calls(client);
	TRY(rdma_resolve_route(client, 2000));
	TRY(rdma_notify(client, IBV_EVENT_COMM_EST));
	TRY(rdma_connect(client, &with));
	TRY(rdma_reject(client, NULL, 0));
	TRY(rdma_accept(client, &with));
	TRY(rdma_establish(client));
	TRY(rdma_disconnect(client));
	TRY(rdma_accept(child, &with));
	TRY(rdma_disconnect(child));
	rest(client_events);
}

static void states_null(void)
{
	struct rdma_cm_id *id = NULL;

	open_scene(RDMA_PS_TCP);
	TRY(rdma_ack_cm_event(NULL));
	TRY_CRASH(rdma_bind_addr(client, NULL));
	TRY_CRASH(rdma_resolve_addr(client, NULL, NULL, 1000));
	TRY_CRASH(rdma_create_id(client_events, NULL, NULL, RDMA_PS_TCP));
	TRY_CRASH(rdma_listen(id, 1));
	TRY_CRASH(rdma_disconnect(id));
	TRY_CRASH(rdma_destroy_id(id));
	TRY_CRASH(rdma_get_cm_event(NULL, NULL));
}

/* Each call gets a fresh one: librdmacm leaves its CQs in it, also of calls that fail. */
static int create_qp(struct rdma_cm_id *id, enum ibv_qp_type type)
{
	struct ibv_qp_init_attr attr = {
		.cap = { .max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1 },
		.qp_type = type,
	};

	return rdma_create_qp(id, NULL, &attr);
}

static void states_qp(void)
{
	open_scene(RDMA_PS_TCP);
	TRY_CRASH(create_qp(client, IBV_QPT_RC));
	client_finds();
	TRY(create_qp(client, IBV_QPT_UD));
	TRY(create_qp(client, IBV_QPT_RC));
	show_qp(client);
	TRY(create_qp(client, IBV_QPT_RC));
	rdma_destroy_qp(client);
	show_qp(client);
	TRY(create_qp(client, IBV_QPT_RC));
	show_qp(client);
	server_listens(0);
	TRY_CRASH(create_qp(server, IBV_QPT_RC));
	show_qp(server);
}

const struct scenario states_scenarios[] = {
	{ "states-idle", states_idle, "calls on a new id", 0 },
	{ "states-bound", states_bound, "calls on an id with an address", 0 },
	{ "states-bound-any", states_bound_any, "calls on an id bound to 0.0.0.0", 0 },
	{ "states-resolving", states_resolving, "calls while the address is looked for", 0 },
	{ "states-resolve-failed", states_resolve_failed, "calls after ADDR_ERROR", 0 },
	{ "states-found", states_found, "calls with an address resolved", 0 },
	{ "states-routed", states_routed, "calls with a route resolved", 0 },
	{ "states-listening", states_listening, "calls on a listener", 0 },
	{ "states-requested", states_requested, "calls on the id of a request", 0 },
	{ "states-connecting", states_connecting, "calls on a connecting id", SLOW },
	{ "states-established", states_established_client, "calls on the active side", 0 },
	{ "states-established-server", states_established_server, "calls on the passive side", 0 },
	{ "states-reject-established", states_reject_established, "rdma_reject() when established", 0 },
	{ "states-disconnected", states_disconnected, "calls after the end", 0 },
	{ "states-null", states_null, "NULL in all places", 0 },
	{ "states-qp", states_qp, "rdma_create_qp(): too early, of the wrong type, twice", 0 },
	{ NULL, NULL, NULL, 0 },
};
