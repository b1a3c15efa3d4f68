/* SPDX-License-Identifier: BSD-2-Clause */
/* scenario_fault.c - a group of a scenario file's `faults' becomes a rule. */
#include "config.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "providers/soft/faults/fault.h"
#include "providers/soft/wire/mad.h"
#include "scenario_internal.h"

struct text {
	const char *from, *to, *message, *action, *on, *device, *address, *new_address;
	config_setting_t *reason, *error;
	uint64_t after, until, delay;
	unsigned int nth, times, count, value;
	int offset;
	double probability;
};

static const struct scenario_member members[] = {
	SCENARIO_MEMBER(struct text, action, SCENARIO_TEXT),
	SCENARIO_MEMBER(struct text, from, SCENARIO_TEXT),
	SCENARIO_MEMBER(struct text, to, SCENARIO_TEXT),
	SCENARIO_MEMBER(struct text, message, SCENARIO_TEXT),
	SCENARIO_MEMBER(struct text, nth, SCENARIO_COUNT),
	SCENARIO_MEMBER(struct text, times, SCENARIO_COUNT),
	SCENARIO_MEMBER(struct text, probability, SCENARIO_CHANCE),
	SCENARIO_MEMBER(struct text, after, SCENARIO_TIME),
	SCENARIO_MEMBER(struct text, until, SCENARIO_TIME),
	SCENARIO_MEMBER(struct text, on, SCENARIO_TEXT),
	SCENARIO_MEMBER(struct text, device, SCENARIO_TEXT),
	SCENARIO_MEMBER(struct text, delay, SCENARIO_TIME),
	SCENARIO_MEMBER(struct text, count, SCENARIO_COUNT),
	SCENARIO_MEMBER(struct text, reason, SCENARIO_ANY),
	SCENARIO_MEMBER(struct text, error, SCENARIO_ANY),
	SCENARIO_MEMBER(struct text, offset, SCENARIO_INT),
	SCENARIO_MEMBER(struct text, value, SCENARIO_COUNT),
	SCENARIO_MEMBER(struct text, address, SCENARIO_TEXT),
	SCENARIO_MEMBER(struct text, new_address, SCENARIO_TEXT),
};

static int set_reason(const struct scenario *scenario, const struct text *text,
		      struct polycm_sim_fault_rule *rule)
{
	int value, r;

	if (text->reason) {
		r = scenario_read_reason(scenario, text->reason, &value);
		if (r < 0)
			return r;
		rule->reason = (uint16_t)value;
	}
	return text->error ? scenario_read_errno(scenario, text->error, &rule->error) : 0;
}

static int set_nodes(const struct scenario *scenario, const config_setting_t *group,
		     struct polycm_sim_fault_rule *rule)
{
	const struct {
		const char *member;
		struct polycm_sim_node **node;
	} places[] = {
		{ "from", &rule->from },
		{ "to", &rule->to },
		{ "on", &rule->on },
	};
	const config_setting_t *setting;
	struct sim_node *node;
	int r;

	for (unsigned int i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		setting = config_setting_get_member(group, places[i].member);
		if (!setting)
			continue;
		r = scenario_node(scenario, setting, config_setting_get_string(setting), &node);
		if (r < 0)
			return r;
		*places[i].node = (struct polycm_sim_node *)node;
	}
	return 0;
}

static int set_action(const struct scenario *scenario, const config_setting_t *group,
		      const struct text *text, struct polycm_sim_fault_rule *rule)
{
	const config_setting_t *setting;

	if (!text->action)
		return scenario_error(scenario, group, "a fault needs an action, such as \"lose\"");
	rule->action = sim_action_of(text->action);
	if (rule->action)
		return 0;
	setting = config_setting_get_member(group, "action");
	return scenario_error(scenario, setting, "%s: no such action%s", scenario_show(setting),
			      sim_action_hint(text->action));
}

/* Where the line is that a rule is refused for: of its message, if that is unknown. */
static const config_setting_t *blame(const config_setting_t *group, const char *message)
{
	if (message && !sim_what_mask(message))
		return config_setting_get_member(group, "message");
	return group;
}

/* The host does something at a time where there is no other node to do it. */
static void set_only_node(const struct text *text, struct polycm_sim_fault_rule *rule)
{
	struct sim_node *first = sim_first_node();

	if (rule->action >= POLYCM_SIM_FREEZE && !rule->on && !rule->from && !text->message &&
	    first && !first->next)
		rule->on = (struct polycm_sim_node *)first;
}

int scenario_add_fault(const struct scenario *scenario, const config_setting_t *group)
{
	struct polycm_sim_fault_rule rule = { .size = sizeof(rule) };
	struct text text = { 0 };
	uint32_t number;
	char why[1000];
	int r;

	r = scenario_read_group(scenario, group, "a fault", members,
				sizeof(members) / sizeof(members[0]), &text);
	if (!r)
		r = set_action(scenario, group, &text, &rule);
	if (!r)
		r = set_reason(scenario, &text, &rule);
	if (!r)
		r = set_nodes(scenario, group, &rule);
	if (r < 0)
		return r;
	if (text.probability == 0 && config_setting_get_member(group, "probability"))
		return scenario_error(scenario, group, "probability = 0: a fault that never happens");
	if (!text.nth && config_setting_get_member(group, "nth"))
		return scenario_error(scenario, group, "nth = 0: they are counted from 1");
	if (text.value > UINT8_MAX)
		return scenario_error(scenario, group, "value = %u: expected a byte, 0 to 255",
				      text.value);
	rule.message = text.message;
	rule.nth = text.nth;
	rule.times = text.times;
	rule.probability = text.probability;
	rule.from_ns = text.after;
	rule.until_ns = text.until;
	rule.device = text.device;
	rule.delay_ns = text.delay;
	rule.count = text.count;
	rule.offset = text.offset;
	rule.value = (uint8_t)text.value;
	rule.address = text.address;
	rule.new_address = text.new_address;
	set_only_node(&text, &rule);
	r = sim_fault_add(&rule, &number, why, sizeof(why));
	if (r == -EINVAL)
		return scenario_error(scenario, blame(group, text.message), "this fault: %s", why);
	if (!r)
		sim_fault_set_place(number, scenario->path, config_setting_source_line(group));
	return r;
}
