/* SPDX-License-Identifier: BSD-2-Clause */
/* effects/effects.c - files that have nothing but links and faults; and names of nodes. */
#include "config.h"

#include <errno.h>
#include <string.h>

#include "effects_internal.h"
#include "providers/soft/fabric/build.h"

struct top {
	config_setting_t *links, *faults;
};

static const struct scenario_member members[] = {
	SCENARIO_MEMBER(struct top, links, SCENARIO_LIST),
	SCENARIO_MEMBER(struct top, faults, SCENARIO_LIST),
};

int effects_node(const struct scenario *scenario, const config_setting_t *at, const char *name,
		  struct sim_node **ret_node)
{
	char names[200];

	*ret_node = name ? sim_node_by_name(name) : NULL;
	if (*ret_node)
		return 0;
	sim_list_nodes(names, sizeof(names));
	return scenario_error(scenario, at, "%s: expected the name of a node: %s",
			      scenario_show(at), names);
}

int sim_effects_read(const char *path)
{
	struct scenario scenario = { .path = path };
	struct top top = { 0 };
	int r;

	r = scenario_open(&scenario, NULL, 0);
	if (!r)
		r = scenario_read_group(&scenario, config_root_setting(&scenario.config),
					"a scenario without nodes", members, &top);
	if (!r)
		r = scenario_for_each(&scenario, top.links, sim_effects_link, NULL);
	if (!r)
		r = scenario_for_each(&scenario, top.faults, sim_effects_fault, NULL);
	config_destroy(&scenario.config);
	return r;
}
