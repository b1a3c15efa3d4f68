/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cm/table.h - finds objects by a number of theirs: a chained hash table whose links
 * are in the objects, so that adding one needs no memory but that of the buckets.
 *
 * Numbers are taken as they are: connection ids are handed out one after the other, and
 * QP numbers are unique in the fabric. So hardly two objects share a bucket, and objects
 * of one time stand side by side. Processes begin at other places. Engine lock held.
 */
#ifndef SIM_CM_TABLE_H
#define SIM_CM_TABLE_H

#include <stddef.h>

#include "providers/soft/fabric/fabric.h"

struct cm_table {
	void **buckets;
	size_t num_buckets;		/* a power of two, or 0 */
	size_t count;
	size_t link, number;		/* offsets in an object: void pointer and uint32_t */
};

static inline void **cm_table_link(const struct cm_table *table, const void *object)
{
	return (void **)((uintptr_t)object + table->link);
}

static inline uint32_t cm_table_number(const struct cm_table *table, const void *object)
{
	return *(const uint32_t *)((uintptr_t)object + table->number);
}

static inline void **cm_table_bucket(const struct cm_table *table, uint32_t number)
{
	size_t hash = number + (number >> SIM_CONN_INDEX_BITS) * 0x9e3779b9u;

	return &table->buckets[hash & (table->num_buckets - 1)];
}

int cm_table_grow(struct cm_table *table);
void cm_table_free(struct cm_table *table);

/* Room for one more, so that adding it cannot fail.  -ENOMEM. */
static inline int cm_table_reserve(struct cm_table *table)
{
	return table->count < table->num_buckets ? 0 : cm_table_grow(table);
}

static inline void cm_table_add(struct cm_table *table, void *object)
{
	void **bucket = cm_table_bucket(table, cm_table_number(table, object));

	*cm_table_link(table, object) = *bucket;
	*bucket = object;
	table->count++;
}

/* It is there. */
static inline void cm_table_remove(struct cm_table *table, void *object)
{
	void **link = cm_table_bucket(table, cm_table_number(table, object));

	while (*link != object)
		link = cm_table_link(table, *link);
	*link = *cm_table_link(table, object);
	table->count--;
}

/* Where an object with that number would be, or NULL: to prefetch it.  It may be another. */
static inline void *cm_table_guess(const struct cm_table *table, uint32_t number)
{
	return table->num_buckets ? *cm_table_bucket(table, number) : NULL;
}

/* The object, or one behind it, that has the number, or NULL. */
static inline void *cm_table_from(const struct cm_table *table, void *object, uint32_t number)
{
	while (object && cm_table_number(table, object) != number)
		object = *cm_table_link(table, object);
	return object;
}

/* The first object with that number, the next one after it; NULL: no more. */
static inline void *cm_table_first(const struct cm_table *table, uint32_t number)
{
	return cm_table_from(table, cm_table_guess(table, number), number);
}

static inline void *cm_table_next(const struct cm_table *table, const void *object)
{
	return cm_table_from(table, *cm_table_link(table, object), cm_table_number(table, object));
}

#endif
