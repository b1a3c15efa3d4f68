/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cm/cma_neighbour.c - asking for the link address of the next hop, as ARP and
 * neighbour discovery do: again each second until somebody answers or the
 * program's time is up.  Engine lock held.
 */
#include "config.h"

#include <errno.h>

#include "providers/soft/fabric/remote.h"
#include "providers/soft/fabric/world.h"
#include "providers/soft/faults/fault.h"
#include "providers/soft/link/shape.h"
#include "cma_internal.h"

#define NEIGHBOUR_NS SIM_US(20)		/* an exchange on a link of no length */
#define ASK_AGAIN SIM_MS(1000)

/* Would peer answer on this port's link?  No port is its own neighbour. */
static bool answers(const struct sim_port *port, const struct sim_port *peer)
{
	return peer && peer != port && sim_port_reaches(port, peer) &&
	       port->state == IBV_PORT_ACTIVE && peer->state == IBV_PORT_ACTIVE &&
	       sim_port_carries(port) && sim_port_carries(peer) &&
	       peer->device->rules->link_layer == port->device->rules->link_layer;
}

static const char *link_name(const struct sim_port *port)
{
	return port->device->rules->link_layer == IBV_LINK_LAYER_INFINIBAND ? "InfiniBand" : "Ethernet";
}

/* Somebody has the address, so "no answer for that address" alone would mislead. */
static void log_other_link(const struct sim_id *id, const struct sim_port *port,
			   const struct sim_port *peer)
{
	if (!peer || peer->device->rules->link_layer == port->device->rules->link_layer)
		return;
	sim_core->log(POLYCM_LOG_WARN, id->id, "%s has that address, but is on %s, and %s is on %s: "
		      "nothing joins the two", peer->device->vdev.device.name, link_name(peer),
		      port->device->vdev.device.name, link_name(port));
}

static void end_at(struct sim_id *id, uint64_t at, int status)
{
	id->ask_until = 0;
	id->pending_status = status;
	sim_timer_arm(&id->timer, at);
}

/* Ask once; a rule delays the answer by so much. */
static void ask(struct sim_id *id, const struct sim_port *port, uint64_t late)
{
	const struct sim_port *peer = sim_neighbour(port, &id->dst.sa);
	uint64_t now = sim_now(), at;
	bool asked = false;
	int r = 0;

	if (__builtin_expect(peer && peer->device->node->remote, 0)) {
		r = sim_remote->status(peer->device->node);
		if (r < 0) {
			end_at(id, now, r);
			return;
		}
		asked = peer->state != IBV_PORT_ACTIVE;
		if (asked)
			sim_remote->ask(peer->device->node);
	}
	if (answers(port, peer) &&
	    sim_shape_exchange(id->node, peer->device->node, &at)) {
		at += now + NEIGHBOUR_NS + cma_delay;
		if (id->ask_until > at && id->ask_until - at > late) {
			end_at(id, at + late, 0);
			return;
		}
	}
	/* Its answer counts until the time is over, also where no further question would follow. */
	if (asked && !late && id->ask_until > now) {
		at = now + ASK_AGAIN;
		sim_timer_arm(&id->timer, at < id->ask_until ? at : id->ask_until);
		return;
	}
	if (late || id->ask_until <= now || id->ask_until - now <= ASK_AGAIN) {
		log_other_link(id, port, peer);
		end_at(id, id->ask_until, -ETIMEDOUT);
	} else {
		sim_timer_arm(&id->timer, now + ASK_AGAIN);
	}
}

void cma_ask_neighbour(struct sim_id *id, const struct sim_port *port, uint64_t timeout)
{
	id->ask_until = sim_now() + timeout;
	ask(id, port, sim_fault_delay(0, id->node, SIM_LOOKUP_NEIGHBOUR));
}

bool cma_ask_again(struct sim_id *id)
{
	struct sim_address *source;
	struct sim_port *way_out = NULL;
	bool unused;
	int r;

	if (!id->ask_until)
		return false;
	r = cma_way_out(id, &source, &way_out, &unused);
	if (r < 0 || !way_out) {
		id->ask_until = 0;
		id->pending_status = r < 0 ? r : -ENODEV;
		return false;
	}
	id->way_out = way_out;
	ask(id, way_out, 0);
	return true;
}

void sim_cma_ask_again(void)
{
	for (struct sim_id *id = cma_first_id(); id; id = id->next)
		if (id->state == CMA_ADDR_QUERY && id->ask_until)
			sim_timer_arm(&id->timer, sim_now());
}

void cma_learn_neighbour(struct sim_id *id)
{
	struct sim_port *peer = cma_peer_port(id);

	id->peer_mac = peer ? peer->mac_number : 0;
	if (cma_is_af_ib(id) || cma_is_any(&id->dst.sa) || sim_addr_is_multicast(&id->dst.sa) ||
	    cma_keeps(id) || sim_port_knows(id->way_out, &id->dst.sa))
		return;
	sim_port_learn(id->way_out, &id->dst.sa);
	/* The port that is asked learns the address that asks. */
	if (peer && !sim_addr_is_link_local(&id->src.sa))
		sim_port_learn(peer, &id->src.sa);
}
