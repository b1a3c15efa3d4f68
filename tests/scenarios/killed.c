/* SPDX-License-Identifier: BSD-2-Clause */
/* killed.c - scenarios of a process that is killed: what the other one sees of it. */
#include <signal.h>

#include "scene.h"

/* An event that must come; shown without its contents, as the peer's QP number is unknown here. */
static void take_type(struct rdma_event_channel *events, enum rdma_cm_event_type type)
{
	quiet();
	expect_type(events, type);
	loud();
	say("%s", rdma_event_str(type));
}
#define take(events, type) take_type((events), RDMA_CM_EVENT_##type)

/* --- The other process: it stays where it is until it is killed. --- */

static void stay(void)
{
	tell();
	await();
}

static void listening(void)
{
	open_scene(RDMA_PS_TCP);
	server_listens(0);
	stay();
}

/* It has listened before the client connects, and takes the request. */
static void takes_request(void)
{
	open_scene(RDMA_PS_TCP);
	server_listens(0);
	tell();
	take(server_events, CONNECT_REQUEST);
	stay();
}

static void accepts(void)
{
	struct rdma_conn_param with = param();

	open_scene(RDMA_PS_TCP);
	server_listens(0);
	tell();
	take(server_events, CONNECT_REQUEST);
	make_qp(child);
	MUST(rdma_accept(child, &with));
	stay();
}

static void connects(void)
{
	struct rdma_conn_param with = param();

	open_scene(RDMA_PS_TCP);
	await();
	client_resolves();
	make_qp(client);
	MUST(rdma_connect(client, &with));
}

static void asks(void)
{
	connects();
	stay();
}

static void asks_and_looks(void)
{
	connects();
	take(client_events, ESTABLISHED);
	stay();
}

/* --- The server is killed. --- */

static void client_connects(void)
{
	struct rdma_conn_param with = param();

	open_scene(RDMA_PS_TCP);
	await();
	client_resolves();
	make_qp(client);
	TRY(rdma_connect(client, &with));
}

static void killed_listener(void)
{
	struct rdma_conn_param with = param();

	start_peer(listening);
	open_scene(RDMA_PS_TCP);
	await();
	client_resolves();
	make_qp(client);
	peer_killed(SIGKILL);
	if (!TRY(rdma_connect(client, &with)))
		next(client_events);
	rest(client_events);
}

/* The request waits in the server's channel. */
static void killed_before_taking(void)
{
	start_peer(listening);
	client_connects();
	rest(client_events);
	peer_killed(SIGKILL);
	next(client_events);
	rest(client_events);
	show_qp(client);
}

static void killed_before_accepting(void)
{
	start_peer(takes_request);
	client_connects();
	await();
	peer_killed(SIGKILL);
	next(client_events);
	rest(client_events);
	show_qp(client);
}

static void killed_after_accepting(void)
{
	struct rdma_cm_event *event;

	start_peer(accepts);
	client_connects();
	await();
	say("accepted, the client has not looked");
	arrived(client_events);
	peer_killed(SIGKILL);
	answer_withdrawn(client);
	quiet();
	event = next(client_events);
	loud();
	say("%s, status %d", event ? rdma_event_str(event->event) : "nothing",
	    event ? event->status : 0);
	rest(client_events);
	show_qp(client);
}

static void killed_server(void)
{
	start_peer(accepts);
	client_connects();
	take(client_events, ESTABLISHED);
	await();
	pass_ms(500);
	peer_killed(SIGKILL);
	next(client_events);
	rest(client_events);
	show_qp(client);
	TRY(rdma_disconnect(client));
	pass_ms(1000);
	rest(client_events);
	show_qp(client);
}

/* --- The client is killed. --- */

static void killed_client_asking(void)
{
	struct rdma_conn_param with = param();

	start_peer(asks);
	open_scene(RDMA_PS_TCP);
	server_listens(0);
	tell();
	take(server_events, CONNECT_REQUEST);
	await();
	make_qp(child);
	peer_killed(SIGKILL);
	rest(server_events);
	TRY(rdma_accept(child, &with));
	rest(server_events);
	show_qp(child);
}

static void killed_client_not_looking(void)
{
	struct rdma_conn_param with = param();

	start_peer(asks);
	open_scene(RDMA_PS_TCP);
	server_listens(0);
	tell();
	take(server_events, CONNECT_REQUEST);
	await();
	make_qp(child);
	TRY(rdma_accept(child, &with));
	pass_ms(500);
	peer_killed(SIGKILL);
	next(server_events);
	rest(server_events);
	show_qp(child);
}

static void killed_client(void)
{
	struct rdma_conn_param with = param();

	start_peer(asks_and_looks);
	open_scene(RDMA_PS_TCP);
	server_listens(0);
	tell();
	take(server_events, CONNECT_REQUEST);
	make_qp(child);
	TRY(rdma_accept(child, &with));
	take(server_events, ESTABLISHED);
	await();
	peer_killed(SIGKILL);
	next(server_events);
	rest(server_events);
	show_qp(child);
	TRY(rdma_disconnect(child));
	pass_ms(1000);
	rest(server_events);
}

const struct scenario killed_scenarios[] = {
	{ "killed-listener", killed_listener, "before the client connects", PROCESSES },
	{ "killed-before-taking", killed_before_taking, "the request not taken", PROCESSES },
	{ "killed-before-accepting", killed_before_accepting, "the request taken", PROCESSES },
	{ "killed-after-accepting", killed_after_accepting,
	  "accepted, the client has not looked", PROCESSES },
	{ "killed-server", killed_server, "while connected", PROCESSES },
	{ "killed-client-asking", killed_client_asking,
	  "the client's request not answered", PROCESSES },
	{ "killed-client-not-looking", killed_client_not_looking,
	  "the client has not looked", PROCESSES },
	{ "killed-client", killed_client, "the client while connected", PROCESSES },
	{ NULL, NULL, NULL, 0 },
};
