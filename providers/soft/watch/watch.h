/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * watch/watch.h - starting and ending the trace of a fabric: first its addresses, then
 * what timers, nodes and packets do.  Engine lock held.
 */
#ifndef SIM_WATCH_H
#define SIM_WATCH_H

struct sim_packet;

/* "-": standard error.  0, or a negative errno: then the current trace continues. */
int sim_trace_open(const char *path);
void sim_trace_close(void);

/* trace_packet.c: a packet leaves its sender (kind "send"), or arrives ("recv"). */
void sim_trace_packet(const char *kind, const struct sim_packet *packet);

#endif
