/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * listen.c - scenarios of listeners: who takes a request, and the backlog of
 * requests that nobody takes.
 */
#include "scene.h"

static void connect_client(struct rdma_cm_id *id, enum place to, int port)
{
	struct rdma_conn_param with = param();

	quiet();
	MUST(rdma_resolve_addr(id, at(CLIENT4, ANY_PORT), at(to, port), 5000));
	expect(client_events, ADDR_RESOLVED);
	MUST(rdma_resolve_route(id, 5000));
	expect(client_events, ROUTE_RESOLVED);
	make_qp(id);
	loud();
	TRY(rdma_connect(id, &with));
}

static void listen_wildcard(void)
{
	open_scene(RDMA_PS_TCP);
	MUST(rdma_bind_addr(server, at(ANY4, 0)));
	TRY(rdma_listen(server, 0));
	connect_client(client, SERVER4, 0);
	next(server_events);
	show_addresses(child);
	show_addresses(server);
}

static void listen_unbound(void)
{
	open_scene(RDMA_PS_TCP);
	TRY(rdma_listen(server, 0));
	show_addresses(server);
	say("port %s", rdma_get_src_port(server) ? "chosen" : "none");
}

static void listen_ephemeral(void)
{
	open_scene(RDMA_PS_TCP);
	TRY(rdma_bind_addr(server, at(SERVER4, ANY_PORT)));
	show_addresses(server);
	TRY(rdma_listen(server, 0));
	show_addresses(server);
}

static void listen_other_address(void)
{
	open_scene(RDMA_PS_TCP);
	MUST(rdma_bind_addr(server, at(CLIENT4, 0)));
	MUST(rdma_listen(server, 0));
	say("it listens at another address");
	connect_client(client, SERVER4, 0);
	rest(client_events);
	rest(server_events);
}

static void listen_bound_only(void)
{
	open_scene(RDMA_PS_TCP);
	MUST(rdma_bind_addr(server, at(SERVER4, 0)));
	say("it is bound, but does not listen");
	connect_client(client, SERVER4, 0);
	rest(client_events);
}

static void listen_other_space(void)
{
	open_channels();
	server = make_id("server", server_events, RDMA_PS_UDP);
	client = make_id("client", client_events, RDMA_PS_TCP);
	TRY(rdma_bind_addr(server, at(SERVER4, 0)));
	TRY(rdma_listen(server, 0));
	connect_client(client, SERVER4, 0);
	rest(client_events);
	rest(server_events);
}

static void listen_child(void)
{
	struct rdma_cm_id *first;

	open_scene(RDMA_PS_TCP);
	request(NULL);
	say("context %s, channel %s, ps 0x%x, qp_type %d, qp %s, event %s",
	    child->context == server->context ? "the listener's" : "another",
	    child->channel == server->channel ? "the listener's" : "another", child->ps,
	    (int)child->qp_type, child->qp ? "yes" : "no", child->event ? "yes" : "no");
	say("device %s", child->verbs == server->verbs ? "the listener's" : "another");
	show_addresses(child);
	show_route(child);
	first = child;
	MUST(rdma_reject(first, NULL, 0));
	next(client_events);
}

static void listen_context(void)
{
	static int mark;
	struct rdma_cm_id *id;

	open_scene(RDMA_PS_TCP);
	TRY(rdma_create_id(server_events, &id, &mark, RDMA_PS_TCP));
	name_id("id", id);
	MUST(rdma_bind_addr(id, at(SERVER4, 1)));
	MUST(rdma_listen(id, 0));
	connect_client(client, SERVER4, 1);
	next(server_events);
	say("context of id %s, of child %s", id->context == &mark ? "kept" : "lost",
	    child->context == &mark ? "the same" : "another");
}

/* --- The backlog: requests that nobody has taken yet. --- */

static struct rdma_cm_id *clients[8];

static void connect_clients(unsigned int num)
{
	char name[16];
	unsigned int i;

	for (i = 0; i < num; i++) {
		snprintf(name, sizeof(name), "client%u", i + 1);
		clients[i] = make_id(name, client_events, RDMA_PS_TCP);
		connect_client(clients[i], SERVER4, 0);
	}
}

static void listen_backlog(void)
{
	open_scene(RDMA_PS_TCP);
	server_listens(2);
	connect_clients(2);
	arrived(server_events);
	next(server_events);
	next(server_events);
	rest(server_events);
}

static void listen_backlog_full(void)
{
	open_scene(RDMA_PS_TCP);
	server_listens(1);
	connect_clients(1);
	arrived(server_events);
	say("the second finds no room");
	clients[1] = make_id("client2", client_events, RDMA_PS_TCP);
	connect_client(clients[1], SERVER4, 0);
	rest(client_events);
	/* It would ask again, 4.6 s after the first time. */
	rdma_destroy_qp(clients[1]);
	MUST(rdma_destroy_id(clients[1]));
	forget_id(clients[1]);
	next(server_events);
	rest(server_events);
}

static void listen_backlog_room_again(void)
{
	uint64_t start;

	open_scene(RDMA_PS_TCP);
	server_listens(1);
	connect_clients(1);
	arrived(server_events);
	clients[1] = make_id("client2", client_events, RDMA_PS_TCP);
	start = now_ms();
	connect_client(clients[1], SERVER4, 0);
	rest(client_events);
	say("now there is room");
	next(server_events);
	if (next_within(server_events, 10000))
		show_lapse("the second", start, 4608);
}

static void listen_backlog_not_accepted(void)
{
	open_scene(RDMA_PS_TCP);
	server_listens(1);
	connect_clients(1);
	next(server_events);
	say("taken, but not accepted");
	clients[1] = make_id("client2", client_events, RDMA_PS_TCP);
	connect_client(clients[1], SERVER4, 0);
	next(server_events);
}

static void listen_backlog_zero(void)
{
	open_scene(RDMA_PS_TCP);
	server_listens(0);
	connect_clients(3);
	next(server_events);
	next(server_events);
	next(server_events);
}

static void listen_backlog_negative(void)
{
	open_scene(RDMA_PS_TCP);
	MUST(rdma_bind_addr(server, at(SERVER4, 0)));
	TRY(rdma_listen(server, -1));
	connect_clients(2);
	next(server_events);
	next(server_events);
}

const struct scenario listen_scenarios[] = {
	{ "listen-wildcard", listen_wildcard, "0.0.0.0: the request's id knows its address", 0 },
	{ "listen-unbound", listen_unbound, "without rdma_bind_addr()", 0 },
	{ "listen-ephemeral", listen_ephemeral, "port 0", 0 },
	{ "listen-other-address", listen_other_address, "the right port at the wrong address", 0 },
	{ "listen-bound-only", listen_bound_only, "bound without listening", 0 },
	{ "listen-other-space", listen_other_space, "the right port in another port space", 0 },
	{ "listen-child", listen_child, "what the id of a request has", 0 },
	{ "listen-context", listen_context, "the context of ids", 0 },
	{ "listen-backlog", listen_backlog, "two requests, backlog 2", 0 },
	{ "listen-backlog-full", listen_backlog_full, "two requests, backlog 1", 0 },
	{ "listen-backlog-room", listen_backlog_room_again, "the second gets through later", 0 },
	{ "listen-backlog-taken", listen_backlog_not_accepted,
	  "a request that is taken has left it", 0 },
	{ "listen-backlog-zero", listen_backlog_zero, "backlog 0 is the greatest", 0 },
	{ "listen-backlog-negative", listen_backlog_negative, "backlog -1", 0 },
	{ NULL, NULL, NULL, 0 },
};
