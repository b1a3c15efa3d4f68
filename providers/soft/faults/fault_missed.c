/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * faults/fault_missed.c - warns of a rule that has never acted when it is removed or
 * the program ends, since its author expected it to act.
 */
#include "config.h"

#include <stdio.h>

#include "providers/soft/engine/turns.h"
#include "fault_internal.h"

/* Write the rule in words: "lose REQ from client to server". */
static void describe(const struct sim_fault *fault, char *text, size_t size)
{
	const struct polycm_sim_fault_rule *rule = &fault->rule;
	const struct {
		const char *word;
		const struct sim_node *node;
	} nodes[] = {
		{ "from", fault_from(fault) }, { "to", fault_to(fault) }, { "on", fault_on(fault) },
	};
	size_t len;

	len = (size_t)snprintf(text, size, "%s%s%.40s", sim_action_name(rule->action),
			       rule->message ? " " : "", rule->message ? rule->message : "");
	for (unsigned int i = 0; i < sizeof(nodes) / sizeof(nodes[0]) && len < size; i++)
		if (nodes[i].node)
			len += (size_t)snprintf(text + len, size - len, " %s %s", nodes[i].word,
						nodes[i].node->name);
}

/* The shared counts are 0 again after the fabric is left; then the kept ones are higher. */
static uint32_t most(const _Atomic uint32_t *shared, const _Atomic uint32_t *kept)
{
	uint32_t now = atomic_load(shared), before = atomic_load(kept);

	return now > before ? now : before;
}

uint32_t fault_seen(const struct sim_fault *fault)
{
	return most(&fault->count->seen, &fault->own.seen);
}

uint32_t fault_done(const struct sim_fault *fault)
{
	return most(&fault->count->done, &fault->own.done);
}

static void reason(const struct sim_fault *fault, char *text, size_t size)
{
	uint32_t seen = fault_seen(fault);

	if (!fault->mask)
		snprintf(text, size, "the time did not come");
	else if (!seen)
		snprintf(text, size, "nothing matched it");
	else if (seen < fault->rule.nth)
		snprintf(text, size, "only %u matched, and nth is %u", seen, fault->rule.nth);
	else
		snprintf(text, size, "%u matched, but chance was against it or it could not be done",
			 seen);
}

/* In another process of the run, which need not be on the fabric yet. */
static bool may_act_yet(const struct sim_fault *fault)
{
	const struct turn_tells *turns = fault->count != &fault->own ? sim_turns() : NULL;

	return turns && turns->has_others();
}

void fault_log_missed(struct sim_fault *fault)
{
	char what[300], why[100];

	if (fault->hits || fault_done(fault) || fault->missed_logged || may_act_yet(fault))
		return;
	fault->missed_logged = true;
	describe(fault, what, sizeof(what));
	reason(fault, why, sizeof(why));
	sim_core->log(POLYCM_LOG_WARN, NULL, "%s%sfault rule %u (%s) has never happened%s: %s",
		      fault->where ? fault->where : "", fault->where ? ": " : "", fault->number, what,
		      sim_fabric_is_shared() && fault->count == &fault->own ? " in this process" : "",
		      why);
}
