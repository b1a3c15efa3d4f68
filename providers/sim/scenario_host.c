/* SPDX-License-Identifier: BSD-2-Clause */
/* scenario_host.c - scenario files: what a node is as a host, besides its devices. */
#include "config.h"

#include <errno.h>
#include <string.h>

#include "providers/soft/fabric/build.h"
#include "scenario_internal.h"

#define NUM(members) ((unsigned int)(sizeof(members) / sizeof((members)[0])))

struct interface_text {
	const char *name, *address;
};

static const struct scenario_member interface_members[] = {
	SCENARIO_MEMBER(struct interface_text, name, SCENARIO_TEXT),
	SCENARIO_MEMBER(struct interface_text, address, SCENARIO_TEXT),
};

static int build_interface(const struct scenario *scenario, struct sim_node *node,
			   const config_setting_t *group)
{
	struct interface_text text = { 0 };
	const char *why = NULL;
	int r;

	r = scenario_read_group(scenario, group, "an interface", interface_members,
				NUM(interface_members), &text);
	if (r < 0)
		return r;
	if (!text.name || !text.address)
		return scenario_error(scenario, group, "an interface needs a name and an address");
	r = sim_build_interface(node, text.name, text.address, &why);
	if (r < 0)
		(void)scenario_error(scenario, group, "interface \"%.40s\": %s", text.name,
				     why ? why : strerror(-r));
	return r;
}

int scenario_build_interfaces(const struct scenario *scenario, struct sim_node *node,
			      const config_setting_t *interfaces)
{
	int r = 0;

	for (int i = 0; interfaces && !r && i < config_setting_length(interfaces); i++)
		r = build_interface(scenario, node,
				    config_setting_get_elem(interfaces, (unsigned int)i));
	return r;
}

struct route_text {
	const char *to, *source;
};

static const struct scenario_member route_members[] = {
	SCENARIO_MEMBER(struct route_text, to, SCENARIO_TEXT),
	SCENARIO_MEMBER(struct route_text, source, SCENARIO_TEXT),
};

static int build_route(const struct scenario *scenario, struct sim_node *node,
		       const config_setting_t *group)
{
	struct route_text text = { 0 };
	const char *why = NULL;
	int r;

	r = scenario_read_group(scenario, group, "a route", route_members, NUM(route_members),
				&text);
	if (r < 0)
		return r;
	if (!text.to || !text.source)
		return scenario_error(scenario, group, "a route needs `to' and `source'");
	r = sim_build_route(node, text.to, text.source, &why);
	if (r < 0)
		(void)scenario_error(scenario, group, "route to \"%.50s\": %s", text.to,
				     why ? why : strerror(-r));
	return r;
}

int scenario_build_routes(const struct scenario *scenario, struct sim_node *node,
			  const config_setting_t *routes)
{
	int r = 0;

	node->described = routes != NULL;
	for (int i = 0; routes && !r && i < config_setting_length(routes); i++)
		r = build_route(scenario, node, config_setting_get_elem(routes, (unsigned int)i));
	return r;
}
