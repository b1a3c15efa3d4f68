/* SPDX-License-Identifier: BSD-2-Clause */
/* migrate.c - scenarios of rdma_migrate_id(): ids that change their channel, with what waits there. */
#include "scene.h"

static struct rdma_event_channel *other_events;

static void open_three(void)
{
	open_scene(RDMA_PS_TCP);
	other_events = make_channel("other");
}

/* The third one is for the server. */
static void open_three_for_server(void)
{
	open_scene(RDMA_PS_TCP);
	other_events = make_server_channel("other");
}

static void show_channel(const char *name, const struct rdma_cm_id *id)
{
	say("%s is on %s", name,
	    id->channel == client_events   ? "client's"
	    : id->channel == server_events ? "server's"
	    : id->channel == other_events  ? "the other one"
					   : "another one");
}

static void migrate_established(void)
{
	open_three();
	established();
	TRY(rdma_migrate_id(client, other_events));
	show_channel("client", client);
	TRY(rdma_disconnect(client));
	next(server_events);
	TRY(rdma_disconnect(child));
	rest(other_events);
	rest(client_events);
	rest(server_events);
}

static void migrate_new(void)
{
	open_three();
	TRY(rdma_migrate_id(client, other_events));
	TRY(rdma_resolve_addr(client, at(CLIENT4, ANY_PORT), at(SERVER4, 0), 2000));
	next(other_events);
	rest(client_events);
}

static void migrate_pending(void)
{
	open_three();
	MUST(rdma_resolve_addr(client, at(CLIENT4, ANY_PORT), at(SERVER4, 0), 2000));
	arrived(client_events);
	TRY(rdma_migrate_id(client, other_events));
	rest(client_events);
	next(other_events);
	show_addresses(client);
}

/* Only its own events go with an id. */
static void migrate_among_others(void)
{
	struct rdma_cm_id *stays;

	open_three();
	stays = make_id("stays", client_events, RDMA_PS_TCP);
	MUST(rdma_resolve_addr(stays, at(CLIENT4, ANY_PORT), at(SERVER4, 0), 2000));
	arrived(client_events);
	MUST(rdma_resolve_addr(client, at(CLIENT4, ANY_PORT), at(SERVER4, 0), 2000));
	pass_ms(300);
	TRY(rdma_migrate_id(client, other_events));
	rest(client_events);
	rest(other_events);
}

/* A new client asks, and is accepted on the other channel. */
static void ask_and_accept(const char *name)
{
	struct rdma_conn_param with = param();

	client = make_id(name, client_events, RDMA_PS_TCP);
	client_resolves();
	make_qp(client);
	MUST(rdma_connect(client, &with));
	expect(other_events, CONNECT_REQUEST);
	show_channel("child", child);
	make_qp(child);
	TRY(rdma_accept(child, &with));
	next(client_events);
	next(other_events);
}

static void migrate_listener(void)
{
	struct rdma_cm_id *taken;

	open_three_for_server();
	request(NULL);
	taken = child;
	TRY(rdma_migrate_id(server, other_events));
	ask_and_accept("client2");
	show_channel("the first child", taken);
	make_qp(taken);
	TRY(rdma_accept(taken, NULL));
	next(client_events);
	next(server_events);
	rest(other_events);
}

/* librdmacm loses those that wait. */
static void migrate_listener_waiting(void)
{
	struct rdma_conn_param with = param();

	open_three_for_server();
	server_listens(0);
	client_resolves();
	make_qp(client);
	MUST(rdma_connect(client, &with));
	arrived(server_events);
	TRY(rdma_migrate_id(server, other_events));
	rest(server_events);
	rest(other_events);
	rest(client_events);
	/* Over iWARP nobody waits longer than 10 s for an answer: that event stays behind. */
	client_events = make_channel("client2");
	ask_and_accept("client2");
}

static void migrate_child(void)
{
	struct rdma_conn_param with = param();

	open_three_for_server();
	request(NULL);
	TRY(rdma_migrate_id(child, other_events));
	make_qp(child);
	TRY(rdma_accept(child, &with));
	next(client_events);
	rest(other_events);
	rest(server_events);
}

static void migrate_asking(void)
{
	struct rdma_conn_param with = param();

	open_three();
	request(NULL);
	make_qp(child);
	TRY(rdma_accept(child, &with));
	arrived(client_events);
	TRY(rdma_migrate_id(client, other_events));
	show_qp(client);
	next(other_events);
	show_qp(client);
	next(server_events);
	rest(client_events);
}

static void migrate_to_null(void)
{
	open_three();
	client_finds();
	TRY(rdma_migrate_id(client, NULL));
	say("%s", client->channel && client->channel != client_events ? "a channel of its own"
								      : "no channel of its own");
	TRY(rdma_resolve_route(client, 2000));
	if (client->event)
		show_event(client->channel, client->event);
	rest(client_events);
	TRY(rdma_migrate_id(client, NULL));
}

static void migrate_from_sync(void)
{
	open_channels();
	MUST(rdma_create_id(NULL, &client, NULL, RDMA_PS_TCP));
	name_id("client", client);
	MUST(rdma_resolve_addr(client, at(CLIENT4, ANY_PORT), at(SERVER4, 0), 2000));
	say("holds an event: %s", client->event ? "yes" : "no");
	TRY(rdma_migrate_id(client, client_events));
	say("holds an event: %s", client->event ? "yes" : "no");
	show_channel("client", client);
	TRY(rdma_resolve_route(client, 2000));
	next(client_events);
}

static struct rdma_cm_event *kept;

static void ack_later(void)
{
	pass_ms(300);
	say("acknowledging");
	ack(kept);
}

static void migrate_unacked(void)
{
	uint64_t start;

	open_three();
	MUST(rdma_resolve_addr(client, at(CLIENT4, ANY_PORT), at(SERVER4, 0), 2000));
	kept = next_unacked(client_events);
	start = now_ms();
	beside(ack_later);
	TRY(rdma_migrate_id(client, other_events));
	say("it %s", now_ms() - start >= 290 ? "waited" : "did not wait");
	join();
	show_channel("client", client);
}

static void migrate_same(void)
{
	open_three();
	TRY(rdma_migrate_id(client, client_events));
	TRY_CRASH(rdma_migrate_id(NULL, client_events));
	show_channel("client", client);
	TRY(rdma_resolve_addr(client, at(CLIENT4, ANY_PORT), at(SERVER4, 0), 2000));
	next(client_events);
}

static void migrate_away_from_closed(void)
{
	open_three();
	established();
	TRY(rdma_migrate_id(client, other_events));
	rdma_destroy_event_channel(client_events);
	forget_channel(client_events);
	TRY(rdma_disconnect(child));
	next(other_events);
	TRY(rdma_disconnect(client));
	rest(server_events);
}

const struct scenario migrate_scenarios[] = {
	{ "migrate", migrate_established, "the client to a third channel", 0 },
	{ "migrate-new", migrate_new, "before anything else", 0 },
	{ "migrate-pending", migrate_pending, "its event waits", 0 },
	{ "migrate-among-others", migrate_among_others, "another id's event waits, too", 0 },
	{ "migrate-listener", migrate_listener, "a listener, with a request not answered", 0 },
	{ "migrate-listener-waiting", migrate_listener_waiting,
	  "a listener, with a request not taken", 0 },
	{ "migrate-child", migrate_child, "a request before it is accepted", 0 },
	{ "migrate-asking", migrate_asking, "the answer waits", 0 },
	{ "migrate-to-null", migrate_to_null, "becomes synchronous, and again", 0 },
	{ "migrate-from-sync", migrate_from_sync, "is synchronous no more", 0 },
	{ "migrate-unacked", migrate_unacked, "waits for an event that is not acknowledged", 0 },
	{ "migrate-same", migrate_same, "to its own channel", 0 },
	{ "migrate-away", migrate_away_from_closed, "the first channel is destroyed then", 0 },
	{ NULL, NULL, NULL, 0 },
};
