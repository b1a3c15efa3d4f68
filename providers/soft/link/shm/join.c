/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * link/shm/join.c - joining a shared fabric, what its segment has room for, and leaving it.  Engine
 * lock held.
 */
#include "config.h"

#include <errno.h>
#include <stdlib.h>

#include "providers/soft/fabric/groups.h"
#include "providers/soft/fabric/numbers.h"
#include "providers/soft/fabric/ports_area.h"
#include "providers/soft/faults/changes.h"
#include "providers/soft/faults/decisions.h"
#include "providers/soft/link/left.h"
#include "providers/soft/link/pace.h"
#include "providers/soft/shm/doorbell.h"
#include "look.h"
#include "shm_internal.h"

/* The last process deletes the files.  An exit handler may run while the lock is held. */
static void leave_at_exit(void)
{
	if (sim_is_inherited() || !sim_lock_within(SIM_MS(200)))
		return;
	sim_shm_leave();
	sim_unlock();
}

static const struct sim_area_layout layout[SIM_AREAS] = {
	[SIM_AREA_CHANGES] = { .size = sizeof(struct sim_changes_area) },
	[SIM_AREA_QPNS] = { .size = sizeof(struct sim_qpn_area), .drop_slot = sim_qpn_drop_slot },
	[SIM_AREA_GROUPS] = {
		.size = sizeof(struct sim_groups_area),
		.drop_slot = sim_groups_drop_slot,
	},
	[SIM_AREA_PACES] = { .size = sizeof(struct sim_pace_area) },
	[SIM_AREA_COUNTERS] = { .size = sizeof(struct sim_counters_area) },
	[SIM_AREA_DECISIONS] = { .size = sizeof(struct sim_decisions_area) },
	[SIM_AREA_PORTS] = {
		.size = sizeof(struct sim_ports_area),
		.sparse = sizeof(((struct sim_ports_area *)0)->entries),
		.drop_slot = sim_ports_area_drop_slot,
		.repair = sim_ports_area_repair,
	},
};

static void forked(void)
{
	sim_doorbell_forget();
	sim_peer_forget_all();
	sim_left_forget();
	sim_segment_after_fork();
}

int sim_shm_join(const char *fabric)
{
	static bool registered;
	int r;

	if (!registered && atexit(leave_at_exit))
		return -ENOMEM;
	registered = true;
	sim_link_to_process = sim_shm_send;
	sim_engine_hooks.receive = sim_shm_receive;
	sim_engine_hooks.forked = forked;
	sim_engine_hooks.polled = sim_look_polled;
	sim_engine_hooks.unread = sim_look_is_unread;
	r = sim_segment_join(fabric, layout);
	if (!r)
		sim_changes_join();
	return r;
}

void sim_shm_leave(void)
{
	sim_settle();
	sim_death_watch_ends();
	sim_shm_stop_trying();
	sim_peer_forget_all();
	sim_left_forget();
	sim_changes_leave();
	sim_segment_leave();
}
