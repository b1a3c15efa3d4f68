/* SPDX-License-Identifier: BSD-2-Clause */
/* effects/fault.c - a group of a file's `faults' becomes a rule. */
#include "config.h"

#include <errno.h>

#include "effects_internal.h"
#include "providers/soft/faults/fault.h"

/* The rule, and what is not a member of the rule as it stands in the file. */
struct text {
	struct polycm_sim_fault_rule rule;
	const char *action, *from, *to, *on;
	config_setting_t *reason, *error;
	unsigned int value;
};

#define RULE(name, member, kind) SCENARIO_MEMBER_AS(name, struct text, rule.member, kind)

static const struct scenario_member members[] = {
	SCENARIO_MEMBER(struct text, action, SCENARIO_TEXT),
	SCENARIO_MEMBER(struct text, from, SCENARIO_TEXT),
	SCENARIO_MEMBER(struct text, to, SCENARIO_TEXT),
	RULE("message", message, SCENARIO_TEXT),
	RULE("nth", nth, SCENARIO_COUNT),
	RULE("times", times, SCENARIO_COUNT),
	RULE("probability", probability, SCENARIO_CHANCE),
	RULE("after", from_ns, SCENARIO_TIME),
	RULE("until", until_ns, SCENARIO_TIME),
	SCENARIO_MEMBER(struct text, on, SCENARIO_TEXT),
	RULE("device", device, SCENARIO_TEXT),
	RULE("delay", delay_ns, SCENARIO_TIME),
	RULE("count", count, SCENARIO_COUNT),
	SCENARIO_MEMBER(struct text, reason, SCENARIO_ANY),
	SCENARIO_MEMBER(struct text, error, SCENARIO_ANY),
	RULE("offset", offset, SCENARIO_INT),
	SCENARIO_MEMBER(struct text, value, SCENARIO_COUNT),
	RULE("address", address, SCENARIO_TEXT),
	RULE("new_address", new_address, SCENARIO_TEXT),
};

static int set_reason(const struct scenario *scenario, struct text *text)
{
	int value, r;

	if (text->reason) {
		r = scenario_read_reason(scenario, text->reason, &value);
		if (r < 0)
			return r;
		text->rule.reason = (uint16_t)value;
	}
	return text->error ? scenario_read_errno(scenario, text->error, &text->rule.error) : 0;
}

static int set_node(const struct scenario *scenario, const config_setting_t *group,
		    const char *member, const char *name, struct polycm_sim_node **ret_node)
{
	struct sim_node *node;
	int r;

	if (!name)
		return 0;
	r = effects_node(scenario, config_setting_get_member(group, member), name, &node);
	if (!r)
		*ret_node = (struct polycm_sim_node *)node;
	return r;
}

static int set_nodes(const struct scenario *scenario, const config_setting_t *group,
		     struct text *text)
{
	int r = set_node(scenario, group, "from", text->from, &text->rule.from);

	if (!r)
		r = set_node(scenario, group, "to", text->to, &text->rule.to);
	return r < 0 ? r : set_node(scenario, group, "on", text->on, &text->rule.on);
}

static int set_action(const struct scenario *scenario, const config_setting_t *group,
		      struct text *text)
{
	const config_setting_t *setting;

	if (!text->action)
		return scenario_error(scenario, group, "a fault needs an action, such as \"lose\"");
	text->rule.action = sim_action_of(text->action);
	if (text->rule.action)
		return 0;
	setting = config_setting_get_member(group, "action");
	return scenario_error(scenario, setting, "%s: no such action%s", scenario_show(setting),
			      sim_action_hint(text->action));
}

/* The setting that a refused rule is reported at: its message, if that is unknown. */
static const config_setting_t *blame(const config_setting_t *group, const char *message)
{
	if (message && !sim_what_mask(message))
		return config_setting_get_member(group, "message");
	return group;
}

/* A timed action that names no node is for the only node, if there is one only. */
static void set_only_node(struct polycm_sim_fault_rule *rule)
{
	struct sim_node *first = sim_first_node();

	if (rule->action >= POLYCM_SIM_FREEZE && !rule->on && !rule->from && !rule->message &&
	    first && !first->next)
		rule->on = (struct polycm_sim_node *)first;
}

int sim_effects_fault(const struct scenario *scenario, const config_setting_t *group, void *unused)
{
	struct text text = { .rule = { .size = sizeof(text.rule) } };
	struct polycm_sim_fault_rule *rule = &text.rule;
	uint32_t number;
	char why[1000];
	int r;

	(void)unused;
	r = scenario_read_group(scenario, group, "a fault", members, &text);
	if (!r)
		r = set_action(scenario, group, &text);
	if (!r)
		r = set_reason(scenario, &text);
	if (!r)
		r = set_nodes(scenario, group, &text);
	if (r < 0)
		return r;
	if (rule->probability == 0 && config_setting_get_member(group, "probability"))
		return scenario_error(scenario, group, "probability = 0: a fault that never happens");
	if (!rule->nth && config_setting_get_member(group, "nth"))
		return scenario_error(scenario, group, "nth = 0: they are counted from 1");
	if (text.value > UINT8_MAX)
		return scenario_error(scenario, group, "value = %u: expected a byte, 0 to 255",
				      text.value);
	rule->value = (uint8_t)text.value;
	set_only_node(rule);
	r = sim_fault_add(rule, &number, why, sizeof(why));
	if (r == -EINVAL)
		return scenario_error(scenario, blame(group, rule->message), "this fault: %s", why);
	if (!r)
		sim_fault_set_place(number, scenario->path, config_setting_source_line(group));
	return r;
}
