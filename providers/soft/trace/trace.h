/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * trace/trace.h - POLYCM_SIM_TRACE: one JSON object per line, stable field order,
 * the engine's time.  Under the engine's lock; cheap when off.
 * polycm-trace(5) says which members each kind of line has.
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

extern bool sim_trace_on;

#define sim_tracing() __builtin_expect(sim_trace_on, 0)

/*
 * Something was told, to a trace or a capture, since this was set back; who has which
 * address is nothing yet.
 */
extern bool sim_trace_told;

/* The file and nothing in it yet; watch.h opens and closes a trace.  "-": standard error. */
int sim_trace_start(const char *path);
void sim_trace_stop(void);
int sim_trace_error(void);	/* 0, or the negative errno of the first write that failed */
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

#endif
