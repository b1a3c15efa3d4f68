/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * sync.c - scenarios of synchronous ids (no channel): what each call returns, and which event it
 * leaves in the id.
 */
#include "scene.h"

/* What the last call left in the id. */
static void show_left(struct rdma_cm_id *id, const char *name)
{
	if (id->event)
		show_event(id->channel, id->event);
	else
		say("%s has no event", name);
}

static struct rdma_cm_id *make_sync_id(const char *name, enum rdma_port_space ps)
{
	struct rdma_cm_id *id;

	at_server(!strcmp(name, "server"));
	MUST(rdma_create_id(NULL, &id, NULL, ps));
	at_server(false);
	name_id(name, id);
	return id;
}

/* A usual listener, and a synchronous client with a route and a QP. */
static void sync_client(enum rdma_port_space ps)
{
	open_channels();
	server = make_id("server", server_events, ps);
	server_listens(0);
	client = make_sync_id("client", ps);
	MUST(rdma_resolve_addr(client, at(CLIENT4, ANY_PORT), at(SERVER4, 0), 2000));
	MUST(rdma_resolve_route(client, 2000));
	make_qp(client);
}

/* A synchronous listener, and a usual client that asks it. */
static void sync_server(enum rdma_port_space ps)
{
	struct rdma_conn_param with = param();

	open_channels();
	client = make_id("client", client_events, ps);
	server = make_sync_id("server", ps);
	server_listens(0);
	client_resolves();
	make_qp(client);
	MUST(rdma_connect(client, &with));
}

static void get_request(void)
{
	TRY(rdma_get_request(server, &child));
	if (!child)
		end_failed("no request");
	name_id("child", child);
}

/* --- The active side. --- */

static void serve(void)
{
	struct rdma_conn_param with = param_data(4);

	expect(server_events, CONNECT_REQUEST);
	make_qp(child);
	TRY(rdma_accept(child, &with));
	next(server_events);
	if (next(server_events))
		TRY(rdma_disconnect(child));
}

static void sync_active(void)
{
	struct rdma_conn_param with = param();

	open_channels();
	server = make_id("server", server_events, RDMA_PS_TCP);
	server_listens(0);
	client = NULL;
	TRY(rdma_create_id(NULL, &client, NULL, RDMA_PS_TCP));
	name_id("client", client);
	say("a channel of its own: %s", client->channel ? "yes" : "no");
	show_left(client, "client");
	TRY(rdma_resolve_addr(client, at(CLIENT4, ANY_PORT), at(SERVER4, 0), 2000));
	show_left(client, "client");
	TRY(rdma_resolve_route(client, 2000));
	show_left(client, "client");
	make_qp(client);
	show_left(client, "client");
	beside(serve);
	TRY(rdma_connect(client, &with));
	show_left(client, "client");
	TRY(rdma_disconnect(client));
	show_left(client, "client");
	show_qp(client);
	join();
}

static void refuse(void)
{
	expect(server_events, CONNECT_REQUEST);
	TRY(rdma_reject(child, counting, 3));
}

static void sync_rejected(void)
{
	struct rdma_conn_param with = param();

	sync_client(RDMA_PS_TCP);
	beside(refuse);
	TRY(rdma_connect(client, &with));
	show_left(client, "client");
	show_qp(client);
	join();
	TRY(rdma_connect(client, &with));
	show_left(client, "client");
}

static void sync_nobody_listens(void)
{
	struct rdma_conn_param with = param();

	sync_client(RDMA_PS_TCP);
	DESTROY(server);
	TRY(rdma_connect(client, &with));
	show_left(client, "client");
}

static void sync_failures(void)
{
	open_channels();
	client = make_sync_id("client", RDMA_PS_TCP);
	TRY(rdma_resolve_addr(client, NULL, at(UNROUTABLE4, 0), 1000));
	show_left(client, "client");
	TRY(rdma_resolve_addr(client, NULL, at(NOBODY4, 0), 500));
	show_left(client, "client");
	TRY(rdma_resolve_addr(client, NULL, at(SERVER4, 0), 2000));
	show_left(client, "client");
	TRY(rdma_resolve_addr(client, NULL, at(SERVER4, 0), 2000));
	show_left(client, "client");
	TRY(rdma_resolve_route(client, 0));
	show_left(client, "client");
	TRY(rdma_disconnect(client));
	show_left(client, "client");
}

static void serve_and_leave(void)
{
	struct rdma_conn_param with = param();

	expect(server_events, CONNECT_REQUEST);
	make_qp(child);
	TRY(rdma_accept(child, &with));
	next(server_events);
	TRY(rdma_disconnect(child));
}

/* The event is there before the call that waits for it. */
static void sync_peer_disconnected(void)
{
	struct rdma_conn_param with = param();

	sync_client(RDMA_PS_TCP);
	beside(serve_and_leave);
	TRY(rdma_connect(client, &with));
	join();
	arrived(client->channel);
	stream_ended(client);
	show_qp(client);
	TRY(rdma_disconnect(client));
	show_left(client, "client");
	rest(server_events);
}

/* --- The passive side. --- */

static void take_established(void)
{
	next(client_events);
}

static void sync_passive(void)
{
	struct rdma_conn_param with = param();

	sync_server(RDMA_PS_TCP);
	get_request();
	say("a channel of its own: %s", child->channel == server->channel ? "no" : "yes");
	show_left(server, "server");
	show_left(child, "child");
	make_qp(child);
	beside(take_established);
	TRY(rdma_accept(child, &with));
	show_left(child, "child");
	join();
	TRY(rdma_disconnect(client));
	arrived(child->channel);
	TRY(rdma_disconnect(child));
	show_left(child, "child");
	show_qp(child);
	rest(client_events);
}

static void sync_passive_rejects(void)
{
	sync_server(RDMA_PS_TCP);
	get_request();
	TRY(rdma_reject(child, counting, 2));
	show_left(child, "child");
	next(client_events);
}

/* The client has no QP, only its number, and can say no to the answer. */
static void say_no(void)
{
	next(client_events);
	TRY(rdma_reject(client, counting, 2));
}

static void sync_answer_refused(void)
{
	struct rdma_conn_param with = param();
	struct rdma_cm_id *holder;

	open_channels();
	client = holder = make_id("holder", client_events, RDMA_PS_TCP);
	client_resolves();
	make_qp(holder);
	client = make_id("client", client_events, RDMA_PS_TCP);
	server = make_sync_id("server", RDMA_PS_TCP);
	server_listens(0);
	client_resolves();
	with.qp_num = holder->qp->qp_num;
	MUST(rdma_connect(client, &with));
	get_request();
	make_qp(child);
	beside(say_no);
	TRY(rdma_accept(child, &with));
	show_left(child, "child");
	show_qp(child);
	join();
}

static void sync_get_request_async(void)
{
	struct rdma_conn_param with = param();

	open_scene(RDMA_PS_TCP);
	server_listens(0);
	client_resolves();
	make_qp(client);
	MUST(rdma_connect(client, &with));
	child = NULL;
	TRY(rdma_get_request(server, &child));
	say("an id: %s", child ? "yes" : "no");
	TRY_CRASH(rdma_get_request(NULL, &child));
	next(server_events);
}

/* Made synchronous while another event waits. */
static void sync_get_request_other_event(void)
{
	struct rdma_cm_id *none = NULL;

	open_scene(RDMA_PS_TCP);
	MUST(rdma_resolve_addr(client, at(CLIENT4, ANY_PORT), at(SERVER4, 0), 2000));
	arrived(client_events);
	TRY(rdma_migrate_id(client, NULL));
	TRY(rdma_get_request(client, &none));
	say("an id: %s", none ? "yes" : "no");
	show_left(client, "client");
	TRY(rdma_resolve_route(client, 2000));
	show_left(client, "client");
}

/* --- Datagrams. --- */

static void answer(void)
{
	struct rdma_conn_param with = param();

	expect(server_events, CONNECT_REQUEST);
	make_qp(child);
	TRY(rdma_accept(child, &with));
}

static void sync_ud_active(void)
{
	struct rdma_conn_param with = param();

	sync_client(RDMA_PS_UDP);
	beside(answer);
	TRY(rdma_connect(client, &with));
	show_left(client, "client");
	join();
}

static void sync_ud_rejected(void)
{
	struct rdma_conn_param with = param();

	sync_client(RDMA_PS_UDP);
	beside(refuse);
	TRY(rdma_connect(client, &with));
	show_left(client, "client");
	join();
}

static void sync_ud_passive(void)
{
	struct rdma_conn_param with = param();

	sync_server(RDMA_PS_UDP);
	get_request();
	make_qp(child);
	TRY(rdma_accept(child, &with));
	show_left(child, "child");
	next(client_events);
}

static void sync_multicast(void)
{
	open_channels();
	client = make_sync_id("client", RDMA_PS_UDP);
	MUST(rdma_bind_addr(client, at(CLIENT4, ANY_PORT)));
	TRY(rdma_join_multicast(client, at(MULTICAST4, ANY_PORT), NULL));
	show_left(client, "client");
	/* To leave first would hang: librdmacm waits for the event that it holds itself. */
	DESTROY(client);
}

const struct scenario sync_scenarios[] = {
	{ "sync-active", sync_active, "from resolving to disconnecting", 0 },
	{ "sync-rejected", sync_rejected, "rdma_connect() is rejected", 0 },
	{ "sync-nobody-listens", sync_nobody_listens, "nobody listens on the port", 0 },
	{ "sync-failures", sync_failures, "calls that fail, at once and later", 0 },
	{ "sync-peer-disconnected", sync_peer_disconnected, "the other one disconnects first", 0 },
	{ "sync-passive", sync_passive, "from rdma_get_request() to disconnecting", 0 },
	{ "sync-passive-rejects", sync_passive_rejects, "the request is rejected", 0 },
	{ "sync-answer-refused", sync_answer_refused, "rdma_accept(), and the client rejects", 0 },
	{ "sync-get-request-async", sync_get_request_async, "rdma_get_request() on a usual id", 0 },
	{ "sync-get-request-other-event", sync_get_request_other_event,
	  "rdma_get_request() meets another event", 0 },
	{ "sync-ud-active", sync_ud_active, "datagrams, accepted", 0 },
	{ "sync-ud-rejected", sync_ud_rejected, "datagrams, rejected", 0 },
	{ "sync-ud-passive", sync_ud_passive, "datagrams, rdma_get_request() and rdma_accept()", 0 },
	{ "sync-multicast", sync_multicast, "a group joined, and destroyed", 0 },
	{ NULL, NULL, NULL, 0 },
};
