/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fabric/world.h - changes nodes, ports and devices while a fabric runs: a node
 * freezes, a port goes down, a device is removed, an address changes.
 *
 * The engine's lock is held for all functions, so timers and packet handlers may call
 * them.  Events for programs (of ids, and asynchronous ones) are queued in the call.
 *
 * On a shared fabric each process changes its own copy.  faults/changes.h makes sure
 * that all processes make the same changes.
 */
#ifndef SIM_WORLD_H
#define SIM_WORLD_H

#include "fabric.h"

/* ------------------------------------------------------------------------
 * Which ports work; links ask this.
 */

/* False: all ports carry packets.  True: some may not. */
extern bool sim_world_disturbed;

bool sim_world_port_carries(const struct sim_port *port);

/*
 * Do packets pass through this port now?  They do if it is up, its device exists and its
 * node runs.  Links check the sender's port when a packet leaves and the receiver's when
 * it arrives; if it does not pass, the packet is lost.
 */
static inline bool sim_port_carries(const struct sim_port *port)
{
	return __builtin_expect(!sim_world_disturbed, 1) || sim_world_port_carries(port);
}

/* ------------------------------------------------------------------------
 * Changes.
 */

/*
 * Freeze a node until a time (SIM_NEVER: for ever).  Packets from it and to it are lost.  The
 * timers of its connection manager and NIC stand still, also those that are started meanwhile.
 * Programs' calls still work if they need only this node.  A time in the past has no effect,
 * and a second call can only make the time longer.
 */
void sim_node_freeze_until(struct sim_node *node, uint64_t until);
bool sim_node_is_frozen(const struct sim_node *node);

/*
 * Pull or plug in the port's cable.  Packets are lost while it is out.  Contexts get
 * IBV_EVENT_PORT_ERR and PORT_ACTIVE.  Connections live until their time-outs.  Ids get no
 * event, except that those in InfiniBand multicast groups learn that they lost them.
 * Nothing happens if the port is in that state already.
 */
void sim_port_set_state(struct sim_port *port, bool up);

/*
 * The device is unplugged.  Its ids get DEVICE_REMOVAL and can only be
 * destroyed (ENXIO for all other calls), its contexts get
 * IBV_EVENT_DEVICE_FATAL and their QPs are in error.  Nothing more goes out, so
 * peers notice nothing but silence.  It never comes back.
 */
void sim_device_remove(struct sim_device *device);

/*
 * Replace the node's address `from' by `to'.  If `to' is NULL, `from' is removed; if `from'
 * is NULL, `to' is added to the node's first device.  The GID table changes, and contexts
 * get IBV_EVENT_GID_CHANGE.  Ids get no event.  Those bound to the old address keep it, but
 * no peer reaches them there any more.
 * -EADDRNOTAVAIL: not an address of this node; -EINVAL: `to' is no address that
 * it could have; -EEXIST: a node has it; -ENOSPC.
 */
int sim_node_change_address(struct sim_node *node, const char *from, const char *to);

/* The port's GID table has changed already: contexts get IBV_EVENT_GID_CHANGE. */
void sim_port_gids_changed(struct sim_port *port);

/*
 * The port with this address of the node gets another MAC, as when a bond
 * fails over.  Its own ids get ADDR_CHANGE.  On RoCE ids elsewhere that
 * resolved a route to it get UNREACHABLE, in whichever state they are, and are
 * not torn down.  -EADDRNOTAVAIL: not an address of this node.
 */
int sim_node_change_mac(struct sim_node *node, const char *address);

/* ------------------------------------------------------------------------
 * Listeners: the NIC and the CM, which give programs the events.
 */

struct sim_world_listener {
	struct sim_world_listener *next;
	/* PORT_ERR, PORT_ACTIVE or GID_CHANGE.  Each function may be NULL. */
	void (*port_event)(struct sim_port *port, enum ibv_event_type type);
	void (*mac_changed)(struct sim_port *port);
	/* Before the device is removed, when it still sends; and after. */
	void (*device_leaves)(struct sim_device *device);
	void (*device_left)(struct sim_device *device);
};

/* Listeners are called in the order in which they were added.  Adding one again is no error. */
void sim_world_listen(struct sim_world_listener *listener);

/* Forget what happened; the fabric is being closed. */
void sim_world_close(void);

#endif
