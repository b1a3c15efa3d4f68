/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * base/live.h - the addresses of what programs hold: ids and channels in one set,
 * events in another.  A pointer from a program is looked up here before it is
 * followed, so that one that is stale, or was never ours, is told without
 * being read.
 *
 * Any thread.  The locks of the events' set are leaves, under those of the
 * objects' set a channel may be locked.
 */
#ifndef POLYCM_CORE_LIVE_H
#define POLYCM_CORE_LIVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "latch.h"

#define POLYCM_LIVE_PARTS 16u		/* a power of 2 */
#define POLYCM_LIVE_PART_SHIFT 60	/* of a hash, down to the bits that are the part's */

struct polycm_live_part {
	_Alignas(64) struct polycm_latch live_lock;
	unsigned int shift;		/* of a hash, down to the bits that are the home slot's */
	size_t size;			/* a power of 2 */
	size_t used, reserved;
	const void **slots;		/* one at least is free: a search ends */
};

struct polycm_live_set {
	struct polycm_live_part parts[POLYCM_LIVE_PARTS];
};

extern struct polycm_live_set polycm_live_objects, polycm_live_events;
/* What plugins hold: children that were not posted yet, and timers. */
extern struct polycm_live_set polycm_live_children, polycm_live_timers;

/* 0 or -ENOMEM.  Not twice for one address. */
int polycm_live_add(struct polycm_live_set *set, const void *object);
/*
 * A place for an object that is to be added later, when nothing may fail: 0 or
 * -ENOMEM.  Then one of the two below.
 */
int polycm_live_reserve(struct polycm_live_set *set, const void *object);
void polycm_live_add_reserved(struct polycm_live_set *set, const void *object);
void polycm_live_unreserve(struct polycm_live_set *set, const void *object);
/* Was it there?  Of several threads that remove it, one is told so. */
bool polycm_live_remove(struct polycm_live_set *set, const void *object);
/* The same where may(object) says so, which is asked while the object stays. */
bool polycm_live_remove_if(struct polycm_live_set *set, const void *object,
			   bool (*may)(const void *object));
/* Around fork(): no set is being changed when the child gets its copy of them. */
void polycm_live_before_fork(void);
void polycm_live_after_fork(void);
/*
 * What fn says of the object, under the lock of what holds it: it stays
 * meanwhile.  false: it is not there.  Without fn: is it there?
 */
bool polycm_live_ask(struct polycm_live_set *set, const void *object,
		     bool (*fn)(const void *object));
/* fn for all that are there, in no order, under the lock of what holds it: it stays meanwhile. */
void polycm_live_walk(struct polycm_live_set *set, void (*fn)(const void *object, void *arg),
		      void *arg);

/*
 * Multiplication by 2^64 / phi spreads aligned addresses evenly over the high
 * bits: the first are the part's number, those after them the home slot's.
 */
static inline uint64_t polycm_live_hash(const void *object)
{
	return (uint64_t)(uintptr_t)object * UINT64_C(0x9e3779b97f4a7c15);
}

static inline struct polycm_live_part *polycm_live_part(struct polycm_live_set *set,
							const void *object)
{
	return &set->parts[polycm_live_hash(object) >> POLYCM_LIVE_PART_SHIFT];
}

static inline size_t polycm_live_home(const struct polycm_live_part *part, const void *object)
{
	return (size_t)(polycm_live_hash(object) >> part->shift) & (part->size - 1);
}

/* The slot of the object, or the free one where it would go. */
static inline const void **polycm_live_probe(const struct polycm_live_part *part,
					     const void *object)
{
	size_t i = polycm_live_home(part, object);

	while (part->slots[i] && part->slots[i] != object)
		i = (i + 1) & (part->size - 1);
	return &part->slots[i];
}

static inline bool polycm_live(struct polycm_live_set *set, const void *object)
{
	if (!polycm_alone())
		return polycm_live_ask(set, object, NULL);
	return *polycm_live_probe(polycm_live_part(set, object), object);
}

#endif
