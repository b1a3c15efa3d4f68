/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cm/cma_addr.c - an id gets its addresses: rdma_bind_addr() and
 * rdma_resolve_addr(), with the errors of the kernel's RDMA CM and of its
 * routing and neighbour code.  Engine lock held.
 *
 * A wildcard or loopback source names no device: it comes with resolving or
 * with a request.  Loopback means the node's default device, whatever its
 * transport.
 */
#include "config.h"

#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

#include "cma_internal.h"

/* What an ARP exchange takes, and the hop of an answer that was known already. */
#define NEIGHBOUR_NS SIM_US(20)
#define LOCAL_NS SIM_US(1)

static union sim_sockaddr zero_address(sa_family_t family)
{
	union sim_sockaddr a;

	memset(&a, 0, sizeof(a));
	a.sa.sa_family = family;
	return a;
}

static void set_loopback(union sim_sockaddr *addr)
{
	if (addr->sa.sa_family == AF_INET)
		addr->in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	else
		addr->in6.sin6_addr = in6addr_loopback;
}

void cma_set_port(struct sim_id *id, struct sim_port *port)
{
	id->port = port;
	id->node = port->device->node;
	id->engine = port->device->rules->protocol == POLYCM_PROTO_MPA ? &sim_iwcm_engine
								       : &sim_ibcm_engine;
}

/* IP over InfiniBand needs InfiniBand. */
static int check_port_space(const struct sim_id *id, const struct sim_port *port)
{
	if (id->ps == RDMA_PS_IPOIB && !(port->device->rules->services & POLYCM_SVC_IPOIB))
		return sim_refuse(-EINVAL, "RDMA_PS_IPOIB needs InfiniBand");
	return 0;
}

/* The device behind one of the fabric's addresses. */
static int port_of_source(const struct sim_id *id, struct sim_node *node,
			  const struct sockaddr *addr, struct sim_port **ret_port)
{
	struct sim_address *address = node ? sim_node_address(node, addr) : NULL;
	int r;

	if (!address)
		return sim_refuse(-EADDRNOTAVAIL, "not an address of this host");
	if (!address->port)
		return sim_refuse(-ENODEV, "no device has this address");
	r = check_port_space(id, address->port);
	if (r < 0)
		return r;
	*ret_port = address->port;
	return 0;
}

static void set_sgid(struct sim_id *id)
{
	if (sim_port_gid_of_address(id->port, &id->src.sa, &id->sgid) < 0)
		id->sgid = id->port->gids[0].gid;
}

static struct sim_node *node_for(const struct sockaddr *addr)
{
	return cma_is_any(addr) ? sim_current_node() : sim_node_of_address(addr);
}

static int check_scope(const struct sockaddr *addr)
{
	union sim_sockaddr a = sim_addr_copy(addr);

	if (a.sa.sa_family == AF_INET6 && IN6_IS_ADDR_LINKLOCAL(&a.in6.sin6_addr) &&
	    !a.in6.sin6_scope_id)
		return sim_refuse(-EINVAL, "a link-local address needs its scope id");
	return 0;
}

int cma_bind(struct sim_id *id, const struct sockaddr *addr)
{
	struct sim_port *port = NULL;
	struct sim_node *node;
	bool afonly = id->afonly;
	int r;

	if (id->state != CMA_IDLE)
		return cma_wrong_state(id);
	if (!cma_is_ip(addr))
		return sim_refuse(-EINVAL, "address family %u", addr->sa_family);
	r = check_scope(addr);
	if (r < 0)
		return r;
	node = node_for(addr);
	if (!cma_is_any(addr)) {
		r = port_of_source(id, node, addr, &port);
		if (r < 0)
			return r;
	}
	if (!node)
		return -ENODEV;
	if (!id->afonly_set)
		afonly = addr->sa_family == AF_INET;

	id->src = sim_addr_copy(addr);
	r = sim_bind_port(node, id->ps, &id->src, (id->reuse ? SIM_BIND_REUSE : 0) |
			  (afonly ? SIM_BIND_AFONLY : 0), id);
	if (r < 0) {
		memset(&id->src, 0, sizeof(id->src));
		return r;
	}
	id->node = node;
	id->afonly = afonly;
	id->bound = true;
	id->bound_any = sim_addr_is_zero(addr);
	if (port) {
		cma_set_port(id, port);
		set_sgid(id);
	}
	id->dst = zero_address(id->src.sa.sa_family);
	cma_set_state(id, CMA_ADDR_BOUND);
	return 0;
}

union sim_sockaddr cma_bound_address(const struct sim_id *id)
{
	union sim_sockaddr addr = id->src;

	if (id->bound_any) {
		addr = zero_address(id->src.sa.sa_family);
		sim_addr_set_port(&addr, sim_addr_port(&id->src.sa));
	}
	return addr;
}

void cma_unbind(struct sim_id *id)
{
	union sim_sockaddr addr = cma_bound_address(id);

	if (!id->bound)
		return;
	sim_unbind_port(id->node, id->ps, &addr, id);
	id->bound = false;
}

/* "The first device with an active port", else the first. */
static struct sim_port *default_port(struct sim_node *node)
{
	for (struct sim_device *device = node->devices; device; device = device->next)
		for (unsigned int i = 0; i < device->num_ports; i++)
			if (device->ports[i].state == IBV_PORT_ACTIVE)
				return &device->ports[i];
	return node->devices ? &node->devices->ports[0] : NULL;
}

/* The source towards the id's destination, as the routing table gives it. */
static int route_source(const struct sim_id *id, struct sim_address **ret_address)
{
	const struct sockaddr *src = &id->src.sa;
	bool local = sim_node_address(id->node, &id->dst.sa) != NULL;
	struct sim_address *address;
	int r;

	r = sim_node_route(id->node, &id->dst.sa, &address);
	if (r < 0)
		return r;
	if (sim_addr_is_loopback(src) && !local)
		return -EINVAL;		/* a loopback source cannot leave the host */
	if (!cma_is_any(src)) {
		address = sim_node_address(id->node, src);
		if (!address)
			return -EINVAL;
	}
	*ret_address = address;
	return 0;
}

/* Would a neighbour of ours answer for this address? */
static bool neighbour_answers(const struct sim_port *port, const struct sockaddr *dst)
{
	const struct sim_port *peer = sim_port_of_address(dst);

	return peer && port->state == IBV_PORT_ACTIVE && peer->state == IBV_PORT_ACTIVE &&
	       peer->device->rules->link_layer == port->device->rules->link_layer;
}

/* Routes at once; sets when the rest ends, and how. */
static int start_query(struct sim_id *id, int timeout_ms)
{
	uint64_t timeout = SIM_MS((uint32_t)timeout_ms);
	uint64_t delay = LOCAL_NS;
	struct sim_address *address;
	int r;

	id->pending_status = 0;
	if (!cma_is_any(&id->dst.sa)) {
		r = route_source(id, &address);
		if (r < 0)
			return r;
		/* Groups have link addresses that need not be asked for. */
		if (!sim_addr_is_multicast(&id->dst.sa) &&
		    !sim_node_address(id->node, &id->dst.sa)) {
			delay = NEIGHBOUR_NS;
			if (timeout < delay ||
			    (address->port && !neighbour_answers(address->port, &id->dst.sa))) {
				delay = timeout;
				id->pending_status = -ETIMEDOUT;
			}
		}
	} else if (!default_port(id->node)) {
		return -ENODEV;
	}
	sim_timer_arm(&id->timer, sim_now() + delay);
	return 0;
}

int cma_resolve_addr(struct sim_id *id, const struct sockaddr *src, const struct sockaddr *dst,
		     int timeout_ms)
{
	union sim_sockaddr any;
	int r;

	if (!cma_is_ip(dst))
		return sim_refuse(-EINVAL, "address family %u", dst->sa_family);
	if (id->state == CMA_IDLE) {
		any = zero_address(dst->sa_family);
		if (src && src->sa_family == AF_UNSPEC)
			src = NULL;
		r = cma_bind(id, src ? src : &any.sa);
		if (r < 0)
			return r;
	} else if (id->state != CMA_ADDR_BOUND) {
		return cma_wrong_state(id);
	}
	if (id->src.sa.sa_family != dst->sa_family)
		return sim_refuse(-EINVAL, "source and destination are of two address families");
	id->dst = sim_addr_copy(dst);
	id->active = true;
	r = check_scope(dst);
	if (r < 0)
		return r;
	r = start_query(id, timeout_ms);
	if (r < 0)
		return r;
	cma_set_state(id, CMA_ADDR_QUERY);
	return 0;
}

static void set_gids(struct sim_id *id)
{
	const struct sim_port *peer = cma_peer_port(id);

	set_sgid(id);
	if (cma_is_any(&id->dst.sa) || !peer)
		id->dgid = id->sgid;
	else if (sim_port_gid_of_address(peer, &id->dst.sa, &id->dgid) < 0)
		id->dgid = peer->gids[0].gid;
}

/* The answer is there: take over source and device. */
static int acquire(struct sim_id *id)
{
	struct sim_address *address;
	uint16_t number = sim_addr_port(&id->src.sa);
	struct sim_port *port;
	int r;

	if (cma_is_any(&id->dst.sa)) {
		port = id->port ? id->port : default_port(id->node);
		if (!port)
			return -ENODEV;
		r = check_port_space(id, port);
		if (r < 0)
			return r;
		if (!id->port && sim_addr_is_zero(&id->src.sa))
			set_loopback(&id->src);
	} else {
		r = route_source(id, &address);
		if (r < 0)
			return r;
		port = address->port;
		if (!port)
			return -ENODEV;
		r = check_port_space(id, port);
		if (r < 0)
			return r;
		if (cma_is_any(&id->src.sa))
			id->src = address->addr;
		sim_addr_set_port(&id->src, number);
	}
	cma_set_port(id, port);
	set_gids(id);
	return 0;
}

void cma_addr_done(struct sim_id *id)
{
	int r = id->pending_status;

	if (!r)
		r = acquire(id);
	if (r < 0) {
		cma_set_state(id, CMA_ADDR_BOUND);
		cma_post_simple(id, RDMA_CM_EVENT_ADDR_ERROR, r);
		return;
	}
	cma_set_state(id, CMA_ADDR_RESOLVED);
	cma_post_simple(id, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
}

struct sim_port *cma_peer_port(const struct sim_id *id)
{
	if (cma_is_any(&id->dst.sa))
		return id->port;
	/* Every node has its own loopback; other addresses are unique. */
	return sim_port_of_address(&id->dst.sa);
}

int cma_child(struct sim_id *listener, struct sim_port *port, const union sim_sockaddr *src,
	      const union sim_sockaddr *dst, struct sim_id **ret_child)
{
	struct polycm_id *core_id;
	struct sim_id *child;
	void *priv;
	int r;

	r = sim_core->child_create(listener->id, &core_id, &priv);
	if (r < 0)
		return r;
	child = priv;
	cma_init(child, core_id, listener->ps, listener->qp_type);
	child->accepted = false;
	child->src = sim_addr_copy(&dst->sa);
	child->dst = sim_addr_copy(&src->sa);
	cma_set_port(child, port);
	set_gids(child);
	cma_set_state(child, CMA_CONNECT);
	*ret_child = child;
	return 0;
}
