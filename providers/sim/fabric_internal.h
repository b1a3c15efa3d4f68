/* SPDX-License-Identifier: BSD-2-Clause */
/* fabric_internal.h - between the fabric*.c files.  Engine lock held. */
#ifndef SIM_FABRIC_INTERNAL_H
#define SIM_FABRIC_INTERNAL_H

#include "fabric.h"

/* An address behind one interface of a port; -EEXIST: somebody has it, -ENOSPC: no GID left. */
int sim_port_add_address(struct sim_port *port, const char *ifname, uint32_t ifindex,
			 const union sim_sockaddr *addr, uint8_t prefix_len);

/* Join the shared fabric that the settings name; kind is the transport, or that it is a scenario's. */
int sim_fabric_join(const char *kind);
/* Leave the shared fabric, if that is what we are on. */
void sim_fabric_detach(void);

/* --- fabric_scenario.c --- */

/* After a fork: is it still the same scenario's?  And forget which it was. */
int sim_scenario_rejoin(void);
void sim_scenario_leave(void);

#endif
