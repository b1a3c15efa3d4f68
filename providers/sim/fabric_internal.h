/* SPDX-License-Identifier: BSD-2-Clause */
/* fabric_internal.h - between fabric.c and fabric_default.c.  Engine lock held. */
#ifndef SIM_FABRIC_INTERNAL_H
#define SIM_FABRIC_INTERNAL_H

#include "fabric.h"

/* An address behind one interface of a port; -EEXIST: somebody has it, -ENOSPC: no GID left. */
int sim_port_add_address(struct sim_port *port, const char *ifname, uint32_t ifindex,
			 const union sim_sockaddr *addr, uint8_t prefix_len);

/* Leave the shared fabric, if that is what we are on. */
void sim_fabric_detach(void);

#endif
