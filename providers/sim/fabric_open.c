/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fabric_open.c - the default fabric, as the settings describe it: one node, this host.
 * Engine lock held.
 */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "providers/soft/faults/changes.h"
#include "providers/soft/host/host.h"
#include "providers/soft/shm/folder.h"
#include "device.h"
#include "fabric_open.h"

#define NODE_NAME "host"
#define DEVICE_NAME "sim0"
#define MAX_FABRIC_NAME 64u

int sim_fabric_join(const char *kind)
{
	const char *fabric = sim_core->setting("POLYCM_SIM_FABRIC");
	char name[SIM_FABRIC_NAME_MAX];

	if (!fabric || !*fabric)
		fabric = "default";
	if (strlen(fabric) > MAX_FABRIC_NAME ||
	    (size_t)snprintf(name, sizeof(name), "%s-%s", fabric, kind) >= sizeof(name) ||
	    !sim_folder_name_valid(name)) {
		sim_core->log(POLYCM_LOG_ERROR, NULL, "POLYCM_SIM_FABRIC=%s: no name for a fabric: up "
			      "to %u letters, digits, '_', '-' and '.', no '.' in front", fabric,
			      MAX_FABRIC_NAME);
		return -EINVAL;
	}
	return sim_host_join(name);
}

/* What POLYCM_SIM_DEVICE names; false: nothing. */
static int read_profile(struct sim_profile *ret_profile, bool *ret_found)
{
	const char *name = sim_core->setting("POLYCM_SIM_DEVICE");
	char why[DEVICE_WHY];
	int r;

	*ret_found = name && *name;
	if (!*ret_found)
		return 0;
	r = device_profile(name, ret_profile, why);
	if (r < 0)
		sim_core->log(POLYCM_LOG_ERROR, NULL, "POLYCM_SIM_DEVICE=%s: %s", name, why);
	return r;
}

/* The transport that was asked for, or the profile's, or RoCE. */
static int find_transport(const struct sim_profile *profile, const struct polycm_transport **ret_rules)
{
	const char *transport = sim_core->setting("POLYCM_SIM_TRANSPORT");

	if (!transport || !*transport)
		transport = profile ? sim_profile_transport(profile) : "roce";
	*ret_rules = sim_core->transport(transport);
	if (!*ret_rules) {
		sim_core->log(POLYCM_LOG_ERROR, NULL,
			      "POLYCM_SIM_TRANSPORT=%s: no installed provider has the rules of "
			      "that transport", transport);
		return -ENODEV;
	}
	if ((*ret_rules)->protocol == POLYCM_PROTO_OTHER) {
		sim_core->log(POLYCM_LOG_ERROR, NULL, "POLYCM_SIM_TRANSPORT=%s: the simulator cannot "
			      "play this transport: its protocol is its provider's own", transport);
		return -ENODEV;
	}
	if (profile && !sim_profile_fits(profile, *ret_rules)) {
		sim_core->log(POLYCM_LOG_ERROR, NULL, "POLYCM_SIM_TRANSPORT=%s: the transport of "
			      "POLYCM_SIM_DEVICE is %s", transport, sim_profile_transport(profile));
		return -EINVAL;
	}
	return 0;
}

/* Processes whose devices look alike share a network: a port's MAC follows from its device's name. */
static int join(const struct polycm_transport *rules, const struct sim_profile *profile)
{
	char kind[32 + IBV_SYSFS_NAME_MAX];

	if (sim_is_virtual())
		return 0;
	snprintf(kind, sizeof(kind), "%.30s%s%s", rules->name, profile ? "-" : "",
		 profile ? profile->name : "");
	return sim_fabric_join(kind);
}

int sim_fabric_open_default(void)
{
	const char *home = sim_core->setting("POLYCM_SIM_NODE");
	const struct polycm_transport *rules = NULL;
	struct sim_profile profile, *played;
	bool found;
	int r;

	r = read_profile(&profile, &found);
	played = found ? &profile : NULL;
	if (!r)
		r = find_transport(played, &rules);
	if (r < 0)
		return r;
	r = join(rules, played);
	if (!r)
		r = sim_fabric_begin();
	if (!r)
		r = sim_host_add(NODE_NAME, played ? played->name : DEVICE_NAME, rules, played);
	if (r < 0) {
		sim_fabric_close();
		return r;
	}
	sim_changes_read();
	if (sim_is_virtual())
		sim_fabric_set_own();
	if (home && *home)
		sim_core->log(POLYCM_LOG_WARN, NULL, "POLYCM_SIM_NODE has no effect: without "
			      "POLYCM_SIM_SCENARIO there is no other node than this host");
	return 0;
}
