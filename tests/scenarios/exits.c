/* SPDX-License-Identifier: BSD-2-Clause */
/* exits.c - scenarios of a process that ends in good order and has destroyed nothing. */
#include <unistd.h>

#include "scene_data.h"

static void take_type(struct rdma_event_channel *events, enum rdma_cm_event_type type)
{
	quiet();
	expect_type(events, type);
	loud();
	say("%s", rdma_event_str(type));
}
#define take(events, type) take_type((events), RDMA_CM_EVENT_##type)

static void leave(void)
{
	fflush(NULL);
	_exit(0);
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
	tell();
	await();
	leave();
}

static void client_connects(void (*serve)(void))
{
	struct rdma_conn_param with = param();

	start_peer(serve);
	open_scene(RDMA_PS_TCP);
	await();
	client_resolves();
	make_qp(client);
	MUST(post_recv(client, 11, 64));
	TRY(rdma_connect(client, &with));
}

static void next_type(void)
{
	struct rdma_cm_event *event;

	quiet();
	event = next(client_events);
	loud();
	say("%s, status %d", event ? rdma_event_str(event->event) : "nothing",
	    event ? event->status : 0);
}

static void exit_established(void)
{
	client_connects(accepts);
	next_type();
	await();
	pass_ms(300);
	tell();
	peer_joined();
	next_type();
	rest(client_events);
	show_qp(client);
	completions_rest(client);
	TRY(rdma_disconnect(client));
	rest(client_events);
	completions_rest(client);
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

static void serve(void (*ask)(void))
{
	start_peer(ask);
	open_scene(RDMA_PS_TCP);
	server_listens(0);
	tell();
	take(server_events, CONNECT_REQUEST);
	make_qp(child);
}

/* Disconnects, and ends before the answer. */
static void disconnects(void)
{
	connects();
	take(client_events, ESTABLISHED);
	await();
	MUST(rdma_disconnect(client));
	leave();
}

static void exit_disconnecting(void)
{
	serve(disconnects);
	TRY(rdma_accept(child, NULL));
	take(server_events, ESTABLISHED);
	tell();
	peer_joined();
	next(server_events);
	rest(server_events);
	TRY(rdma_disconnect(child));
	rest(server_events);
}

const struct scenario exits_scenarios[] = {
	{"exit-established", exit_established, "the server while connected", PROCESSES},
	{"exit-disconnecting", exit_disconnecting, "the client right after rdma_disconnect()",
	 PROCESSES},
	{NULL, NULL, NULL, 0},
};
