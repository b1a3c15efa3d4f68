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
#define RUN_UNTIL_EVENT "polycm_sim_run_until_event"

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
		/* Why one that was asked for did not start was told. */
		if (polycm_setting_given("POLYCM_PROVIDER") && polycm_registry_any_failed())
			return;
		polycm_log(POLYCM_LOG_ERROR, "<polycm/sim.h>: no simulator is here: POLYCM_PROVIDER, "
			   "which must be or have \"sim\" before the first call of rdma_*, ibv_* or "
			   "polycm_sim_*, was %s", providers && *providers ? providers : "not set");
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

POLYCM_EXPORT int polycm_sim_node_add(const char *name, const char *transport, const char *address,
				      struct polycm_sim_node **ret_node)
{
	return POLYCM_SIM_FORWARD(node_add, name, transport, address, ret_node);
}

POLYCM_EXPORT int polycm_sim_node_add_address(struct polycm_sim_node *node, const char *address)
{
	return POLYCM_SIM_FORWARD(node_add_address, node, address);
}

POLYCM_EXPORT int polycm_sim_node_use(struct polycm_sim_node *node)
{
	return POLYCM_SIM_FORWARD(node_use, node);
}

POLYCM_EXPORT int polycm_sim_node_find(const char *name, struct polycm_sim_node **ret_node)
{
	return POLYCM_SIM_FORWARD(node_find, name, ret_node);
}

POLYCM_EXPORT int polycm_sim_device_add(struct polycm_sim_node *node, const char *transport,
					const char *address, const struct polycm_sim_limits *limits,
					struct polycm_sim_device **ret_device)
{
	return POLYCM_SIM_FORWARD(device_add, node, transport, address, limits, ret_device);
}

POLYCM_EXPORT int polycm_sim_device_add_address(struct polycm_sim_device *device,
						const char *address)
{
	return POLYCM_SIM_FORWARD(device_add_address, device, address);
}

POLYCM_EXPORT int polycm_sim_device_find(struct polycm_sim_node *node, const char *name,
					 struct polycm_sim_device **ret_device)
{
	return POLYCM_SIM_FORWARD(device_find, node, name, ret_device);
}

POLYCM_EXPORT int polycm_sim_device_limit(struct polycm_sim_device *device,
					  const struct polycm_sim_limits *limits)
{
	return POLYCM_SIM_FORWARD(device_limit, device, limits);
}

POLYCM_EXPORT int polycm_sim_link_set(struct polycm_sim_node *a, struct polycm_sim_node *b,
				      const struct polycm_sim_link *link)
{
	return POLYCM_SIM_FORWARD(link_set, a, b, link);
}

POLYCM_EXPORT int polycm_sim_fault_add(const struct polycm_sim_fault_rule *rule,
				       struct polycm_sim_fault **ret_fault)
{
	return POLYCM_SIM_FORWARD(fault_add, rule, ret_fault);
}

POLYCM_EXPORT int polycm_sim_fault_remove(struct polycm_sim_fault *fault)
{
	return POLYCM_SIM_FORWARD(fault_remove, fault);
}

POLYCM_EXPORT int polycm_sim_fault_hits(struct polycm_sim_fault *fault, unsigned int *ret_hits)
{
	return POLYCM_SIM_FORWARD(fault_hits, fault, ret_hits);
}

POLYCM_EXPORT int polycm_sim_now(uint64_t *ret_ns)
{
	return POLYCM_SIM_FORWARD(now, ret_ns);
}

POLYCM_EXPORT int polycm_sim_advance(uint64_t ns)
{
	return POLYCM_SIM_FORWARD(advance, ns);
}

POLYCM_EXPORT int polycm_sim_run(uint64_t limit_ns)
{
	return POLYCM_SIM_FORWARD(run, limit_ns, NULL, NULL);
}

/*
 * Asked inside of the provider: locks of the provider's may be held, so no id
 * may be locked here, nor anything but a channel.  One that is gone is told
 * below.
 */
static bool nothing_waits(const void *object)
{
	return !polycm_ev_waits((struct polycm_id *)(uintptr_t)object);
}

static bool event_waits(void *arg)
{
	return !polycm_live_ask(&polycm_live_objects, arg, nothing_waits);
}

POLYCM_EXPORT int polycm_sim_run_until_event(struct rdma_cm_id *id, uint64_t limit_ns)
{
	int r;

	if (!polycm_live(&polycm_live_objects, id))
		return polycm_sim_refuse(RUN_UNTIL_EVENT, -EINVAL, "no id of rdma_create_id");
	r = POLYCM_SIM_FORWARD(run, limit_ns, event_waits, id);
	if (!r && !polycm_live(&polycm_live_objects, id))
		return polycm_sim_refuse(RUN_UNTIL_EVENT, -EINVAL,
					 "the id was destroyed meanwhile");
	return r;
}

POLYCM_EXPORT int polycm_sim_trace(const char *path)
{
	return POLYCM_SIM_FORWARD(trace, path);
}

POLYCM_EXPORT int polycm_sim_pcap(const char *path)
{
	return POLYCM_SIM_FORWARD(pcap, path);
}
