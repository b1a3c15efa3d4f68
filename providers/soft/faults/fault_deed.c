/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * faults/fault_deed.c - what rules do to nodes and devices.  It is done by a timer of
 * its own, never from inside the code that the rule matched, which may be in
 * the middle of the very node's work.
 *
 * On a shared fabric all processes do it: what is due at a time those that have
 * the same file do by themselves, all else is told when the rule comes true.
 */
#include "config.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "providers/soft/fabric/build.h"
#include "providers/soft/fabric/world.h"
#include "providers/soft/trace/trace.h"
#include "fault_internal.h"

struct deed {
	struct sim_timer timer;
	struct deed *next, **link;
	struct sim_fault *fault;	/* NULL: another process's */
	struct sim_node *node;		/* NULL: of the reserve, and free */
	struct sim_change change;
	uint64_t number;		/* all were told; 0: not yet, or not at all */
	bool done;			/* what is left is that it ends */
	bool reserved;
};

/*
 * Where the system has no memory: what another process has told is done once, and
 * nobody tells it again.  So many changes are told at a time, and most are over at once.
 */
static struct deed reserve[SIM_CHANGES];

static struct deed *deeds;
static unsigned int num_full;		/* nodes whose listeners took no request at some time */

bool fault_is_deed(enum polycm_sim_action action)
{
	return action >= POLYCM_SIM_FREEZE;
}

bool fault_deeds_left(void)
{
	return deeds || num_full;
}

static void deed_free(struct deed *deed)
{
	if (deed->reserved)
		deed->node = NULL;
	else
		free(deed);
}

static void finish(struct deed *deed)
{
	struct sim_fault *fault = deed->fault;

	*deed->link = deed->next;
	if (deed->next)
		deed->next->link = deed->link;
	sim_timer_disarm(&deed->timer);
	deed_free(deed);
	if (fault && !--fault->deeds && fault->removed)
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
static int change_device(const struct deed *deed, enum polycm_sim_action action)
{
	struct sim_device *device = sim_device_by_name(deed->node, text_of(deed->change.device));

	if (!device)
		return -ENODEV;
	if (action == POLYCM_SIM_REMOVE_DEVICE)
		sim_device_remove(device);
	else
		sim_port_set_state(&device->ports[0], action == POLYCM_SIM_PORT_UP);
	return 0;
}

static int carry_out(const struct deed *deed)
{
	const struct sim_change *change = &deed->change;

	/* Before we came. */
	if (sim_change_is_over(change, sim_changes_joined()))
		return 0;
	switch (change->action) {
	case POLYCM_SIM_FREEZE:
		sim_node_freeze_until(deed->node, sim_change_end(change));
		return 0;
	case POLYCM_SIM_CRASH:
		sim_node_crash(deed->node);
		return 0;
	case POLYCM_SIM_PORT_DOWN:
	case POLYCM_SIM_PORT_UP:
	case POLYCM_SIM_REMOVE_DEVICE:
		return change_device(deed, change->action);
	case POLYCM_SIM_CHANGE_ADDRESS:
		return sim_node_change_address(deed->node, text_of(change->address),
					       text_of(change->new_address));
	case POLYCM_SIM_CHANGE_MAC:
		return sim_node_change_mac(deed->node, change->address);
	case POLYCM_SIM_FULL_BACKLOG:
		fill_backlog(deed->node, sim_change_end(change));
		return 0;
	default:
		return -EINVAL;
	}
}

static void trace(const struct deed *deed, enum polycm_sim_action action)
{
	/* Another process's is in its own trace. */
	if (deed->fault)
		sim_trace("fault", "\"rule\":%u,\"action\":\"%s\",\"node\":\"%s\"",
			  deed->fault->number, sim_action_name(action), deed->node->name);
}

static void end(struct deed *deed)
{
	trace(deed, POLYCM_SIM_PORT_UP);
	(void)change_device(deed, POLYCM_SIM_PORT_UP);
	finish(deed);
}

static void perform(struct deed *deed)
{
	const struct sim_change *change = &deed->change;
	int r;

	deed->done = true;
	trace(deed, change->action);
	r = carry_out(deed);
	if (r < 0)
		sim_core->log(deed->fault || r == -ENOMEM ? POLYCM_LOG_WARN : POLYCM_LOG_DEBUG, NULL,
			      "fault rule %u: %s of node %s: %s", change->rule,
			      sim_action_name(change->action), deed->node->name, strerror(-r));
	else if (deed->fault)
		deed->fault->hits++;
	if (!r && change->action == POLYCM_SIM_PORT_DOWN && sim_change_end(change) != SIM_NEVER)
		sim_timer_arm(&deed->timer, sim_change_end(change));
	else
		finish(deed);
}

static struct deed *find(uint64_t number)
{
	struct deed *deed = deeds;

	while (deed && deed->number != number)
		deed = deed->next;
	return deed;
}

/* Does every process of the fabric do it by itself? */
static bool is_everybodys(const struct deed *deed)
{
	return !deed->fault->mask && deed->fault->where && sim_scenario_is_shared();
}

static void tell(struct deed *deed)
{
	if (sim_fabric_is_shared() && !deed->number && !is_everybodys(deed))
		deed->number = sim_changes_tell(&deed->change);
}

static void fire(struct sim_timer *timer)
{
	struct deed *deed = sim_container(timer, struct deed, timer);
	uint64_t number;

	if (deed->done) {
		end(deed);
		return;
	}
	tell(deed);
	number = deed->number;
	if (!number) {
		perform(deed);
		return;
	}
	/* What others told before comes first. */
	sim_changes_read();
	deed = find(number);
	if (deed && !deed->done)
		perform(deed);
}

static struct deed *deed_alloc(void)
{
	struct deed *deed = calloc(1, sizeof(*deed));

	for (unsigned int i = 0; !deed && i < SIM_CHANGES; i++) {
		if (reserve[i].node)
			continue;
		deed = &reserve[i];
		*deed = (struct deed){ .reserved = true };
	}
	return deed;
}

static struct deed *make(struct sim_node *node)
{
	struct deed *deed = deed_alloc();

	if (!deed)
		return NULL;
	deed->node = node;
	deed->next = deeds;
	deed->link = &deeds;
	if (deeds)
		deeds->link = &deed->next;
	deeds = deed;
	sim_timer_init(&deed->timer, fire);
	return deed;
}

static void copy_text(char to[SIM_CHANGE_TEXT], const char *text)
{
	snprintf(to, SIM_CHANGE_TEXT, "%s", text ? text : "");
}

static struct deed *start(struct sim_fault *fault, struct sim_node *node, uint64_t at)
{
	const struct polycm_sim_fault_rule *rule = &fault->rule;
	struct deed *deed = make(node);

	if (!deed)
		return NULL;
	deed->fault = fault;
	fault->deeds++;
	deed->change = (struct sim_change){
		.action = rule->action,
		.rule = fault->number,
		.node = node->number,
		.at = at,
		.delay = rule->delay_ns,
	};
	copy_text(deed->change.device, rule->device);
	copy_text(deed->change.address, rule->address);
	copy_text(deed->change.new_address, rule->new_address);
	sim_timer_arm(&deed->timer, at);
	return deed;
}

int fault_deed_start(struct sim_fault *fault, struct sim_node *node)
{
	struct deed *deed = start(fault, node, sim_now());

	if (!deed)
		return -ENOMEM;
	tell(deed);
	return 0;
}

int fault_deed_schedule(struct sim_fault *fault)
{
	return start(fault, fault_on(fault), fault_deadline(fault->rule.from_ns)) ? 0 : -ENOMEM;
}

void sim_fault_change(uint64_t number, const struct sim_change *change)
{
	struct deed *deed = find(number);
	struct sim_node *node;

	if (deed) {
		if (!deed->done)
			perform(deed);
		return;
	}
	node = sim_node_by_number(change->node);
	if (!node || !fault_is_deed(change->action) || !sim_action_name(change->action)) {
		sim_core->log(POLYCM_LOG_DEBUG, NULL,
			      "what another process did to a node is not done here");
		return;
	}
	deed = make(node);
	if (!deed) {
		sim_core->log(POLYCM_LOG_ERROR, NULL, "what another process did to node %s is not "
			      "done here: out of memory", node->name);
		return;
	}
	deed->number = number;
	deed->change = *change;
	perform(deed);
}

/* What has begun comes to its end; what only waits for its time does not happen. */
void fault_deeds_of_removed(struct sim_fault *fault)
{
	struct deed *deed, *next;

	for (deed = deeds; deed; deed = next) {
		next = deed->next;
		if (deed->fault == fault && !fault->mask && !deed->done)
			finish(deed);
	}
}

void fault_deeds_close(void)
{
	while (deeds)
		finish(deeds);
	for (struct sim_node *node = sim_first_node(); node; node = node->next)
		node->full_until = 0;
	num_full = 0;
}
