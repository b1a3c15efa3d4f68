/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fabric/shared.c - the fabric as one of several processes sees it: whether they share
 * it, where they meet, and that they have the same scenario file.
 */
#include "config.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "providers/soft/engine/turns.h"
#include "providers/soft/shm/folder.h"
#include "fabric.h"

static bool logged_no_listener;
static bool own_network;	/* nobody made it, and under the virtual clock nobody else is on it */
static uint64_t joined_digest;	/* 0: no scenario's fabric */
static uint64_t began;		/* of that fabric */

bool sim_fabric_is_shared(void)
{
	return sim_segment_joined();
}

const char *sim_fabric_place(void)
{
	static char place[sizeof(((struct sim_folder *)0)->path)];

	sim_lock();
	if (sim_fabric_is_shared())
		strcpy(place, sim_segment_folder()->path);
	else
		place[0] = '\0';
	sim_unlock();
	return place[0] ? place : NULL;
}

void sim_fabric_set_own(void)
{
	own_network = true;
}

void sim_fabric_log_no_listener(const struct polycm_id *id, const struct sim_node *node, bool taken)
{
	if (logged_no_listener || !(own_network || sim_fabric_is_shared()))
		return;
	logged_no_listener = true;
	if (own_network)
		sim_core->log(POLYCM_LOG_WARN, id, "nobody listens there: under the virtual clock this "
			      "network is the process's own, and other processes cannot be on it");
	else if (taken)
		sim_core->log(POLYCM_LOG_WARN, id, "a process has that port, but listens at another "
			      "address of this host, or not yet");
	else if (sim_turns() && sim_first_node()->next)	/* the network is of that run */
		sim_core->log(POLYCM_LOG_WARN, id, "no process on node %s of this simulated network "
			      "listens there", node->name);
	else if (sim_turns())
		sim_core->log(POLYCM_LOG_WARN, id, "no process of this simulated network listens there");
	else
		sim_core->log(POLYCM_LOG_WARN, id, "no process of this simulated network listens there: "
			      "only processes of user %u with the same fabric and transport "
			      "share it, in the folder %s", (unsigned int)geteuid(),
			      sim_segment_folder()->path);
}

void sim_fabric_forget_shared(void)
{
	logged_no_listener = own_network = false;
	joined_digest = 0;
}

/* A fabric that nobody has begun takes any file. */
int sim_scenario_agree(uint64_t digest)
{
	struct sim_scenario_id *theirs = sim_segment_scenario();
	bool same;

	joined_digest = digest;
	sim_segment_lock();
	if (!theirs->digest) {
		theirs->digest = digest;
		theirs->began = sim_now();
	}
	same = theirs->digest == digest;
	began = theirs->began;
	sim_segment_unlock();
	return same ? 0 : -EPROTO;
}

int sim_scenario_agree_again(void)
{
	return joined_digest ? sim_scenario_agree(joined_digest) : 0;
}

uint64_t sim_scenario_began(void)
{
	return joined_digest ? began : sim_now();
}

bool sim_scenario_is_shared(void)
{
	return joined_digest != 0;
}
