/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fabric/routes.c - which way packets of a node go, and from which of its addresses:
 * networks of its interfaces, routes that it was given, the default route.
 * Engine lock held.
 *
 * A node has a default route: so nodes in different networks reach each other
 * without routers, and so do the devices of one node.  A node whose routes the
 * scenario file lists has no default route: no route leads to other networks,
 * nor from device to device without a cable.
 */
#include "config.h"

#include <errno.h>
#include <string.h>

#include "providers/soft/wire/address.h"
#include "remote.h"

/* How well addresses suit as sources; from FIRST_PREFIX on the length of a prefix is added. */
enum {
	NO_SOURCE, BY_DEFAULT_RATHER_NOT, BY_DEFAULT, FIRST_PREFIX,
	OWN_ADDRESS = FIRST_PREFIX + 128,
};

/* A route to one address goes before all that the host knows by itself, its own addresses included. */
static unsigned int rate_route(const struct sim_route *route)
{
	unsigned int all = route->to.sa.sa_family == AF_INET ? 32 : 128;

	return route->prefix_len == all ? OWN_ADDRESS : (unsigned int)FIRST_PREFIX + route->prefix_len;
}

static unsigned int rate_source(const struct sim_address *address, const union sim_sockaddr *dst,
				bool default_route)
{
	const struct sockaddr *src = &address->addr.sa;
	uint32_t scope;

	if (src->sa_family != dst->sa.sa_family)
		return NO_SOURCE;
	if (sim_addr_equal(src, &dst->sa))
		return OWN_ADDRESS;
	if (sim_addr_is_link_local(&dst->sa)) {
		scope = dst->in6.sin6_scope_id;
		if (!sim_addr_is_link_local(src) ||
		    (scope && scope != address->addr.in6.sin6_scope_id))
			return NO_SOURCE;
	}
	/* Every interface has a route to IPv6's groups. */
	if (dst->sa.sa_family == AF_INET6 && sim_addr_is_multicast(&dst->sa))
		return sim_addr_is_loopback(src) ? NO_SOURCE : BY_DEFAULT;
	if (sim_addr_in_prefix(&dst->sa, src, address->prefix_len))
		return (unsigned int)FIRST_PREFIX + address->prefix_len;
	/* What a default route would take: not loopback, link-local rather not. */
	if (sim_addr_is_loopback(src) || !default_route)
		return NO_SOURCE;
	return sim_addr_is_link_local(src) ? BY_DEFAULT_RATHER_NOT : BY_DEFAULT;
}

/* The address whose interface packets to dst leave by, and how well it suits; or NULL. */
static struct sim_address *best_address(const struct sim_node *node, const struct sockaddr *dst,
					bool default_route, unsigned int *ret_rating)
{
	union sim_sockaddr to = sim_addr_copy(dst);
	struct sim_address *best = NULL;

	*ret_rating = NO_SOURCE;
	for (unsigned int i = 0; i < node->num_addresses; i++) {
		unsigned int rating = rate_source(&node->addresses[i], &to, default_route);

		if (rating > *ret_rating) {
			*ret_rating = rating;
			best = &node->addresses[i];
		}
	}
	return best;
}

/* The longest prefix counts, and of two a route before what an interface's network says. */
static const struct sim_route *find_route(const struct sim_node *node, const struct sockaddr *dst)
{
	const struct sim_route *best = NULL;
	unsigned int rating;

	for (unsigned int i = 0; i < node->num_routes; i++) {
		const struct sim_route *route = &node->routes[i];

		if (sim_addr_in_prefix(dst, &route->to.sa, route->prefix_len) &&
		    (!best || route->prefix_len > best->prefix_len))
			best = route;
	}
	if (!best)
		return NULL;
	best_address(node, dst, false, &rating);
	return rating > rate_route(best) ? NULL : best;
}

static bool same_interface(const struct sim_address *a, const struct sim_address *b)
{
	return a->port == b->port && !strcmp(a->ifname, b->ifname);
}

/* IPv4: an interface's later addresses of one network are secondary ones, its first is the source. */
static struct sim_address *primary_of(struct sim_node *node, struct sim_address *address)
{
	struct sim_address *other;

	for (other = node->addresses; other < address; other++)
		if (other->addr.sa.sa_family == AF_INET && same_interface(other, address) &&
		    other->prefix_len == address->prefix_len &&
		    sim_addr_in_prefix(&address->addr.sa, &other->addr.sa, other->prefix_len))
			return other;
	return address;
}

/* How many bits of dst and an address agree, within the address's network. */
static unsigned int common_bits(const struct sim_address *address, const struct sockaddr *dst)
{
	unsigned int bits = 0;

	while (bits < address->prefix_len && sim_addr_in_prefix(dst, &address->addr.sa, bits + 1))
		bits++;
	return bits;
}

/* IPv6, RFC 6724: the scope, then the longest common prefix; of equal ones Linux takes the newest. */
static struct sim_address *ipv6_source(struct sim_node *node, struct sim_address *leaves,
				       const struct sockaddr *dst)
{
	bool local = sim_addr_is_link_local(&leaves->addr.sa);
	struct sim_address *best = leaves;

	for (unsigned int i = 0; i < node->num_addresses; i++) {
		struct sim_address *address = &node->addresses[i];

		if (address->addr.sa.sa_family == AF_INET6 && same_interface(address, leaves) &&
		    sim_addr_is_link_local(&address->addr.sa) == local &&
		    common_bits(address, dst) >= common_bits(best, dst))
			best = address;
	}
	return best;
}

static int find_source(struct sim_node *node, const struct sockaddr *dst,
		       struct sim_address **ret_src)
{
	const struct sim_route *route = find_route(node, dst);
	union sim_sockaddr source;
	struct sim_address *best;
	unsigned int rating;
	int r;

	/* Where there are other machines, this host is the kernel's. */
	if (sim_remote && !node->remote && !sim_addr_is_loopback(dst) &&
	    !sim_node_address(node, dst) && !sim_addr_is_multicast(dst)) {
		r = sim_remote->source_for(dst, &source);
		*ret_src = r < 0 ? NULL : sim_node_address(node, &source.sa);
		if (*ret_src)
			return 0;
		if (r == -ENETUNREACH)
			return r;
	}
	if (route) {
		*ret_src = sim_node_address(node, &route->source.sa);
		return *ret_src ? 0 : -ENETUNREACH;
	}
	best = best_address(node, dst, !node->described && !sim_addr_is_mapped(dst), &rating);
	if (!best)
		return -ENETUNREACH;
	if (best->addr.sa.sa_family == AF_INET)
		best = primary_of(node, best);
	else if (best->addr.sa.sa_family == AF_INET6 && rating != OWN_ADDRESS)
		best = ipv6_source(node, best, dst);
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
	unsigned int rating;

	if (sim_addr_is_multicast(dst))
		return false;
	return find_route(node, dst) || best_address(node, dst, false, &rating);
}

bool sim_node_keeps(struct sim_node *node, const struct sockaddr *src, const struct sockaddr *dst)
{
	const struct sim_address *from, *to = sim_node_address(node, dst);

	if (!to)
		return false;
	if (!sim_addr_is_zero(src) && !sim_addr_is_loopback(src)) {
		from = sim_node_address(node, src);
		if (!from || from->port == to->port)
			return true;
		/* IPv4 looks for it where the source is; IPv6 knows its own wherever they are. */
		if (sim_addr_family(dst) != AF_INET6 || sim_addr_is_link_local(dst))
			return false;
	}
	return !find_route(node, dst);
}

/* A cable joins two ports of a node if a route leads from one to an address of the other. */
static bool cabled(const struct sim_port *from, const struct sim_port *to)
{
	struct sim_node *node = from->device->node;

	if (!node->described)
		return true;
	for (unsigned int i = 0; i < node->num_routes; i++) {
		const struct sim_route *route = &node->routes[i];
		const struct sim_address *source = sim_node_address(node, &route->source.sa);
		const struct sim_address *end = sim_node_address(node, &route->to.sa);

		if (rate_route(route) == OWN_ADDRESS && source && source->port == from && end &&
		    end->port == to)
			return true;
	}
	return false;
}

bool sim_ports_are_cabled(const struct sim_port *one, const struct sim_port *other)
{
	return cabled(one, other) || cabled(other, one);
}

struct sim_port *sim_neighbour(const struct sim_port *port, const struct sockaddr *addr)
{
	union sim_sockaddr any;
	struct sim_port *found;

	if (!sim_addr_is_link_local(addr)) {
		found = sim_port_of_address(addr);
		if (!found && sim_remote && !sim_node_broadcasts(port->device->node, addr))
			found = sim_remote->port_of_address(addr);
		return found;
	}
	/* The scope is the interface here, and says nothing of that of the neighbour. */
	any = sim_addr_copy(addr);
	if (!sim_node_address(port->device->node, addr))
		any.in6.sin6_scope_id = 0;
	return sim_port_of_address(&any.sa);
}
