/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * faults/fault.c - the rules of a fabric: which of them match a packet, a call or a
 * lookup, and what they do to it.
 *
 * Every rule sees everything that matches it, whatever other rules did to it:
 * the "second REQ" is the second REQ that was sent, not the second that was
 * left.
 */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "providers/soft/shm/visit.h"
#include "providers/soft/trace/trace.h"
#include "fault_internal.h"

bool sim_faults_on;
sim_fault_explorer_t sim_fault_explorer;

static struct sim_fault *faults;
static struct sim_fault *removed;	/* rules whose actions are not complete */
static uint32_t last_number;
static uint64_t began;			/* see time_0() */

void fault_update_on(void)
{
	sim_faults_on = faults || fault_actions_left() || sim_fault_explorer;
	sim_visit_close(SIM_CLOSED_RULES, sim_faults_on);
}

/* ------------------------------------------------------------------------
 * Matching.
 */

/* On the real clock, and on that of a system, the rules' time does not begin at 0. */
static uint64_t time_0(void)
{
	if (!began && !sim_is_virtual())
		began = sim_scenario_began();
	return began;
}

uint64_t fault_now(void)
{
	uint64_t from = time_0();	/* may be now: the clock is read after it */

	return sim_now() - from;
}

uint64_t fault_now_to_note(void)
{
	uint64_t from = time_0();

	return sim_now_to_note() - from;
}

uint64_t fault_deadline(uint64_t ns)
{
	return ns < SIM_NEVER - time_0() ? time_0() + ns : SIM_NEVER - 1;
}

/* Other processes may count, too.  false: the count is at its maximum. */
static bool count_up(_Atomic uint32_t *count, uint32_t most, uint32_t *ret_before)
{
	uint32_t n = atomic_load(count);

	do
		if (n >= most)
			return false;
	while (!atomic_compare_exchange_weak(count, &n, n + 1));
	*ret_before = n;
	return true;
}

/* Without nth, times limits how often the rule has an effect. */
static uint32_t most_of(const struct polycm_sim_fault_rule *rule)
{
	return rule->nth || !rule->times ? UINT32_MAX : rule->times;
}

/* Do nth and times allow it? */
static bool is_its_turn(struct sim_fault *fault)
{
	const struct polycm_sim_fault_rule *rule = &fault->rule;
	uint32_t before;

	if (!count_up(&fault->count->seen, UINT32_MAX, &before))
		before = UINT32_MAX - 1;
	if (rule->nth)
		return before >= rule->nth - 1 &&
		       before - (rule->nth - 1) < (rule->times ? rule->times : 1);
	return atomic_load(&fault->count->done) < most_of(rule);
}

/* Does the rule match, by its counts and probability too?  Counts it: take_back() if it does nothing. */
static bool matches(struct sim_fault *fault, enum sim_what what, const struct sim_node *from,
		    const struct sim_node *to)
{
	const struct polycm_sim_fault_rule *rule = &fault->rule;
	uint32_t before;
	uint64_t now;

	if (!(fault->mask & BIT(what)) || (rule->from && fault_from(fault) != from) ||
	    (rule->to && fault_to(fault) != to))
		return false;
	if (rule->from_ns || rule->until_ns) {
		now = fault_now();
		if (now < rule->from_ns || (rule->until_ns && now >= rule->until_ns))
			return false;
	}
	return is_its_turn(fault) && (rule->probability == 0 || sim_chance(rule->probability)) &&
	       count_up(&fault->count->done, most_of(rule), &before);
}

static void take_back(struct sim_fault *fault)
{
	atomic_fetch_sub(&fault->count->done, 1);
}

static void hit(struct sim_fault *fault, enum sim_what what, const struct sim_node *from,
		const struct sim_node *to)
{
	const char *name = sim_what_name(what);

	fault->hits++;
	sim_trace("fault", "\"rule\":%u,\"action\":\"%s\",\"what\":\"%s\",\"from\":\"%s\",\"to\":\"%s\"",
		  fault->number, sim_action_name(fault->rule.action), name ? name : "",
		  from ? from->name : "", to ? to->name : "");
}

/* A rule that names no node is about the sender, or else the receiver. */
static void start_action(struct sim_fault *fault, struct sim_node *from, struct sim_node *to)
{
	struct sim_node *node = fault_on(fault);

	if (!node)
		node = fault->rule.from || !to ? from : to;
	if (node && !fault_action_start(fault, node))
		return;
	take_back(fault);
	if (node)
		sim_core->log(POLYCM_LOG_ERROR, NULL, "fault rule %u: out of memory",
			      fault->number);
}

/* ------------------------------------------------------------------------
 * Questions.
 */

bool fault_apply(const struct polycm_sim_fault_rule *rule, size_t length, struct sim_fate *fate)
{
	switch (rule->action) {
	case POLYCM_SIM_LOSE:
		fate->lost = true;
		return true;
	case POLYCM_SIM_REJECT:
		fate->lost = fate->rejected = true;
		fate->reason = rule->reason;
		return true;
	case POLYCM_SIM_DELAY:
		fate->delay += rule->delay_ns;
		return true;
	case POLYCM_SIM_DUPLICATE:
		fate->copies = rule->count ? rule->count : 1;
		fate->copy_gap = rule->delay_ns;
		return true;
	case POLYCM_SIM_REORDER:
		fate->reordered = true;
		return true;
	case POLYCM_SIM_CORRUPT:
		if (!length || (rule->offset >= 0 && (size_t)rule->offset >= length))
			return false;
		fate->corrupted = true;
		fate->offset = rule->offset < 0 ? sim_random_below((uint32_t)length) :
						  (uint32_t)rule->offset;
		fate->value = rule->value ? rule->value : (uint8_t)(1 + sim_random_below(255));
		return true;
	default:
		return false;
	}
}

void sim_fault_ask_packet(const struct sim_port *from, const struct sim_port *to,
			  enum sim_what message, size_t length, struct sim_fate *ret_fate)
{
	struct sim_node *sender = from->device->node, *receiver = to->device->node;

	memset(ret_fate, 0, sizeof(*ret_fate));
	for (struct sim_fault *fault = faults; fault; fault = fault->next) {
		if (!matches(fault, message, sender, receiver))
			continue;
		if (fault_is_node_action(fault->rule.action))
			start_action(fault, sender, receiver);
		else if (!ret_fate->lost && fault_apply(&fault->rule, length, ret_fate))
			hit(fault, message, sender, receiver);
		else
			take_back(fault);
	}
	if (sim_fault_explorer)
		sim_fault_explorer(message, sender, receiver, length, ret_fate);
}

/* Does the rule match this call or lookup?  A rule about nodes and devices starts its action here. */
static bool affects(struct sim_fault *fault, enum sim_what what, const struct sim_node *node)
{
	if (!matches(fault, what, node, NULL))
		return false;
	if (!fault_is_node_action(fault->rule.action))
		return true;
	start_action(fault, (struct sim_node *)(uintptr_t)node, NULL);
	return false;
}

/* All rules see the call; the first that matches decides. */
int sim_fault_ask_call(const struct sim_node *node, enum sim_what call)
{
	int r = 0;

	for (struct sim_fault *fault = faults; fault; fault = fault->next) {
		if (!affects(fault, call, node))
			continue;
		if (!r) {
			r = fault->rule.error ? -fault->rule.error : -ENOMEM;
			hit(fault, call, node, NULL);
		} else {
			take_back(fault);
		}
	}
	return r < 0 ? sim_refuse(r, "a fault rule makes it fail") : 0;
}

uint64_t sim_fault_ask_lookup(const struct sim_node *node, enum sim_what lookup)
{
	uint64_t delay = 0;

	for (struct sim_fault *fault = faults; fault; fault = fault->next) {
		if (!affects(fault, lookup, node))
			continue;
		if (delay != SIM_NEVER) {
			delay = fault->rule.action == POLYCM_SIM_ANSWER_NEVER ? SIM_NEVER :
				delay + fault->rule.delay_ns;
			hit(fault, lookup, node, NULL);
		} else {
			take_back(fault);
		}
	}
	return delay;
}

/* ------------------------------------------------------------------------
 * Rules come and go.
 */

static char *copy_string(const char *text, bool *failed)
{
	char *copy = text ? strdup(text) : NULL;

	*failed |= text && !copy;
	return copy;
}

void fault_free(struct sim_fault *fault)
{
	if (fault->removed)
		DL_DELETE(removed, fault);
	free(fault->where);
	free((char *)(uintptr_t)fault->rule.message);
	free((char *)(uintptr_t)fault->rule.device);
	free((char *)(uintptr_t)fault->rule.address);
	free((char *)(uintptr_t)fault->rule.new_address);
	free(fault);
}

static struct sim_fault *make(const struct polycm_sim_fault_rule *rule, uint64_t mask)
{
	struct sim_fault *fault = calloc(1, sizeof(*fault));
	bool failed = false;

	if (!fault)
		return NULL;
	fault->rule = *rule;
	fault->mask = mask;
	fault->count = &fault->own;
	fault->rule.message = copy_string(rule->message, &failed);
	fault->rule.device = copy_string(rule->device, &failed);
	fault->rule.address = copy_string(rule->address, &failed);
	fault->rule.new_address = copy_string(rule->new_address, &failed);
	if (!failed)
		return fault;
	fault_free(fault);
	return NULL;
}

/* now: a rule of a node, which acts as if a message had matched it. */
static int add(const struct polycm_sim_fault_rule *rule, bool now, uint32_t *ret_number,
	       char *ret_why, size_t why_size)
{
	struct sim_fault *fault;
	uint64_t mask;
	int r;

	r = fault_check(rule, &mask, ret_why, why_size);
	if (r < 0)
		return r;
	fault = make(rule, mask);
	if (!fault)
		return -ENOMEM;
	(void)time_0();		/* the first one may begin it */
	fault->number = ++last_number;
	/* A timer fires, or other processes apply the rule: both need the NIC thread. */
	if (!mask || (fault_is_node_action(rule->action) && sim_fabric_is_shared()))
		r = sim_engine_need_thread();
	if (!r && !mask)
		r = now ? fault_action_start(fault, fault_on(fault)) : fault_action_schedule(fault);
	if (r < 0) {
		fault_free(fault);
		return r;
	}
	atomic_store(&fault->own.done, now);
	DL_APPEND(faults, fault);
	fault_update_on();
	*ret_number = fault->number;
	return 0;
}

int sim_fault_add(const struct polycm_sim_fault_rule *rule, uint32_t *ret_number,
		  char *ret_why, size_t why_size)
{
	return add(rule, false, ret_number, ret_why, why_size);
}

int sim_fault_do(const struct polycm_sim_fault_rule *rule, uint32_t *ret_number, char *ret_why,
		 size_t why_size)
{
	return add(rule, true, ret_number, ret_why, why_size);
}

static struct sim_fault *find(uint32_t number)
{
	struct sim_fault *fault;

	DL_SEARCH_SCALAR(faults, fault, number, number);
	return fault;
}

int sim_fault_remove(uint32_t number)
{
	struct sim_fault *fault = find(number);

	if (!fault)
		return -ENOENT;
	fault_log_missed(fault);
	DL_DELETE(faults, fault);
	fault_actions_of_removed(fault);
	if (fault->actions) {
		fault->removed = true;
		DL_PREPEND(removed, fault);
	} else {
		fault_free(fault);
	}
	fault_update_on();
	return 0;
}

void sim_fault_set_place(uint32_t number, const char *path, unsigned int line)
{
	struct sim_fault *fault = find(number);
	struct sim_rule_count *shared;

	shared = fault && sim_scenario_is_shared() ? sim_changes_count(number) : NULL;
	if (shared)
		fault->count = shared;
	if (fault && !fault->where && asprintf(&fault->where, "%s:%u", path, line) < 0)
		fault->where = NULL;
}

void sim_fault_keep_counts(void)
{
	for (struct sim_fault *fault = faults; fault; fault = fault->next) {
		atomic_store(&fault->own.seen, fault_seen(fault));
		atomic_store(&fault->own.done, fault_done(fault));
	}
}

void sim_fault_log_missed(void)
{
	for (struct sim_fault *fault = faults; fault; fault = fault->next)
		fault_log_missed(fault);
}

int sim_fault_hits(uint32_t number, unsigned int *ret_hits)
{
	const struct sim_fault *fault = find(number);

	if (!fault)
		return -ENOENT;
	*ret_hits = fault->hits;
	return 0;
}

void sim_fault_close(void)
{
	struct sim_fault *fault;

	fault_actions_close();
	while ((fault = faults)) {
		DL_DELETE(faults, fault);
		fault_free(fault);
	}
	last_number = 0;
	began = 0;
	fault_update_on();
}
