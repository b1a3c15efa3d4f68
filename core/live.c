/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * live.c - a set of addresses: open addressing with linear probing, in parts
 * with a lock each so that threads with ids of their own seldom meet.
 *
 * An entry is its address; a part is at most half full and never shrinks.
 * Removing moves the entries behind the gap up, so there are no tombstones.
 */
#include "config.h"

#include "live.h"

#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>

#define NUM_PARTS 16u		/* a power of 2 */
#define FIRST_SIZE 64u		/* likewise */

static struct part {
	_Alignas(64) pthread_mutex_t lock;
	const void **slots;
	size_t size, used;	/* size: 0 or a power of 2 */
} parts[NUM_PARTS] = {
	[0 ... NUM_PARTS - 1] = { .lock = PTHREAD_MUTEX_INITIALIZER },
};

/* Multiplication by 2^64 / phi spreads aligned addresses over the high bits. */
static uint64_t hash(const void *object)
{
	return (uint64_t)(uintptr_t)object * UINT64_C(0x9e3779b97f4a7c15);
}

static struct part *part_of(const void *object)
{
	return &parts[hash(object) >> 60 & (NUM_PARTS - 1)];
}

static size_t home(const struct part *part, const void *object)
{
	return (size_t)(hash(object) >> 20) & (part->size - 1);
}

/* The slot of the object, or the free one where it would go.  size > 0. */
static size_t probe(const struct part *part, const void *object)
{
	size_t i = home(part, object);

	while (part->slots[i] && part->slots[i] != object)
		i = (i + 1) & (part->size - 1);
	return i;
}

static int grow(struct part *part)
{
	const void **old = part->slots;
	size_t old_size = part->size;
	const void **slots;

	slots = calloc(old_size ? old_size * 2 : FIRST_SIZE, sizeof(*slots));
	if (!slots)
		return -ENOMEM;
	part->slots = slots;
	part->size = old_size ? old_size * 2 : FIRST_SIZE;
	for (size_t i = 0; i < old_size; i++)
		if (old[i])
			slots[probe(part, old[i])] = old[i];
	free(old);
	return 0;
}

int polycm_live_add(const void *object)
{
	struct part *part = part_of(object);
	int err = 0;

	pthread_mutex_lock(&part->lock);
	if (2 * part->used >= part->size)
		err = grow(part);
	if (!err) {
		part->slots[probe(part, object)] = object;
		part->used++;
	}
	pthread_mutex_unlock(&part->lock);
	return err;
}

/* Close the gap: what probing would no longer reach moves into it. */
static void close_gap(struct part *part, size_t gap)
{
	size_t mask = part->size - 1, i = gap;

	for (;;) {
		part->slots[gap] = NULL;
		do {
			i = (i + 1) & mask;
			if (!part->slots[i])
				return;
		} while (((i - home(part, part->slots[i])) & mask) < ((i - gap) & mask));
		part->slots[gap] = part->slots[i];
		gap = i;
	}
}

void polycm_live_remove(const void *object)
{
	struct part *part = part_of(object);
	size_t i;

	pthread_mutex_lock(&part->lock);
	if (part->size) {
		i = probe(part, object);
		if (part->slots[i]) {
			close_gap(part, i);
			part->used--;
		}
	}
	pthread_mutex_unlock(&part->lock);
}

bool polycm_live(const void *object)
{
	struct part *part = part_of(object);
	bool found;

	pthread_mutex_lock(&part->lock);
	found = object && part->size && part->slots[probe(part, object)];
	pthread_mutex_unlock(&part->lock);
	return found;
}
