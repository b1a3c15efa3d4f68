/* SPDX-License-Identifier: BSD-2-Clause */
/* faults/fault_internal.h - between the files fault*.c.  Engine lock held. */
#ifndef SIM_FAULT_INTERNAL_H
#define SIM_FAULT_INTERNAL_H

#include "fault.h"

struct sim_fault {
	struct sim_fault *prev, *next;
	uint32_t number;
	uint64_t mask;			/* of enum sim_what; 0: happens at a time */
	struct polycm_sim_fault_rule rule;	/* its strings are ours */
	struct sim_rule_count own, *count;	/* of those in the window; or the fabric's */
	unsigned int hits;		/* here; of actions, those that are done */
	unsigned int actions;		/* under way */
	bool removed;			/* goes with its last action */
	bool missed_logged;		/* that it has never happened */
	char *where;			/* "FILE:LINE", or NULL */
};

static inline struct sim_node *fault_from(const struct sim_fault *fault)
{
	return (struct sim_node *)fault->rule.from;
}

static inline struct sim_node *fault_to(const struct sim_fault *fault)
{
	return (struct sim_node *)fault->rule.to;
}

static inline struct sim_node *fault_on(const struct sim_fault *fault)
{
	return (struct sim_node *)fault->rule.on;
}

/* Its mask, or -EINVAL with the reason in words. */
int fault_check(const struct polycm_sim_fault_rule *rule, uint64_t *ret_mask, char *ret_why,
		size_t why_size);

/* Do to a packet what the rule says.  false: it does nothing to this one. */
bool fault_apply(const struct polycm_sim_fault_rule *rule, size_t length, struct sim_fate *fate);

/* The time that windows of rules are in. */
uint64_t fault_now(void);
uint64_t fault_now_to_note(void);	/* as sim_now_to_note() */
uint64_t fault_deadline(uint64_t ns);

/* fault_missed.c: one line of log if it has never happened. */
void fault_log_missed(struct sim_fault *fault);
/* By all who count together, also after the fabric is left. */
uint32_t fault_seen(const struct sim_fault *fault);
uint32_t fault_done(const struct sim_fault *fault);

/* fault_action.c: do to the node what the rule says, when the clock has come to the time. */
bool fault_is_node_action(enum polycm_sim_action action);
int fault_action_start(struct sim_fault *fault, struct sim_node *node);
/* A rule's that happens at a time. */
int fault_action_schedule(struct sim_fault *fault);
void fault_actions_of_removed(struct sim_fault *fault);
void fault_actions_close(void);
/* The last action of a removed rule is done. */
void fault_free(struct sim_fault *fault);
/* Rules may have come or gone, or what they do. */
void fault_update_on(void);
bool fault_actions_left(void);

#endif
