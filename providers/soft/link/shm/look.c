/* SPDX-License-Identifier: BSD-2-Clause */
/* link/shm/look.c - see look.h. */
#include "config.h"

#include "providers/soft/shm/doorbell.h"
#include "look.h"
#include "shm.h"

#define ENOUGH 16u	/* reads in a row; to look at another ring costs as much as some packets */

static unsigned int last = SIM_NOBODY, times;

void sim_look_has_read(const struct sim_peer *peer, unsigned int slot, unsigned int records)
{
	/* Where the ring goes on at its start, the place moves without a record. */
	if (sim_doorbell_watched() == slot)
		sim_doorbell_watch(slot, sim_ring_next_length(&peer->in));
	if (!records)
		return;
	times = last == slot ? times + 1 : 0;
	last = slot;
}

void sim_look_polled(void)
{
	const struct sim_peer *peer;

	if (times < ENOUGH || sim_doorbell_watched() == last)
		return;
	peer = sim_peer_known(last);
	if (peer && peer->in.ring && sim_segment_joined())
		sim_doorbell_watch(last, sim_ring_next_length(&peer->in));
	times = 0;
}

bool sim_look_is_unread(unsigned int slot)
{
	const struct sim_peer *peer = sim_peer_known(slot);

	return sim_slot_has_mail(sim_segment_peer(slot), sim_segment_slot()) ||
	       (peer && sim_ring_unread(&peer->out));
}

bool sim_shm_unread(unsigned int slot)
{
	return sim_segment_joined() && slot != sim_segment_slot() && slot < SIM_MAX_SLOTS &&
	       sim_peer_is_live(slot) && sim_look_is_unread(slot) && !sim_segment_is_dead(slot);
}
