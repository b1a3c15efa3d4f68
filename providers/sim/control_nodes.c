/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * control_nodes.c - the calls of <polycm/sim.h> about nodes, their devices and
 * the links between them.
 */
#include "config.h"

#include <errno.h>
#include <string.h>

#include "providers/soft/fabric/build.h"
#include "providers/soft/link/shape.h"
#include "control.h"
#include "device.h"

#define NODE_ADD "polycm_sim_node_add"
#define NODE_ADD_ADDRESS "polycm_sim_node_add_address"
#define NODE_USE "polycm_sim_node_use"
#define NODE_FIND "polycm_sim_node_find"
#define DEVICE_ADD "polycm_sim_device_add"
#define DEVICE_ADD_ADDRESS "polycm_sim_device_add_address"
#define DEVICE_FIND "polycm_sim_device_find"
#define DEVICE_LIMIT "polycm_sim_device_limit"
#define LINK_SET "polycm_sim_link_set"

/* Log why, if there is a reason; returns r. */
static int failed(int r, const char *call, const char *what, const char *why)
{
	if (r < 0 && why)
		control_refuse(call, what, why);
	return r;
}

static struct polycm_sim_node *node_handle(const struct sim_node *node)
{
	return sim_handle(SIM_HANDLE_NODE, node->number);
}

static struct polycm_sim_device *device_handle(const struct sim_device *device)
{
	return sim_handle(SIM_HANDLE_DEVICE, device->number);
}

/* `kind' is a transport, or the device whose profile the new one plays.  Locks held. */
static int make_device(const char *call, struct sim_node *node, const char *kind,
		       const char *address, const struct polycm_sim_limits *limits,
		       struct sim_device **ret_device)
{
	const struct polycm_transport *rules = sim_core->transport(kind);
	struct sim_profile profile;
	char about[DEVICE_WHY];
	const char *why;
	int r;

	if (!rules) {
		r = device_profile(kind, &profile, about);
		if (r == -ENOENT && !strchr(kind, '/'))
			return control_refuse(call, kind, "neither a transport that 'polycm info' "
					      "lists nor a device of 'polycm run --device'");
		if (r < 0)
			return failed(r, call, kind, about);
	}
	r = sim_build_device(node, rules ? kind : NULL, address, rules ? NULL : &profile, limits,
			     ret_device, &why);
	return failed(r, call, rules && rules->protocol == POLYCM_PROTO_OTHER ? kind : address, why);
}

/* ------------------------------------------------------------------------
 * Nodes.
 */

/* Locks held. */
static int make_node(const char *name, const char *kind, const char *address,
		     struct sim_node **ret_node)
{
	struct sim_device *device;
	const char *why;
	int r;

	r = sim_build_node(name, ret_node, &why);
	if (r < 0)
		return failed(r, NODE_ADD, name, why);
	r = make_device(NODE_ADD, *ret_node, kind, address, NULL, &device);
	if (r < 0)
		sim_node_drop_newest();
	return r;
}

/* New devices are announced to the core without the engine's lock. */
static int end_with_devices(int r)
{
	sim_unlock();
	if (!r)
		r = sim_fabric_announce();
	sim_lock();
	control_end();
	return r;
}

int control_node_add(const char *name, const char *kind, const char *address,
		     struct polycm_sim_node **ret_node)
{
	struct polycm_sim_node *handle = NULL;
	struct sim_node *node;
	int r;

	if (!name || !kind || !address || !ret_node)
		return control_null(NODE_ADD, !name ? "name" : !kind ? "kind" :
					      !address ? "address" : "ret_node");
	control_begin();
	r = control_needs_own_fabric(NODE_ADD);
	if (!r)
		r = make_node(name, kind, address, &node);
	if (!r)
		handle = node_handle(node);
	r = end_with_devices(r);
	if (!r)
		*ret_node = handle;
	return r;
}

/* Locks held. */
static int add_address(const char *call, struct sim_device *device, const char *address)
{
	const char *why = NULL;
	int r = control_needs_own_fabric(call);

	if (!r)
		r = sim_build_address(device, address, &why);
	return failed(r, call, address, why);
}

int control_node_add_address(struct polycm_sim_node *handle, const char *address)
{
	struct sim_node *node;
	int r;

	if (!address)
		return control_null(NODE_ADD_ADDRESS, "address");
	control_begin();
	r = control_node(NODE_ADD_ADDRESS, handle, &node);
	if (!r)
		r = add_address(NODE_ADD_ADDRESS, node->devices, address);
	control_end();
	return r;
}

int control_node_use(struct polycm_sim_node *handle)
{
	struct sim_node *node;
	int r;

	sim_lock();
	r = control_node(NODE_USE, handle, &node);
	if (!r)
		sim_set_current_node(node);
	sim_unlock();
	return r;
}

int control_node_find(const char *name, struct polycm_sim_node **ret_node)
{
	struct sim_node *node;
	int r = 0;

	if (!name || !ret_node)
		return control_null(NODE_FIND, name ? "ret_node" : "name");
	sim_lock();
	node = sim_node_by_name(name);
	if (node)
		*ret_node = node_handle(node);
	else
		r = control_refuse(NODE_FIND, name, "no node has that name");
	sim_unlock();
	return r;
}

/* ------------------------------------------------------------------------
 * Devices.
 */

int control_device_add(struct polycm_sim_node *handle, const char *kind, const char *address,
		       const struct polycm_sim_limits *limits,
		       struct polycm_sim_device **ret_device)
{
	struct polycm_sim_device *made = NULL;
	struct sim_device *device;
	struct sim_node *node;
	int r;

	if (!kind || !address)
		return control_null(DEVICE_ADD, kind ? "address" : "kind");
	control_begin();
	r = control_node(DEVICE_ADD, handle, &node);
	if (!r)
		r = control_needs_own_fabric(DEVICE_ADD);
	if (!r)
		r = make_device(DEVICE_ADD, node, kind, address, limits, &device);
	if (!r)
		made = device_handle(device);
	r = end_with_devices(r);
	if (!r && ret_device)
		*ret_device = made;
	return r;
}

int control_device_add_address(struct polycm_sim_device *handle, const char *address)
{
	struct sim_device *device;
	int r;

	if (!address)
		return control_null(DEVICE_ADD_ADDRESS, "address");
	control_begin();
	r = control_device(DEVICE_ADD_ADDRESS, handle, &device);
	if (!r)
		r = add_address(DEVICE_ADD_ADDRESS, device, address);
	control_end();
	return r;
}

int control_device_find(struct polycm_sim_node *handle, const char *name,
			struct polycm_sim_device **ret_device)
{
	struct sim_device *device;
	struct sim_node *node;
	int r;

	if (!ret_device)
		return control_null(DEVICE_FIND, "ret_device");
	sim_lock();
	r = control_node(DEVICE_FIND, handle, &node);
	if (!r) {
		device = sim_device_by_name(node, name);
		if (device)
			*ret_device = device_handle(device);
		else
			r = control_refuse(DEVICE_FIND, name ? name : node->name,
					   "the node has no such device");
	}
	sim_unlock();
	return r;
}

int control_device_limit(struct polycm_sim_device *handle, const struct polycm_sim_limits *limits)
{
	struct sim_device *device;
	const char *why = NULL;
	int r;

	if (!limits)
		return control_null(DEVICE_LIMIT, "limits");
	sim_lock();
	r = control_device(DEVICE_LIMIT, handle, &device);
	if (!r)
		r = sim_build_limits(device, limits, &why);
	if (r == -EBUSY)
		why = "the device is open";
	r = failed(r, DEVICE_LIMIT, "", why);
	sim_unlock();
	return r;
}

/* ------------------------------------------------------------------------
 * Links.
 */

int control_link_set(struct polycm_sim_node *a_handle, struct polycm_sim_node *b_handle,
		     const struct polycm_sim_link *link)
{
	struct sim_node *a = NULL, *b = NULL;
	char why[160] = "";
	int r = 0;

	if (!link)
		return control_null(LINK_SET, "link");
	sim_lock();
	if (a_handle)
		r = control_node(LINK_SET, a_handle, &a);
	if (!r && b_handle)
		r = control_node(LINK_SET, b_handle, &b);
	if (!r)
		r = control_needs_fabric(LINK_SET);
	if (!r)
		r = sim_shape_set(a, b, link, why, sizeof(why));
	if (r < 0 && *why)
		control_refuse(LINK_SET, "", why);
	sim_unlock();
	return r;
}
