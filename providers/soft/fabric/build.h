/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fabric/build.h - what a fabric is made of, checked: for the calls of
 * <polycm/sim.h> and for scenario files.  Engine lock held.
 *
 * With an error *ret_why says in a few words what is wrong with the argument
 * ("the name is taken"); it is NULL where the errno says all.
 *
 * Several devices on one node: each has its transport and its own addresses.
 * A connection whose source is an address of another device than its
 * destination goes out of the one and in at the other, as on a host whose
 * policy routing sends it over the wire.  So one node, one program and
 *
 *	sim_build_node("host", &node, &why);
 *	sim_build_device(node, "roce", "10.1.0.1/24", NULL, &first, &why);
 *	sim_build_device(node, "roce", "10.1.0.2/24", NULL, &second, &why);
 *
 * with rdma_bind_addr() or a source address of 10.1.0.1 and a destination of
 * 10.1.0.2 is the kernel's two devices on one machine with a cable between
 * them.  Without a source address the route to an address of one's own is that
 * address itself, as on Linux: such a connection stays inside of the device.
 */
#ifndef SIM_BUILD_H
#define SIM_BUILD_H

#include "polycm/sim.h"
#include "fabric.h"

int sim_build_node(const char *name, struct sim_node **ret_node, const char **ret_why);
/* The device is named sim0, sim1, ... in the order in which devices come to the fabric. */
int sim_build_device(struct sim_node *node, const char *transport, const char *address,
		     const struct polycm_sim_limits *limits, struct sim_device **ret_device,
		     const char **ret_why);
int sim_build_address(struct sim_device *device, const char *address, const char **ret_why);
/* An interface without an RDMA device. */
int sim_build_interface(struct sim_node *node, const char *name, const char *address,
			const char **ret_why);
/* What goes to "10.1.0.2/32" leaves from the node's address "10.1.0.1". */
int sim_build_route(struct sim_node *node, const char *to, const char *source,
		    const char **ret_why);
/* -EBUSY: a context is open on it. */
int sim_build_limits(struct sim_device *device, const struct polycm_sim_limits *limits,
		     const char **ret_why);

/* By name, or NULL; a device's NULL name is the node's first one. */
struct sim_node *sim_node_by_name(const char *name);
struct sim_device *sim_device_by_name(const struct sim_node *node, const char *name);

#endif
