/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * faults/fault_action.c - actions of rules on nodes and devices.  A timer carries an
 * action out, never the code that the rule matched: that code may be working on the
 * same node.
 *
 * On a shared fabric all processes carry the action out.  If the rule is from a common
 * file and acts at a time, each process does so by itself.  Otherwise the process whose
 * rule matches writes the action into the segment (changes.h).
 */
#include "config.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "providers/soft/fabric/build.h"
#include "providers/soft/fabric/world.h"
#include "providers/soft/trace/trace.h"
#include "fault_internal.h"

struct action {
	struct sim_timer timer;
	struct action *prev, *next;
	struct sim_fault *fault;	/* NULL: another process's */
	struct sim_node *node;		/* NULL: of the reserve, and free */
	struct sim_change change;
	uint64_t number;		/* in the segment; 0: it is not there, or not yet */
	bool done;			/* only its end is left */
	bool reserved;
};

/*
 * For the case that the system has no memory: a change of another process is read only
 * once, so it must not fail.  The segment has this many, and most end at once.
 */
static struct action reserve[SIM_CHANGES];

static struct action *actions;
static unsigned int num_full;		/* nodes whose listeners took no request at some time */

bool fault_is_node_action(enum polycm_sim_action action)
{
	return action >= POLYCM_SIM_FREEZE;
}

bool fault_actions_left(void)
{
	return actions || num_full;
}

static void action_free(struct action *action)
{
	if (action->reserved)
		action->node = NULL;
	else
		free(action);
}

static void finish(struct action *action)
{
	struct sim_fault *fault = action->fault;

	DL_DELETE(actions, action);
	sim_timer_disarm(&action->timer);
	action_free(action);
	if (fault && !--fault->actions && fault->removed)
		fault_free(fault);
}

static void fill_backlog(struct sim_node *node, uint64_t until)
{
	num_full += !node->full_until;
	if (until > node->full_until)
		node->full_until = until;
	fault_update_on();
}

bool sim_fault_ask_backlog(const struct sim_node *node)
{
	return node->full_until > sim_now();
}

static const char *text_of(const char text[SIM_CHANGE_TEXT])
{
	return *text ? text : NULL;
}

/* The port to be changed is the device's first. */
static int change_device(const struct action *action, enum polycm_sim_action type)
{
	struct sim_device *device = sim_device_by_name(action->node, text_of(action->change.device));

	if (!device)
		return -ENODEV;
	if (type == POLYCM_SIM_REMOVE_DEVICE)
		sim_device_remove(device);
	else
		sim_port_set_state(&device->ports[0], type == POLYCM_SIM_PORT_UP);
	return 0;
}

static int carry_out(const struct action *action)
{
	const struct sim_change *change = &action->change;

	/* It was over before this process joined. */
	if (sim_change_is_over(change, sim_changes_joined()))
		return 0;
	switch (change->action) {
	case POLYCM_SIM_FREEZE:
		sim_node_freeze_until(action->node, sim_change_end(change));
		return 0;
	case POLYCM_SIM_CRASH:
		sim_node_freeze_until(action->node, SIM_NEVER);
		return 0;
	case POLYCM_SIM_PORT_DOWN:
	case POLYCM_SIM_PORT_UP:
	case POLYCM_SIM_REMOVE_DEVICE:
		return change_device(action, change->action);
	case POLYCM_SIM_CHANGE_ADDRESS:
		return sim_node_change_address(action->node, text_of(change->address),
					       text_of(change->new_address));
	case POLYCM_SIM_CHANGE_MAC:
		return sim_node_change_mac(action->node, change->address);
	case POLYCM_SIM_FULL_BACKLOG:
		fill_backlog(action->node, sim_change_end(change));
		return 0;
	default:
		return -EINVAL;
	}
}

static void trace(const struct action *action, enum polycm_sim_action type)
{
	/* Another process's is in its own trace. */
	if (action->fault)
		sim_trace("fault", "\"rule\":%u,\"action\":\"%s\",\"node\":\"%s\"",
			  action->fault->number, sim_action_name(type), action->node->name);
}

static void end(struct action *action)
{
	trace(action, POLYCM_SIM_PORT_UP);
	(void)change_device(action, POLYCM_SIM_PORT_UP);
	finish(action);
}

static void perform(struct action *action)
{
	const struct sim_change *change = &action->change;
	int r;

	action->done = true;
	sim_settle();		/* what was received before goes as things were then */
	trace(action, change->action);
	r = carry_out(action);
	if (r < 0)
		sim_core->log(action->fault || r == -ENOMEM ? POLYCM_LOG_WARN : POLYCM_LOG_DEBUG, NULL,
			      "fault rule %u: %s of node %s: %s", change->rule,
			      sim_action_name(change->action), action->node->name, strerror(-r));
	else if (action->fault)
		action->fault->hits++;
	if (!r && change->action == POLYCM_SIM_PORT_DOWN && sim_change_end(change) != SIM_NEVER)
		sim_timer_arm(&action->timer, sim_change_end(change));
	else
		finish(action);
}

static struct action *find(uint64_t number)
{
	struct action *action;

	DL_SEARCH_SCALAR(actions, action, number, number);
	return action;
}

/* Does every process of the fabric carry it out by itself? */
static bool is_everybodys(const struct action *action)
{
	return !action->fault->mask && action->fault->where && sim_scenario_is_shared();
}

static void tell(struct action *action)
{
	if (sim_fabric_is_shared() && !action->number && !is_everybodys(action))
		action->number = sim_changes_tell(&action->change);
}

static void fire(struct sim_timer *timer)
{
	struct action *action = sim_container(timer, struct action, timer);
	uint64_t number;

	if (action->done) {
		end(action);
		return;
	}
	tell(action);
	number = action->number;
	if (!number) {
		perform(action);
		return;
	}
	/* Changes that other processes wrote before come first. */
	sim_changes_read();
	action = find(number);
	if (action && !action->done)
		perform(action);
}

static struct action *action_alloc(void)
{
	struct action *action = calloc(1, sizeof(*action));

	for (unsigned int i = 0; !action && i < SIM_CHANGES; i++) {
		if (reserve[i].node)
			continue;
		action = &reserve[i];
		*action = (struct action){ .reserved = true };
	}
	return action;
}

static struct action *make(struct sim_node *node)
{
	struct action *action = action_alloc();

	if (!action)
		return NULL;
	action->node = node;
	DL_PREPEND(actions, action);
	sim_timer_init(&action->timer, fire);
	return action;
}

static void copy_text(char to[SIM_CHANGE_TEXT], const char *text)
{
	snprintf(to, SIM_CHANGE_TEXT, "%s", text ? text : "");
}

static struct action *start(struct sim_fault *fault, struct sim_node *node, uint64_t at)
{
	const struct polycm_sim_fault_rule *rule = &fault->rule;
	struct action *action = make(node);

	if (!action)
		return NULL;
	action->fault = fault;
	fault->actions++;
	action->change = (struct sim_change){
		.action = rule->action,
		.rule = fault->number,
		.node = node->number,
		.at = at,
		.delay = rule->delay_ns,
	};
	copy_text(action->change.device, rule->device);
	copy_text(action->change.address, rule->address);
	copy_text(action->change.new_address, rule->new_address);
	sim_timer_arm(&action->timer, at);
	return action;
}

int fault_action_start(struct sim_fault *fault, struct sim_node *node)
{
	struct action *action = start(fault, node, sim_now());

	if (!action)
		return -ENOMEM;
	tell(action);
	return 0;
}

int fault_action_schedule(struct sim_fault *fault)
{
	return start(fault, fault_on(fault), fault_deadline(fault->rule.from_ns)) ? 0 : -ENOMEM;
}

void sim_fault_change(uint64_t number, const struct sim_change *change)
{
	struct action *action = find(number);
	struct sim_node *node;

	if (action) {
		if (!action->done)
			perform(action);
		return;
	}
	node = sim_node_by_number(change->node);
	if (!node || !fault_is_node_action(change->action) || !sim_action_name(change->action)) {
		sim_core->log(POLYCM_LOG_DEBUG, NULL,
			      "what another process did to a node is not done here");
		return;
	}
	action = make(node);
	if (!action) {
		sim_core->log(POLYCM_LOG_ERROR, NULL, "what another process did to node %s is not "
			      "done here: out of memory", node->name);
		return;
	}
	action->number = number;
	action->change = *change;
	perform(action);
}

/* Actions that have begun go on to their end; those that wait for their time are dropped. */
void fault_actions_of_removed(struct sim_fault *fault)
{
	struct action *action, *next;

	DL_FOREACH_SAFE(actions, action, next) {
		if (action->fault == fault && !fault->mask && !action->done)
			finish(action);
	}
}

void fault_actions_close(void)
{
	while (actions)
		finish(actions);
	for (struct sim_node *node = sim_first_node(); node; node = node->next)
		node->full_until = 0;
	num_full = 0;
}
