/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cm/cma_addr.c - rdma_bind_addr() and rdma_resolve_addr(), with the errors of the
 * kernel's RDMA CM and of its routing and neighbour code.  cma_ib.c has what only
 * AF_IB needs.  Engine lock held.
 *
 * A wildcard or loopback source names no device: it comes with resolving or
 * with a request.  Loopback means the node's default device, whatever its
 * transport.
 */
#include "config.h"

#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

#include "providers/soft/fabric/gids.h"
#include "providers/soft/fabric/world.h"
#include "cma_internal.h"

static void set_loopback(union sim_sockaddr *addr)
{
	if (addr->sa.sa_family == AF_INET)
		addr->in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	else if (addr->sa.sa_family == AF_IB)
		memcpy(&addr->ib.sib_addr, &in6addr_loopback, sizeof(in6addr_loopback));
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

int cma_check_port_space(const struct sim_id *id, const struct sim_port *port)
{
	if (id->ps == RDMA_PS_IPOIB &&
	    !(port && port->device->rules->services & POLYCM_SVC_IPOIB))
		return sim_refuse(-EINVAL, "RDMA_PS_IPOIB needs InfiniBand");
	return 0;
}

/*
 * An earlier bind was refused and has put the id on an interface.  The address need not
 * be on that interface, or on the host.  An iWARP device is known by the interface, others
 * by the address.
 */
static int port_of_interface(const struct sim_id *id, const struct sim_address *interface,
			     const struct sim_address *address, struct sim_port **ret_port)
{
	int r = cma_check_port_space(id, interface->port);

	if (r < 0)
		return r;
	if (!interface->port || (interface->port->device->rules->protocol != POLYCM_PROTO_MPA &&
				 !(address && address->port == interface->port)))
		return sim_refuse(-ENODEV, "an earlier bind was refused, and has put the id on "
				  "another interface");
	*ret_port = interface->port;
	return 0;
}

/* The device behind one of the fabric's addresses. */
static int port_of_source(const struct sim_id *id, struct sim_node *node,
			  const struct sockaddr *addr, struct sim_port **ret_port)
{
	struct sim_address *address = node ? sim_node_address(node, addr) : NULL;
	const struct sim_address *interface = cma_interface(id, node);
	int r;

	if (interface)
		return port_of_interface(id, interface, address, ret_port);
	/* For a link-local address, Linux finds the interface but does not check that it has it. */
	if (!address && sim_addr_is_link_local(addr))
		return sim_refuse(-ENODEV, "no device has this address on that interface");
	if (!address)
		return sim_refuse(-EADDRNOTAVAIL, "not an address of this host");
	r = cma_check_port_space(id, address->port);
	if (r < 0)
		return r;
	if (!address->port)
		return sim_refuse(-ENODEV, "no device has this address");
	*ret_port = address->port;
	return 0;
}

static void set_sgid(struct sim_id *id)
{
	/* iWARP's is what the bind found: a wildcard or loopback has none, and keeps it. */
	if (cma_rules(id)->protocol == POLYCM_PROTO_MPA &&
	    (id->bound_any || (id->node->described && sim_addr_is_loopback(&id->src.sa))))
		memset(&id->sgid, 0, sizeof(id->sgid));
	else if (cma_is_af_ib(id) && !cma_is_any(&id->src.sa))
		memcpy(&id->sgid, &id->src.ib.sib_addr, sizeof(id->sgid));
	else if (sim_port_gid_of_address(id->port, &id->src.sa, &id->sgid) < 0)
		id->sgid = id->port->gids[0].gid;
	/* RoCE's is the address, whether a device has it or not. */
	if (id->node->described && sim_addr_is_loopback(&id->src.sa) &&
	    sim_wire_of(cma_rules(id)) == SIM_WIRE_ROCE)
		sim_gid_of_address(&id->src, &id->sgid);
}

static struct sim_node *node_for(const struct sockaddr *addr, const struct sim_port *port)
{
	if (port)
		return port->device->node;
	return cma_is_any(addr) ? sim_current_node() : sim_own_node_of_address(addr);
}

static int check_scope(const struct sockaddr *addr)
{
	if (sim_addr_is_link_local(addr) && !sim_addr_copy(addr).in6.sin6_scope_id)
		return sim_refuse(-EINVAL, "a link-local address needs its scope id");
	return 0;
}

/* The node of an address, and its port unless that is a wildcard. */
static int find_source(const struct sim_id *id, const struct sockaddr *addr,
		       struct sim_node **ret_node, struct sim_port **ret_port)
{
	bool specific = !cma_is_any(addr);
	union sim_sockaddr copy;
	int r;

	*ret_port = NULL;
	if (specific && addr->sa_family == AF_IB) {
		copy = sim_addr_copy(addr);
		r = cma_ib_port_of_source(id, &copy.ib, ret_port);
		if (r < 0)
			return r;
	}
	*ret_node = specific && id->interface ? id->node : node_for(addr, *ret_port);
	if (specific && !*ret_port) {
		r = port_of_source(id, *ret_node, addr, ret_port);
		if (r < 0)
			return r;
	}
	return *ret_node ? 0 : -ENODEV;
}

/*
 * The kernel finds the interface before it refuses a bind for any other reason,
 * and the id stays on that interface.
 */
static void stay_on_interface(struct sim_id *id, const struct sockaddr *addr)
{
	struct sim_node *node = node_for(addr, NULL);
	struct sim_address *address;

	if (cma_is_any(addr) || addr->sa_family == AF_IB || !node || id->interface)
		return;
	address = sim_node_address(node, addr);
	if (!address)
		return;
	id->node = node;
	cma_set_interface(id, address);
}

/* As the kernel writes it: the family is that of the source, whatever is behind it. */
static void set_destination(struct sim_id *id, const struct sockaddr *dst, sa_family_t family)
{
	if (dst)
		id->dst = sim_addr_copy(dst);
	id->dst.sa.sa_family = family;
}

/* The reason of the port table, in words. */
static int port_refused(int r, const struct sockaddr *addr)
{
	if (r == -EACCES)
		return sim_refuse(r, "ports below 1024 need CAP_NET_BIND_SERVICE");
	if (r != -EADDRINUSE && r != -EADDRNOTAVAIL)
		return r;
	return sim_refuse(r, sim_addr_port(addr) ? "the port is taken" : "no port is free");
}

/* dst stays set if only the port is refused. */
static int bind_to(struct sim_id *id, const struct sockaddr *addr, const struct sockaddr *dst)
{
	struct sim_port *port;
	struct sim_node *node;
	bool afonly = id->afonly;
	int r;

	if (id->state != CMA_IDLE)
		return cma_wrong_state(id);
	if (!cma_is_address(addr))
		return sim_refuse(-EINVAL, "address family %u", addr->sa_family);
	r = check_scope(addr);
	if (r < 0)
		return r;
	r = find_source(id, addr, &node, &port);
	if (r < 0)
		return r;
	if (!id->afonly_set)
		afonly = addr->sa_family == AF_INET;

	id->src = sim_addr_copy(addr);
	set_destination(id, dst, addr->sa_family);
	r = cma_is_af_ib(id) ? cma_ib_port_space(id) : 0;
	if (!r)
		r = sim_bind_port(node, id->bound_ps, &id->src, (id->reuse ? SIM_BIND_REUSE : 0) |
			  (afonly ? SIM_BIND_AFONLY : 0), id);
	if (r < 0) {
		memset(&id->src, 0, sizeof(id->src));
		return port_refused(r, addr);
	}
	id->node = node;
	id->afonly = afonly;
	id->bound = true;
	id->bound_any = sim_addr_is_zero(addr);
	if (port) {
		cma_set_port(id, port);
		set_sgid(id);
	}
	cma_set_state(id, CMA_ADDR_BOUND);
	return 0;
}

int cma_bind(struct sim_id *id, const struct sockaddr *addr, const struct sockaddr *dst)
{
	bool idle = id->state == CMA_IDLE && cma_is_address(addr);
	int r = bind_to(id, addr, dst);

	if (r < 0 && idle)
		stay_on_interface(id, addr);
	return r;
}

union sim_sockaddr cma_bound_address(const struct sim_id *id)
{
	union sim_sockaddr addr = id->src;

	if (id->bound_any) {
		addr = cma_any_address(id->src.sa.sa_family);
		sim_addr_set_port(&addr, sim_addr_port(&id->src.sa));
	}
	return addr;
}

void cma_unbind(struct sim_id *id)
{
	union sim_sockaddr addr = cma_bound_address(id);

	if (!id->bound)
		return;
	sim_unbind_port(id->node, id->bound_ps, &addr, id);
	id->bound = false;
}

/* AF_IB is for devices with a CM of InfiniBand. */
static bool may_use(const struct sim_id *id, const struct sim_device *device)
{
	return !device->removed &&
	       (!cma_is_af_ib(id) || device->rules->protocol == POLYCM_PROTO_IB_CM);
}

/* "The first device with an active port", else the first. */
static struct sim_port *default_port(const struct sim_id *id)
{
	struct sim_port *first = NULL;

	for (struct sim_device *device = id->node->devices; device; device = device->next) {
		if (!may_use(id, device))
			continue;
		if (!first)
			first = &device->ports[0];
		for (unsigned int i = 0; i < device->num_ports; i++)
			if (device->ports[i].state == IBV_PORT_ACTIVE)
				return &device->ports[i];
	}
	return first;
}

/*
 * Loopback is by the default device's first GID, and siw has none that is
 * valid.  The host without a scenario is kinder: it serves 127.0.0.1.
 */
static int check_loopback(const struct sim_id *id)
{
	const struct sim_port *port = default_port(id);

	if (!port)
		return -ENODEV;
	if (!id->port && id->node->described &&
	    port->device->rules->protocol == POLYCM_PROTO_MPA)
		return sim_refuse(-EINVAL, "the first device of the host is of iWARP, which has "
				  "no loopback");
	return 0;
}

/*
 * IPv4: if no route leads out of the interface that the id is on, Linux asks for the
 * address there, even for one of its own.
 */
static bool asks_anyway(const struct sim_id *id, const struct sim_address *source,
			    const struct sim_address *own, bool leads)
{
	bool on_interface = cma_interface(id, id->node) || !cma_is_any(&id->src.sa);

	if (id->src.sa.sa_family != AF_INET || !on_interface || !source->port ||
	    sim_addr_is_loopback(&id->dst.sa))
		return false;
	return own ? own->port != id->way_out : !leads;
}

/* Is the next hop known, or must a neighbour be asked? */
static int query_ip(struct sim_id *id, uint64_t timeout)
{
	struct sim_address *address, *own;
	struct sim_port *way_out;
	bool leads, keeps, asked;
	int r;

	r = cma_way_out(id, &address, &way_out, &leads);
	if (r < 0)
		return r;
	own = sim_node_address(id->node, &id->dst.sa);
	keeps = cma_keeps(id);
	id->way_out = way_out;
	asked = asks_anyway(id, address, own, leads);
	if (cma_is_any(&id->src.sa))
		cma_set_interface(id, keeps ? own : address);
	if (!asked && (!address->port || (own && !own->port) || !leads))
		id->pending_status = -ENODEV;
	/* Nobody is asked for the link addresses of groups and of broadcast. */
	if (id->pending_status || sim_addr_is_multicast(&id->dst.sa) || keeps ||
	    sim_port_knows(way_out, &id->dst.sa) || sim_node_broadcasts(id->node, &id->dst.sa))
		sim_timer_arm(&id->timer, sim_now() + CMA_LOCAL_NS + cma_delay);
	else
		cma_ask_neighbour(id, way_out, timeout);
	return 0;
}

/* Looks up the route now; sets when the resolution ends, and its status. */
static int start_query(struct sim_id *id, int timeout_ms)
{
	int r;

	id->pending_status = 0;
	id->ask_until = 0;
	if (!cma_is_any(&id->dst.sa) && !cma_is_af_ib(id))
		return query_ip(id, SIM_MS((uint32_t)timeout_ms));
	r = cma_is_any(&id->dst.sa) ? check_loopback(id) : cma_ib_resolve(id);
	if (r < 0)
		return r;
	sim_timer_arm(&id->timer, sim_now() + CMA_LOCAL_NS + cma_delay);
	return 0;
}

int cma_resolve_addr(struct sim_id *id, const struct sockaddr *src, const struct sockaddr *dst,
		     int timeout_ms)
{
	union sim_sockaddr any;
	int r;

	if (!cma_is_address(dst))
		return sim_refuse(-EINVAL, "address family %u", dst->sa_family);
	if (id->state == CMA_IDLE) {
		any = cma_any_address(dst->sa_family);
		if (dst->sa_family == AF_IB)
			any.ib.sib_pkey = sim_addr_copy(dst).ib.sib_pkey;
		if (src && src->sa_family == AF_UNSPEC)
			src = NULL;
		r = cma_bind(id, src ? src : &any.sa, dst);
		if (r < 0)
			return r;
	} else if (id->state != CMA_ADDR_BOUND) {
		return cma_wrong_state(id);
	} else {
		/* It stays set, even if the call fails. */
		id->dst = sim_addr_copy(dst);
	}
	if (id->src.sa.sa_family != dst->sa_family)
		return sim_refuse(-EINVAL, "source and destination are of two address families");
	id->active = true;
	/* A link-local source names the interface, too. */
	r = cma_is_any(&id->src.sa) || !sim_addr_is_link_local(&id->src.sa) ? check_scope(dst) : 0;
	if (r < 0)
		return r;
	r = start_query(id, timeout_ms);
	if (r < 0)
		return r;
	cma_set_state(id, CMA_ADDR_QUERY);
	return 0;
}

void cma_set_gids(struct sim_id *id)
{
	bool roce = sim_wire_of(cma_rules(id)) == SIM_WIRE_ROCE, any = cma_is_any(&id->dst.sa);
	const struct sim_port *peer = cma_peer_port(id);

	set_sgid(id);
	if (cma_is_af_ib(id) && !any)
		memcpy(&id->dgid, &id->dst.ib.sib_addr, sizeof(id->dgid));
	else if (roce && !cma_is_af_ib(id) &&
		 (any || !peer || sim_wire_of(peer->device->rules) != SIM_WIRE_ROCE))
		sim_gid_of_address(&id->dst, &id->dgid);
	else if (any || !peer)
		id->dgid = id->sgid;
	else if (sim_port_gid_of_address(peer, &id->dst.sa, &id->dgid) < 0)
		id->dgid = peer->gids[0].gid;
}

/* RoCE finds its device by the source's GID: a loopback address has one only on the default host. */
static bool has_source(const struct sim_port *port, const struct sockaddr *src)
{
	union ibv_gid gid;

	return sim_wire_of(port->device->rules) != SIM_WIRE_ROCE || !sim_addr_is_loopback(src) ||
	       sim_port_gid_of_address(port, src, &gid) >= 0;
}

/* The next hop is known: set source and device. */
static int acquire(struct sim_id *id)
{
	struct sim_address *address;
	uint16_t number = sim_addr_port(&id->src.sa);
	struct sim_port *port;
	int r;

	if (cma_is_any(&id->dst.sa)) {
		port = id->port ? id->port : default_port(id);
		if (!port)
			return -ENODEV;
		if (!id->port && sim_addr_is_zero(&id->src.sa))
			set_loopback(&id->src);
	} else if (cma_is_af_ib(id)) {
		port = id->port;		/* see cma_ib_resolve() */
	} else {
		r = cma_route_source(id, &address);
		if (r < 0)
			return r;
		port = address->port;
		if (!port)
			return -ENODEV;
		r = cma_check_port_space(id, port);
		if (r < 0)
			return r;
		if (sim_addr_is_zero(&id->src.sa))
			id->src = address->addr;
		else if (!has_source(port, &id->src.sa))
			return -ENODEV;
		sim_addr_set_port(&id->src, number);
	}
	cma_set_port(id, port);
	cma_set_gids(id);
	return 0;
}

void cma_addr_done(struct sim_id *id)
{
	int r;

	if (cma_ask_again(id))
		return;
	r = id->pending_status;
	if (!r)
		r = acquire(id);
	if (!r)
		cma_learn_neighbour(id);
	/* Others may now bind the port at other addresses. */
	if (!r && id->bound_any && !cma_is_any(&id->src.sa))
		sim_rebind_port(id->node, id->bound_ps, &id->src, id);
	if (r < 0) {
		cma_set_state(id, CMA_ADDR_BOUND);
		cma_post_simple(id, RDMA_CM_EVENT_ADDR_ERROR, r);
		return;
	}
	cma_set_state(id, CMA_ADDR_RESOLVED);
	cma_post_simple(id, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
}
