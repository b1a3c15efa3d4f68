/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * faults/changes.h - changes that fault rules make to nodes and devices of a shared
 * fabric.  The process whose rule acts writes the change into the segment and
 * notifies the others.  Each process applies all changes to its own copy of the
 * fabric, in the same order; one that joins later applies the earlier ones first.
 * The segment also counts how often each rule matched and acted.
 *
 * The engine's lock is held for all functions.  A private fabric has no changes to read.
 */
#ifndef SIM_CHANGES_H
#define SIM_CHANGES_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define SIM_CHANGES 128u		/* so many are kept; entry_for() in changes.c selects which */
#define SIM_SHARED_RULES 1024u		/* each process counts rules with higher numbers for itself */
#define SIM_CHANGE_TEXT 64u

struct sim_change {
	uint32_t action;		/* enum polycm_sim_action */
	uint32_t rule;			/* its number in the process that wrote the change */
	uint32_t node;
	uint64_t at, delay;		/* the rule's; 0: for ever */
	char device[SIM_CHANGE_TEXT], address[SIM_CHANGE_TEXT], new_address[SIM_CHANGE_TEXT];
};

/* How often something matched a rule, and how often the rule acted. */
struct sim_rule_count {
	_Atomic uint32_t seen, done;
};

/* In the segment.  Its lock protects what is not atomic. */
struct sim_changes_area {
	_Alignas(64) _Atomic uint64_t newest;	/* number of the last one, from 1 */
	_Alignas(64) struct {
		_Atomic uint64_t number;	/* 0: free */
		struct sim_change change;
	} kept[SIM_CHANGES];
	struct sim_rule_count counts[SIM_SHARED_RULES];
};

/*
 * A packet to another process says which changes came before it: the tag of its record
 * contains, above the type, the lowest bits of the newest number that the sender knew.
 * So a packet that was sent before a change is handled before it.
 */
#define SIM_CHANGES_TYPE 0xffu		/* the bits of a tag that are the packet's type */

extern uint32_t sim_changes_tag;	/* of packets that this process sends */
extern uint32_t sim_changes_known_tag;	/* of packets whose sender knew exactly what is applied here */

void sim_changes_read_tag(uint32_t tag);
/* May the sender of a packet with this tag know other changes? */
static inline bool sim_changes_differ(uint32_t tag)
{
	return __builtin_expect((tag ^ sim_changes_known_tag) & ~SIM_CHANGES_TYPE, 0);
}
/* Called before a packet with this tag is delivered. */
static inline void sim_changes_before(uint32_t tag)
{
	if (sim_changes_differ(tag))
		sim_changes_read_tag(tag);
}

/* Write a change for all processes, also this one (sim_changes_read()); returns its number. */
uint64_t sim_changes_tell(const struct sim_change *change);
/* Apply the new changes with sim_fault_change(), in the order of their numbers. */
void sim_changes_read(void);
/*
 * A round over all rings has ended; more: they may have further packets.  New changes are
 * applied a round later, after the packets that were sent before them.  True: some wait.
 */
bool sim_changes_end_round(bool more);
/* The shared count of a rule that all processes have; NULL: it has none. */
struct sim_rule_count *sim_changes_count(uint32_t rule);

/* When a change ends; SIM_NEVER: never.  Only those that end by themselves can be over. */
uint64_t sim_change_end(const struct sim_change *change);
bool sim_change_is_over(const struct sim_change *change, uint64_t now);
/* When this process joined; changes over by then are not applied.  0: no shared fabric. */
uint64_t sim_changes_joined(void);

/* For joining and leaving. */
void sim_changes_join(void);
void sim_changes_leave(void);

#endif
