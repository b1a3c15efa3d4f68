/* SPDX-License-Identifier: BSD-2-Clause */
/* rules.c - which rules there are, and what they do to what. */
#include "config.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <utlist.h>

#include "providers/common/core.h"
#include "providers/common/events.h"
#include "providers/common/fault_names.h"
#include "providers/common/random.h"
#include "fault.h"

const struct polycm_core *sim_core;
uint64_t fault_asked;

static pthread_mutex_t rules_lock = PTHREAD_MUTEX_INITIALIZER;
static struct fault_rule *rules;
static unsigned int num_rules;
static uint64_t start_ns;

static const char *const names[FAULT_WHATS] = {
	[FAULT_create_id] = "create_id",
#define X(op) [FAULT_##op] = #op,
	FAULT_CALLS(X)
#undef X
#define X(type) [FAULT_EVENTS + RDMA_CM_EVENT_##type] = #type,
	EVENT_TYPES(X)
#undef X
};

int fault_what_of(const char *name)
{
	for (int i = 0; i < FAULT_WHATS; i++)
		if (!strcasecmp(names[i], name))
			return i;
	return -1;
}

const char *fault_hint(const char *name, uint64_t among)
{
	const char *some[FAULT_WHATS];

	for (unsigned int i = 0; i < FAULT_WHATS; i++)
		some[i] = among & BIT(i) ? names[i] : NULL;
	return sim_hint(name, some, FAULT_WHATS);
}

void fault_rules_start(uint64_t seed)
{
	sim_random_seed(seed);
	start_ns = sim_core->now_ns();
}

int fault_rules_add(const struct fault_rule *rule)
{
	struct fault_rule *copy = sim_core->alloc(sizeof(*copy));

	if (!copy)
		return -ENOMEM;
	*copy = *rule;
	copy->number = ++num_rules;
	LL_APPEND(rules, copy);
	fault_asked |= rule->what;
	return 0;
}

/* By count, as with the simulator's: nth is of all, times without it of those that happen. */
static bool is_its_turn(struct fault_rule *rule)
{
	rule->seen += rule->seen != UINT_MAX;
	if (rule->nth)
		return rule->seen >= rule->nth &&
		       rule->seen - rule->nth < (rule->times ? rule->times : 1);
	return !rule->times || rule->hits < rule->times;
}

/* Under the lock. */
static bool happens(struct fault_rule *rule, enum fault_what what, uint64_t now)
{
	if (!(rule->what >> what & 1) || now < rule->after_ns ||
	    (rule->until_ns && now >= rule->until_ns) || !is_its_turn(rule) ||
	    !sim_chance(rule->probability))
		return false;
	rule->hits++;
	return true;
}

static void apply(const struct fault_rule *rule, struct fault_effect *effect)
{
	switch (rule->action) {
	case FAULT_FAIL:
		if (!effect->error)
			effect->error = -rule->error;
		break;
	case FAULT_DELAY:
		if (__builtin_add_overflow(effect->delay_ns, rule->delay_ns, &effect->delay_ns))
			effect->delay_ns = UINT64_MAX;
		break;
	case FAULT_LOSE:
		effect->lost = true;
		break;
	case FAULT_CHANGE:
		effect->change = rule;
		break;
	}
}

static void tell(const struct polycm_id *id, enum fault_what what, const struct fault_rule *rule)
{
	static const char *const words[] = {
		[FAULT_FAIL] = "fails", [FAULT_DELAY] = "comes late", [FAULT_LOSE] = "is lost",
		[FAULT_CHANGE] = "is changed",
	};

	sim_core->log(POLYCM_LOG_INFO, id, "fault %u: %s %s", rule->number, names[what],
		      words[rule->action]);
}

void fault_rules_ask(const struct polycm_id *id, enum fault_what what, struct fault_effect *ret_effect)
{
	uint64_t now = sim_core->now_ns() - start_ns;

	for (struct fault_rule *rule = rules; rule; rule = rule->next) {
		bool hit;

		pthread_mutex_lock(&rules_lock);
		hit = happens(rule, what, now);
		pthread_mutex_unlock(&rules_lock);
		if (!hit)
			continue;
		apply(rule, ret_effect);
		tell(id, what, rule);
	}
}

/* Whoever wrote it expected something. */
static void tell_missed(const struct fault_rule *rule)
{
	char why[80] = "nothing matched it";

	if (rule->seen >= rule->nth && rule->seen)
		(void)snprintf(why, sizeof(why), "%u matched, but chance was against it", rule->seen);
	else if (rule->seen)
		(void)snprintf(why, sizeof(why), "only %u matched, and nth is %u", rule->seen,
			       rule->nth);
	sim_core->log(POLYCM_LOG_WARN, NULL, "%s:%u: fault %u has never happened: %s", rule->file,
		      rule->line, rule->number, why);
}

void fault_rules_end(void)
{
	struct fault_rule *rule;

	while ((rule = rules)) {
		if (rule->hits)
			sim_core->log(POLYCM_LOG_INFO, NULL, "fault %u: happened %u times",
				      rule->number, rule->hits);
		else
			tell_missed(rule);
		rules = rule->next;
		sim_core->free(rule);
	}
	fault_asked = 0;
	num_rules = 0;
}
