/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fabric/groups.c - the table of multicast groups and the processes in them.
 *
 * Senders read the table without a lock.  If an entry changes at that moment, a sender
 * can only send one datagram too many or too few: each receiver checks itself which of
 * its QPs are in the group.
 */
#include "config.h"

#include <errno.h>
#include <string.h>

#include "providers/soft/shm/segment.h"
#include "groups.h"
#include "remote.h"

static struct sim_groups_area own;

static struct sim_groups_area *the_area(void)
{
	return sim_segment_joined() ? sim_segment_area(SIM_AREA_GROUPS) : &own;
}

bool sim_gid_is_group(const union ibv_gid *gid)
{
	static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };

	return gid->raw[0] == 0xff ||
	       (!memcmp(gid->raw, mapped, sizeof(mapped)) && (gid->raw[12] & 0xf0) == 0xe0);
}

static uint32_t end_of(struct sim_groups_area *area)
{
	uint32_t end = atomic_load_explicit(&area->end, memory_order_acquire);

	return end < SIM_MAX_MEMBERS ? end : SIM_MAX_MEMBERS;
}

static bool is_member(struct sim_member *member, uint32_t owner, const union ibv_gid *mgid,
		      const struct sim_port *port)
{
	return atomic_load(&member->owner) == owner && member->port == port->fabric_index &&
	       !memcmp(&member->mgid, mgid, sizeof(*mgid));
}

static int add(struct sim_groups_area *area, const union ibv_gid *mgid, const struct sim_port *port)
{
	uint32_t owner = sim_self_slot() + 1, end = end_of(area), place = SIM_MAX_MEMBERS;
	struct sim_member *member;

	for (uint32_t i = 0; i < end; i++) {
		if (is_member(&area->members[i], owner, mgid, port))
			return 0;
		if (place == SIM_MAX_MEMBERS && !atomic_load(&area->members[i].owner))
			place = i;
	}
	if (place == SIM_MAX_MEMBERS)
		place = end;
	if (place == SIM_MAX_MEMBERS)
		return -ENOMEM;
	member = &area->members[place];
	member->port = port->fabric_index;
	member->mgid = *mgid;
	atomic_store_explicit(&member->owner, owner, memory_order_release);
	if (place == end)
		atomic_store_explicit(&area->end, end + 1, memory_order_release);
	return 0;
}

int sim_group_enter(const union ibv_gid *mgid, const struct sim_port *port)
{
	int r;

	sim_segment_lock();
	r = add(the_area(), mgid, port);
	if (r < 0 && sim_segment_reclaim_all())
		r = add(the_area(), mgid, port);
	sim_segment_unlock();
	if (!r && sim_remote)
		sim_remote->joined();
	return r;
}

static void shrink(struct sim_groups_area *area)
{
	uint32_t end = end_of(area);

	while (end && !atomic_load(&area->members[end - 1].owner))
		end--;
	atomic_store_explicit(&area->end, end, memory_order_release);
}

void sim_group_leave(const union ibv_gid *mgid, const struct sim_port *port)
{
	struct sim_groups_area *area = the_area();
	uint32_t end = end_of(area);

	sim_segment_lock();
	for (uint32_t i = 0; i < end; i++)
		if (is_member(&area->members[i], sim_self_slot() + 1, mgid, port))
			atomic_store(&area->members[i].owner, 0);
	shrink(area);
	sim_segment_unlock();
}

struct sim_port *sim_group_next(const union ibv_gid *mgid, uint32_t *cursor,
				unsigned int *ret_slot)
{
	struct sim_groups_area *area = the_area();
	uint32_t end = end_of(area);

	while (*cursor < end) {
		struct sim_member *member = &area->members[(*cursor)++];
		uint32_t owner = atomic_load_explicit(&member->owner, memory_order_acquire);
		struct sim_port *port;

		if (!owner || owner > SIM_MAX_SLOTS || memcmp(&member->mgid, mgid, sizeof(*mgid)))
			continue;
		port = sim_port_by_index(member->port);
		if (!port)
			continue;
		*ret_slot = owner - 1;
		return port;
	}
	return NULL;
}

void sim_groups_drop_slot(void *table, unsigned int slot)
{
	struct sim_groups_area *area = table;

	for (uint32_t i = 0; i < end_of(area); i++)
		if (atomic_load(&area->members[i].owner) == slot + 1)
			atomic_store(&area->members[i].owner, 0);
	shrink(area);
}
