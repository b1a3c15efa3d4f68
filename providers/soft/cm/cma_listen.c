/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cm/cma_listen.c - rdma_listen(), and which listener a request is for.
 *
 * A listener bound to a wildcard or loopback address listens on every device
 * of its node.  It has no engine then: a request brings its own.  Engine lock
 * held.
 */
#include "config.h"

#include <errno.h>

#include "cma_internal.h"

static unsigned int num_iwarp(const struct sim_node *node)
{
	unsigned int num = 0;

	for (const struct sim_device *device = node->devices; device; device = device->next)
		num += !device->removed && device->rules->protocol == POLYCM_PROTO_MPA;
	return num;
}

/* An iWARP listener is a TCP socket whatever its port space; a wildcard's has one for each device. */
static bool has_socket(const struct sim_id *id)
{
	if (id->port)
		return cma_rules(id)->protocol == POLYCM_PROTO_MPA;
	return cma_is_ip(&id->src.sa) && num_iwarp(id->node);
}

/* Sockets of a wildcard are bound to the devices' interfaces, those of a loopback address are not. */
static int check_loopback(const struct sim_id *id)
{
	if (id->port || id->bound_any || !has_socket(id) || num_iwarp(id->node) < 2)
		return 0;
	return sim_refuse(-EADDRINUSE, "several iWARP devices cannot listen at one loopback address");
}

/* The port space first, then the sockets. */
static int start(struct sim_id *id)
{
	union sim_sockaddr addr = cma_bound_address(id);
	int r = sim_engine_need_thread();

	/* Its reason is another one than that of a port that is taken. */
	if (r < 0)
		return r;
	r = sim_bind_listen(id->node, id->bound_ps, &addr, id,
			    SIM_LISTEN | (has_socket(id) ? SIM_LISTEN_SOCKET : 0));
	if (r == -EADDRINUSE && has_socket(id))
		return sim_refuse(r, "another listener, of whichever port space, has this TCP port");
	if (r == -EADDRINUSE)
		return sim_refuse(r, "another id has this port");
	if (r < 0)
		return r;
	r = check_loopback(id);
	if (r < 0)
		cma_unlisten(id);
	return r;
}

int cma_listen(struct sim_id *id)
{
	union sim_sockaddr addr;
	int r;

	if (id->state == CMA_IDLE) {
		addr = cma_any_address(AF_INET);
		r = cma_bind(id, &addr.sa, NULL);
		if (r < 0)
			return r;
	} else if (id->state != CMA_ADDR_BOUND) {
		return cma_wrong_state(id);
	}

	r = start(id);
	if (r < 0)
		return r;
	id->reuse = false;
	cma_set_state(id, CMA_LISTEN);
	return 0;
}

void cma_unlisten(struct sim_id *id)
{
	union sim_sockaddr addr = cma_bound_address(id);

	sim_bind_listen(id->node, id->bound_ps, &addr, id, 0);
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
	cma_set_gids(child);
	cma_set_state(child, CMA_CONNECT);
	*ret_child = child;
	return 0;
}

int cma_request(struct sim_port *port, enum rdma_port_space ps, enum ibv_qp_type qp_type,
		const union sim_sockaddr *src, const union sim_sockaddr *dst,
		struct sim_id **ret_listener, struct sim_id **ret_child)
{
	struct sim_id *listener = NULL;
	bool service = false;
	unsigned int slot;
	int r;

	if (!sim_find_listener(port->device->node, ps, &dst->sa, &slot, &listener, &service) ||
	    !listener)
		return service ? -ECONNREFUSED : -ENOENT;
	/* A service exists on the devices that its listener is for. */
	if (listener->port && listener->port->device != port->device)
		return -ENOENT;
	if (listener->state != CMA_LISTEN || listener->qp_type != qp_type)
		return -ECONNREFUSED;
	if (cma_is_af_ib(listener) != (dst->sa.sa_family == AF_IB))
		return -EAFNOSUPPORT;
	r = cma_child(listener, port, src, dst, ret_child);
	if (!r)
		*ret_listener = listener;
	return r;
}
