/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * scenario.c - scenario files: their top level and nodes.
 */
#include "config.h"

#include <errno.h>
#include <string.h>

#include "providers/soft/effects/effects.h"
#include "providers/soft/fabric/build.h"
#include "device.h"
#include "explore.h"
#include "scenario.h"
#include "scenario_internal.h"

struct top {
	config_setting_t *nodes, *links, *faults, *explore, *programs;
	config_setting_t *preemptions;	/* the launcher's (tools/system_preempt.c) */
	uint64_t seed;
	const char *clock;
	bool tcp;			/* likewise (tools/system_carrier.c) */
	const char *file;		/* from which this one was made: messages name it */
};

static const struct scenario_member top_members[] = {
	SCENARIO_MEMBER(struct top, seed, SCENARIO_NUMBER),
	SCENARIO_MEMBER(struct top, clock, SCENARIO_TEXT),
	SCENARIO_MEMBER(struct top, tcp, SCENARIO_FLAG),
	SCENARIO_MEMBER(struct top, file, SCENARIO_TEXT),
	SCENARIO_MEMBER(struct top, nodes, SCENARIO_LIST),
	SCENARIO_MEMBER(struct top, links, SCENARIO_LIST),
	SCENARIO_MEMBER(struct top, faults, SCENARIO_LIST),
	SCENARIO_MEMBER(struct top, explore, SCENARIO_GROUP),
	SCENARIO_MEMBER(struct top, preemptions, SCENARIO_LIST),
	SCENARIO_MEMBER(struct top, programs, SCENARIO_LIST),
};

static int read_top(const struct scenario *scenario, struct top *ret_top)
{
	const config_setting_t *root = config_root_setting(&scenario->config), *clock;
	int r;

	memset(ret_top, 0, sizeof(*ret_top));
	r = scenario_read_group(scenario, root, "a scenario", top_members, ret_top);
	if (r < 0 || !ret_top->clock)
		return r;
	clock = config_setting_get_member(root, "clock");
	if (strcmp(ret_top->clock, "virtual") && strcmp(ret_top->clock, "real"))
		return scenario_error(scenario, clock, "%s: expected \"virtual\" or \"real\"",
				      scenario_show(clock));
	return 0;
}

/* ------------------------------------------------------------------------
 * Nodes.
 */

struct device_text {
	const char *transport, *device;
	config_setting_t *addresses, *limits;
};

static const struct scenario_member device_members[] = {
	SCENARIO_MEMBER(struct device_text, transport, SCENARIO_TEXT),
	SCENARIO_MEMBER(struct device_text, device, SCENARIO_TEXT),
	SCENARIO_MEMBER(struct device_text, addresses, SCENARIO_ANY),
	SCENARIO_MEMBER(struct device_text, limits, SCENARIO_GROUP),
};

#define LIMIT(member) SCENARIO_MEMBER(struct polycm_sim_limits, member, SCENARIO_COUNT)

static const struct scenario_member limit_members[] = {
	LIMIT(max_qp), LIMIT(max_cq), LIMIT(max_cqe), LIMIT(max_mr), LIMIT(max_pd), LIMIT(max_srq),
	LIMIT(max_ah), LIMIT(max_qp_wr), LIMIT(max_sge), LIMIT(max_responder_resources),
	LIMIT(max_initiator_depth), LIMIT(max_mcast_grp),
};

static int failed(const struct scenario *scenario, const config_setting_t *at, int r,
		  const char *why)
{
	if (r < 0)
		(void)scenario_error(scenario, at, "%s: %s", scenario_show(at),
				     why ? why : strerror(-r));
	return r;
}

/* The i-th of an array or list of texts, or the only one; NULL: there are no more. */
static const config_setting_t *nth_text(const config_setting_t *setting, unsigned int i)
{
	if (!config_setting_is_aggregate(setting))
		return i ? NULL : setting;
	return config_setting_get_elem(setting, i);
}

static int check_addresses(const struct scenario *scenario, const config_setting_t *device,
			   const config_setting_t *addresses)
{
	const config_setting_t *address;
	unsigned int i;

	if (!addresses)
		return scenario_error(scenario, device, "a device needs addresses");
	for (i = 0; (address = nth_text(addresses, i)); i++)
		if (!config_setting_get_string(address))
			return scenario_error(scenario, address, "%s: expected an address such as "
					      "\"10.0.0.1/24\"", scenario_show(address));
	return i ? 0 : scenario_error(scenario, addresses, "a device needs addresses");
}

static int read_profile(const struct scenario *scenario, const config_setting_t *group,
			const char *name, struct sim_profile *ret_profile)
{
	const config_setting_t *at = config_setting_get_member(group, "device");
	char why[DEVICE_WHY];
	int r = device_profile(name, ret_profile, why);

	if (r < 0)
		(void)scenario_error(scenario, at, "%s: %s", scenario_show(at), why);
	return r;
}

static int build_device(const struct scenario *scenario, const config_setting_t *group, void *node)
{
	struct polycm_sim_limits limits = { .size = sizeof(limits) };
	struct device_text text = { .transport = NULL };
	const config_setting_t *address;
	struct sim_profile profile;
	struct sim_device *device;
	const char *why = NULL;
	int r;

	r = scenario_read_group(scenario, group, "a device", device_members, &text);
	if (!r)
		r = check_addresses(scenario, group, text.addresses);
	if (!r && text.limits)
		r = scenario_read_group(scenario, text.limits, "limits", limit_members, &limits);
	if (!r && text.device)
		r = read_profile(scenario, group, text.device, &profile);
	if (r < 0)
		return r;
	if (!text.transport && !text.device)
		text.transport = "roce";
	if (text.transport && !sim_core->transport(text.transport))
		return scenario_error(scenario, config_setting_get_member(group, "transport"),
				      "no installed provider has the rules of transport \"%.40s\"",
				      text.transport);
	address = nth_text(text.addresses, 0);
	r = sim_build_device(node, text.transport, config_setting_get_string(address),
			     text.device ? &profile : NULL, text.limits ? &limits : NULL, &device,
			     &why);
	for (unsigned int i = 1; !r && (address = nth_text(text.addresses, i)); i++)
		r = sim_build_address(device, config_setting_get_string(address), &why);
	return failed(scenario, address ? address : group, r, why);
}

struct node_text {
	const char *name;
	config_setting_t *devices, *interfaces, *routes;
};

static const struct scenario_member node_members[] = {
	SCENARIO_MEMBER(struct node_text, name, SCENARIO_TEXT),
	SCENARIO_MEMBER(struct node_text, devices, SCENARIO_LIST),
	SCENARIO_MEMBER(struct node_text, interfaces, SCENARIO_LIST),
	SCENARIO_MEMBER(struct node_text, routes, SCENARIO_LIST),
};

static int build_node(const struct scenario *scenario, const config_setting_t *group, void *unused)
{
	struct node_text text = { 0 };
	const char *why = NULL;
	struct sim_node *node;
	int r;

	(void)unused;
	r = scenario_read_group(scenario, group, "a node", node_members, &text);
	if (r < 0)
		return r;
	if (!text.name)
		return scenario_error(scenario, group, "a node needs a name");
	if (!text.devices || !config_setting_length(text.devices))
		return scenario_error(scenario, group, "node \"%.40s\" needs devices", text.name);
	r = sim_build_node(text.name, &node, &why);
	if (r < 0)
		return failed(scenario, config_setting_get_member(group, "name"), r, why);
	r = scenario_for_each(scenario, text.devices, build_device, node);
	return r < 0 ? r : scenario_build_host(scenario, node, text.interfaces, text.routes);
}

/* ------------------------------------------------------------------------
 * All of it.
 */

static int open_top(struct scenario *scenario, const char *text, size_t len, struct top *ret_top)
{
	int r = scenario_open(scenario, text, len);

	if (r < 0)
		return r;
	(void)config_lookup_string(&scenario->config, "file", &scenario->path);
	return read_top(scenario, ret_top);
}

static int build(const struct scenario *scenario, const struct top *top)
{
	int r;

	r = scenario_for_each(scenario, top->nodes, build_node, NULL);
	if (!r)
		r = scenario_for_each(scenario, top->links, sim_effects_link, NULL);
	if (!r)
		r = scenario_for_each(scenario, top->faults, sim_effects_fault, NULL);
	if (!r && top->explore)
		r = sim_explore_read(scenario, top->explore);
	/* The run that they are from had it; their places are counted with what it does. */
	if (!r && top->preemptions && config_setting_length(top->preemptions))
		sim_explore_attend();
	if (!r && top->programs)
		r = scenario_check_programs(scenario, top->programs);
	return r;
}

int sim_scenario_build(const char *name, const char *text, size_t len)
{
	struct scenario scenario = { .path = name };
	struct top top;
	int r;

	r = open_top(&scenario, text, len, &top);
	if (!r)
		r = build(&scenario, &top);
	config_destroy(&scenario.config);
	return r;
}

int sim_scenario_peek(const char *path, struct sim_scenario_head *ret_head)
{
	struct scenario scenario = { .path = path };
	const config_setting_t *root;
	struct top top;
	int r;

	r = open_top(&scenario, NULL, 0, &top);
	if (!r) {
		root = config_root_setting(&scenario.config);
		*ret_head = (struct sim_scenario_head){
			.has_seed = config_setting_get_member(root, "seed") != NULL,
			.has_clock = top.clock != NULL,
			.has_nodes = top.nodes && config_setting_length(top.nodes),
			.seed = top.seed,
			.clock = top.clock && *top.clock == 'v' ? SIM_CLOCK_VIRTUAL :
								  SIM_CLOCK_REAL,
		};
	}
	config_destroy(&scenario.config);
	return r;
}
