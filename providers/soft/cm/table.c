/* SPDX-License-Identifier: BSD-2-Clause */
/* cm/table.c - see table.h. */
#include "config.h"

#include <errno.h>

#include "providers/soft/fabric/fabric.h"
#include "table.h"

#define FIRST_BUCKETS 64u

static void **link_of(const struct cm_table *table, const void *object)
{
	return (void **)((uintptr_t)object + table->link);
}

static uint32_t number_of(const struct cm_table *table, const void *object)
{
	return *(const uint32_t *)((uintptr_t)object + table->number);
}

static void **bucket_of(const struct cm_table *table, uint32_t number)
{
	size_t hash = number + (number >> SIM_CONN_INDEX_BITS) * 0x9e3779b9u;

	return &table->buckets[hash & (table->num_buckets - 1)];
}

static void put(struct cm_table *table, void *object)
{
	void **bucket = bucket_of(table, number_of(table, object));

	*link_of(table, object) = *bucket;
	*bucket = object;
}

static int grow(struct cm_table *table)
{
	struct cm_table larger = *table;
	void *object, *next;

	larger.num_buckets = table->num_buckets ? table->num_buckets * 2 : FIRST_BUCKETS;
	larger.buckets = sim_core->alloc(larger.num_buckets * sizeof(*larger.buckets));
	if (!larger.buckets)
		return -ENOMEM;
	for (size_t i = 0; i < table->num_buckets; i++)
		for (object = table->buckets[i]; object; object = next) {
			next = *link_of(table, object);
			put(&larger, object);
		}
	sim_core->free(table->buckets);
	*table = larger;
	return 0;
}

int cm_table_reserve(struct cm_table *table)
{
	/* A full table still works, with longer chains. */
	if (table->count >= table->num_buckets && grow(table) < 0 && !table->buckets)
		return -ENOMEM;
	return 0;
}

void cm_table_add(struct cm_table *table, void *object)
{
	put(table, object);
	table->count++;
}

void cm_table_remove(struct cm_table *table, void *object)
{
	void **link = bucket_of(table, number_of(table, object));

	while (*link != object)
		link = link_of(table, *link);
	*link = *link_of(table, object);
	table->count--;
}

static void *with_number(const struct cm_table *table, void *object, uint32_t number)
{
	while (object && number_of(table, object) != number)
		object = *link_of(table, object);
	return object;
}

void *cm_table_first(const struct cm_table *table, uint32_t number)
{
	return table->num_buckets ? with_number(table, *bucket_of(table, number), number) : NULL;
}

void *cm_table_next(const struct cm_table *table, const void *object)
{
	return with_number(table, *link_of(table, object), number_of(table, object));
}

const void *cm_table_guess(const struct cm_table *table, uint32_t number)
{
	return table->num_buckets ? *bucket_of(table, number) : NULL;
}

void cm_table_free(struct cm_table *table)
{
	sim_core->free(table->buckets);
	table->buckets = NULL;
	table->num_buckets = table->count = 0;
}
