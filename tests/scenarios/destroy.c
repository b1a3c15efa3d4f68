/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * destroy.c - scenarios of rdma_destroy_id(): in each state, what the peer sees,
 * and what it waits for.
 */
#include "scene.h"

static void destroy_early(void)
{
	open_scene(RDMA_PS_TCP);
	DESTROY(client);
	client = make_id("client", client_events, RDMA_PS_TCP);
	MUST(rdma_bind_addr(client, at(CLIENT4, 1)));
	DESTROY(client);
	say("the port is free again");
	client = make_id("client", client_events, RDMA_PS_TCP);
	TRY(rdma_bind_addr(client, at(CLIENT4, 1)));
	DESTROY(client);
	client = make_id("client", client_events, RDMA_PS_TCP);
	MUST(rdma_resolve_addr(client, NULL, at(NOBODY4, 0), 2000));
	DESTROY(client);
	rest(client_events);
}

static void destroy_resolved_untaken(void)
{
	open_scene(RDMA_PS_TCP);
	MUST(rdma_resolve_addr(client, NULL, at(SERVER4, 0), 2000));
	arrived(client_events);
	DESTROY(client);
	rest(client_events);
}

static void destroy_resolved(void)
{
	open_scene(RDMA_PS_TCP);
	client_resolves();
	DESTROY(client);
	rest(client_events);
}

static void destroy_listener_idle(void)
{
	struct rdma_conn_param with = param();

	open_scene(RDMA_PS_TCP);
	server_listens(0);
	client_resolves();
	make_qp(client);
	DESTROY(server);
	TRY(rdma_connect(client, &with));
	rest(client_events);
}

/* What has become an id of its own outlives the listener. */
static void destroy_listener_request_taken(void)
{
	struct rdma_conn_param with = param();

	open_scene(RDMA_PS_TCP);
	request(NULL);
	DESTROY(server);
	rest(client_events);
	make_qp(child);
	TRY(rdma_accept(child, &with));
	next(client_events);
	next(server_events);
}

static void destroy_listener_established(void)
{
	open_scene(RDMA_PS_TCP);
	established();
	DESTROY(server);
	rest(client_events);
	TRY(rdma_disconnect(client));
	next(server_events);
}

static void destroy_connecting(void)
{
	struct rdma_conn_param with = param();

	open_scene(RDMA_PS_TCP);
	request(NULL);
	make_qp(child);
	DESTROY(client);
	rest(server_events);
	say("accepted too late");
	TRY(rdma_accept(child, &with));
	rest(server_events);
	show_qp(child);
}

static void destroy_connecting_rejected(void)
{
	open_scene(RDMA_PS_TCP);
	request(NULL);
	DESTROY(client);
	say("rejected too late");
	rest(server_events);
	TRY(rdma_reject(child, NULL, 0));
}

static void destroy_accepted(void)
{
	open_scene(RDMA_PS_TCP);
	accepted(NULL);
	arrived(client_events);
	DESTROY(child);
	answer_withdrawn(client);
	rest(client_events);
	show_qp(client);
}

static void destroy_response(void)
{
	open_scene(RDMA_PS_TCP);
	accepted(NULL);
	arrived(client_events);
	say("the client goes without taking its event");
	DESTROY(client);
	rest(server_events);
	show_qp(child);
}

static void destroy_established(void)
{
	open_scene(RDMA_PS_TCP);
	established();
	DESTROY(client);
	next(server_events);
	rest(server_events);
	show_qp(child);
}

static void destroy_established_server(void)
{
	open_scene(RDMA_PS_TCP);
	established();
	DESTROY(child);
	next(client_events);
	rest(client_events);
	show_qp(client);
}

/* The QP first is the program's duty; what if it does not? */
static void destroy_with_qp(void)
{
	struct ibv_qp *qp;

	open_scene(RDMA_PS_TCP);
	established();
	qp = client->qp;
	TRY(rdma_destroy_id(client));
	forget_id(client);
	next(server_events);
	say("ibv_destroy_qp = %d", ibv_destroy_qp(qp));
}

static void destroy_events_untaken(void)
{
	open_scene(RDMA_PS_TCP);
	established();
	MUST(rdma_disconnect(client));
	arrived(server_events);
	say("DISCONNECTED is there, but not taken");
	DESTROY(child);
	next(client_events);
	rest(server_events);
}

static struct rdma_cm_event *late;

static void ack_late(void)
{
	pass_ms(300);
	say("acked");
	ack(late);
}

static void destroy_unacked(void)
{
	open_scene(RDMA_PS_TCP);
	TRY(rdma_resolve_addr(client, NULL, at(SERVER4, 0), 2000));
	late = next_unacked(client_events);
	if (!late)
		return;
	beside(ack_late);
	say("destroying waits for the ack");
	TRY(rdma_destroy_id(client));
	forget_id(client);
	join();
}

static void destroy_request_unacked(void)
{
	struct rdma_conn_param with = param();

	open_scene(RDMA_PS_TCP);
	server_listens(0);
	client_resolves();
	make_qp(client);
	MUST(rdma_connect(client, &with));
	late = next_unacked(server_events);
	if (!late)
		return;
	say("the request's id goes without waiting");
	DESTROY(child);
	next(client_events);
	beside(ack_late);
	say("the listener waits");
	DESTROY(server);
	join();
}

static void destroy_channel_with_events(void)
{
	struct rdma_event_channel *events;
	struct rdma_cm_id *id;

	open_scene(RDMA_PS_TCP);
	events = make_channel("third");
	id = make_id("id", events, RDMA_PS_TCP);
	MUST(rdma_resolve_addr(id, NULL, at(SERVER4, 0), 2000));
	arrived(events);
	DESTROY(id);
	rdma_destroy_event_channel(events);
	forget_channel(events);
	say("gone with its event");
}

const struct scenario destroy_scenarios[] = {
	{ "destroy-early", destroy_early, "new, bound, resolving", 0 },
	{ "destroy-resolved-untaken", destroy_resolved_untaken, "its event not taken", 0 },
	{ "destroy-resolved", destroy_resolved, "route resolved", 0 },
	{ "destroy-listener", destroy_listener_idle, "nobody listens any more", 0 },
	{ "destroy-listener-request", destroy_listener_request_taken,
	  "the listener, while a request is taken", 0 },
	{ "destroy-listener-established", destroy_listener_established,
	  "the listener of a connection", 0 },
	{ "destroy-connecting", destroy_connecting, "the client gives up, the server accepts", SLOW },
	{ "destroy-connecting-rejected", destroy_connecting_rejected,
	  "the client gives up, the server rejects", SLOW },
	{ "destroy-accepted", destroy_accepted, "by the server, right after rdma_accept()", 0 },
	{ "destroy-response", destroy_response, "by the client, its answer not taken", 0 },
	{ "destroy-established", destroy_established, "by the client", 0 },
	{ "destroy-established-server", destroy_established_server, "by the server", 0 },
	{ "destroy-with-qp", destroy_with_qp, "the id before its QP", 0 },
	{ "destroy-events-untaken", destroy_events_untaken, "DISCONNECTED not taken", 0 },
	{ "destroy-unacked", destroy_unacked, "waits for an event to be acked", 0 },
	{ "destroy-request-unacked", destroy_request_unacked, "whom an un-acked request holds", 0 },
	{ "destroy-channel", destroy_channel_with_events, "a channel with an event of nobody", 0 },
	{ NULL, NULL, NULL, 0 },
};
