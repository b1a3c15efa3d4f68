/* SPDX-License-Identifier: BSD-2-Clause */
/* fabric/ports.h - a node's bound port numbers and whose ids they are.  Engine lock held. */
#ifndef SIM_PORTS_H
#define SIM_PORTS_H

#include "fabric.h"

/* The table lies in the shared segment if we are on a shared fabric. */
int sim_ports_open(uint32_t node, struct sim_ports_table **ret_table);
void sim_ports_close(struct sim_ports_table *table);

#endif
