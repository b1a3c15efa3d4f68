/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cm/cma_world.c - what ids learn of their devices and neighbours.  Engine lock
 * held.
 */
#include "config.h"

#include <errno.h>

#include "providers/soft/fabric/gids.h"
#include "providers/soft/fabric/world.h"
#include "cma_internal.h"

/* ------------------------------------------------------------------------
 * The device is gone: as in the kernel, nothing is left of the id but what the
 * program can destroy.
 */

static void remove_id(struct sim_id *id)
{
	enum cma_state state = id->state;

	sim_timer_disarm(&id->timer);
	/* Not accepted: the program learns it from its next call. */
	(void)cma_post_simple(id, RDMA_CM_EVENT_DEVICE_REMOVAL, 0);
	if (state == CMA_LISTEN)
		cma_unlisten(id);
	if (id->engine && id->ib)
		id->engine->close(id);
	cma_unbind(id);
	cma_set_state(id, CMA_DEVICE_REMOVAL);
}

static void device_leaves(struct sim_device *device)
{
	for (struct sim_id *id = cma_first_id(); id; id = id->next)
		if (id->port && id->port->device == device && cma_live(id))
			remove_id(id);
}

/* ------------------------------------------------------------------------
 * A port has another MAC.
 */

/* Did the id resolve a route to that port, with the MAC that it had? */
static bool leads_to(const struct sim_id *id, const struct sim_port *port)
{
	if (!id->active || !id->port || sim_wire_of(cma_rules(id)) != SIM_WIRE_ROCE)
		return false;
	switch (id->state) {
	case CMA_ROUTE_QUERY:
	case CMA_ROUTE_RESOLVED:
	case CMA_CONNECT:
	case CMA_DISCONNECT:
		return id->port != port && cma_peer_port(id) == port;
	default:
		return false;
	}
}

static void mac_changed(struct sim_port *port)
{
	for (struct sim_id *id = cma_first_id(); id; id = id->next) {
		if (!cma_live(id))
			continue;
		if (id->port == port)
			(void)cma_post_simple(id, RDMA_CM_EVENT_ADDR_CHANGE, 0);
		else if (leads_to(id, port))
			(void)cma_post_why(id, RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT,
					   "the peer's address has another MAC now");
	}
}

static void port_event(struct sim_port *port, enum ibv_event_type type)
{
	if (type == IBV_EVENT_PORT_ERR)
		cma_lose_groups_of(port);
}

void cma_world_start(void)
{
	static struct sim_world_listener listener = {
		.port_event = port_event,
		.mac_changed = mac_changed,
		.device_leaves = device_leaves,
	};

	sim_world_listen(&listener);
}
