/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * trace/trace.h - POLYCM_SIM_TRACE: the trace of a fabric, in the engine's time.
 * Engine lock held; one branch while there is no trace.  polycm-trace(5) says which
 * members each kind of line has.
 *
 * Nothing that differs between two runs of one seed may be traced: no
 * pointers, process ids or wall time.  Ids are traced by a number that counts
 * from 1 in order of creation.
 */
#ifndef SIM_TRACE_H
#define SIM_TRACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "providers/common/trace_line.h"

extern bool sim_trace_on;

#define sim_tracing() __builtin_expect(sim_trace_on, 0)

/*
 * A trace or a capture was written to since this was set to false.  Lines about who has
 * which address do not count.
 */
extern bool sim_trace_used;

/* Open and close the file; watch.h starts and ends a trace.  "-": standard error. */
int sim_trace_start(const char *path);
void sim_trace_stop(void);
int sim_trace_error(void);	/* 0, or the negative errno of the write that failed */

/* A line, member by member, between begin and end; only while sim_tracing(). */
void sim_trace_begin(const char *kind) __attribute__((cold));
void sim_trace_end(void);

extern struct trace_line sim_trace_current;	/* between begin and end */

static inline void sim_trace_text(const char *name, const char *value)
{
	trace_text(&sim_trace_current, name, value);
}

static inline void sim_trace_number(const char *name, uint64_t value)
{
	trace_number(&sim_trace_current, name, value);
}

static inline void sim_trace_status(const char *name, int value)
{
	trace_status(&sim_trace_current, name, value);
}

/* A whole line; the text is JSON members, escaped if need be. */
void sim_trace_line(const char *kind, const char *format, ...)
	__attribute__((cold, format(printf, 2, 3)));

#define sim_trace(...)						\
	do {							\
		if (sim_tracing())				\
			sim_trace_line(__VA_ARGS__);		\
	} while (0)

#endif
