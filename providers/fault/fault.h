/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fault.h - the layer "fault": by rules, calls fail or take long, and events
 * come late, changed or not at all.  It needs no simulator: it is good over
 * hardware, too.
 */
#ifndef FAULT_H
#define FAULT_H

#include "polycm/layer.h"

/* What rules may be about: calls, then events. */
#define FAULT_CALLS(X)										\
	X(bind) X(resolve_addr) X(resolve_route) X(listen) X(connect) X(accept) X(reject)	\
	X(establish) X(disconnect) X(notify) X(set_option) X(init_qp_attr) X(query)		\
	X(join_multicast) X(leave_multicast) X(migrate)

enum fault_what {
	FAULT_create_id,
#define X(op) FAULT_##op,
	FAULT_CALLS(X)
#undef X
	FAULT_NUM_CALLS,
	FAULT_EVENTS = FAULT_NUM_CALLS,
	FAULT_WHATS = FAULT_EVENTS + RDMA_CM_EVENT_TIMEWAIT_EXIT + 1,
};

static inline enum fault_what fault_of_event(enum rdma_cm_event_type type)
{
	return (enum fault_what)(FAULT_EVENTS + (unsigned int)type);
}

enum fault_action { FAULT_FAIL = 1, FAULT_DELAY, FAULT_LOSE, FAULT_CHANGE };

struct fault_rule {
	struct fault_rule *next;
	unsigned int number;		/* from 1 */
	enum fault_action action;
	uint64_t what;			/* a bit for each fault_what */
	unsigned int nth, times;	/* 0: not said */
	double probability;		/* 1: always */
	uint64_t after_ns, until_ns;	/* since the start; until 0: for ever */
	uint64_t delay_ns;
	int error;
	/* CHANGE: of an event, or of what rdma_reject() tells. */
	bool has_type, has_status, has_data;
	enum rdma_cm_event_type type;
	int status;
	uint8_t reason;
	uint8_t data_len;
	uint8_t data[UINT8_MAX];
	unsigned int seen, hits;	/* under the rules' lock */
	const char *file;		/* or setting, for log lines */
	unsigned int line;
};

/* What the rules do to one call or event; all zero: nothing. */
struct fault_effect {
	int error;			/* the call fails with it, negative */
	bool lost;
	uint64_t delay_ns;
	const struct fault_rule *change;	/* the last of them */
};

/* --- rules.c --- */

extern uint64_t fault_asked;		/* what any rule is about */

void fault_rules_start(uint64_t seed);
/* Copied; -ENOMEM. */
int fault_rules_add(const struct fault_rule *rule);
/* One more of this kind: what happens to it?  Told, and counted. */
void fault_rules_ask(const struct polycm_id *id, enum fault_what what, struct fault_effect *ret_effect);
/* Tells how often each rule has happened, and forgets them. */
void fault_rules_end(void);

/* "connect", "ESTABLISHED"; -1: there is no such call or event. */
int fault_what_of(const char *name);
/* What to say behind one that is none of these (a bit each), as sim_hint(). */
const char *fault_hint(const char *name, uint64_t among);

/* --- read.c --- */

/* Rules as text, or without it those of a file.  An error is logged with file and line. */
int fault_read(const char *name, const char *rules);

#endif
