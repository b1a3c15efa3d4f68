/* SPDX-License-Identifier: BSD-2-Clause */
/* addresses.c - scenarios of rdma_bind_addr() and rdma_resolve_addr(): addresses of all kinds. */
#include "scene.h"

static void address_bind(void)
{
	open_scene(RDMA_PS_TCP);
	show_addresses(server);
	TRY(rdma_bind_addr(server, at(SERVER4, 0)));
	show_addresses(server);
	show_route(server);
	TRY(rdma_bind_addr(server, at(SERVER4, 0)));
}

static void address_bind_wildcard(void)
{
	open_scene(RDMA_PS_TCP);
	TRY(rdma_bind_addr(server, at(ANY4, 0)));
	show_addresses(server);
	TRY(rdma_listen(server, 0));
	show_addresses(server);
}

static void address_bind_elsewhere(void)
{
	open_scene(RDMA_PS_TCP);
	TRY(rdma_bind_addr(server, at(ELSEWHERE4, 0)));
	show_addresses(server);
	say("and a good one after that");
	TRY(rdma_bind_addr(server, at(SERVER4, 0)));
	show_addresses(server);
}

static void address_resolve(void)
{
	open_scene(RDMA_PS_TCP);
	TRY(rdma_resolve_addr(client, at(CLIENT4, ANY_PORT), at(SERVER4, 0), 2000));
	show_addresses(client);
	next(client_events);
	show_addresses(client);
	TRY(rdma_resolve_route(client, 2000));
	next(client_events);
	show_addresses(client);
	show_route(client);
}

static void address_resolve_without_source(void)
{
	open_scene(RDMA_PS_TCP);
	TRY(rdma_resolve_addr(client, NULL, at(SERVER4, 0), 2000));
	next(client_events);
	show_addresses(client);
}

static void address_resolve_nobody(void)
{
	uint64_t start;

	open_scene(RDMA_PS_TCP);
	start = now_ms();
	TRY(rdma_resolve_addr(client, NULL, at(NOBODY4, 0), 1000));
	next(client_events);
	show_lapse("that", start, 1000);
	say("and a good one after that");
	TRY(rdma_resolve_addr(client, NULL, at(SERVER4, 0), 2000));
	next(client_events);
}

static void address_resolve_unroutable(void)
{
	open_scene(RDMA_PS_TCP);
	TRY(rdma_resolve_addr(client, NULL, at(UNROUTABLE4, 0), 1000));
	rest(client_events);
	show_addresses(client);
}

static void address_resolve_twice(void)
{
	open_scene(RDMA_PS_TCP);
	client_finds();
	TRY(rdma_resolve_addr(client, NULL, at(SERVER4, 0), 2000));
	rest(client_events);
}

static void address_route_too_early(void)
{
	open_scene(RDMA_PS_TCP);
	TRY_CRASH(rdma_resolve_route(client, 2000));
	client_finds();
	TRY(rdma_resolve_route(client, 0));
	rest(client_events);
	TRY(rdma_resolve_route(client, 2000));
	next(client_events);
	TRY(rdma_resolve_route(client, 2000));
	rest(client_events);
}

const struct scenario addresses_scenarios[] = {
	{ "address-bind", address_bind, "bound to an address, and again", 0 },
	{ "address-bind-wildcard", address_bind_wildcard, "bound to 0.0.0.0, listening", 0 },
	{ "address-bind-elsewhere", address_bind_elsewhere, "an address of another machine", 0 },
	{ "address-resolve", address_resolve, "address and route", 0 },
	{ "address-resolve-without-source", address_resolve_without_source, "source NULL", 0 },
	{ "address-resolve-nobody", address_resolve_nobody, "nobody has the address", 0 },
	{ "address-resolve-unroutable", address_resolve_unroutable, "no route leads there", 0 },
	{ "address-resolve-twice", address_resolve_twice, "rdma_resolve_addr() again", 0 },
	{ "address-route-too-early", address_route_too_early,
	  "rdma_resolve_route() before, and twice", 0 },
	{ NULL, NULL, NULL, 0 },
};
