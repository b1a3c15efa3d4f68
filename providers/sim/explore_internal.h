/* SPDX-License-Identifier: BSD-2-Clause */
/* explore_internal.h - between the files explore*.c.  Engine lock held. */
#ifndef SIM_EXPLORE_INTERNAL_H
#define SIM_EXPLORE_INTERNAL_H

#include "explore.h"

#define EXPLORE_REASONS 32u

/* What may happen to a kind of messages; chances are of each message. */
struct explore_bounds {
	double loss, duplication, reordering, lateness, rejection, corruption;
	uint64_t delay;			/* the longest */
	unsigned int most;		/* faults in a run */
	uint64_t mask;			/* of messages */
	uint16_t reasons[EXPLORE_REASONS];
	unsigned int num_reasons;
};

/* ... and to nodes, when a message of connection management is sent. */
struct explore_node_bounds {
	double port_down, freeze, crash, removal;
	uint64_t delay;			/* the longest that a port is down or a node frozen */
	unsigned int most;
};

struct explore_limits {
	struct explore_bounds cm, data;
	struct explore_node_bounds nodes;
	uint64_t until;			/* no fault begins or lasts later; 0: for ever */
};

/* What is decided for one message. */
struct explore_decision {
	struct polycm_sim_fault_rule rule;	/* the action (0: nothing) and its members */
	const char *on;				/* the node, if the action is on one */
};

/* One that is given. */
struct explore_given {
	struct explore_given *next;
	unsigned int fabric, nth;
	enum sim_what what;
	struct explore_decision does;
	char from[sizeof(((struct sim_node *)NULL)->name)];
	char on[sizeof(((struct sim_node *)NULL)->name)];
};

extern struct explore_limits explore_limits;
extern struct explore_given *explore_givens;

/* sim_fault_explorer_t (explore.c). */
void explore_packet(enum sim_what what, const struct sim_node *from, const struct sim_node *to,
		    size_t length, struct sim_fate *fate);

#endif
