/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * faults/changes.h - what fault rules do to the nodes and devices of a shared
 * fabric, for all of its processes: the one that sees a rule come true writes
 * it into the segment and tells the others, and all of them do it, each to its
 * own copy of the fabric, in the same order.  A process that comes later does
 * what was done before it came.  How often rules came true is counted there,
 * too.
 *
 * Engine lock held for all.  Without a shared fabric there is nothing to read.
 */
#ifndef SIM_CHANGES_H
#define SIM_CHANGES_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define SIM_CHANGES 128u		/* that are kept; see changes.c for which */
#define SIM_SHARED_RULES 1024u		/* with higher numbers each process counts for itself */
#define SIM_CHANGE_TEXT 64u

struct sim_change {
	uint32_t action;		/* enum polycm_sim_action */
	uint32_t rule;			/* of the process that began it */
	uint32_t node;
	uint64_t at, delay;		/* the rule's; 0: for ever */
	char device[SIM_CHANGE_TEXT], address[SIM_CHANGE_TEXT], new_address[SIM_CHANGE_TEXT];
};

/* How often something matched a rule, and how often it came true. */
struct sim_rule_count {
	_Atomic uint32_t seen, done;
};

/* In the segment, under its lock but for what is atomic. */
struct sim_changes_area {
	_Alignas(64) _Atomic uint64_t newest;	/* number of the last one, from 1 */
	_Alignas(64) struct {
		_Atomic uint64_t number;	/* 0: free */
		struct sim_change change;
	} kept[SIM_CHANGES];
	struct sim_rule_count counts[SIM_SHARED_RULES];
};

/*
 * Packets to other processes say which changes came before them: in the tag of
 * their records, behind the type, the lowest bits of the newest number that
 * their sender knew.  What was sent before a change arrives as before it.
 */
#define SIM_CHANGES_TYPE 0xffu		/* of a tag */

extern uint32_t sim_changes_tag;	/* of what we send */
extern uint32_t sim_changes_known_tag;	/* of those who know as much as we have done */

void sim_changes_read_tag(uint32_t tag);
/* Before a packet with this tag is delivered. */
static inline void sim_changes_before(uint32_t tag)
{
	if (__builtin_expect((tag ^ sim_changes_known_tag) & ~SIM_CHANGES_TYPE, 0))
		sim_changes_read_tag(tag);
}

/* All processes of the fabric are to do it, this one too, with sim_changes_read(): its number. */
uint64_t sim_changes_tell(const struct sim_change *change);
/* Do what is new: sim_fault_change() for each, in the order of their numbers. */
void sim_changes_read(void);
/*
 * All mail was looked at, and there may be more.  What is new is done a round
 * later, after the packets that were sent before it: true: that is to come.
 */
bool sim_changes_end_round(bool more);
/* Of a rule that all processes of the fabric have; NULL: there is no such place. */
struct sim_rule_count *sim_changes_count(uint32_t rule);

/* SIM_NEVER: it does not end.  Over are only those that end by themselves. */
uint64_t sim_change_end(const struct sim_change *change);
bool sim_change_is_over(const struct sim_change *change, uint64_t now);
/* When we came to the fabric; what was over by then is not done.  0 without a shared one. */
uint64_t sim_changes_joined(void);

/* For joining and leaving. */
void sim_changes_join(void);
void sim_changes_leave(void);

#endif
