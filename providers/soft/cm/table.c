/* SPDX-License-Identifier: BSD-2-Clause */
/* cm/table.c - see table.h: the memory of tables. */
#include "config.h"

#include <errno.h>

#include "table.h"

#define FIRST_BUCKETS 64u

int cm_table_grow(struct cm_table *table)
{
	struct cm_table larger = *table;
	void *object, *next;

	larger.num_buckets = table->num_buckets ? table->num_buckets * 2 : FIRST_BUCKETS;
	larger.count = 0;
	larger.buckets = sim_core->alloc(larger.num_buckets * sizeof(*larger.buckets));
	/* A full table still works, with longer chains. */
	if (!larger.buckets)
		return table->buckets ? 0 : -ENOMEM;
	for (size_t i = 0; i < table->num_buckets; i++)
		for (object = table->buckets[i]; object; object = next) {
			next = *cm_table_link(table, object);
			cm_table_add(&larger, object);
		}
	sim_core->free(table->buckets);
	*table = larger;
	return 0;
}

void cm_table_free(struct cm_table *table)
{
	sim_core->free(table->buckets);
	table->buckets = NULL;
	table->num_buckets = table->count = 0;
}
