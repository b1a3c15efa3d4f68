/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * trace.h - POLYCM_SIM_TRACE: one JSON object per line, stable field order,
 * the engine's time.  Under the engine's lock; cheap when off.
 * polycm-trace(5) says which members each kind of line has.
 *
 * Nothing that differs between two runs of one seed may be traced: no
 * pointers, process ids or wall time.  Ids are traced by a number that counts
 * from 1 in order of creation.
 */
#ifndef SIM_TRACE_H
#define SIM_TRACE_H

#include "providers/sim/link/link.h"

struct polycm_event;

extern bool sim_trace_on;

#define sim_tracing() __builtin_expect(sim_trace_on, 0)

int sim_trace_open(const char *path);	/* "-": standard error */
void sim_trace_close(void);
void sim_trace_flush(void);

/* A line, member by member, between begin and end; only while sim_tracing(). */
void sim_trace_begin(const char *kind) __attribute__((cold));
void sim_trace_text(const char *name, const char *value);
void sim_trace_number(const char *name, uint64_t value);
void sim_trace_status(const char *name, int value);
void sim_trace_bytes(const char *name, const void *bytes, size_t len);	/* hexadecimal */
void sim_trace_end(void);

/* The same in one: the rest are JSON members, escaped if need be. */
void sim_trace_line(const char *kind, const char *format, ...)
	__attribute__((cold, format(printf, 2, 3)));

#define sim_trace(...)						\
	do {							\
		if (sim_tracing())				\
			sim_trace_line(__VA_ARGS__);		\
	} while (0)

/* --- Lines that several parts write. --- */

/* The state of an id, of its communication id ("cm") or of a QP changes. */
void sim_trace_state(const struct sim_node *node, const char *of, uint32_t number,
		     const char *state, const char *was) __attribute__((cold));
/* An interface of the fabric is "added", or "removed": so a reader knows who is who. */
void sim_trace_address(const struct sim_address *address, const char *action);
/* A packet leaves its sender, or has come to its receiver (trace_packet.c). */
void sim_trace_packet(const char *kind, const struct sim_packet *packet);

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
