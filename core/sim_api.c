/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * sim_api.c - the functions of <polycm/sim.h>: they go to the table "sim"
 * that a selected provider offers as its extension.
 */
#include "config.h"

#include "polycm/sim.h"

#include <errno.h>
#include <string.h>

#include "export.h"
#include "registry.h"

#define TABLE_VERSION 1

static struct polycm_sim_ops table;	/* our copy; what the provider lacks stays NULL */
static bool present;

static void find_table(void)
{
	struct polycm_module *const *modules;
	size_t num = polycm_registry_selected(&modules);
	const struct polycm_sim_ops *theirs = NULL;

	for (size_t i = 0; i < num && !theirs; i++)
		if (modules[i]->desc.extension)
			theirs = modules[i]->desc.extension("sim", TABLE_VERSION);
	if (!theirs)
		return;
	memcpy(&table, theirs, theirs->size < sizeof(table) ? theirs->size : sizeof(table));
	present = true;
}

static bool have_table(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, find_table);
	return present;
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
	return FORWARD(live, counts);
}
