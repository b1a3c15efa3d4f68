/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * watch/watch.h - the trace of a fabric: who is on it, then what its timers, nodes and
 * packets do.  Engine lock held.
 */
#ifndef SIM_WATCH_H
#define SIM_WATCH_H

struct sim_packet;

/* "-": standard error.  0, or a negative errno; a trace that was open goes on then. */
int sim_trace_open(const char *path);
void sim_trace_close(void);

/* A packet leaves its sender ("send"), or has come to its receiver ("recv"): trace_packet.c. */
void sim_trace_packet(const char *kind, const struct sim_packet *packet);

#endif
