/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * control.c - the table behind <polycm/sim.h>: a test makes a private fabric
 * under the virtual clock, moves time, and looks at what is left.
 */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "address.h"
#include "cm/cma.h"
#include "polycm/sim.h"
#include "provider.h"
#include "trace.h"

/* A struct polycm_sim_node is a struct sim_node. */

static int create(uint64_t seed)
{
	int r;

	pthread_mutex_lock(&sim_setup_lock);
	r = sim_down();
	if (!r)
		r = sim_up_private(seed);
	pthread_mutex_unlock(&sim_setup_lock);
	return r;
}

static int destroy(void)
{
	int r;

	pthread_mutex_lock(&sim_setup_lock);
	r = sim_down();
	pthread_mutex_unlock(&sim_setup_lock);
	return r;
}

/* A test's fabric: ours alone. */
static bool may_change(void)
{
	return sim_is_up() && !sim_fabric_is_shared();
}

/* What is wrong with an address for a new interface of the fabric, or NULL. */
static const char *wrong_address(const char *text)
{
	union sim_sockaddr addr;
	uint8_t prefix_len;

	if (sim_addr_parse(text, &addr, &prefix_len) < 0)
		return "no address as in 10.0.0.1/24 or fd00::1/64";
	if (sim_addr_is_zero(&addr.sa))
		return "the address of no interface";
	if (sim_addr_is_loopback(&addr.sa))
		return "a loopback address";
	return sim_node_of_address(&addr.sa) ? "a node has that address" : NULL;
}

static const char *wrong_name(const char *name)
{
	if (!*name || strlen(name) >= sizeof(((struct sim_node *)NULL)->name))
		return "the name is empty or too long";
	for (struct sim_node *node = sim_first_node(); node; node = node->next)
		if (!strcmp(node->name, name))
			return "the name is taken";
	return NULL;
}

static int refuse(const char *call, const char *what, const char *why)
{
	sim_core->log(POLYCM_LOG_WARN, NULL, "%s: %s%s%s", call, what, *what ? ": " : "", why);
	return -EINVAL;
}

#define NODE_ADD "polycm_sim_node_add"
#define NODE_ADD_ADDRESS "polycm_sim_node_add_address"
#define NOT_A_TESTS "the fabric is not a test's; polycm_sim_create() makes one"

static unsigned int num_devices(void)
{
	unsigned int num = 0;

	for (struct sim_node *node = sim_first_node(); node; node = node->next)
		for (struct sim_device *device = node->devices; device; device = device->next)
			num++;
	return num;
}

/* Engine lock held. */
static int make_node(const char *name, const struct polycm_transport *rules, const char *address,
		     struct sim_node **ret_node)
{
	char device_name[32];
	struct sim_device *device;
	const char *why;
	int r;

	why = wrong_name(name);
	if (why)
		return refuse(NODE_ADD, name, why);
	why = wrong_address(address);
	if (why)
		return refuse(NODE_ADD, address, why);
	snprintf(device_name, sizeof(device_name), "sim%u", num_devices());
	r = sim_node_add(name, ret_node);
	if (r < 0)
		return r;
	r = sim_device_add(*ret_node, device_name, rules, &device);
	if (!r)
		r = sim_device_add_address(device, NULL, address);
	if (r < 0)
		sim_node_drop_newest();
	return r;
}

static int node_add(const char *name, const char *transport, const char *address,
		    struct polycm_sim_node **ret_node)
{
	const struct polycm_transport *rules;
	struct sim_node *node;
	int r;

	if (!name || !transport || !address || !ret_node)
		return refuse(NODE_ADD, "", "NULL is no argument");
	rules = sim_core->transport(transport);
	if (!rules)
		return refuse(NODE_ADD, transport,
			      "no such transport; 'polycm info' lists those installed");
	pthread_mutex_lock(&sim_setup_lock);
	if (may_change()) {
		sim_lock();
		r = make_node(name, rules, address, &node);
		sim_unlock();
	} else {
		r = refuse(NODE_ADD, name, NOT_A_TESTS);
	}
	if (!r)
		r = sim_fabric_announce();
	pthread_mutex_unlock(&sim_setup_lock);
	if (!r)
		*ret_node = (struct polycm_sim_node *)node;
	return r;
}

static int node_add_address(struct polycm_sim_node *handle, const char *address)
{
	struct sim_node *node = (struct sim_node *)handle;
	const char *why;
	int r;

	if (!node || !address)
		return refuse(NODE_ADD_ADDRESS, "", "NULL is no argument");
	pthread_mutex_lock(&sim_setup_lock);
	if (may_change()) {
		sim_lock();
		why = wrong_address(address);
		r = why ? refuse(NODE_ADD_ADDRESS, address, why) :
			  sim_device_add_address(node->devices, NULL, address);
		sim_unlock();
	} else {
		r = refuse(NODE_ADD_ADDRESS, address, NOT_A_TESTS);
	}
	pthread_mutex_unlock(&sim_setup_lock);
	return r == -ENOSPC ? -ENOMEM : r;
}

static int node_use(struct polycm_sim_node *handle)
{
	if (!handle)
		return -EINVAL;
	sim_lock();
	sim_set_current_node((struct sim_node *)handle);
	sim_unlock();
	return 0;
}

static int now(uint64_t *ret_ns)
{
	if (!ret_ns)
		return -EINVAL;
	*ret_ns = sim_now();
	return 0;
}

static int advance(uint64_t ns)
{
	return sim_advance(ns);
}

static int trace(const char *path)
{
	int r = 0;

	sim_lock();
	if (path)
		r = sim_trace_open(path);
	else
		sim_trace_close();
	sim_unlock();
	return r;
}

static int live(struct polycm_sim_counts *counts)
{
	struct polycm_sim_counts c;
	size_t size;

	if (!counts || counts->size < sizeof(counts->size))
		return -EINVAL;
	size = counts->size;
	sim_count_live(&c);
	c.size = size;
	memcpy(counts, &c, size < sizeof(c) ? size : sizeof(c));
	return 0;
}

const struct polycm_sim_ops sim_control_ops = {
	.size = sizeof(sim_control_ops),
	.create = create,
	.destroy = destroy,
	.node_add = node_add,
	.node_add_address = node_add_address,
	.node_use = node_use,
	.now = now,
	.advance = advance,
	.trace = trace,
	.live = live,
};
