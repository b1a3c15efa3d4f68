/* SPDX-License-Identifier: BSD-2-Clause */
/* scenario_host.c - scenario files: interfaces and routes of a node. */
#include "config.h"

#include <string.h>

#include "providers/soft/fabric/build.h"
#include "scenario_internal.h"

/* Both kinds of groups have two texts, and both texts are needed. */
struct two_texts {
	const char *first, *second;
};

struct kind {
	const char *what, *name, *needs;
	struct scenario_member members[2];
	int (*build)(struct sim_node *node, const char *first, const char *second,
		     const char **ret_why);
};

#define MEMBERS(first_name, second_name)                                                           \
	{                                                                                          \
		SCENARIO_MEMBER_AS(first_name, struct two_texts, first, SCENARIO_TEXT),            \
		SCENARIO_MEMBER_AS(second_name, struct two_texts, second, SCENARIO_TEXT),          \
	}

static const struct kind interface_kind = {
	.what = "an interface",
	.name = "interface",
	.needs = "an interface needs a name and an address",
	.members = MEMBERS("name", "address"),
	.build = sim_build_interface,
};

static const struct kind route_kind = {
	.what = "a route",
	.name = "route to",
	.needs = "a route needs `to' and `source'",
	.members = MEMBERS("to", "source"),
	.build = sim_build_route,
};

static int build(const struct scenario *scenario, const config_setting_t *group,
		 const struct kind *kind, struct sim_node *node)
{
	struct two_texts text = { 0 };
	const char *why = NULL;
	int r;

	r = scenario_read_group(scenario, group, kind->what, kind->members, &text);
	if (r < 0)
		return r;
	if (!text.first || !text.second)
		return scenario_error(scenario, group, "%s", kind->needs);
	r = kind->build(node, text.first, text.second, &why);
	if (r < 0)
		(void)scenario_error(scenario, group, "%s \"%.50s\": %s", kind->name, text.first,
				     why ? why : strerror(-r));
	return r;
}

static int build_interface(const struct scenario *scenario, const config_setting_t *group, void *node)
{
	return build(scenario, group, &interface_kind, node);
}

static int build_route(const struct scenario *scenario, const config_setting_t *group, void *node)
{
	return build(scenario, group, &route_kind, node);
}

int scenario_build_host(const struct scenario *scenario, struct sim_node *node,
			const config_setting_t *interfaces, const config_setting_t *routes)
{
	int r = scenario_for_each(scenario, interfaces, build_interface, node);

	if (r < 0)
		return r;
	node->described = routes != NULL;
	return scenario_for_each(scenario, routes, build_route, node);
}
