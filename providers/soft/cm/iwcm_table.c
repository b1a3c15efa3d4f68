/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cm/iwcm_table.c - finds streams by our number.  A chained hash table whose
 * links are in struct iwcm.  Numbers are handed out one after the other, so
 * they are left as they are: hardly two meet in a bucket, and streams of one
 * time lie side by side.  Engine lock held.
 */
#include "config.h"

#include <errno.h>

#include "iwcm.h"

#define FIRST_BUCKETS 64u

static struct iwcm **buckets;
static size_t num_buckets;	/* a power of two, or 0 */
static size_t num_streams;

static struct iwcm **bucket_in(struct iwcm **table, size_t size, uint32_t local_id)
{
	return &table[local_id & (size - 1)];
}

static int grow(void)
{
	size_t size = num_buckets ? num_buckets * 2 : FIRST_BUCKETS;
	struct iwcm **larger, **bucket, *cm;

	larger = sim_core->alloc(size * sizeof(struct iwcm *));
	if (!larger)
		return -ENOMEM;
	for (size_t i = 0; i < num_buckets; i++)
		while ((cm = buckets[i])) {
			buckets[i] = cm->next;
			bucket = bucket_in(larger, size, cm->local_id);
			cm->next = *bucket;
			*bucket = cm;
		}
	sim_core->free(buckets);
	buckets = larger;
	num_buckets = size;
	return 0;
}

int iw_table_add(struct iwcm *cm)
{
	struct iwcm **bucket;

	/* A full table still works, with longer chains. */
	if (num_streams >= num_buckets && grow() < 0 && !num_buckets)
		return -ENOMEM;
	bucket = bucket_in(buckets, num_buckets, cm->local_id);
	cm->next = *bucket;
	*bucket = cm;
	num_streams++;
	return 0;
}

void iw_table_remove(struct iwcm *cm)
{
	struct iwcm **link = bucket_in(buckets, num_buckets, cm->local_id);

	while (*link != cm)
		link = &(*link)->next;
	*link = cm->next;
	cm->next = NULL;
	num_streams--;
}

struct iwcm *iw_stream_find(uint32_t local_id)
{
	struct iwcm *cm;

	if (!num_buckets)
		return NULL;
	cm = *bucket_in(buckets, num_buckets, local_id);
	while (cm && cm->local_id != local_id)
		cm = cm->next;
	return cm;
}

void iw_table_prefetch(uint32_t local_id)
{
	const struct iwcm *cm = num_buckets ? *bucket_in(buckets, num_buckets, local_id) : NULL;

	if (cm)
		sim_prefetch(cm, sizeof(*cm));
}

void iw_table_free(void)
{
	sim_core->free(buckets);
	buckets = NULL;
	num_buckets = num_streams = 0;
}
