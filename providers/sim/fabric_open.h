/* SPDX-License-Identifier: BSD-2-Clause */
/* fabric_open.h - the fabric that a process is on is made and dropped.  Engine lock held. */
#ifndef SIM_FABRIC_OPEN_H
#define SIM_FABRIC_OPEN_H

/* The fabric that the settings ask for; tests: a private one without nodes. */
int sim_fabric_open_default(void);
int sim_fabric_open_private(void);
/* One whose nodes a scenario file has, shared or private as the clock is. */
int sim_fabric_open_scenario(const char *path);
/* All that is on it, and what is under way. */
void sim_fabric_close(void);

/* --- Between fabric_open.c and fabric_scenario.c. --- */

/* Ready for nodes. */
int sim_fabric_begin(void);
/* Join the shared fabric that the settings name; kind is the transport, or that it is a scenario's. */
int sim_fabric_join(const char *kind);

#endif
