/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fault_deed.c - what rules do to nodes and devices.  It is done by a timer of
 * its own, never from inside the code that the rule matched, which may be in
 * the middle of the very node's work.
 */
#include "config.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "build.h"
#include "fault_internal.h"
#include "trace.h"
#include "world.h"

struct deed {
	struct sim_timer timer;
	struct deed *next, **link;
	struct sim_fault *fault;
	struct sim_node *node;
	enum polycm_sim_action action;
};

/* A node whose listeners take no request. */
struct full {
	struct full *next;
	const struct sim_node *node;
	uint64_t until;
};

static struct deed *deeds;
static struct full *fulls;

bool fault_is_deed(enum polycm_sim_action action)
{
	return action >= POLYCM_SIM_FREEZE;
}

bool fault_deeds_left(void)
{
	return deeds || fulls;
}

static void finish(struct deed *deed)
{
	struct sim_fault *fault = deed->fault;

	*deed->link = deed->next;
	if (deed->next)
		deed->next->link = deed->link;
	sim_timer_disarm(&deed->timer);
	free(deed);
	if (!--fault->deeds && fault->removed)
		fault_free(fault);
}

static int fill_backlog(const struct sim_node *node, uint64_t for_ns)
{
	uint64_t until = for_ns ? sim_now() + for_ns : SIM_NEVER;
	struct full *full;

	for (full = fulls; full; full = full->next)
		if (full->node == node)
			break;
	if (!full) {
		full = calloc(1, sizeof(*full));
		if (!full)
			return -ENOMEM;
		full->node = node;
		full->next = fulls;
		fulls = full;
	}
	if (until > full->until)
		full->until = until;
	return 0;
}

bool sim_fault_ask_backlog(const struct sim_node *node)
{
	for (const struct full *full = fulls; full; full = full->next)
		if (full->node == node)
			return full->until > sim_now();
	return false;
}

/* The port to be changed is the device's first. */
static int change_device(const struct deed *deed)
{
	struct sim_device *device = sim_device_by_name(deed->node, deed->fault->rule.device);

	if (!device)
		return -ENODEV;
	if (deed->action == POLYCM_SIM_REMOVE_DEVICE)
		sim_device_remove(device);
	else
		sim_port_set_state(&device->ports[0], deed->action == POLYCM_SIM_PORT_UP);
	return 0;
}

static int carry_out(const struct deed *deed)
{
	const struct polycm_sim_fault_rule *rule = &deed->fault->rule;

	switch (deed->action) {
	case POLYCM_SIM_FREEZE:
		sim_node_freeze(deed->node, rule->delay_ns);
		return 0;
	case POLYCM_SIM_CRASH:
		sim_node_crash(deed->node);
		return 0;
	case POLYCM_SIM_PORT_DOWN:
	case POLYCM_SIM_PORT_UP:
	case POLYCM_SIM_REMOVE_DEVICE:
		return change_device(deed);
	case POLYCM_SIM_CHANGE_ADDRESS:
		return sim_node_change_address(deed->node, rule->address, rule->new_address);
	case POLYCM_SIM_CHANGE_MAC:
		return sim_node_change_mac(deed->node, rule->address);
	case POLYCM_SIM_FULL_BACKLOG:
		return fill_backlog(deed->node, rule->delay_ns);
	default:
		return -EINVAL;
	}
}

static void fire(struct sim_timer *timer)
{
	struct deed *deed = (struct deed *)((char *)timer - offsetof(struct deed, timer));
	struct sim_fault *fault = deed->fault;
	int r;

	sim_trace("fault", "\"rule\":%u,\"action\":\"%s\",\"node\":\"%s\"", fault->number,
		  sim_action_name(deed->action), deed->node->name);
	r = carry_out(deed);
	if (r < 0)
		sim_core->log(POLYCM_LOG_WARN, NULL, "fault rule %u: %s of node %s: %s",
			      fault->number, sim_action_name(deed->action), deed->node->name,
			      strerror(-r));
	else if (deed->action == fault->rule.action)
		fault->hits++;
	if (!r && deed->action == POLYCM_SIM_PORT_DOWN && fault->rule.delay_ns) {
		deed->action = POLYCM_SIM_PORT_UP;
		sim_timer_arm(&deed->timer, sim_now() + fault->rule.delay_ns);
		return;
	}
	finish(deed);
}

int fault_deed_start(struct sim_fault *fault, struct sim_node *node, uint64_t deadline)
{
	struct deed *deed = calloc(1, sizeof(*deed));

	if (!deed)
		return -ENOMEM;
	deed->fault = fault;
	deed->node = node;
	deed->action = fault->rule.action;
	deed->next = deeds;
	deed->link = &deeds;
	if (deeds)
		deeds->link = &deed->next;
	deeds = deed;
	fault->deeds++;
	sim_timer_init(&deed->timer, fire);
	sim_timer_arm(&deed->timer, deadline);
	return 0;
}

/* What has begun comes to its end; what only waits for its time does not happen. */
void fault_deeds_of_removed(struct sim_fault *fault)
{
	struct deed *deed, *next;

	for (deed = deeds; deed; deed = next) {
		next = deed->next;
		if (deed->fault == fault && !fault->mask && deed->action == fault->rule.action)
			finish(deed);
	}
}

void fault_deeds_close(void)
{
	struct full *full;

	while (deeds)
		finish(deeds);
	while ((full = fulls)) {
		fulls = full->next;
		free(full);
	}
}
