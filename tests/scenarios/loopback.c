/* SPDX-License-Identifier: BSD-2-Clause */
/* loopback.c - scenarios of 127.0.0.1 and its like, and of one's own address as destination. */
#include "scene.h"

/*
 * Such an address leads to the first device that there is, of whichever transport: the traces are
 * RoCE's.
 */
static void open_roce_scene(void)
{
	open_scene(RDMA_PS_TCP);
	MUST(rdma_bind_addr(server, at(SERVER4, 9)));
	if (server->verbs->device->transport_type == IBV_TRANSPORT_IWARP)
		end_skipped("the first device is a RoCE device");
}

static void resolve(enum place from, enum place to)
{
	struct sockaddr *source = from == NUM_PLACES ? NULL : at(from, ANY_PORT);

	open_roce_scene();
	if (!TRY(rdma_resolve_addr(client, source, at(to, 0), 2000)))
		next(client_events);
	show_addresses(client);
	if (!client->verbs)
		return;
	show_route(client);
	if (!TRY(rdma_resolve_route(client, 2000)))
		next(client_events);
	rest(client_events);
}

static void loopback_resolve(void)
{
	resolve(NUM_PLACES, LOOPBACK4);
}

static void loopback_resolve_ipv6(void)
{
	resolve(NUM_PLACES, LOOPBACK6);
}

static void loopback_resolve_any(void)
{
	resolve(NUM_PLACES, ANY4);
}

/* Of the first device nobody asks whether it can. */
static void loopback_resolve_ipoib(void)
{
	open_roce_scene();
	client = make_id("client", client_events, RDMA_PS_IPOIB);
	TRY(rdma_resolve_addr(client, at(ANY4, ANY_PORT), at(ANY4, 0), 0));
	next(client_events);
	TRY(rdma_resolve_addr(client, NULL, at(SERVER4, 0), 1000));
}

static void loopback_resolve_from_loopback(void)
{
	resolve(LOOPBACK4, LOOPBACK4);
}

static void loopback_resolve_from_address(void)
{
	resolve(CLIENT4, LOOPBACK4);
}

/* Linux takes the request of RoCE for a neighbour's, and the answer to iWARP's goes over the cable. */
static void loopback_connect_from_address(void)
{
	struct rdma_conn_param with = param();

	open_scene(RDMA_PS_TCP);
	MUST(rdma_bind_addr(server, at(ANY4, 0)));
	MUST(rdma_listen(server, 0));
	MUST(rdma_resolve_addr(client, at(CLIENT4, ANY_PORT), at(LOOPBACK4, 0), 2000));
	expect(client_events, ADDR_RESOLVED);
	MUST(rdma_resolve_route(client, 2000));
	expect(client_events, ROUTE_RESOLVED);
	make_qp(client);
	TRY(rdma_connect(client, &with));
	rest(client_events);
	rest(server_events);
}

static void loopback_to_address(void)
{
	resolve(LOOPBACK4, SERVER4);
}

static void loopback_bind(void)
{
	struct rdma_cm_id *other;

	open_scene(RDMA_PS_TCP);
	TRY(rdma_bind_addr(server, at(LOOPBACK4, 0)));
	say("%s", address_text(rdma_get_local_addr(server)));
	other = make_id("other", server_events, RDMA_PS_TCP);
	TRY(rdma_bind_addr(other, at(SERVER4, 0)));
	TRY(rdma_bind_addr(other, at(ANY4, 0)));
	TRY(rdma_bind_addr(other, at(LOOPBACK4, 0)));
	TRY(rdma_bind_addr(client, at(LOOPBACK6, 1)));
	say("%s", address_text(rdma_get_local_addr(client)));
}

/* Listening there: who comes from where is taken? */
static void loopback_listen(void)
{
	struct rdma_conn_param with = param();

	open_scene(RDMA_PS_TCP);
	TRY(rdma_bind_addr(server, at(LOOPBACK4, 0)));
	TRY(rdma_listen(server, 0));
	client_resolves();
	make_qp(client);
	if (!TRY(rdma_connect(client, &with)))
		next(client_events);
	rest(server_events);
}

/* --- An address to itself. --- */

static void connect_to_itself(enum place place)
{
	struct rdma_conn_param with = param_data(5);

	open_scene(RDMA_PS_TCP);
	MUST(rdma_bind_addr(server, at(place, 0)));
	MUST(rdma_listen(server, 0));
	TRY(rdma_resolve_addr(client, at(place, ANY_PORT), at(place, 0), 2000));
	expect(client_events, ADDR_RESOLVED);
	show_addresses(client);
	TRY(rdma_resolve_route(client, 2000));
	expect(client_events, ROUTE_RESOLVED);
	show_route(client);
	make_qp(client);
	TRY(rdma_connect(client, &with));
	expect(server_events, CONNECT_REQUEST);
	show_addresses(child);
	make_qp(child);
	TRY(rdma_accept(child, &with));
	next(client_events);
	next(server_events);
	show_qp_attr(client);
	show_qp_attr(child);
}

static void loopback_own_address(void)
{
	connect_to_itself(SERVER4);
}

static void loopback_own_address_ipv6(void)
{
	connect_to_itself(SERVER6);
}

static void loopback_own_address_nobody(void)
{
	struct rdma_conn_param with = param();

	open_scene(RDMA_PS_TCP);
	MUST(rdma_resolve_addr(client, at(SERVER4, ANY_PORT), at(SERVER4, 0), 2000));
	expect(client_events, ADDR_RESOLVED);
	MUST(rdma_resolve_route(client, 2000));
	expect(client_events, ROUTE_RESOLVED);
	make_qp(client);
	if (!TRY(rdma_connect(client, &with)))
		next(client_events);
	rest(client_events);
}

const struct scenario loopback_scenarios[] = {
	{ "loopback-resolve", loopback_resolve, "to 127.0.0.1", 0 },
	{ "loopback-resolve-ipv6", loopback_resolve_ipv6, "to ::1", 0 },
	{ "loopback-resolve-any", loopback_resolve_any, "to 0.0.0.0", 0 },
	{ "loopback-resolve-ipoib", loopback_resolve_ipoib, "to 0.0.0.0, by IP over InfiniBand", 0 },
	{ "loopback-resolve-from-loopback", loopback_resolve_from_loopback,
	  "from 127.0.0.1 to itself", 0 },
	{ "loopback-resolve-from-address", loopback_resolve_from_address,
	  "from a device's address to 127.0.0.1", 0 },
	{ "loopback-connect-from-address", loopback_connect_from_address,
	  "and then to a listener there", SLOW },
	{ "loopback-to-address", loopback_to_address, "from 127.0.0.1 to a device's address", 0 },
	{ "loopback-bind", loopback_bind, "bound to 127.0.0.1, what conflicts", 0 },
	{ "loopback-listen", loopback_listen, "127.0.0.1 listens, the link's peer comes", 0 },
	{ "loopback-own-address", loopback_own_address, "a device's address to itself", 0 },
	{ "loopback-own-address-ipv6", loopback_own_address_ipv6, "the same with IPv6", 0 },
	{ "loopback-own-address-nobody", loopback_own_address_nobody, "nobody listens there", 0 },
	{ NULL, NULL, NULL, 0 },
};
