/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * faults/fault.h - fault rules: the checks at the places where a fault can happen,
 * and adding and removing rules.
 *
 * Without a rule each check costs one branch on a global.  The result of a check
 * depends only on the rules, the order of checks and the seed; random numbers are
 * drawn only for rules with a probability below 1.
 *
 * A check never runs other parts of the simulator: an action on a node or a
 * device is a timer that is due now.
 *
 * Engine lock held for all.
 */
#ifndef SIM_FAULT_H
#define SIM_FAULT_H

#include "polycm/sim.h"
#include "providers/common/fault_names.h"
#include "providers/soft/fabric/fabric.h"
#include "changes.h"

/* No delay is longer: 73 years, so that sums of several are times yet. */
#define SIM_LONGEST (SIM_NEVER >> 3)

/* There are rules. */
extern bool sim_faults_on;

/* ------------------------------------------------------------------------
 * Questions.
 */

int sim_fault_ask_call(const struct sim_node *node, enum sim_what call) __attribute__((cold));
uint64_t sim_fault_ask_lookup(const struct sim_node *node, enum sim_what lookup)
	__attribute__((cold));
bool sim_fault_ask_backlog(const struct sim_node *node) __attribute__((cold));

/* The program makes a call, which has changed nothing yet: 0, or the negative errno of a fault. */
static inline int sim_fault_call(const struct sim_node *node, enum sim_what call)
{
	return __builtin_expect(sim_faults_on, 0) ? sim_fault_ask_call(node, call) : 0;
}

/*
 * The node starts a lookup (SIM_LOOKUP_*) that usually takes this long: how long it
 * takes with the rules.  SIM_NEVER: no answer comes.
 */
static inline uint64_t sim_fault_delay(uint64_t usual, const struct sim_node *node,
				       enum sim_what lookup)
{
	uint64_t later;

	if (__builtin_expect(!sim_faults_on, 1))
		return usual;
	later = sim_fault_ask_lookup(node, lookup);
	return later < SIM_NEVER - usual ? usual + later : SIM_NEVER;
}

/* A request came in for a listener of this node: does a rule say that its backlog is full? */
static inline bool sim_fault_backlog_full(const struct sim_node *node)
{
	return __builtin_expect(sim_faults_on, 0) && sim_fault_ask_backlog(node);
}

/* What happens to a packet.  All zero: nothing. */
struct sim_fate {
	bool lost;
	bool rejected;			/* lost, and its sender gets a REJ */
	bool reordered;			/* goes after the next one of its direction */
	bool corrupted;
	uint8_t value;			/* xored to the byte at offset */
	uint16_t reason;
	uint32_t offset;		/* of the message, less than its length */
	uint32_t copies;		/* more */
	uint64_t copy_gap;		/* ns between them */
	uint64_t delay;			/* meanwhile others overtake it */
};

/* The link layer checks each packet that it is given; length: of the message, in bytes. */
void sim_fault_ask_packet(const struct sim_port *from, const struct sim_port *to,
			  enum sim_what message, size_t length, struct sim_fate *ret_fate);

/*
 * Exploration (explore.c): adds the seed's faults to what rules do to a packet of that
 * length, and to its sender and receiver.  NULL: no exploration.
 */
typedef void (*sim_fault_explorer_t)(enum sim_what what, const struct sim_node *from,
				     const struct sim_node *to, size_t length,
				     struct sim_fate *fate);
extern sim_fault_explorer_t sim_fault_explorer;

/* ------------------------------------------------------------------------
 * Rules.
 */

/*
 * from, to and on are struct sim_node; strings are copied.  *ret_number names
 * the rule from now on, counted from 1 in each fabric.  -EINVAL: the rule
 * cannot be, and why is in words; -ENOMEM.
 */
int sim_fault_add(const struct polycm_sim_fault_rule *rule, uint32_t *ret_number,
		  char *ret_why, size_t why_size);
/* The same for what happens to a node: it happens now, also if this process ends at once. */
int sim_fault_do(const struct polycm_sim_fault_rule *rule, uint32_t *ret_number, char *ret_why,
		 size_t why_size);
/*
 * The line of a file that the rule is from, for log lines.  If all processes of the
 * fabric have that file, they count together for the rule.
 */
void sim_fault_set_place(uint32_t number, const char *path, unsigned int line);
/* Log each rule that has done nothing, once.  A rule that is removed is logged then. */
void sim_fault_log_missed(void);
/* Keep the counts that are in the shared segment: the process is about to leave the fabric. */
void sim_fault_keep_counts(void);
/* -ENOENT: there is no such rule (any more). */
int sim_fault_remove(uint32_t number);
int sim_fault_hits(uint32_t number, unsigned int *ret_hits);
/* A process of the fabric, perhaps this one, changes a node (faults/changes.h). */
void sim_fault_change(uint64_t number, const struct sim_change *change);
/* The fabric is being closed: remove all rules. */
void sim_fault_close(void);

#endif
