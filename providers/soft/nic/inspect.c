/* SPDX-License-Identifier: BSD-2-Clause */
/* nic/inspect.c - a device for support: its health, and how many objects it has. */
#include "config.h"

#include <errno.h>
#include <string.h>

#include "objects.h"
#include "providers/soft/fabric/profile.h"
#include "providers/soft/fabric/world.h"

static struct sim_device *find(const char *name)
{
	for (struct sim_node *node = sim_first_node(); node; node = node->next)
		for (struct sim_device *device = node->devices; device; device = device->next)
			if (!strcmp(device->vdev.device.name, name))
				return device;
	return NULL;
}

/* A device can connect as long as one of its ports can. */
static int inspect_ports(const struct sim_device *device, const struct polycm_report *to)
{
	int health = -ENETDOWN;

	for (unsigned int i = 0; i < device->num_ports; i++) {
		bool active = device->ports[i].state == IBV_PORT_ACTIVE;

		to->put(to, "port", "%u is %s", i + 1, active ? "active" : "down");
		if (active)
			health = 0;
	}
	return health;
}

static void inspect_profile(const struct sim_profile *profile, const struct polycm_report *to)
{
	char missing[1024];

	to->put(to, "looks like", "%s", profile->path);
	sim_profile_missing(profile, missing, sizeof(missing));
	if (*missing)
		to->put(to, "not given there", "%s", missing);
}

int sim_nic_inspect(const char *name, const struct polycm_report *to)
{
	const struct sim_device *device = find(name);
	bool frozen;
	int health;

	if (!device || device->removed)
		return -ENODEV;
	frozen = sim_node_is_frozen(device->node);
	if (device->profile)
		inspect_profile(device->profile, to);
	to->put(to, "node", "%s%s", device->node->name, frozen ? ", which is frozen" : "");
	health = inspect_ports(device, to);
	to->put(to, "contexts", "%u", device->contexts);
	nic_show_objects(device, to);
	return frozen ? -EHOSTDOWN : health;
}
