/* SPDX-License-Identifier: BSD-2-Clause */
/* effects/link.c - a group of a file's `links' becomes the settings of links. */
#include "config.h"

#include <errno.h>
#include <string.h>

#include "effects_internal.h"
#include "providers/soft/link/shape.h"

struct link_text {
	config_setting_t *between;
	struct polycm_sim_link link;
};

#define LINK(name, member, kind) SCENARIO_MEMBER_AS(name, struct link_text, link.member, kind)

static const struct scenario_member link_members[] = {
	SCENARIO_MEMBER(struct link_text, between, SCENARIO_ANY),
	LINK("latency", latency_ns, SCENARIO_TIME),
	LINK("jitter", jitter_ns, SCENARIO_TIME),
	LINK("bandwidth", bandwidth, SCENARIO_RATE),
	LINK("loss", loss, SCENARIO_CHANCE),
	LINK("duplication", duplication, SCENARIO_CHANCE),
	LINK("reordering", reordering, SCENARIO_CHANCE),
};

/* Both NULL: all nodes. */
static int find_ends(const struct scenario *scenario, const config_setting_t *between,
		     struct sim_node *ends[2])
{
	const config_setting_t *end;
	const char *name;
	int r;

	ends[0] = ends[1] = NULL;
	if (!between)
		return 0;
	if (!config_setting_is_aggregate(between) || config_setting_length(between) != 2)
		return scenario_error(scenario, between, "%s: expected two nodes: [ \"a\", \"b\" ]",
				      scenario_show(between));
	for (unsigned int i = 0; i < 2; i++) {
		end = config_setting_get_elem(between, i);
		name = config_setting_get_string(end);
		if (name && !strcmp(name, "*"))
			continue;
		r = effects_node(scenario, end, name, &ends[i]);
		if (r < 0)
			return r;
	}
	return 0;
}

int sim_effects_link(const struct scenario *scenario, const config_setting_t *group, void *unused)
{
	struct link_text text = {
		.link = { .size = sizeof(text.link), .latency_ns = SIM_LINK_LATENCY },
	};
	struct sim_node *ends[2];
	char why[120];
	int r;

	(void)unused;
	r = scenario_read_group(scenario, group, "a link", link_members, &text);
	if (!r)
		r = find_ends(scenario, text.between, ends);
	if (r < 0)
		return r;
	r = sim_shape_set(ends[0], ends[1], &text.link, why, sizeof(why));
	if (r == -EINVAL)
		return scenario_error(scenario, group, "this link: %s", why);
	return r;
}
