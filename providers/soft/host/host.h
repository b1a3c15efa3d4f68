/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * host/host.h - the fabric that this process is on, and this host as one of its nodes.
 *
 * Under the real clock, processes that name the same fabric share it.  Under the virtual clock
 * it is the process's own, as time is.  Engine lock held.
 */
#ifndef SIM_HOST_H
#define SIM_HOST_H

#include "providers/soft/fabric/fabric.h"

#define SIM_FABRIC_NAME_MAX 160u

/* A fabric without nodes. */
int sim_fabric_begin(void);
/* Destroy nodes, rules, links and packets under way, and leave the shared fabric. */
void sim_fabric_close(void);

/*
 * Join the shared fabric of that name (shorter than SIM_FABRIC_NAME_MAX), before it begins.  The
 * child of a fork() joins again, when it first uses the fabric.  Errors of sim_shm_join().
 */
int sim_host_join(const char *name);

/* Set before the host is added, or NULL: which of its addresses the device has, loopback apart. */
extern bool (*sim_host_may_use)(const struct sockaddr *addr);

/* Add this host: a node with one device that has all its addresses.  profile may be NULL. */
int sim_host_add(const char *name, const char *device_name, const struct polycm_transport *rules,
		 const struct sim_profile *profile);

/*
 * The host's addresses may have changed: add those that are new, and remove those that are gone,
 * with the events that programs get for it.  True: something has changed.
 */
bool sim_host_renew(struct sim_port *port);

#endif
