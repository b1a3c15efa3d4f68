/* SPDX-License-Identifier: BSD-2-Clause */
/* explore_read.c - the scenario file's group `explore': bounds, and faults that are given. */
#include "config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "include/programs.h"
#include "providers/soft/faults/fault_internal.h"
#include "providers/soft/wire/mad.h"
#include "explore.h"
#include "explore_internal.h"

/* ------------------------------------------------------------------------
 * Faults that are given.
 */

struct text {
	const char *action, *message, *from, *on;
	unsigned int value;
	config_setting_t *reason;
	struct explore_given given;
};

#define GIVEN(name, member, kind) SCENARIO_MEMBER_AS(name, struct text, given.member, kind)
/* The actions that can be given. */
#define ACTIONS (BIT(POLYCM_SIM_LOSE) | BIT(POLYCM_SIM_DELAY) | BIT(POLYCM_SIM_DUPLICATE) | \
		 BIT(POLYCM_SIM_REORDER) | BIT(POLYCM_SIM_CORRUPT) | BIT(POLYCM_SIM_REJECT) | \
		 BIT(POLYCM_SIM_FREEZE) | BIT(POLYCM_SIM_CRASH) | BIT(POLYCM_SIM_PORT_DOWN) | \
		 BIT(POLYCM_SIM_REMOVE_DEVICE))

static const struct scenario_member fault_members[] = {
	SCENARIO_MEMBER(struct text, action, SCENARIO_TEXT),
	SCENARIO_MEMBER(struct text, message, SCENARIO_TEXT),
	SCENARIO_MEMBER(struct text, from, SCENARIO_TEXT),
	SCENARIO_MEMBER(struct text, on, SCENARIO_TEXT),
	GIVEN("nth", nth, SCENARIO_COUNT),
	GIVEN("fabric", fabric, SCENARIO_COUNT),
	SCENARIO_MEMBER(struct text, value, SCENARIO_COUNT),
	GIVEN("offset", does.rule.offset, SCENARIO_INT),
	SCENARIO_MEMBER(struct text, reason, SCENARIO_ANY),
	GIVEN("delay", does.rule.delay_ns, SCENARIO_TIME),
};

/* The one kind of message that a name stands for; -1: none, or several. */
static int kind_of(const char *name)
{
	uint64_t kinds = name ? sim_what_mask(name) & PACKET_MASK : 0;

	return kinds && !(kinds & (kinds - 1)) ? __builtin_ctzll(kinds) : -1;
}

static int check_fault(const struct scenario *scenario, const config_setting_t *group,
		       const struct text *text)
{
	const struct explore_given *given = &text->given;

	if (kind_of(text->message) < 0 || !given->nth || !text->from ||
	    strlen(text->from) >= sizeof(given->from) ||
	    (text->on && strlen(text->on) >= sizeof(given->on)) ||
	    given->does.rule.delay_ns > SIM_LONGEST || text->value > UINT8_MAX ||
	    given->does.rule.offset < 0)
		return scenario_error(scenario, group, "an explored fault needs one message, from "
				      "and nth");
	if (!(ACTIONS & BIT(given->does.rule.action)))
		return scenario_error(scenario, group, "an explored fault's action is lose, delay, "
				      "duplicate, reorder, corrupt, reject, freeze, crash, port_down "
				      "or remove_device");
	return 0;
}

static int read_fault(const struct scenario *scenario, const config_setting_t *group, void *unused)
{
	struct text text = { .given = { .fabric = 1 } };
	struct explore_given *given;
	int r, reason = CM_REJ_CONSUMER_DEFINED;

	(void)unused;
	r = scenario_read_group(scenario, group, "an explored fault", fault_members, &text);
	if (!r && text.reason)
		r = scenario_read_reason(scenario, text.reason, &reason);
	if (r < 0)
		return r;
	text.given.does.rule.action = text.action ? sim_action_of(text.action) : 0;
	r = check_fault(scenario, group, &text);
	if (r < 0)
		return r;
	given = malloc(sizeof(*given));
	if (!given)
		return -ENOMEM;
	*given = text.given;
	given->what = (enum sim_what)kind_of(text.message);
	given->does.rule.reason = (uint16_t)reason;
	given->does.rule.value = (uint8_t)text.value;
	strcpy(given->from, text.from);
	strcpy(given->on, text.on ? text.on : text.from);
	given->does.on = given->on;
	given->next = explore_givens;
	explore_givens = given;
	return 0;
}

static void forget(struct explore_given *list)
{
	struct explore_given *given;

	while ((given = list)) {
		list = given->next;
		free(given);
	}
}

/* ------------------------------------------------------------------------
 * Bounds.
 */

/* A group's bounds, and its members that are no plain values. */
struct bounds {
	struct explore_bounds of;
	config_setting_t *messages, *reasons, *faults, *data, *nodes;
	uint64_t until;
	unsigned int preemptions;	/* the launcher's (tools/system_preempt.c) */
};

#define BOUND(bound, its_kind)                                                                     \
	{ .name = #bound, .kind = (its_kind), .offset = offsetof(struct bounds, of.bound) }

static const struct scenario_member members[] = {
	BOUND(loss, SCENARIO_CHANCE),
	BOUND(duplication, SCENARIO_CHANCE),
	BOUND(reordering, SCENARIO_CHANCE),
	BOUND(lateness, SCENARIO_CHANCE),
	BOUND(rejection, SCENARIO_CHANCE),
	BOUND(delay, SCENARIO_TIME),
	BOUND(most, SCENARIO_COUNT),
	SCENARIO_MEMBER(struct bounds, messages, SCENARIO_ANY),
	SCENARIO_MEMBER(struct bounds, reasons, SCENARIO_ANY),
	SCENARIO_MEMBER(struct bounds, until, SCENARIO_TIME),
	SCENARIO_MEMBER(struct bounds, preemptions, SCENARIO_COUNT),
	SCENARIO_MEMBER(struct bounds, data, SCENARIO_GROUP),
	SCENARIO_MEMBER(struct bounds, nodes, SCENARIO_GROUP),
	SCENARIO_MEMBER(struct bounds, faults, SCENARIO_LIST),
};

static const struct scenario_member data_members[] = {
	BOUND(loss, SCENARIO_CHANCE),
	BOUND(duplication, SCENARIO_CHANCE),
	BOUND(reordering, SCENARIO_CHANCE),
	BOUND(lateness, SCENARIO_CHANCE),
	BOUND(rejection, SCENARIO_CHANCE),
	BOUND(corruption, SCENARIO_CHANCE),
	BOUND(delay, SCENARIO_TIME),
	BOUND(most, SCENARIO_COUNT),
	SCENARIO_MEMBER(struct bounds, messages, SCENARIO_ANY),
};

static const struct scenario_member node_members[] = {
	SCENARIO_MEMBER(struct explore_node_bounds, port_down, SCENARIO_CHANCE),
	SCENARIO_MEMBER(struct explore_node_bounds, freeze, SCENARIO_CHANCE),
	SCENARIO_MEMBER(struct explore_node_bounds, crash, SCENARIO_CHANCE),
	SCENARIO_MEMBER(struct explore_node_bounds, removal, SCENARIO_CHANCE),
	SCENARIO_MEMBER(struct explore_node_bounds, delay, SCENARIO_TIME),
	SCENARIO_MEMBER(struct explore_node_bounds, most, SCENARIO_COUNT),
};

static int refuse_message(const struct scenario *scenario, const config_setting_t *messages,
			  const char *name, uint64_t among)
{
	uint64_t other = sim_what_mask(name);
	const char *what = among == DATA_MASK ? "message of data" : "message";

	if (other & (CALL_MASK | LOOKUP_MASK))
		return scenario_error(scenario, messages, "messages: '%.40s' is a %s, and no %s%s",
				      name, other & CALL_MASK ? "call" : "lookup", what,
				      sim_what_hint("", among));
	return scenario_error(scenario, messages, "messages: there is no %s '%.40s'%s", what, name,
			      sim_what_hint(other ? "" : name, among));
}

/* One, or several. */
static int read_messages(const struct scenario *scenario, const config_setting_t *messages,
			 uint64_t among, uint64_t *ret_mask)
{
	bool several = config_setting_is_aggregate(messages);
	int num = several ? config_setting_length(messages) : 1;
	const char *name;
	uint64_t kinds;

	*ret_mask = 0;
	for (int i = 0; i < num; i++) {
		name = several ? config_setting_get_string_elem(messages, i) :
				 config_setting_get_string(messages);
		kinds = name ? sim_what_mask(name) & among : 0;
		if (!kinds && name)
			return refuse_message(scenario, messages, name, among);
		if (!kinds)
			return scenario_error(scenario, messages, "messages: expected names of "
					      "messages, such as \"cm\" or [ \"REQ\", \"REP\" ]");
		*ret_mask |= kinds;
	}
	return 0;
}

/* One, or several. */
static int read_reasons(const struct scenario *scenario, const config_setting_t *given,
			struct explore_bounds *bounds)
{
	int num = config_setting_is_aggregate(given) ? config_setting_length(given) : -1, r, reason;

	if (!num || num > (int)EXPLORE_REASONS)
		return scenario_error(scenario, given, "reasons: expected 1 to %u of them",
				      EXPLORE_REASONS);
	bounds->num_reasons = num < 0 ? 1 : (unsigned int)num;
	for (unsigned int i = 0; i < bounds->num_reasons; i++) {
		r = scenario_read_reason(scenario,
					 num < 0 ? given : config_setting_get_elem(given, i), &reason);
		if (r < 0)
			return r;
		bounds->reasons[i] = (uint16_t)reason;
	}
	return 0;
}

static int check_delay(const struct scenario *scenario, const config_setting_t *group, uint64_t delay)
{
	return delay > SIM_LONGEST ?
	       scenario_error(scenario, group, "a delay of more than 73 years") : 0;
}

/* The members that are no plain values. */
static int read_bounds(const struct scenario *scenario, const config_setting_t *group,
		       struct bounds *bounds, uint64_t among)
{
	int r = check_delay(scenario, group, bounds->of.delay);

	if (!r && bounds->messages)
		r = read_messages(scenario, bounds->messages, among, &bounds->of.mask);
	return !r && bounds->reasons ? read_reasons(scenario, bounds->reasons, &bounds->of) : r;
}

static int read_data(const struct scenario *scenario, const config_setting_t *group,
		     struct explore_bounds *data)
{
	struct bounds bounds = { .of = *data };
	int r;

	r = scenario_read_group(scenario, group, "data", data_members, &bounds);
	if (!r)
		r = read_bounds(scenario, group, &bounds, DATA_MASK);
	*data = bounds.of;
	return r;
}

static int read_nodes(const struct scenario *scenario, const config_setting_t *group,
		      struct explore_node_bounds *bounds)
{
	int r = scenario_read_group(scenario, group, "nodes", node_members, bounds);

	return r < 0 ? r : check_delay(scenario, group, bounds->delay);
}

static int read_limits(const struct scenario *scenario, const config_setting_t *group,
		       struct bounds *bounds, struct explore_limits *limits)
{
	int r;

	r = scenario_read_group(scenario, group, "explore", members, bounds);
	if (!r)
		r = read_bounds(scenario, group, bounds, PACKET_MASK);
	if (!r && bounds->data)
		r = read_data(scenario, bounds->data, &limits->data);
	if (!r && bounds->nodes)
		r = read_nodes(scenario, bounds->nodes, &limits->nodes);
	limits->cm = bounds->of;
	limits->until = bounds->until;
	return r;
}

/*
 * What is decided about a node is for all processes, as a rule of the file is: each needs the NIC
 * thread.  It does in the runs that repeat this one, too, whichever faults they have.
 */
static bool touches_nodes(const struct explore_node_bounds *nodes)
{
	return sim_fabric_is_shared() && (nodes->port_down > 0 || nodes->freeze > 0 ||
					  nodes->crash > 0 || nodes->removal > 0);
}

int sim_explore_read(const struct scenario *scenario, const config_setting_t *group)
{
	struct explore_limits limits = explore_limits;
	struct explore_given *before = explore_givens;
	struct bounds bounds = { .of = limits.cm, .until = limits.until };
	int r;

	explore_givens = NULL;
	r = read_limits(scenario, group, &bounds, &limits);
	if (!r)
		r = scenario_for_each(scenario, bounds.faults, read_fault, NULL);
	if (r < 0 || !sim_explore_listening) {
		forget(explore_givens);
		explore_givens = before;
		return r;
	}
	forget(before);
	if (bounds.faults)
		sim_explore_attend();
	explore_limits = limits;
	return touches_nodes(&limits.nodes) ? sim_engine_need_thread() : 0;
}

int sim_explore_check_pause(const struct scenario *scenario, const config_setting_t *programs)
{
	const uint64_t pause = SIM_MS(PROGRAMS_PAUSE_S * 1000);

	if (explore_limits.cm.delay <= pause && explore_limits.data.delay <= pause &&
	    explore_limits.nodes.delay <= pause)
		return 0;
	return scenario_error(scenario, programs, "the last program begins %u s after the others have "
			      "ended, and no fault may last longer: lower `delay' in `explore'",
			      PROGRAMS_PAUSE_S);
}
