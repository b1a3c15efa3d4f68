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
#include <stdint.h>
#include <stdlib.h>

#include "latch.h"

#define NUM_PARTS 16u		/* a power of 2 */
#define FIRST_SIZE 64u		/* likewise */
#define PART_SHIFT 60		/* of a hash, down to the bits that are the part's */

struct table {
	struct table *smaller;	/* retired */
	size_t size;		/* a power of 2 */
	unsigned int shift;	/* of a hash, down to the bits that are the home slot's */
	const void *slots[];	/* atomic */
};

struct part {
	_Alignas(64) struct polycm_latch live_lock;
	unsigned int changes;	/* atomic; odd while a writer is at it */
	struct table *table;	/* atomic; NULL: nothing was ever in it */
	size_t used, reserved;
};

struct polycm_live_set {
	struct part parts[NUM_PARTS];
};

struct polycm_live_set polycm_live_objects, polycm_live_events;
struct polycm_live_set polycm_live_children, polycm_live_timers;

/*
 * Multiplication by 2^64 / phi spreads aligned addresses evenly over the high
 * bits: the first are the part's number, those after them the home slot's.
 */
static uint64_t hash(const void *object)
{
	return (uint64_t)(uintptr_t)object * UINT64_C(0x9e3779b97f4a7c15);
}

static struct part *part_of(struct polycm_live_set *set, const void *object)
{
	return &set->parts[hash(object) >> PART_SHIFT];
}

static size_t home(const struct table *table, const void *object)
{
	return (size_t)(hash(object) >> table->shift) & (table->size - 1);
}

/* Before what the reader looks at next, `changes' in the end; after what the writer wrote before. */
static const void *slot_get(const struct table *table, size_t i)
{
	return __atomic_load_n(&table->slots[i], __ATOMIC_ACQUIRE);
}

static void slot_set(struct table *table, size_t i, const void *object)
{
	__atomic_store_n(&table->slots[i], object, __ATOMIC_RELEASE);
}

/*
 * The slot of the object, or the free one where it would go.  A table that
 * changes meanwhile may seem to have neither: then any.
 */
static inline __attribute__((always_inline)) size_t probe(const struct table *table,
							  const void *object)
{
	size_t first = home(table, object), i = first;
	const void *found;

	while ((found = slot_get(table, i)) && found != object) {
		i = (i + 1) & (table->size - 1);
		if (i == first)
			break;
	}
	return i;
}

static struct table *grown(struct table *old)
{
	size_t size = old ? old->size * 2 : FIRST_SIZE;
	struct table *table = calloc(1, sizeof(*table) + size * sizeof(table->slots[0]));

	if (!table)
		return NULL;
	table->size = size;
	table->shift = PART_SHIFT - (unsigned int)__builtin_ctzl(size);
	table->smaller = old;
	for (size_t i = 0; old && i < old->size; i++)
		if (slot_get(old, i))
			slot_set(table, probe(table, slot_get(old, i)), slot_get(old, i));
	return table;
}

/* Under the lock, around changes that a lookup must not see half done. */
static void begin_change(struct part *part)
{
	__atomic_store_n(&part->changes, part->changes + 1, __ATOMIC_RELAXED);
}

static void end_change(struct part *part)
{
	__atomic_store_n(&part->changes, part->changes + 1, __ATOMIC_RELEASE);
}

static __attribute__((noinline)) int make_larger(struct part *part, size_t taken)
{
	struct table *table = part->table, *larger;

	larger = grown(table);
	if (larger)
		__atomic_store_n(&part->table, larger, __ATOMIC_RELEASE);
	else if (!table || taken + 2 > table->size)
		return -ENOMEM;
	return 0;
}

/* Under the lock: a place more.  One stays free, for searches to end. */
static inline int make_room(struct part *part)
{
	size_t taken = part->used + part->reserved;

	if (__builtin_expect(part->table && 2 * taken < part->table->size, 1))
		return 0;
	return make_larger(part, taken);
}

/* Under the lock.  One store: a lookup sees it or not. */
static void put(struct part *part, const void *object)
{
	slot_set(part->table, probe(part->table, object), object);
	part->used++;
}

int polycm_live_add(struct polycm_live_set *set, const void *object)
{
	struct part *part = part_of(set, object);
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
	struct part *part = part_of(set, object);
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
	struct part *part = part_of(set, object);

	polycm_latch_take(&part->live_lock);
	part->reserved--;
	put(part, object);
	polycm_latch_give(&part->live_lock);
}

void polycm_live_unreserve(struct polycm_live_set *set, const void *object)
{
	struct part *part = part_of(set, object);

	polycm_latch_take(&part->live_lock);
	part->reserved--;
	polycm_latch_give(&part->live_lock);
}

/* Close the gap: what probing would no longer reach moves into it. */
static void close_gap(struct table *table, size_t gap)
{
	size_t mask = table->size - 1, i = gap;

	for (;;) {
		slot_set(table, gap, NULL);
		do {
			i = (i + 1) & mask;
			if (!slot_get(table, i))
				return;
		} while (((i - home(table, slot_get(table, i))) & mask) < ((i - gap) & mask));
		slot_set(table, gap, slot_get(table, i));
		gap = i;
	}
}

bool polycm_live_remove_if(struct polycm_live_set *set, const void *object,
			   bool (*may)(const void *object))
{
	struct part *part = part_of(set, object);
	bool found = false;
	size_t i;

	polycm_latch_take(&part->live_lock);
	if (part->table && object) {
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

static bool contains(const struct part *part, const void *object)
{
	const struct table *table = __atomic_load_n(&part->table, __ATOMIC_ACQUIRE);

	return table && slot_get(table, probe(table, object)) == object;
}

/* Nobody changes it meanwhile, and there is room in it: the search ends. */
static bool contains_now(const struct part *part, const void *object)
{
	const struct table *table = part->table;
	size_t i;

	if (!table)
		return false;
	i = home(table, object);
	while (table->slots[i] && table->slots[i] != object)
		i = (i + 1) & (table->size - 1);
	return table->slots[i];
}

/* With other threads about. */
static __attribute__((noinline)) bool look_up(struct part *part, const void *object)
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

bool polycm_live(struct polycm_live_set *set, const void *object)
{
	struct part *part = part_of(set, object);

	if (!object)
		return false;
	return polycm_alone() ? contains_now(part, object) : look_up(part, object);
}

bool polycm_live_ask(struct polycm_live_set *set, const void *object,
		     bool (*fn)(const void *object))
{
	struct part *part = part_of(set, object);
	bool answer;

	polycm_latch_take(&part->live_lock);
	answer = object && contains(part, object) && fn(object);
	polycm_latch_give(&part->live_lock);
	return answer;
}

void polycm_live_walk(struct polycm_live_set *set, void (*fn)(const void *object, void *arg),
		      void *arg)
{
	for (struct part *part = set->parts; part < set->parts + NUM_PARTS; part++) {
		polycm_latch_take(&part->live_lock);
		for (size_t i = 0; part->table && i < part->table->size; i++)
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
		for (unsigned int part = 0; part < NUM_PARTS; part++)
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
