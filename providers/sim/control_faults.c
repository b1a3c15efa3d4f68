/* SPDX-License-Identifier: BSD-2-Clause */
/* control_faults.c - the calls of <polycm/sim.h> about fault rules. */
#include "config.h"

#include <errno.h>
#include <string.h>

#include "providers/soft/faults/fault.h"
#include "control.h"

#define FAULT_ADD "polycm_sim_fault_add"
#define FAULT_REMOVE "polycm_sim_fault_remove"
#define FAULT_HITS "polycm_sim_fault_hits"

/* Replace a handle by its node; NULL stays. */
static int replace(struct polycm_sim_node **handle)
{
	struct sim_node *node;
	int r;

	if (!*handle)
		return 0;
	r = control_node(FAULT_ADD, *handle, &node);
	if (!r)
		*handle = (struct polycm_sim_node *)node;
	return r;
}

static int add(struct polycm_sim_fault_rule *rule, struct polycm_sim_fault **ret_fault)
{
	char why[1000] = "";
	uint32_t number;
	int r;

	r = replace(&rule->from);
	if (!r)
		r = replace(&rule->to);
	if (!r)
		r = replace(&rule->on);
	if (!r)
		r = control_needs_fabric(FAULT_ADD);
	if (r < 0)
		return r;
	r = sim_fault_add(rule, &number, why, sizeof(why));
	if (r < 0 && *why)
		control_refuse(FAULT_ADD, "", why);
	if (!r && ret_fault)
		*ret_fault = sim_handle(SIM_HANDLE_FAULT, number);
	return r;
}

int control_fault_add(const struct polycm_sim_fault_rule *given,
		      struct polycm_sim_fault **ret_fault)
{
	struct polycm_sim_fault_rule rule = { 0 };
	int r;

	if (!given || given->size < offsetof(struct polycm_sim_fault_rule, from))
		return control_refuse(FAULT_ADD, "", "the size of the rule is not set");
	memcpy(&rule, given, given->size < sizeof(rule) ? given->size : sizeof(rule));
	rule.size = sizeof(rule);
	sim_lock();
	r = add(&rule, ret_fault);
	sim_unlock();
	return r;
}

static int log_removed(const char *call, int r)
{
	if (r == -ENOENT)
		control_refuse(call, "", "the fault was removed");
	return r;
}

int control_fault_remove(struct polycm_sim_fault *fault)
{
	uint32_t number;
	int r;

	sim_lock();
	r = control_number(FAULT_REMOVE, SIM_HANDLE_FAULT, fault, &number);
	if (!r)
		r = log_removed(FAULT_REMOVE, sim_fault_remove(number));
	sim_unlock();
	return r;
}

int control_fault_hits(struct polycm_sim_fault *fault, unsigned int *ret_hits)
{
	uint32_t number;
	int r;

	if (!ret_hits)
		return control_null(FAULT_HITS, "ret_hits");
	sim_lock();
	r = control_number(FAULT_HITS, SIM_HANDLE_FAULT, fault, &number);
	if (!r)
		r = log_removed(FAULT_HITS, sim_fault_hits(number, ret_hits));
	sim_unlock();
	return r;
}
