/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * trace.h - POLYCM_SIM_TRACE: one JSON object per line, stable field order,
 * the engine's time.  Under the engine's lock; cheap when off.
 *
 * Nothing that differs between two runs of one seed may be traced: no
 * pointers, process ids or wall time.  Ids are traced by a number that counts
 * from 1 in order of creation.
 */
#ifndef SIM_TRACE_H
#define SIM_TRACE_H

#include "link/link.h"

extern bool sim_trace_on;

int sim_trace_open(const char *path);	/* "-": standard error */
void sim_trace_close(void);
void sim_trace_flush(void);
/* kind: "event", "state", "send", "recv", "timer", "call".  The rest are JSON members. */
void sim_trace_line(const char *kind, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

#define sim_trace(...)						\
	do {							\
		if (__builtin_expect(sim_trace_on, 0))		\
			sim_trace_line(__VA_ARGS__);		\
	} while (0)

#endif
