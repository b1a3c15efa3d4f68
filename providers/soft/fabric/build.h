/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fabric/build.h - what a fabric is made of, checked: for the calls of
 * <polycm/sim.h> and for scenario files.  Engine lock held.
 *
 * With an error *ret_why says in a few words what is wrong with the argument
 * ("the name is taken"); it is NULL where the errno says all.
 *
 * Several devices on one node: each has its transport and its own addresses.  A connection
 * goes from one to the other, as over a cable, if its source is an address of another device
 * than its destination; without a source address it stays inside of the device.
 */
#ifndef SIM_BUILD_H
#define SIM_BUILD_H

#include "polycm/sim.h"
#include "fabric.h"

int sim_build_node(const char *name, struct sim_node **ret_node, const char **ret_why);
/*
 * The device is named sim0, sim1, ... in the order in which devices come to the fabric.  With
 * a profile it has the profile's name, or that with another number (mlx5_1), and transport may
 * be NULL: the profile's.
 */
int sim_build_device(struct sim_node *node, const char *transport, const char *address,
		     const struct sim_profile *profile, const struct polycm_sim_limits *limits,
		     struct sim_device **ret_device, const char **ret_why);
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

/* "a, b": the names of all nodes. */
void sim_list_nodes(char *text, size_t size);
/* By name, or NULL; a device's NULL name is the node's first one. */
struct sim_node *sim_node_by_name(const char *name);
struct sim_device *sim_device_by_name(const struct sim_node *node, const char *name);

#endif
