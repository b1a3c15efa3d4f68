/* SPDX-License-Identifier: BSD-2-Clause */
/* ipv6.c - scenarios of IPv6: connections, wildcards that take both families, link-local addresses. */
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>

#include "scene.h"

/* The client, from `from', knows the way to the server's port 0 at `to'. */
static void resolve(enum place from, enum place to)
{
	MUST(rdma_resolve_addr(client, at(from, ANY_PORT), at(to, 0), 5000));
	quiet();
	expect(client_events, ADDR_RESOLVED);
	MUST(rdma_resolve_route(client, 5000));
	expect(client_events, ROUTE_RESOLVED);
	loud();
	make_qp(client);
}

static void listen_at(enum place place)
{
	MUST(rdma_bind_addr(server, at(place, 0)));
	MUST(rdma_listen(server, 0));
}

/* A connection is asked for, and accepted if it comes. */
static void connects(void)
{
	struct rdma_conn_param with = param_data(10);
	struct rdma_cm_event *event;

	if (TRY(rdma_connect(client, &with)))
		return;
	event = next(server_events);
	if (!event || event->event != RDMA_CM_EVENT_CONNECT_REQUEST) {
		rest(client_events);
		return;
	}
	show_addresses(child);
	make_qp(child);
	TRY(rdma_accept(child, &with));
	next(client_events);
	next(server_events);
	show_addresses(client);
}

static void is_refused(void)
{
	struct rdma_conn_param with = param();

	if (!TRY(rdma_connect(client, &with)))
		next(client_events);
	rest(client_events);
	rest(server_events);
}

static void ipv6_accept(void)
{
	open_scene(RDMA_PS_TCP);
	listen_at(SERVER6);
	resolve(CLIENT6, SERVER6);
	connects();
	show_route(client);
	show_route(child);
	show_qp_attr(client);
	show_qp_attr(child);
}

static void ipv6_reject(void)
{
	open_scene(RDMA_PS_TCP);
	listen_at(SERVER6);
	resolve(CLIENT6, SERVER6);
	MUST(rdma_connect(client, &(struct rdma_conn_param){ .retry_count = 7 }));
	next(server_events);
	TRY(rdma_reject(child, counting, 5));
	next(client_events);
}

static void ipv6_nobody_listens(void)
{
	open_scene(RDMA_PS_TCP);
	resolve(CLIENT6, SERVER6);
	is_refused();
}

static void ipv6_wildcard(void)
{
	open_scene(RDMA_PS_TCP);
	listen_at(ANY6);
	show_addresses(server);
	resolve(CLIENT6, SERVER6);
	connects();
}

static void ipv6_wildcard_takes_ipv4(void)
{
	open_scene(RDMA_PS_TCP);
	listen_at(ANY6);
	resolve(CLIENT4, SERVER4);
	connects();
}

static void ipv6_only(void)
{
	int yes = 1;

	open_scene(RDMA_PS_TCP);
	TRY(rdma_set_option(server, RDMA_OPTION_ID, RDMA_OPTION_ID_AFONLY, &yes, sizeof(yes)));
	listen_at(ANY6);
	resolve(CLIENT4, SERVER4);
	is_refused();
}

static void ipv6_only_takes_ipv6(void)
{
	int yes = 1;

	open_scene(RDMA_PS_TCP);
	TRY(rdma_set_option(server, RDMA_OPTION_ID, RDMA_OPTION_ID_AFONLY, &yes, sizeof(yes)));
	listen_at(ANY6);
	resolve(CLIENT6, SERVER6);
	connects();
}

static void ipv4_wildcard_and_ipv6(void)
{
	open_scene(RDMA_PS_TCP);
	listen_at(ANY4);
	resolve(CLIENT6, SERVER6);
	is_refused();
}

static void ipv6_families_mixed(void)
{
	open_scene(RDMA_PS_TCP);
	TRY(rdma_resolve_addr(client, at(CLIENT4, ANY_PORT), at(SERVER6, 0), 2000));
	TRY(rdma_resolve_addr(client, at(CLIENT6, ANY_PORT), at(SERVER4, 0), 2000));
	show_addresses(client);
	TRY(rdma_bind_addr(server, at(SERVER4, 0)));
	TRY(rdma_resolve_addr(server, NULL, at(CLIENT6, 0), 2000));
	next(client_events);
	rest(server_events);
}

static void ipv6_without_source(void)
{
	open_scene(RDMA_PS_TCP);
	TRY(rdma_resolve_addr(client, NULL, at(SERVER6, 0), 2000));
	next(client_events);
	show_addresses(client);
	show_route(client);
}

static void ipv6_wildcard_source(void)
{
	open_scene(RDMA_PS_TCP);
	TRY(rdma_bind_addr(client, at(ANY6, 1)));
	TRY(rdma_resolve_addr(client, NULL, at(SERVER6, 0), 2000));
	next(client_events);
	show_addresses(client);
}

/* An IPv4 address in IPv6's clothes. */
static void ipv6_mapped(void)
{
	struct sockaddr_in6 mapped = *(struct sockaddr_in6 *)(void *)at(SERVER6, 0);

	memset(&mapped.sin6_addr, 0, 10);
	memset(&mapped.sin6_addr.s6_addr[10], 0xff, 2);
	memcpy(&mapped.sin6_addr.s6_addr[12],
	       &((struct sockaddr_in *)(void *)at(SERVER4, 0))->sin_addr, 4);
	open_scene(RDMA_PS_TCP);
	TRY(rdma_bind_addr(server, (struct sockaddr *)&mapped));
	TRY(rdma_resolve_addr(client, NULL, (struct sockaddr *)&mapped, 2000));
	rest(client_events);
}

/* --- Link-local addresses. --- */

static const char *interface_of(const struct ifaddrs *all, enum place place)
{
	const struct sockaddr_in6 *wanted = (struct sockaddr_in6 *)(void *)at(place, 0), *in6;

	for (; all; all = all->ifa_next) {
		in6 = (const struct sockaddr_in6 *)(const void *)all->ifa_addr;
		if (in6 && in6->sin6_family == AF_INET6 &&
		    !memcmp(&in6->sin6_addr, &wanted->sin6_addr, 16))
			return all->ifa_name;
	}
	return "";
}

/* The link-local address of the interface that has this place's address. */
static struct sockaddr_in6 link_local(enum place place, uint16_t port)
{
	struct sockaddr_in6 found = { .sin6_port = port }, *in6;
	struct ifaddrs *all, *one;
	const char *name;

	if (known_link_local(place, &found)) {
		found.sin6_port = port;
		return found;
	}
	MUST(getifaddrs(&all));
	name = interface_of(all, place);
	for (one = all; one; one = one->ifa_next) {
		in6 = (struct sockaddr_in6 *)(void *)one->ifa_addr;
		if (in6 && in6->sin6_family == AF_INET6 && !strcmp(one->ifa_name, name) &&
		    IN6_IS_ADDR_LINKLOCAL(&in6->sin6_addr)) {
			found = *in6;
			found.sin6_port = port;
			found.sin6_scope_id = if_nametoindex(name);
		}
	}
	freeifaddrs(all);
	if (!found.sin6_family)
		end_skipped("no link-local address");
	return found;
}

static void ipv6_link_local(void)
{
	struct sockaddr_in6 here, there;

	open_scene(RDMA_PS_TCP);
	there = link_local(SERVER6, ((struct sockaddr_in6 *)(void *)at(ANY6, 0))->sin6_port);
	here = link_local(CLIENT6, 0);
	TRY(rdma_bind_addr(server, (struct sockaddr *)&there));
	TRY(rdma_listen(server, 0));
	there.sin6_scope_id = here.sin6_scope_id;
	TRY(rdma_resolve_addr(client, (struct sockaddr *)&here, (struct sockaddr *)&there, 5000));
	expect(client_events, ADDR_RESOLVED);
	TRY(rdma_resolve_route(client, 5000));
	expect(client_events, ROUTE_RESOLVED);
	make_qp(client);
	connects();
}

static void ipv6_link_local_without_scope(void)
{
	struct sockaddr_in6 here, there;

	open_scene(RDMA_PS_TCP);
	there = link_local(SERVER6, 0);
	here = link_local(CLIENT6, 0);
	there.sin6_scope_id = 0;
	TRY(rdma_bind_addr(server, (struct sockaddr *)&there));
	TRY(rdma_resolve_addr(client, (struct sockaddr *)&here, (struct sockaddr *)&there, 2000));
	next(client_events);
	TRY(rdma_resolve_addr(client, NULL, (struct sockaddr *)&there, 2000));
	rest(client_events);
}

static void ipv6_link_local_other_scope(void)
{
	struct sockaddr_in6 there;

	open_scene(RDMA_PS_TCP);
	there = link_local(SERVER6, 0);
	there.sin6_scope_id = if_nametoindex("lo");
	TRY(rdma_bind_addr(server, (struct sockaddr *)&there));
	there.sin6_scope_id = 9999;
	TRY(rdma_bind_addr(server, (struct sockaddr *)&there));
}

const struct scenario ipv6_scenarios[] = {
	{ "ipv6-accept", ipv6_accept, "a connection, with all that was agreed", 0 },
	{ "ipv6-reject", ipv6_reject, "refused by the server", 0 },
	{ "ipv6-nobody-listens", ipv6_nobody_listens, "nobody listens on the port", 0 },
	{ "ipv6-wildcard", ipv6_wildcard, ":: listens", 0 },
	{ "ipv6-wildcard-takes-ipv4", ipv6_wildcard_takes_ipv4, ":: listens, IPv4 comes", 0 },
	{ "ipv6-only", ipv6_only, ":: listens with AFONLY, IPv4 comes", 0 },
	{ "ipv6-only-takes-ipv6", ipv6_only_takes_ipv6, ":: listens with AFONLY, IPv6 comes", 0 },
	{ "ipv6-to-ipv4-wildcard", ipv4_wildcard_and_ipv6, "0.0.0.0 listens, IPv6 comes", 0 },
	{ "ipv6-families-mixed", ipv6_families_mixed, "source and destination of two families", 0 },
	{ "ipv6-without-source", ipv6_without_source, "source NULL", 0 },
	{ "ipv6-wildcard-source", ipv6_wildcard_source, "bound to :: before", 0 },
	{ "ipv6-mapped", ipv6_mapped, "::ffff:IPv4", 0 },
	{ "ipv6-link-local", ipv6_link_local, "link-local addresses", 0 },
	{ "ipv6-link-local-without-scope", ipv6_link_local_without_scope, "scope 0", 0 },
	{ "ipv6-link-local-other-scope", ipv6_link_local_other_scope, "scope of another interface", 0 },
	{ NULL, NULL, NULL, 0 },
};
