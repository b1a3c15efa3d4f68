/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * routes.c - which way packets of a node go: networks of its interfaces, routes
 * that it was given, the default route.  Engine lock held.
 *
 * Nodes have a default route, so that those of different networks reach each
 * other without a word about routers; a node that was described as a host has
 * none, and then no route leads to other networks.
 */
#include "config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "address.h"
#include "fabric.h"

/* Interface numbers of those without a device, beyond those of ports. */
#define FIRST_PLAIN_INTERFACE 10000u

int sim_node_add_route(struct sim_node *node, const char *to, const char *source)
{
	struct sim_route route = { .prefix_len = 0 }, *grown;
	uint8_t unused;

	if (sim_addr_parse(to, &route.to, &route.prefix_len) < 0 ||
	    sim_addr_parse(source, &route.source, &unused) < 0 ||
	    route.to.sa.sa_family != route.source.sa.sa_family)
		return -EINVAL;
	grown = reallocarray(node->routes, node->num_routes + 1, sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	node->routes = grown;
	grown[node->num_routes++] = route;
	sim_fabric_addresses++;
	return 0;
}

int sim_node_add_interface(struct sim_node *node, const char *ifname, const char *address)
{
	struct sim_address *grown, *plain;
	union sim_sockaddr addr;
	uint8_t prefix_len;

	if (strlen(ifname) >= sizeof(plain->ifname) ||
	    sim_addr_parse(address, &addr, &prefix_len) < 0)
		return -EINVAL;
	if (sim_addr_is_link_local(&addr.sa))
		addr.in6.sin6_scope_id = FIRST_PLAIN_INTERFACE + node->num_addresses;
	grown = reallocarray(node->addresses, node->num_addresses + 1, sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	node->addresses = grown;
	sim_fabric_addresses++;
	plain = &grown[node->num_addresses++];
	memset(plain, 0, sizeof(*plain));
	plain->addr = addr;
	plain->prefix_len = prefix_len;
	strcpy(plain->ifname, ifname);
	return 0;
}

static const struct sim_route *find_route(const struct sim_node *node, const struct sockaddr *dst)
{
	const struct sim_route *best = NULL;

	for (unsigned int i = 0; i < node->num_routes; i++) {
		const struct sim_route *route = &node->routes[i];

		if (sim_addr_in_prefix(dst, &route->to.sa, route->prefix_len) &&
		    (!best || route->prefix_len > best->prefix_len))
			best = route;
	}
	return best;
}

/* How well an address suits as the source towards dst; 0: not at all. */
static unsigned int rate_source(const struct sim_address *address, const union sim_sockaddr *dst,
				bool default_route)
{
	const struct sockaddr *src = &address->addr.sa;
	uint32_t scope;

	if (src->sa_family != dst->sa.sa_family)
		return 0;
	if (sim_addr_equal(src, &dst->sa))
		return 200;
	if (sim_addr_is_link_local(&dst->sa)) {
		scope = dst->in6.sin6_scope_id;
		if (!sim_addr_is_link_local(src) ||
		    (scope && scope != address->addr.in6.sin6_scope_id))
			return 0;
	}
	/* Every interface has a route to IPv6's groups. */
	if (dst->sa.sa_family == AF_INET6 && sim_addr_is_multicast(&dst->sa))
		return sim_addr_is_loopback(src) ? 0 : 2;
	if (sim_addr_in_prefix(&dst->sa, src, address->prefix_len))
		return 3u + address->prefix_len;
	/* What a default route would take: not loopback, link-local rather not. */
	if (sim_addr_is_loopback(src) || !default_route)
		return 0;
	return sim_addr_is_link_local(src) ? 1 : 2;
}

static int find_source(struct sim_node *node, const struct sockaddr *dst,
		       struct sim_address **ret_src)
{
	const struct sim_route *route = find_route(node, dst);
	union sim_sockaddr to = sim_addr_copy(dst);
	struct sim_address *best = NULL;
	unsigned int rating = 0;
	bool default_route;

	if (route) {
		*ret_src = sim_node_address(node, &route->source.sa);
		return *ret_src ? 0 : -ENETUNREACH;
	}
	default_route = !node->described && !sim_addr_is_mapped(dst);
	for (unsigned int i = 0; i < node->num_addresses; i++) {
		unsigned int r = rate_source(&node->addresses[i], &to, default_route);

		if (r > rating) {
			rating = r;
			best = &node->addresses[i];
		}
	}
	if (!best)
		return -ENETUNREACH;
	*ret_src = best;
	return 0;
}

bool sim_node_broadcasts(const struct sim_node *node, const struct sockaddr *dst)
{
	uint32_t host, to = ntohl(sim_addr_ipv4(dst));

	if (sim_addr_family(dst) != AF_INET)
		return false;
	if (to == INADDR_BROADCAST)
		return true;
	for (unsigned int i = 0; i < node->num_addresses; i++) {
		const struct sim_address *address = &node->addresses[i];

		/* Networks of one or two have no such address. */
		if (address->addr.sa.sa_family != AF_INET || address->prefix_len > 30)
			continue;
		host = UINT32_MAX >> address->prefix_len;
		if ((to & host) == host &&
		    sim_addr_in_prefix(dst, &address->addr.sa, address->prefix_len))
			return true;
	}
	return false;
}

/* A node mostly goes where it went before. */
int sim_node_route(struct sim_node *node, const struct sockaddr *dst, struct sim_address **ret_src)
{
	bool is_ipv4 = sim_addr_family(dst) == AF_INET;
	int r;

	if (is_ipv4 && node->routed_lately.addresses == sim_fabric_addresses &&
	    node->routed_lately.dst == sim_addr_ipv4(dst)) {
		*ret_src = node->routed_lately.src;
		return 0;
	}
	r = find_source(node, dst, ret_src);
	if (!r && is_ipv4) {
		node->routed_lately.addresses = sim_fabric_addresses;
		node->routed_lately.dst = sim_addr_ipv4(dst);
		node->routed_lately.src = *ret_src;
	}
	return r;
}

bool sim_node_route_is_exact(struct sim_node *node, const struct sockaddr *dst)
{
	union sim_sockaddr to = sim_addr_copy(dst);

	if (sim_addr_is_multicast(dst))
		return false;
	if (find_route(node, dst))
		return true;
	for (unsigned int i = 0; i < node->num_addresses; i++)
		if (rate_source(&node->addresses[i], &to, false))
			return true;
	return false;
}

bool sim_node_keeps(struct sim_node *node, const struct sockaddr *src, const struct sockaddr *dst)
{
	const struct sim_address *from, *to = sim_node_address(node, dst);

	if (!to)
		return false;
	if (!sim_addr_is_zero(src) && !sim_addr_is_loopback(src)) {
		from = sim_node_address(node, src);
		return !from || from->port == to->port;
	}
	return !find_route(node, dst);
}

struct sim_port *sim_neighbour(const struct sim_port *port, const struct sockaddr *addr)
{
	union sim_sockaddr any;

	if (!sim_addr_is_link_local(addr))
		return sim_port_of_address(addr);
	/* The scope is the interface here, and says nothing of that of the neighbour. */
	any = sim_addr_copy(addr);
	if (!sim_node_address(port->device->node, addr))
		any.in6.sin6_scope_id = 0;
	return sim_port_of_address(&any.sa);
}
