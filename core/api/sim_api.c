/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * api/sim_api.c - the functions of <polycm/sim.h>: they go to the table "sim"
 * that a selected provider offers as its extension.  Those about what the
 * program has left are in sim_live.c.
 */
#include "config.h"

#include "sim_api.h"

#include <errno.h>
#include <string.h>

#include "core/base/export.h"
#include "core/cm/id_internal.h"
#include "core/base/log.h"
#include "core/plugin/options.h"
#include "core/plugin/registry.h"

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
		const char *providers = polycm_setting("POLYCM_PROVIDER");

		owner = NULL;
		/* The log has the reason why the provider did not start. */
		if (polycm_setting_given("POLYCM_PROVIDER") && polycm_registry_any_failed())
			return;
		polycm_log(POLYCM_LOG_ERROR, "<polycm/sim.h>: there is no simulator: POLYCM_PROVIDER "
			   "must name \"sim\" before the first call of rdma_*, ibv_* or polycm_sim_*; "
			   "it was %s", providers && *providers ? providers : "not set");
		return;
	}
	memcpy(&table, theirs, theirs->size < sizeof(table) ? theirs->size : sizeof(table));
}

const struct polycm_sim_ops *polycm_sim_table(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, find_table);
	return owner ? &table : NULL;
}

const struct polycm_module *polycm_sim_owner(void)
{
	return polycm_sim_table() ? owner : NULL;
}

int polycm_sim_refuse(const char *call, int r, const char *why)
{
	polycm_log(POLYCM_LOG_ERROR, "%s: %s", call, why);
	errno = -r;
	return -1;
}

int polycm_sim_finish(int r)
{
	if (!r)
		return 0;
	errno = -r;
	return -1;
}

/* polycm_sim_CALL(), which the provider answers. */
#define SIM_CALL(call, parameters, arguments)                                                      \
	POLYCM_EXPORT int polycm_sim_##call parameters                                             \
	{                                                                                          \
		return POLYCM_SIM_PASS(call, arguments);                                           \
	}

SIM_CALL(node_add, (const char *name, const char *transport, const char *address,
	  struct polycm_sim_node **ret_node), (name, transport, address, ret_node))
SIM_CALL(node_add_address, (struct polycm_sim_node *node, const char *address), (node, address))
SIM_CALL(node_use, (struct polycm_sim_node *node), (node))
SIM_CALL(node_find, (const char *name, struct polycm_sim_node **ret_node), (name, ret_node))
SIM_CALL(device_add, (struct polycm_sim_node *node, const char *transport, const char *address,
	  const struct polycm_sim_limits *limits, struct polycm_sim_device **ret_device),
	 (node, transport, address, limits, ret_device))
SIM_CALL(device_add_address, (struct polycm_sim_device *device, const char *address),
	 (device, address))
SIM_CALL(device_find, (struct polycm_sim_node *node, const char *name,
	  struct polycm_sim_device **ret_device), (node, name, ret_device))
SIM_CALL(device_limit, (struct polycm_sim_device *device,
	  const struct polycm_sim_limits *limits), (device, limits))
SIM_CALL(link_set, (struct polycm_sim_node *a, struct polycm_sim_node *b,
	  const struct polycm_sim_link *link), (a, b, link))
SIM_CALL(fault_add, (const struct polycm_sim_fault_rule *rule,
	  struct polycm_sim_fault **ret_fault), (rule, ret_fault))
SIM_CALL(fault_remove, (struct polycm_sim_fault *fault), (fault))
SIM_CALL(fault_hits, (struct polycm_sim_fault *fault, unsigned int *ret_hits), (fault, ret_hits))
SIM_CALL(now, (uint64_t *ret_ns), (ret_ns))
SIM_CALL(advance, (uint64_t ns), (ns))

POLYCM_EXPORT int polycm_sim_run(uint64_t limit_ns)
{
	return POLYCM_SIM_FORWARD(run, limit_ns, NULL, NULL);
}

/*
 * The provider calls this and may hold locks, so no id_lock is taken.  The caller below
 * reports an id that was destroyed.
 */
static bool event_waits(void *arg)
{
	struct polycm_id *id = arg;
	bool waits;

	if (!polycm_enter_unlocked(id))
		return true;
	waits = polycm_ev_waits(id);
	(void)polycm_leave_unlocked(id);
	return waits;
}

POLYCM_EXPORT int polycm_sim_run_until_event(struct rdma_cm_id *id, uint64_t limit_ns)
{
	int r;

	if (!polycm_live(&polycm_live_objects, id))
		return polycm_sim_refuse(__func__, -EINVAL, "no id of rdma_create_id");
	r = POLYCM_SIM_FORWARD(run, limit_ns, event_waits, id);
	if (!r && !polycm_live(&polycm_live_objects, id))
		return polycm_sim_refuse(__func__, -EINVAL, "the id was destroyed meanwhile");
	return r;
}

SIM_CALL(trace, (const char *path), (path))

SIM_CALL(pcap, (const char *path), (path))
