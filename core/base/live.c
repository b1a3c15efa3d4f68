/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * base/live.c - a set of addresses: open addressing with linear probing, in parts
 * with a lock each so that threads with ids of their own seldom meet.
 *
 * An entry is its address; a part is at most half full, or fuller where there
 * is no memory for more, and never shrinks.
 * Removing moves the entries behind the gap up, so there are no tombstones.
 *
 * Looking up takes no lock: it counts when no writer was at the part meanwhile
 * (`changes' is even, and the same before and after), and is done again under
 * the lock otherwise.  Tables that became too small stay for who still reads
 * them; together they are smaller than the last.
 */
#include "config.h"

#include "live.h"

#include <errno.h>
#include <stdlib.h>

#define FIRST_SIZE 64u		/* a power of 2 */

/* Before anything is in a part. */
static struct polycm_live_table no_table = {
	.size = 1,
	.shift = POLYCM_LIVE_PART_SHIFT,
	.slots = { NULL },
};

#define EMPTY_SET { { [0 ... POLYCM_LIVE_PARTS - 1] = { .table = &no_table } } }

struct polycm_live_set polycm_live_objects = EMPTY_SET;
struct polycm_live_set polycm_live_events = EMPTY_SET;
struct polycm_live_set polycm_live_children = EMPTY_SET;
struct polycm_live_set polycm_live_timers = EMPTY_SET;

/* Before what the reader looks at next, `changes' in the end; after what the writer wrote before. */
static const void *slot_get(const struct polycm_live_table *table, size_t i)
{
	return __atomic_load_n(&table->slots[i], __ATOMIC_ACQUIRE);
}

static void slot_set(struct polycm_live_table *table, size_t i, const void *object)
{
	__atomic_store_n(&table->slots[i], object, __ATOMIC_RELEASE);
}

/*
 * The slot of the object, or the free one where it would go.  A table that
 * changes meanwhile may seem to have neither: then any.
 */
static inline __attribute__((always_inline)) size_t probe(const struct polycm_live_table *table,
							  const void *object)
{
	size_t first = polycm_live_home(table, object), i = first;
	const void *found;

	while ((found = slot_get(table, i)) && found != object) {
		i = (i + 1) & (table->size - 1);
		if (i == first)
			break;
	}
	return i;
}

static struct polycm_live_table *grown(struct polycm_live_table *old)
{
	size_t size = old->size < FIRST_SIZE ? FIRST_SIZE : old->size * 2;
	struct polycm_live_table *table = calloc(1, sizeof(*table) + size * sizeof(table->slots[0]));

	if (!table)
		return NULL;
	table->size = size;
	table->shift = POLYCM_LIVE_PART_SHIFT - (unsigned int)__builtin_ctzl(size);
	table->smaller = old;
	for (size_t i = 0; i < old->size; i++)
		if (slot_get(old, i))
			slot_set(table, probe(table, slot_get(old, i)), slot_get(old, i));
	return table;
}

/* Under the lock, around changes that a lookup must not see half done. */
static void begin_change(struct polycm_live_part *part)
{
	__atomic_store_n(&part->changes, part->changes + 1, __ATOMIC_RELAXED);
}

static void end_change(struct polycm_live_part *part)
{
	__atomic_store_n(&part->changes, part->changes + 1, __ATOMIC_RELEASE);
}

static __attribute__((noinline)) int make_larger(struct polycm_live_part *part, size_t taken)
{
	struct polycm_live_table *table = part->table, *larger;

	larger = grown(table);
	if (larger)
		__atomic_store_n(&part->table, larger, __ATOMIC_RELEASE);
	else if (taken + 2 > table->size)
		return -ENOMEM;
	return 0;
}

/* Under the lock: a place more.  One stays free, for searches to end. */
static inline int make_room(struct polycm_live_part *part)
{
	size_t taken = part->used + part->reserved;

	if (__builtin_expect(2 * taken + 1 < part->table->size, 1))
		return 0;
	return make_larger(part, taken);
}

/* Under the lock.  One store: a lookup sees it or not. */
static void put(struct polycm_live_part *part, const void *object)
{
	slot_set(part->table, probe(part->table, object), object);
	part->used++;
}

int polycm_live_add(struct polycm_live_set *set, const void *object)
{
	struct polycm_live_part *part = polycm_live_part(set, object);
	int err;

	polycm_latch_take(&part->live_lock);
	err = make_room(part);
	if (!err)
		put(part, object);
	polycm_latch_give(&part->live_lock);
	return err;
}

int polycm_live_reserve(struct polycm_live_set *set, const void *object)
{
	struct polycm_live_part *part = polycm_live_part(set, object);
	int err;

	polycm_latch_take(&part->live_lock);
	err = make_room(part);
	if (!err)
		part->reserved++;
	polycm_latch_give(&part->live_lock);
	return err;
}

void polycm_live_add_reserved(struct polycm_live_set *set, const void *object)
{
	struct polycm_live_part *part = polycm_live_part(set, object);

	polycm_latch_take(&part->live_lock);
	part->reserved--;
	put(part, object);
	polycm_latch_give(&part->live_lock);
}

void polycm_live_unreserve(struct polycm_live_set *set, const void *object)
{
	struct polycm_live_part *part = polycm_live_part(set, object);

	polycm_latch_take(&part->live_lock);
	part->reserved--;
	polycm_latch_give(&part->live_lock);
}

/* Close the gap: what probing would no longer reach moves into it. */
static void close_gap(struct polycm_live_table *table, size_t gap)
{
	size_t mask = table->size - 1, i = gap, home;

	for (;;) {
		slot_set(table, gap, NULL);
		do {
			i = (i + 1) & mask;
			if (!slot_get(table, i))
				return;
			home = polycm_live_home(table, slot_get(table, i));
		} while (((i - home) & mask) < ((i - gap) & mask));
		slot_set(table, gap, slot_get(table, i));
		gap = i;
	}
}

bool polycm_live_remove_if(struct polycm_live_set *set, const void *object,
			   bool (*may)(const void *object))
{
	struct polycm_live_part *part = polycm_live_part(set, object);
	bool found = false;
	size_t i;

	polycm_latch_take(&part->live_lock);
	if (object) {
		i = probe(part->table, object);
		found = slot_get(part->table, i) == object && (!may || may(object));
		if (found) {
			begin_change(part);
			close_gap(part->table, i);
			end_change(part);
			part->used--;
		}
	}
	polycm_latch_give(&part->live_lock);
	return found;
}

bool polycm_live_remove(struct polycm_live_set *set, const void *object)
{
	return polycm_live_remove_if(set, object, NULL);
}

static bool contains(const struct polycm_live_part *part, const void *object)
{
	const struct polycm_live_table *table = __atomic_load_n(&part->table, __ATOMIC_ACQUIRE);

	return object && slot_get(table, probe(table, object)) == object;
}

bool polycm_live_shared(struct polycm_live_part *part, const void *object)
{
	unsigned int changes;
	bool found;

	changes = __atomic_load_n(&part->changes, __ATOMIC_ACQUIRE);
	found = contains(part, object);
	if (!(changes & 1) && changes == __atomic_load_n(&part->changes, __ATOMIC_RELAXED))
		return found;

	polycm_latch_take(&part->live_lock);
	found = contains(part, object);
	polycm_latch_give(&part->live_lock);
	return found;
}

bool polycm_live_ask(struct polycm_live_set *set, const void *object,
		     bool (*fn)(const void *object))
{
	struct polycm_live_part *part = polycm_live_part(set, object);
	bool answer;

	polycm_latch_take(&part->live_lock);
	answer = contains(part, object) && fn(object);
	polycm_latch_give(&part->live_lock);
	return answer;
}

void polycm_live_walk(struct polycm_live_set *set, void (*fn)(const void *object, void *arg),
		      void *arg)
{
	for (struct polycm_live_part *part = set->parts; part < set->parts + POLYCM_LIVE_PARTS; part++) {
		polycm_latch_take(&part->live_lock);
		for (size_t i = 0; i < part->table->size; i++)
			if (slot_get(part->table, i))
				fn(slot_get(part->table, i), arg);
		polycm_latch_give(&part->live_lock);
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
