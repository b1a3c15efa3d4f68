/* SPDX-License-Identifier: BSD-2-Clause */
/* faults/changes.c - see changes.h. */
#include "config.h"

#include "providers/soft/shm/segment.h"
#include "changes.h"
#include "fault.h"

#define TAG_BITS 24u
#define TAG_SHIFT (32u - TAG_BITS)

uint32_t sim_changes_tag, sim_changes_known_tag;

static uint64_t known;		/* all changes up to this number were applied, or are over */
static uint64_t due;		/* changes up to this number are applied after this round; 0: none */
static uint64_t joined;
static bool reading;

static struct sim_changes_area *shared_area(void)
{
	return sim_segment_area(SIM_AREA_CHANGES);
}

uint64_t sim_change_end(const struct sim_change *change)
{
	return change->delay && change->delay < SIM_NEVER - change->at ?
	       change->at + change->delay : SIM_NEVER;
}

bool sim_change_is_over(const struct sim_change *change, uint64_t now)
{
	switch (change->action) {
	case POLYCM_SIM_FREEZE:
	case POLYCM_SIM_PORT_DOWN:
	case POLYCM_SIM_FULL_BACKLOG:
		return sim_change_end(change) <= now;
	default:
		return false;
	}
}

/* A number above the newest is invalid: its writer died before it had finished.  0: free. */
static uint64_t number_of(const struct sim_changes_area *area, unsigned int place)
{
	uint64_t number = atomic_load(&area->kept[place].number);

	return number <= atomic_load(&area->newest) ? number : 0;
}

/* The oldest change, or the oldest one that is over; SIM_CHANGES: there is none. */
static unsigned int oldest_of(const struct sim_changes_area *area, bool over)
{
	unsigned int oldest = SIM_CHANGES;
	uint64_t now = sim_now();

	for (unsigned int i = 0; i < SIM_CHANGES; i++) {
		if (over && !sim_change_is_over(&area->kept[i].change, now))
			continue;
		if (oldest == SIM_CHANGES || number_of(area, i) < number_of(area, oldest))
			oldest = i;
	}
	return oldest;
}

/*
 * The entry for a new change: a free one; else that of the oldest change that is over,
 * since processes that join later do not need it; else that of the oldest change.
 */
static unsigned int entry_for(const struct sim_changes_area *area)
{
	unsigned int place;

	for (place = 0; place < SIM_CHANGES; place++)
		if (!number_of(area, place))
			return place;
	place = oldest_of(area, true);
	return place < SIM_CHANGES ? place : oldest_of(area, false);
}

uint64_t sim_changes_tell(const struct sim_change *change)
{
	struct sim_changes_area *area = shared_area();
	unsigned int place;
	uint64_t number;

	sim_segment_lock();
	place = entry_for(area);
	number = atomic_load(&area->newest) + 1;
	/* In this order a process that is killed in between leaves a whole change or none. */
	atomic_store(&area->kept[place].number, 0);
	area->kept[place].change = *change;
	atomic_store(&area->kept[place].number, number);
	atomic_store(&area->newest, number);
	sim_changes_tag = (uint32_t)(number << TAG_SHIFT);
	sim_segment_notify_all(sim_segment_slot());
	sim_segment_unlock();
	return number;
}

static void know(uint64_t number)
{
	known = number;
	sim_changes_known_tag = (uint32_t)(number << TAG_SHIFT);
	/* A change that this process wrote may not be applied yet: the tag does not go back. */
	if ((int32_t)(sim_changes_known_tag - sim_changes_tag) > 0)
		sim_changes_tag = sim_changes_known_tag;
}

/* The first change after the known ones; 0: there is none. */
static uint64_t next(uint64_t up_to, struct sim_change *ret_change)
{
	struct sim_changes_area *area = shared_area();
	uint64_t number = 0, newest;

	sim_segment_lock();
	newest = atomic_load(&area->newest);
	if (up_to > newest)
		up_to = newest;
	for (unsigned int i = 0; i < SIM_CHANGES && up_to > known; i++) {
		uint64_t this = number_of(area, i);

		if (this <= known || this > up_to || (number && this > number))
			continue;
		number = this;
		*ret_change = area->kept[i].change;
	}
	if (!number && up_to > known)
		know(up_to);
	sim_segment_unlock();
	return number;
}

static void read_up_to(uint64_t up_to)
{
	struct sim_change change;
	uint64_t number;

	if (reading || !sim_segment_joined())
		return;
	reading = true;
	/* The number of rounds is limited, because another process may never stop writing. */
	for (unsigned int i = 0; i < SIM_CHANGES && (number = next(up_to, &change)); i++) {
		know(number);
		/* Another process wrote the texts: they may not end. */
		change.device[SIM_CHANGE_TEXT - 1] = '\0';
		change.address[SIM_CHANGE_TEXT - 1] = '\0';
		change.new_address[SIM_CHANGE_TEXT - 1] = '\0';
		sim_fault_change(number, &change);
	}
	reading = false;
}

void sim_changes_read(void)
{
	read_up_to(UINT64_MAX);
}

bool sim_changes_end_round(bool more)
{
	uint64_t newest;

	if (due && !more) {
		read_up_to(due);
		due = 0;
	}
	if (!due && sim_segment_joined()) {
		newest = atomic_load(&shared_area()->newest);
		if (newest > known)
			due = newest;
	}
	return due != 0;
}

void sim_changes_read_tag(uint32_t tag)
{
	uint32_t ahead = (tag >> TAG_SHIFT) - (uint32_t)(known & ((1u << TAG_BITS) - 1));

	ahead &= (1u << TAG_BITS) - 1;
	/* Otherwise the tag is older: the sender has not read the newest changes. */
	if (ahead && ahead < 1u << (TAG_BITS - 1))
		read_up_to(known + ahead);
}

struct sim_rule_count *sim_changes_count(uint32_t rule)
{
	return rule && rule <= SIM_SHARED_RULES ? &shared_area()->counts[rule - 1] : NULL;
}

uint64_t sim_changes_joined(void)
{
	return joined;
}

void sim_changes_join(void)
{
	uint64_t newest = atomic_load(&shared_area()->newest);

	/* After fork() the parent's changes are applied, unless this is a new fabric of that name. */
	if (known > newest)
		known = newest;
	due = 0;
	sim_changes_tag = sim_changes_known_tag = (uint32_t)(known << TAG_SHIFT);
	if (!known)
		joined = sim_now();
}

void sim_changes_leave(void)
{
	sim_fault_keep_counts();
	known = due = joined = 0;
	sim_changes_tag = sim_changes_known_tag = 0;
}
