/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * sim_api.c - the functions of <polycm/sim.h>: they go to the table "sim"
 * that a selected provider offers as its extension.
 */
#include "config.h"

#include "polycm/sim.h"

#include <errno.h>
#include <string.h>

#include "device.h"
#include "export.h"
#include "registry.h"

#define TABLE_VERSION 1

static struct polycm_sim_ops table;	/* our copy; what the provider lacks stays NULL */
static const struct polycm_module *owner;	/* of the table */

static void find_table(void)
{
	struct polycm_module *const *modules;
	size_t num = polycm_registry_selected(&modules);
	const struct polycm_sim_ops *theirs = NULL;

	for (size_t i = 0; i < num && !theirs; i++) {
		if (modules[i]->desc.extension)
			theirs = modules[i]->desc.extension("sim", TABLE_VERSION);
		owner = modules[i];
	}
	if (!theirs) {
		owner = NULL;
		return;
	}
	memcpy(&table, theirs, theirs->size < sizeof(table) ? theirs->size : sizeof(table));
}

static bool have_table(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, find_table);
	return owner != NULL;
}

static int finish(int r)
{
	if (!r)
		return 0;
	errno = -r;
	return -1;
}

#define FORWARD(call, ...)                                                                         \
	finish(!have_table() ? -ENODEV : !table.call ? -EOPNOTSUPP : table.call(__VA_ARGS__))

POLYCM_EXPORT int polycm_sim_create(uint64_t seed)
{
	return FORWARD(create, seed);
}

POLYCM_EXPORT int polycm_sim_destroy(void)
{
	return FORWARD(destroy);
}

POLYCM_EXPORT int polycm_sim_node_add(const char *name, const char *transport, const char *address,
				      struct polycm_sim_node **ret_node)
{
	return FORWARD(node_add, name, transport, address, ret_node);
}

POLYCM_EXPORT int polycm_sim_node_add_address(struct polycm_sim_node *node, const char *address)
{
	return FORWARD(node_add_address, node, address);
}

POLYCM_EXPORT int polycm_sim_node_use(struct polycm_sim_node *node)
{
	return FORWARD(node_use, node);
}

POLYCM_EXPORT int polycm_sim_now(uint64_t *ret_ns)
{
	return FORWARD(now, ret_ns);
}

POLYCM_EXPORT int polycm_sim_advance(uint64_t ns)
{
	return FORWARD(advance, ns);
}

POLYCM_EXPORT int polycm_sim_trace(const char *path)
{
	return FORWARD(trace, path);
}

POLYCM_EXPORT int polycm_sim_live(struct polycm_sim_counts *counts)
{
	struct polycm_sim_counts all = { .size = sizeof(all) };
	unsigned int contexts, pds;
	int r;

	r = FORWARD(live, &all);
	if (r)
		return r;
	if (!counts || counts->size < sizeof(counts->size))
		return finish(-EINVAL);
	/* The core's own stay with the device, whatever the program does. */
	polycm_device_own_verbs(owner, &contexts, &pds);
	all.contexts -= contexts < all.contexts ? contexts : all.contexts;
	all.pds -= pds < all.pds ? pds : all.pds;
	all.size = counts->size;
	memcpy(counts, &all, counts->size < sizeof(all) ? counts->size : sizeof(all));
	return 0;
}
