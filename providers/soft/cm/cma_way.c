/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cm/cma_way.c - which way an id's packets go: the source and the port that they
 * leave from, and the port that they get to.  Engine lock held.
 */
#include "config.h"

#include <errno.h>
#include <string.h>

#include "providers/soft/fabric/gids.h"
#include "cma_internal.h"

struct sim_address *cma_interface(const struct sim_id *id, const struct sim_node *node)
{
	if (!id->interface || id->node != node || id->interface > node->num_addresses)
		return NULL;
	return &id->node->addresses[id->interface - 1];
}

void cma_set_interface(struct sim_id *id, const struct sim_address *address)
{
	id->interface = (uint16_t)(address - id->node->addresses + 1);
}

bool cma_keeps(const struct sim_id *id)
{
	const struct sim_address *interface = cma_interface(id, id->node), *own;

	if (interface) {
		own = sim_node_address(id->node, &id->dst.sa);
		if (!own || own->port != interface->port)
			return false;
		/* The interface's own addresses are found there, whatever other routes say. */
		if (sim_addr_is_zero(&id->src.sa))
			return true;
	}
	return sim_node_keeps(id->node, &id->src.sa, &id->dst.sa);
}

/* The first address of that family on the interface; NULL: it has none. */
static struct sim_address *first_on(const struct sim_id *id, const struct sim_address *interface,
				    sa_family_t family)
{
	for (unsigned int i = 0; i < id->node->num_addresses; i++) {
		struct sim_address *address = &id->node->addresses[i];

		if (address->port == interface->port && address->addr.sa.sa_family == family)
			return address;
	}
	return NULL;
}

/*
 * An id that stays on an interface uses no other.  IPv4 treats an address that no
 * route leads to as a neighbour there.  IPv6 does not, but finds the interface's own
 * addresses, which are the source then.
 */
static int find_way_of_interface(const struct sim_id *id, const struct sim_address *interface,
				 int r, struct sim_address **ret_route)
{
	struct sim_address *own;

	if (!r && (*ret_route)->port == interface->port)
		return 0;
	if (id->dst.sa.sa_family == AF_INET) {
		*ret_route = first_on(id, interface, AF_INET);
	} else {
		own = sim_node_address(id->node, &id->dst.sa);
		*ret_route = own && own->port == interface->port ? own : NULL;
	}
	return *ret_route ? 0 : -ENETUNREACH;
}

/* Where packets to the destination leave. */
static int find_route(const struct sim_id *id, struct sim_address **ret_route)
{
	struct sim_address *interface = cma_interface(id, id->node);
	int r = sim_node_route(id->node, &id->dst.sa, ret_route);

	/* IPv6 that has a source only prefers the interface. */
	if (interface && (id->dst.sa.sa_family == AF_INET || sim_addr_is_zero(&id->src.sa)))
		return find_way_of_interface(id, interface, r, ret_route);
	if (r != -ENETUNREACH || id->src.sa.sa_family != AF_INET || cma_is_any(&id->src.sa))
		return r;
	interface = sim_node_address(id->node, &id->src.sa);
	if (!interface)
		return r;
	*ret_route = interface;
	return 0;
}

int cma_route_source(const struct sim_id *id, struct sim_address **ret_address)
{
	const struct sockaddr *src = &id->src.sa;
	bool local = cma_keeps(id);
	struct sim_address *address;
	int r;

	r = find_route(id, &address);
	if (r < 0)
		return r;
	/* A loopback source cannot leave the host; IPv6 learns that later. */
	if (sim_addr_is_loopback(src) && !local && src->sa_family == AF_INET)
		return -EINVAL;
	if (!cma_is_any(src)) {
		address = sim_node_address(id->node, src);
		if (!address)
			return -EINVAL;
	}
	*ret_address = address;
	return 0;
}

/* IPv4 packets leave at their source's interface; IPv6 looks for its own addresses where routes lead. */
static bool follows_route(const struct sim_id *id)
{
	return id->dst.sa.sa_family == AF_INET6 && !sim_addr_is_link_local(&id->dst.sa) &&
	       sim_node_address(id->node, &id->dst.sa);
}

int cma_way_out(const struct sim_id *id, struct sim_address **ret_source,
		struct sim_port **ret_port, bool *ret_leads)
{
	struct sim_address *route, *source;
	int r;

	r = cma_route_source(id, &source);
	if (!r)
		r = find_route(id, &route);
	if (r < 0)
		return r;
	*ret_source = source;
	*ret_port = follows_route(id) || cma_interface(id, id->node) ? route->port : source->port;
	/* A default route leads everywhere. */
	*ret_leads = source->port == route->port || sim_node_address(id->node, &id->dst.sa) ||
		     !sim_node_route_is_exact(id->node, &id->dst.sa);
	return 0;
}

struct sim_port *cma_peer_port(const struct sim_id *id)
{
	struct sim_port *peer;
	union ibv_gid gid;

	/* RoCE's frames leave by the cable, and there nobody has a loopback address. */
	if (id->port && id->node->described && sim_addr_is_loopback(&id->dst.sa) &&
	    sim_wire_of(cma_rules(id)) == SIM_WIRE_ROCE)
		return NULL;
	if (cma_is_any(&id->dst.sa))
		return id->port;
	if (cma_is_af_ib(id)) {
		memcpy(&gid, &id->dst.ib.sib_addr, sizeof(gid));
		return sim_port_of_gid(&gid);
	}
	if (!id->port)
		return sim_port_of_address(&id->dst.sa);
	/* Every node has its own loopback; other addresses are unique. */
	peer = sim_neighbour(id->port, &id->dst.sa);
	if (peer && !sim_port_reaches(id->port, peer) && sim_wire_of(cma_rules(id)) == SIM_WIRE_ROCE)
		return NULL;
	return peer;
}
