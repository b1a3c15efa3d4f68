/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fabric/world.h - what happens to nodes, ports and devices while a fabric runs: a
 * node freezes, a port goes down, a device is removed, an address changes.
 *
 * Engine lock held for all, so timers and packet handlers may call them.  What
 * programs must be told (events of ids, asynchronous events) is queued at once,
 * at the time of the call.
 *
 * On a shared fabric each process does this to its own copy of the fabric; all
 * have to do the same, which faults/changes.h sees to.
 */
#ifndef SIM_WORLD_H
#define SIM_WORLD_H

#include "fabric.h"

/* ------------------------------------------------------------------------
 * For the links: what of the fabric works.
 */

/* Some port may not carry packets now.  While false, all do. */
extern bool sim_world_disturbed;

bool sim_world_port_carries(const struct sim_port *port);

/*
 * Do packets pass through this port now: it is up, its device is there, its
 * node runs?  To ask of the sender when a packet leaves and of the receiver
 * when it arrives; it is lost if not.
 */
static inline bool sim_port_carries(const struct sim_port *port)
{
	return __builtin_expect(!sim_world_disturbed, 1) || sim_world_port_carries(port);
}

/* ------------------------------------------------------------------------
 * What happens.
 */

/*
 * Nothing in, nothing out, for so long (0: for ever): packets are lost, and the
 * timers of the node's connection manager and NIC stand still, those that are
 * started meanwhile too.  Programs' calls still work, as far as the node alone
 * can carry them out.  A node that is frozen already stays so for longer, never
 * shorter.
 */
void sim_node_freeze(struct sim_node *node, uint64_t for_ns);
/* The same until a time; SIM_NEVER: for ever.  Nothing happens if it is over. */
void sim_node_freeze_until(struct sim_node *node, uint64_t until);
/* For ever. */
void sim_node_crash(struct sim_node *node);
bool sim_node_is_frozen(const struct sim_node *node);

/*
 * The cable.  Packets are lost while it is out; contexts get
 * IBV_EVENT_PORT_ERR and PORT_ACTIVE.  Connections live until their time-outs;
 * of all ids only those in multicast groups of InfiniBand are told, that they
 * are lost.  Nothing happens if the port is in that state already.
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
 * Of a node's address `from' becomes `to'; NULL: it goes, or comes (to the
 * node's first device).  The GID table changes, contexts get
 * IBV_EVENT_GID_CHANGE.  No id is told; those bound to the old address keep it,
 * but the world finds nobody under it any more.
 * -EADDRNOTAVAIL: not an address of this node; -EINVAL: `to' is no address that
 * it could have; -EEXIST: a node has it; -ENOSPC.
 */
int sim_node_change_address(struct sim_node *node, const char *from, const char *to);

/*
 * The port with this address of the node gets another MAC, as when a bond
 * fails over.  Its own ids get ADDR_CHANGE.  On RoCE ids elsewhere that
 * resolved a route to it get UNREACHABLE, in whichever state they are, and are
 * not torn down.  -EADDRNOTAVAIL: not an address of this node.
 */
int sim_node_change_mac(struct sim_node *node, const char *address);

/* ------------------------------------------------------------------------
 * Those who tell programs of it: the NIC and the CM, from their start on.
 */

struct sim_world_listener {
	struct sim_world_listener *next;
	/* PORT_ERR, PORT_ACTIVE, GID_CHANGE.  NULL, as the others: it is nothing to it. */
	void (*port_event)(struct sim_port *port, enum ibv_event_type type);
	void (*mac_changed)(struct sim_port *port);
	/* The device will be gone, and still sends; it is gone. */
	void (*device_leaves)(struct sim_device *device);
	void (*device_left)(struct sim_device *device);
};

/* They are told in the order in which they came; again is no error. */
void sim_world_listen(struct sim_world_listener *listener);

/* Forget what happened; the fabric is being closed. */
void sim_world_close(void);

#endif
