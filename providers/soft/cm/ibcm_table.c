/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cm/ibcm_table.c - finds communication ids: by our number, by the peer's number
 * and CA (a repeated request), by the peer's QP and CA (a stale connection).
 *
 * Chained hash tables with the links inside struct ibcm, so that adding to
 * them costs no memory beyond the buckets.  Chains are searched only, never
 * walked, so their order shows nowhere.  The node is part of the peer's keys:
 * each host has a CM of its own, although a fabric in one process has several.
 */
#include "config.h"

#include <errno.h>

#include "ibcm.h"

#define FIRST_BUCKETS 64u

struct table {
	struct ibcm **buckets;
	size_t num_buckets;	/* a power of two, or 0 */
	size_t count;
};

static struct table tables[IBCM_TABLES];

struct key {
	const struct sim_node *node;
	uint64_t guid;
	uint32_t number;
	bool sidr;
};

/*
 * Numbers are handed out one after the other and say which process they are
 * from, QP numbers are unique in the fabric where a device gave them: they are
 * left as they are.  So ids of one time lie side by side in the table, hardly
 * two meet in a bucket, and what is not in the table is not looked for in
 * others' memory.  Processes begin at other places.
 */
static size_t hash(uint32_t number)
{
	return number + (number >> SIM_CONN_INDEX_BITS) * 0x9e3779b9u;
}

static uint32_t number_of(const struct ibcm *cm, enum ibcm_table table)
{
	switch (table) {
	case IBCM_BY_LOCAL:
		return cm->local_id;
	case IBCM_BY_REMOTE:
		return cm->remote_id;
	default:
		return cm->remote_qpn;
	}
}

static struct ibcm **bucket_of(const struct table *table, uint32_t number)
{
	return &table->buckets[hash(number) & (table->num_buckets - 1)];
}

static struct ibcm **bucket_for(const struct table *table, const struct ibcm *cm,
				enum ibcm_table which)
{
	return bucket_of(table, number_of(cm, which));
}

static int grow(enum ibcm_table which)
{
	struct table *table = &tables[which];
	struct table larger = {
		.num_buckets = table->num_buckets ? table->num_buckets * 2 : FIRST_BUCKETS,
		.count = table->count,
	};
	struct ibcm **bucket, *cm;
	size_t i;

	larger.buckets = sim_core->alloc(larger.num_buckets * sizeof(*larger.buckets));
	if (!larger.buckets)
		return -ENOMEM;
	for (i = 0; i < table->num_buckets; i++)
		while ((cm = table->buckets[i])) {
			table->buckets[i] = cm->next[which];
			bucket = bucket_for(&larger, cm, which);
			cm->next[which] = *bucket;
			*bucket = cm;
		}
	sim_core->free(table->buckets);
	*table = larger;
	return 0;
}

int ibcm_table_reserve(void)
{
	int i, ret;

	for (i = 0; i < IBCM_TABLES; i++) {
		if (tables[i].count < tables[i].num_buckets)
			continue;
		ret = grow((enum ibcm_table)i);
		/* A full table still works, with longer chains. */
		if (ret < 0 && !tables[i].buckets)
			return ret;
	}
	return 0;
}

void ibcm_table_add(struct ibcm *cm, enum ibcm_table table)
{
	struct ibcm **bucket = bucket_for(&tables[table], cm, table);

	cm->next[table] = *bucket;
	*bucket = cm;
	cm->in_tables |= (uint8_t)(1u << table);
	tables[table].count++;
}

void ibcm_table_remove(struct ibcm *cm, enum ibcm_table table)
{
	struct ibcm **link;

	if (!(cm->in_tables & 1u << table))
		return;
	link = bucket_for(&tables[table], cm, table);
	while (*link != cm)
		link = &(*link)->next[table];
	*link = cm->next[table];
	cm->next[table] = NULL;
	cm->in_tables &= (uint8_t)~(1u << table);
	tables[table].count--;
}

static struct ibcm *find(enum ibcm_table which, const struct key *key)
{
	struct ibcm *cm;

	if (!tables[which].num_buckets)
		return NULL;
	for (cm = *bucket_of(&tables[which], key->number); cm; cm = cm->next[which]) {
		/* Our own number says it all; the node is a look into another cache line. */
		if (number_of(cm, which) == key->number &&
		    (which == IBCM_BY_LOCAL ||
		     (cm->remote_ca_guid == key->guid && cm->sidr == key->sidr &&
		      cm->id->node == key->node)))
			return cm;
	}
	return NULL;
}

struct ibcm *ibcm_find_local(uint32_t local_id)
{
	return find(IBCM_BY_LOCAL, &(struct key){ .number = local_id });
}

void ibcm_table_prefetch(uint32_t local_id)
{
	const struct table *table = &tables[IBCM_BY_LOCAL];
	const struct ibcm *cm = table->num_buckets ? *bucket_of(table, local_id) : NULL;

	if (cm)
		ibcm_prefetch(cm);
}

struct ibcm *ibcm_find_remote(const struct sim_node *node, uint32_t remote_id, uint64_t ca_guid,
			      bool sidr)
{
	return find(IBCM_BY_REMOTE, &(struct key){
		.node = node, .guid = ca_guid, .number = remote_id, .sidr = sidr,
	});
}

struct ibcm *ibcm_find_qpn(const struct sim_node *node, uint32_t remote_qpn, uint64_t ca_guid)
{
	return find(IBCM_BY_QPN, &(struct key){
		.node = node, .guid = ca_guid, .number = remote_qpn,
	});
}

unsigned int ibcm_table_count(enum ibcm_table table)
{
	return (unsigned int)tables[table].count;
}

void ibcm_table_free(void)
{
	int i;

	for (i = 0; i < IBCM_TABLES; i++) {
		sim_core->free(tables[i].buckets);
		tables[i] = (struct table){ 0 };
	}
}
