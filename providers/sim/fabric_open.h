/* SPDX-License-Identifier: BSD-2-Clause */
/* fabric_open.h - opening the fabric that the settings describe.  Engine lock held. */
#ifndef SIM_FABRIC_OPEN_H
#define SIM_FABRIC_OPEN_H

/* The default fabric, as the settings describe it. */
int sim_fabric_open_default(void);
/* The nodes of a scenario file; shared under the real clock, private under the virtual one. */
int sim_fabric_open_scenario(const char *path);

/* --- Shared by fabric_open.c and fabric_scenario.c. --- */

/* Join the shared fabric that the settings name; kind is the transport, or that it is a scenario's. */
int sim_fabric_join(const char *kind);

#endif
