/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fabric/trace_lines.h - lines of the trace about nodes that several parts write, and
 * whose a timer is.  Engine lock held; lines only while sim_tracing().
 */
#ifndef SIM_TRACE_LINES_H
#define SIM_TRACE_LINES_H

#include "providers/soft/trace/trace.h"
#include "fabric.h"

/* The state of an id, of its communication id ("cm") or of a QP changes. */
void sim_trace_state(const struct sim_node *node, const char *of, uint32_t number,
		     const char *state, const char *was) __attribute__((cold));
/* An interface of the fabric is "added", or "removed": so a reader knows who is who. */
void sim_trace_address(const struct sim_address *address, const char *action);
/* Every address of the fabric, and who we are: a trace begins with them. */
void sim_trace_fabric(void);

/*
 * Timers with this function are a protocol's: tell when they are armed, fire
 * and end before that.  describe() fills in whose they are; without a name the
 * timer is not traced.  Once for each function; further times are ignored.
 */
struct sim_timer_text {
	const char *name;		/* "retransmit" */
	const struct sim_node *node;
	const char *of;			/* member that has the number: "id" or "qpn" */
	uint32_t number;
};
typedef void (*sim_timer_describe_t)(const struct sim_timer *timer, struct sim_timer_text *ret_text);
#define SIM_TRACE_MAX_TIMERS 24u
void sim_trace_timers(void (*fn)(struct sim_timer *timer), sim_timer_describe_t describe);
/* Whose timer it is; NULL: nobody's. */
const struct sim_node *sim_trace_timer_node(const struct sim_timer *timer);
/* The engine: action is "armed", "fired" or "ended". */
void sim_trace_timer(const struct sim_timer *timer, const char *action) __attribute__((cold));

#endif
