/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * read.c - rules from text: the groups of a scenario file's `faults', read by
 * the simulator's reader, with those members that need no wire.
 */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "providers/common/core.h"
#include "providers/common/fault_names.h"
#include "providers/common/scenario_read.h"
#include "fault.h"

#define EVENT_BITS (~UINT64_C(0) << FAULT_EVENTS)
#define CALL_BITS (~EVENT_BITS)
#define ALL_BITS (BIT(FAULT_WHATS) - 1)
#define EVENT_BIT(type) BIT(fault_of_event(RDMA_CM_EVENT_##type))
/* What these have beside numbers cannot be made up. */
#define BOUND_BITS (EVENT_BIT(CONNECT_REQUEST) | EVENT_BIT(MULTICAST_JOIN) | \
		    EVENT_BIT(MULTICAST_ERROR))
#define REASON_CONSUMER 28
#define REASON_ECE 35
/* The simulator's actions, for a better word than "no such action". */
#define WIRE_ACTION(name) (sim_action_of(name) != 0)

/* The rule, and what is not a member of the rule as it stands in the file. */
struct text {
	struct fault_rule rule;
	const char *action, *message, *event, *data;
	config_setting_t *reason, *error, *status;
};

#define RULE(name, member, kind) SCENARIO_MEMBER_AS(name, struct text, rule.member, kind)

static const struct scenario_member members[] = {
	SCENARIO_MEMBER(struct text, action, SCENARIO_TEXT),
	SCENARIO_MEMBER(struct text, message, SCENARIO_TEXT),
	RULE("nth", nth, SCENARIO_COUNT),
	RULE("times", times, SCENARIO_COUNT),
	RULE("probability", probability, SCENARIO_CHANCE),
	RULE("after", after_ns, SCENARIO_TIME),
	RULE("until", until_ns, SCENARIO_TIME),
	RULE("delay", delay_ns, SCENARIO_TIME),
	SCENARIO_MEMBER(struct text, error, SCENARIO_ANY),
	SCENARIO_MEMBER(struct text, reason, SCENARIO_ANY),
	SCENARIO_MEMBER(struct text, status, SCENARIO_ANY),
	SCENARIO_MEMBER(struct text, event, SCENARIO_TEXT),
	SCENARIO_MEMBER(struct text, data, SCENARIO_TEXT),
};

static const char *const action_names[] = {
	[FAULT_FAIL] = "fail", [FAULT_DELAY] = "delay", [FAULT_LOSE] = "lose",
	[FAULT_CHANGE] = "change",
};

#define NUM(array) ((unsigned int)(sizeof(array) / sizeof((array)[0])))

static const config_setting_t *member(const config_setting_t *group, const char *name)
{
	const config_setting_t *setting = config_setting_get_member(group, name);

	return setting ? setting : group;
}

static int set_action(const struct scenario *scenario, const config_setting_t *group,
		      const struct text *text, struct fault_rule *rule)
{
	const config_setting_t *at = member(group, "action");

	for (unsigned int i = FAULT_FAIL; text->action && i < NUM(action_names); i++)
		if (!strcasecmp(action_names[i], text->action))
			rule->action = (enum fault_action)i;
	if (rule->action)
		return 0;
	if (!text->action)
		return scenario_error(scenario, at, "a fault needs an action, such as \"fail\"");
	if (WIRE_ACTION(text->action))
		return scenario_error(scenario, at, "%s needs a simulated wire: here are \"fail\", "
				      "\"delay\", \"lose\" and \"change\"", scenario_show(at));
	return scenario_error(scenario, at, "%s: no such action%s", scenario_show(at),
			      sim_hint(text->action, action_names, NUM(action_names)));
}

static int set_what(const struct scenario *scenario, const config_setting_t *group,
		    const struct text *text, struct fault_rule *rule)
{
	const config_setting_t *at = member(group, "message");
	int what = text->message ? fault_what_of(text->message) : -1;

	if (!text->message)
		return scenario_error(scenario, at, "a fault needs a message, such as \"connect\" or "
				      "\"ESTABLISHED\"");
	if (!strcasecmp(text->message, "calls"))
		rule->what = CALL_BITS;
	else if (!strcasecmp(text->message, "events"))
		rule->what = EVENT_BITS & (BIT(FAULT_WHATS) - 1);
	else if (what >= 0)
		rule->what = BIT(what);
	else if (sim_what_mask(text->message) & CALL_MASK)
		return scenario_error(scenario, at, "%s: only the simulator can let that fail%s",
				      scenario_show(at), fault_hint("", CALL_BITS));
	else if (sim_what_mask(text->message))
		return scenario_error(scenario, at, "%s needs a simulated wire: here are calls and "
				      "events%s", scenario_show(at), fault_hint("", ALL_BITS));
	else
		return scenario_error(scenario, at, "%s: no such call or event%s",
				      scenario_show(at), fault_hint(text->message, ALL_BITS));
	return 0;
}

static int set_status(const struct scenario *scenario, const struct text *text,
		      struct fault_rule *rule)
{
	bool call = rule->what & CALL_BITS;
	int r, value;

	if (text->reason) {
		r = scenario_read_reason(scenario, text->reason, &value);
		if (r < 0)
			return r;
		if (!call && rule->what != EVENT_BIT(REJECTED))
			return scenario_error(scenario, text->reason, "%s: REJECTED has a reason, "
					      "others a status", scenario_show(text->reason));
		if (call && value != REASON_CONSUMER && value != REASON_ECE)
			return scenario_error(scenario, text->reason, "%s: a program rejects with 28 "
					      "or 35", scenario_show(text->reason));
		rule->reason = value == REASON_CONSUMER ? 0 : (uint8_t)value;
		rule->status = value;
		rule->has_status = true;
	}
	if (!text->status)
		return 0;
	if (text->reason || call)
		return scenario_error(scenario, text->status, "%s: a reason is said already, or "
				      "needed", scenario_show(text->status));
	rule->has_status = true;
	if (config_setting_type(text->status) == CONFIG_TYPE_INT) {
		rule->status = config_setting_get_int(text->status);
		return 0;
	}
	r = scenario_read_errno(scenario, text->status, &value);
	rule->status = -value;
	return r;
}

static int set_change(const struct scenario *scenario, const config_setting_t *group,
		      const struct text *text, struct fault_rule *rule)
{
	const config_setting_t *at = member(group, "event");
	int what = text->event ? fault_what_of(text->event) : -1;

	if (rule->what & CALL_BITS && rule->what != BIT(FAULT_reject))
		return scenario_error(scenario, member(group, "message"), "%s: what it says cannot be "
				      "changed; events and \"reject\" can",
				      scenario_show(member(group, "message")));
	if (text->event) {
		if (what < 0)
			return scenario_error(scenario, at, "%s: no such event%s", scenario_show(at),
					      fault_hint(text->event, EVENT_BITS & ~BOUND_BITS));
		if (what < FAULT_EVENTS || BIT(what) & BOUND_BITS || rule->what & CALL_BITS ||
		    rule->what & BOUND_BITS)
			return scenario_error(scenario, at, "%s: no event that another can become",
					      scenario_show(at));
		rule->type = (enum rdma_cm_event_type)(what - FAULT_EVENTS);
		rule->has_type = true;
	}
	if (text->data && strlen(text->data) > UINT8_MAX)
		return scenario_error(scenario, member(group, "data"), "private data has up to 255 "
				      "bytes");
	if (text->data) {
		rule->has_data = true;
		rule->data_len = (uint8_t)strlen(text->data);
		memcpy(rule->data, text->data, rule->data_len);
	}
	return 0;
}

/* Members that would be without effect are mistakes. */
static int check(const struct scenario *scenario, const config_setting_t *group,
		 const struct text *text, const struct fault_rule *rule)
{
	const struct {
		const char *name;
		bool given;
		enum fault_action action;
	} goes[] = {
		{ "error", text->error, FAULT_FAIL },
		{ "delay", rule->delay_ns, FAULT_DELAY },
		{ "event", text->event, FAULT_CHANGE },
		{ "data", text->data, FAULT_CHANGE },
		{ "reason", text->reason, FAULT_CHANGE },
		{ "status", text->status, FAULT_CHANGE },
	};

	for (unsigned int i = 0; i < NUM(goes); i++)
		if (goes[i].given && goes[i].action != rule->action)
			return scenario_error(scenario, member(group, goes[i].name),
					      "%s goes with \"%s\"", goes[i].name,
					      action_names[goes[i].action]);
	if (rule->action == FAULT_FAIL && rule->what & EVENT_BITS)
		return scenario_error(scenario, group, "events do not fail: \"lose\", or \"change\" "
				      "their status");
	if (rule->action == FAULT_LOSE && rule->what & CALL_BITS)
		return scenario_error(scenario, group, "calls are not lost: let them \"fail\"");
	if (rule->action == FAULT_DELAY && !rule->delay_ns)
		return scenario_error(scenario, group, "a delay needs a time: delay = \"5 ms\"");
	if (rule->action == FAULT_CHANGE && !text->event && !text->status && !text->reason &&
	    !text->data)
		return scenario_error(scenario, group, "a change of nothing: say event, status, "
				      "reason or data");
	if (rule->probability == 0)
		return scenario_error(scenario, group, "probability = 0: a fault that never happens");
	return 0;
}

static int add_rule(const struct scenario *scenario, const config_setting_t *group, void *unused)
{
	struct text text = { .rule = { .probability = 1, .error = ENOMEM } };
	struct fault_rule *rule = &text.rule;
	int r;

	(void)unused;
	r = scenario_read_group(scenario, group, "a fault", members, &text);
	if (!r)
		r = set_action(scenario, group, &text, rule);
	if (!r)
		r = set_what(scenario, group, &text, rule);
	if (!r && text.error)
		r = scenario_read_errno(scenario, text.error, &rule->error);
	if (!r)
		r = check(scenario, group, &text, rule);
	if (!r && rule->action == FAULT_CHANGE)
		r = set_change(scenario, group, &text, rule);
	if (!r && rule->action == FAULT_CHANGE)
		r = set_status(scenario, &text, rule);
	if (r)
		return r;
	rule->file = scenario->path;
	rule->line = config_setting_source_line(group);
	return fault_rules_add(rule);
}

int fault_read(const char *name, const char *rules)
{
	static const struct scenario_member top[] = {
		{ .name = "faults", .kind = SCENARIO_LIST, .offset = 0 },
	};
	struct scenario scenario = { .path = name };
	config_setting_t *list = NULL;
	char *text = NULL;
	int r;

	if (rules && asprintf(&text, "faults = ( %s );", rules) < 0)
		return -ENOMEM;
	r = scenario_open(&scenario, text, text ? strlen(text) : 0);
	if (!r)
		r = scenario_read_group(&scenario, config_root_setting(&scenario.config),
					"a file of faults", top, &list);
	if (!r)
		r = scenario_for_each(&scenario, list, add_rule, NULL);
	config_destroy(&scenario.config);
	free(text);
	return r;
}
