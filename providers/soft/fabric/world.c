/* SPDX-License-Identifier: BSD-2-Clause */
/* fabric/world.c - see world.h. */
#include "config.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "providers/soft/engine/engine.h"
#include "providers/soft/shm/visit.h"
#include "providers/soft/wire/address.h"
#include "build.h"
#include "counters.h"
#include "gids.h"
#include "trace_lines.h"
#include "world.h"

bool sim_world_disturbed;

static struct sim_world_listener *listeners;

void sim_world_listen(struct sim_world_listener *listener)
{
	struct sim_world_listener **at = &listeners;

	while (*at && *at != listener)
		at = &(*at)->next;
	*at = listener;
}

#define tell(what, ...)									\
	do {										\
		for (struct sim_world_listener *who = listeners; who; who = who->next)	\
			if (who->what)							\
				who->what(__VA_ARGS__);					\
	} while (0)

static void set_disturbed(bool disturbed)
{
	sim_world_disturbed = disturbed;
	sim_visit_close(SIM_CLOSED_CHANGED, disturbed);
}

void sim_world_close(void)
{
	set_disturbed(false);
	sim_engine_hooks.postpone = NULL;
}

bool sim_world_port_carries(const struct sim_port *port)
{
	return port->state == IBV_PORT_ACTIVE && !port->device->removed &&
	       !sim_node_is_frozen(port->device->node);
}

/* ------------------------------------------------------------------------
 * Nodes whose time stands still.
 */

bool sim_node_is_frozen(const struct sim_node *node)
{
	return node->frozen_until > sim_now();
}

/*
 * Whose a timer is, say those who describe it for the trace; those that nobody
 * describes are the world's, like packets under way, and never stand still.
 */
static uint64_t deadline_of(const struct sim_timer *timer, uint64_t deadline)
{
	const struct sim_node *node = sim_trace_timer_node(timer);
	uint64_t now = sim_now();

	if (!node || node->frozen_until <= now)
		return deadline;
	if (node->frozen_until == SIM_NEVER)
		return SIM_NEVER;
	if (deadline < now)
		deadline = now;
	return deadline + (node->frozen_until - now);
}

struct shift {
	const struct sim_node *node;
	uint64_t by;		/* SIM_NEVER: they end */
};

static uint64_t shifted(const struct sim_timer *timer, void *arg)
{
	const struct shift *shift = arg;

	if (sim_trace_timer_node(timer) != shift->node)
		return timer->deadline;
	return shift->by < SIM_NEVER - timer->deadline ? timer->deadline + shift->by : SIM_NEVER;
}

void sim_node_freeze_until(struct sim_node *node, uint64_t until)
{
	uint64_t now = sim_now();
	struct shift shift = { .node = node, .by = SIM_NEVER };

	if (until <= now || until <= node->frozen_until)
		return;
	if (until != SIM_NEVER)
		shift.by = until - (node->frozen_until > now ? node->frozen_until : now);
	node->frozen_until = until;
	set_disturbed(true);
	sim_engine_hooks.postpone = deadline_of;
	sim_timers_move(shifted, &shift);
	sim_trace("node", "\"node\":\"%s\",\"what\":\"%s\",\"for\":%" PRIu64, node->name,
		  until == SIM_NEVER ? "crash" : "freeze", until == SIM_NEVER ? 0 : until - now);
	sim_wake();
}

/* ------------------------------------------------------------------------
 * Ports and devices.
 */

static bool all_carry(void)
{
	const struct sim_port *port;

	for (uint32_t i = 0; (port = sim_port_by_index(i)); i++)
		if (!sim_world_port_carries(port))
			return false;
	return true;
}

static const char *port_name(const struct sim_port *port, char name[80])
{
	snprintf(name, 80, "%s/%u", port->device->vdev.device.name, port->num);
	return name;
}

void sim_port_set_state(struct sim_port *port, bool up)
{
	enum ibv_port_state state = up ? IBV_PORT_ACTIVE : IBV_PORT_DOWN;
	char name[80];

	if (port->device->removed || port->state == state)
		return;
	port->state = state;
	if (!up) {
		sim_count_link_down(port);
		sim_node_unlearn_all(port->device->node);
	}
	set_disturbed(!up || !all_carry());
	sim_trace("port", "\"node\":\"%s\",\"port\":\"%s\",\"state\":\"%s\"",
		  port->device->node->name, port_name(port, name), up ? "ACTIVE" : "DOWN");
	tell(port_event, port, up ? IBV_EVENT_PORT_ACTIVE : IBV_EVENT_PORT_ERR);
}

/* Interfaces stay, without a device behind them. */
static void forget_interfaces(const struct sim_device *device)
{
	struct sim_node *node = device->node;

	sim_fabric_addresses++;
	for (unsigned int i = 0; i < node->num_addresses; i++)
		if (node->addresses[i].port && node->addresses[i].port->device == device)
			node->addresses[i].port = NULL;
}

void sim_device_remove(struct sim_device *device)
{
	if (device->removed)
		return;
	sim_trace("device", "\"node\":\"%s\",\"device\":\"%s\",\"what\":\"removed\"",
		  device->node->name, device->vdev.device.name);
	/* The kernel lets go of the card when the ids on it have ended: their last words leave. */
	tell(device_leaves, device);
	device->removed = true;
	set_disturbed(true);
	for (unsigned int i = 0; i < device->num_ports; i++)
		device->ports[i].state = IBV_PORT_DOWN;
	forget_interfaces(device);
	tell(device_left, device);
	if (device->core)
		sim_core->device_gone(device->core);
}

/* ------------------------------------------------------------------------
 * Addresses.
 */

static struct sim_address *find_own(struct sim_node *node, const char *text)
{
	union sim_sockaddr addr;
	uint8_t prefix_len;

	if (sim_addr_parse(text, &addr, &prefix_len) < 0)
		return NULL;
	return sim_node_address(node, &addr.sa);
}

/* What can be said without having changed anything. */
static int check_change(struct sim_node *node, const char *from, const char *to)
{
	union sim_sockaddr addr;
	uint8_t prefix_len;

	if (!from && !to)
		return -EINVAL;
	if (from && !find_own(node, from))
		return -EADDRNOTAVAIL;
	if (!to)
		return 0;
	if (sim_addr_parse(to, &addr, &prefix_len) < 0 || sim_addr_is_zero(&addr.sa) ||
	    sim_addr_is_loopback(&addr.sa) || sim_addr_is_multicast(&addr.sa))
		return -EINVAL;
	return sim_node_of_address(&addr.sa) ? -EEXIST : 0;
}

int sim_node_change_address(struct sim_node *node, const char *from, const char *to)
{
	struct sim_address *address;
	struct sim_port *port = node->devices ? &node->devices->ports[0] : NULL;
	int r;

	r = check_change(node, from, to);
	if (r < 0)
		return r;
	if (from) {
		address = find_own(node, from);
		port = address->port;
		sim_node_remove_address(node, address);
	}
	if (!port || port->device->removed)
		return from && !to ? 0 : -EADDRNOTAVAIL;
	if (to)
		r = sim_device_add_address(port->device, NULL, to);
	tell(port_event, port, IBV_EVENT_GID_CHANGE);
	return r;
}

void sim_port_gids_changed(struct sim_port *port)
{
	tell(port_event, port, IBV_EVENT_GID_CHANGE);
}

/* A MAC that nobody has had, and that depends on nothing but what happened to the port before. */
static void new_mac(struct sim_port *port, uint8_t mac[6])
{
	char name[160], own[80];

	snprintf(name, sizeof(name), "%s/%s#%u", port->device->node->name, port_name(port, own),
		 ++port->mac_changes);
	sim_mac_of_name(name, mac);
}

int sim_node_change_mac(struct sim_node *node, const char *address)
{
	struct sim_address *own = find_own(node, address);
	uint8_t mac[6];

	if (!own || !own->port)
		return -EADDRNOTAVAIL;
	new_mac(own->port, mac);
	sim_gids_renew_mac(own->port, mac);
	sim_trace("mac", "\"node\":\"%s\",\"address\":\"%s\"", node->name, address);
	tell(port_event, own->port, IBV_EVENT_GID_CHANGE);
	tell(mac_changed, own->port);
	return 0;
}
