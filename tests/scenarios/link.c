/* SPDX-License-Identifier: BSD-2-Clause */
/* link.c - scenarios on a link that is cut or loses packets. */
#include "scene.h"

static bool on_iwarp(const struct rdma_cm_id *id)
{
	return id->verbs && id->verbs->device->transport_type == IBV_TRANSPORT_IWARP;
}

/* What the system has learned of a neighbour would answer in the link's place. */
static void forget_neighbour(enum place place)
{
	char line[128];

	snprintf(line, sizeof(line), "ip neighbour flush to %s >&2", host(place));
	MUST(system(line)); /* NOLINT: the runner's own address */
}

static void link_cut_resolve(void)
{
	uint64_t start;

	open_scene(RDMA_PS_TCP);
	link_cut();
	forget_neighbour(SERVER4);
	start = now_ms();
	TRY(rdma_resolve_addr(client, at(CLIENT4, ANY_PORT), at(SERVER4, 0), 2000));
	next(client_events);
	show_lapse("that", start, 2000);
	show_addresses(client);
	link_mended();
	say("mended");
	/* The system gives a neighbour up after 3 s, and asks anew only then. */
	pass_ms(3000);
	TRY(rdma_resolve_addr(client, NULL, at(SERVER4, 0), 5000));
	next(client_events);
	show_addresses(client);
}

static void link_cut_connect(void)
{
	struct rdma_conn_param with = param();
	uint64_t start;

	open_scene(RDMA_PS_TCP);
	server_listens(0);
	client_resolves();
	make_qp(client);
	link_cut();
	start = now_ms();
	if (!TRY(rdma_connect(client, &with))) {
		next(client_events);
		show_lapse("that", start, 73728);
	}
	show_qp(client);
	rest(server_events);
}

/* Mended while the request is still repeated. */
static void link_mended_connect(void)
{
	struct rdma_conn_param with = param();

	open_scene(RDMA_PS_TCP);
	server_listens(0);
	client_resolves();
	make_qp(client);
	if (on_iwarp(client))
		end_skipped("rdma_connect() does not return without an answer");
	link_cut();
	TRY(rdma_connect(client, &with));
	rest(server_events);
	link_mended();
	say("mended");
	next(server_events);
	make_qp(child);
	TRY(rdma_accept(child, &with));
	next(client_events);
	next(server_events);
}

static void link_cut_accept(void)
{
	struct rdma_conn_param with = param();
	uint64_t connected, start;

	open_scene(RDMA_PS_TCP);
	request(NULL);
	connected = now_ms();
	make_qp(child);
	link_cut();
	start = now_ms();
	TRY(rdma_accept(child, &with));
	next(server_events);
	show_lapse("that", start, on_iwarp(client) ? 0 : 65536);
	next(client_events);
	show_lapse("that", connected, on_iwarp(client) ? 10000 : 73728);
	pass_ms(500);
	show_qp(client);
	show_qp(child);
}

/*
 * The refusal is not repeated, but the request is, as if it were a new one: soon, or after a minute
 * where the server has asked for patience before the cut.
 */
static void link_cut_reject(void)
{
	open_scene(RDMA_PS_TCP);
	request(NULL);
	if (on_iwarp(client))
		end_skipped("TCP repeats the refusal when it likes");
	link_cut();
	TRY(rdma_reject(child, counting, 3));
	rest(client_events);
	link_mended();
	say("mended");
	next(server_events);
	TRY(rdma_reject(child, counting, 4));
	next(client_events);
	rest(server_events);
}

static void link_cut_idle(void)
{
	open_scene(RDMA_PS_TCP);
	established();
	link_cut();
	pass_ms(3000);
	rest(client_events);
	rest(server_events);
	show_qp(client);
	link_mended();
	say("mended");
	TRY(rdma_disconnect(client));
	next(server_events);
	TRY(rdma_disconnect(child));
	next(client_events);
}

static void link_cut_disconnect(void)
{
	uint64_t start;

	open_scene(RDMA_PS_TCP);
	established();
	link_cut();
	start = now_ms();
	TRY(rdma_disconnect(client));
	next(client_events);
	show_lapse("that", start, on_iwarp(client) ? 0 : 73728);
	pass_ms(1500);
	rest(client_events);
	rest(server_events);
	link_mended();
	say("mended");
	TRY(rdma_disconnect(child));
	next(server_events);
}

/* The one request to disconnect that rdma_destroy_id() makes is lost. */
static void link_cut_destroy(void)
{
	open_scene(RDMA_PS_TCP);
	established();
	link_cut();
	rdma_destroy_qp(client);
	TRY(rdma_destroy_id(client));
	forget_id(client);
	rest(server_events);
	link_mended();
	say("mended");
	TRY(rdma_disconnect(child));
	next(server_events);
}

static void link_loses_some(void)
{
	struct rdma_conn_param with = param_data(10);

	open_scene(RDMA_PS_TCP);
	server_listens(0);
	client_resolves();
	make_qp(client);
	/* On iWARP the server waits 5 s for the first data, and TCP is slow to repeat them. */
	link_loses(on_iwarp(client) ? 10 : 30);
	TRY(rdma_connect(client, &with));
	next(server_events);
	make_qp(child);
	TRY(rdma_accept(child, &with));
	next(client_events);
	next(server_events);
	TRY(rdma_disconnect(client));
	next(server_events);
	TRY(rdma_disconnect(child));
	next(client_events);
	link_mended();
	pass_ms(1500);
	rest(client_events);
	rest(server_events);
}

const struct scenario link_scenarios[] = {
	{ "link-cut-resolve", link_cut_resolve, "cut before the address is resolved", LINK },
	{ "link-cut-connect", link_cut_connect, "cut before the request", LINK | SLOW },
	{ "link-mended-connect", link_mended_connect, "mended before the request has failed", LINK },
	{ "link-cut-accept", link_cut_accept, "cut before the answer", LINK | SLOW },
	{ "link-cut-reject", link_cut_reject, "cut before a refusal, mended later", LINK | SLOW },
	{ "link-cut-idle", link_cut_idle, "cut and mended while connected", LINK },
	{ "link-cut-disconnect", link_cut_disconnect, "cut before disconnecting", LINK | SLOW },
	{ "link-cut-destroy", link_cut_destroy, "cut before the id is destroyed", LINK },
	{ "link-loses-some", link_loses_some, "3 of 10 packets are lost, on iWARP 1", LINK | SLOW },
	{ NULL, NULL, NULL, 0 },
};
