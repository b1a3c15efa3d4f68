/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * base/live.c - a set of addresses: open addressing with linear probing, in parts
 * with a lock each so that threads with ids of their own seldom meet.
 *
 * An entry is its address; a part is at most half full, or fuller where there
 * is no memory for more, and never shrinks.
 * Removing moves the entries behind the gap up, so there are no tombstones.
 */
#include "config.h"

#include "live.h"

#include <errno.h>
#include <stdlib.h>

#define FIRST_SIZE 64u		/* a power of 2 */

/* Before anything is in a part. */
static const void *no_slots[1];

#define EMPTY_PART { .shift = POLYCM_LIVE_PART_SHIFT, .size = 1, .slots = no_slots }
#define EMPTY_SET { { [0 ... POLYCM_LIVE_PARTS - 1] = EMPTY_PART } }

struct polycm_live_set polycm_live_objects = EMPTY_SET;
struct polycm_live_set polycm_live_events = EMPTY_SET;
struct polycm_live_set polycm_live_children = EMPTY_SET;
struct polycm_live_set polycm_live_timers = EMPTY_SET;

static inline struct polycm_live_part *lock_part(struct polycm_live_set *set, const void *object)
{
	struct polycm_live_part *part = polycm_live_part(set, object);

	polycm_latch_take(&part->live_lock);
	return part;
}

static inline void unlock_part(struct polycm_live_part *part)
{
	polycm_latch_give(&part->live_lock);
}

static __attribute__((noinline)) int make_larger(struct polycm_live_part *part, size_t taken)
{
	size_t size = part->size < FIRST_SIZE ? FIRST_SIZE : part->size * 2;
	struct polycm_live_part old = *part;

	part->slots = calloc(size, sizeof(part->slots[0]));
	if (!part->slots) {
		part->slots = old.slots;
		return taken + 2 > part->size ? -ENOMEM : 0;
	}
	part->size = size;
	part->shift = POLYCM_LIVE_PART_SHIFT - (unsigned int)__builtin_ctzl(size);
	for (size_t i = 0; i < old.size; i++)
		if (old.slots[i])
			*polycm_live_probe(part, old.slots[i]) = old.slots[i];
	if (old.slots != no_slots)
		free(old.slots);
	return 0;
}

/* A place more. */
static inline int make_room(struct polycm_live_part *part)
{
	size_t taken = part->used + part->reserved;

	if (__builtin_expect(2 * taken + 1 < part->size, 1))
		return 0;
	return make_larger(part, taken);
}

static void put(struct polycm_live_part *part, const void *object)
{
	*polycm_live_probe(part, object) = object;
	part->used++;
}

int polycm_live_add(struct polycm_live_set *set, const void *object)
{
	struct polycm_live_part *part = lock_part(set, object);
	int err = make_room(part);

	if (!err)
		put(part, object);
	unlock_part(part);
	return err;
}

int polycm_live_reserve(struct polycm_live_set *set, const void *object)
{
	struct polycm_live_part *part = lock_part(set, object);
	int err = make_room(part);

	if (!err)
		part->reserved++;
	unlock_part(part);
	return err;
}

void polycm_live_add_reserved(struct polycm_live_set *set, const void *object)
{
	struct polycm_live_part *part = lock_part(set, object);

	part->reserved--;
	put(part, object);
	unlock_part(part);
}

void polycm_live_unreserve(struct polycm_live_set *set, const void *object)
{
	struct polycm_live_part *part = lock_part(set, object);

	part->reserved--;
	unlock_part(part);
}

/* Close the gap: what probing would no longer reach moves into it. */
static void close_gap(struct polycm_live_part *part, size_t gap)
{
	size_t mask = part->size - 1, i = gap;

	for (;;) {
		part->slots[gap] = NULL;
		do {
			i = (i + 1) & mask;
			if (!part->slots[i])
				return;
		} while (((i - polycm_live_home(part, part->slots[i])) & mask) < ((i - gap) & mask));
		part->slots[gap] = part->slots[i];
		gap = i;
	}
}

bool polycm_live_remove_if(struct polycm_live_set *set, const void *object,
			   bool (*may)(const void *object))
{
	struct polycm_live_part *part = lock_part(set, object);
	const void **slot = polycm_live_probe(part, object);
	bool found = *slot && (!may || may(object));

	if (found) {
		close_gap(part, (size_t)(slot - part->slots));
		part->used--;
	}
	unlock_part(part);
	return found;
}

bool polycm_live_remove(struct polycm_live_set *set, const void *object)
{
	return polycm_live_remove_if(set, object, NULL);
}

bool polycm_live_ask(struct polycm_live_set *set, const void *object,
		     bool (*fn)(const void *object))
{
	struct polycm_live_part *part = lock_part(set, object);
	bool answer = *polycm_live_probe(part, object) && (!fn || fn(object));

	unlock_part(part);
	return answer;
}

void polycm_live_walk(struct polycm_live_set *set, void (*fn)(const void *object, void *arg),
		      void *arg)
{
	for (struct polycm_live_part *part = set->parts; part < set->parts + POLYCM_LIVE_PARTS; part++) {
		polycm_latch_take(&part->live_lock);
		for (size_t i = 0; i < part->size; i++)
			if (part->slots[i])
				fn(part->slots[i], arg);
		unlock_part(part);
	}
}

static struct polycm_live_set *const all_sets[] = {
	&polycm_live_objects, &polycm_live_events, &polycm_live_children, &polycm_live_timers,
};

static void each_lock(void (*fn)(struct polycm_latch *lock))
{
	for (size_t i = 0; i < sizeof(all_sets) / sizeof(all_sets[0]); i++)
		for (unsigned int part = 0; part < POLYCM_LIVE_PARTS; part++)
			fn(&all_sets[i]->parts[part].live_lock);
}

void polycm_live_before_fork(void)
{
	each_lock(polycm_latch_take);
}

void polycm_live_after_fork(void)
{
	each_lock(polycm_latch_give);
}
