/* SPDX-License-Identifier: BSD-2-Clause */
/* own.c - scenarios between addresses of one's own host to which no route leads over a cable. */
#include <netinet/in.h>

#include "scene.h"

static void fresh(void)
{
	if (client) {
		rdma_destroy_id(client);
		forget_id(client);
	}
	client = make_id("client", client_events, RDMA_PS_TCP);
}

struct way {
	enum place from, to; /* from NUM_PLACES: no source */
};

static void show_way(const struct way *way)
{
	say("-- from %s to %s",
	    way->from == NUM_PLACES ? "nowhere" : address_text(at(way->from, 1)),
	    address_text(at(way->to, 0)));
}

/* The source given, then bound before. */
static void resolve(const struct way *way)
{
	show_way(way);
	fresh();
	if (!TRY(rdma_resolve_addr(client,
				   way->from == NUM_PLACES ? NULL : at(way->from, ANY_PORT),
				   at(way->to, 0), 1000)))
		next(client_events);
	show_addresses(client);
	if (way->from == NUM_PLACES)
		return;
	fresh();
	if (TRY(rdma_bind_addr(client, at(way->from, 1))))
		return;
	if (!TRY(rdma_resolve_addr(client, NULL, at(way->to, 0), 1000)))
		next(client_events);
	show_addresses(client);
}

static void resolve_all(const struct way *ways, size_t num)
{
	open_channels();
	for (; num--; ways++)
		resolve(ways);
}

static void own_second(void)
{
	static const struct way ways[] = {
		{ NUM_PLACES, SECOND4 }, { ANY4, SECOND4 },     { CLIENT4, SECOND4 },
		{ SECOND4, CLIENT4 },	 { SECOND4, SECOND4 },  { SECOND4, SERVER4 },
		{ SERVER4, SECOND4 },	 { NODEVICE4, SECOND4 }, { SECOND4, NOBODY4 },
	};

	resolve_all(ways, ARRAY_LEN(ways));
}

static void own_second_ipv6(void)
{
	static const struct way ways[] = {
		{ NUM_PLACES, SECOND6 }, { ANY6, SECOND6 },    { CLIENT6, SECOND6 },
		{ SECOND6, CLIENT6 },	 { SECOND6, SECOND6 }, { SECOND6, SERVER6 },
		{ SERVER6, SECOND6 },	 { NUM_PLACES, NOBODY6 }, { SECOND6, NOBODY6 },
	};

	resolve_all(ways, ARRAY_LEN(ways));
}

static void own_loopback(void)
{
	static const struct way ways[] = {
		{ LOOPBACK4, SECOND4 },
		{ LOOPBACK4, OTHER4 },
		{ LOOPBACK4, NODEVICE4 },
		{ LOOPBACK4, NOBODY4 },
	};

	resolve_all(ways, ARRAY_LEN(ways));
}

static void own_loopback_ipv6(void)
{
	static const struct way ways[] = {
		{ LOOPBACK6, SECOND6 },
		{ LOOPBACK6, SERVER6 },
		{ LOOPBACK6, OTHER6 },
		{ LOOPBACK6, NOBODY6 },
	};

	resolve_all(ways, ARRAY_LEN(ways));
}

static void own_other_device(void)
{
	static const struct way ways[] = {
		{ NUM_PLACES, OTHER4 }, { CLIENT4, OTHER4 }, { SERVER4, OTHER4 },
		{ SECOND4, OTHER4 },	{ OTHER4, CLIENT4 }, { OTHER4, SECOND4 },
	};

	resolve_all(ways, ARRAY_LEN(ways));
}

static void own_other_device_ipv6(void)
{
	static const struct way ways[] = {
		{ NUM_PLACES, OTHER6 }, { CLIENT6, OTHER6 }, { SERVER6, OTHER6 },
		{ SECOND6, OTHER6 },	{ OTHER6, CLIENT6 }, { OTHER6, SECOND6 },
	};

	resolve_all(ways, ARRAY_LEN(ways));
}

/* --- And to a listener there. --- */

static void connect_to(const struct way *way, enum place listens)
{
	struct rdma_conn_param with = param_data(5);

	show_way(way);
	open_scene(RDMA_PS_TCP);
	MUST(rdma_bind_addr(server, at(listens, 0)));
	MUST(rdma_listen(server, 0));
	if (TRY(rdma_resolve_addr(client,
				  way->from == NUM_PLACES ? NULL : at(way->from, ANY_PORT),
				  at(way->to, 0), 1000)))
		return;
	expect(client_events, ADDR_RESOLVED);
	show_addresses(client);
	if (TRY(rdma_resolve_route(client, 2000)))
		return;
	expect(client_events, ROUTE_RESOLVED);
	show_route(client);
	make_qp(client);
	if (TRY(rdma_connect(client, &with)))
		return;
	expect(server_events, CONNECT_REQUEST);
	show_addresses(child);
	make_qp(child);
	TRY(rdma_accept(child, &with));
	next(client_events);
	next(server_events);
	show_qp_attr(client);
	show_qp_attr(child);
}

static void connect_way(const struct way *way)
{
	connect_to(way, way->to);
}

static void own_second_connect(void)
{
	static const struct way way = { NUM_PLACES, SECOND4 };

	connect_way(&way);
}

static void own_second_connect_ipv6(void)
{
	static const struct way way = { CLIENT6, SECOND6 };

	connect_way(&way);
}

static void own_loopback_connect(void)
{
	static const struct way way = { LOOPBACK4, SECOND4 };

	connect_way(&way);
}

static void own_loopback_connect_ipv6(void)
{
	static const struct way way = { LOOPBACK6, SECOND6 };

	connect_way(&way);
}

static void own_any_connect(void)
{
	static const struct way way = { SERVER4, SERVER4 };

	connect_to(&way, ANY4);
}

static void own_any_connect_ipv6(void)
{
	static const struct way way = { NUM_PLACES, SECOND6 };

	connect_to(&way, ANY6);
}

/* iWARP's wildcard listens at its devices' interfaces, by which no answer gets to 127.0.0.1. */
static void own_loopback_any_connect(void)
{
	static const struct way way = { LOOPBACK4, SECOND4 };

	connect_to(&way, ANY4);
}

/* IPv6 takes the source as it is, and iWARP's stream then goes inside of the host. */
static void own_link_connect_ipv6(void)
{
	static const struct way way = { SERVER6, SECOND6 };

	connect_way(&way);
}

static void own_other_device_connect_ipv6(void)
{
	static const struct way way = { CLIENT6, OTHER6 };

	connect_way(&way);
}

const struct scenario own_scenarios[] = {
	{ "own-second", own_second, "a second address of the client's interface", 0 },
	{ "own-second-ipv6", own_second_ipv6, "the same with IPv6", 0 },
	{ "own-second-connect", own_second_connect, "and a listener there", 0 },
	{ "own-second-connect-ipv6", own_second_connect_ipv6, "the same with IPv6", 0 },
	{ "own-loopback", own_loopback, "from 127.0.0.1 to own addresses and others", 0 },
	{ "own-loopback-ipv6", own_loopback_ipv6, "from ::1", 0 },
	{ "own-loopback-connect", own_loopback_connect, "from 127.0.0.1 to a listener", 0 },
	{ "own-loopback-connect-ipv6", own_loopback_connect_ipv6, "from ::1 to a listener", 0 },
	{ "own-any-connect", own_any_connect, "to itself, where a wildcard listens", 0 },
	{ "own-any-connect-ipv6", own_any_connect_ipv6, "the same with IPv6, without a source", 0 },
	{ "own-loopback-any-connect", own_loopback_any_connect, "the same from 127.0.0.1", SLOW },
	{ "own-link-connect-ipv6", own_link_connect_ipv6, "from the link's other end to a second", 0 },
	{ "own-other-device", own_other_device, "an address of another device of the host", 0 },
	{ "own-other-device-ipv6", own_other_device_ipv6, "the same with IPv6", 0 },
	{ "own-other-device-connect-ipv6", own_other_device_connect_ipv6, "and a listener there", 0 },
	{ NULL, NULL, NULL, 0 },
};
