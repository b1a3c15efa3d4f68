/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * faults/fault.h - the rules by which things go wrong on command: what others ask at
 * the places where something can, and how rules come and go.
 *
 * Without a rule each question costs one branch on a global.  Answers depend
 * on the rules, the order of questions and the seed alone; randomness is drawn
 * only for rules with a probability below 1.
 *
 * Nothing here runs other parts of the simulator from inside a question:
 * what a rule does to nodes and devices is done by a timer that is due now.
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

/* A call of the program's, before it has changed anything: 0, or the negative errno it fails with. */
static inline int sim_fault_call(const struct sim_node *node, enum sim_what call)
{
	return __builtin_expect(sim_faults_on, 0) ? sim_fault_ask_call(node, call) : 0;
}

/*
 * SIM_LOOKUP_*, asked once when the node begins to look something up that as a
 * rule takes so long: how long it takes now; SIM_NEVER: no answer comes.
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

/* A request came in for a listener of this node: is its backlog full, by command? */
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

/* The link layer asks, for each packet that it is given; length is the message's in bytes. */
void sim_fault_ask_packet(const struct sim_port *from, const struct sim_port *to,
			  enum sim_what message, size_t length, struct sim_fate *ret_fate);

/*
 * While a seed decides, too (explore.c): adds to what rules do to a packet of that
 * length, and to the nodes it goes between.  NULL: rules alone.
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
/*
 * Which line of a file the rule is from, for what is told of it.  Where all
 * processes of the fabric have that file, they count together for it.
 */
void sim_fault_set_place(uint32_t number, const char *path, unsigned int line);
/* Rules that have done nothing so far are told, each once.  One that is removed is told then. */
void sim_fault_tell_missed(void);
/* Before the fabric is left, with which counts of several processes go. */
void sim_fault_keep_counts(void);
/* -ENOENT: there is no such rule (any more). */
int sim_fault_remove(uint32_t number);
int sim_fault_hits(uint32_t number, unsigned int *ret_hits);
/* A process of the fabric, maybe this one, says that this happens to a node (faults/changes.h). */
void sim_fault_change(uint64_t number, const struct sim_change *change);
/* The fabric is being closed: all of them. */
void sim_fault_close(void);

#endif
