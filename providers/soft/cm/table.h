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
#include <stdint.h>

struct cm_table {
	void **buckets;
	size_t num_buckets;		/* a power of two, or 0 */
	size_t count;
	size_t link, number;		/* offsets in an object: void pointer and uint32_t */
};

/* Room for one more, so that adding it cannot fail.  -ENOMEM. */
int cm_table_reserve(struct cm_table *table);
void cm_table_add(struct cm_table *table, void *object);
/* It is there. */
void cm_table_remove(struct cm_table *table, void *object);
/* The first object with that number, the next one after it; NULL: no more. */
void *cm_table_first(const struct cm_table *table, uint32_t number);
void *cm_table_next(const struct cm_table *table, const void *object);
/* Where an object with that number would be, or NULL: to prefetch it.  It may be another. */
const void *cm_table_guess(const struct cm_table *table, uint32_t number);
void cm_table_free(struct cm_table *table);

#endif
