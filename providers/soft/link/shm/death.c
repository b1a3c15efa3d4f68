/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * link/shm/death.c - notices that another process of the shared fabric has died.  Its peers
 * check at intervals whether it still holds the lock of its slot; the first one that finds
 * it does not notifies all others (sim_segment_reclaim()).  Engine lock held.
 *
 * A host survives its processes: the handler does what its kernel does when one dies, after
 * everything that the process had sent was delivered.
 */
#include "config.h"

#include "providers/soft/shm/segment.h"
#include "shm_internal.h"

#define CHECK_EVERY SIM_MS(100)
#define CHECK_MORE SIM_MS(2)	/* for each process */

void (*sim_link_process_died)(unsigned int slot);

static struct sim_timer timer;

static unsigned int check_all(void)
{
	struct sim_peer *peer;
	unsigned int num = 0;

	for (unsigned int slot = 0; slot < SIM_MAX_SLOTS; slot++) {
		peer = sim_peer_known(slot);
		if (!peer || (!peer->out.ring && !peer->in.ring))
			continue;
		num++;
		if (sim_peer_is_stale(slot))
			sim_segment_notify(sim_segment_slot(), slot);
		if (sim_segment_is_dead(slot))
			sim_segment_check(slot);
	}
	return num;
}

static void check(struct sim_timer *unused)
{
	unsigned int num = check_all();

	(void)unused;
	if (num)
		sim_timer_arm(&timer, sim_now() + CHECK_EVERY + num * CHECK_MORE);
}

void sim_death_watch(void)
{
	if (sim_timer_armed(&timer))
		return;
	sim_timer_init(&timer, check);
	timer.looks = true;
	sim_timer_arm(&timer, sim_now() + CHECK_EVERY);
}

void sim_death_watch_ends(void)
{
	sim_timer_disarm(&timer);
}
