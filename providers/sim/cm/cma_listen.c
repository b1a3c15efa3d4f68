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
#include <string.h>

#include "cma_internal.h"

static unsigned int num_iwarp(const struct sim_node *node)
{
	unsigned int num = 0;

	for (const struct sim_device *device = node->devices; device; device = device->next)
		num += device->rules->protocol == POLYCM_PROTO_MPA;
	return num;
}

/*
 * An iWARP listener is a TCP socket whatever its port space, and there is one
 * for each port.  A wildcard listener's sockets are bound to the interfaces of
 * the devices, one at a loopback address is not, so that there can be just one.
 */
static int check_tcp_port(const struct sim_id *id)
{
	static const enum rdma_port_space spaces[] = { RDMA_PS_TCP, RDMA_PS_UDP, RDMA_PS_IB };
	bool service;
	struct sim_id *other;
	unsigned int slot;

	if (id->port ? cma_rules(id)->protocol != POLYCM_PROTO_MPA : !num_iwarp(id->node))
		return 0;
	if (!id->port && !id->bound_any && num_iwarp(id->node) > 1)
		return sim_refuse(-EADDRINUSE, "several iWARP devices cannot listen at one "
				  "loopback address");
	for (size_t i = 0; i < sizeof(spaces) / sizeof(spaces[0]); i++)
		if (spaces[i] != id->ps &&
		    sim_find_listener(id->node, spaces[i], &id->src.sa, &slot, &other, &service))
			return sim_refuse(-EADDRINUSE, "another port space has this TCP port");
	return 0;
}

int cma_listen(struct sim_id *id, int backlog)
{
	union sim_sockaddr addr;
	int r;

	if (id->state == CMA_IDLE) {
		memset(&addr, 0, sizeof(addr));
		addr.sa.sa_family = AF_INET;
		r = cma_bind(id, &addr.sa);
		if (r < 0)
			return r;
	} else if (id->state != CMA_ADDR_BOUND) {
		return cma_wrong_state(id);
	}

	r = check_tcp_port(id);
	if (r < 0)
		return r;
	addr = cma_bound_address(id);
	r = sim_bind_listen(id->node, id->bound_ps, &addr, id, true);
	if (r < 0)
		return r;
	if (id->engine && id->engine->listen) {
		r = id->engine->listen(id, backlog);
		if (r < 0)
			goto err_listen;
	}
	id->reuse = false;
	cma_set_state(id, CMA_LISTEN);
	return 0;

err_listen:
	sim_bind_listen(id->node, id->bound_ps, &addr, id, false);
	return r;
}

void cma_unlisten(struct sim_id *id)
{
	union sim_sockaddr addr = cma_bound_address(id);

	sim_bind_listen(id->node, id->bound_ps, &addr, id, false);
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
	if (r < 0)
		return r;
	*ret_listener = listener;
	return 0;
}
