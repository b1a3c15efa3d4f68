/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fabric/groups.h - which processes have QPs in which multicast groups, and at
 * which ports.  The table is in the shared segment, or private memory without
 * one; all zero is empty.  Engine lock held.
 */
#ifndef SIM_NIC_GROUPS_H
#define SIM_NIC_GROUPS_H

#include <stdatomic.h>

#include "fabric.h"

#define SIM_MAX_MEMBERS 2048u
#define SIM_MULTICAST_QPN 0xffffffu

/* A process with QPs of that port in that group. */
struct sim_member {
	_Atomic uint32_t owner;		/* slot + 1, written last; 0: no member */
	uint32_t port;			/* its fabric_index */
	union ibv_gid mgid;
};

/* Changed under the segment's lock, read without. */
struct sim_groups_area {
	_Atomic uint32_t end;		/* all places from here on are empty */
	struct sim_member members[SIM_MAX_MEMBERS];
};

/* Is it the GID of a group?  RoCE v2 has mapped IPv4 addresses among them. */
bool sim_gid_is_group(const union ibv_gid *gid);

/* This process has QPs of the port in the group; again is no error.  -ENOMEM. */
int sim_group_enter(const union ibv_gid *mgid, const struct sim_port *port);
void sim_group_leave(const union ibv_gid *mgid, const struct sim_port *port);
/* One member after the other; *cursor begins with 0.  NULL: no more. */
struct sim_port *sim_group_next(const union ibv_gid *mgid, uint32_t *cursor,
				unsigned int *ret_slot);
/* That process is gone. */
void sim_groups_drop_slot(void *table, unsigned int slot);

#endif
