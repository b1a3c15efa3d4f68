/* SPDX-License-Identifier: BSD-2-Clause */
/* notify.c - scenarios of rdma_notify(): in each state, with each event that matters. */
#include "scene.h"

static void notify(struct rdma_cm_id *id)
{
	TRY(rdma_notify(id, IBV_EVENT_COMM_EST));
	TRY(rdma_notify(id, IBV_EVENT_PATH_MIG));
	TRY(rdma_notify(id, IBV_EVENT_QP_FATAL));
}

static void notify_early(void)
{
	open_scene(RDMA_PS_TCP);
	say("new");
	notify(client);
	say("listening");
	server_listens(0);
	notify(server);
	say("address resolved");
	client_finds();
	notify(client);
	say("route resolved");
	MUST(rdma_resolve_route(client, 2000));
	expect(client_events, ROUTE_RESOLVED);
	notify(client);
	rest(client_events);
}

static void notify_request(void)
{
	open_scene(RDMA_PS_TCP);
	request(NULL);
	say("the client waits");
	notify(client);
	say("the server has not answered");
	notify(child);
	rest(client_events);
	rest(server_events);
	say("and it goes on");
	make_qp(child);
	TRY(rdma_accept(child, &(struct rdma_conn_param){ .rnr_retry_count = 7 }));
	next(client_events);
	next(server_events);
}

/* What the call is for: data before the RTU. */
static void notify_accepted(void)
{
	open_scene(RDMA_PS_TCP);
	accepted(NULL);
	TRY(rdma_notify(child, IBV_EVENT_COMM_EST));
	next(server_events);
	TRY(rdma_notify(child, IBV_EVENT_COMM_EST));
	say("and the client looks");
	TRY(rdma_notify(client, IBV_EVENT_COMM_EST));
	next(client_events);
	TRY(rdma_notify(client, IBV_EVENT_COMM_EST));
	rest(client_events);
	rest(server_events);
}

static void notify_accepted_other(void)
{
	open_scene(RDMA_PS_TCP);
	accepted(NULL);
	TRY(rdma_notify(child, IBV_EVENT_PATH_MIG));
	TRY(rdma_notify(child, IBV_EVENT_COMM_EST + 100));
	next(client_events);
	next(server_events);
}

static void notify_established(void)
{
	open_scene(RDMA_PS_TCP);
	established();
	say("client");
	notify(client);
	say("server");
	notify(child);
	rest(client_events);
	rest(server_events);
}

static void notify_disconnected(void)
{
	open_scene(RDMA_PS_TCP);
	established();
	MUST(rdma_disconnect(client));
	next(server_events);
	say("one has disconnected");
	notify(client);
	notify(child);
	MUST(rdma_disconnect(child));
	next(client_events);
	say("both have");
	notify(client);
	notify(child);
}

static void notify_datagram(void)
{
	open_scene(RDMA_PS_UDP);
	request(NULL);
	notify(client);
	notify(child);
}

const struct scenario notify_scenarios[] = {
	{ "notify-early", notify_early, "before rdma_connect()", 0 },
	{ "notify-request", notify_request, "a request is not answered", 0 },
	{ "notify-accepted", notify_accepted, "accepted, the client has not looked", 0 },
	{ "notify-accepted-other", notify_accepted_other, "then, with other events", 0 },
	{ "notify-established", notify_established, "both are connected", 0 },
	{ "notify-disconnected", notify_disconnected, "one, then both have disconnected", 0 },
	{ "notify-datagram", notify_datagram, "RDMA_PS_UDP", 0 },
	{ NULL, NULL, NULL, 0 },
};
